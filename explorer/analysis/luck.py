"""How often luck does as much."""

from __future__ import annotations

import numpy as np


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


def _together(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How many happen of two groups, (..., number), by how many of each do."""
    size = one.shape[-1]
    made = np.zeros((*one.shape[:-1], 2 * size - 1))
    for at in range(size):
        made[..., at : at + size] += one[..., at : at + 1] * other
    return made
