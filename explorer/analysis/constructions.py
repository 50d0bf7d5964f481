"""Three ways to score the pairs of one text: naive, symmetric, and the head's own.

Axis legend as in `models/recording.py`. Everything is computed in float64 from a Recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.csv import Columns
from explorer.analysis.lookup import softened
from models.recording import Attention, Recording


@dataclass(frozen=True, eq=False)
class Construction:
    """One way to score pairs: scores (query, key), without a mask; weights, softmax over the
    allowed keys; and what is measured of them.

    asymmetry: |S - S'| / (2 |S|) in the Frobenius norm: 0 for a symmetric S, 1 for one of opposite
    signs across the diagonal; about 0.7 where the two have nothing to do with each other. own,
    rows: in how many rows, of those with a choice, the largest score is the token's own.
    own_weight: the mean weight that a token gives itself in those rows.
    """

    name: str
    scores: np.ndarray
    weights: np.ndarray
    asymmetry: float
    own: int
    rows: int
    own_weight: float


def entering(recording: Recording, attention: Attention, layer: int) -> np.ndarray | None:
    """The vectors that self-attention of a layer reads, (token, d_model); None where the model does
    not offer them."""
    stream = recording.stream(attention.query)
    if f"{layer}.attn.read" in stream.sites:
        return stream.at(f"{layer}.attn.read")
    before = [state for state, wrote, _ in stream.writes() if wrote == f"{layer}.attn.wrote"]
    return stream.at(before[0]) if before else None


def constructions(
    x: np.ndarray, attention: Attention, layer: int, head: int
) -> tuple[Construction, ...]:
    """Three ways to score the pairs of one text: x . x of the vectors that enter the layer, x
    (token, d_model); Ux . Ux with the head's own W_Q (and its bias) for U, so that Ux = q; and the
    head's own scores, as recorded. The first two are divided by the root of their vectors' width.

    Raises ValueError for an attention between two streams.
    """
    if attention.query != attention.key:
        raise ValueError(
            f"{attention.name} goes from one stream to another: rows and columns are not the "
            "same tokens"
        )
    x, q = x.astype(np.float64), attention.q[layer, head].astype(np.float64)
    made = (
        ("x · x", x @ x.T / np.sqrt(x.shape[-1])),
        ("Ux · Ux", q @ q.T / np.sqrt(q.shape[-1])),
        ("q · k", attention.scores[layer, head].astype(np.float64)),
    )
    return tuple(_construction(name, scores, attention.allowed) for name, scores in made)


def _construction(name: str, scores: np.ndarray, allowed: np.ndarray) -> Construction:
    choosing = allowed.sum(axis=1) > 1
    weights = softened(scores, allowed, 1.0)
    largest = np.where(allowed, scores, -np.inf).argmax(axis=1)
    own = (largest == np.arange(len(scores)))[choosing]
    return Construction(
        name,
        scores,
        weights,
        asymmetry(scores),
        int(own.sum()),
        len(own),
        float(np.diagonal(weights)[choosing].mean()) if len(own) else float("nan"),
    )


def asymmetry(scores: np.ndarray) -> float:
    """|S - S'| / (2 |S|) in the Frobenius norm, 0 to 1; 0 for a matrix of zeros."""
    size = np.linalg.norm(scores)
    return float(np.linalg.norm(scores - scores.T) / (2 * size)) if size > 0 else 0.0


def one_way(own: Construction, special: Sequence[bool]) -> tuple[int, int] | None:
    """The pair (query, key) whose two scores differ most, the higher one first, among tokens of the
    text where there are two; None for fewer than two tokens."""
    gap = own.scores - own.scores.T
    text = ~np.asarray(special, bool)
    if text.sum() > 1:
        gap = np.where(text[:, None] & text[None, :], gap, 0)
    if len(gap) < 2 or not gap.max() > 0:
        return None
    query, key = np.unravel_index(gap.argmax(), gap.shape)
    return int(query), int(key)


def constructions_table(made: Sequence[Construction], labels: Sequence[str], what: str) -> Columns:
    """Scores or weights ("Scores", "Weights") of all constructions as named columns: construction,
    query, then a column for each key."""
    n = len(labels)
    values = np.concatenate([one.scores if what == "Scores" else one.weights for one in made])
    named = [f"{at} {label}" for at, label in enumerate(labels)]
    return {
        "construction": [one.name for one in made for _ in range(n)],
        "query": named * len(made),
        **dict(zip(named, values.T)),
    }
