"""How often luck does as much."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

REMEMBERED = 64  # events of a lot
SMALL = 17  # numbers of a group up to which all products are made at once


def at_least(chance: np.ndarray) -> np.ndarray:
    """The probability that at least k of n independent events happen, for k from 0 to n. chance
    (..., n) of each: several lots of events at once, the shorter ones filled up with events of
    chance 0."""
    n = chance.shape[-1]
    # How many of each group of events happen, (..., group, number): groups join two by two.
    exactly = np.stack((1 - chance, chance), axis=-1) if n else np.ones((*chance.shape[:-1], 1, 1))
    while exactly.shape[-2] > 1:
        if exactly.shape[-2] % 2:
            never = np.zeros((*exactly.shape[:-2], 1, exactly.shape[-1]))
            never[..., 0] = 1
            exactly = np.concatenate((exactly, never), axis=-2)
        exactly = _together(exactly[..., ::2, :], exactly[..., 1::2, :])
    exactly = exactly[..., 0, : n + 1]
    return np.minimum(exactly[..., ::-1].cumsum(-1)[..., ::-1], 1)


def of_lots(chances: Sequence[np.ndarray]) -> np.ndarray:
    """The same of each of some lots of events, (lot, k); lots of so few events as a sentence has
    are remembered, since most come again with every sentence of as many words."""
    most = max(map(len, chances), default=0)
    if most > REMEMBERED:
        filled = np.zeros((len(chances), most))
        for row, chance in zip(filled, chances):
            row[: len(chance)] = chance
        return at_least(filled)
    made = np.zeros((len(chances), most + 1))
    for row, chance in zip(made, chances):
        row[: len(chance) + 1] = _lot(chance.tobytes())
    return made


@lru_cache(maxsize=512)
def _lot(chance: bytes) -> np.ndarray:
    return at_least(np.frombuffer(chance))


def _together(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How many happen of two groups, (..., number), by how many of each do."""
    size = one.shape[-1]
    if size <= SMALL:
        # Every row of products a place further than the one before, and then their columns' sums.
        rows = np.zeros((*one.shape, 2 * size))
        np.multiply(one[..., None], other[..., None, :], out=rows[..., :size])
        flat = rows.reshape(*one.shape[:-1], -1)[..., :-size]
        return np.add.reduce(flat.reshape(*one.shape, 2 * size - 1), axis=-2)
    made = np.zeros((*one.shape[:-1], 2 * size - 1))
    for at in range(size):
        made[..., at : at + size] += one[..., at : at + 1] * other
    return made
