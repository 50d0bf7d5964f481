"""Gradients on their way back as tables: through a deep stack, through one sub-layer, and over
distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from explorer.analysis import embeddings
from explorer.analysis.word_classes import is_word
from explorer.figures.csv import Columns
from models.contract.recording import Stream

NETWORKS = ("RNN", "LSTM", "Transformer")
N_NETWORKS, NETWORK_WIDTH = 20, 64  # untrained ones, whose weights are drawn


def recurrent_gradient(
    draw: Callable[[int, int], np.ndarray], x: np.ndarray, gain: float = 1.0
) -> np.ndarray:
    """The length of a gradient at the last state of untrained tanh networks and at each one before
    it, of that at the last, that one first: the median of N_NETWORKS; x (token, d_model)."""
    n, width = N_NETWORKS, NETWORK_WIDTH
    x = x / np.maximum(x.std(axis=1, keepdims=True), 1e-12)
    w = gain * draw(n * width, width).reshape(n, width, width) / np.sqrt(width)
    onto = draw(n * width, x.shape[1]).reshape(n, width, -1) / np.sqrt(x.shape[1])
    h, states = np.zeros((n, width)), []
    for inputs in (x @ onto.swapaxes(1, 2)).swapaxes(0, 1):
        h = np.tanh((w @ h[..., None])[..., 0] + inputs)
        states.append(h)
    gradient = np.ones_like(h) / np.sqrt(width)
    lengths = [np.ones(n)]
    for h in states[:0:-1]:
        gradient = (((1 - h**2) * gradient)[:, None] @ w)[:, 0]
        lengths.append(np.linalg.norm(gradient, axis=-1))
    return np.median(lengths, axis=1)


def from_word_to_word(stream: Stream) -> np.ndarray:
    """The places of a text from its first word to its last, without special tokens; one alone where
    there are fewer than two words."""
    spoken = np.array([is_word(each) for each in stream.tokens]) & ~stream.special
    if spoken.sum() < 2:
        return np.zeros(1, int)
    first, last = np.flatnonzero(spoken)[[0, -1]]
    return np.flatnonzero(~stream.special[first : last + 1]) + int(first)


def cosines(heads: np.ndarray) -> np.ndarray:
    """The cosine of each head's gradient with each other's, (head, head); heads (head, query,
    d_head)."""
    return embeddings.cosines(heads.reshape(len(heads), -1).astype(np.float64))


def singular_value_series(jacobian: Any, norm: str = "") -> list[tuple[str, np.ndarray]]:
    """The singular values of a `Model.jacobian` by what they are of. norm: what the norm is
    called that follows the sum, "" where none does."""
    series = [("∂f, what is written", jacobian.wrote)]
    if jacobian.adds:
        series.append(("I + ∂f, the sum", jacobian.total))
    return [*series, (f"after {norm}", jacobian.after)] if norm else series


def distance_columns(decay: Any) -> Columns:
    """The length of the gradient of a `registry.decay` by distance, before training and now."""
    columns: dict[str, Any] = {"distance": range(decay.length)}
    columns |= {f"{name} before": row for name, row in zip(NETWORKS, decay.first)}
    return columns | {f"{name} now": row for name, row in zip(NETWORKS, decay.gradient)}
