"""Chance that luck alone does as much."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

MAX_CACHED_EVENTS = 64  # events of a lot
DIRECT_LIMIT = 17  # numbers of a group up to which all products are made at once


def tail_probabilities(probabilities: np.ndarray) -> np.ndarray:
    """The probability that at least k of n independent events happen, for k from 0 to n.
    probabilities (..., n) of each: several lots of events at once, the shorter ones filled up with
    events of chance 0."""
    n = probabilities.shape[-1]
    # How many of each group of events happen, (..., group, number): groups join two by two.
    pmf = (
        np.stack((1 - probabilities, probabilities), axis=-1)
        if n
        else np.ones((*probabilities.shape[:-1], 1, 1))
    )
    while pmf.shape[-2] > 1:
        if pmf.shape[-2] % 2:
            padding = np.zeros((*pmf.shape[:-2], 1, pmf.shape[-1]))
            padding[..., 0] = 1
            pmf = np.concatenate((pmf, padding), axis=-2)
        pmf = _convolve(pmf[..., ::2, :], pmf[..., 1::2, :])
    pmf = pmf[..., 0, : n + 1]
    return np.minimum(pmf[..., ::-1].cumsum(-1)[..., ::-1], 1)


def batched_tail_probabilities(groups: Sequence[np.ndarray]) -> np.ndarray:
    """The same of each of some lots of events, (lot, k); lots of so few events as a sentence has
    are remembered, since most come again with every sentence of as many words."""
    longest = max(map(len, groups), default=0)
    if longest > MAX_CACHED_EVENTS:
        padded = np.zeros((len(groups), longest))
        for row, probabilities in zip(padded, groups):
            row[: len(probabilities)] = probabilities
        return tail_probabilities(padded)
    tails = np.zeros((len(groups), longest + 1))
    for row, probabilities in zip(tails, groups):
        row[: len(probabilities) + 1] = _cached_tail(probabilities.tobytes())
    return tails


@lru_cache(maxsize=512)
def _cached_tail(encoded: bytes) -> np.ndarray:
    return tail_probabilities(np.frombuffer(encoded))


def _convolve(pmf_a: np.ndarray, pmf_b: np.ndarray) -> np.ndarray:
    """Distribution of the number that happen of two groups, (..., number), by how many of each
    do."""
    size = pmf_a.shape[-1]
    if size <= DIRECT_LIMIT:
        # Every row of products a place further than the one before, and then their columns' sums.
        rows = np.zeros((*pmf_a.shape, 2 * size))
        np.multiply(pmf_a[..., None], pmf_b[..., None, :], out=rows[..., :size])
        flat = rows.reshape(*pmf_a.shape[:-1], -1)[..., :-size]
        return np.add.reduce(flat.reshape(*pmf_a.shape, 2 * size - 1), axis=-2)
    pmf = np.zeros((*pmf_a.shape[:-1], 2 * size - 1))
    for at in range(size):
        pmf[..., at : at + size] += pmf_a[..., at : at + 1] * pmf_b
    return pmf
