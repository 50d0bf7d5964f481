"""The calculation of a weight in words: its formulas, with numbers that are true as printed."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt
from operator import mul, truediv

import numpy as np

from explorer.analysis.anatomy import (
    HeadOutputs,
    OutputForms,
    WeightBreakdown,
    largest_component,
    largest_products,
)
from explorer.analysis.formatting import (
    MINUS,
    NONE,
    enough_digits,
    enough_digits_for_all,
    percent,
    plural,
    power,
)
from explorer.analysis.terminology import sees_ahead, window_reach, windowed

FULL = 6  # figures in formulas: enough for a reader who computes them anew


def say(value: float, figures: int = 4) -> str:
    """A number in so many figures, very large and very small ones as a power of ten."""
    return power(float(value), figures)


def say_weight(value: float) -> str:
    """A weight in four figures; in six where four would make all of it out of almost all."""
    return say(value, 6 if 0.99995 <= value < 1 else 4)


def dividing(opened: WeightBreakdown) -> str:
    """What the score is divided by, as it stands in the formula."""
    if opened.divisor_edit is None and np.isclose(opened.divisor, sqrt(len(opened.q))):
        return f"√{len(opened.q)}"
    return f"{opened.divisor:g}"


@dataclass(frozen=True)
class Figures:
    """The numbers of a cell's formulas, with as many figures as make every equality between them
    true: score = dot / divisor + added, softmax = part / total, exp(score) = part where `plain`."""

    dot: str
    divisor: str
    added: str
    score: str
    part: str
    total: str
    softmax: str
    plain: bool

    @classmethod
    def of(cls, opened: WeightBreakdown, least: int) -> Figures:
        """Those of a cell, in at least so many figures."""
        at, plain = opened.key, opened.plain is not None
        softmax = say(opened.softmax[at], least)
        powers = opened.plain or (float(opened.exponentials[at]), opened.total)
        part, total = enough_digits(softmax, truediv, *powers, least=least, write=power)
        score = say(opened.scores[at], least)
        if plain and opened.allowed[at]:
            told = enough_digits(part, exp, float(opened.scores[at]), least=least, write=power)
            score = told[0]
        dot, divisor, added = enough_digits_for_all(
            [
                (score, lambda dot, divisor, added: dot / divisor + added),
                (score, lambda dot, _, added: dot / opened.divisor + added),  # as √d_head
            ],
            *(float(opened.dots[at]), opened.divisor, float(opened.added[at])),
            least=least,
            write=power,
        )
        sign = MINUS if added[0] == MINUS else "+"
        beside = f" {sign} {added.lstrip(MINUS)}" if opened.added.any() else ""
        return cls(dot, divisor, beside, score, part, total, softmax, plain)


def in_short(opened: WeightBreakdown, done: HeadOutputs | None) -> tuple[str, ...]:
    """The whole way in a few lines of Markdown."""
    at, told = opened.key, Figures.of(opened, 4)
    lines = [
        f"q · k = **{told.dot}**, the sum of {plural(len(opened.q), 'product')}",
        f"score = {told.dot} / {dividing(opened)}{told.added} = **{told.score}**",
    ]
    made = f"{told.part} / {told.total} = **{told.softmax}**"
    if not opened.allowed[at]:
        lines.append("not allowed: the score is **−∞**, so the weight is exp(−∞) = 0")
    elif told.plain:
        lines.append(f"softmax = exp({told.score}) / Σ exp = {made}")
    else:
        lines.append(f"softmax, the largest score subtracted = {made}")
    if opened.uniform_edit is not None:
        lines.append(f"an edit sets the weight to **{say(opened.weights[at], FULL)}**")
    length = say(float(np.linalg.norm(opened.z)))
    lines.append(f"the weight scales the value v; the sum over all keys is z, with norm {length}")
    if done is not None:
        share = done.shares[opened.head]
        length = say(done.lengths[opened.head])
        lines.append(f"the head’s output, z · W_O, has norm **{length}**")
        if not np.isnan(share):
            lines.append(f"its share of the attention output at this token is **{percent(share)}**")
    return tuple(lines)


def formulas(opened: WeightBreakdown, done: HeadOutputs | None) -> dict[str, list[str]]:
    """The formulas of each step of the story, its result last."""
    told, at = Figures.of(opened, 4), opened.key
    weight = say(opened.weights[at], FULL)
    score = told.score if opened.allowed[at] else "−∞"
    made = {
        "meet": [_products(opened), f"q · k = {told.dot}"],
        "scaled": [
            f"score = q · k / {dividing(opened)}",
            f"{told.dot} / {told.divisor}{told.added} = {told.score}",
            f"score = {told.score}",
        ],
        "masked": [
            "allowed: the score stays" if opened.allowed[at] else "not allowed: the score is −∞",
            score,
        ],
        "softmax": [*_softmax(opened, told), f"weight = {weight}"],
    }
    length = float(np.linalg.norm(opened.v[at]))
    taken = say(float(opened.weights[at]) * length, FULL)
    factors = enough_digits(taken, mul, float(opened.weights[at]), length, least=FULL, write=power)
    n = plural(len(opened.v), "key")
    made |= {
        "valued": [
            f"|weight × v| = weight × |v| = {' × '.join(factors)} = {taken}",
            f"|weight × v| = {taken}",
        ],
        "summed": [f"z = Σ weight × v, over {n}", f"|z| = {say(float(np.linalg.norm(opened.z)))}"],
    }
    return made if done is None else made | _written(done, opened)


def _products(opened: WeightBreakdown) -> str:
    best = largest_products(opened)
    pairs = [float(each[d]) for d in best for each in (opened.q, opened.k)]
    told = [say(each, 3) for each in pairs]
    if len(best) == len(opened.q):  # all of them are here, so they must add up
        dot = say(opened.dots[opened.key], FULL)
        told = list(enough_digits(dot, _added_up, *pairs, least=3, write=power))
    parts = [f"({each})" if each[0] == MINUS else each for each in told]
    more = " + …" if len(opened.q) > len(best) else ""
    return "q · k = " + " + ".join(map(" × ".join, zip(parts[::2], parts[1::2]))) + more


def _added_up(*pairs: float) -> float:
    return sum(a * b for a, b in zip(pairs[::2], pairs[1::2]))


def _softmax(opened: WeightBreakdown, told: Figures) -> list[str]:
    at = opened.key
    if not opened.allowed[at]:
        return ["exp(−∞) / Σ exp = 0"]
    lines = [f"exp({told.score}) / Σ exp: some exp here is too large for a number"]
    if told.plain:
        lines = [f"exp({told.score}) / Σ exp = {told.part} / {told.total} = {told.softmax}"]
    powers = float(opened.exponentials[at]), opened.total
    part, total = enough_digits(told.softmax, truediv, *powers, least=FULL, write=power)
    below = float(opened.scores[at]) - opened.largest
    apart = enough_digits(part, exp, below, least=FULL, write=power)[0]
    largest, made = say(opened.largest, FULL), f"{part} / {total} = {told.softmax}"
    lines.append(f"{largest}, the largest, subtracted: exp({apart}) / Σ exp = {made}")
    if opened.uniform_edit is not None:
        n = int(opened.allowed.sum())
        lines.append(
            f"softmax = {told.softmax}, but an edit sets it: {opened.uniform_edit}, 1 / {n}"
        )
    return lines


def _written(done: HeadOutputs, opened: WeightBreakdown) -> dict[str, list[str]]:
    d, n = len(opened.z), len(done.total)
    length, share = float(done.lengths[opened.head]), done.shares[opened.head]
    beside = say(length / done.length) if done.length > 0 else NONE
    parts: tuple[str, ...] = say(length, FULL), say(done.length, FULL)
    if done.length > 0:
        parts = enough_digits(beside, truediv, length, done.length, least=FULL, write=power)
    return {
        "through": [f"z · W_O: {d} numbers in, {n} out", f"length = {say(length)}"],
        "among": [
            f"norm / norm of the sum = {' / '.join(parts)} = {beside}",
            "" if np.isnan(share) else f"share = {say(share)}",
        ],
    }


def reasons(opened: WeightBreakdown, allowed: np.ndarray) -> dict[str, str]:
    """Sentences for the steps: on the scale, on what was added, and on the mask, which permits
    `allowed` (query, key)."""
    width = len(opened.q)
    root = f"√d_head = √{width} = {say(sqrt(width))}"
    if opened.divisor_edit is not None:
        scale = f"An edit sets the divisor: {opened.divisor_edit}."
    elif opened.divisor == 1 and width != 1:
        scale = "This model does not scale its scores."
    elif not np.isclose(opened.divisor, sqrt(width)):
        scale = (
            f"Scores are divided by {say(opened.divisor)}, this model’s own scale. The paper "
            f"divides by {root}."
        )
    else:
        scale = (
            f"Scores are divided by {root}. A sum of {width} products has a large variance, and "
            "the softmax of large scores is close to one-hot."
        )
    added = (
        "The model adds a term to q · k, such as a bias for the distance. It is computed from the "
        "model’s own scores."
        if opened.measured
        else "An edit subtracts a penalty that grows with the distance between the two tokens."
    )
    return {"scale": scale, "added": added, "mask": _of_the_mask(opened, allowed)}


def _of_the_mask(opened: WeightBreakdown, allowed: np.ndarray) -> str:
    """Whether this query can attend to this key, and why."""
    query, key, may = opened.query, opened.key, opened.allowed[opened.key]
    if allowed.all():
        return "Every token can attend to every token, so the row does not change."
    if sees_ahead(allowed):
        near = f"at most {plural(window_reach(allowed), 'position')} away"
        if may:
            return f"Token {query} can attend to token {key}, which is {near}. All others get −∞."
        return (
            f"Token {query} attends only to tokens {near}. The score of token {key} is −∞, so its "
            "weight is 0."
        )
    window = windowed(allowed)
    if may:
        far = ", and is within the window" if window else ""
        return (
            f"Token {query} can attend to token {key}, which does not come later{far}. "
            f"{'All others' if window else 'Later tokens'} get −∞."
        )
    if key < query:
        return (
            f"Token {key} is before the window: token {query} attends only to the last "
            f"{int(opened.allowed.sum())} tokens, including itself. The score is −∞ and the "
            "weight 0."
        )
    return (
        f"Causal mask: token {query} cannot attend to the later token {key}. The score is −∞ and "
        "the weight 0."
    )


def shapes_of(heads: int, n: int, m: int, d_v: int, d_model: int) -> tuple[str, str, str]:
    """The sizes in each of the three forms, in words: of so many heads with values of width d_v, n
    queries and m keys."""
    all_heads = plural(heads, "head")
    sheet = f"{all_heads}: A ({n} × {m}) · V ({m} × {d_v})"
    return (
        f"{all_heads} × {plural(m, 'key')}: sum of {plural(heads * m, 'vector')} of {d_model}",
        f"{sheet}; concatenated ({n} × {heads * d_v}) · W_O ({heads * d_v} × {d_model})",
        f"{sheet} · slice of W_O ({d_v} × {d_model}), summed",
    )


def verdict(found: OutputForms, label: str) -> str:
    """How far the three forms are apart, in Markdown; `label` is the token's, already literal."""
    n, top = len(found.by_head), largest_component(found)
    text = (
        f"The maximum difference of the three formulas at **{label}**, over all {n} numbers, is "
        f"**{say(found.max_difference, 2)}**. The largest number is {say(top, 3)}."
    )
    if found.own is None:
        return text
    return (
        f"{text} The maximum difference from the model’s own output, in 32 bits, is "
        f"{say(found.own.max_difference, 2)}."
    )


def memory_said(now: int, longest: int, then: int) -> str:
    """What a recording weighs in bytes, and what one of the longest text that the model reads
    would."""
    here, most = (say(each / 1e6, 2) for each in (now, then))
    return (
        f"One recording of about {here} MB contains all of this, so another cell needs no new "
        f"forward pass. At {longest} tokens a recording takes {most} MB."
    )
