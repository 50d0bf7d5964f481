"""Numbers as words: one way to write each kind of number, and equalities that are true at the
digits that are printed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from math import exp, floor, inf, isfinite, isnan, log, log10
from operator import truediv
from string import Formatter
from typing import Any

MINUS = "−"
NONE = "–"  # what stands where a number does not exist
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
NUMBER = re.compile(
    r"(?P<digits>[+−-]?\d[\d,]*(?:\.\d+)?)(?: × 10(?P<power>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))?(?P<percent>%)?"
)
# Half a unit of the last digit that is printed, and a hair for the rounding of 64-bit numbers.
HALF = 0.5 + 1e-6
MOST_DIGITS = 15
ARROW = "→ "
# The label of a token that is a part of a character: the character, which part, of how many, see
# models/tokens/tokenizer.py.
CHARACTER_PART = re.compile(r"(.+) (\d+)/(\d+)", re.DOTALL)
BLANKS = {"␣": "space", "⏎": "line break"}  # by their labels
EXP_LIMIT = 600  # e to more than that is near the end of 64-bit numbers


class Written(float):
    """A number that has one text wherever it stands, also in the slot of a sentence."""

    text: str

    def __new__(cls, value: float, text: str) -> Written:
        """The number, and how it is written."""
        number = super().__new__(cls, value)
        number.text = text
        return number

    @classmethod
    def by(cls, write: Callable[..., str], value: float, *digits: int) -> Written:
        """The number as a function of this module writes it, such as `power`, in so many digits."""
        return cls(value, write(float(value), *digits))

    @classmethod
    def count(cls, n: int) -> Written:
        """A count with its thousands."""
        return cls(n, f"{n:,}")

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        return format(self.text, spec)


def fixed(value: float, decimals: int = 2) -> str:
    """A number with so many decimals and a true minus sign; more of them, or a power of ten, where
    these would make 0 of what is not 0."""
    if isnan(value):
        return NONE
    if not isfinite(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    short = f"{value:,.{decimals}f}"
    if value and not float(short.replace(",", "")):
        return power(value, 2) if abs(value) < 10.0 ** -(decimals + 2) else _significant(value, 2)
    if not value:
        short = short.lstrip("-")
    return short.replace("-", MINUS)


def ordinal(number: int) -> str:
    """A place in words: "1st", "2,155th"."""
    ends = {} if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}
    return f"{number:,}{ends.get(number % 10, 'th')}"


def signed(value: float, decimals: int = 2) -> str:
    """A number with its sign, + or −, in so many decimals or as many as it needs not to be 0. What
    is 0 has no sign."""
    return f"+{fixed(value, decimals)}" if value > 0 else fixed(value, decimals)


def power(value: float, digits: int = 3) -> str:
    """A number in so many figures, large and small ones as a power of ten: "2.4 × 10⁻⁵"."""
    if isnan(value) or not isfinite(value):
        return fixed(value)
    if value == 0 or 0.001 <= abs(value) < 100_000:
        return _significant(value, digits)
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa} × 10{str(int(exponent)).translate(SUPERSCRIPT)}".replace("-", MINUS)


def power_of_e(exponent: float, digits: int = 4) -> str:
    """e to that, in so many figures, also where it is too large or small for a number."""
    if isnan(exponent) or not isfinite(exponent):
        return "0" if exponent < 0 else fixed(exponent)
    if abs(exponent) < EXP_LIMIT:
        return power(exp(exponent), digits)
    tens = exponent / log(10)
    n = floor(tens)
    mantissa = f"{10.0 ** (tens - n):.{digits - 1}f}"
    if mantissa.startswith("10"):
        mantissa, n = f"{1:.{digits - 1}f}", n + 1
    return f"{mantissa} × 10{str(n).translate(SUPERSCRIPT)}"


def weight(value: float) -> str:
    """A weight or probability in three decimals; one that these would make 0 as a power of ten."""
    return power(value, 4) if 0 < abs(value) < 0.0005 else fixed(value, 3)


def percent(value: float) -> str:
    """A share in per cent: one decimal below a tenth. What is neither nothing nor all is never said
    to be."""
    if isnan(value):
        return "an undefined share"
    if value == 0:
        return "0%"
    if 0 < abs(value) < 0.0005:
        return "less than 0.1%" if value > 0 else f"{MINUS}0.1% at most"
    if 0.995 <= value < 1:
        return f"{floor(value * 1000) / 10:.1f}%"
    return (f"{value:.1%}" if abs(value) < 0.0995 else f"{value:.0%}").replace("-", MINUS)


def tenths(value: float) -> str:
    """A probability in per cent with one decimal. What is neither nothing nor all is never said to
    be."""
    if 0 < value < 0.0005:
        return "< 0.1%"
    return "> 99.9%" if 0.9995 <= value < 1 else f"{value:.1%}"


def whole_percent(value: float) -> str:
    """A probability in whole per cent. What is neither nothing nor all is never said to be."""
    if 0 < value < 0.01:
        return "< 1%"
    return "> 99%" if 0.99 < value < 1 else f"{value:.0%}"


def hundredths(weight: float, decimals: int = 2) -> str:
    """A weight in two decimals, or in so many. What is neither nothing nor all is never said to
    be."""
    unit = 10.0**-decimals
    if 0 < weight < 0.5 * unit:
        return f"< {unit:.{decimals}f}"
    if 1 - 0.5 * unit <= weight < 1:
        return f"> {1 - unit:.{decimals}f}"
    return fixed(weight, decimals)


def decimals_apart(one: float, other: float) -> int | None:
    """The fewest decimals, from two, in which two weights are not the same number; None where that
    takes more than six."""
    for decimals in range(2, 7):
        first, second = (hundredths(each, decimals).lstrip("<> ") for each in (one, other))
        if first != second:
            return decimals
    return None


def number(value: float) -> str:
    """A number in three figures, very small and large ones as a power of ten; a dash for one that
    does not exist (NaN)."""
    return power(value).removeprefix("1.00 × ")


def with_unit(value: float, unit: str) -> str:
    """A number with its unit; shares, whose unit is "%", as percentages."""
    if unit == " nats":
        return plural(number(value), "nat")
    if unit != "%":
        return number(value) + unit
    return f"{100 * value:.{4 if 0.99 <= value < 1 else 3}g}%"


def fill(template: str, slots: Mapping[str, object]) -> str:
    """A sentence with its slots. A word stands as it is, a count with its thousands, a number as
    `number` writes it; `{x:%}` is a share in per cent, `{x:w}` a weight, `{x:+}` has its sign,
    `{x:.2f}` so many decimals; anything else is a format of Python. Raises KeyError for a slot that
    is not there."""
    return _SLOTS.vformat(template, (), slots)


class _SlotFormatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, Written):
            return value.text
        if format_spec in _WRITERS:
            return _WRITERS[format_spec](value)
        if FIXED.fullmatch(format_spec):
            return fixed(value, int(format_spec[1:-1]))
        if format_spec:
            return format(value, format_spec)
        return number(value) if isinstance(value, float) else f"{value:,}"


FIXED = re.compile(r"\.\df")
_WRITERS: dict[str, Callable[[float], str]] = {"%": percent, "w": hundredths, "+": signed}
_SLOTS = _SlotFormatter()


def plural(count: float | str, noun: str, several: str = "") -> str:
    """A count, or a number as it is written, with its noun: "1 nat", "2 nats", "1,000 entries"."""
    count_text = count if isinstance(count, str) else f"{count:,}"
    return f"{count_text} {noun if count_text == '1' else several or noun + 's'}"


def parse_number(text: str) -> float:
    """The number that is written so; the reverse of all above. Raises ValueError for what is no
    number."""
    match = NUMBER.fullmatch(text)
    if not match:
        raise ValueError(f"no number: {text!r}")
    return float(match["digits"].translate(PLAIN).replace(",", "")) * _unit(match)


def matches_text(text: str, value: float) -> bool:
    """True where a value is what is written, at the digits that are written."""
    match = NUMBER.fullmatch(text)
    if not match:
        raise ValueError(f"no number: {text!r}")
    decimals = len(match["digits"].partition(".")[2])
    return abs(value - parse_number(text)) <= HALF * 10.0**-decimals * _unit(match)


def matches_figures(text: str, value: float, figures: int = 3) -> bool:
    """The same of a number in so many figures, of which zeros at the end are not written: 1 is
    1.00."""
    printed = parse_number(text)
    place = floor(log10(abs(printed))) - figures + 1 if printed else -figures
    return matches_text(text, value) and abs(value - printed) <= HALF * 10.0**place


def enough_digits(
    result: str,
    function: Callable[..., float],
    *parts: float,
    least: int = 2,
    write: Callable[[float, int], str] = fixed,
) -> tuple[str, ...]:
    """The parts of an equality, written with the fewest digits, at least `least`, with which they
    make `result` at the digits of `result`."""
    return enough_digits_for_all([(result, function)], *parts, least=least, write=write)


def enough_digits_for_all(
    equalities: Sequence[tuple[str, Callable[..., float]]],
    *parts: float,
    least: int = 2,
    write: Callable[[float, int], str] = fixed,
) -> tuple[str, ...]:
    """The same for several equalities, (result, function of the parts), that share their parts."""
    texts = tuple(write(part, least) for part in parts)
    if not all(map(isfinite, parts)):
        return texts
    for digits in range(least, MOST_DIGITS):
        texts = tuple(write(part, digits) for part in parts)
        values = tuple(map(parse_number, texts))
        if all(matches_text(result, function(*values)) for result, function in equalities):
            break
    return texts


def exponent_text(value: float, result: str) -> str:
    """A score with so many decimals that e to it is `result`, which `power_of_e` wrote."""
    return enough_digits(result, exp, value)[0] if abs(value) < EXP_LIMIT else fixed(value, 9)


def softmax_texts(score: float, log_total: float, result: str) -> tuple[str, str, str]:
    """A score, e to it, and the sum of all such powers, in figures with which e to the first is the
    second, and the second over the third the probability `result`."""
    if not max(abs(score), abs(log_total)) < EXP_LIMIT / 2:
        return fixed(score, 9), power_of_e(score, 8), power_of_e(log_total, 8)
    part, total = enough_digits(result, truediv, score, log_total, least=4, write=power_of_e)
    return exponent_text(score, part), part, total


def percent_texts(*parts: float) -> tuple[str, ...]:
    """Shares and, last, their sum, in per cent with one decimal; the parts with more where they
    need them to add up."""
    total = f"{sum(parts):.1%}"
    return *enough_digits(total, lambda *all: sum(all), *parts, least=1, write=_in_percent), total


def sum_text(*parts: float, decimals: int = 3) -> tuple[str, str]:
    """Addends with their signs between them, in decimals with which they add up, and their sum."""
    total = fixed(sum(parts), decimals)
    texts = enough_digits(total, lambda *all: sum(all), *parts, least=decimals)
    rest = "".join(f" − {text[1:]}" if text[0] == MINUS else f" + {text}" for text in texts[1:])
    return texts[0] + rest, total


def probability(p: float) -> str:
    """A probability in four decimals, a small one in two figures and a power of ten."""
    return fixed(p, 4) if p >= 0.001 or p == 0 else power(p, 2)


def _in_percent(value: float, decimals: int) -> str:
    return f"{value:.{decimals}%}".replace("-", MINUS)


def _significant(value: float, digits: int) -> str:
    short = f"{value:,.{digits}g}"
    whole = max(0, digits - 1 - floor(log10(abs(value)))) if value else 0
    return (f"{value:,.{whole}f}" if "e" in short else short).replace("-", MINUS)


def _unit(match: re.Match[str]) -> float:
    power = int((match["power"] or "⁰").translate(PLAIN))
    return (10.0**power if power < 300 else inf) * (0.01 if match["percent"] else 1)


END_OF_NAME = re.compile(r" = \[[^]]*\]$")  # of a word without a token: "ꙮ = [UNK]"


def shortened(word: str, most: int) -> str:
    """A word in at most so many characters. A longer one loses its middle, since its end too says
    what it is: the last part of a compound, or that it has no token of its own."""
    if len(word) <= most:
        return word
    end = END_OF_NAME.search(word)
    last = len(end[0]) if end and len(end[0]) < most - 1 else (most - 1) * 2 // 5
    first, rest = word[: most - 1 - last], word[len(word) - last :]
    while first and unicodedata.category(word[len(first)]).startswith("M"):
        first = first[:-1]  # a letter stands with its marks
    while rest and unicodedata.category(rest[0]).startswith("M"):
        rest = rest[1:]
    return f"{first}…{rest}"


RIGHT = "\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
LEFTWARDS = re.compile(f"[{RIGHT}](?:[^a-zA-Z\\d“”,;:()]*[{RIGHT}])*")


def isolated(line: str) -> str:
    """A line for a place that has no markup, in which what runs from right to left turns no number
    beside it: in the marks FSI and PDI of Unicode."""
    return LEFTWARDS.sub("\u2068\\g<0>\u2069", line)


def word_in_sentence(label: str) -> str:
    """A token as a word of a sentence: a punctuation mark in quotes, which would else be read as
    one of the sentence."""
    arrow = ARROW if label.startswith(ARROW) else ""  # before what a row produces
    mark = label.removeprefix(arrow)
    is_mark = mark and all(unicodedata.category(each).startswith("P") for each in mark)
    return f"{arrow}“{mark}”" if is_mark else label


def named_word(label: str) -> str:
    """A word in quotes; a single punctuation mark with its name and a blank by its name, which are
    easier to see."""
    if label in BLANKS:
        return BLANKS[label]
    mark = len(label) == 1 and unicodedata.category(label).startswith("P")
    return f"“{label}” {unicodedata.name(label).lower()}" if mark else f"“{label}”"
