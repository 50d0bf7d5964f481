"""How often luck does as much."""

from __future__ import annotations

import numpy as np


def at_least(chance: np.ndarray) -> np.ndarray:
    """The probability that at least k of n independent events happen, for k from 0 to n. chance (n) of each."""
    exactly = np.ones(1)
    for one in chance:
        exactly = np.append(exactly * (1 - one), 0) + np.append(0, exactly * one)
    return np.minimum(exactly[::-1].cumsum()[::-1], 1)
