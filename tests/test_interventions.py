"""Interventions: the laws of what is measured, and the panels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import read_once
from tolerances import PASSED, STORED, SUMMED

from explorer.analysis import interventions
from explorer.analysis.formatting import tenths
from explorer.panels import interventions as panels
from explorer.state.cache import Run
from models.edits import (
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
from models.own_model import OwnModel, record
from models.results import softmax

TEXT = "the cat sat on the mat"


def runs(handle: OwnModel, *edits):
    """A text's run as it is and under edits, with the same target for a model of two texts."""
    target = "le chat" if handle.card.kind == "encoder-decoder" else None
    return record(handle, TEXT, (), target), record(handle, TEXT, edits, target)


def random_rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.full(shape[-1], 0.3), shape[:-1])


# ---- laws --------------------------------------------------------------------


def test_the_distance_of_rows_is_a_metric_between_0_and_1() -> None:
    p, q, r = random_rows(3, 200, 7)
    pq, qr, pr = (
        interventions.distances(p, q),
        interventions.distances(q, r),
        interventions.distances(p, r),
    )
    np.testing.assert_allclose(pq, interventions.distances(q, p))
    assert (interventions.distances(p, p) == 0).all() and (pq >= 0).all() and (pq <= 1).all()
    assert (pr <= pq + qr + 1e-12).all(), "the triangle inequality"
    assert interventions.distances(
        np.array([1.0, 0, 0]), np.array([0.0, 0.5, 0.5])
    ) == pytest.approx(1), "rows that share no key"
    # By hand: m = (3/4, 1/4), JSD = H(m) - (H(p) + H(q)) / 2 in bits.
    entropy = -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25))
    assert interventions.distances(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == pytest.approx(
        np.sqrt(entropy - 0.5)
    )


def test_entropies_are_0_for_one_key_and_the_logarithm_for_an_even_row() -> None:
    assert interventions.entropies(np.eye(3)) == pytest.approx([0, 0, 0])
    assert interventions.entropies(np.full((1, 8), 1 / 8)) == pytest.approx([np.log(8)])


def test_without_edits_nothing_differs(handle: OwnModel) -> None:
    plain, same = runs(handle)
    for before, after in zip(plain.attention, same.attention):
        assert (
            np.nan_to_num(interventions.head_distances(before, after)) == 0
        ).all() and interventions.most_changed(interventions.head_distances(before, after)) == ()
    for one, other in zip(plain.streams, same.streams):
        of = interventions.stream_paths(one, other)
        assert (
            (of.distance == 0).all()
            and (of.before == of.after).all()
            and of.cosine == pytest.approx(1)
        )
    logits = np.random.default_rng(1).normal(size=50)
    change = interventions.prediction_change(logits, logits)
    assert change.kl == 0 and change.top_before == change.top_after
    assert (
        interventions.change_sentences(
            interventions.quantity_changes(plain, same, change, ("a", "a"))
        )
        == ()
    )


def test_only_the_head_that_was_made_even_changes_in_its_layer(handle: OwnModel) -> None:
    plain, _ = runs(handle)
    name = plain.attention[-1].name
    plain, other = runs(handle, UniformHead(1, 2, name))
    distance = interventions.head_distances(plain.attention[-1], other.attention[-1])
    assert (
        (distance[0] == 0).all() and (np.delete(distance[1], 2) == 0).all() and distance[1, 2] > 0.1
    )
    assert interventions.most_changed(distance, 1)[0][0] >= 1


def test_the_sentence_says_the_entropy_that_was_measured_by_hand() -> None:
    handle = read_once("encoder")
    plain, other = handle.record(TEXT), handle.record(TEXT, (WithoutScale(),))
    found = {each.name: each for each in interventions.quantity_changes(plain, other)}
    for layer in range(4):
        for run, value in ((plain, "before"), (other, "after")):
            p = run.attention[0].pattern[layer].astype(np.float64)
            assert getattr(found[f"row entropy, layer {layer}, nats"], value) == pytest.approx(
                -(p * np.log(p.clip(1e-300))).sum(-1).mean(), abs=SUMMED
            )
            assert getattr(found[f"largest weight, layer {layer}"], value) == pytest.approx(
                p.max(-1).mean(), abs=SUMMED
            )
    sentence = interventions.change_sentences(interventions.quantity_changes(plain, other))[0]
    first = interventions.quantity_changes(plain, other)[0]
    assert sentence == first.says and first.magnitude == max(
        each.magnitude for each in found.values()
    )


def test_the_sentence_is_about_what_moved_furthest() -> None:
    """Constructed runs: one row that was even becomes a single key; nothing else moves."""
    recording = read_once("encoder").record("I love to eat pizza")
    old = recording.attention[0]
    shape = old.pattern.shape
    even, sharp = np.full(shape, 1 / shape[-1]), np.full(shape, 1 / shape[-1])
    sharp[2] = np.eye(shape[-1])
    before = replace(recording, attention=(replace(old, pattern=even.astype(np.float32)),))
    after = replace(recording, attention=(replace(old, pattern=sharp.astype(np.float32)),))
    (sentence,) = interventions.change_sentences(interventions.quantity_changes(before, after))
    n = shape[-1]
    assert sentence == (
        f"row entropy in layer 2 fell from {np.log(n):.2f} to 0.00 nats. The mean largest weight "
        "is 1.00"
    )
    stream = recording.streams[0]
    grown = stream.resid.copy()
    grown[-1] *= 1000
    longer = replace(recording, streams=(replace(stream, resid=grown),))
    (sentence,) = interventions.change_sentences(interventions.quantity_changes(recording, longer))
    was = interventions.growth(stream)
    assert sentence == (
        f"the ratio of last to first vector norm changed from {interventions.factor_text(was)} to "
        f"{interventions.factor_text(1000 * was)}"
    )
    sure, unsure = np.array([9.0, 0, 0, 0]), np.array([0.0, 0, 0, 9.0])
    change = interventions.prediction_change(sure, unsure)
    (sentence,) = interventions.change_sentences(
        interventions.quantity_changes(recording, recording, change, ("cat", "dog"))
    )
    p = softmax(sure)
    assert (
        f"the probability of “cat” fell from {tenths(p[0])} to {tenths(p[3])}. The top prediction "
        f"is now “dog” ({tenths(p[0])})"
    ) in sentence


def test_kl_is_what_the_definition_says_and_finite_where_a_probability_cannot_be_written() -> None:
    one, other = np.random.default_rng(2).normal(size=(2, 30))
    p, q = softmax(one), softmax(other)
    assert interventions.prediction_change(one, other).kl == pytest.approx(
        (p * np.log(p / q)).sum()
    )
    change = interventions.prediction_change(np.array([0.0, 1.0]), np.array([5000.0, 0.0]))
    # The entropy of the first, less than one nat of 3,655.
    assert change.kl == pytest.approx(softmax(np.array([0.0, 1.0]))[1] * 5000, rel=1e-2)


def test_paths_line_up_whatever_is_switched(handle: OwnModel) -> None:
    for edits in (
        (WithoutPositions(),),
        (WithoutNorm(),),
        (MoveNorm("pre"),),
        (WithoutResidual(),),
    ):
        plain, other = runs(handle, *edits)
        for one, two in zip(plain.streams, other.streams):
            of = interventions.stream_paths(one, two)
            layers = [
                f"{layer}.{place}"
                for layer in range(3)
                for place in (
                    ("attn", "cross", "ffn")
                    if any(".cross." in site for site in one.sites)
                    else ("attn", "ffn")
                )
            ]
            assert [
                place for place in of.places if place not in ("embed", "input", "final")
            ] == layers
            last = list(interventions.named_states(two).values())[-1]
            np.testing.assert_allclose(
                of.after[-1]
                if "final" not in interventions.named_states(two)
                else np.linalg.norm(two.resid[-1], axis=-1),
                np.linalg.norm(two.at(last), axis=-1),
                rtol=SUMMED,
            )
            np.testing.assert_allclose(
                of.distance**2,
                of.before**2 + of.after**2 - 2 * of.before * of.after * of.cosine,
                rtol=STORED,
                atol=STORED,
            )


def test_the_two_words_of_a_contrast() -> None:
    assert interventions.contrast(np.array([3.0, 1, 0]), np.array([0.0, 1, 5])) == (0, 2)
    assert interventions.contrast(np.array([5.0, 1, 2]), np.array([5.0, 3, 2])) == (0, 1), (
        "both say 0; 1 is what the donor raises"
    )


def test_effects_are_0_for_the_run_itself_and_1_for_the_donor_s() -> None:
    assert (
        interventions.effect(2.0, 2.0, -1.0) == 0
        and interventions.effect(-1.0, 2.0, -1.0) == 1
        and np.isnan(interventions.effect(2.0, 2.0, 2.001))
    )
    of = interventions.effects_by_head([((0, 1), -1.0), ((1, 0), 2.0)], (2, 2), 2.0, -1.0)
    np.testing.assert_array_equal(of.values, [[np.nan, 1], [0, np.nan]])
    assert interventions.strongest_cell(of) == (0, 1) and of.normalised
    flat = interventions.effects_by_site(
        [(("embed", 0), 1.0), (("0.attn.normed", 1), 0.5)],
        ("a", "b"),
        ("embed", "0.attn.normed"),
        0.0,
        0.0,
    )
    assert (
        not flat.normalised
        and flat.values[0, 0] == 1
        and flat.values[1, 1] == 0.5
        and interventions.strongest_cell(flat, read_row=0) == (1, 1)
    )


def test_models_trained_without_a_part_stand_beside_the_full_one() -> None:
    curve = [[1, 2.0], [2, 1.0]]
    cards = {
        "reverse": {"curve": curve, "scores": {"right": 1.0}},
        "reverse-no-scale": {"without": "scale", "curve": curve},
        "stray-no-x": {"without": "x"},
        "other": {},
    }
    (of,) = interventions.ablation_models(cards)
    assert (of.name, of.full, of.without) == (
        "reverse-no-scale",
        "reverse",
        "scale",
    ) and of.curve.shape == (2, 2)
    assert interventions.result_columns((of,))["trained without"] == ["nothing", "scale"]
    assert interventions.ablation_models({"reverse": {}}) == ()


# ---- panels ------------------------------------------------------------------


def test_the_panel_of_an_effect_has_the_predictions_and_the_heads_of_both_runs() -> None:
    loaded = read_once("encoder")
    edits = (WithoutPositions(),)
    panel = panels.effect(Run("encoder", TEXT, edits), token=2)
    words, heads = panel.figures
    masked = [loaded.record(TEXT, (HideToken(2), *more)) for more in ((), edits)]
    change = interventions.prediction_change(*(loaded.logits(run, "encoder", 2) for run in masked))
    best = change.top(8)
    shown = [(row.label, *row.values) for row in words.rows]
    expected = [
        (each, change.before[id], change.after[id]) for each, id in zip(loaded.labels(best), best)
    ]
    for one, other in zip(shown, expected, strict=True):
        assert one[0] == other[0] and one[1:] == pytest.approx(other[1:], abs=STORED)
    one, other = (loaded.record(TEXT, more) for more in ((), edits))
    distance = interventions.head_distances(one.attention[0], other.attention[0])
    np.testing.assert_allclose(heads.values, distance, atol=STORED)
    assert heads.marks == ((*interventions.most_changed(distance, 1)[0], ""),)
    p, q = (tenths(float(each[change.top_before])) for each in (change.before, change.after))
    layer, head = heads.marks[0][:2]
    assert f"from {p} to {q}" in panel.finding
    assert f"layer {layer}, head {head} changed most" in panel.finding
    changes = interventions.quantity_changes(
        one, other, change, tuple(loaded.labels((change.top_before, change.top_after)))
    )
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
        assert row.values[0] == pytest.approx(next(e.values[1] for e in top if e.selected))
        assert row.values[1] == pytest.approx(float(effect.figures[1].values.mean()), abs=STORED)
    with pytest.raises(ValueError, match="without edits"):
        panels.experiments(Run("encoder", TEXT, (ZeroHead(0, 0),)))


@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_a_head_is_shown_in_both_runs_of_one_target(model: str) -> None:
    loaded, edits = read_once(model), (WithoutScale(1), WithoutPositions())
    plain = loaded.record(TEXT)
    name = plain.attention[-1].name
    target = tuple(map(int, plain.streams[-1].ids[1:])) if model == "translator" else None
    other = loaded.record(TEXT, edits, target)
    panel = panels.head_attention(Run(model, TEXT, edits), 1, 2, name)
    one, two = (run.attention[-1] for run in (plain, other))
    before, after, change = (figure.values for figure in panel.figures)
    np.testing.assert_allclose(
        before, np.where(one.allowed, one.pattern[1, 2], np.nan), atol=STORED
    )
    np.testing.assert_allclose(after, np.where(two.allowed, two.pattern[1, 2], np.nan), atol=STORED)
    np.testing.assert_allclose(change, after - before, atol=STORED)
    ((row, key, _),) = panel.figures[0].marks
    assert abs(change[row, key]) == np.nanmax(np.abs(change))
    assert panel.finding.endswith("the largest change of one weight in this head.")
    with pytest.raises(ValueError, match="not finite"):
        panels.head_attention(Run(model, TEXT, (ScaledBy(1e-38),)))


def test_vectors_are_those_of_both_runs() -> None:
    loaded, edits = read_once("decoder"), (WithoutFeedForward(1),)
    one, other = (loaded.record(TEXT, more).streams[0] for more in ((), edits))
    panel = panels.residual_stream(Run("decoder", TEXT, edits), token=3)
    norms, distances = panel.figures
    last = (one.resid[-1, 3].astype(np.float64), other.resid[-1, 3].astype(np.float64))
    assert norms.series[0].y[-1] == pytest.approx(np.linalg.norm(last[0]), rel=SUMMED)
    relative = np.linalg.norm(last[1] - last[0]) / np.linalg.norm(last[0])
    assert distances.series[0].y[-1] == pytest.approx(relative, rel=SUMMED)


def test_a_panel_of_patches_names_the_strongest_one() -> None:
    run = Run("decoder", "She ate the apple")
    panel = panels.patches(run, "She drove the apple", "Sites", 4)
    (table,) = panel.figures
    row, column, _ = table.marks[0]
    assert row == 2 and "“ate” (token 2)" in panel.finding, "the word that was changed"
    values = np.array(table.values)
    values[4] = 0  # the token that is read holds the whole answer in its last state
    assert abs(values[row, column]) == np.abs(values).max()
    other = panels.patches(run, "She drove the apple", "Sites", 4, row=1, column=0)
    assert other.figures[0].marks == ((1, 0, ""),) and "largest" not in other.finding
    with pytest.raises(ValueError, match="equal"):
        panels.patches(run, "She ate the apple")
    with pytest.raises(ValueError, match="no attention or stream"):
        panels.patches(run, "She drove the apple", of="cross")


def test_every_model_of_a_family_has_its_curve() -> None:
    panel = panels.trained_without(Run("reverse", TEXT))
    curves, results = panel.figures
    (reverse,) = (curve for curve in curves.series if curve.main)
    assert reverse.name == "reverse" and results.rows[0][0] == "nothing"
    assert len(curves.series) == len(results.rows) and {len(row) for row in results.rows} == {
        len(results.columns)
    }


@pytest.mark.slow
def test_a_sweep_measures_what_a_patched_run_says() -> None:
    from explorer.state import cache, jobs, models

    loaded = models.handle("decoder")
    text, donor = "She ate the apple", "She drove the apple"
    base, other = cache.record("decoder", text), cache.record("decoder", donor)
    word, against = interventions.contrast(
        cache.logits(base, "decoder", 4), cache.logits(other, "decoder", 4)
    )
    sweep = jobs.patch_sweep(base, "Sites", donor, "decoder", 4, word, against)
    sweep.resume()
    sweep._thread.join(60)
    assert sweep.finished and len(sweep.latest.effects) == sweep.latest.places
    of = interventions.effects_by_site(
        sweep.latest.effects,
        base.streams[0].tokens,
        tuple(interventions.named_states(base.streams[0]).values()),
        sweep.latest.clean,
        sweep.latest.donor,
    )
    place = (2, 3)
    patched = loaded.record(text, (PatchSite(donor, of.columns[3].name, 2, "decoder"),))
    z, c, d = (loaded.logits(run, "decoder", 4) for run in (patched, base, other))
    by_hand = interventions.effect(
        float(z[word] - z[against]), float(c[word] - c[against]), float(d[word] - d[against])
    )
    assert of.values[place] == pytest.approx(by_hand, abs=PASSED)
    assert np.nanmax(np.abs(of.values[:2])) < PASSED, (
        "what is the same in both texts before the changed word does nothing"
    )
    assert of.values[4, -1] == pytest.approx(1, abs=PASSED), (
        "the whole answer stands in the last state of the token that is read"
    )
