"""The cells of an attention that speak for what its heads are called, and what its sinks take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models import relations
from models.recording import Attention, Recording

FIRST = "the first token"  # what a share of the sink is called where that token is no special one
MOST = 3  # cells of a head


class Evidence(NamedTuple):
    """One cell that speaks for a name: query and key position and the weight between them."""

    query: int
    key: int
    weight: float


def shares_of(
    recording: Recording, attention: Attention, mask: np.ndarray
) -> list[tuple[tuple[str, float], ...]]:
    """What each head, layer by layer, gives to each token that is a sink, on average over the rows
    of that relation, whose `mask` (query, key) it is: ("[CLS]", 0.3)."""
    stream, n_rows = recording.stream(attention.key), mask.any(axis=1).sum()
    places: dict[str, list[int]] = {}
    for key in np.flatnonzero(mask.any(axis=0)).tolist():
        places.setdefault(stream.tokens[key] if stream.special[key] else FIRST, []).append(key)
    found = []
    for label, keys in places.items():
        only = np.zeros_like(mask)
        only[:, keys] = mask[:, keys]
        share = relations.mass(attention.pattern, only).sum(axis=-1) / n_rows
        found.append([(label, each) for each in share.ravel().tolist()])
    return list(zip(*found))


def evidence_of(
    pattern: np.ndarray, masks: np.ndarray, best: Sequence[int]
) -> list[tuple[Evidence, ...]]:
    """For each head, layer by layer, the strongest cells (query, key) of the relation it is named
    after, the `best` of masks (relation, query, key), -1 for none: one for each query at most,
    strongest first."""
    heads, named = pattern.reshape(-1, *pattern.shape[2:]), np.array(best)
    found: list[tuple[Evidence, ...]] = [()] * len(heads)
    at_once = pattern.size <= relations.AT_ONCE
    for some in [named >= 0] if at_once else [named == one for one in set(best) - {-1}]:
        which = np.flatnonzero(some)
        if at_once:
            held = np.where(masks[named[which]], heads[which], -1.0)
            keys = None
        else:
            keys, real = _keys_of(masks[named[which[0]]])
            held = heads[which[:, None, None], np.arange(len(keys))[:, None], keys]
            held = np.where(real, held, -1.0)
        columns, weights = held.argmax(axis=-1), held.max(axis=-1)
        rows = np.argsort(-weights, axis=-1, kind="stable")[:, :MOST]
        beside = np.arange(len(which))[:, None]
        columns, weights = columns[beside, rows], weights[beside, rows]
        cells = (rows, columns if keys is None else keys[rows, columns], weights)
        for at, one in zip(which.tolist(), zip(*(each.tolist() for each in cells))):
            found[at] = tuple(Evidence(*cell) for cell in zip(*one) if cell[2] >= 0)
    return found


def _keys_of(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row's masked keys in order, (query, most of a row), and which entries are one."""
    real = np.arange(mask.sum(axis=1).max()) < mask.sum(axis=1)[:, None]
    keys = np.zeros(real.shape, int)
    keys[real] = np.nonzero(mask)[1]
    return keys, real
