"""The panels on the softmax of one head: the mask that is added before it, its gradient where it is
saturated, and the mean of the values that it weighs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import numpy as np

from explorer.analysis import consistency, soft_lookup
from explorer.figures.formatting import (
    MINUS,
    Written,
    decimals_apart,
    fixed,
    hundredths,
    plural,
    power,
    word_in_sentence,
)
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Facts,
    Frame,
    Matrix,
    Steps,
    Strip,
    Strips,
    truncation_note,
    window,
)
from explorer.figures.kinds import matrix as matrix_values
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import (
    FirstAttention,
    LookupHead,
    LookupLayer,
    LookupQuery,
    Selection,
    expect_vectors,
    select,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.runtime.run import Run

CONCEPT = "softmax"
WIDE = 100  # a score from which on it is written without decimals
N_WRITTEN = 5  # tokens whose scores are written in cells for the back row
N_KEYS = 7  # keys of a row that are drawn one by one
N_VALUES = 4  # values that are drawn one by one
MASKED = f"{MINUS}∞"


# ---- the mask ------------------------------------------------------------------------------------


@spec.panel
def mask(
    run: Run,
    layer: LookupLayer = OPENS,
    head: LookupHead = OPENS,
    token: LookupQuery = OPENS,
    attention: FirstAttention = OPENS,
) -> Panel:
    """The scores of a head with the mask added, −∞ where a query may not attend, and the weights
    that the softmax makes of them, each written in its cell, around one query.

    Raises ValueError for what is not there and for a model without scores.
    """
    selection = select(run, layer, head, token, attention)
    layer, head, token = selection.at
    expect_vectors(selection)
    words, of = sentences(CONCEPT, "mask"), selection.attention
    allowed = selection.allowed
    key = selection.strongest
    rows = window(allowed.shape[0], (token, key), N_WRITTEN)
    columns = window(allowed.shape[1], (key,), N_WRITTEN) if selection.is_across else rows
    cells = np.ix_(rows, columns)
    n_masked = int((~allowed).sum())
    numbers = {"masked": Written.count(n_masked), "weight": selection.weight(key)}
    slots = {
        **selection.slots,
        **{"n": numbers["masked"], "cells": f"{allowed.size:,}", "model": selection.model},
        "key": selection.axes.keys[key],
        "weight": numbers["weight"],
    }
    marks = ((int(np.flatnonzero(rows == token)[0]), int(np.flatnonzero(columns == key)[0]), ""),)
    scores = of.scores[layer, head].astype(np.float64)[cells]
    weights = of.pattern[layer, head].astype(np.float64)[cells]
    visible = allowed[cells]
    note = truncation_note(len(rows), allowed.shape[0])

    def grid(title: str, values: np.ndarray, texts: list[str], ends: tuple[float, float]) -> Matrix:
        return Matrix(
            title=title,
            note=note,
            rows=tuple(selection.axes.rows[at] for at in rows),
            columns=tuple(selection.axes.keys[at] for at in columns),
            values=values,
            low=ends[0],
            high=ends[1],
            marks=marks,
            sides=("query", "key"),
            words=tuple(texts),
            bold=np.zeros(values.shape),
        )

    texts = [
        _score_text(float(score)) if may else MASKED
        for score, may in zip(scores.ravel(), visible.ravel())
    ]
    written = [
        _cell_text(float(weight)) if may else "0"
        for weight, may in zip(weights.ravel(), visible.ravel())
    ]
    name = "masked" if n_masked else "open"
    return Panel(
        title=words("title"),
        finding=words(f"finding_{name}", **slots),
        figures=(
            grid(words("before"), matrix_values(scores, visible), texts, _ends(scores[visible])),
            grid(words("after"), weights, written, (0.0, 1.0)),
        ),
        table=_cells(selection),
        details=words.lines(f"details_{name}", **slots),
        caption=(words("caption", **slots),),
        file=f"L{layer}H{head}-mask",
        formulas=("mask", "softmax"),
        focus=("M", "M_ij"),
        numbers=numbers,
    )


def _score_text(score: float) -> str:
    """A score in few letters: one decimal, none where it is large. A small one is written as 0."""
    text = f"{score:.{1 if abs(score) < WIDE else 0}f}".replace("-", MINUS)
    return text.lstrip(MINUS) if not score or float(f"{score:.1f}") == 0 else text


def _cell_text(weight: float) -> str:
    """A weight in two decimals, in few letters also where it is nearly 0 or 1: "<.01"."""
    text = hundredths(weight)
    return text.replace(" 0.", ".") if text[0] in "<>" else text


def _ends(scores: np.ndarray) -> tuple[float, float]:
    """The ends of a scale for scores, in tenths."""
    low, high = float(scores.min(initial=0)), float(scores.max(initial=0))
    return np.floor(10 * low) / 10, np.ceil(10 * high) / 10 or 1.0


def _cells(selection: Selection) -> spec.Columns:
    """Every cell of a head: its score, what the mask adds, and its weight."""
    of, at = selection.attention, (selection.layer, selection.head)
    allowed = selection.allowed
    query, key = np.indices(allowed.shape)
    return {
        "query": query.ravel(),
        "key": key.ravel(),
        "score": of.scores[at].astype(np.float64).ravel(),
        "mask": np.where(allowed, "0", MASKED).ravel(),
        "weight": of.pattern[at].astype(np.float64).ravel(),
    }


# ---- one row -----------------------------------------------------------------------------------


Added = Annotated[
    float, Choice((0.0, 3.0), "Added to every score", name="score_added", help="to each of the row")
]


@spec.panel
def row(
    run: Run,
    layer: LookupLayer = OPENS,
    head: LookupHead = OPENS,
    token: LookupQuery = OPENS,
    added: Added = 0.0,
    attention: FirstAttention = OPENS,
) -> Panel:
    """One query's scores and the weights that the softmax makes of them, also where the same number
    is `added` to every score.

    Raises ValueError for what is not there and for a model without scores.
    """
    selection = select(run, layer, head, token, attention)
    expect_vectors(selection)
    words, of, at = sentences(CONCEPT, "row"), selection.attention, selection.at
    allowed = np.flatnonzero(selection.allowed[selection.query])
    scores = of.scores[at].astype(np.float64) + added
    sink = of.sink_scores[(*at,)]
    weights = of.pattern[at].astype(np.float64)
    after = soft_lookup.tempered_softmax(scores, selection.allowed[selection.query], 1.0, sink)
    key = selection.strongest
    listed = np.sort(allowed[np.argsort(-weights[allowed], kind="stable")][:N_KEYS])
    now = lambda each: hundredths(float(after[each]))
    write = lambda each: f"{hundredths(float(weights[each]))} → {now(each)}" if added else now(each)
    rows = [
        BarRow(
            selection.axes.keys[each],
            (after[each], scores[each]),
            (write(each), fixed(scores[each])),
            selected=each == key,
            outline=weights[each] if added else None,
        )
        for each in listed.tolist()
    ]
    if rest := len(allowed) - len(listed):
        left = [float(1 - each[listed].sum()) for each in (weights, after)]
        text = " → ".join(hundredths(max(0.0, each)) for each in left[: 2 if added else 1])
        rows.append(BarRow(plural(rest, "other"), (max(0.0, left[1]), 0.0), (text, ""), key=None))
    numbers = {"weight": selection.weight(key)}
    slots = {
        **{**selection.slots, "key": selection.axes.keys[key], "c": f"{added:g}"},
        **{"weight": numbers["weight"], "after": now(key)},
    }
    return Panel(
        title=words("title"),
        finding=words("finding_added" if added else "finding", **slots),
        figures=(
            Bars(
                columns=(words("weights"), words("scores_added" if added else "scores", **slots)),
                rows=tuple(rows),
            ),
        ),
        table={
            "key": allowed,
            "score": scores[allowed],
            "weight": after[allowed],
        },
        details=words.lines("details"),
        caption=(words("caption", **slots),),
        file=f"L{selection.layer}H{selection.head}-row-q{selection.query}",
        formulas=("shifted",) if added else ("softmax",),
        numbers=numbers,
    )


# ---- saturation ----------------------------------------------------------------------------------


def gradient(weights: np.ndarray) -> float:
    """The sum of a (1 − a) over a row of weights: the sum of the slopes of every weight along its
    own score."""
    return float((weights * (1 - weights)).sum())


@spec.panel
def saturation(
    run: Run,
    layer: LookupLayer = OPENS,
    head: LookupHead = OPENS,
    token: LookupQuery = OPENS,
    attention: FirstAttention = OPENS,
) -> Panel:
    """One query's softmax with the scale and without, and below each the gradient that is left.

    Raises ValueError for what is not there, for a model without scores, and for one that does not
    divide them.
    """
    selection = select(run, layer, head, token, attention)
    layer, head, token = selection.at
    expect_vectors(selection)
    words, of = sentences(CONCEPT, "saturation"), selection.attention
    scale, allowed = float(of.scale[layer]), selection.allowed[token]
    if np.isclose(scale, 1):
        raise ValueError(words("unscaled", model=selection.model))
    if scale > 1:
        raise ValueError(words("enlarged", factor=power(scale, 3)))
    scores = of.scores[selection.at].astype(np.float64)
    dots = of.k[layer, head].astype(np.float64) @ of.q[selection.at].astype(np.float64)
    sink = of.sink_scores[(*selection.at,)]
    scaled = soft_lookup.tempered_softmax(scores, allowed, 1.0, sink)
    raw = soft_lookup.tempered_softmax(scores + dots * (1 - scale), allowed, 1.0, sink)
    width = of.q.shape[-1]
    usual = np.isclose(scale, width**-0.5)
    left, gone = gradient(scaled), gradient(raw)
    key = int(raw.argmax())
    decimals = decimals_apart(float(scaled[key]), float(raw[key]))
    write = partial(hundredths, decimals=decimals or 2)
    numbers = {
        "softmax_gradient": Written.by(power, left),
        "softmax_gradient_unscaled": Written.by(power, gone),
    }
    slots: dict[str, Any] = {
        **selection.slots,
        **{"root": f"√{width}" if usual else power(1 / scale, 3), "key": selection.axes.keys[key]},
        **dict(zip(("left", "gone"), (each.text for each in numbers.values()))),
        **{"with": write(float(scaled[key])), "without": write(float(raw[key]))},
        **{"some": power(float(np.delete(scaled, key).sum()), 2)},
        **{"few": power(float(np.delete(raw, key).sum()), 2)},
    }
    finding = "finding" if gone < left else "finding_kept"
    if decimals is None:
        finding = "finding_full"
    return Panel(
        title=words("title"),
        finding=words(finding if allowed.sum() > 1 else "one_key", **slots),
        figures=(_rows(selection, scaled, raw, slots, write),),
        table={
            "key": np.flatnonzero(allowed),
            "q · k": dots[allowed],
            "weight, scaled": scaled[allowed],
            "weight, not scaled": raw[allowed],
        },
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file=f"L{layer}H{head}-saturation-q{token}",
        formulas=("score", "softmax-gradient"),
        numbers=numbers,
    )


def _rows(
    selection: Selection,
    scaled: np.ndarray,
    raw: np.ndarray,
    slots: Mapping[str, Any],
    write: Callable[[float], str],
) -> Bars:
    """The keys of a row by weight, in the order of the text, with the scale and without, all bars
    on one scale, and the gradients below them."""
    words = sentences(CONCEPT, "saturation")
    of, at, both = selection.attention, selection.at, (scaled, raw)
    order = np.argsort(-of.pattern[at].astype(np.float64), kind="stable")
    listed = np.sort(order[selection.allowed[selection.query][order]][:N_KEYS])
    others = np.setdiff1d(np.flatnonzero(selection.allowed[selection.query]), listed)
    cells = [(selection.axes.keys[key], [key]) for key in map(int, listed)]
    cells += [(plural(len(others), "other"), others.tolist())] if len(others) else []
    rows = []
    for label, keys in cells:
        pair = [float(each[keys].sum()) for each in both]
        rows.append(BarRow(label, (pair[0], pair[1]), (write(pair[0]), write(pair[1]))))
    gradients = gradient(scaled), gradient(raw)
    texts = slots["left"], slots["gone"]
    rows.append(BarRow(words("gradient"), gradients, texts, selected=True))
    return Bars(
        columns=(words("scaled", **slots), words("raw", **slots)),
        rows=tuple(rows),
        high=1.0,
        shared=True,
        mark=(len(rows) - 1, 1),
    )


# ---- the mean of the values ----------------------------------------------------------------------


SUM_STEP = Choice(name="mean_step", help="the values alone, or times their weights")


@spec.panel
def combination(
    run: Run,
    layer: LookupLayer = OPENS,
    head: LookupHead = OPENS,
    token: LookupQuery = OPENS,
    step: Annotated[str, SUM_STEP] = "",
    attention: FirstAttention = OPENS,
) -> Panel:
    """A head's output as a convex combination: the values of the keys, then each times its weight,
    and their sum z.

    step: what is on show, "Values" or "Weighted"; the first where there is none of that name.
    Raises ValueError for what is not there, for a model without values, and under an edit of what
    the head gives.
    """
    selection = select(run, layer, head, token, attention)
    layer, head, token = selection.at
    expect_vectors(selection)
    words, of = sentences(CONCEPT, "combination"), selection.attention
    for edit in consistency.head_edits(selection.recording, of.name, layer, head):
        raise ValueError(words("edited", edit=edit))
    allowed = np.flatnonzero(selection.allowed[token])
    weights = of.pattern[selection.at].astype(np.float64)
    values = of.v[layer, head].astype(np.float64)
    order = allowed[np.argsort(-weights[allowed], kind="stable")]
    listed, others = np.sort(order[:N_VALUES]), order[N_VALUES:]
    z = weights @ values
    key = int(order[0])
    total = fixed(float(weights.sum()))
    numbers = {
        "sum_of_weights": Written(weights.sum(), total),
        "weight": selection.weight(key),
    }
    slots = {
        **selection.slots,
        **{"n": len(allowed), "d": values.shape[1], "total": total},
        **{"key": selection.axes.keys[key], "weight": numbers["weight"]},
        "others": len(others),
    }
    rest = (weights[others], values[others]) if len(others) else None
    frames = (
        Frame(words("values"), (_facts(total), _values(selection, listed, rest))),
        Frame(words("weighted"), (_facts(total), _weighted(selection, listed, rest, z))),
    )
    return Panel(
        title=words("title"),
        finding=words("finding" if len(allowed) > 1 else "finding_one", **slots),
        figures=(Steps.opened(frames, step, "mean_step"),),
        table={
            "key": allowed,
            "token": [selection.axes.keys[at] for at in allowed],
            "weight": weights[allowed],
            "|v|": np.linalg.norm(values[allowed], axis=1),
            "|a v|": weights[allowed] * np.linalg.norm(values[allowed], axis=1),
        },
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file=f"L{layer}H{head}-combination-q{token}",
        formulas=("weighted-sum", "rows"),
        focus=("a_ij", "v_j"),
        numbers=numbers,
    )


Rest = tuple[np.ndarray, np.ndarray] | None


def _facts(total: str) -> Facts:
    return Facts(facts=((total, sentences(CONCEPT, "combination")("total")),))


def _values(selection: Selection, listed: np.ndarray, rest: Rest) -> Strips:
    """The values as they are, with the weights that they will have."""
    words = sentences(CONCEPT, "combination")
    weights = selection.attention.pattern[selection.at].astype(np.float64)
    values = selection.attention.v[selection.layer, selection.head].astype(np.float64)
    strips = [
        Strip(
            words("value", key=word_in_sentence(selection.axes.keys[key])),
            values[key],
            f"× {hundredths(float(weights[key]))}",
        )
        for key in map(int, listed)
    ]
    if rest is not None:
        share = float(rest[0].sum())
        mean = rest[0] @ rest[1] / (share or 1.0)
        label = plural(len(rest[0]), "other")
        strips.append(Strip(label, mean, f"× {hundredths(min(share, 1.0))}"))
    high = max(float(np.abs(each.values).max()) for each in strips) or 1.0
    return Strips(words("of_keys"), strips=tuple(strips), high=high)


def _weighted(selection: Selection, listed: np.ndarray, rest: Rest, z: np.ndarray) -> Strips:
    """The values times their weights, faded to what each brings, and their sum."""
    words = sentences(CONCEPT, "combination")
    weights = selection.attention.pattern[selection.at].astype(np.float64)
    values = selection.attention.v[selection.layer, selection.head].astype(np.float64)
    strips = [
        Strip(
            words(
                "part",
                weight=hundredths(float(weights[key])),
                key=word_in_sentence(selection.axes.keys[key]),
            ),
            weights[key] * values[key],
            sign="+" if at else "",
            weight=float(weights[key]),
        )
        for at, key in enumerate(map(int, listed))
    ]
    if rest is not None:
        label = plural(len(rest[0]), "other")
        strips.append(Strip(label, rest[0] @ rest[1], sign="+", weight=float(rest[0].sum())))
    strips.append(Strip("z", z, sign="=", selected=True))
    used = values[listed] if rest is None else np.vstack((values[listed], rest[1]))
    high = float(np.abs(used).max()) or 1.0  # that of the values: a strip fades to its weight
    return Strips(words("times_weights"), strips=tuple(strips), high=high)
