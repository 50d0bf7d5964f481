"""Claims of whole models: any text gets a verdict, and nothing measured holds on random weights."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from app_harness import TABS
from claim_fixtures import TEXT, D, E, material, on_text, real, shuffled
from conftest import AWKWARD, SMALL, TEXTS, read_once
from test_equalities import wrong

from explorer.analysis import measure, verdicts
from explorer.analysis.measure import FEWEST, MeasureContext
from explorer.analysis.verdicts import (
    CONSTRUCTION,
    FAILS,
    HOLDS,
    MEASURED,
    RANDOM,
    SHORT,
    UNTESTABLE,
)
from explorer.app.state import url_state
from explorer.figures import formatting
from explorer.figures.kinds import Bars
from explorer.panels import claims as claims_panels
from explorer.text import claims
from models.network.own_model import OwnModel, from_network
from models.network.transformer import Decoder
from models.own.weight_shuffle import permuted
from models.readouts import gradients
from models.runtime import registry
from models.tokens.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer


def evaluated(e: MeasureContext) -> dict[str, verdicts.Verdict]:
    """The verdict on each claim; none of them misses anything in the model, and one alone in what
    is known of its training."""
    found = {claim.id: verdicts.evaluate_claim(claim, e) for claim in claims.CLAIMS}
    missed = {id for id, finding in found.items() if "does not offer" in finding.why}
    assert missed <= {"warm-up"}
    return found


# Each awkward text by one kind of model in turn.
KINDS = ("small_model", "small_decoder", "small_translator")


READ = [(KINDS[at % 3], text) for at, text in enumerate(AWKWARD)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "text"), READ)
def test_any_text_has_a_verdict_or_why(
    kind: str, text: str, request: pytest.FixtureRequest
) -> None:
    e = shuffled(request.getfixturevalue(kind), AWKWARD[text])
    # A stack of 8 layers instead of 64, half of the time of all claims, and asked once.
    resid = {stream.name: stream.resid[0] for stream in e.recording.streams}
    e = e.replaced(depth=cache(lambda stream: gradients.depth(resid[stream], layers=8)))
    for finding in evaluated(e).values():
        assert finding.verdict in verdicts.VERDICTS and finding.why and finding.value_text
        assert (finding.value is None) == (finding.verdict in (SHORT, UNTESTABLE))


# Formulas of models that are made otherwise, and of a likeliest word of several tokens.
OTHER = {"rotary", "values", "rms-norm", "pre-norm", "smooth-ffn", "gated-ffn", "whole-word"}
UNDECIDED = {
    "encoder": {*OTHER, *"mask offset-by-one cache chain cross".split()},
    "decoder": {*OTHER, *"permutation cross".split()},
    "encoder-decoder": {*OTHER, "mask"},
}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["grammar-masked", "grammar", "reverse"])
def test_every_kind_of_shipped_model(model: str) -> None:
    e = on_text(model, "Ram pushed Hari and Hari pushed Ram and Hari saw Ram")
    findings = evaluated(e)
    undecided = {id for id, f in findings.items() if f.verdict in (SHORT, UNTESTABLE)}
    # There may be too few whole words in this text, a vocabulary may be small, and weights too
    # small to be felt; a model's card may keep no learning rates.
    undecided -= {"context-moves", "readable-blocks", "warm-up"}
    assert undecided == UNDECIDED[e.recording.model.kind]


# What is true of any Transformer's arithmetic, whatever it is made like.
LAWS = {
    *("dot score softmax rows mask weighted-sum attention".split()),
    *("concatenation sum-over-heads messages added chain entropy projections".split()),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "fails"),
    [
        ({"norm": "pre", "positions": "learned", "scaled_embedding": False}, set()),
        ({"norm": None, "positions": None}, set()),
        ({"residual": False, "scaled_scores": False}, {"added", "score", "attention"}),
    ],
    ids=["pre-LN, learned positions", "no LayerNorm, no positions", "no residual, no scale"],
)
def test_models_that_are_made_otherwise(made: dict, fails: set[str]) -> None:
    torch.manual_seed(0)
    tokenizer = Tokenizer.train(TEXTS, SMALL.n_vocab, CAUSAL_LM_SPECIALS)
    model = Decoder(replace(SMALL, **made)).eval()
    loaded_model = from_network(model, tokenizer, "made otherwise", "random", "fp32")
    e = material(loaded_model, "the cat sat on the mat and the dog ran")
    findings = evaluated(e)
    assert {id for id in LAWS if findings[id].verdict != HOLDS} == fails & LAWS
    assert {id for id in fails if findings[id].verdict != FAILS} == set()


@pytest.mark.parametrize("text", ["the", "the cat sat"])
def test_too_short_a_text_says_what_it_needs(small_model: OwnModel, text: str) -> None:
    findings = evaluated(shuffled(small_model, text))
    decided = {id for id, found in findings.items() if found.verdict in (HOLDS, FAILS)}
    assert decided <= {claim.id for claim in claims.CLAIMS if claim.needs == verdicts.MODEL}
    short = {id: found for id, found in findings.items() if found.verdict == SHORT}
    assert len(short) > 40 and all("at least four tokens of text" in f.why for f in short.values())


def counting(e: MeasureContext, seen: dict[str, set]) -> MeasureContext:
    """The same, noting for each door what was asked: which edits, texts, targets or tokens."""

    def noted(door: str, which: Callable) -> Callable:
        ask = getattr(e, door)

        def asked(*what: object) -> object:
            seen.setdefault(door, set()).add(which(*what))
            return ask(*what)

        return asked

    passes = noted("rerun", lambda edits, text, target: (edits, text, target))
    tokens = {door: noted(door, lambda _, token, *site: token) for door in ("logits", "gradients")}
    return e.replaced(rerun=passes, **tokens)


# One other pass is the whole experiment here, looked at in every row: a part is taken away.
ONE_SWITCH = {("norm-tames", "rerun")}


# Two rows say by what the vocabulary's every row is multiplied; what is decided on is all rows.
TWO_ROWS_OF_ALL_WORDS = {("balance", "logits")}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["decoder", "translator"])
def test_no_claim_decides_on_fewer_than_four_of_what_it_looks_at(model: str) -> None:
    """Tokens exchanged, orders, other texts, rows of scores: whatever a claim asks a model for, it
    asks for four at least."""
    counted: dict[str, set[str]] = {}
    for claim in claims.WRITTEN:
        seen: dict[str, set] = {}
        try:
            claim.measure(counting(real(model), seen))
        except measure.Untestable:
            continue
        for door, asked in seen.items():
            counted.setdefault(door, set()).add(claim.id)
            if (claim.id, door) in ONE_SWITCH:
                assert len(asked) == 1
            elif (claim.id, door) not in TWO_ROWS_OF_ALL_WORDS:
                assert len(asked) >= FEWEST, claim.id
    assert len(counted["rerun"]) >= 2 and len(counted["logits"]) >= 3


# ---- by construction, or measured beside permuted weights --------------------


def test_permuted_weights_are_the_same_numbers_in_another_order() -> None:
    plain, other = read_once("grammar"), read_once("grammar" + registry.PERMUTED_SUFFIX)
    assert other.card.name == "grammar@permuted"
    assert other.card.fingerprint != plain.card.fingerprint
    again = registry.load("grammar@permuted")
    for (name, a), (_, b), (_, c) in zip(
        *(model.network.named_parameters() for model in (plain, other, again))
    ):
        assert torch.equal(b, c), f"{name}: the same each time"
        if a.dim() > 1:
            assert torch.equal(a.flatten().sort().values, b.flatten().sort().values), name
            assert not torch.equal(a, b), name
        else:
            assert torch.equal(a, b), name


MEASURED_CLAIMS = [claim for claim in claims.CLAIMS if claim.kind == MEASURED]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "seed"), [("encoder", 0), ("decoder", 1), ("grammar", 2), ("translator", 3)]
)
def test_nothing_that_is_measured_holds_on_random_weights(model: str, seed: int) -> None:
    """One draw of permuted weights beside another: whatever is said of what was learned must not
    hold there."""
    base, target = read_once(model), None
    own, other = (
        permuted(replace(base, network=deepcopy(base.network)), f"draw {at}", at)
        for at in (100 + seed, 200 + seed)
    )
    if base.card.kind == "encoder-decoder":
        target = tuple(map(int, real(model).recording.streams[-1].ids[1:]))
    e = material(own, TEXT, target=target, permuted=lambda ids: material(other, TEXT, target=ids))
    held = [c.id for c in MEASURED_CLAIMS if verdicts.evaluate_claim(c, e).verdict == HOLDS]
    assert not held


# Notes that are wrong: the page says of each that it holds for no shipped model.
NOWHERE = {"unit-length", "only-rotations", "vocabulary-sphere", "looks-at-itself"}


@pytest.mark.slow
def test_each_measured_claim_holds_for_some_shipped_model_and_many_fail_for_one() -> None:
    reached: dict[str, set[str]] = {claim.id: set() for claim in MEASURED_CLAIMS}
    for model in ("encoder", "decoder", "grammar", "induction"):
        for claim in MEASURED_CLAIMS:
            reached[claim.id].add(verdicts.evaluate_claim(claim, real(model)).verdict)
    assert {id for id, found in reached.items() if HOLDS not in found} <= NOWHERE
    assert sum(FAILS in found for found in reached.values()) >= 6


def test_the_bound_lies_beyond_chance_and_both_figures_are_shown() -> None:
    for claim in MEASURED_CLAIMS:
        found = verdicts.evaluate_claim(claim, D())
        if found.chance is None:
            continue
        high = claim.bound == verdicts.AT_LEAST
        assert found.bound > found.chance if high else found.bound < found.chance, claim.id
        _, bars, *_ = claims_panels.verdict_figure(claim, found).figures
        assert found.by_chance in bars.rows[1].texts
        assert bars.rows[-1].texts == (
            f"{claim.bound} {formatting.with_unit(found.bound, claim.unit)}",
        )
        assert claims.parts(found)[1][1] == found.by_chance
    alone = D().replaced(permuted=None)
    assert {verdicts.evaluate_claim(claim, alone).verdict for claim in MEASURED_CLAIMS} == {
        UNTESTABLE
    }


@pytest.mark.slow
def test_what_cannot_fail_says_so_and_is_counted_apart() -> None:
    of = {kind: [each for each in claims.CLAIMS if each.kind == kind] for kind in verdicts.KINDS}
    built, random = of[CONSTRUCTION], of[RANDOM]
    assert all(one.because and not one.times and not one.more for one in (*built, *random))
    assert {"layer-norm", "rows"} <= {claim.id for claim in built}
    assert {"near-its-words", "balance"} <= {claim.id for claim in random}
    assert {"heads-differ", "context-moves"} <= {claim.id for claim in MEASURED_CLAIMS}
    findings = evaluated(E())
    for kind, own in of.items():
        assert sum(claims.counts(findings, kind).values()) == len(own)
    groups = claims.groups(findings)
    order = [findings[own[0].id].verdict for _, _, own in groups]
    assert order == sorted(order, key=verdicts.VERDICTS.index) and order[0] == FAILS
    assert [claim.id for *_, own in groups for claim in own] == claims.table(findings)["claim"]


def test_a_claim_says_enough_and_leads_to_a_tab() -> None:
    first = claims.BY_ID["rows"]
    for bad in ({"kind": "?"}, {"because": ""}, {"kind": MEASURED}):
        with pytest.raises(ValueError):
            replace(first, **bad)
    assert {claim.note for claim in claims.CLAIMS} == set(claims.NOTES)
    for claim in claims.CLAIMS:
        page, choices = claims.place(claim)
        assert page in TABS and set(choices) <= set(url_state.names())


def test_norms_are_taken_from_a_model_trained_with_them_beside_one_without() -> None:
    text = "a b c d e f a b c d e f"
    bare = read_once("induction-no-norm").record(text)
    e = on_text("induction", text).replaced(without_norm=lambda: bare)
    slots = claims.BY_ID["norm-tames"].measure(e).slots
    length = np.linalg.norm(bare.streams[0].resid[-1].astype(float), axis=1).mean()
    assert slots["other"] == "induction-no-norm" and slots["last"] == pytest.approx(length)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "translator"])
def test_every_equality_of_a_claim_is_true_at_the_digits_printed(model: str) -> None:
    """Of all that the page says of it; and no number that is not 0 is written as 0."""
    checked = 0
    for claim in claims.CLAIMS:
        verdict = verdicts.evaluate_claim(claim, real(model))
        figure = claims_panels.verdict_figure(claim, verdict)
        bars = [each for each in getattr(figure, "figures", ()) if isinstance(each, Bars)]
        sentences = (
            *(claim.statement, verdict.why, claim.how, claims.rule(claim), claim.remark),
            claims.kind_description(claim),
            *(f"{row.label}: {row.texts[0]}" for each in bars for row in each.rows),
            *(f"{name}: {value}" for name, value in claims.parts(verdict)),
        )
        for sentence in sentences:
            bad, count = wrong(sentence)
            assert not bad, (claim.id, bad)
            assert not re.search(r"(?<![\d.])0\.0+(?![\d.])", sentence), (claim.id, sentence)
            checked += count
    assert checked
