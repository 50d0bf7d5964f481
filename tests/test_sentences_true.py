"""What lessons, panels, claims and questions say is true on any ordinary sentence: each number
that a sentence has is worked out again, and held against what the sentence says of it."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from conftest import EVERY, in_turn, needs_smollm2, read_once
from ordinary_sentences import SENTENCES
from test_quiz import asked, check

from benchmarks import names
from explorer.analysis import findings, verdicts
from explorer.analysis.measure import MeasureContext
from explorer.analysis.verdicts import FAILS, HOLDS
from explorer.figures.formatting import fixed, parse_number
from explorer.figures.kinds import share
from explorer.panels import claims as claims_panels
from explorer.panels import stages, textbook
from explorer.panels.generation import loops
from explorer.panels.spec import Panel
from explorer.text import claims, quiz
from models.runtime import registry
from models.runtime.run import Run

MODELS = ("encoder", "decoder", "translator", registry.MINILM)
pytestmark = [pytest.mark.slow, pytest.mark.in_turn]

CASES = [*in_turn([*product(MODELS, SENTENCES)], 32, "sentences")]
# One sentence a model. Claims and questions take longest, and are tested on these.
FULLY = [*{model: (model, text) for model, text in CASES}.values()]
CLAIMED = CASES if EVERY else FULLY
# On these two an earlier version said the opposite of its titles.
OPPOSED = (
    ("decoder", "Ram pushed Hari because he was angry."),
    ("encoder", "The cat sat on the mat."),
)
CASES += [case for case in OPPOSED if case not in CASES]


@lru_cache(maxsize=2)
def seen(model: str, text: str) -> MeasureContext:
    return MeasureContext.of(Run(model, text))


# Of SmolLM2 claims and questions take long, and are not asked here.
OF_SMOLLM2 = [
    pytest.param(registry.SMOLLM2, text, marks=needs_smollm2)
    for text in in_turn(SENTENCES, len(SENTENCES), "smollm2")
]


@pytest.mark.parametrize(("model", "text"), CASES + OF_SMOLLM2)
def test_panels_claims_and_questions_say_what_their_numbers_say(model: str, text: str) -> None:
    of = seen(model, text)
    panels_are_true(of, Run(model, text))
    if (model, text) in CLAIMED:
        claims_are_true(of, model, fully=(model, text) in FULLY)
        questions_are_true(model, text)
    assert names.broken(of.recording, findings.findings(of.recording)) == ""


FIGURE = re.compile(r"[−\d,.]+(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?%?")


def figure(written: str) -> str:
    """The number at the beginning of a text: of "1.4 turns", "52°", "10⁻⁴"."""
    found = FIGURE.match(f"1 × {written}" if written.startswith("10⁻") else written)
    assert found, written
    return found[0].rstrip(".")


def number(written: str) -> float:
    return parse_number(figure(written))


# ---- panels on what each part of a model does --------------------------------------


def panels_are_true(of: MeasureContext, run: Run) -> None:
    """What the panels on stages, on own weight and on loops say, where they have something."""
    for panel, holds in ((stages.exchanged, mixes), (textbook.own_weight, own), (loops, stored)):
        try:
            shown = panel(run)
        except ValueError as why:
            assert str(why).endswith("."), "a sentence says why"
            continue
        holds(of, shown)


def mixes(of: MeasureContext, shown: Panel) -> None:
    """Attention brings a word to others, and the FFN does not."""
    stream, (bars,) = of.recording.streams[0], shown.figures
    attention, ffn = (np.array(shown.table[name]) for name in bars.columns)
    place = int(ffn.argmax())
    others = (np.arange(len(ffn)) != place) & ~stream.special
    assert not ffn[np.arange(len(ffn)) != place].round(6).any(), "the FFN reads no other word"
    assert f"“{stream.tokens[place]}” is replaced" in shown.finding
    assert "elsewhere by 0%" in shown.finding
    if found := re.search(r"by ([\d.,]+%) at “(.+?)”\.", shown.finding):
        assert found[1] == share(attention[others].max())
        assert found[2] == stream.tokens[int(np.where(others, attention, -1).argmax())]
    else:
        assert attention[others].max() < 5e-4, "nothing is seen"


def own(of: MeasureContext, shown: Panel) -> None:
    """The mean weight of a word on itself, and the word with the largest."""
    read = read_once(of.recording.model.name).record(textbook.SENTENCE)
    tokens = [each.strip().lower() for each in read.streams[0].tokens]
    at = [tokens.index(word) for word in ("i", "love", "to", "eat", "pizza")]
    weights = read.attention[0].pattern.astype(np.float64).mean(axis=(0, 1))[at, at]
    assert f"on itself is {fixed(float(weights.mean()), 2)}" in shown.finding
    word = shown.table["word"][int(weights.argmax())]
    assert f"largest for “{word}”" in shown.finding


def stored(of: MeasureContext, shown: Panel) -> None:
    """Keys and values of all layers are stored, heads that share keys once."""
    attention = next(one for one in of.recording.attention if one.query == one.key == "decoder")
    distinct = len(np.unique(attention.k[0], axis=0))
    n = attention.k.shape[2]
    sizes = dict(zip(shown.table["quantity"], shown.table["value"]))
    assert sizes["stored"] == 2 * distinct * attention.k[:, 0].size
    assert (sizes["read"], sizes["read without the cache"]) == (n, n * (n + 1) // 2)
    assert all(f"{sizes[name]:,}" in shown.finding for name in ("stored", "read without the cache"))


# ---- claims ------------------------------------------------------------------

# What takes longest and does not hang on the text, on one sentence a model.
SELDOM = {"jacobian", "chain", "variance", "vocabulary-sphere"}


def claims_are_true(of: MeasureContext, model: str, fully: bool) -> None:
    """A formula holds, and numbers agree."""
    for claim in claims.CLAIMS:
        if claim.id in SELDOM and not fully:
            continue
        found = verdicts.evaluate_claim(claim, of)
        if found.value is None:
            continue
        if claim.kind == verdicts.CONSTRUCTION:
            assert found.verdict == HOLDS, (claim.id, found.value_text, found.why)
        facts, bars, *_ = claims_panels.verdict_figure(claim, found).figures
        assert (found.value_text, claim.noun) in facts.facts and claim.noun
        limit = bars.rows[-1].texts[0]
        assert (found.verdict == HOLDS) == _reached(claim, found, claim.rule, limit), claim.id


def _reached(claim: verdicts.Claim, found: verdicts.Verdict, rule: str, beside: str) -> bool:
    """Whether a number keeps every bound that stands under it."""
    bounds = re.findall(r"at (?:most|least) ([^,]+)", f"{rule}, {beside}")
    assert len(bounds) == 2
    high, value = claim.bound == verdicts.AT_LEAST, found.value
    written = [number(each) for each in bounds]
    # At the digits that are written: half of the third.
    near = [abs(value - bound) <= 5e-3 * abs(bound) for bound in written]
    kept = [value >= bound if high else value <= bound for bound in written]
    if any(near):
        return value >= found.bound if high else value <= found.bound
    return all(kept)


@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_what_is_true_of_random_weights_is(model: str) -> None:
    for text in SENTENCES[::30]:
        of = seen(model, text)
        assert of.permuted is not None
        random = of.permuted()
        for claim in claims.CLAIMS:
            if claim.kind == verdicts.RANDOM:
                found = verdicts.evaluate_claim(claim, random)
                assert found.verdict != FAILS, (claim.id, text, found.value_text)


# ---- questions ---------------------------------------------------------------


def questions_are_true(model: str, text: str) -> None:
    """A question has the answer that its words ask for."""
    recording, made, likeliest = asked(model, text)
    for one in made:
        check(one, recording, likeliest)
        assert quiz.ask(one).endswith("?") and quiz.says(one).endswith(".")
