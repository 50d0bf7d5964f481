"""A feed-forward network in numbers: which activation it has, and how few of its units make how
much of what it writes."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, pi, sqrt

import numpy as np

from models.contract.results import FFNActivations

ROUNDING = 1e-4  # of the largest activation
HALF = 0.5  # of the update


def relu(x: np.ndarray) -> np.ndarray:
    """The larger of x and 0."""
    return np.maximum(x, 0)


def gelu(x: np.ndarray) -> np.ndarray:
    """x times the share of a normal distribution below it."""
    return x * 0.5 * (1 + np.vectorize(erf)(x / sqrt(2)))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """GELU by its approximation with tanh."""
    return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))


def silu(x: np.ndarray) -> np.ndarray:
    """x times its logistic function."""
    return x / (1 + np.exp(-np.clip(x, -500, 500)))


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ReLU": relu,
    "GELU": gelu,
    "GELU (tanh)": gelu_tanh,
    "SiLU": silu,
}
GATES = {"SwiGLU": "SiLU", "GeGLU": "GELU", "ReGLU": "ReLU"}  # the activation of a gate


def activation_of(hidden: FFNActivations) -> str:
    """The name of the activation that makes `after` of `before`; "" for another one, and for units
    that are multiplied by a gate."""
    before, after = hidden.before.astype(np.float64), hidden.after.astype(np.float64)
    limit = ROUNDING * max(float(np.abs(after).max(initial=0)), 1e-6)
    return next(
        (
            name
            for name, function in ACTIVATIONS.items()
            if np.abs(function(before) - after).max(initial=0) <= limit
        ),
        "",
    )


def shares_of_update(hidden: FFNActivations) -> np.ndarray:
    """The share of each unit, and last the bias's, in what the FFN writes (d_ff + 1): the
    projection of each part on the sum, over the sum's own; zeros where it writes nothing."""
    parts = np.vstack((hidden.writes, hidden.bias)).astype(np.float64)
    update = parts.sum(axis=0)
    return parts @ update / (update @ update or 1.0)


def fewest_for(shares: np.ndarray) -> int | None:
    """Least number of some shares, the largest first, that make up HALF of the whole; None where
    all of them together do not."""
    reached = np.flatnonzero(np.cumsum(np.sort(shares)[::-1]) >= HALF)
    return int(reached[0]) + 1 if len(reached) else None
