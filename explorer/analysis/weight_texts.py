"""The numbers of one attention weight as text: each has one text, in all steps, in bars and in
formulas, with decimals in which the calculation is true as it is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import exp

import numpy as np

from explorer.analysis.anatomy import WeightBreakdown
from explorer.figures.formatting import (
    MINUS,
    MOST_DIGITS,
    Written,
    enough_digits,
    enough_digits_for_all,
    fixed,
    matches_text,
    parse_number,
    power,
)
from models.contract import results

MOST_TERMS = 3  # of a sum that are shown one by one
SMALLEST_TERM = 0.01  # of the largest one
Equality = tuple[str, Callable[..., float]]  # a result, and the function of parts that makes it
LARGE = 100_000  # from which on a number is a power of ten
LEAST, LEAST_OF_WEIGHTS, LEAST_OF_POWERS, MOST_OF_SCORES = 2, 3, 0, 8  # decimals


@dataclass(frozen=True)
class WeightTexts:
    """The numbers from q . k to weight x v as they are written, and the decimals of all numbers of
    the row. added: with its sign before it, "" where nothing is added. part, total: e^score and the
    row's sum of them."""

    dot: str
    divisor: str
    added: str
    score: str
    part: str
    total: str
    softmax: str
    weight: str
    norm: str
    weighted: str
    score_decimals: int
    power_decimals: int
    weight_decimals: int


def aligned(value: float, decimals: int = LEAST) -> str:
    """A number in so many decimals, a large one as a power of ten with as many figures more."""
    large = np.isfinite(value) and abs(value) >= LARGE
    return power(value, decimals + 4) if large else fixed(value, decimals)


@lru_cache(maxsize=8)
def texts(opened: WeightBreakdown) -> WeightTexts:
    """The texts of a weight's numbers."""
    at = opened.key
    weights = _weight_decimals(opened)
    weight, softmax = (
        aligned(float(each[at]), weights) for each in (opened.weights, opened.softmax)
    )
    part, total, power_decimals = _powers(opened, softmax)
    score = aligned(float(opened.scores[at]))
    as_root = lambda dot, _, added: dot / opened.divisor + added  # as √d_head
    candidates: list[Equality] = []
    if opened.plain and opened.allowed[at]:
        whole = _printed(powers(opened, power_decimals))
        in_formula = lambda score: exp(score) / whole
        equalities = [(part, exp), (softmax, in_formula)]
        (score,) = enough_digits_for_all(equalities, float(opened.scores[at]), write=aligned)
        candidates = [(softmax, lambda *parts: in_formula(as_root(*parts)))]
    candidates += [(score, lambda dot, divisor, added: dot / divisor + added), (score, as_root)]
    dot, divisor, added = enough_digits_for_all(
        candidates,
        *(float(opened.dots[at]), opened.divisor, float(opened.added[at])),
        write=aligned,
    )
    norm = float(np.linalg.norm(opened.v[at]))
    weighted = aligned(float(opened.weights[at]) * norm)
    (norm_text,) = enough_digits(
        weighted, lambda norm: parse_number(weight) * norm, norm, write=aligned
    )
    sign = MINUS if added[0] == MINUS else "+"
    return WeightTexts(
        dot,
        divisor,
        f" {sign} {added.lstrip(MINUS)}" if opened.added.any() else "",
        score,
        part,
        total,
        softmax,
        weight,
        norm_text,
        weighted,
        decimals(score),
        power_decimals,
        weights,
    )


def decimals(text: str) -> int:
    """The number of decimals of a written number; the fewest for a power of ten."""
    return LEAST if "×" in text else len(text.partition(".")[2])


def powers(opened: WeightBreakdown, decimals: int) -> list[tuple[float, ...]]:
    """The sum of e^score over a row, with a learned sink's: that of the cell, and the others."""
    part, total = opened.plain or (0.0, 0.0)
    return [(Written(part, aligned(part, decimals)),), (total - part,)]


def terms(
    *factors: np.ndarray,
    write: Callable[[float], str] | None = None,
    most: int = MOST_TERMS,
) -> list[tuple[float, ...]]:
    """A sum of products: the largest ones with their factors, and the rest in one. write: what
    writes the first factors, None where any figures do; most: how many are listed."""
    products = np.prod(factors, axis=0)
    order = term_places(*factors, most=most)
    listed = []
    for at in order:
        first, *others = (float(each[at]) for each in factors)
        listed.append((Written(first, write(first)) if write else first, *others))
    if len(order) == len(products):
        return listed
    return [*listed, (float(products.sum() - products[order].sum()),)]


def term_places(*factors: np.ndarray, most: int = MOST_TERMS) -> np.ndarray:
    """The places of those products that `terms` lists one by one, at most so many."""
    size = np.abs(np.prod(factors, axis=0))
    order = results.largest(size, most)
    return order[size[order] >= SMALLEST_TERM * size.max()]


def largest(vector: np.ndarray) -> int:
    """The dimension that stands for a vector."""
    return int(np.abs(vector).argmax())


def _weight_decimals(opened: WeightBreakdown) -> int:
    """The fewest decimals of the row's weights with which the sum of the values is true, and no
    weight that is almost all is all."""
    weight = float(opened.weights[opened.key])
    weighted = weight * float(np.linalg.norm(opened.v[opened.key]))
    dimension = largest(opened.z)
    z = power(float(opened.z[dimension]))
    for many in range(LEAST_OF_WEIGHTS, MOST_DIGITS):
        write = partial(aligned, decimals=many)
        text = write(weight)
        printed = parse_number(text)
        if weight < 1 <= printed:
            continue
        sum_of = _printed(terms(opened.weights, opened.v[:, dimension], write=write))
        scaled = printed / weight * weighted if weight else 0.0
        if matches_text(z, sum_of) and matches_text(aligned(weighted), scaled):
            return many
    return LEAST_OF_WEIGHTS


def _powers(opened: WeightBreakdown, softmax: str) -> tuple[str, str, int]:
    """e^score of the cell, the row's sum, and the decimals of the row's others, with which the
    first over the second, or over the sum of all as they are written, is the weight."""
    plain = opened.plain
    part, total = plain or (float(opened.exponentials[opened.key]), opened.total)
    for many in range(LEAST_OF_POWERS, MOST_DIGITS):
        text, of_total = aligned(part, many), aligned(total, many)
        sums = [parse_number(of_total), _printed(powers(opened, many))]
        own = parse_number(text)
        is_true = all(
            each and matches_text(softmax, own / each) for each in sums[: 1 + bool(plain)]
        )
        if is_true and (not plain or _leads_to(opened, text, softmax, sums[1])):
            return text, of_total, many
    return aligned(part), aligned(total), LEAST


def _leads_to(opened: WeightBreakdown, part: str, softmax: str, whole: float) -> bool:
    """True where a score of few decimals, and a q . k of few, give e^score and the weight as they
    are printed."""
    at, few = opened.key, range(LEAST, MOST_OF_SCORES)
    gives = lambda score: matches_text(softmax, exp(score) / whole)
    texts = (aligned(float(opened.scores[at]), many) for many in few)
    scores = ((text, parse_number(text)) for text in texts)
    score = next((text for text, s in scores if matches_text(part, exp(s)) and gives(s)), None)
    if score is None:
        return False
    for many in few:
        dot, divisor, added = (
            parse_number(aligned(each, many))
            for each in (float(opened.dots[at]), opened.divisor, float(opened.added[at]))
        )
        own = dot / opened.divisor + added
        if all(matches_text(score, each) for each in (own, dot / divisor + added)) and gives(own):
            return True
    return False


def _printed(products: Iterable[tuple[float, ...]]) -> float:
    """The sum of products with the texts of their first factors."""
    return float(
        sum(
            (parse_number(first.text) if isinstance(first, Written) else first)
            * float(np.prod(others))
            for first, *others in products
        )
    )
