"""Formulas: read from formulas.toml, typeset as MathML, and filled with numbers.

A formula is written as on a blackboard: `a_ij = e^{s_ij} / {∑_j e^{s_ij}}`. Braces group and are
not seen, `/` makes a fraction, `√` a root, `_` and `^` scripts, `"..."` words, and `$name` is a
place for numbers. What comes of it is a tree of MathML elements, (tag, attributes, children or
text), in which each symbol says what it is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from html import escape
from itertools import chain
from math import acos, cos, degrees, e, inf, isnan, log, pi, prod, sin, sqrt, tanh
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unicodedata import normalize

from explorer.analysis import formulas as formulas_analysis
from explorer.analysis.consistency import SUM_ROUNDING
from explorer.analysis.formulas import Evidence, Name, Number, RecordedPlace, checked
from explorer.analysis.framing import Result
from explorer.analysis.measure import Measure, MeasureContext, Untestable
from explorer.figures.formatting import (
    MINUS,
    MOST_DIGITS,
    Written,
    matches_figures,
    matches_text,
    parse_number,
    power,
)

Node = tuple[str, dict[str, str], Any]

TOKEN = re.compile(
    r'\s*(?:"(?P<text>[^"]*)"|(?P<number>\d+(?:,\d{3})*(?:\.\d+)?)|\$(?P<slot>\w+)'
    r"|(?P<name>[^\W\d_]+′*)|(?P<sign>\S))"
)
CLOSES = {"(": ")", "[": "]", "{": "}"}
LARGE = ("∑", "∏")  # their scripts stand below and above
SCRIPTS = {("_", False): "msub", ("^", False): "msup", ("_", True): "munder", ("^", True): "mover"}


# ---- typesetting ---------------------------------------------------------------------------------


class _Parser:
    """A line on its way to MathML. symbols: their definitions."""

    def __init__(self, line: str, symbols: Mapping[str, str]) -> None:
        self.line, self.symbols = line, symbols
        self.tokens = list(TOKEN.finditer(line.strip()))
        self.at = 0

    def written(self, start: int, stop: int) -> str:
        """Tokens as they are written, without spaces; "" behind the last."""
        return "".join(each[0].strip() for each in self.tokens[start:stop])

    def row(self, end: str = "") -> list[Node]:
        """The term before a sign, which is taken too. Raises ValueError where it is missing."""
        items = []
        while (sign := self.written(self.at, self.at + 1)) != end:
            if not sign:
                raise ValueError(f"{self.line!r} lacks {end!r}")
            items.append(self.fraction())
        self.at += 1
        return items

    def fraction(self) -> Node:
        node = self.scripted()
        while self.written(self.at, self.at + 1) == "/":
            self.at += 1
            node = ("mfrac", {}, [node, self.scripted()])
        return node

    def scripted(self) -> Node:
        """A base with its scripts, one symbol with as many of them as are defined together."""
        start, node = self.at, self.base()
        stands_under = node[2] in LARGE
        while (sign := self.written(self.at, self.at + 1)) in ("_", "^"):
            self.at += 1
            script = self.base()
            if script[0] == "mi" and len(script[2]) > 1:  # indices side by side
                script = "mrow", {}, [("mi", {}, letter) for letter in script[2]]
            name = self.named(self.written(start, self.at))
            parts = [_unnamed(each) if name else each for each in (node, script)]
            node = SCRIPTS[sign, stands_under], name, parts
        return node

    def base(self) -> Node:
        token = self.tokens[self.at]
        self.at += 1
        sign = token[0].strip()
        if token["text"] is not None:
            return "mtext", {}, token["text"].replace(" ", "\u00a0")  # spaces at its ends stay
        if token["number"]:
            return "mn", {}, sign
        if token["slot"]:
            return "slot", {}, token["slot"]
        if token["name"] and sign.endswith("′"):  # of two letters MathML sets none in italics
            return "msup", self.named(sign), [("mi", {}, sign[:-1]), ("mo", {}, "′")]
        if token["name"]:
            return "mi", self.named(sign), sign
        if sign == "√":
            return "msqrt", {}, [self.base()]
        if sign == "{":
            return "mrow", {}, self.row("}")
        if sign in CLOSES:
            inside = self.row(CLOSES[sign])
            return "mrow", {}, [("mo", {}, sign), *inside, ("mo", {}, CLOSES[sign])]
        return ("mn" if sign == "∞" else "mo"), {}, sign

    def named(self, symbol: str) -> dict[str, str]:
        """The attributes of a symbol, none where it is not defined."""
        known = self.symbols.get(symbol)
        return {} if known is None else {"data-symbol": symbol, "title": known}


def typeset(line: str, symbols: Mapping[str, str]) -> Node:
    """A line as MathML. Raises ValueError for a bracket that is not closed."""
    return "math", {"display": "block"}, [("mrow", {}, _Parser(line, symbols).row())]


SMALL = re.compile("[₀-₉ₐₑₕᵢⱼₖₗₘₙₒₚₛₜᵤₓ₊₋]+|[⁰¹²³⁴-⁹ⁱⁿᵀ⁺⁻]+")  # one run of small letters
MOST_FACTORS = 3  # letters side by side that are factors and no word


def as_typed(line: str) -> str:
    """A line as people type it, in the notation of `typeset`: small letters, as in W₁, are scripts,
    and a few letters side by side that are no word of the field's formulas are factors."""

    def script(found: re.Match[str]) -> str:
        sign = "_" if found[0][0] in "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚₛₜᵤₓ₊₋" else "^"
        return f"{sign}{{{normalize('NFKC', found[0])}}}"

    def factors(found: re.Match[str]) -> str:
        name = found[0]
        return name if len(name) > MOST_FACTORS or name in _words() else " ".join(name)

    parts = SMALL.sub(script, line).split('"')  # every second one is words
    parts[::2] = (re.sub(r"(?<!\$)(?<![_^\w])[^\W\d_]{2,}", factors, each) for each in parts[::2])
    return '"'.join(parts)


@cache
def _words() -> frozenset[str]:
    """The names of several letters in the field's formulas."""
    lines = chain.from_iterable(formula.lines for formula in FORMULAS.values())
    return frozenset(re.findall(r"[^\W\d_]{2,}", " ".join(lines))) | {"log", "sin", "cos", "min"}


def _unnamed(node: Node) -> Node:
    """A tree without the names of its symbols: it is a part of one."""
    tag, _, inside = node
    return tag, {}, inside if isinstance(inside, str) else [_unnamed(each) for each in inside]


def symbols_in(node: Node, is_index: bool = False) -> Iterator[tuple[str, str]]:
    """The symbols of a tree, each with its definition, "" for a name outside of an index that has
    none."""
    tag, attributes, inside = node
    if "data-symbol" in attributes:
        yield attributes["data-symbol"], attributes["title"]
    elif isinstance(inside, str):
        yield from [(inside, "")] if tag == "mi" and not is_index else ()
    else:
        for at, each in enumerate(inside):
            yield from symbols_in(each, is_index or (at > 0 and tag in ("msub", "munder")))


def html(node: Node) -> str:
    """A tree as text of an HTML document."""
    tag, attributes, inside = node
    named = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    content = escape(inside) if isinstance(inside, str) else "".join(map(html, inside))
    return f"<{tag}{named}>{content}</{tag}>"


# ---- numbers -------------------------------------------------------------------------------------

NAMED = {"e": e, "π": pi, "∞": inf}
ARC = lambda cosine: degrees(acos(cosine))
FUNCTIONS = {"sin": sin, "cos": cos, "tanh": tanh, "ln": log, "arccos": ARC}
UNREAD = 1e-5  # of the larger of two terms: a smaller one would take more figures than are read
RESULT_DIGITS = 3  # figures of a result, and the fewest of its parts
UNEQUAL: Node = ("mo", {}, "≠")
EQUALS: Node = ("mo", {}, "=")
RELATIONS = "=≠≈"
SIGNS = RELATIONS + "+" + MINUS
OPERATORS = SIGNS + "·"


def filled(line: str, numbers: Mapping[str, Number]) -> Node | None:
    """A line with numbers in its slots, those without a text of their own in the fewest figures
    with which each of its sides is the result at the figures of that, and what is not equal is not;
    None where nothing makes them so. The result is the first side where that is one number alone,
    else the last. Raises KeyError for a slot without a number."""
    sides = _sides(line)
    tag, _, slot = sides[0][0]
    is_first = len(sides[0]) == 1 and tag == "slot" and isinstance(numbers[slot], float | int)
    of = sides[0] if is_first else sides[-1]
    for result_digits in range(RESULT_DIGITS, MOST_DIGITS):
        for digits in range(RESULT_DIGITS, MOST_DIGITS):
            of_result = digits if UNEQUAL in of else result_digits
            rows = [_in_row(each, numbers, of_result if each is of else digits) for each in sides]
            result = rows[0 if is_first else -1]
            others = rows[1:] if is_first else rows[:-1]
            try:
                true = all(
                    _is_result(result, value(each), numbers, result_digits) for each in others
                )
                true = true and _differs(result)
                true = true and not any(_hides(each, result) for each in others)
            except ArithmeticError:
                return None
            if true:
                return _math([item for row in rows for item in (*row, EQUALS)][:-1])
    return None


def _hides(row: Sequence[Node], result: Sequence[Node]) -> bool:
    """True where a sum of two terms is written as one of them though the other is not 0: one more
    digit of it shows the other, as of 1 + 0.00125. What is too small to be read hides nothing."""
    cells = _cells(row, SIGNS)
    if len(cells) != 3 or not cells[0] or len(result) != 1:
        return False
    first, other = (value(each) for each in cells[::2])
    smaller, larger = sorted((abs(first), abs(other)))
    return smaller > UNREAD * larger and value(result) in (first, other, -other)


def _is_result(
    row: Sequence[Node], made: float, numbers: Mapping[str, Number], digits: int
) -> bool:
    """True where a value is the result at its digits. One without a text of its own has so many
    figures, of which zeros at the end are not written: 1 is 1.00."""
    first = row[0] if row[0][0] == "mn" else next(each for each in row[0][2] if each[0] == "mn")
    text, slot = first[2], first[1].get("data-symbol")
    if slot is None or isinstance(numbers[slot], Written):
        return matches_text(text, made)
    return matches_figures(text, made, digits)


def _math(items: Sequence[Node]) -> Node:
    return "math", {"display": "block"}, [("mrow", {}, list(items))]


def below(
    symbols: str, line: str, numbers: Mapping[str, Number], known: Mapping[str, str]
) -> Node | None:
    """A line of symbols and below it the same in numbers, in columns: one for each operand and
    each sign between them where both lines have the same, else one for each side. The result and
    its symbol are marked. None as of `filled`."""
    made = filled(line, numbers)
    if made is None:
        return None
    above = _in_row(typeset(symbols, known)[2][0][2], numbers, RESULT_DIGITS)
    both = above, made[2][0][2]
    for signs in (OPERATORS, SIGNS, RELATIONS, ""):
        cells = [_cells(row, signs) for row in both]
        if _signs(cells[0]) == _signs(cells[1]):
            break
    is_first = len(cells[1]) > 1 and len(cells[1][0]) == 1 and cells[1][1][0][2] in RELATIONS
    at = 0 if is_first else -1
    rows: list[Node] = []
    for row in cells:
        made_of: list[Node] = [("mtd", {}, cell) for cell in row]
        made_of[at] = "mtd", {"class": "result"}, row[at]
        rows.append(("mtr", {}, made_of))
    return "math", {"display": "block"}, [("mtable", {}, rows)]


def result_of(line: Node, numbers: Mapping[str, Number]) -> Result:
    """The number that a line of `below` comes to, at the component that its symbol names."""
    rows = [each[2] for each in line[2][0][2]]
    at = next(i for i, (_, attributes, _) in enumerate(rows[0]) if "class" in attributes)
    ((name, text),) = _slots(rows[1][at])
    component = next((numbers[each] for each, _ in _slots(rows[0][at])), None)
    value: Any = numbers[name]
    if not isinstance(value, float | int):  # a sum of products, as of a row with one key
        value = sum(map(prod, value))
    assert isinstance(component, int | None)
    return Result(float(value), text, component)


def _slots(node: Node) -> Iterator[tuple[str, str]]:
    """The numbers in a tree that stand in the places of slots: the slot and the text."""
    tag, attributes, inside = node
    if tag == "mn" and "data-symbol" in attributes:
        yield attributes["data-symbol"], inside
    elif not isinstance(inside, str):
        for each in inside:
            yield from _slots(each)


def _cells(row: Sequence[Node], signs: str) -> list[list[Node]]:
    """A row cut at signs, which are cells of their own."""
    cells: list[list[Node]] = [[]]
    for item in row:
        if item[0] == "mo" and item[2] in signs:
            cells += [[item], []]
        else:
            cells[-1].append(item)
    return cells


def _signs(cells: Sequence[Sequence[Node]]) -> str:
    """The signs between cells; what is subtracted is negative where the symbols add."""
    return "".join(cell[0][2] for cell in cells[1::2]).replace(MINUS, "+")


def _differs(row: Sequence[Node]) -> bool:
    """True where what stands on the two sides of ≠ differs, and without such a sign."""
    if UNEQUAL not in row:
        return True
    at = row.index(UNEQUAL)
    return value(row[:at]) != value(row[at + 1 :])


@cache
def _sides(line: str) -> tuple[tuple[Node, ...], ...]:
    """The sides of an equation, typeset once for all texts."""
    sides: list[list[Node]] = [[]]
    for item in typeset(line, {})[2][0][2]:
        if item == ("mo", {}, "="):
            sides.append([])
        else:
            sides[-1].append(item)
    return tuple(map(tuple, sides))


def _in_row(items: Sequence[Node], numbers: Mapping[str, Number], digits: int) -> list[Node]:
    """The items of a row with numbers in the places of slots. What is negative is subtracted where
    it would be added, and stands in brackets where it would be multiplied."""
    row: list[Node] = []
    for item in chain.from_iterable(_items(each, numbers, digits) for each in items):
        if row and item[0] == "mn" and item[2][0] == MINUS:
            if row[-1][2] == "+":
                row[-1], item = ("mo", {}, MINUS), (item[0], item[1], item[2][1:])
            elif row[-1][2] not in CLOSES:
                item = "mrow", {}, [("mo", {}, "("), item, ("mo", {}, ")")]
        row.append(item)
    return row


def _items(node: Node, numbers: Mapping[str, Number], digits: int) -> list[Node]:
    """A node with numbers, as items of the row that it stands in."""
    tag, attributes, inside = node
    if tag == "slot":
        return _written(inside, numbers[inside], digits)
    if isinstance(inside, str):
        return [node]
    if tag in ("mrow", "msqrt"):
        return [(tag, attributes, _in_row(inside, numbers, digits))]
    parts = (_in_row([each], numbers, digits) for each in inside)
    return [
        (tag, attributes, [each[0] if len(each) == 1 else ("mrow", {}, each) for each in parts])
    ]


def _written(name: str, number: Number | Name, digits: int) -> list[Node]:
    """A number, or a sum of products, as items of a row."""
    if isinstance(number, Name):
        index: Node = ("mtext", {}, number.index)
        if not number.index:
            return [("mi", {}, number.letter)]
        return [("msub", {}, [("mi", {}, number.letter), index]) if number.letter else index]
    if isinstance(number, Written):
        return [("mn", {"data-symbol": name}, number.text)]
    if isinstance(number, float | int):
        text = f"{number:,}" if isinstance(number, int) else power(number, digits)
        return [("mn", {"data-symbol": name}, text)]
    items: list[Node] = []
    for product in number:
        items += [("mo", {}, "+")] if items else []
        for at, factor in enumerate(product):
            items += [("mo", {}, "·")] if at and not isinstance(factor, Name) else []
            items += _written(name, factor, digits)  # type: ignore[arg-type]
    return items


def value(items: Sequence[Node]) -> float:
    """Value of a row of numbers and signs. Raises ArithmeticError for what has no value."""
    total, product, sign, function = 0.0, None, 1.0, None
    for tag, _, inside in items:
        if tag == "mo" and inside in ("+", MINUS):
            total += sign * (product or 0.0)
            sign, product = (1.0 if inside == "+" else -1.0), None
        elif tag == "mi" and inside in FUNCTIONS:
            function = FUNCTIONS[inside]
        elif tag != "mo":
            factor = _factor(tag, inside)
            factor, function = (function(factor) if function else factor), None
            product = factor if product is None else product * factor
    total += sign * (product or 0.0)
    if isnan(total):
        raise ArithmeticError("no number")
    return total


def _factor(tag: str, inside: Any) -> float:
    if isinstance(inside, str):
        return NAMED[inside] if inside in NAMED else parse_number(inside)
    if tag == "mrow":
        return value(inside)
    first, *others = (value([each]) for each in inside)
    if tag == "msqrt":
        return sqrt(first)
    return float(first / others[0] if tag == "mfrac" else first ** others[0])


# ---- the formulas --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Formula:
    """A formula: its id, its name, a sentence on what it says, its lines, what they are at one
    place, in symbols and below these with slots for numbers, the tab that shows it with its choices
    as in an address, a remark where a note is loose or wrong, and how far its sides may differ, as
    a share of the largest number. stays: its lines stand above those with numbers, whose symbols
    are of one component. symbols: definitions of those that are in it. Raises ValueError for a
    symbol without one."""

    id: str
    title: str
    says: str
    lines: tuple[str, ...]
    page: str
    evidence: Callable[[RecordedPlace], Evidence]
    numbers: tuple[tuple[str, str], ...] = ()
    remark: str = ""
    stays: bool = False
    tolerance: float = SUM_ROUNDING
    symbols: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if undefined := [name for name, means in self.defined.items() if not means]:
            raise ValueError(f"{self.id}: {', '.join(undefined)} has no definition")

    @cached_property
    def typeset(self) -> tuple[Node, ...]:
        """Its lines as MathML."""
        return tuple(typeset(line, self.symbols) for line in self.lines)

    @cached_property
    def defined(self) -> dict[str, str]:
        """Its symbols and what each is."""
        return {name: means for line in self.typeset for name, means in symbols_in(line)}

    @cached_property
    def meanings(self) -> tuple[tuple[Node, str], ...]:
        """Its symbols as MathML, and what each is."""
        return tuple((typeset(name, {}), means) for name, means in self.defined.items())

    def measure(self, context: MeasureContext) -> Measure:
        """The largest difference of both sides in a recording, relative to the largest number, or
        to 1 where that is smaller. Raises Untestable where the formula is not about the model."""
        check = checked(self.evidence(RecordedPlace(context)))
        slots = {"n": check.numbers, "error": check.error, "size": check.largest}
        return Measure(check.error / max(1.0, check.largest), slots=slots)

    def filled(self, numbers: Mapping[str, Number]) -> tuple[Node, ...]:
        """The formula at one place, symbols above numbers, as far as these make it true."""
        lines = (below(*each, numbers, self.symbols) for each in self.numbers) if numbers else ()
        return tuple(line for line in lines if line is not None)

    def plain(self, evidence: Evidence) -> dict[str, Any]:
        """The formula for the browser, as it is of the evidence's model: as `Node`s, with its
        numbers too, and its symbols."""
        own = self.of(evidence.instead)
        return {
            "id": self.id,
            "title": self.title,
            "lines": own.typeset,
            "stays": self.stays,
            "numbers": (lines := self.filled(evidence.numbers)),
            "results": [result_of(each, evidence.numbers) for each in lines],
            "symbols": own.meanings,
        }

    def of(self, instead: Mapping[str, str]) -> Formula:
        """The formula with parts of its lines replaced."""
        lines = self.lines
        for part, new in instead.items():
            lines = tuple(line.replace(part, new) for line in lines)
        return self if lines == self.lines else replace(self, lines=lines)


def read() -> dict[str, Formula]:
    """All formulas by id, in the order of the file. Raises AttributeError where one has no
    evidence."""
    with (Path(__file__).parent / "formulas.toml").open("rb") as file:
        written = tomllib.load(file)
    return {each["id"]: _formula(written["symbols"], **each) for each in written["formula"]}


def _formula(
    known: Mapping[str, str],
    id: str,
    lines: Sequence[str],
    numbers: Sequence[Sequence[str]] = (),
    symbols: Mapping[str, str] = MappingProxyType({}),
    **more: Any,
) -> Formula:
    evidence = getattr(formulas_analysis, id.replace("-", "_"))
    known = {**known, **symbols}
    return Formula(
        id,
        lines=tuple(lines),
        numbers=tuple((above, line) for above, line in numbers),
        symbols=known,
        evidence=evidence,
        **more,
    )


FORMULAS = read()


def formula_lines(
    names: Iterable[str], context: MeasureContext, at: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Those of some formulas that are about a model, for the browser, with the numbers of a place
    as the arguments of a panel name it. names: ids, each with "@" and a temperature of its own
    where the place has several."""
    lines = []
    for name in names:
        id, _, t = name.partition("@")
        place = RecordedPlace.of(context, {**at, **({"temperature": float(t)} if t else {})})
        with suppress(Untestable, ValueError):
            lines.append({**FORMULAS[id].plain(FORMULAS[id].evidence(place)), "id": name})
    return lines
