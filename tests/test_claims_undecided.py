"""Claims: what decides nothing is not said to decide, and a verdict is the number against its
bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from claim_fixtures import D, E, T, adding, attending, feeling, flowing, material, real, value
from conftest import read_once
from tolerances import TOTAL

from explorer.analysis import formatting, measure, verdicts
from explorer.analysis.measure import Measure, MeasureContext
from explorer.analysis.verdicts import FAILS, HOLDS, SHORT, UNTESTABLE
from explorer.text import claims
from models import registry
from models.recording import Attention, Recording, Stream


def closed(e: MeasureContext) -> MeasureContext:
    """The same from a model that hands out its weights alone."""
    attention = tuple(
        Attention.closed(a.name, a.query, a.key, a.pattern, a.allowed)
        for a in e.recording.attention
    )
    return replace(e, recording=replace(e.recording, attention=attention))


def turning(degrees: float) -> Callable:
    """Vectors that every sub-layer turns by one angle."""

    def change(stream: Stream, site: str, x: np.ndarray) -> np.ndarray:
        angle = np.radians(degrees) * sum(
            each.endswith(".wrote") for each in stream.sites[: stream.sites.index(site) + 1]
        )
        x[:] = 0
        x[:, :2] = np.cos(angle), np.sin(angle)
        return x

    return change


def test_a_head_that_looks_at_itself_alone_makes_no_endless_number() -> None:
    def still(a: Attention) -> dict:
        pattern = a.pattern.copy()
        pattern[0, 0] = np.eye(a.pattern.shape[-1])
        return {"pattern": pattern}

    finding = verdicts.evaluate_claim(claims.BY_ID["near-and-far"], attending(E(), still))
    assert (finding.verdict, finding.value, finding.value_text) == (HOLDS, 1000, "over 1,000×")


def test_a_sink_is_not_far_away() -> None:
    """Every head looks next door but for half of its weight, which one of them rests on the first
    token: it reaches no further for that."""
    n = len(E().recording.streams[0].tokens)
    beside = np.eye(n, k=1) + np.eye(n, k=-1)
    beside[0, 1] = beside[-1, -2] = 1
    near = (beside / beside.sum(axis=1, keepdims=True)).astype(np.float32)

    def resting(a: Attention) -> dict:
        pattern = np.broadcast_to(near, a.pattern.shape).copy()
        pattern[0, 0] = 0.5 * near
        pattern[0, 0, :, 0] += 0.5
        return {"pattern": pattern}

    finding = verdicts.evaluate_claim(claims.BY_ID["near-and-far"], attending(E(), resting))
    assert finding.verdict == FAILS and finding.value < 1.05, finding


def test_an_edge_whose_weight_is_lost_in_rounding_decides_nothing() -> None:
    stream = E().recording.streams[0]
    places = measure.sample_tokens(np.flatnonzero(~stream.special))

    def deaf(rows: int) -> MeasureContext:
        """Of the tokens before `rows` none has weight on those that are exchanged, nor hears of
        them."""

        def quiet(a: Attention) -> dict:
            pattern = a.pattern.copy()
            pattern[0][:, :rows, places] = 0
            return {"pattern": pattern / pattern.sum(axis=-1, keepdims=True)}

        e = attending(E(), quiet)

        def again(*asked: object) -> Recording:
            changed = attending(replace(e, recording=E().again(*asked)), quiet).recording

            def silent(s: Stream, site: str, x: np.ndarray) -> np.ndarray:
                x[:rows] = stream.at(site)[:rows]
                return x

            return flowing(replace(e, recording=changed), silent).recording

        return replace(e, again=again)

    claim = claims.BY_ID["messages"]
    assert verdicts.evaluate_claim(claim, deaf(3)).verdict == HOLDS
    most = verdicts.evaluate_claim(claim, deaf(len(stream.tokens) - 3))
    assert most.verdict == UNTESTABLE and "below rounding" in most.why


@pytest.mark.parametrize(
    ("degrees", "verdict"), [(30, HOLDS), (45, HOLDS), (53, FAILS), (61, FAILS), (90, FAILS)]
)
def test_a_modest_turn_is_a_smaller_one_than_permuted_weights_make(
    degrees: float, verdict: str
) -> None:
    finding = verdicts.evaluate_claim(claims.BY_ID["little-work"], flowing(E(), turning(degrees)))
    assert finding.verdict == verdict and finding.value == pytest.approx(degrees, abs=TOTAL)
    assert "our choice" in claims.BY_ID["little-work"].remark


def test_far_words_are_held_to_the_whole_text() -> None:
    claim = claims.BY_ID["far-words-count"]
    long = material(registry.load("decoder"), "the cat saw the dog and the dog saw the cat " * 5)
    fading = verdicts.evaluate_claim(claim, feeling(long, lambda _, distance: 0.92**distance))
    # From the token next door to the first one of the text.
    steps = len(long.recording.streams[0].tokens) - 3
    assert fading.verdict == FAILS and fading.value == pytest.approx(0.92**-steps)
    assert (
        verdicts.evaluate_claim(claim, feeling(long, lambda _, distance: 1.02**distance)).verdict
        == HOLDS
    )
    few = verdicts.evaluate_claim(claim, material(registry.load("decoder"), "the cat saw the dog"))
    assert few.verdict == SHORT and "at least 8 tokens" in few.why


def test_random_words_lie_as_near_a_sphere_as_chance_has_it() -> None:
    e = replace(E(), embeddings=lambda: measure.gaussian(4000, 256))
    # The spread of 4,000 lengths is itself known to 1 / √8,000, a hundredth; five of these.
    assert value("vocabulary-sphere", e) == pytest.approx(1, abs=0.05)
    found = verdicts.evaluate_claim(claims.BY_ID["vocabulary-sphere"], e)
    assert found.verdict == FAILS, "as near a sphere as any random vectors is no finding"


# ---- what cannot be tested ---------------------------------------------------


def test_weights_alone_decide_nothing_about_what_they_are_made_of() -> None:
    opened = "convex variance-here soft-lookup scale-keeps-soft asymmetric head-scale reshape"
    for id in opened.split():
        finding = verdicts.evaluate_claim(claims.BY_ID[id], closed(E()))
        assert (finding.verdict, finding.why) == (UNTESTABLE, measure.NO_QKV), id
    cross = verdicts.evaluate_claim(claims.BY_ID["cross-from-encoder"], closed(T()))
    assert cross.why == measure.NO_QKV
    weights = verdicts.evaluate_claim(claims.BY_ID["rows-sum"], closed(E()))
    assert weights.verdict == HOLDS, "weights are there"


def test_additions_that_are_not_shown_are_not_said_to_hold() -> None:
    streams = tuple(
        replace(s, sites=("embed", "2.ffn.normed"), resid=s.resid[[0, -1]])
        for s in E().recording.streams
    )
    finding = verdicts.evaluate_claim(
        claims.BY_ID["adds"], replace(E(), recording=replace(E().recording, streams=streams))
    )
    assert (finding.verdict, finding.why) == (
        UNTESTABLE,
        "This model does not give the outputs of its sub-layers.",
    )


def test_a_model_without_residual_has_no_identity() -> None:
    finding = verdicts.evaluate_claim(claims.BY_ID["identity-plus"], real("induction-no-residual"))
    assert finding.verdict == UNTESTABLE and "without residual" in finding.why


def test_a_model_without_positions_is_not_tested_for_them() -> None:
    e = real("induction-no-positions")
    finding = verdicts.evaluate_claim(claims.BY_ID["order-matters"], e)
    assert (finding.verdict, finding.why) == (UNTESTABLE, "This model has no positions.")

    def elsewhere(edits: str, *more: object) -> Recording:
        if "WithoutPositions" in edits:
            raise ValueError("this edit needs another model")
        return e.again(edits, *more)

    # It adds none to its embeddings and refuses to go without: its positions are elsewhere, as in
    # T5.
    assert (
        verdicts.evaluate_claim(claims.BY_ID["order-matters"], replace(e, again=elsewhere)).verdict
        == HOLDS
    )


def test_only_whole_words_with_something_around_them_are_read_alone() -> None:
    text = "animal tired street cross because"
    claim = claims.BY_ID["context-moves"]
    found = claim.measure(material(read_once("decoder"), text))
    assert [row for row, _ in found.rows] == [
        "tired (token 2)",
        "street (token 3)",
        "cross (token 4)",
        "because (token 5)",
    ], "the first word of a decoder sees nothing before it"
    both = material(read_once("encoder"), text)
    assert len(claim.measure(both).rows) == 5, "an encoder sees what follows"
    stream = both.recording.streams[0]
    pieces = replace(
        stream, tokens=("[CLS]", "animal", "‧tired", "street", "cross", "because", "[SEP]")
    )
    found = verdicts.evaluate_claim(
        claim, replace(both, recording=replace(both.recording, streams=(pieces,)))
    )
    assert found.verdict == SHORT, (
        "neither half of a word is a word, and three words decide nothing"
    )


def test_another_table_is_not_called_the_papers() -> None:
    other = adding(E(), lambda x: np.random.default_rng(0).standard_normal(x.shape))
    left, shift = (claims.BY_ID[id].measure(other) for id in ("left-is-right", "shift-is-rotation"))
    assert (left.variant, shift.variant) == ("apart", "other")
    assert "other than the paper’s" in str(shift.slots["table"])


def test_a_number_that_does_not_exist_is_a_dash() -> None:
    assert formatting.number(float("nan")) == "–"

    def with_zeros(x: np.ndarray) -> np.ndarray:
        x[:, :2] = 0
        return x

    finding = verdicts.evaluate_claim(claims.BY_ID["low-is-fast"], adding(E(), with_zeros))
    assert finding.verdict == UNTESTABLE and "no angle" in finding.why


def test_a_reader_is_spared_what_a_programmer_is_told() -> None:
    def broken(*_: object) -> Measure:
        return Measure(min([]))

    finding = verdicts.evaluate_claim(replace(claims.CLAIMS[0], measure=broken), E())
    assert (finding.verdict, finding.why) == (
        UNTESTABLE,
        "This model or text does not offer what the test needs.",
    )
    for broken in (lambda e: int("embed"), lambda e: {}["site"], lambda e: 1 / 0):
        assert (
            verdicts.evaluate_claim(replace(claims.CLAIMS[0], measure=broken), E()).why
            == finding.why
        )

    def refuse(*_: object) -> None:
        raise ValueError("this model has no readout")

    said = verdicts.evaluate_claim(claims.BY_ID["offset-by-one"], replace(D(), logits=refuse)).why
    assert (
        said == "This model or text does not offer what the test needs: this model has no readout."
    )


# ---- verdicts ----------------------------------------------------------------


def test_the_verdict_is_the_number_against_the_tolerance() -> None:
    first = replace(claims.CLAIMS[0], why="so", parts=())

    def of(found: float, bound: str) -> str:
        claim = replace(first, bound=bound, tolerance=2.0, measure=lambda e: Measure(found))
        return verdicts.evaluate_claim(claim, real("encoder")).verdict

    assert [of(each, verdicts.AT_MOST) for each in (1.9, 2.0, 2.1, np.inf)] == [
        HOLDS,
        HOLDS,
        FAILS,
        FAILS,
    ]
    assert [of(each, verdicts.AT_LEAST) for each in (1.9, 2.0, np.inf)] == [FAILS, HOLDS, HOLDS]
    assert of(float("nan"), verdicts.AT_MOST) == UNTESTABLE
