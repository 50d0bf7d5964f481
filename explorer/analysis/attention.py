"""One head's matrix as a table, a file, and the values a colour scale shows."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SCALES = ("Head", "Row", "Global")
TONES = ("Linear", "Log")
LOG_DECADES = 3


def shares(matrix: np.ndarray, scale: str) -> np.ndarray:
    """Weights as shares of what tops the scale, 0 to 1: each row's largest, the head's largest, or 1 for all heads alike.

    matrix (query, key) of weights. Raises ValueError for a scale that does not exist.
    """
    if scale == "Global":
        return matrix
    if scale == "Head":
        top = np.full((len(matrix), 1), matrix.max())
    elif scale == "Row":
        top = matrix.max(axis=1, keepdims=True)
    else:
        raise ValueError(f"no scale is called {scale!r}; there are {', '.join(SCALES)}")
    return matrix / np.where(top > 0, top, 1)


def decades(share: np.ndarray) -> np.ndarray:
    """log10 of shares, with everything under a thousandth, zeros too, at -3."""
    return np.log10(np.maximum(share, 10.0**-LOG_DECADES))


@dataclass(frozen=True)
class Softmax:
    """How one weight comes from its score: weight = exponential / total, where exponential = e^score and total is the row's sum of them."""

    score: float
    exponential: float
    total: float
    weight: float


def softmax_of(scores: np.ndarray, allowed: np.ndarray, key: int) -> Softmax:
    """The steps of the softmax for one key of one row, eq. 1 of the paper. scores (key) before the mask, allowed (key) bool."""
    masked = np.where(allowed, scores.astype(np.float64), -np.inf)
    shifted = np.exp(masked - masked.max())  # the weight does not overflow where e^score would
    with np.errstate(over="ignore"):
        powers = np.exp(masked)
    return Softmax(float(scores[key]), float(powers[key]), float(powers.sum()), float(shifted[key] / shifted.sum()))


def strongest(matrix: np.ndarray, query: int | None = None) -> tuple[int, int]:
    """(query, key) of the largest weight, in the whole matrix or in one row."""
    if query is None:
        query = int(matrix.max(axis=1).argmax())
    return query, int(matrix[query].argmax())


def numbered(tokens: Sequence[str]) -> list[str]:
    """Tokens with their places in front, so that two equal words stay two: "3 the"."""
    return [f"{place} {token}" for place, token in enumerate(tokens)]


def columns(matrix: np.ndarray, queries: Sequence[str], keys: Sequence[str]) -> dict[str, Sequence]:
    """The matrix as named columns: the queries, then a column for each key."""
    return {"query \\ key": numbered(queries), **dict(zip(numbered(keys), matrix.T))}


def to_csv(matrix: np.ndarray, queries: Sequence[str], keys: Sequence[str], about: Sequence[str]) -> str:
    """The matrix as CSV: `about` in lines that begin with #, a header of keys, then a row for each query, weights in full."""
    file = io.StringIO()
    for line in about:
        file.write("# " + " ".join(line.split()) + "\n")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["query \\ key", *numbered(keys)])
    for label, row in zip(numbered(queries), matrix):
        writer.writerow([label, *(repr(float(weight)) for weight in row)])
    return file.getvalue()
