"""What the tour, the claims and the questions say is true on any ordinary sentence: each number
that a sentence has is worked out again, and held against what the sentence says of it."""

from __future__ import annotations

import os
import re
from functools import lru_cache

import numpy as np
import pytest
from conftest import needs_smollm2, read_once, texts_of
from explorer.analysis.tour import REACH_RATIO, followed_pair
from ordinary_sentences import SENTENCES
from test_quiz import asked, check
from tolerances import PASSED, TOTAL, TWO_DECIMALS

from benchmarks import names
from explorer.analysis import findings, residual, tour, verdicts
from explorer.analysis.figures import as_plain
from explorer.analysis.formatting import matches_text, parse_number
from explorer.analysis.measure import Measure, MeasureContext
from explorer.analysis.verdicts import FAILS, HOLDS
from explorer.panels import claims as claims_panels
from explorer.text import claims, quiz
from explorer.text import tour as tour_text
from models import registry
from models.caching import loaded
from models.edits import HideToken
from models.run import Run

MODELS = ("encoder", "decoder", "translator", registry.MINILM)
pytestmark = pytest.mark.slow

# Every second sentence by one model, the models in turn. Claims take longest: they are tested on
# every third of these. `make sentences` tests all of them by all models.
EVERY = "HEADLIGHT_EVERY_SENTENCE" in os.environ
CASES = [
    (model, text)
    for at, text in enumerate(SENTENCES if EVERY else SENTENCES[::2])
    for model in (MODELS if EVERY else (MODELS[at % len(MODELS)],))
]
CLAIMED = CASES[:: 1 if EVERY else 3]
# On these two the tour of an earlier version said the opposite of its titles.
OPPOSED = (
    ("decoder", "Ram pushed Hari because he was angry."),
    ("encoder", "The cat sat on the mat."),
)
CASES += [case for case in OPPOSED if case not in CASES]


@lru_cache(maxsize=2)
def seen(model: str, text: str) -> MeasureContext:
    return MeasureContext.of(Run(model, text))


# Of SmolLM2 the claims take minutes a sentence, and are not asked here.
OF_SMOLLM2 = [
    pytest.param(registry.SMOLLM2, text, marks=needs_smollm2)
    for text in (SENTENCES if EVERY else ("The cat sat on the mat.",))
]


@pytest.mark.parametrize(("model", "text"), CASES + OF_SMOLLM2)
def test_tour_claims_and_questions_say_what_their_numbers_say(model: str, text: str) -> None:
    of = seen(model, text)
    tour_is_true(of)
    if (model, text) in CLAIMED:
        claims_are_true(of, model, fully=CLAIMED.index((model, text)) < len(MODELS))
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


# ---- the tour ----------------------------------------------------------------


def tour_is_true(of: MeasureContext) -> None:
    """Every step says what its numbers say."""
    way = tour_text.way(of.recording.model.kind)
    possible = tour.available_steps(of, [step.id for step in way])
    assert len(possible) >= len(way) - 2, "what a model lacks, and nothing else, is left out"
    for step in way:
        if step.id not in possible:
            assert tour.missing_reason(of, step.id)
            continue
        shown = step.measure(of)
        told = tour_text.sentence(step, shown)
        sentence = "".join(told)
        assert "{" not in sentence and len(sentence) <= 230, sentence
        assert all(len(each.split()) <= 25 for each in re.split(r"(?<=[.:;]) ", sentence)), sentence
        drawn = texts_of([as_plain(each, {}) for each in shown.figures])
        assert any(told[1] in each.split(" ") or told[1] == each for each in drawn), step.id
        if step.id not in ("chain", "words"):  # a logarithm, and a share that is never 100%
            assert matches_text(figure(shown.text), _value(shown)), (step.id, told[1])
        TRUE[step.id](of, shown, {name: str(word) for name, word in shown.slots.items()})


def _value(shown: Measure) -> float:
    return shown.value if shown.value >= 5e-4 or "%" not in shown.text else 0.0


def before(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    assert 0 < number(shown.text) < 1, "a gradient fades"
    network, attention = shown.figures[1].rows
    assert network.values == (int(slots["n"]) - 1,) and attention.values == (1,)
    assert len(shown.figures[0].series) == 1, "a gradient is compared with no weight"


def embed(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    stream = of.recording.streams[0]
    assert (shown.variant in ("", "unscaled")) == ("pos.wrote" in stream.sites)
    assert (number(slots["position"]) > 0) == ("pos.wrote" in stream.sites)


def waves(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    n = len(of.recording.streams[0].tokens)
    assert slots["n"] == str(n) and shown.value == pytest.approx((n - 1) / 2 / np.pi)
    slowest = slots["slowest"].removeprefix("less than ")
    assert number(slowest) <= 0.01 < number(shown.text)


def order(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    assert number(slots["most"]) == 0 and number(shown.text) >= 0.05
    assert bool(slots["mask"]) == (of.recording.streams[0].name == "decoder")


def weight(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    one = followed_pair(of)
    row = one.attention.pattern[one.layer, one.head, one.query]
    assert slots["query"] == one.rows.tokens[one.query]
    assert slots["key"] == one.keys.tokens[one.key]
    assert shown.value == row[one.key] and not one.keys.special[one.key]
    if "apart" in slots and one.attention.query == one.attention.key:
        assert slots["apart"].split()[0] == str(abs(one.query - one.key)) != "0"


def scale(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    assert number(slots["raw"]) >= number(slots["scaled"]), "sharper without the division"


def match(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    assert (slots["there"] == slots["back"]) == (shown.variant == "alike")
    assert 0 < shown.value <= 1


def kinds(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    last = of.recording.streams[-1]
    n = int(slots["n"])
    assert n == len(last.tokens), "of the mask that is shown"
    assert int(slots["cells"]) == n * (n - 1) // 2
    masked = [each.allowed[0] for each in of.recording.attention if each.key == "decoder"]
    assert all(int((~one.astype(bool)).sum()) == int(slots["cells"]) for one in masked)
    expected = {"encoder": "", "decoder": "decoder", "encoder-decoder": "both"}
    assert shown.variant == expected[of.recording.model.kind] and 0 < shown.value < 1


def heads(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    far, near = shown.value, number(slots["shortest"])
    assert far >= near - 0.05  # half of the one decimal that is written
    # The same, times APART.
    assert (far < REACH_RATIO * near + 0.08) if shown.variant else (far > REACH_RATIO * near - 0.08)
    (bars,) = shown.figures
    labels = [row.label for row in bars.rows]
    assert {f"head {slots['best']}", f"head {slots['near']}"} <= set(labels), "both are shown"


def stages(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    assert number(shown.text) > 0 and slots["else"] == "0%" and slots["word"]


def ffn(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    stream, layer = of.recording.streams[-1], int(slots["layer"])
    token = int(dict(shown.address)["token"])
    inside = of.ffn(stream.name, layer, token)
    assert number(shown.text) == (inside.before > 0).sum() <= int(slots["units"])
    assert (shown.variant == "") == (not inside.writes[inside.before <= 0].any())
    rest = stream.at(f"{layer}.ffn.wrote")[token] - inside.writes.sum(axis=0)
    assert ("bias" in slots["sum"]) == bool(np.abs(rest).max() > 1e-3)


def deep(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    assert number(shown.text) < 0.1, "without residual connections it is lost"
    assert 0.1 < number(slots["kept"]) < 10, "with them it is kept"
    spoken = [one for one in shown.figures[0].series if one.main]
    assert [one.end for one in spoken] == [shown.text], "in the colour of the text's number"


def sphere(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    stream = of.recording.streams[-1]
    token = int(dict(shown.address)["token"])
    own = [each for each in residual.sublayers(stream) if each.layer >= 0]
    turned, ends = [], []
    for each in own:
        a, b = (stream.at(site)[token].astype(float) for site in (each.before, each.after))
        turned.append(np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))))
        ends.append(np.linalg.norm(b))
    best = own[int(np.argmax(turned))]
    assert shown.value == pytest.approx(max(turned), abs=TOTAL), "of all sub-layers"
    assert slots["where"].endswith(f"of layer {best.layer}")
    assert (shown.variant == "") == best.after.endswith(".normed"), "a norm after each sum"
    assert matches_text(slots["short"], min(ends)) and matches_text(slots["long"], max(ends))
    assert number(slots["long"]) > number(slots["short"]), "it is no rotation alone"
    (dials,) = shown.figures
    cut = f"{len(dials.dials)} of {len(own)} rotations"
    assert (cut in dials.note) == (len(dials.dials) < len(own))
    assert len(dials.dials) == len(own) or len(own) > 9, "all nine of a translator are shown"
    assert [one.text for one in dials.dials if one.selected] == [shown.text]


def words(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    recording, token = of.recording, int(dict(shown.address)["token"])
    handle = read_once(recording.model.name)
    stream = recording.streams[-1]
    if recording.model.kind == "encoder":
        assert shown.variant == "masked" and slots["word"] == stream.tokens[token]
        recording = handle.record(recording.text, (HideToken(token),))
        assert recording.streams[-1].tokens[token] == slots["mask"] != slots["word"]
    scores = handle.logits(recording, stream.name, token).astype(np.float64)
    shares = np.exp(scores - scores.max())
    best = int(shares.argmax())
    assert shown.value == pytest.approx(shares[best] / shares.sum(), abs=PASSED)
    assert number(shown.text) == pytest.approx(shown.value, abs=TWO_DECIMALS)
    assert list(loaded(recording.model.name).labels([best])) == [slots["piece"] or slots["answer"]]
    assert (shown.variant == "piece") == bool(slots["piece"])


def chain(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    stream, handle = of.recording.streams[-1], read_once(of.recording.model.name)
    total = 0.0
    for at, id in enumerate(stream.ids[1:]):
        scores = handle.logits(of.recording, stream.name, at).astype(np.float64)
        total += scores[id] - scores.max() - np.log(np.exp(scores - scores.max()).sum())
    assert slots["n"] == str(len(stream.ids) - 1) and shown.value == pytest.approx(total, abs=TOTAL)
    # Two figures of a power of ten.
    assert np.log10(number(shown.text)) == pytest.approx(total / np.log(10), abs=0.03)
    assert (slots["first"], slots["second"]) == stream.tokens[:2]


def loops(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    own = next(one for one in of.recording.attention if one.query == one.key == "decoder")
    distinct = len(np.unique(own.k[0], axis=0))  # heads that share keys store them once
    assert shown.value == 2 * distinct * own.k[:, 0].size
    n = int(slots["n"])
    assert number(slots["without"]) == n * (n + 1) / 2 > n == own.k.shape[2]


def since(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    by_name = {row.label: row.values[0] for row in shown.figures[0].rows}
    assert shown.value == by_name[slots["most"]] == max(by_name.values())
    assert by_name[slots["least"]] == min(by_name.values()) and shown.variant == ""
    assert "after training" in shown.figures[0].title, "harm to a trained model is no progress"


def pizza(of: MeasureContext, shown: Measure, slots: dict[str, str]) -> None:
    measured = shown.figures[0]
    own = [measured.values[at][at] for at in range(5)]
    assert shown.value == pytest.approx(np.mean(own))
    assert measured.rows[int(np.argmax(own))] == slots["most"]


ONE_A_STEP = (before, embed, waves, order, scale, match, kinds, heads, stages, ffn, deep, sphere)
ONE_A_STEP += (words, chain, loops, since, pizza)
TRUE = {each.__name__: each for each in ONE_A_STEP} | {"qkv": weight, "lookup": weight}


def test_a_step_without_anything_to_show_is_left_out() -> None:
    few = seen("encoder", "Ram pushed Hari")
    ids = [step.id for step in tour_text.way("encoder")]
    assert "before" in tour.available_steps(few, ids), "three words are enough for the first step"
    one = tour.available_steps(seen("encoder", "Hari"), ids)
    assert not {"before", "order", "lookup"} & set(one) and {"embed", "deep"} <= set(one)
    assert set(tour.available_steps(seen("encoder", ""), ids)) == {"pizza"}
    assert "words" not in tour.available_steps(seen(registry.MINILM, SENTENCES[0]), ids)


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
