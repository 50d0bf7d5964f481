"""Claims: what decides nothing is not said to decide, and a verdict is the number against its
bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from claim_fixtures import D, E, T, attending, feeling, flowing, material, real
from conftest import read_once
from tolerances import TOTAL

from explorer.analysis import measure, verdicts
from explorer.analysis.measure import Measure, MeasureContext
from explorer.analysis.verdicts import FAILS, HOLDS, SHORT, UNTESTABLE
from explorer.figures import formatting
from explorer.text import claims
from models.contract.recording import Attention, Stream


def closed(e: MeasureContext) -> MeasureContext:
    """The same from a model that hands out its weights alone."""
    attention = tuple(
        Attention.closed(a.name, a.query, a.key, a.pattern, a.allowed[0])
        for a in e.recording.attention
    )
    return e.replaced(recording=replace(e.recording, attention=attention))


def turning(degrees: float) -> Callable:
    """Vectors that every sub-layer turns by one angle."""

    def change(stream: Stream, site: str, x: np.ndarray) -> np.ndarray:
        passed = stream.sites[: stream.sites.index(site) + 1]
        angle = np.radians(degrees) * sum(each.endswith(".wrote") for each in passed)
        x[:] = 0
        x[:, :2] = np.cos(angle), np.sin(angle)
        return x

    return change


def undecided(id: str, e: MeasureContext) -> verdicts.Verdict:
    return verdicts.evaluate_claim(claims.BY_ID[id], e)


def test_a_head_that_looks_at_itself_alone_makes_no_endless_number() -> None:
    def still(a: Attention) -> dict:
        pattern = a.pattern.copy()
        pattern[0, 0] = np.eye(a.pattern.shape[-1])
        return {"pattern": pattern}

    finding = undecided("near-and-far", attending(E(), still))
    assert (finding.verdict, finding.value, finding.value_text) == (HOLDS, 1000, "over 1,000×")
    assert formatting.number(float("nan")) == "–"


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


@pytest.mark.parametrize(
    ("degrees", "verdict"), [(30, HOLDS), (45, HOLDS), (53, FAILS), (61, FAILS), (90, FAILS)]
)
def test_a_modest_turn_is_smaller_than_permuted_weights_make(degrees: float, verdict: str) -> None:
    finding = verdicts.evaluate_claim(claims.BY_ID["little-work"], flowing(E(), turning(degrees)))
    assert finding.verdict == verdict and finding.value == pytest.approx(degrees, abs=TOTAL)
    assert "our choice" in claims.BY_ID["little-work"].remark


def test_far_words_are_held_to_the_whole_text() -> None:
    long = material(read_once("decoder"), "the cat saw the dog and the dog saw the cat " * 5)
    fading = undecided("far-words-count", feeling(long, lambda _, distance: 0.92**distance))
    # From the token next door to the first one of the text.
    steps = len(long.recording.streams[0].tokens) - 3
    assert fading.verdict == FAILS and fading.value == pytest.approx(0.92**-steps)
    growing = undecided("far-words-count", feeling(long, lambda _, distance: 1.02**distance))
    assert growing.verdict == HOLDS


def refusing(*_: object) -> None:
    raise ValueError("this model has no readout")


def without_updates(e: MeasureContext) -> MeasureContext:
    """The same from a model that does not show what its sub-layers wrote."""
    streams = tuple(
        replace(s, sites=("embed", "2.ffn.normed"), resid=s.resid[[0, -1]])
        for s in e.recording.streams
    )
    return e.replaced(recording=replace(e.recording, streams=streams))


def with_zeros(x: np.ndarray) -> np.ndarray:
    x[:, :2] = 0
    return x


def decoder(text: str) -> MeasureContext:
    return material(read_once("decoder"), text)


OPENED = "weighted-sum variance-here soft-lookup scale-keeps-soft scorings score attention"


# A claim, evidence on which it is not decided, the verdict, and what is said.
UNDECIDED: list[tuple[str, Callable[[], MeasureContext], str, str]] = [
    *((id, lambda: closed(E()), UNTESTABLE, measure.NO_QKV) for id in OPENED.split()),
    ("cross", lambda: closed(T()), UNTESTABLE, measure.NO_QKV),
    ("added", lambda: without_updates(E()), UNTESTABLE, "not give the outputs of its sub-layers"),
    ("jacobian", lambda: real("induction-no-residual"), UNTESTABLE, "no residual"),
    ("concatenation", lambda: E().replaced(outputs=refusing), UNTESTABLE, "model has no readout."),
    ("offset-by-one", lambda: D().replaced(logits=refusing), UNTESTABLE, "model has no readout."),
    ("offset-by-one", lambda: decoder("the the the the the"), SHORT, "four rows"),
    ("far-words-count", lambda: decoder("the cat saw the dog"), SHORT, "at least 8 tokens"),
]


@pytest.mark.parametrize(("id", "of", "verdict", "why"), UNDECIDED)
def test_why_nothing_is_decided(
    id: str, of: Callable[[], MeasureContext], verdict: str, why: str
) -> None:
    finding = undecided(id, of())
    assert finding.verdict == verdict and why in finding.why


@pytest.mark.slow
def test_less_than_a_claim_wants_is_enough_where_another_part_tells_it() -> None:
    assert undecided("rows", closed(E())).verdict == HOLDS, "weights are there"
    for claim in claims.CLAIMS:
        assert verdicts.evaluate_claim(claim, without_updates(E())).why
        assert verdicts.evaluate_claim(claim, material(read_once("encoder"), "")).value is None


# ---- what cannot be tested ---------------------------------------------------


def test_only_whole_words_with_something_around_them_are_read_alone() -> None:
    text = "animal tired street cross because"
    claim = claims.BY_ID["context-moves"]
    found = claim.measure(decoder(text))
    expected = [f"{word} (token {at})" for at, word in enumerate(text.split(), 1)]
    assert [row for row, _ in found.rows] == expected[1:], "the first word sees nothing before it"
    both = material(read_once("encoder"), text)
    assert len(claim.measure(both).rows) == 5, "an encoder sees what follows"
    tokens = ("[CLS]", "animal", "‧tired", "street", "cross", "because", "[SEP]")
    pieces = replace(both.recording.streams[0], tokens=tokens)
    split = replace(both, recording=replace(both.recording, streams=(pieces,)))
    assert undecided("context-moves", split).verdict == SHORT, "halves of a word are no words"


def test_random_words_are_no_sphere() -> None:
    random = E().replaced(embeddings=lambda: measure.gaussian(4000, 256))
    found = undecided("vocabulary-sphere", random)
    # The spread of 4,000 lengths is itself known to 1 / √8,000, a hundredth; five of these.
    assert found.verdict == FAILS and found.value == pytest.approx(1, abs=0.05)


def test_a_reader_is_spared_what_a_programmer_is_told() -> None:
    for broken in (lambda e: min([]), lambda e: int("x"), lambda e: {}["site"], lambda e: 1 / 0):
        finding = verdicts.evaluate_claim(replace(claims.BY_ID["rows"], measure=broken), E())
        assert finding.verdict == UNTESTABLE
        assert finding.why == "This model or text does not offer what the test needs."


# ---- verdicts ----------------------------------------------------------------


def test_the_verdict_is_the_number_against_the_tolerance() -> None:
    first = replace(claims.BY_ID["rows"], why="so", parts=(), tolerance=2.0)

    def of(found: float, bound: str) -> str:
        claim = replace(first, bound=bound, measure=lambda e: Measure(found))
        return verdicts.evaluate_claim(claim, E()).verdict

    most = [of(each, verdicts.AT_MOST) for each in (2.0, 2.1, np.inf, np.nan)]
    assert most == [HOLDS, FAILS, FAILS, UNTESTABLE]
    assert [of(each, verdicts.AT_LEAST) for each in (1.9, 2.0, np.inf)] == [FAILS, HOLDS, HOLDS]
