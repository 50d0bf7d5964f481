"""How often luck does as much."""

from __future__ import annotations

import numpy as np


def at_least(chance: np.ndarray) -> np.ndarray:
    """The probability that at least k of n independent events happen, for k from 0 to n. chance
    (..., n) of each: several lots of events at once, the shorter ones filled up with events of
    chance 0."""
    exactly = np.zeros((*chance.shape[:-1], chance.shape[-1] + 1))
    exactly[..., 0] = 1
    for one in np.moveaxis(chance, -1, 0)[..., None]:
        more = exactly[..., :-1] * one
        exactly *= 1 - one
        exactly[..., 1:] += more
    return np.minimum(exactly[..., ::-1].cumsum(-1)[..., ::-1], 1)
