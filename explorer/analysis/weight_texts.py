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
    fixed,
    matches_text,
    parse_number,
    power,
)
from models.contract import results

MOST_TERMS = 3  # of a sum that are shown one by one
SMALLEST_TERM = 0.01  # of the largest one
LARGE = 100_000  # from which on a number is a power of ten
LEAST, LEAST_OF_WEIGHTS, LEAST_OF_POWERS, MOST_OF_SCORES = 2, 3, 0, 4  # decimals


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
    return power(value, decimals + 3) if large else fixed(value, decimals)


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
    if opened.plain and opened.allowed[at]:
        score = _score(float(opened.scores[at]), part)
    dot, divisor, added = _divided(opened, score)
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


def _score(value: float, part: str) -> str:
    """A score in the fewest decimals with which e to it is `part`, and no more than MOST_OF_SCORES:
    a weight that is almost all takes more figures of its power than are read."""
    for many in range(LEAST, MOST_OF_SCORES):
        text = aligned(value, many)
        if matches_text(part, exp(parse_number(text))):
            return text
    return aligned(value, MOST_OF_SCORES)


def _divided(opened: WeightBreakdown, score: str) -> tuple[str, str, str]:
    """q . k, its divisor and what is added in the fewest decimals with which they make the score,
    the divisor as a number and as √d_k."""
    dot, added = float(opened.dots[opened.key]), float(opened.added[opened.key])
    for many in range(LEAST, MOST_DIGITS):
        texts = aligned(dot, many), aligned(added, many)
        of, plus = map(parse_number, texts)
        if not matches_text(score, of / opened.divisor + plus):
            continue
        for more in range(LEAST, MOST_DIGITS):
            divisor = aligned(opened.divisor, more)
            if matches_text(score, of / parse_number(divisor) + plus):
                return texts[0], divisor, texts[1]
    return aligned(dot), aligned(opened.divisor), aligned(added)


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
) -> list[tuple[float, ...]]:
    """A sum of products: the largest ones with their factors, and the rest in one. write: what
    writes the first factors, None where any figures do."""
    products = np.prod(factors, axis=0)
    order = term_places(*factors)
    listed = []
    for at in order:
        first, *others = (float(each[at]) for each in factors)
        listed.append((Written(first, write(first)) if write else first, *others))
    if len(order) == len(products):
        return listed
    return [*listed, (float(products.sum() - products[order].sum()),)]


def term_places(*factors: np.ndarray) -> np.ndarray:
    """The places of those products that `terms` lists one by one."""
    size = np.abs(np.prod(factors, axis=0))
    order = results.largest(size, MOST_TERMS)
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
        if is_true:
            return text, of_total, many
    return aligned(part), aligned(total), LEAST


def _printed(products: Iterable[tuple[float, ...]]) -> float:
    """The sum of products with the texts of their first factors."""
    return float(
        sum(
            (parse_number(first.text) if isinstance(first, Written) else first)
            * float(np.prod(others))
            for first, *others in products
        )
    )
