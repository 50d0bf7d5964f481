"""Why scores are divided by the root of d_k: the variance of q . k, and what the softmax makes of
it, width by width.

Vaswani et al., 2017, section 3.2.1: of independent components with mean 0 and variance 1, Var(q .
k) = d_k."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from explorer.analysis.lookup import softened
from models.recording import Attention

WIDTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
PAIRS = 6000  # of random vectors, at each width
KEYS = 12  # that a random query chooses among


@dataclass(frozen=True, eq=False)
class Scale:
    """By width: widths (w), variance (w) of q . k, and the mean of the largest weight of a row with
    the scale and without, scaled and raw (w); keys: how many keys a row chooses among, in the
    mean."""

    widths: tuple[int, ...]
    variance: np.ndarray
    scaled: np.ndarray
    raw: np.ndarray
    keys: float


@lru_cache(maxsize=8)  # no text plays a part
def at_random(draw: Callable[[int, int], np.ndarray], widths: tuple[int, ...] = WIDTHS) -> Scale:
    """Of independent numbers with mean 0 and variance 1; draw(rows, columns). Rows of KEYS keys for
    the softmax."""
    found = []
    for width in widths:
        q, k = draw(2 * PAIRS, width).reshape(2, PAIRS, width)
        rows = PAIRS // KEYS
        scores = np.einsum("rw,rkw->rk", q[:rows], k[: rows * KEYS].reshape(rows, KEYS, width))
        allowed = np.ones_like(scores, dtype=bool)
        found.append(((q * k).sum(axis=-1).var(), *_largest(scores, allowed, width)))
    variance, scaled, raw = np.array(found).T
    return Scale(tuple(widths), variance, scaled, raw, float(KEYS))


def of_model(attention: Attention) -> Scale:
    """Of a model's own queries and keys, each head's brought to a mean square of 1 a component so
    that sizes do not count. A width is the first so many components of a layer's heads side by
    side; the variance is over all pairs, and everything is the mean over layers."""
    q, k = (_side_by_side(each.astype(np.float64)) for each in (attention.q, attention.k))
    widest = q.shape[-1]
    widths = (*(width for width in WIDTHS if width < widest), widest)
    choosing = attention.allowed.sum(axis=1) > 1
    choosing = choosing if choosing.any() else ~choosing
    allowed, found = attention.allowed[choosing], []
    for width in widths:
        products = q[..., :width] @ k[..., :width].swapaxes(-1, -2)  # (layer, query, key)
        largest = [_largest(each[choosing], allowed, width) for each in products]
        found.append((products.var(axis=(1, 2)).mean(), *np.mean(largest, axis=0)))
    variance, scaled, raw = np.array(found).T
    return Scale(widths, variance, scaled, raw, float(allowed.sum(axis=1).mean()))


def _largest(scores: np.ndarray, allowed: np.ndarray, width: int) -> tuple[float, float]:
    """The mean of the largest weight of a row, with the scores divided by the root of the width and
    as they are."""
    scaled, raw = (
        float(softened(scores / by, allowed, 1.0).max(axis=-1).mean())
        for by in (np.sqrt(width), 1.0)
    )
    return scaled, raw


def _side_by_side(vectors: np.ndarray) -> np.ndarray:
    """(layer, head, token, d_head) -> (layer, token, head x d_head), each head's of mean square
    1."""
    size = np.sqrt((vectors**2).mean(axis=(2, 3), keepdims=True))
    vectors = vectors / np.where(size > 0, size, 1)
    return vectors.transpose(0, 2, 1, 3).reshape(vectors.shape[0], vectors.shape[2], -1)


def variances(random: Scale, own: Scale | None) -> list[tuple[str, tuple[int, ...], np.ndarray]]:
    """The variance with the scale and without as named lines over the width."""
    lines = []
    for whose, each in _of(random, own):
        lines.append((f"{whose}, no scale", each.widths, each.variance))
        lines.append((f"{whose}, with the scale", each.widths, each.variance / each.widths))
    return lines


def largest(random: Scale, own: Scale | None) -> list[tuple[str, tuple[int, ...], np.ndarray]]:
    """The mean largest weight with the scale and without as named lines over the width."""
    lines = []
    for whose, each in _of(random, own):
        lines.append((f"{whose}, no scale", each.widths, each.raw))
        lines.append((f"{whose}, with the scale", each.widths, each.scaled))
    return lines


def _of(random: Scale, own: Scale | None) -> list[tuple[str, Scale]]:
    return [("random", random), *([("this model", own)] if own else [])]


def table(random: Scale, own: Scale | None) -> dict[str, list]:
    """Both as named columns, a row a width."""
    rows = [
        (whose, width, each.variance[at], each.variance[at] / width, each.scaled[at], each.raw[at])
        for whose, each in _of(random, own)
        for at, width in enumerate(each.widths)
    ]
    names = (
        "vectors",
        "width",
        "Var(q·k)",
        "Var(q·k / √width)",
        "largest weight with the scale",
        "largest weight without",
    )
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}
