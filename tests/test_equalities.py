"""Every equality that the pages print is true at the digits printed: read from their own sentences
and computed again in decimals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal, getcontext
from pathlib import Path

import pytest
from app_harness import clean, page_at
from conftest import on_page
from streamlit.testing.v1 import AppTest

from explorer.components import codec

ROOT = Path(__file__).resolve().parent.parent
getcontext().prec = 40
PI = Decimal(math.pi)

# Numbers and signs of arithmetic as the pages write them.
WRITTEN = re.compile(r"\d[\d,]*(?:\.\d+)?(?: × 10⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?%?")
TOKEN = re.compile(
    rf"(?P<number>{WRITTEN.pattern})|(?P<name>√|π|exp|sin|arccos|cos|tanh)|[-+−/×^()·]|\s+"
)
POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
SIGNS = {"−": "-", "×": "*", "·": "*", "^": "**"}
OPERATORS = ("+", "-", "−", "/", "×", "^", "·", "√", "(", "exp")


class Function:
    """One of the names, applied as Python's strongest operator: √32 + 1 is √ ** 32 + 1."""

    def __init__(self, apply: Callable[[Decimal], Decimal]) -> None:
        self.apply = apply

    def __pow__(self, value: Decimal) -> Decimal:
        return self.apply(value)


NAMES = {
    "√": Function(Decimal.sqrt),
    "exp": Function(Decimal.exp),
    "sin": Function(lambda x: Decimal(math.sin(x))),
    "arccos": Function(lambda x: Decimal(math.degrees(math.acos(x)))),
    "cos": Function(lambda x: Decimal(math.cos(x))),
    "tanh": Function(lambda x: Decimal(math.tanh(x))),
}


def number(written: str) -> tuple[Decimal, Decimal]:
    """A written number, and half a unit of its last digit."""
    digits, _, power = written.rstrip("%").partition(" × 10")
    scale = Decimal(10) ** int(power.translate(POWERS) or 0)
    scale *= Decimal("0.01") if written.endswith("%") else 1
    decimals = len(digits.partition(".")[2])
    return Decimal(digits.replace(",", "")) * scale, Decimal(10) ** -decimals * scale / 2


def computed(side: str) -> Decimal | None:
    """What a side of an equality says; None for words and names, which say nothing to compute."""
    side, made, values, at = side.replace("e^", "exp ").replace("2π", "2 × π"), [], {}, 0
    while at < len(side):
        found = TOKEN.match(side, at)
        if not found:
            return None
        text, at = found[0], found.end()
        if found["number"] or text == "π" or text in NAMES:
            name = f"value{len(values)}"
            values[name] = NAMES.get(text) or (number(text)[0] if found["number"] else PI)
            made += [name, "**"] if text in NAMES else [name]
        else:
            made.append(SIGNS.get(text, text))
    try:
        value = eval("".join(made).strip(), {"__builtins__": {}}, values)
    except (SyntaxError, TypeError, ArithmeticError):
        return None
    return value if isinstance(value, Decimal) else None


PER = {("nats", "bits"): Decimal(2).ln()}


def clauses(text: str) -> list[str]:
    """The parts of a text in which an equality stands alone."""
    text = re.sub(r"\*\*|\\\\(?=[^\w\s])|[\u2068\u2069]", "", text).replace("\u00a0", " ")
    return re.split(r"(?:,\s|;|\.\s|\.$|:\s|\n|\s(?:so|and|it is|with|at|or|but)\s)", text)


def side(words: list[str], ends: bool) -> tuple[Decimal, str] | None:
    """The value and the writing of the longest end (or beginning) of some words that is arithmetic,
    if any is."""
    for cut in range(len(words)):
        piece = words[cut:] if ends else words[: len(words) - cut]
        beside = words[:cut][-1:] if ends else words[len(words) - cut :][:1]
        if beside and beside[0] in OPERATORS:
            continue  # a part of something that is not all numbers
        written = " ".join(piece)
        if (value := computed(written)) is not None:
            return value, written
    return None


def wrong(text: str) -> tuple[list[str], int]:
    """The equalities of a text that do not hold at the digits printed, and how many there are to
    compute."""
    bad, count = [], 0
    for clause in clauses(text):
        sides = [each.split() for each in re.split(r"[=≈]", clause)]
        for left, right in zip(sides, sides[1:]):
            unit = PER.get((left[-1], right[1]), 1) if left and len(right) > 1 else 1
            if unit != 1:
                left = left[:-1]
            made, said = side(left, ends=True), side(right, ends=False)
            if not made or not said:
                continue
            # Half a unit of the last digit printed; without one printed number, a thousandth.
            printed = [each for _, each in (said, made) if WRITTEN.fullmatch(each.lstrip("−-"))]
            ruler = number(printed[0].lstrip("−-"))[1] if printed else abs(said[0]) / 1000
            count += 1
            if abs(made[0] / unit - said[0]) > ruler * Decimal("1.0001"):
                bad.append(f"{made[1]} = {said[1]} (it is {float(made[0] / unit):.6g})")
    return bad, count


def test_the_reader_finds_what_is_false_and_passes_what_is_true() -> None:
    assert wrong("score 20.48, e^20.48 = 7.829 × 10⁸, the row’s sum")[0]
    assert wrong("is e^0.89 = 2.437 times")[0]
    assert wrong("It holds 20.1% + 10.2% = **30.4%** of")[0]
    assert wrong("3.21 nats = 4.70 bits")[0] and wrong("3.21 nats = 4.63 bits") == ([], 1)
    assert wrong("e^20.48 = 7.841 × 10⁸ and 2.5 / 5 = **0.5**.") == ([], 2)
    assert wrong("a share of 1.5 / (1.5 + 4.5) = **0.25**, at") == ([], 1)
    assert wrong("log p = −0.500 − 0.250 + 0.125 = **−0.625** nats") == ([], 1)
    assert wrong("divided by √d_head = √32 = 5.657: sums") == ([], 1)
    assert wrong("p = softmax(z), x = [e ; p]") == ([], 0)


PAGES = {
    "weight": [{"layer": "1", "head": "5"}, {"layer": "3", "head": "2"}],
    "concepts": [{}],
    "positions": [
        {"ask": ask} for ask in ("Waves", "Distance", "Shift", "Sentence", "Order", "Adding")
    ],
    "residual": [{"flow": "Writes", "token": "4"}, {"flow": "Writes", "token": "7"}],
    "embeddings": [{}, {"token": "3"}],
    "word": [{"hidden": "5"}],
    "attribution": [{"word": "100", "against": "500"}],
    "generate": [{"said": ""}, {"temperature": "0.7", "top_k": "50", "top_p": "0.9"}],
    "translate": [{}],
    "aggregated": [{}],
    "edit": [{}],
    "compare": [
        {},
        {"compare": "Sentence", "other_view": "Nearest"},
        {"compare": "Model", "other_view": "Answers"},
    ],
}  # fmt: skip  (a page a word)
LONG = (
    "The old man who lived by the sea had two dogs and a cat, and every morning they went "
    "down to the water together."
)
# Where equalities are printed for every model; the other pages are opened with one.
ALWAYS = {"weight"}
EXPECTED = ALWAYS | {"positions", "residual", "embeddings"}
MODEL_OF = {"generate": "decoder", "translate": "translator"}


def said(app: AppTest) -> list[str]:
    """All sentences on a page and its panels, and the formulas that its pictures are given."""
    headers = [codec.decode(each.proto.bytes)[0] for each in on_page(app)]
    panels = [line for each in headers if "finding" in each for line in each["details"]]
    return panels + [
        str(each.value)
        for kind in ("markdown", "caption", "info", "success", "latex")
        for each in app.get(kind)
    ]


def count_true(page: str, model: str, **asked: str) -> int:
    """How many equalities a page prints, all of which hold."""
    app, checked = clean(page_at(page, model=model, **asked)), 0
    for sentence in said(app):
        bad, count = wrong(sentence)
        assert not bad, (model, asked, bad)
        checked += count
    return checked


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_equality_of_a_page_is_true_at_the_digits_printed(page: str) -> None:
    model, (first, *_) = MODEL_OF.get(page, "encoder"), PAGES[page]
    checked = sum(count_true(page, model, **asked) for asked in (*PAGES[page], {"text": LONG}))
    assert checked or page not in EXPECTED, "nothing to check"
    if page in EXPECTED:
        assert count_true(page, "decoder", **first) > 0
        assert count_true(page, "translator", **first) or page not in ALWAYS
