"""Summaries over all heads: averages, weights against lengths of outputs, and each head's output.

Axis legend as in `models/contract/recording.py`. Everything is computed in float64 from a
Recording; W_O, cut by head (layer, head, d_head, d_model), and its bias (layer, d_model) are passed
in where a number needs them.

Source of the lengths of weighted values: Kobayashi et al. 2020, "Attention is Not Only a
Weight"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import consistency
from models.contract.cancellation import expect_wanted
from models.contract.recording import Attention, Recording

# Attention followed down to the input, Abnar & Zuidema 2020, "Quantifying Attention Flow in
# Transformers": rollout, the product of the layers, and flow, the most that can run through them
# as through pipes.

TINY = 1e-12  # what rounding may leave of an edge or a node
MAX_FLOW_WORK = 3_000_000  # cells of all the graphs of a flow, which are solved side by side
BATCH = 400_000  # cells that are worked on at once: what the processor's memory cache holds


def attention_with_residual(attention: Attention) -> np.ndarray:
    """(mean over heads + identity) / 2 of every layer, (layer, query, key): what rollout and flow
    go by. Rows sum to 1.

    Raises ValueError for an attention between two streams, which has no identity.
    """
    if attention.query != attention.key:
        raise ValueError(
            f"{attention.name} goes from one stream to another and has no identity to add"
        )
    mean_of_heads = attention.pattern.mean(axis=1, dtype=np.float64)
    return (
        mean_of_heads / mean_of_heads.sum(axis=-1, keepdims=True) + np.eye(mean_of_heads.shape[-1])
    ) / 2


def rollout(attention: Attention, upto: int | None = None) -> np.ndarray:
    """The product of `attention_with_residual` from the first layer to `upto` (None: the last),
    (query, key). Rows sum to 1."""
    layers = attention_with_residual(attention)[: None if upto is None else upto + 1]
    product = layers[0]
    for layer in layers[1:]:
        product = layer @ product
    return product


def allowed_cells(attention: Attention, through: bool, layer: int | None) -> np.ndarray:
    """The cells (query, key) that an aggregate can reach: of one layer, of any, or through all
    layers up to one, along which every token also keeps itself."""
    if not through:
        return attention.reachable if layer is None else attention.allowed[layer]
    upto = attention.allowed[: None if layer is None else layer + 1]
    reached = np.eye(upto.shape[-1], dtype=np.float32)
    for mask in upto:
        reached = np.minimum((mask | np.eye(len(mask), dtype=bool)).astype(np.float32) @ reached, 1)
    return reached > 0


def flow_work(attention: Attention, upto: int | None = None) -> int:
    """Cells of the graphs behind all rows of `flow`."""
    n = attention.pattern.shape[-1]
    return n**4 * (attention.pattern.shape[0] if upto is None else upto + 1)


def flow(attention: Attention, queries: Sequence[int], upto: int | None = None) -> np.ndarray:
    """The attention flow (query of `queries`, key): the most that can flow from each input token to
    each of these tokens after layer `upto`.

    The graph has a node for every token before the first layer and after each layer; an edge
    carries at most its weight in `attention_with_residual`.
    """
    layers = attention_with_residual(attention)[: None if upto is None else upto + 1]
    n = layers.shape[-1]
    pairs = np.array([(query, key) for query in queries for key in range(n)])
    size = max(1, BATCH // layers.size)
    values = [maximum_flow(layers, *pairs[at : at + size].T) for at in range(0, len(pairs), size)]
    return np.concatenate(values).reshape(len(queries), n)


def maximum_flow(layers: np.ndarray, tops: np.ndarray, bottoms: np.ndarray) -> np.ndarray:
    """The maximum flow from node tops[i] above the last layer to node bottoms[i] below the first,
    for every i: (i).

    layers (layer, upper node, lower node): capacities of the edges. Push-relabel (Goldberg & Tarjan
    1988) with exact distances: what the source can give is pushed towards the sink along shortest
    ways with room left, flow already sent being taken back where that is the way, until whatever is
    left can no longer reach the sink. All graphs are solved side by side.
    """
    if len(layers) == 1:
        return layers[0][tops, bottoms]
    count, middle, n = len(tops), layers[1:], layers.shape[-1]
    # Nodes that count: those between two layers, (graph, level, node). The lowest reach the sink by
    # one edge each.
    # Of the edges from level to level, downwards.
    capacity = np.broadcast_to(middle[:-1], (count, *middle[:-1].shape)).copy()
    sent = np.zeros_like(capacity)
    to_sink = layers[0].T[bottoms].copy()
    excess = np.zeros((count, len(middle), n))
    excess[:, -1] = middle[-1][tops]
    flow_values, active = np.zeros(count), np.arange(count)
    while len(active):
        expect_wanted()
        distance = _distances(capacity, sent, to_sink)
        alive = ((excess > TINY) & (distance < np.inf)).any(axis=(1, 2))
        if not alive.all():
            capacity, sent, to_sink = capacity[alive], sent[alive], to_sink[alive]
            excess, distance, active = excess[alive], distance[alive], active[alive]
        if len(active):
            flow_values[active] += _push(capacity, sent, to_sink, excess, distance)
    return flow_values


def _distances(capacity: np.ndarray, sent: np.ndarray, to_sink: np.ndarray) -> np.ndarray:
    """Edges to the sink along which something can still be pushed, (graph, level, node); infinite
    where there is no way."""
    open_down, open_up = (capacity > TINY).astype(np.float32), (sent > TINY).astype(np.float32)
    distance = np.full((capacity.shape[0], capacity.shape[1] + 1, capacity.shape[-1]), np.inf)
    front = np.zeros(distance.shape, bool)
    front[:, 0] = to_sink > TINY
    at = 1
    while front.any():
        distance[front] = at
        near = np.zeros(front.shape, bool)
        reached = front.astype(np.float32)
        near[:, 1:] |= (open_down @ reached[:, :-1, :, None])[..., 0] > 0
        near[:, :-1] |= (reached[:, 1:, None, :] @ open_up)[..., 0, :] > 0
        front, at = near & np.isinf(distance), at + 1
    return distance


def _push(
    capacity: np.ndarray,
    sent: np.ndarray,
    to_sink: np.ndarray,
    excess: np.ndarray,
    distance: np.ndarray,
) -> np.ndarray:
    """Push every excess one edge nearer to the sink, from the farthest nodes to the nearest; what
    arrived there, (graph). Changes its arguments."""
    for at in range(int(distance[distance < np.inf].max()), 1, -1):
        for level in np.flatnonzero((distance == at).any(axis=(0, 2))):
            supply = np.where(distance[:, level] == at, excess[:, level], 0)
            if level > 0 and supply.any():
                moved = _fill_edges(
                    supply,
                    np.where(distance[:, level - 1] == at - 1, 1, 0)[:, None, :]
                    * capacity[:, level - 1],
                )
                capacity[:, level - 1] -= moved
                sent[:, level - 1] += moved
                excess[:, level - 1] += moved.sum(axis=1)
                excess[:, level] -= (pushed := moved.sum(axis=2))
                supply = supply - pushed
            if level < excess.shape[1] - 1 and (supply > TINY).any():
                moved = _fill_edges(
                    supply,
                    np.where(distance[:, level + 1] == at - 1, 1, 0)[:, None, :]
                    * sent[:, level].swapaxes(1, 2),
                )
                capacity[:, level] += moved.swapaxes(1, 2)
                sent[:, level] -= moved.swapaxes(1, 2)
                excess[:, level + 1] += moved.sum(axis=1)
                excess[:, level] -= moved.sum(axis=2)
    moved = np.minimum(np.maximum(excess[:, 0], 0), to_sink)
    to_sink -= moved
    excess[:, 0] -= moved
    return moved.sum(axis=1)


def _fill_edges(supply: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Fill edges (graph, from, to) one after another with what the nodes hold (graph, from)."""
    before = np.cumsum(capacity, axis=2) - capacity
    return np.clip(supply[:, :, None] - before, 0, capacity)


MIN_WEIGHT = 0.5  # of a row's weight
MAX_SHARE = 0.25  # of the lengths of what the row's head writes


# ---- of weights alone ----


def mean(attention: Attention, layer: int | None = None) -> np.ndarray:
    """The mean weight (query, key) over the heads of one layer, or of all."""
    pattern = attention.pattern if layer is None else attention.pattern[layer : layer + 1]
    return pattern.mean(axis=(0, 1), dtype=np.float64)


def largest(attention: Attention, layer: int | None = None) -> np.ndarray:
    """The largest weight (query, key) that any head of one layer, or of all, gives."""
    pattern = attention.pattern if layer is None else attention.pattern[layer : layer + 1]
    return pattern.max(axis=(0, 1)).astype(np.float64)


# ---- of what is written ----


def value_lengths(attention: Attention, w_o: np.ndarray, layer: int) -> np.ndarray:
    """|v W_O| of every head of a layer and every key, (head, key): the length of f(x), what a head
    would write of a token at weight 1."""
    return np.linalg.norm(_projected_values(attention, w_o, layer), axis=-1)


def _projected_values(attention: Attention, w_o: np.ndarray, layer: int) -> np.ndarray:
    # (head, key, d_model)
    return attention.v[layer].astype(np.float64) @ w_o[layer].astype(np.float64)


def norms(
    attention: Attention, w_o: np.ndarray, layer: int | None = None, head: int | None = None
) -> np.ndarray:
    """|weight x f(x)|, (query, key): of one head; of a layer, all its heads' vectors added before
    the length is taken; of all layers, the mean of theirs."""
    if layer is None:
        return np.mean(
            [norms(attention, w_o, each) for each in range(len(attention.pattern))], axis=0
        )
    if head is not None:
        return attention.pattern[layer, head] * value_lengths(attention, w_o, layer)[head]
    through = _projected_values(attention, w_o, layer).swapaxes(0, 1)  # (key, head, d_model)
    gram = through @ through.swapaxes(1, 2)
    weights = attention.pattern[layer].astype(np.float64).transpose(2, 1, 0)  # (key, query, head)
    return np.sqrt(np.maximum(((weights @ gram) * weights).sum(-1), 0)).T


def row_shares(values: np.ndarray) -> np.ndarray:
    """Every row of (..., key) divided by its sum; a row of zeros stays one."""
    total = values.sum(axis=-1, keepdims=True)
    return values / np.where(total > 0, total, 1)


@dataclass(frozen=True)
class Disagreement:
    """A key that takes `weight` of a head's row and makes up `share` of the lengths of what the
    head writes there; both 0 to 1."""

    layer: int
    head: int
    query: int
    key: int
    weight: float
    share: float


@dataclass(frozen=True)
class Disagreements:
    """Rows in which a key takes at least MIN_WEIGHT of the weight. cells: those in which it makes
    up at most MAX_SHARE of the lengths, widest gap first. nearest: the one of them all with the
    widest gap, None where there is none. rows_in_all: how many rows were looked at."""

    rows_in_all: int
    cells: tuple[Disagreement, ...]
    nearest: Disagreement | None


def disagreements(attention: Attention, w_o: np.ndarray) -> Disagreements:
    """Disagreements between weights and lengths of weighted values, over all heads. Rows with one
    allowed key are left out."""
    cells, in_all = [], 0
    for layer in range(len(attention.pattern)):
        choosing = np.flatnonzero(attention.allowed[layer].sum(axis=1) > 1)
        weights = attention.pattern[layer][:, choosing].astype(np.float64)
        keys = weights.argmax(axis=-1)
        most = np.take_along_axis(weights, keys[..., None], -1)[..., 0]
        share = np.take_along_axis(
            row_shares(weights * value_lengths(attention, w_o, layer)[:, None, :]),
            keys[..., None],
            -1,
        )[..., 0]
        in_all += most.size
        cells += [
            Disagreement(
                layer,
                int(head),
                int(choosing[row]),
                int(keys[head, row]),
                float(most[head, row]),
                float(share[head, row]),
            )
            for head, row in zip(*np.nonzero(most >= MIN_WEIGHT))
        ]
    cells.sort(key=lambda cell: cell.share - cell.weight)
    return Disagreements(
        in_all,
        tuple(cell for cell in cells if cell.share <= MAX_SHARE),
        cells[0] if cells else None,
    )


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contribution of each head, at one token or on average over all: length (layer, head), and
    share (layer, head) of attention's output w = sum of w_h + b_O, by (w_h . w) / |w|^2, under 0
    for a head that writes against it. bias (layer): b_O's share; with it a layer's shares sum to
    1."""

    length: np.ndarray
    share: np.ndarray
    bias: np.ndarray


def contributions(
    recording: Recording,
    attention: Attention,
    outputs: tuple[np.ndarray, np.ndarray],
    query: int | None = None,
) -> Contributions:
    """The contributions of the heads at one query, or their mean over all queries. outputs: W_O cut
    by head, (layer, head, d_head, d_model), and b_O (layer, d_model)."""
    queries = slice(None) if query is None else slice(query, query + 1)
    length = consistency.head_norms(recording, attention, outputs)[..., queries]
    shares = consistency.head_shares(recording, attention, outputs)[..., queries]
    share = np.nan_to_num(shares).mean(-1)
    return Contributions(length.mean(-1), share[:, :-1], share[:, -1])


def output_share(recording: Recording, attention: Attention) -> float | None:
    """The length of what attention wrote, of that length and the residual's together, mean over
    tokens and layers; None where the model does not offer the sites. Rollout and flow assume 0.5.
    """
    stream = recording.stream(attention.query)
    place = "attn" if attention.query == attention.key else "cross"
    shares = []
    for before, wrote, _ in stream.writes():
        if wrote.split(".")[1:2] == [place] and wrote in stream.sites:
            x, w = (
                np.linalg.norm(stream.at(site).astype(np.float64), axis=-1)
                for site in (before, wrote)
            )
            shares.append(w / np.where(x + w > 0, x + w, 1))
    return float(np.mean(shares)) if shares else None


# ---- for the page ----


def row_sums(values: np.ndarray) -> tuple[float, float]:
    """The least and the largest sum of a row."""
    sums = values.sum(axis=-1)
    return float(sums.min()), float(sums.max())


def mean_share(part: np.ndarray, rows: np.ndarray) -> float:
    """The mean share of `part` (row) in the sums of rows (row); rows of zeros left out."""
    return float(np.mean(part[rows > 0] / rows[rows > 0])) if (rows > 0).any() else 0.0


def scale_maximum(values: np.ndarray, what: str) -> float:
    """The upper end of a picture's colour scale: 1 for a maximum of weights, else the largest
    number, without its sign, in the picture."""
    return 1.0 if what == "Max" else float(np.nanmax(np.abs(values), initial=0.0)) or 1.0


def extreme_heads(
    contributions: Contributions,
) -> tuple[tuple[int, int, float], int, tuple[int, int, float]]:
    """(layer, head, length) of the longest write, how many heads have a share under 0, and (layer,
    head, share) of the lowest."""
    longest, lowest = (
        np.unravel_index(at, contributions.length.shape)
        for at in (contributions.length.argmax(), contributions.share.argmin())
    )
    return (
        (int(longest[0]), int(longest[1]), float(contributions.length[longest])),
        int((contributions.share < 0).sum()),
        (int(lowest[0]), int(lowest[1]), float(contributions.share[lowest])),
    )


def layer_table(
    contributions: Contributions, measure: str
) -> tuple[np.ndarray, list[str], list[str]]:
    """(values (layer, column), names of the rows, names of the columns) of "Length" or of "Share",
    which has b_O as its last column."""
    values = (
        contributions.length
        if measure == "Length"
        else np.concatenate([contributions.share, contributions.bias[:, None]], axis=1)
    )
    columns = [f"head {head}" for head in range(contributions.length.shape[1])] + (
        [] if measure == "Length" else ["b_O"]
    )
    return values, [f"layer {layer}" for layer in range(len(values))], columns
