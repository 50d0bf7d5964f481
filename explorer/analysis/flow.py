"""Attention followed down to the input, Abnar & Zuidema 2020, "Quantifying Attention Flow in
Transformers": rollout, the product of the layers, and flow, the most that can run through them as
through pipes.

Axis legend as in `models/recording.py`; everything is computed in float64 from a Recording.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.recording import Attention

TINY = 1e-12  # what rounding may leave of an edge or a node
# Work of a flow, in cells of all the graphs that are solved side by side: one row is computed up to
# MOST_OF_A_ROW, all rows up to MOST_OF_ALL.
MOST_OF_A_ROW, MOST_OF_ALL = 8_000_000, 3_000_000
BATCH = 400_000  # cells that are worked on at once: what the processor's memory cache holds


def mixed(attention: Attention) -> np.ndarray:
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
    """The product of `mixed` from the first layer to `upto` (None: the last), (query, key). Rows
    sum to 1."""
    layers = mixed(attention)[: None if upto is None else upto + 1]
    product = layers[0]
    for layer in layers[1:]:
        product = layer @ product
    return product


def flow_work(attention: Attention, upto: int | None = None) -> tuple[int, int]:
    """Cells of the graphs behind one row of `flow` and behind all rows."""
    n = attention.pattern.shape[-1]
    row = n**3 * (attention.pattern.shape[0] if upto is None else upto + 1)
    return row, row * n


def flow(attention: Attention, queries: Sequence[int], upto: int | None = None) -> np.ndarray:
    """The attention flow (query of `queries`, key): the most that can flow from each input token to
    each of these tokens after layer `upto`.

    The graph has a node for every token before the first layer and after each layer; an edge
    carries at most its weight in `mixed`.
    """
    layers = mixed(attention)[: None if upto is None else upto + 1]
    n = layers.shape[-1]
    pairs = np.array([(query, key) for query in queries for key in range(n)])
    size = max(1, BATCH // layers.size)
    values = [maximum_flow(layers, *pairs[at : at + size].T) for at in range(0, len(pairs), size)]
    return np.concatenate(values).reshape(len(queries), n)


def alone(attention: Attention, query: int, upto: int | None = None) -> np.ndarray:
    """The flow to one token alone, (query, key): the other rows are 0."""
    made = np.zeros(attention.pattern.shape[2:])
    made[query] = flow(attention, [query], upto)[0]
    return made


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
    room = np.broadcast_to(
        middle[:-1], (count, *middle[:-1].shape)
    ).copy()  # of the edges from level to level, downwards
    sent = np.zeros_like(room)
    to_sink = layers[0].T[bottoms].copy()
    excess = np.zeros((count, len(middle), n))
    excess[:, -1] = middle[-1][tops]
    arrived, going = np.zeros(count), np.arange(count)
    while len(going):
        distance = _distances(room, sent, to_sink)
        alive = ((excess > TINY) & (distance < np.inf)).any(axis=(1, 2))
        if not alive.all():
            room, sent, to_sink = room[alive], sent[alive], to_sink[alive]
            excess, distance, going = excess[alive], distance[alive], going[alive]
        if len(going):
            arrived[going] += _push(room, sent, to_sink, excess, distance)
    return arrived


def _distances(room: np.ndarray, sent: np.ndarray, to_sink: np.ndarray) -> np.ndarray:
    """Edges to the sink along which something can still be pushed, (graph, level, node); infinite
    where there is no way."""
    open_down, open_up = (room > TINY).astype(np.float32), (sent > TINY).astype(np.float32)
    distance = np.full((room.shape[0], room.shape[1] + 1, room.shape[-1]), np.inf)
    front = np.zeros(distance.shape, bool)
    front[:, 0] = to_sink > TINY
    at = 1
    while front.any():
        distance[front] = at
        near = np.zeros(front.shape, bool)
        here = front.astype(np.float32)
        near[:, 1:] |= (open_down @ here[:, :-1, :, None])[..., 0] > 0
        near[:, :-1] |= (here[:, 1:, None, :] @ open_up)[..., 0, :] > 0
        front, at = near & np.isinf(distance), at + 1
    return distance


def _push(
    room: np.ndarray,
    sent: np.ndarray,
    to_sink: np.ndarray,
    excess: np.ndarray,
    distance: np.ndarray,
) -> np.ndarray:
    """Push every excess one edge nearer to the sink, from the farthest nodes to the nearest; what
    arrived there, (graph). Changes its arguments."""
    for at in range(int(distance[distance < np.inf].max()), 1, -1):
        for level in np.flatnonzero((distance == at).any(axis=(0, 2))):
            held = np.where(distance[:, level] == at, excess[:, level], 0)
            if level > 0 and held.any():
                moved = _share(
                    held,
                    np.where(distance[:, level - 1] == at - 1, 1, 0)[:, None, :]
                    * room[:, level - 1],
                )
                room[:, level - 1] -= moved
                sent[:, level - 1] += moved
                excess[:, level - 1] += moved.sum(axis=1)
                excess[:, level] -= (given := moved.sum(axis=2))
                held = held - given
            if level < excess.shape[1] - 1 and (held > TINY).any():
                moved = _share(
                    held,
                    np.where(distance[:, level + 1] == at - 1, 1, 0)[:, None, :]
                    * sent[:, level].swapaxes(1, 2),
                )
                room[:, level] += moved.swapaxes(1, 2)
                sent[:, level] -= moved.swapaxes(1, 2)
                excess[:, level + 1] += moved.sum(axis=1)
                excess[:, level] -= moved.sum(axis=2)
    moved = np.minimum(np.maximum(excess[:, 0], 0), to_sink)
    to_sink -= moved
    excess[:, 0] -= moved
    return moved.sum(axis=1)


def _share(held: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Fill edges (graph, from, to) one after another with what the nodes hold (graph, from)."""
    before = np.cumsum(room, axis=2) - room
    return np.clip(held[:, :, None] - before, 0, room)
