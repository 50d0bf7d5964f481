"""How often luck does as much."""

from __future__ import annotations

import numpy as np


def at_least(chance: np.ndarray) -> np.ndarray:
    """The probability that at least k of n independent events happen, for k from 0 to n. chance (n)
    of each."""
    exactly = np.zeros(len(chance) + 1)
    exactly[0] = 1
    for one in chance.tolist():
        more = exactly[:-1] * one
        exactly *= 1 - one
        exactly[1:] += more
    return np.minimum(exactly[::-1].cumsum()[::-1], 1)
