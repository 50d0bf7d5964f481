"""One cell of one attention, opened down to its vectors: from q and k to what the head wrote into
the stream.

Every number is computed in 64 bits from what was recorded: q, k, v, the mask, and the model's W_O.
So each step follows from the one before it, and where the model's own 32-bit figure is known it
stands beside it.

Axes as in `models/recording.py`; d_head is the width of q and k, and of v where that is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import consistency
from explorer.analysis.csv import Cells
from models.edits import Edit, MeanHead, PatchHead, UniformHead, ZeroHead
from models.recording import Attention, Recording

MOST_ROWS = 6  # keys whose share of the sum is shown one by one
# how far a recorded score may be from q . k / divisor, in units of |q| |k|, before something else
# must have been added
OFF = 1e-4
Outputs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Own:
    """A figure of the model beside ours: the largest |ours - the model's| among `size` numbers;
    `value` is the model's where it is one number."""

    apart: float
    value: float | None = None


@dataclass(frozen=True, eq=False)
class WeightBreakdown:
    """How one weight comes about, and what it brings. All arrays are 64-bit.

    q, k (d_head) of the query and the key. Over the keys: dots = q . k, added (what the model adds
    beside: 0, or a penalty on distance), scores = dots / divisor + added, allowed, exponentials =
    e^(score - largest) and 0 where not allowed, total their sum, softmax = exponentials / total,
    weights: the softmax, or even ones under an edit (`evened`). v (key, d_head); z = sum of weights
    x v, (d_head). `scaled_by` is the edit that changed the divisor. `measured`: True where `added`
    is no known rule but read from the recorded scores.
    """

    attention: str
    layer: int
    head: int
    query: int
    key: int
    q: np.ndarray
    k: np.ndarray
    dots: np.ndarray
    divisor: float
    scaled_by: Edit | None
    added: np.ndarray
    measured: bool
    scores: np.ndarray
    allowed: np.ndarray
    largest: float
    exponentials: np.ndarray
    total: float
    softmax: np.ndarray
    weights: np.ndarray
    evened: Edit | None
    v: np.ndarray
    z: np.ndarray
    own_score: Own
    own_weight: Own

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
            total = float(powers.sum())
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
    allowed = attention.allowed[query]
    dots = keys @ q
    room = OFF * max(float(np.linalg.norm(q)) * float(np.linalg.norm(keys, axis=1).max()), 1e-30)
    divisor, scaled_by = consistency.divisor(recording, attention, layer)
    added, measured = _added(recording, attention, head, query, dots / divisor, recorded, room)
    scores = dots / divisor + added
    masked = np.where(allowed, scores, -np.inf)
    largest = float(masked.max())
    exponentials = np.exp(masked - largest)
    total = float(exponentials.sum())
    softmax = exponentials / total
    evened = consistency.of_head(recording, UniformHead, attention.name, (layer, head))
    weights = softmax if evened is None else allowed / allowed.sum()
    pattern = attention.pattern[layer, head, query].astype(np.float64)
    return WeightBreakdown(
        attention.name,
        layer,
        head,
        query,
        key,
        q,
        keys[key],
        dots,
        divisor,
        scaled_by,
        added,
        measured,
        scores,
        allowed,
        largest,
        exponentials,
        total,
        softmax,
        weights,
        evened,
        v,
        weights @ v,
        Own(float(np.abs(scores - recorded).max()), float(recorded[key])),
        Own(float(np.abs(weights - pattern).max()), float(pattern[key])),
    )


def _added(
    recording: Recording,
    attention: Attention,
    head: int,
    query: int,
    scaled: np.ndarray,
    recorded: np.ndarray,
    room: float,
) -> tuple[np.ndarray, bool]:
    """What is added to the scaled scores (key), and whether it had to be read from the recorded
    ones."""
    added = -consistency.penalty(recording, attention, head)[query]
    if np.abs(scaled + added - recorded).max() <= room * 10 + OFF * np.abs(added).max():
        return added, False
    return recorded - scaled, True


def largest_products(opened: WeightBreakdown, most: int = 3) -> tuple[int, ...]:
    """The dimensions of the largest |q x k|, largest first."""
    return tuple(int(at) for at in np.argsort(-np.abs(opened.products), kind="stable")[:most])


def rows_of_sum(opened: WeightBreakdown) -> tuple[int, ...]:
    """The keys whose share of z is shown one by one: those of the largest weights, and always the
    cell's own, in the order of the text."""
    best = [int(at) for at in np.argsort(-opened.weights, kind="stable")[:MOST_ROWS]]
    if opened.key not in best:
        best[-1] = opened.key
    return tuple(sorted(best))


# ---- what was written ----


@dataclass(frozen=True, eq=False)
class HeadOutputs:
    """What the heads of a layer wrote at one query, taken apart.

    q and z (head, d_head), z as W_O reads it; `set_by` the edit that set each head's z, None where
    none did. by_head (head, d_model): z through the head's slice of W_O; bias (d_model); total
    (d_model), their sum. shares (head + 1), the bias last: what each adds along the total, part .
    total / |total|^2, signed, 1 in all (NaN where nothing was written). lengths (head + 1): |part|.
    """

    q: np.ndarray
    z: np.ndarray
    set_by: tuple[Edit | None, ...]
    by_head: np.ndarray
    bias: np.ndarray
    total: np.ndarray
    shares: np.ndarray
    lengths: np.ndarray
    own: Own | None

    @property
    def length(self) -> float:
        """|total|."""
        return float(np.linalg.norm(self.total))


def written(
    recording: Recording,
    attention: Attention,
    layer: int,
    query: int,
    outputs: Outputs,
) -> HeadOutputs | None:
    """What a layer's heads wrote at a query. outputs: W_O cut by head, (layer, head, d_head,
    d_model), and its bias (layer, d_model).

    None where an edit took a head's z from another text: then it is not in the recording.
    """
    heads = range(attention.q.shape[1])
    name = attention.name
    if any(consistency.of_head(recording, PatchHead, name, (layer, head)) for head in heads):
        return None
    set_by = tuple(
        consistency.of_head(recording, ZeroHead, name, (layer, head))
        or consistency.of_head(recording, MeanHead, name, (layer, head))
        for head in heads
    )
    z = np.stack(
        [
            cell(recording, attention, layer, head, query, 0).z
            if edit is None
            else consistency.z(recording, attention, layer, head)[query]
            for head, edit in zip(heads, set_by)
        ]
    )
    w_o, bias = outputs[0][layer].astype(np.float64), outputs[1][layer].astype(np.float64)
    by_head = np.stack([vector @ each for vector, each in zip(z, w_o)])
    total = by_head.sum(axis=0) + bias
    parts = np.concatenate((by_head, bias[None]))
    square = float(total @ total)
    shares = parts @ total / square if square > 0 else np.full(len(parts), np.nan)
    recorded = consistency.wrote(recording, attention, layer)
    own = None if recorded is None else Own(float(np.abs(total - recorded[query]).max()))
    q = attention.q[layer, :, query].astype(np.float64)
    return HeadOutputs(
        q,
        z,
        set_by,
        by_head,
        bias,
        total,
        shares,
        np.linalg.norm(parts, axis=1),
        own,
    )


# ---- three forms ----


@dataclass(frozen=True, eq=False)
class Forms:
    """Attention's output at one query by three routes, each (d_model), and the largest difference
    between any two of them.

    per_position: the sum over keys, one weighted value after another, each through its head's slice
    of W_O. concatenated: all rows at once, Z = A V, the heads side by side, then W_O whole.
    by_head: A V W_O head by head, added up. own: the largest difference to the model's own.
    """

    per_position: np.ndarray
    concatenated: np.ndarray
    by_head: np.ndarray
    apart: float
    own: Own | None


def forms(
    recording: Recording, attention: Attention, layer: int, query: int, outputs: Outputs
) -> Forms:
    """The three forms of the same output, from the recorded weights and values. outputs as in
    `written`."""
    pattern, v = attention.pattern[layer].astype(np.float64), attention.v[layer].astype(np.float64)
    w_o, bias = outputs[0][layer].astype(np.float64), outputs[1][layer].astype(np.float64)
    per_position = bias.copy()
    for weights, values, each in zip(pattern, v, w_o):
        for weight, value in zip(weights[query], values @ each):
            per_position += weight * value
    z = pattern @ v  # (head, query, d_head): every row at once
    together = z.transpose(1, 0, 2).reshape(z.shape[1], -1)  # (query, head x d_head)
    concatenated = (together @ w_o.reshape(together.shape[1], -1) + bias)[query]
    by_head = bias + np.sum([each_z[query] @ each for each_z, each in zip(z, w_o)], axis=0)
    three = np.stack((per_position, concatenated, by_head))
    set_by_edit = any(
        isinstance(edit, (ZeroHead, MeanHead, PatchHead))
        and (edit.attention, edit.layer) == (attention.name, layer)
        for edit in recording.edits
    )
    recorded = None if set_by_edit else consistency.wrote(recording, attention, layer)
    return Forms(
        per_position,
        concatenated,
        by_head,
        float(np.ptp(three, axis=0).max()),
        None if recorded is None else Own(float(np.abs(by_head - recorded[query]).max())),
    )


def top_of(found: Forms) -> float:
    """The largest |number| of the three outputs, for one scale of colour."""
    return float(
        max(np.abs(each).max() for each in (found.per_position, found.concatenated, found.by_head))
    )


# ---- tables and files ----


def tables(
    opened: WeightBreakdown, done: HeadOutputs | None, keys: Sequence[str]
) -> dict[str, dict[str, Cells]]:
    """The numbers behind every step, as named tables of named columns."""
    share = opened.weights[opened.key] * opened.v[opened.key]
    made: dict[str, dict[str, Cells]] = {
        "Query and key": {
            "dimension": range(len(opened.q)),
            "q": opened.q,
            "k": opened.k,
            "q × k": opened.products,
        },
        "The row": {
            "key": range(len(keys)),
            "token": list(keys),
            "q · k": opened.dots,
            "score": opened.scores,
            "allowed": opened.allowed,
            "exp(score − largest)": opened.exponentials,
            "weight": opened.weights,
        },
        "Value and sum": {
            "dimension": range(len(opened.z)),
            "v": opened.v[opened.key],
            "weight × v": share,
            "z": opened.z,
        },
    }
    if opened.added.any():
        made["The row"]["added"] = opened.added
    if done is not None:
        set_to = done.z[opened.head]
        if done.set_by[opened.head] is not None:
            made["Value and sum"]["z as the edit sets it"] = set_to
        made["Written"] = {
            "dimension": range(len(done.total)),
            "this head wrote": done.by_head[opened.head],
            "all heads and bias": done.total,
        }
        names = [*(f"head {head}" for head in range(len(done.by_head))), "bias of W_O"]
        made["Heads"] = {"part": names, "length": done.lengths, "share along the sum": done.shares}
    return made


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
            many * each.shape[-1] * each.dtype.itemsize
            for many, each in ((heads, attention.q), (shared, attention.k), (shared, attention.v))
        )
        cells = heads * (attention.scores.itemsize + attention.pattern.itemsize)
        total += layers * n * (widths + n * cells) + n * n * attention.allowed.itemsize
    return total


# The story of a weight for the browser: plain values and vectors under the names that its
# pictures know them by.


def facts(
    opened: WeightBreakdown, done: HeadOutputs | None, queries: Sequence[str], keys: Sequence[str]
) -> dict[str, object]:
    """Plain values, infinities and NaN as None. queries, keys: what the tokens are called."""
    at, head = opened.key, opened.head
    rows = rows_of_sum(opened)
    edited = None if done is None else done.set_by[head]
    return {
        "query": {"at": opened.query, "label": queries[opened.query]},
        "key": {"at": at, "label": keys[at]},
        "labels": list(keys),
        "layer": opened.layer,
        "head": head,
        "d_v": len(opened.z),
        "divisor": opened.divisor,
        "adds": bool(opened.added.any()),
        "score": float(opened.scores[at]),
        "allowed": bool(opened.allowed[at]),
        "nAllowed": int(opened.allowed.sum()),
        "largest": opened.largest,
        "largestAt": int(np.where(opened.allowed, opened.scores, -np.inf).argmax()),
        "weight": float(opened.weights[at]),
        "rows": list(rows),
        "rowWeights": [float(opened.weights[row]) for row in rows],
        "rest": len(keys) - len(rows),
        "set": None if edited is None else str(edited),
        "own": {
            "score": [opened.own_score.value, opened.own_score.apart],
            "weight": [opened.own_weight.value, opened.own_weight.apart],
            "wrote": None if done is None or done.own is None else done.own.apart,
        },
        "wrote": None if done is None else _told(done, head),
    }


def _told(done: HeadOutputs, head: int) -> dict[str, object]:
    names = [*(f"head {each}" for each in range(len(done.by_head))), "bias of W_O"]
    shares = [None if np.isnan(share) else float(share) for share in done.shares]
    parts = [
        {"name": name, "share": share, "length": float(length), "chosen": at == head}
        for at, (name, share, length) in enumerate(zip(names, shares, done.lengths))
    ]
    return {"share": shares[head], "parts": parts}


def vectors(opened: WeightBreakdown, done: HeadOutputs | None) -> Mapping[str, np.ndarray]:
    """The vectors of its pictures: q, k, products (d_head); dots, scores, exponentials, weights,
    allowed (key); v, z, rest (d_v), shares (row, d_v); where something was written set (d_v), wrote
    and total (d_model)."""
    rows = rows_of_sum(opened)
    shares = opened.weights[list(rows), None] * opened.v[list(rows)]
    made = {
        "q": opened.q,
        "k": opened.k,
        "products": opened.products,
        "dots": opened.dots,
        "scores": opened.scores,
        "allowed": opened.allowed,
        "exponentials": opened.exponentials,
        "weights": opened.weights,
        "v": opened.v[opened.key],
        "shares": shares,
        "rest": opened.z - shares.sum(axis=0),
        "z": opened.z,
    }
    if done is not None:
        made |= {
            "set": done.z[opened.head],
            "wrote": done.by_head[opened.head],
            "total": done.total,
        }
    return made
