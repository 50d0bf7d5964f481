"""Decomposition of one weight of one attention: from q and k to the head's output in the stream.

Every number is computed in 64 bits from the recorded q, k, v, the mask, and the model's W_O. So
each step follows from the one before it, and where the model's own 32-bit figure is known it is
beside it.

Axes as in `models/contract/recording.py`; d_head is the width of q and k, and of v where that is
the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import consistency
from explorer.figures.csv import Cells
from models.contract.edits import Edit, PatchHead, edited, edits_at, place_of
from models.contract.recording import Attention, Recording

MOST_ROWS = 6  # keys whose share of the sum is shown one by one
# how far a recorded score may be from q . k / divisor, in units of |q| |k|, before something else
# must have been added
SCORE_TOLERANCE = 1e-4
Outputs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class WeightBreakdown:
    """Steps from q and k to one weight, and on to the head's output. All arrays are 64-bit.

    q, k (d_head) of the query and the key. Over the keys: dots = q . k, added (a term of the
    model's own: 0, or a penalty on distance), scores = dots / divisor + added, allowed,
    exponentials = e^(score - largest) and 0 where not allowed, total their sum with that of a
    learned sink's score, softmax = exponentials / total, weights: the softmax, or uniform ones
    under an edit (`uniform_edit`). v (key, d_head); z = sum of weights x v, (d_head).
    `divisor_edit` is the edit that changed the divisor. `measured`: True where `added` is no known
    rule but read from the recorded scores. score_error, weight_error: the largest difference to the
    recorded scores and weights."""

    layer: int
    head: int
    query: int
    key: int
    q: np.ndarray
    k: np.ndarray
    dots: np.ndarray
    divisor: float
    divisor_edit: Edit | None
    added: np.ndarray
    measured: bool
    scores: np.ndarray
    allowed: np.ndarray
    largest: float
    exponentials: np.ndarray
    total: float
    softmax: np.ndarray
    weights: np.ndarray
    uniform_edit: Edit | None
    sink_score: float
    v: np.ndarray
    z: np.ndarray
    score_error: float
    weight_error: float

    @property
    def products(self) -> np.ndarray:
        """q x k by dimension, (d_head); their sum is the dot product."""
        return self.q * self.k

    @property
    def plain(self) -> tuple[float, float] | None:
        """e^score of the cell and the row's sum of them, nothing subtracted; None where that is too
        large for a number."""
        with np.errstate(over="ignore"):
            powers = np.where(self.allowed, np.exp(self.scores), 0)
            total = float(powers.sum() + np.exp(self.sink_score))
        return (float(powers[self.key]), total) if np.isfinite(total) and total > 0 else None


def cell(
    recording: Recording,
    attention: Attention,
    layer: int,
    head: int,
    query: int,
    key: int,
) -> WeightBreakdown:
    """The cell of a query and a key in a head, opened."""
    q = attention.q[layer, head, query].astype(np.float64)
    keys, v = (
        attention.k[layer, head].astype(np.float64),
        attention.v[layer, head].astype(np.float64),
    )
    recorded = attention.scores[layer, head, query].astype(np.float64)
    allowed = consistency.allowed_cells(recording, attention, layer, head)[query]
    dots = keys @ q
    tolerance = SCORE_TOLERANCE * max(
        float(np.linalg.norm(q)) * float(np.linalg.norm(keys, axis=1).max()), 1e-30
    )
    divisor, divisor_edit = consistency.score_divisor(recording, attention, layer)
    added, measured = _score_bias(
        recording, attention, head, query, dots / divisor, recorded, tolerance
    )
    scores = dots / divisor + added
    masked = np.where(allowed, scores, -np.inf)
    sink_score = float(attention.sink_scores[layer, head, query])
    largest = max(float(masked.max()), sink_score)
    exponentials = np.exp(masked - largest)
    total = float(exponentials.sum() + np.exp(sink_score - largest))
    softmax = exponentials / total
    place = place_of(attention.name, layer, "pattern")
    weights = edited(softmax[None], recording.edits, place, head, allowed[None])[0]
    pattern = attention.pattern[layer, head, query].astype(np.float64)
    return WeightBreakdown(
        layer,
        head,
        query,
        key,
        q,
        keys[key],
        dots,
        divisor,
        divisor_edit,
        added,
        measured,
        scores,
        allowed,
        largest,
        exponentials,
        total,
        softmax,
        weights,
        next(iter(consistency.head_edits(recording, attention.name, layer, head, "pattern")), None),
        sink_score,
        v,
        weights @ v,
        float(np.abs(scores - recorded).max()),
        float(np.abs(weights - pattern).max()),
    )


def _score_bias(
    recording: Recording,
    attention: Attention,
    head: int,
    query: int,
    scaled: np.ndarray,
    recorded: np.ndarray,
    tolerance: float,
) -> tuple[np.ndarray, bool]:
    """The term added to the scaled scores (key), and whether it is inferred from the recorded
    ones."""
    added = -consistency.distance_penalty(recording, attention, head)[query]
    if (
        np.abs(scaled + added - recorded).max()
        <= tolerance * 10 + SCORE_TOLERANCE * np.abs(added).max()
    ):
        return added, False
    return recorded - scaled, True


def largest_weight_keys(breakdown: WeightBreakdown) -> tuple[int, ...]:
    """The keys whose share of z is shown one by one: those of the largest weights that the mask
    does not hide, and always the cell's own, in the order of the text."""
    order = np.argsort(-breakdown.weights, kind="stable")
    keys = order[breakdown.allowed[order]][:MOST_ROWS].tolist()
    if breakdown.key not in keys:
        keys[MOST_ROWS - 1 :] = [breakdown.key]
    return tuple(sorted(keys))


# ---- what was written ----


@dataclass(frozen=True, eq=False)
class HeadOutputs:
    """Outputs of a layer's heads at one query, decomposed.

    z (head, d_head) as W_O reads it; `z_edits` the edit that set each head's z, None where none
    did. by_head (head, d_model): z through the head's slice of W_O; bias (d_model); total
    (d_model), their sum. shares (head + 1), the bias last: each part's share along the total, part
    . total / |total|^2, signed, 1 in all (NaN for a zero total). lengths (head + 1): |part|. error:
    the largest difference to what the model wrote, None where that is not recorded."""

    z: np.ndarray
    z_edits: tuple[Edit | None, ...]
    by_head: np.ndarray
    bias: np.ndarray
    total: np.ndarray
    shares: np.ndarray
    lengths: np.ndarray
    error: float | None

    @property
    def length(self) -> float:
        """|total|."""
        return float(np.linalg.norm(self.total))


def head_outputs(
    recording: Recording,
    attention: Attention,
    layer: int,
    query: int,
    outputs: Outputs,
) -> HeadOutputs | None:
    """The outputs of a layer's heads at a query. outputs: W_O cut by head, (layer, head, d_head,
    d_model), and its bias (layer, d_model).

    None where an edit took a head's z from another text: then it is not in the recording."""
    heads = range(attention.q.shape[1])
    place = place_of(attention.name, layer, "z")
    set_by = tuple(
        next(iter(consistency.head_edits(recording, attention.name, layer, head)), None)
        for head in heads
    )
    if any(isinstance(edit, PatchHead) for edit in edits_at(recording.edits, place)):
        return None
    z = np.stack(
        [
            cell(recording, attention, layer, head, query, 0).z
            if edit is None
            else consistency.head_z(recording, attention, layer, head)[query]
            for head, edit in zip(heads, set_by)
        ]
    )
    w_o, bias = outputs[0][layer].astype(np.float64), outputs[1][layer].astype(np.float64)
    by_head = np.stack([vector @ projection for vector, projection in zip(z, w_o)])
    total = by_head.sum(axis=0) + bias
    parts = np.concatenate((by_head, bias[None]))
    square = float(total @ total)
    shares = parts @ total / square if square > 0 else np.full(len(parts), np.nan)
    recorded = consistency.attention_output(recording, attention, layer)
    return HeadOutputs(
        z,
        set_by,
        by_head,
        bias,
        total,
        shares,
        np.linalg.norm(parts, axis=1),
        None if recorded is None else float(np.abs(total - recorded[query]).max()),
    )


# ---- three forms ----


@dataclass(frozen=True, eq=False)
class OutputForms:
    """Attention's output at one query by three routes, each (d_model), and the largest difference
    between any two of them.

    per_position: the sum over keys, one weighted value after another, each through its head's slice
    of W_O. concatenated: all rows at once, Z = A V, the heads side by side, then W_O whole.
    by_head: A V W_O head by head, added up. error: as in `HeadOutputs`.
    """

    per_position: np.ndarray
    concatenated: np.ndarray
    by_head: np.ndarray
    max_difference: float
    error: float | None


def output_forms(
    recording: Recording, attention: Attention, layer: int, query: int, outputs: Outputs
) -> OutputForms:
    """The three forms of the same output, from the recorded weights and values. outputs as in
    `head_outputs`."""
    pattern, v = attention.pattern[layer].astype(np.float64), attention.v[layer].astype(np.float64)
    w_o, bias = outputs[0][layer].astype(np.float64), outputs[1][layer].astype(np.float64)
    per_position = bias.copy()
    for weights, values, projection in zip(pattern, v, w_o):
        for weight, value in zip(weights[query], values @ projection):
            per_position += weight * value
    z = pattern @ v  # (head, query, d_head): every row at once
    heads_concatenated = z.transpose(1, 0, 2).reshape(z.shape[1], -1)  # (query, head x d_head)
    concatenated = (heads_concatenated @ w_o.reshape(heads_concatenated.shape[1], -1) + bias)[query]
    by_head = bias + np.sum(
        [head_z[query] @ projection for head_z, projection in zip(z, w_o)], axis=0
    )
    routes = np.stack((per_position, concatenated, by_head))
    set_by_edit = edits_at(recording.edits, place_of(attention.name, layer, "z"))
    recorded = None if set_by_edit else consistency.attention_output(recording, attention, layer)
    return OutputForms(
        per_position,
        concatenated,
        by_head,
        float(np.ptp(routes, axis=0).max()),
        None if recorded is None else float(np.abs(by_head - recorded[query]).max()),
    )


def largest_component(outputs: OutputForms) -> float:
    """The largest |number| of the three outputs, for one scale of colour."""
    return float(
        max(
            np.abs(output).max()
            for output in (outputs.per_position, outputs.concatenated, outputs.by_head)
        )
    )


# ---- tables and files ----


def tables(
    breakdown: WeightBreakdown, outputs: HeadOutputs | None, keys: Sequence[str]
) -> dict[str, dict[str, Cells]]:
    """The numbers behind every step, as named tables of named columns."""
    weighted_value = breakdown.weights[breakdown.key] * breakdown.v[breakdown.key]
    result: dict[str, dict[str, Cells]] = {
        "Query and key": {
            "dimension": range(len(breakdown.q)),
            "q": breakdown.q,
            "k": breakdown.k,
            "q × k": breakdown.products,
        },
        "The row": {
            "key": range(len(keys)),
            "token": list(keys),
            "q · k": breakdown.dots,
            "score": breakdown.scores,
            "allowed": breakdown.allowed,
            "exp(score − largest)": breakdown.exponentials,
            "weight": breakdown.weights,
        },
        "Value and sum": {
            "dimension": range(len(breakdown.z)),
            "v": breakdown.v[breakdown.key],
            "weight × v": weighted_value,
            "z": breakdown.z,
        },
    }
    if breakdown.added.any():
        result["The row"]["added"] = breakdown.added
    if outputs is not None:
        set_to = outputs.z[breakdown.head]
        if outputs.z_edits[breakdown.head] is not None:
            result["Value and sum"]["z as the edit sets it"] = set_to
        result["Written"] = {
            "dimension": range(len(outputs.total)),
            "this head wrote": outputs.by_head[breakdown.head],
            "all heads and bias": outputs.total,
        }
        names = [*(f"head {head}" for head in range(len(outputs.by_head))), "bias of W_O"]
        result["Heads"] = {
            "part": names,
            "length": outputs.lengths,
            "share along the sum": outputs.shares,
        }
    return result


# ---- memory ----


def memory(recording: Recording, n: int) -> int:
    """Bytes of the arrays of a recording like this one, were each of its streams n tokens long:
    states, q, k, v, scores, weights, mask."""
    total = sum(
        len(stream.sites) * n * stream.resid.shape[-1] * stream.resid.itemsize
        for stream in recording.streams
    )
    for attention in recording.attention:
        layers, heads = attention.pattern.shape[:2]
        shared = attention.key_heads
        widths = sum(
            count * array.shape[-1] * array.dtype.itemsize
            for count, array in ((heads, attention.q), (shared, attention.k), (shared, attention.v))
        )
        cells = heads * (attention.scores.itemsize + attention.pattern.itemsize)
        total += layers * n * (widths + n * cells) + n * n * attention.allowed.itemsize
    return total
