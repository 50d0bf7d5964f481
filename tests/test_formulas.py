"""Every equality that the pages print is true at the digits printed: read from their own sentences
and computed again in decimals."""

from __future__ import annotations

import math
import re
from decimal import Decimal, getcontext
from pathlib import Path

import pytest
from app_harness import clean, page_at
from conftest import on_page
from streamlit.testing.v1 import AppTest

from explorer.components import codec

ROOT = Path(__file__).resolve().parent.parent
getcontext().prec = 40

# Numbers and signs of arithmetic as the pages write them -> tokens.
TOKEN = re.compile(
    r"(?P<number>\d[\d,]*(?:\.\d+)?(?: × "
    r"10⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?%?)|(?P<name>√|π|exp|sin|cos)|(?P<sign>[-+−/×^()·])|(?P<space>\s+)"
)
SMALL = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
OPERATORS = tuple("+-−/×^·√(") + ("exp",)


class NoArithmetic(Exception):
    """The text beside the sign is words or names, nothing to compute."""


def number(written: str) -> tuple[Decimal, Decimal]:
    """A written number, and half a unit of its last digit."""
    digits, _, power = written.rstrip("%").partition(" × 10")
    scale = Decimal(10) ** int(power.translate(SMALL) or 0)
    scale *= Decimal("0.01") if written.endswith("%") else 1
    decimals = len(digits.partition(".")[2])
    return Decimal(digits.replace(",", "")) * scale, Decimal(10) ** -decimals * scale / 2


class Reader:
    """Computes what a side of an equality says."""

    def __init__(self, side: str) -> None:
        self.tokens, at = [], 0
        side = side.replace("e^", "exp ").replace("2π", "2 × π")
        while at < len(side):
            found = TOKEN.match(side, at)
            if not found:
                raise NoArithmetic(side)
            if found.lastgroup != "space":
                self.tokens.append((found.lastgroup, found[0]))
            at = found.end()
        self.at = 0

    def value(self) -> Decimal:
        made = self.sum()
        if self.at < len(self.tokens):
            raise NoArithmetic(self.tokens)
        return made

    def next(self, *signs: str) -> str:
        if self.at < len(self.tokens) and self.tokens[self.at][1] in signs:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return ""

    def sum(self) -> Decimal:
        made = self.product()
        while sign := self.next("+", "-", "−"):
            made = made + self.product() if sign == "+" else made - self.product()
        return made

    def product(self) -> Decimal:
        made = self.factor()
        while sign := self.next("×", "·", "/"):
            made = made / self.factor() if sign == "/" else made * self.factor()
        return made

    def factor(self) -> Decimal:
        made = self.atom()
        return made ** self.atom() if self.next("^") else made

    def atom(self) -> Decimal:
        if self.next("-", "−"):
            return -self.factor()
        if self.next("("):
            made = self.sum()
            if not self.next(")"):
                raise NoArithmetic
            return made
        if self.at == len(self.tokens):
            raise NoArithmetic
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return number(text)[0]
        if text == "π":
            return Decimal(math.pi)
        if text == "√":
            return self.atom().sqrt()
        if text == "exp":
            return self.atom().exp()
        if text in ("sin", "cos"):
            return Decimal(getattr(math, text)(float(self.atom())))
        raise NoArithmetic(text)


WRITTEN = re.compile(r"[−-]?\d[\d,]*(?:\.\d+)?(?: × 10⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?%?")
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
        try:
            return Reader(" ".join(piece)).value(), " ".join(piece)
        except (NoArithmetic, ArithmeticError):
            continue
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
            printed = [each for _, each in (said, made) if WRITTEN.fullmatch(each)]
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
    "attention": [
        {"layer": layer, "head": head, "att_right": "Open"} for layer, head in ("15", "40")
    ],
    "anatomy": [{"layer": "1", "head": "5"}, {"layer": "3", "head": "2"}],
    "lookup": [{}],
    "positions": [
        {"ask": ask} for ask in ("Waves", "Products", "Shift", "Sentence", "Order", "Overlap")
    ],
    "residual": [{"flow": "Writes", "token": "4"}, {"flow": "Writes", "token": "7"}],
    "embeddings": [{}, {"token": "3"}],
    "predictions": [{"hidden": "5"}, {"word": "100", "against": "500"}],
    "generate": [{"said": ""}, {"temperature": "0.7", "top_k": "50", "top_p": "0.9"}],
    "translation": [{}],
    "summaries": [{}],
    "switches": [{}],
    "compare": [
        {},
        {"other_what": "Sentence", "other_view": "Nearest"},
        {"other_what": "Model", "other_view": "Vectors"},
        {"other_what": "Model", "other_view": "Answers"},
    ],
}  # fmt: skip  (a page a word)
LONG = (
    "The old man who lived by the sea had two dogs and a cat, and every morning they went "
    "down to the water together."
)
# Where equalities are printed for every model; the other pages are opened with one.
ALWAYS = {"attention", "anatomy"}
EXPECTED = ALWAYS | {"positions", "residual", "embeddings", "predictions"}
MODEL_OF = {"generate": "decoder", "translation": "translator"}


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
        assert {count_true(page, "decoder", **first) > 0, page == "predictions"} != {False}
        assert count_true(page, "translator", **first) or page not in ALWAYS
