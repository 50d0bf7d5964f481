"""Interventions: the laws of what is measured, and the panels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import read_once
from ordinary_sentences import SENTENCES
from tolerances import DOUBLE, PASSED, STORED, SUMMED

from explorer.analysis import interventions
from explorer.app.state import jobs
from explorer.figures.formatting import tenths
from explorer.panels import interventions as panels
from models.contract.edits import (
    Edit,
    HideToken,
    MoveNorm,
    PatchSite,
    ScaledBy,
    UniformHead,
    WithoutFeedForward,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
    from_line,
)
from models.contract.results import softmax
from models.example_texts import DEFAULT_TEXT
from models.network.own_model import OwnModel, record
from models.runtime.caching import loaded
from models.runtime.run import Run

WAITER = "The waiter brought the soup but it was cold."
NURSE = "The nurse told the doctor that she was late."
GERMAN = "Der Hund biss den Mann, weil er müde war."

TEXT = "the cat sat on the mat"


def runs(model: OwnModel, *edits):
    """A text's run as it is and under edits, with the same target for a model of two texts."""
    target = "le chat" if model.card.kind == "encoder-decoder" else None
    return record(model, TEXT, (), target), record(model, TEXT, edits, target)


# ---- laws --------------------------------------------------------------------


def test_the_distance_of_rows_is_a_metric_between_0_and_1() -> None:
    distances = interventions.distances
    p, q, r = np.random.default_rng(0).dirichlet(np.full(7, 0.3), (3, 200))
    pq = distances(p, q)
    np.testing.assert_allclose(pq, distances(q, p))
    assert (distances(p, p) == 0).all() and (pq >= 0).all() and (pq <= 1).all()
    assert (distances(p, r) <= pq + distances(q, r) + DOUBLE).all(), "the triangle inequality"
    shares_no_key = np.array([1.0, 0, 0]), np.array([0.0, 0.5, 0.5])
    assert distances(*shares_no_key) == pytest.approx(1)
    # By hand: m = (3/4, 1/4), JSD = H(m) - (H(p) + H(q)) / 2 in bits.
    jsd = -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25)) - 0.5
    by_hand = distances(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    assert by_hand == pytest.approx(np.sqrt(jsd))


def test_without_edits_nothing_differs(model: OwnModel) -> None:
    plain, same = runs(model)
    for before, after in zip(plain.attention, same.attention):
        distance = interventions.head_distances(before, after)
        assert not np.nan_to_num(distance).any() and interventions.most_changed(distance) == ()
    for one, other in zip(plain.streams, same.streams):
        of = interventions.stream_paths(one, other)
        assert not of.distance.any() and (of.before == of.after).all()
        assert of.cosine == pytest.approx(1)
    logits = np.random.default_rng(1).normal(size=50)
    change = interventions.prediction_change(logits, logits)
    assert change.kl == 0 and change.top_before == change.top_after
    changes = interventions.quantity_changes(plain, same, change, ("a", "a"))
    assert interventions.change_sentences(changes) == ()


def test_only_the_head_that_was_made_even_changes_in_its_layer(model: OwnModel) -> None:
    name = runs(model)[0].attention[-1].name
    plain, other = runs(model, UniformHead(1, 2, name))
    distance = interventions.head_distances(plain.attention[-1], other.attention[-1])
    assert not distance[0].any() and not np.delete(distance[1], 2).any() and distance[1, 2] > 0.1
    assert interventions.most_changed(distance, 1)[0][0] >= 1


def test_the_sentence_says_the_largest_change_of_what_was_measured_by_hand() -> None:
    model = read_once("encoder")
    plain, other = model.record(TEXT), model.record(TEXT, (WithoutScale(),))
    changes = interventions.quantity_changes(plain, other)
    found = {each.name: each for each in changes}
    for layer in range(4):
        for run, value in ((plain, "before"), (other, "after")):
            p = run.attention[0].pattern[layer].astype(np.float64)
            entropy = -(p * np.log(p.clip(1e-300))).sum(-1).mean()
            for name, expected in (
                (f"row entropy, layer {layer}, nats", entropy),
                (f"largest weight, layer {layer}", p.max(-1).mean()),
            ):
                assert getattr(found[name], value) == pytest.approx(expected, abs=SUMMED)
    sentence, *_ = interventions.change_sentences(changes)
    assert sentence == changes[0].says
    assert changes[0].magnitude == max(each.magnitude for each in changes)


def test_the_sentence_is_about_what_moved_furthest() -> None:
    """Constructed runs: one row that was even becomes a single key, one vector grows, another word
    is predicted; nothing else moves."""
    recording = read_once("encoder").record("I love to eat pizza")
    stream, old = recording.streams[0], recording.attention[0]
    n = old.pattern.shape[-1]
    even, sharp = np.full((2, *old.pattern.shape), 1 / n, np.float32)
    sharp[2], grown = np.eye(n), stream.resid.copy()
    grown[-1] *= 1000
    before, after = (
        replace(recording, attention=(replace(old, pattern=each),)) for each in (even, sharp)
    )
    longer = replace(recording, streams=(replace(stream, resid=grown),))
    sure, unsure = np.array([9.0, 0, 0, 0]), np.array([0.0, 0, 0, 9.0])
    change, p = interventions.prediction_change(sure, unsure), softmax(sure)
    was, factor = interventions.growth(stream), interventions.factor_text
    for given, slots in (
        ((before, after), ("row entropy", "layer 2", f"{np.log(n):.2f} to 0.00 nats", "1.00")),
        ((recording, longer), ("vector norm", f"{factor(was)} to {factor(1000 * was)}")),
        (
            (recording, recording, change, ("cat", "dog")),
            ("“cat”", f"{tenths(p[0])} to {tenths(p[3])}", f"“dog” ({tenths(p[0])})"),
        ),
    ):
        changes = interventions.quantity_changes(*given)
        (sentence,) = interventions.change_sentences(changes)
        assert all(slot in sentence for slot in slots), sentence


def test_kl_is_what_the_definition_says_and_finite_where_a_probability_cannot_be_written() -> None:
    one, other = np.random.default_rng(2).normal(size=(2, 30))
    p, q = softmax(one), softmax(other)
    expected = (p * np.log(p / q)).sum()
    assert interventions.prediction_change(one, other).kl == pytest.approx(expected)
    change = interventions.prediction_change(np.array([0.0, 1.0]), np.array([5000.0, 0.0]))
    # The entropy of the first, less than one nat of 3,655.
    assert change.kl == pytest.approx(softmax(np.array([0.0, 1.0]))[1] * 5000, rel=1e-2)


@pytest.mark.parametrize(
    "edit", [WithoutPositions(), WithoutNorm(), MoveNorm("pre"), WithoutResidual()], ids=str
)
def test_paths_line_up_whatever_is_switched(model: OwnModel, edit: Edit) -> None:
    plain, other = runs(model, edit)
    for one, two in zip(plain.streams, other.streams):
        of, states = interventions.stream_paths(one, two), interventions.named_states(two)
        cross = any(".cross." in site for site in one.sites)
        parts = ("attn", "cross", "ffn") if cross else ("attn", "ffn")
        layers = [f"{layer}.{part}" for layer in range(3) for part in parts]
        ends = ("embed", "input", "final")
        assert [place for place in of.places if place not in ends] == layers
        last = np.linalg.norm(two.at(list(states.values())[-1]), axis=-1)
        if "final" not in states:
            np.testing.assert_allclose(of.after[-1], last, rtol=SUMMED)
        # The law of cosines.
        squares = of.before**2 + of.after**2 - 2 * of.before * of.after * of.cosine
        np.testing.assert_allclose(of.distance**2, squares, rtol=STORED, atol=STORED)


def test_the_two_words_of_a_contrast() -> None:
    assert interventions.contrast(np.array([3.0, 1, 0]), np.array([0.0, 1, 5])) == (0, 2)
    assert interventions.contrast(np.array([5.0, 1, 2]), np.array([5.0, 3, 2])) == (0, 1), (
        "both say 0; 1 is what the donor raises"
    )


def test_effects_are_0_for_the_run_itself_and_1_for_the_donor_s() -> None:
    effect = interventions.effect
    assert effect(2.0, 2.0, -1.0) == 0 and effect(-1.0, 2.0, -1.0) == 1
    assert np.isnan(effect(2.0, 2.0, 2.001))
    of = interventions.effects_by_head([((0, 1), -1.0), ((1, 0), 2.0)], (2, 2), 2.0, -1.0)
    np.testing.assert_array_equal(of.values, [[np.nan, 1], [0, np.nan]])
    assert interventions.strongest_cell(of) == (0, 1) and of.normalised
    sites, effects = ("embed", "0.attn.normed"), [(("embed", 0), 1.0), (("0.attn.normed", 1), 0.5)]
    flat = interventions.effects_by_site(effects, ("a", "b"), sites, 0.0, 0.0)
    assert not flat.normalised and flat.values[0, 0] == 1 and flat.values[1, 1] == 0.5
    assert interventions.strongest_cell(flat, read_row=0) == (1, 1)


@pytest.mark.slow
def test_models_trained_without_a_part_stand_beside_the_full_one() -> None:
    curve = [[1, 2.0], [2, 1.0]]
    cards = {
        "reverse": {"curve": curve, "scores": {"right": 1.0}},
        "reverse-no-scale": {"without": "scale", "curve": curve},
        "stray-no-x": {"without": "x"},
        "other": {},
    }
    (of,) = interventions.ablation_models(cards)
    assert (of.name, of.full, of.without) == ("reverse-no-scale", "reverse", "scale")
    assert of.curve.shape == (2, 2)
    assert interventions.result_columns((of,))["trained without"] == ["nothing", "scale"]
    assert interventions.ablation_models({"reverse": {}}) == ()
    panel = panels.trained_without(Run("reverse", TEXT))
    curves, results = panel.figures
    (reverse,) = (curve for curve in curves.series if curve.main)
    assert reverse.name == "reverse" and results.rows[0][0] == "nothing"
    assert len(curves.series) == len(results.rows)
    assert {len(row) for row in results.rows} == {len(results.columns)}


# ---- panels ------------------------------------------------------------------


def test_the_panel_of_an_effect_has_the_predictions_and_the_heads_of_both_runs() -> None:
    loaded, edits = read_once("encoder"), (WithoutPositions(),)
    panel = panels.effect(Run("encoder", TEXT, edits), token=2)
    words, heads = panel.figures
    masked = [loaded.record(TEXT, (HideToken(2), *more)) for more in ((), edits)]
    change = interventions.prediction_change(*(loaded.logits(run, "encoder", 2) for run in masked))
    best = change.top(8)
    assert [row.label for row in words.rows] == loaded.labels(best)
    expected = [(change.before[id], change.after[id]) for id in best]
    np.testing.assert_allclose([row.values for row in words.rows], expected, atol=STORED)
    one, other = (loaded.record(TEXT, more) for more in ((), edits))
    distance = interventions.head_distances(one.attention[0], other.attention[0])
    np.testing.assert_allclose(heads.values, distance, atol=STORED)
    layer, head = interventions.most_changed(distance, 1)[0]
    assert heads.marks == ((layer, head, ""),)
    p, q = (tenths(float(each[change.top_before])) for each in (change.before, change.after))
    assert f"from {p} to {q}" in panel.finding and f"layer {layer}, head {head}" in panel.finding
    tops = tuple(loaded.labels((change.top_before, change.top_after)))
    changes = interventions.quantity_changes(one, other, change, tops)
    for sentence in interventions.change_sentences(changes):
        assert f"{sentence[1:]}." in " ".join(panel.details)


def test_an_experiment_is_what_its_edits_do() -> None:
    run = Run("encoder", TEXT)
    panel = panels.experiments(run, token=2, layer=1, head=2)
    (bars,) = panel.figures
    first, *rows = bars.rows
    assert first.key == "" and first.values[1] == 0
    for row in rows:
        effect = panels.effect(Run("encoder", TEXT, from_line(row.key)), token=2)
        top = effect.figures[0].rows
        assert row.values[0] == pytest.approx(next(e.values[-1] for e in top if e.selected))
        assert row.values[1] == pytest.approx(float(effect.figures[1].values.mean()), abs=STORED)
    with pytest.raises(ValueError, match="without edits"):
        panels.experiments(Run("encoder", TEXT, (ZeroHead(0, 0),)))


WAITER = "The waiter brought the soup but it was cold."


def test_a_word_is_taken_out_by_a_press_and_put_back_by_another() -> None:
    """Each row is what is left of the guess in a run of its own."""
    loaded, at = read_once("encoder"), 7
    panel = panels.words_out(Run("encoder", WAITER), token=at)
    (bars,) = panel.figures
    assert [row.label for row in bars.rows] == "The waiter brought the soup but was cold".split()
    it = loaded.first_token("it")[0]
    for row, top in zip(bars.rows, panel.table["top prediction"]):
        assert not row.selected and bars.select == ("edits",)
        made = loaded.record(WAITER, (HideToken(at), *from_line(row.key)))
        p = softmax(loaded.logits(made, "encoder", at))
        assert row.values == (pytest.approx(p[it]),)
        assert loaded.labels([int(p.argmax())]) == [top] and (top == "it") != (
            "now" in row.texts[0]
        )
    assert panel.finding == "Without “cold” the model says “he”, and no longer “it”."
    before = tenths(bars.rows[0].outline)
    assert panel.title.endswith(f"“it” is hidden, and the model guesses “it”, {before}")
    assert f"Dashed: {before}, " in bars.note
    out = Run("encoder", WAITER, from_line(bars.rows[-1].key))
    (again,) = panels.words_out(out, token=at).figures
    assert [row.key for row in again.rows] == [*(row.key for row in bars.rows[:-1]), ""]
    assert [row.selected for row in again.rows] == [False] * 7 + [True]
    with pytest.raises(ValueError, match="without other edits"):
        panels.words_out(Run("encoder", WAITER, (ZeroHead(0, 0),)))


def test_of_what_is_taken_out_the_effect_says_what_turns() -> None:
    for line, what in (("HideWord:9", "“cold”"), ("ZeroHead:1:7", "head 7 of layer 1")):
        effect = panels.effect(Run("encoder", WAITER, from_line(line)), token=7)
        told = f"Without {what} the model says “he”, and no longer “it”. "
        assert effect.finding.startswith(told)
        bars = effect.figures[0]
        assert bars.columns == ("after",)
        plain = panels.effect(Run("encoder", WAITER), token=7).figures[0].rows
        before = {row.label: row.values[0] for row in plain}
        assert all(
            row.outline == pytest.approx(before.get(row.label, row.outline)) for row in bars.rows
        )
    stays = panels.effect(Run("encoder", WAITER, from_line("HideWord:2")), token=7)
    assert stays.finding.startswith("The probability of “it” rises")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["decoder", "translator"])
def test_words_are_taken_out_of_a_text_that_goes_on(model: str) -> None:
    panel = panels.words_out(Run(model, WAITER))
    (bars,) = panel.figures
    assert [row.label for row in bars.rows][:2] == ["The", "waiter"]
    assert all(0 <= row.values[0] <= 1 and from_line(row.key) for row in bars.rows)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["decoder", "translator"])
def test_a_head_is_shown_in_both_runs_of_one_target(model: str) -> None:
    loaded, edits = read_once(model), (WithoutScale(1), WithoutPositions())
    plain = loaded.record(TEXT)
    name = plain.attention[-1].name
    target = tuple(map(int, plain.streams[-1].ids[1:])) if model == "translator" else None
    panel = panels.head_attention(Run(model, TEXT, edits), 1, 2, name)
    one, two = (run.attention[-1] for run in (plain, loaded.record(TEXT, edits, target)))
    shown = [figure.values for figure in panel.figures]
    for values, of in zip(shown, (one, two)):
        expected = np.where(of.allowed[0], of.pattern[1, 2], np.nan)
        np.testing.assert_allclose(values, expected, atol=STORED)
    change = shown[2]
    np.testing.assert_allclose(change, shown[1] - shown[0], atol=STORED)
    ((row, key, _),) = panel.figures[0].marks
    assert abs(change[row, key]) == np.nanmax(np.abs(change))
    with pytest.raises(ValueError, match="not finite"):
        panels.head_attention(Run(model, TEXT, (ScaledBy(1e-38),)))


def test_vectors_are_those_of_both_runs() -> None:
    loaded, edits = read_once("decoder"), (WithoutFeedForward(1),)
    one, other = (
        loaded.record(TEXT, more).streams[0].resid[-1, 3].astype(np.float64) for more in ((), edits)
    )
    panel = panels.residual_stream(Run("decoder", TEXT, edits), token=3)
    last = [figure.series[0].y[-1] for figure in panel.figures]
    norm = np.linalg.norm(one)
    assert last == pytest.approx([norm, np.linalg.norm(other - one) / norm], rel=SUMMED)


def test_a_panel_of_patches_names_the_strongest_one() -> None:
    run = Run("decoder", "She ate the apple")
    panel = panels.patches(run, "She drove the apple", "Sites", 4)
    (table,) = panel.figures
    row, column, _ = table.marks[0]
    assert row == 2, "the word that was changed"
    values = np.array(table.values)
    values[4] = 0  # the token that is read holds the whole answer in its last state
    assert abs(values[row, column]) == np.abs(values).max()
    other = panels.patches(run, "She drove the apple", "Sites", 4, cell=(1, 0))
    assert other.figures[0].marks == ((1, 0, ""),) and "largest" not in other.finding
    with pytest.raises(ValueError, match="equal"):
        panels.patches(run, "She ate the apple")
    with pytest.raises(ValueError, match="no attention 'cross'"):
        panels.patches(run, "She drove the apple", attention="cross")


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_the_second_sentence_has_another_answer_or_there_is_none(model: str) -> None:
    of, found = read_once(model), 0
    for text in (WAITER, NURSE, GERMAN, *SENTENCES[4:12:2]):
        on = panels.pair(Run(model, text))
        other = panels.default_donor(Run(model, text))
        panel = panels.patches(Run(model, text))
        if not other:
            assert not panel.figures and "No change of one word was found" in panel.finding
            continue
        found += 1
        runs = [of.record(each, on.hidden) for each in (text, other)]
        assert len({len(each.streams[0].tokens) for each in runs}) == 1, "by position"
        p, q = (softmax(of.logits(each, each.streams[-1].name, on.at.token)) for each in runs)
        assert p.argmax() != q.argmax() and p.max() - q[p.argmax()] >= 0.1
        one, other = of.labels([int(p.argmax()), int(q.argmax())])
        assert f"“{one}”" in panel.finding and f"“{other}”" in panel.finding
    assert found or model != "encoder"
    assert not panels.default_donor(Run("encoder", GERMAN)), "in a language that it has not read"


def test_two_sentences_with_one_answer_have_no_answer_to_copy() -> None:
    panel = panels.patches(Run("encoder", DEFAULT_TEXT), DEFAULT_TEXT.replace("tired", "wide"))
    assert panel.finding.startswith("Both sentences say “it”: there is no other answer to copy.")
    assert panel.figures, "what each patch adds is there all the same"


@pytest.mark.slow
def test_a_sweep_measures_what_a_patched_run_says() -> None:
    model = loaded("decoder")
    text, donor = "She ate the apple", "She drove the apple"
    base, other = model.record(text), model.record(donor)
    clean, lent = (model.logits(each, "decoder", 4) for each in (base, other))
    word, against = interventions.contrast(clean, lent)
    sweep = jobs.patch_sweep(base, "Sites", donor, "decoder", 4, word, against)
    sweep.resume()
    sweep._thread.join(60)
    assert sweep.finished and len(sweep.latest.effects) == sweep.latest.places
    stream, latest = base.streams[0], sweep.latest
    sites = tuple(interventions.named_states(stream).values())
    of = interventions.effects_by_site(
        latest.effects, stream.tokens, sites, latest.clean, latest.donor
    )
    patched = model.record(text, (PatchSite(donor, of.columns[3].name, 2, "decoder"),))
    three = model.logits(patched, "decoder", 4), clean, lent
    by_hand = interventions.effect(*(float(z[word] - z[against]) for z in three))
    assert of.values[2, 3] == pytest.approx(by_hand, abs=PASSED)
    # What is the same in both texts before the changed word does nothing; the whole answer stands
    # in the last state of the token that is read.
    assert np.nanmax(np.abs(of.values[:2])) < PASSED
    assert of.values[4, -1] == pytest.approx(1, abs=PASSED)
