"""Switches: the laws of what is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import read_once
from tolerances import PASSED, STORED, SUMMED

from explorer.analysis import interventions
from explorer.analysis.formatting import tenths
from explorer.components import codec
from explorer.components.figure_caption import Picture
from explorer.components.interventions import board, pairs, trio
from explorer.figures.interventions import curves, lines
from models.edits import (
    MoveNorm,
    PatchSite,
    UniformHead,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
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
    said = interventions.prediction_change(logits, logits)
    assert said.kl == 0 and said.said == said.says
    assert (
        interventions.change_sentences(
            interventions.quantity_changes(plain, same, said, ("a", "a"))
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
    said = interventions.prediction_change(sure, unsure)
    (sentence,) = interventions.change_sentences(
        interventions.quantity_changes(recording, recording, said, ("cat", "dog"))
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
    figure = curves(
        [("full", of.curve), ("less <b>", np.array([[1.0, 3.0], [5.0, 2.0]]))], ("t <i>",)
    )
    assert (
        list(figure.data[0].x) == [1, 2, 5]
        and np.isnan(figure.data[0].y[2])
        and figure.data[1].name == "less &lt;b&gt;"
    )


# ---- pictures ----------------------------------------------------------------


def test_the_pictures_carry_the_numbers_and_a_board_refuses_an_unknown_state() -> None:
    before, after = random_rows(2, 3, 5, 5), np.roll(random_rows(2, 3, 5, 5), 1, axis=-1)
    header, blocks = codec.decode(
        trio(
            (before[0, 0], after[0, 0]),
            (np.ones((5, 5), bool), np.tril(np.ones((5, 5), bool))),
            (0, 0),
            ("abcde", "abcde"),
            Picture("t", (), "f", "x"),
        )
    )
    np.testing.assert_allclose(blocks["before.exact"].reshape(5, 5), before[0, 0], rtol=STORED)
    np.testing.assert_allclose(blocks["after.exact"].reshape(5, 5), after[0, 0], rtol=STORED)
    assert (
        "before.runs" not in blocks and "after.runs" in blocks and header["rows"] == list("abcde")
    )
    header, _ = codec.decode(
        pairs(
            before,
            after,
            np.array([[0.5, np.nan, 0], [1, 0, 0]]),
            token="x",
        )
    )
    assert header["distance"] == [0.5, None, 0, 1, 0, 0]
    header, _ = codec.decode(board((2, 3), {(1, 2): "zero"}, brush="silent", token="x"))
    assert header["states"] == ["", "", "", "", "", "zero"]
    with pytest.raises(ValueError, match="upside down"):
        board((1, 1), {(0, 0): "upside down"}, brush="silent", token="x")


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


def test_figures_escape_and_leave_a_gap_at_zero_on_a_log_axis() -> None:
    figure = lines(
        [("a <b>", np.array([1.0, 0.0, 0.01]))],
        ("<i>title</i> " + "long " * 20, "text <b>"),
        ["<x>", "y", "y"],
        "x",
        "y",
        log=True,
        named=True,
    )
    assert np.isnan(figure.data[0].y[1]) and figure.data[0].name == "a &lt;b&gt;"
    assert (
        list(figure.layout.xaxis.ticktext) == ["&lt;x&gt;", "y", "y"]
        and "<i>" not in figure.layout.title.text
    )


def test_a_subtitle_that_is_cut_says_so() -> None:
    about = ("Title", *(f"line {at} of what the figure is" for at in range(9)))
    shown = lines(
        [("a", np.ones(3))], about, range(3), "x", "y", log=False
    ).layout.title.subtitle.text.split("<br>")
    assert len(shown) == 5 and shown[0] == about[1] and shown[-1] == f"{about[5]} …"
    assert (
        "…"
        not in lines(
            [("a", np.ones(3))], about[:5], range(3), "x", "y", log=False
        ).layout.title.subtitle.text
    )
