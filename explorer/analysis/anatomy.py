"""One cell of one attention, opened down to its vectors: from q and k to what the head wrote into the stream.

Every number is computed in 64 bits from what was recorded: q, k, v, the mask, and the model's W_O. So each step follows from the one
before it, and where the model's own 32-bit figure is known it stands beside it.

Axes as in `models/recording.py`; d_head is the width of q and k, and of v where that is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from operator import truediv

import numpy as np

from explorer.analysis.numbers import MINUS, enough, power
from models.recording import Attention, Edit, Recording

MOST_ROWS = 6  # keys whose share of the sum is shown one by one
OFF = 1e-4  # how far a recorded score may be from q . k / divisor, in units of |q| |k|, before something else must have been added
Outputs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Own:
    """A figure of the model beside ours: the largest |ours - the model's| among `size` numbers; `value` is the model's where it is one number."""

    apart: float
    value: float | None = None


@dataclass(frozen=True, eq=False)
class Cell:
    """How one weight comes about, and what it brings. All arrays are 64-bit.

    q, k (d_head) of the query and the key. Over the keys: dots = q . k, added (what the model adds beside: 0, or a penalty on distance),
    scores = dots / divisor + added, allowed, exponentials = e^(score - largest) and 0 where not allowed, total their sum, softmax =
    exponentials / total, weights: the softmax, or even ones under an edit (`evened`). v (key, d_head); z = sum of weights x v, (d_head).
    `scaled_by` is the edit that changed the divisor. `measured`: True where `added` is no known rule but read from the recorded scores.
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
        """e^score of the cell and the row's sum of them, nothing subtracted; None where that is too large for a number."""
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
) -> Cell:
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
    divisor, scaled_by = _divisor(recording, attention, layer)
    added, measured = _added(recording, attention, head, query, dots / divisor, recorded, room)
    scores = dots / divisor + added
    masked = np.where(allowed, scores, -np.inf)
    largest = float(masked.max())
    exponentials = np.exp(masked - largest)
    total = float(exponentials.sum())
    softmax = exponentials / total
    evened = _of_head(recording, "UniformHead", attention, layer, head)
    weights = softmax if evened is None else allowed / allowed.sum()
    pattern = attention.pattern[layer, head, query].astype(np.float64)
    return Cell(
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


def has_vectors(attention: Attention) -> bool:
    """False for a recording whose model gives no q, k and v, so that there is nothing to open."""
    return bool(attention.q.shape[-1] and attention.k.shape[-1] and attention.v.shape[-1])


def _divisor(recording: Recording, attention: Attention, layer: int) -> tuple[float, Edit | None]:
    """What scores are divided by, and the edit that says so, if any."""
    if (edit := _of_layer(recording, "ScaledBy", layer)) is not None:
        return float(edit.divisor), edit
    if (edit := _of_layer(recording, "WithoutScale", layer)) is not None:
        return 1.0, edit
    return 1 / float(attention.scale[layer]), None


def _added(
    recording: Recording,
    attention: Attention,
    head: int,
    query: int,
    scaled: np.ndarray,
    recorded: np.ndarray,
    room: float,
) -> tuple[np.ndarray, bool]:
    """What is added to the scaled scores (key), and whether it had to be read from the recorded ones."""
    positions = [edit for edit in recording.edits if type(edit).__name__ == "OtherPositions"]
    added = np.zeros(len(scaled))
    if positions and positions[-1].to == "distance" and attention.query == attention.key:
        n_head = attention.q.shape[1]
        added = -(2.0 ** (-8.0 * (head + 1) / n_head)) * np.abs(
            query - np.arange(len(scaled))
        )  # ALiBi
    if np.abs(scaled + added - recorded).max() <= room * 10 + OFF * np.abs(added).max():
        return added, False
    return recorded - scaled, True


def _of_layer(recording: Recording, kind: str, layer: int) -> Edit | None:
    """The last edit of that kind for a layer."""
    return next(
        (
            edit
            for edit in reversed(recording.edits)
            if type(edit).__name__ == kind and edit.layer in (None, layer)
        ),
        None,
    )


def _of_head(
    recording: Recording, kind: str, attention: Attention, layer: int, head: int
) -> Edit | None:
    """The last edit of that kind for a head."""
    where = attention.name, layer, head
    return next(
        (
            edit
            for edit in reversed(recording.edits)
            if type(edit).__name__ == kind and (edit.attention, edit.layer, edit.head) == where
        ),
        None,
    )


def largest_products(opened: Cell, most: int = 3) -> tuple[int, ...]:
    """The dimensions of the largest |q x k|, largest first."""
    return tuple(int(at) for at in np.argsort(-np.abs(opened.products), kind="stable")[:most])


def rows_of_sum(opened: Cell) -> tuple[int, ...]:
    """The keys whose share of z is shown one by one: those of the largest weights, and always the cell's own, in the order of the text."""
    best = [int(at) for at in np.argsort(-opened.weights, kind="stable")[:MOST_ROWS]]
    if opened.key not in best:
        best[-1] = opened.key
    return tuple(sorted(best))


# ---- what was written ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Written:
    """What the heads of a layer wrote at one query, taken apart.

    q and z (head, d_head), z as W_O reads it; `set_by` the edit that set each head's z, None where none did. by_head (head, d_model): z through
    the head's slice of W_O; bias (d_model); total (d_model), their sum. shares (head + 1), the bias last: what each adds along the total,
    part . total / |total|^2, signed, 1 in all (NaN where nothing was written). lengths (head + 1): |part|.
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
) -> Written | None:
    """What a layer's heads wrote at a query. outputs: W_O cut by head, (layer, head, d_head, d_model), and its bias (layer, d_model).

    None where an edit took a head's z from another text: then it is not in the recording.
    """
    heads = range(attention.q.shape[1])
    if any(_of_head(recording, "PatchHead", attention, layer, head) for head in heads):
        return None
    found = [_z_of(recording, attention, layer, head, query) for head in heads]
    z = np.stack([vector for vector, _ in found])
    w_o, bias = outputs[0][layer].astype(np.float64), outputs[1][layer].astype(np.float64)
    by_head = np.stack([vector @ each for vector, each in zip(z, w_o)])
    total = by_head.sum(axis=0) + bias
    parts = np.concatenate((by_head, bias[None]))
    square = float(total @ total)
    shares = parts @ total / square if square > 0 else np.full(len(parts), np.nan)
    recorded = wrote(recording, attention, layer)
    own = None if recorded is None else Own(float(np.abs(total - recorded[query]).max()))
    q = attention.q[layer, :, query].astype(np.float64)
    return Written(
        q,
        z,
        tuple(edit for _, edit in found),
        by_head,
        bias,
        total,
        shares,
        np.linalg.norm(parts, axis=1),
        own,
    )


def _z_of(
    recording: Recording,
    attention: Attention,
    layer: int,
    head: int,
    query: int,
) -> tuple[np.ndarray, Edit | None]:
    """A head's z at a query as W_O reads it, and the edit that set it."""
    if (edit := _of_head(recording, "ZeroHead", attention, layer, head)) is not None:
        return np.zeros(attention.v.shape[-1]), edit
    if (edit := _of_head(recording, "MeanHead", attention, layer, head)) is not None:
        return attention.pattern[layer, head].mean(axis=0, dtype=np.float64) @ attention.v[
            layer, head
        ].astype(np.float64), edit
    return cell(recording, attention, layer, head, query, 0).z, None


def wrote(recording: Recording, attention: Attention, layer: int) -> np.ndarray | None:
    """What an attention wrote into its stream, (query, d_model), as recorded; None for a model that does not show it."""
    stream = recording.stream(attention.query)
    site = f"{layer}.{'attn' if attention.query == attention.key else 'cross'}.wrote"
    patched = any(
        type(edit).__name__ == "PatchSite" and edit.site == site for edit in recording.edits
    )
    return stream.at(site).astype(np.float64) if site in stream.sites and not patched else None


# ---- three forms --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Forms:
    """Attention's output at one query by three routes, each (d_model), and the largest difference between any two of them.

    per_position: the sum over keys, one weighted value after another, each through its head's slice of W_O. concatenated: all rows at once,
    Z = A V, the heads side by side, then W_O whole. by_head: A V W_O head by head, added up. own: the largest difference to the model's own.
    """

    per_position: np.ndarray
    concatenated: np.ndarray
    by_head: np.ndarray
    apart: float
    own: Own | None


def forms(
    recording: Recording, attention: Attention, layer: int, query: int, outputs: Outputs
) -> Forms:
    """The three forms of the same output, from the recorded weights and values. outputs as in `written`."""
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
        type(edit).__name__ in ("ZeroHead", "MeanHead", "PatchHead")
        and (edit.attention, edit.layer) == (attention.name, layer)
        for edit in recording.edits
    )
    recorded = None if set_by_edit else wrote(recording, attention, layer)
    return Forms(
        *three,
        float(np.ptp(three, axis=0).max()),
        None if recorded is None else Own(float(np.abs(by_head - recorded[query]).max())),
    )


def top_of(found: Forms) -> float:
    """The largest |number| of the three outputs, for one scale of colour."""
    return float(
        max(np.abs(each).max() for each in (found.per_position, found.concatenated, found.by_head))
    )


def shapes_of(attention: Attention, d_model: int) -> tuple[str, str, str]:
    """The sizes in each form, in words."""
    heads, n, m, d_v = attention.v.shape[1], *attention.allowed.shape, attention.v.shape[-1]
    keys, all_heads = f"{m} {'key' if m == 1 else 'keys'}", f"{heads} heads"
    return (
        f"{all_heads} × {keys}: {heads * m:,} vectors of {d_model}, added up one by one",
        f"{all_heads}: A ({n} × {m}) · V ({m} × {d_v}); side by side ({n} × {heads * d_v}) · W_O ({heads * d_v} × {d_model})",
        f"{all_heads}: A ({n} × {m}) · V ({m} × {d_v}) · slice of W_O ({d_v} × {d_model}), added up",
    )


def verdict(found: Forms, label: str) -> str:
    """How far the three forms are apart, in Markdown; `label` is the token's, already literal."""
    n, top = len(found.by_head), top_of(found)
    text = f"At **{label}**, over all {n} numbers of the output, the three differ by at most **{say(found.apart, 2)}**, where numbers reach {say(top, 3)}: it is one sum in three orders."
    if found.own is None:
        return text
    return f"{text} The model’s own output, in 32 bits, is at most {say(found.own.apart, 2)} away."


# ---- as it is told ------------------------------------------------------------------------------------------------


def say(value: float, figures: int = 4) -> str:
    """A number in so many figures, very large and very small ones as a power of ten."""
    return power(float(value), figures)


def say_weight(value: float) -> str:
    """A weight in four figures; in six where four would make all of it out of almost all."""
    return say(value, 6 if 0.99995 <= value < 1 else 4)


def in_short(opened: Cell, done: Written | None) -> tuple[str, ...]:
    """The whole way in a few lines of Markdown."""
    at = opened.key

    def full(value: float) -> str:
        return say(float(value), 6)

    softmax = full(opened.softmax[at])
    if opened.plain is not None:
        part, total = enough(softmax, truediv, *opened.plain, least=6, write=power)
        score = enough(part, exp, float(opened.scores[at]), least=6, write=power)[0]
    else:
        score = full(opened.scores[at])
        part, total = enough(
            softmax, truediv, opened.exponentials[at], opened.total, least=6, write=power
        )
    dot, plus = enough(
        score,
        lambda dot, plus: dot / opened.divisor + plus,
        float(opened.dots[at]),
        float(opened.added[at]),
        least=6,
        write=power,
    )
    added = (
        f" {'−' if plus[0] == MINUS else '+'} {plus.lstrip(MINUS)}" if opened.added.any() else ""
    )
    lines = [
        f"q · k = **{dot}**, {len(opened.q)} products added up",
        f"score = {dot} / {dividing(opened)}{added} = **{score}**",
    ]
    if not opened.allowed[at]:
        lines.append("not allowed: **−∞** takes the score’s place, and exp(−∞) = 0 is the weight")
    elif opened.plain is not None:
        lines.append(f"softmax = exp({score}) / Σ exp = {part} / {total} = **{softmax}**")
    else:
        lines.append(f"softmax, the largest score subtracted = {part} / {total} = **{softmax}**")
    if opened.evened is not None:
        lines.append(f"an edit decides the weight: **{full(opened.weights[at])}**")
    lines.append(
        f"so much of the value v is taken; all keys’ shares add up to z, of length {say(float(np.linalg.norm(opened.z)))}"
    )
    if done is not None:
        share = done.shares[opened.head]
        of_all = (
            "" if np.isnan(share) else f", **{say(share, 3)}** of what all heads and the bias wrote"
        )
        lines.append(
            f"through W_O the head writes a vector of length **{say(done.lengths[opened.head])}**{of_all}"
        )
    return tuple(lines)


def reasons(opened: Cell, masks: bool) -> dict[str, object]:
    """Sentences for the steps: on the scale, on what was added, and on the mask."""
    width = len(opened.q)
    if opened.scaled_by is not None:
        scale = f"An edit decides the divisor: {opened.scaled_by}."
    elif opened.divisor == 1 and width != 1:
        scale = "This model does not scale its scores."
    elif not np.isclose(opened.divisor, sqrt(width)):
        scale = f"Divided by {say(opened.divisor)}, this model’s own scale, where the paper divides by √d_head = √{width} = {say(sqrt(width))}."
    else:
        scale = f"Divided by √d_head = √{width} = {say(opened.divisor)}: sums of {width} products spread wider than single numbers, and a softmax of large scores is all or nothing."
    added = (
        "Something is added that is no part of q · k, such as a bias for the distance; it is read from the model’s own scores."
        if opened.measured
        else "An edit takes away a penalty that grows with the distance between the two tokens."
    )
    if not masks:
        mask = "In this attention every token may look at every token, so the row goes on as it is."
    elif opened.allowed[opened.key]:
        mask = f"Token {opened.query} may look at token {opened.key}: it does not come later. Later tokens get −∞."
    else:
        mask = f"Token {opened.key} comes after token {opened.query}, and a token may not look ahead: −∞, which the softmax makes 0."
    return {"scale": scale, "added": added, "mask": mask, "masks": masks}


def facts(
    opened: Cell,
    done: Written | None,
    queries: Sequence[str],
    keys: Sequence[str],
    why: Mapping[str, str],
) -> dict[str, object]:
    """The story's plain values for the browser, infinities and NaN as None.

    queries, keys: what the tokens are called. why: sentences on the scale, on what was added, on the mask, and on what is missing.
    """
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
        "best": list(largest_products(opened)),
        "dot": float(opened.dots[at]),
        "divisor": opened.divisor,
        "dividing": dividing(opened),
        "scaleWhy": why["scale"],
        "added": float(opened.added[at]) if opened.added.any() else None,
        "addedWhy": why["added"],
        "score": float(opened.scores[at]),
        "masks": bool(why["masks"]),
        "maskWhy": why["mask"],
        "allowed": bool(opened.allowed[at]),
        "nAllowed": int(opened.allowed.sum()),
        "largest": opened.largest,
        "largestAt": int(np.where(opened.allowed, opened.scores, -np.inf).argmax()),
        "exponential": float(opened.exponentials[at]),
        "total": opened.total,
        "plain": opened.plain,
        "softmax": float(opened.softmax[at]),
        "weight": float(opened.weights[at]),
        "evened": None if opened.evened is None else str(opened.evened),
        "vLength": float(np.linalg.norm(opened.v[at])),
        "rows": list(rows),
        "rowWeights": [float(opened.weights[row]) for row in rows],
        "rest": len(keys) - len(rows),
        "zLength": float(np.linalg.norm(opened.z)),
        "set": None if edited is None else str(edited),
        "own": {
            "score": [opened.own_score.value, opened.own_score.apart],
            "weight": [opened.own_weight.value, opened.own_weight.apart],
            "wrote": None if done is None or done.own is None else done.own.apart,
        },
        "wrote": None if done is None else _told(done, head),
        "missing": why["missing"],
    }


def _told(done: Written, head: int) -> dict[str, object]:
    names = [*(f"head {each}" for each in range(len(done.by_head))), "bias of W_O"]
    shares = [None if np.isnan(share) else float(share) for share in done.shares]
    parts = [
        {"name": name, "share": share, "length": float(length), "chosen": at == head}
        for at, (name, share, length) in enumerate(zip(names, shares, done.lengths))
    ]
    return {
        "length": float(done.lengths[head]),
        "all": done.length,
        "share": shares[head],
        "parts": parts,
    }


def dividing(opened: Cell) -> str:
    """What the score is divided by, as it stands in the formula."""
    if opened.scaled_by is None and np.isclose(opened.divisor, sqrt(len(opened.q))):
        return f"√{len(opened.q)}"
    return f"{opened.divisor:g}"


def vectors(opened: Cell, done: Written | None) -> dict[str, np.ndarray]:
    """The story's vectors for the browser, under the names that its pictures know them by."""
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


# ---- tables and files ---------------------------------------------------------------------------------------------


def tables(
    opened: Cell, done: Written | None, keys: Sequence[str]
) -> dict[str, dict[str, Sequence]]:
    """The numbers behind every step, as named tables of named columns."""
    share = opened.weights[opened.key] * opened.v[opened.key]
    made = {
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


# ---- memory -------------------------------------------------------------------------------------------------------


def memory(recording: Recording, n: int) -> int:
    """Bytes of the arrays of a recording like this one, were each of its streams n tokens long: states, q, k, v, scores, weights, mask."""
    total = sum(
        len(stream.sites) * n * stream.resid.shape[-1] * stream.resid.itemsize
        for stream in recording.streams
    )
    for attention in recording.attention:
        layers, heads = attention.pattern.shape[:2]
        widths = sum(
            each.shape[-1] * each.itemsize for each in (attention.q, attention.k, attention.v)
        )
        total += (
            layers
            * heads
            * (n * widths + n * n * (attention.scores.itemsize + attention.pattern.itemsize))
            + n * n * attention.allowed.itemsize
        )
    return total


def memory_said(recording: Recording) -> str:
    """What this recording weighs, and what one of the longest text that the model reads would."""
    longest = recording.model.n_positions
    now = max(len(stream.tokens) for stream in recording.streams)
    return f"All of this is read from one recording, about {say(memory(recording, now) / 1e6, 2)} MB, with no new forward pass for another cell. At {longest} tokens a recording takes {say(memory(recording, longest) / 1e6, 2)} MB."
