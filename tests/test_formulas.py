"""Formulas: both sides of each agree on every shipped model, every symbol is explained, and the
numbers that a browser shows in them make what the recording has."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from math import exp, log
from pathlib import Path
from typing import Any

import driver
import numpy as np
import pytest
from claim_fixtures import TEXT, flowing, material, on_text
from conftest import in_turn, needs_smollm2, read_once
from test_equalities import computed, number
from tolerances import PASSED

from explorer.analysis import verdicts
from explorer.analysis.formulas import RecordedPlace, checked
from explorer.analysis.measure import MeasureContext, Untestable, gaussian
from explorer.analysis.verdicts import FAILS, HOLDS
from explorer.figures.formatting import Written, matches_figures, matches_text, parse_number
from explorer.figures.kinds import BarRow, Bars
from explorer.panels import anatomy, spec
from explorer.text import claims, formulas
from explorer.text.formulas import FORMULAS, RESULT_DIGITS, Node, filled, html, typeset
from models import model_names
from models.contract.recording import Attention
from models.runtime.run import Run

# The formulas of the notes: what a student copies from the wall.
NOTES = (
    "attention matrices projections score variance softmax mask weighted-sum concatenation width "
    "cache embedding sinusoids position-products shift added jacobian jacobian-product layer-norm "
    "batch-norm add-norm ffn scorings sum-over-heads cross messages entropy chain readout "
    "recurrence"
)
# Models that were trained without a part: their formula has it.
WITHOUT = {"no-residual": {"added", "add-norm"}, "no-scale": {"score", "attention", "matrices"}}
MOST_FIGURES = 8  # of a number in a line of numbers
ONCE = {"variance", "jacobian", "jacobian-product"}  # take long, and depend little on the text
TEXTS = (TEXT, "the cat sat on the mat and the dog ran to the cat", "I love to eat pizza.")


def evidence(context: MeasureContext, id: str) -> Any:
    """The evidence of a formula at a place in the middle; None where it is not about the model."""
    model, tokens = context.recording.model, len(context.recording.streams[0].tokens)
    try:
        place = RecordedPlace(context, model.n_layer - 1, model.n_head - 1, tokens // 2)
        return FORMULAS[id].evidence(place)
    except Untestable:
        return None


# ---- both sides ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("model", model_names.names())
def test_both_sides_agree_on_every_shipped_model(model: str) -> None:
    """On one of the texts in turn."""
    fails = next((ids for part, ids in WITHOUT.items() if model.endswith(part)), set())
    for text in in_turn(TEXTS, len(TEXTS), model):
        context = on_text(model, text)
        for id, formula in FORMULAS.items():
            made = None if id in ONCE and text != TEXT else evidence(context, id)
            if made is None:
                continue
            check = checked(made)
            agrees = check.error <= formula.tolerance * max(1.0, check.largest)
            assert agrees == (id not in fails), (text, id, check)
            written = formula.filled(made.numbers)
            assert id in fails or len(written) == len(formula.numbers), (text, id)


def changed(**arrays: Any) -> MeasureContext:
    """The encoder's recording with other arrays in its attention."""
    context = on_text("encoder", TEXT)
    attention = replace(context.recording.attention[0], **arrays)
    return context.replaced(recording=replace(context.recording, attention=(attention,)))


def test_a_formula_fails_where_its_sides_differ() -> None:
    context = on_text("encoder", TEXT)
    attention = context.recording.attention[0]
    uneven = attention.pattern * np.float32(1 + 6e-5)
    cases = {
        "rows": changed(pattern=uneven),
        "softmax": changed(pattern=attention.pattern[:, ::-1]),
        "attention": changed(q=attention.q[:, ::-1]),
        "concatenation": changed(v=2 * np.asarray(attention.v)),
        "projections": changed(k=np.asarray(attention.k)[:, ::-1]),
        "embedding": context.replaced(embeddings=lambda ids: 2 * context.embeddings(ids)),
        "sum-over-heads": context,
        "layer-norm": flowing(context, lambda _, site, x: x + site.endswith(".normed")),
        "added": flowing(context, lambda _, site, x: x * (1 + site.endswith(".wrote"))),
        "ffn": flowing(context, lambda _, site, x: x + site.endswith("ffn.wrote")),
        "variance": context.replaced(draw=lambda n, d: np.repeat(gaussian(n, 1), d, axis=1)),
        "chain": on_text("decoder", TEXT).replaced(
            stepwise=lambda n: [each + 1 for each in on_text("decoder", TEXT).stepwise(n)]
        ),
    }
    for id, off in cases.items():
        verdict = verdicts.evaluate_claim(claims.BY_ID[id], off).verdict
        assert verdict == (HOLDS if off is context else FAILS), id


@needs_smollm2
def test_rotary_positions_rotate_each_pair_of_a_query_by_its_position() -> None:
    """Against complex numbers: a pair is one, and a position multiplies it by e^{i θ}."""
    context = on_text("smollm2", TEXTS[1])
    of = context.recording.attention[0]
    layer, head, token, pair = 4, 2, 7, 3
    place = RecordedPlace(context, layer, head, token, pair=pair)
    made = FORMULAS["rotary"].evidence(place)
    numbers, half = made.numbers, of.q.shape[-1] // 2
    before = complex(numbers["first"], numbers["second"])
    after = before * np.exp(1j * numbers["i"] * numbers["angle"])
    recorded = complex(*of.q[layer, head, token, [pair, pair + half]])
    assert recorded == pytest.approx(after, abs=PASSED)
    assert numbers["angle"] == pytest.approx(100000.0 ** (-pair / half), rel=PASSED)
    lines = [re.sub("<[^>]*>", "", html(each)) for each in FORMULAS["rotary"].filled(numbers)]
    assert len(lines) == 2 and f"=cos({token}·" in lines[0]
    off = context.replaced(recording=replace(context.recording, attention=(swapped(of),)))
    assert checked(FORMULAS["rotary"].evidence(replace(place, context=off))).error > 0.1
    panel = anatomy.weight(Run("smollm2", TEXTS[1]), layer, head, token)
    assert "rotary" in [each["id"] for each in panel.typeset()]
    other = anatomy.weight(Run("encoder", TEXTS[1]), 1, 2, token)
    assert "rotary" not in [each["id"] for each in other.typeset()]


def swapped(attention: Attention) -> Attention:
    """The same with the queries of other tokens."""
    return replace(attention, q=attention.q[:, :, ::-1])


def test_all_formulas_of_the_notes_are_there_and_each_is_about_some_model() -> None:
    assert set(NOTES.split()) <= set(FORMULAS) and len(NOTES.split()) == 30
    contexts = [on_text(model, TEXT) for model in ("encoder", "decoder", "translator", "smollm2")]
    contexts.append(material(read_once("minilm"), TEXT))
    for id in set(FORMULAS) - {"whole-word"}:
        assert any(evidence(each, id) for each in contexts), id


NEPAL = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)


def shown(made: Any, id: str) -> list[str]:
    """The lines of a formula with its numbers, as they are read."""
    return [re.sub("<[^>]*>", "", html(each)) for each in FORMULAS[id].filled(made.numbers)]


def test_a_probability_has_the_name_of_its_word_but_where_that_is_asked_for() -> None:
    context = on_text("decoder", NEPAL)
    last = len(context.recording.streams[0].tokens) - 1
    at = RecordedPlace(context, token=last)
    made = FORMULAS["whole-word"].evidence(at)
    check = checked(made)
    assert check.error <= FORMULAS["whole-word"].tolerance
    assert shown(made, "whole-word")[0].startswith("pNepali=pN")
    assert compare(as_read(FORMULAS["whole-word"].filled(made.numbers)[0]), dict(made.numbers))
    covered = context.replaced(recording=context.recording.covering(last + 1))
    for id in ("readout", "sampled"):
        assert shown(FORMULAS[id].evidence(at), id)[0].startswith("pN=")
        hidden = shown(FORMULAS[id].evidence(replace(at, context=covered)), id)
        assert hidden[0].startswith("p=e"), "the answer that is asked for has no name"
    with pytest.raises(Untestable):
        FORMULAS["whole-word"].evidence(replace(at, context=covered))


def test_a_full_stop_is_seen_where_it_is_an_index() -> None:
    context = on_text("encoder", "I love to eat pizza.")
    tokens = context.recording.streams[0].tokens
    pattern = context.recording.attention[0].pattern
    stop = tokens.index(".")
    at = np.unravel_index(pattern[..., stop].argmax(), pattern.shape[:3])
    made = FORMULAS["rows"].evidence(RecordedPlace(context, *map(int, at)))
    assert "a“.”" in shown(made, "rows")[0]


def test_q_times_k_score_and_weight_are_told_in_few_figures() -> None:
    for model in ("encoder", "decoder"):
        context = on_text(model, NEPAL)
        pattern = context.recording.attention[0].pattern
        rng = np.random.default_rng(1)
        for place in rng.integers(pattern.shape[:3], size=(100, 3)):
            at = RecordedPlace(context, *map(int, place))
            for id in ("dot", "score", "attention"):
                made = FORMULAS[id].filled(FORMULAS[id].evidence(at).numbers)
                assert made and all(figures(line) <= MOST_FIGURES for line in made)


# ---- typesetting ---------------------------------------------------------------------------------


def test_a_line_becomes_mathml_and_names_its_symbols() -> None:
    line = typeset("a_ij = e^{s} / √{d_k}", {"a_ij": "a <weight>", "d_k": "width"})
    assert html(line) == (
        '<math display="block"><mrow>'
        '<msub data-symbol="a_ij" title="a &lt;weight&gt;"><mi>a</mi>'
        "<mrow><mi>i</mi><mi>j</mi></mrow></msub><mo>=</mo>"
        "<mfrac><msup><mi>e</mi><mrow><mi>s</mi></mrow></msup>"
        '<msqrt><mrow><msub data-symbol="d_k" title="width"><mi>d</mi><mi>k</mi></msub></mrow>'
        "</msqrt></mfrac></mrow></math>"
    )
    assert dict(formulas.symbols_in(line)) == {
        "a_ij": "a <weight>",
        "e": "",
        "s": "",
        "d_k": "width",
    }
    with pytest.raises(ValueError, match="lacks"):
        typeset("(a", {})
    with pytest.raises(ValueError, match="a has no definition"):
        replace(FORMULAS["softmax"], symbols={"e": "Euler’s number", "s_ij": "score"})


def test_numbers_are_written_with_the_figures_that_make_the_line_true() -> None:
    numbers = {"dot": 30.4961, "d": 32, "s": 30.4961 / 32**0.5, "terms": [(0.5, -2.0), (-0.25,)]}
    line = filled("$dot / √$d = $s", numbers)
    assert line and re.sub("<[^>]*>", " ", html(line)).split() == ["30.5", "32", "=", "5.39"]
    total = filled("$terms = $s", numbers | {"s": -1.25})
    assert total and re.sub("<[^>]*>", "", html(total)) == "0.5·(−2)−0.25=−1.25"
    assert filled("$terms = $s", numbers) is None, "it is not true"
    small = filled("$y = 1 + $f", {"y": 1.00125, "f": 0.00125})
    assert small and re.sub("<[^>]*>", "", html(small)) == "1.001=1+0.00125", "the sum is seen"
    powers = [(2.48e7,), (8932.0,)]
    line = filled(
        "$p = e^$logit / {$powers}", {"logit": log(2.48e7), "powers": powers, "p": 0.9996}
    )
    assert line is not None
    made, logit, *parts = re.findall(r"<mn[^>]*>([^<]+)</mn>", html(line))
    share = exp(parse_number(logit)) / sum(map(parse_number, parts))
    assert made == "1" and matches_figures(made, share), "printed digits multiply out"
    assert filled("e^{$s − ∞} = $zero", {"s": 5.0, "zero": 0})


# ---- in a browser --------------------------------------------------------------------------------

READ = """() => {
  const read = (one) => [one.localName, one.dataset.symbol || "", one.children.length
    ? [...one.children].map(read) : one.textContent];
  const root = document.querySelector("section").shadowRoot;
  return [...root.querySelectorAll(".formula")].map((one) => ({
    id: one.dataset.formula,
    boxes: [...one.querySelectorAll(":scope > math")].map((math) => {
      const { width, height } = math.getBoundingClientRect(); return [width, height]; }),
    explained: [...one.querySelectorAll(":scope > math [data-symbol]")].map((each) =>
      [each.dataset.symbol, each.getAttribute("title")]),
    lines: [...one.querySelectorAll(":scope > math")].map(read),
    means: [...one.querySelectorAll("dd")].map((each) => each.textContent),
  }));
}"""


def written(node: Node) -> str:
    """MathML as a line of arithmetic."""
    tag, _, inside = node
    if isinstance(inside, str):
        return f" {inside} "
    parts = [written(each) for each in inside]
    if tag == "mfrac":
        return f" ({parts[0]}) / ({parts[1]}) "
    if tag == "msqrt":
        return f" √ ({''.join(parts)}) "
    if tag == "msup":
        return (
            f" exp ({parts[1]}) " if parts[0].strip() == "e" else f" ({parts[0]}) ^ ({parts[1]}) "
        )
    return f" ({''.join(parts)}) " if tag == "mrow" else "".join(parts)


def as_read(node: Node) -> Node:
    """A tree as READ gives it: for each element its name, its symbol, and what is in it."""
    tag, attributes, inside = node
    plain = inside if isinstance(inside, str) else [as_read(each) for each in inside]
    return tag, attributes.get("data-symbol", ""), plain


def below(line: Node) -> list[Node]:
    """The numbers of a line, which stand below as many cells with symbols."""
    above, under = line[2][0][2]
    assert len(above[2]) == len(under[2])
    return [item for cell in under[2] for item in cell[2]]


def compare(line: Node, numbers: dict[str, Any]) -> int:
    """Compare the sides of a line with its result, and that with the recording: how many."""
    sides: list[list[Node]] = [[]]
    for item in below(line):
        if item[2] == "=":
            sides.append([])
        else:
            sides[-1].append(item)
    is_first = len(sides[0]) == 1 and sides[0][0][1] in numbers
    ((tag, slot, result),) = sides.pop(0 if is_first else -1)
    lefts = sides
    assert tag == "mn" and matches_text(result, float(numbers[slot])), (slot, result)
    said, half = number(result.replace("−", ""))
    said = -said if result[0] == "−" else said
    if said and not isinstance(numbers[slot], Written):  # zeros at the end are not written
        half = min(half, Decimal(5).scaleb(said.adjusted() - RESULT_DIGITS))
    for left in lefts:
        text = "".join(map(written, left)).replace("(−", "( −")
        made = Decimal(0) if "∞" in text else computed(text)
        if logarithm := re.fullmatch(r"\s*−\s*ln\s*(.+?)\s*", text):
            made = Decimal(-log(parse_number(logarithm[1])))
        assert made is not None and abs(made - said) <= half * Decimal("1.0001"), (text, result)
    return len(lefts)


def figures(line: Node) -> int:
    """The most figures of a number in a line, without the zeros before it: 0 where a weight is so
    near to 1 that it takes more than five to tell."""
    written = re.findall(r"<mn[^>]*>([^<]+)</mn>", html(line))
    if any(each.startswith("0.99999") for each in written):
        return 0
    bare = (re.sub(r" × 10.*|[^\d]", "", each).lstrip("0") for each in written)
    return max(map(len, bare))


def results(panel: spec.Panel) -> Bars:
    """A picture of what all formulas of a panel come to."""
    found = [each for formula in panel.typeset() for each in formula["results"]]
    rows = (BarRow("", (each.value,), (each.text,)) for each in found)
    return Bars(columns=("",), rows=tuple(rows))


@driver.browser_test
@pytest.mark.parametrize("model", ["encoder", "decoder", "translator", "smollm2"])
def test_a_browser_draws_each_formula_and_its_numbers_are_the_recordings(
    browser: Any, tmp_path: Path, model: str
) -> None:
    context = on_text(model, TEXT)
    recording = context.recording
    layer, head, token = recording.model.n_layer - 1, 0, 3
    panel = anatomy.weight(Run(model, TEXT), layer, head, token)
    panel = replace(panel, formulas=tuple(FORMULAS))
    panel = replace(panel, figures=(results(panel),))
    (tmp_path / "panel.html").write_text(spec.document([panel]), "utf-8")
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto((tmp_path / "panel.html").as_uri())
    page.wait_for_selector("main[data-drawn]")
    assert not page.locator(".formulas dl").count()
    assert page.locator(".formulas mtable").count()  # on One head the numbers are there at once
    page.locator(".formulas button").first.click()
    page.locator(".formulas button").last.click()
    symbols = page.evaluate(READ)
    page.locator(".formulas button").first.click()
    shown = page.evaluate(READ)
    page.close()
    assert len(shown) >= 20
    place, compared = RecordedPlace(context, layer, head, token), 0
    for before, after in zip(symbols, shown, strict=True):
        known = evidence(context, before["id"])
        formula = FORMULAS[before["id"]].of(known.instead if known else {})
        assert len(before["boxes"]) == len(formula.lines)
        assert all(width > 20 and height > 10 for width, height in before["boxes"]), formula.id
        assert all(means for _, means in before["explained"])
        assert {name for name, _ in before["explained"]} == set(formula.defined)
        assert before["means"] == list(formula.defined.values())
        if not formula.numbers:
            continue
        numbers = formula.evidence(place).numbers
        symbols_above = len(formula.lines) if formula.stays else 0
        for line in after["lines"][symbols_above:]:
            if not {"≈", "≠"} & {item[2] for item in below(line) if item[0] == "mo"}:
                compared += compare(line, dict(numbers))
    assert compared >= 20


def test_a_formula_is_read_as_people_type_it() -> None:
    """Small letters are scripts, letters side by side factors, and a comma parts what it parts."""
    typed = formulas.as_typed
    assert typed("max(0,xW₁ + b₁)W₂") == "max(0,x W_{1} + b_{1})W_{2}"
    assert typed("softmax(QKᵀ / √d_k) V") == "softmax(Q K^{T} / √d_k) V"
    assert typed('x_ij = "xW of it" ab') == 'x_ij = "xW of it" a b'
    line = formulas.html(typeset(typed("max(0,xW₁)"), {}))
    for part in ("<mn>0</mn><mo>,</mo><mi>x</mi>", "<msub><mi>W</mi>", "<mi>max</mi>"):
        assert part in line
    assert "<mn>8,932</mn>" in formulas.html(typeset("8,932", {}))


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_a_formula_of_a_model_has_only_the_parts_that_it_has(model: str) -> None:
    context = on_text(model, TEXT)
    made = evidence(context, "readout")
    lines = FORMULAS["readout"].of(made.instead).lines
    has_norm = context.recording.streams[-1].sites[-1] == "final.normed"
    state = "Norm(h_t)" if has_norm else "h_t"
    bias = " + b" if context.capabilities.readout_bias else ""
    assert lines == (f"y_t = softmax(E {state}{bias})",)


@needs_smollm2
def test_the_formulas_of_a_model_without_biases_have_none() -> None:
    context = on_text("smollm2", TEXTS[1])
    own = {
        id: FORMULAS[id].of(evidence(context, id).instead) for id in ("sum-over-heads", "readout")
    }
    assert own["sum-over-heads"].lines == ("Y = ∑_h A_h X W_V^h W_O^h",)
    assert own["readout"].lines == ("y_t = softmax(E Norm(h_t))",)
    assert not {"b", "b_O"} & {*own["readout"].defined, *own["sum-over-heads"].defined}
