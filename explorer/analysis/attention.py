"""One head's matrix: what its rows and columns are called, as a table, as a file, and the values a colour scale shows."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.recording import Attention, Recording

SCALES = ("Head", "Row", "Global")
TONES = ("Linear", "Log")
LOG_DECADES = 3


@dataclass(frozen=True)
class Axes:
    """What the rows and columns of an attention are called.

    rows (query) and keys (key): labels, in pictures and files alike. special (key). said: None where rows and columns are one text; between
    two texts the token that each row produces and whether it is a special one, (query).
    """

    rows: tuple[str, ...]
    keys: tuple[str, ...]
    special: tuple[bool, ...]
    said: tuple[tuple[str, bool], ...] | None = None

    @property
    def sides(self) -> tuple[str, str]:
        """What rows and columns are."""
        return ("query", "key") if self.said is None else ("target", "source")


def axes(recording: Recording, attention: Attention, after: str = "") -> Axes:
    """What rows and columns are called. Between two texts a row has the name of the token it produces, which is the one after the token it
    reads; `after` is the token that the last row produces, which the target does not hold."""
    queries, keys = recording.stream(attention.query), recording.stream(attention.key)
    special = tuple(map(bool, keys.special))
    if attention.query == attention.key:
        return Axes(queries.tokens, keys.tokens, special)
    ends = {token for token, is_special in zip(keys.tokens, special) if is_special}
    said = (*zip(queries.tokens[1:], map(bool, queries.special[1:])), (after, after in ends))
    return Axes(tuple(f"→ {token}" for token, _ in said), keys.tokens, special, said)


def likeliest(logits: np.ndarray) -> int:
    """The id of the highest of a vocabulary's scores (id)."""
    return int(logits.argmax())


def blanked(values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The values (query, key) with NaN where attending is not allowed, so that a figure leaves these cells out."""
    return values if allowed.all() else np.where(allowed, values, np.nan)


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


def strongest(matrix: np.ndarray, allowed: np.ndarray, query: int | None = None, key: int | None = None) -> tuple[int, int]:
    """(query, key) of the largest weight, in the whole matrix, in one row or in one column.

    matrix (query, key) of weights, allowed (query, key). A row that leaves no choice is taken where it is asked for or there is no other.
    """
    if key is not None:
        return int(matrix[:, key].argmax()), key
    if query is None:
        top = np.where(allowed.sum(axis=1) > 1, matrix.max(axis=1), -1)
        query = int(top.argmax())
    return query, int(matrix[query].argmax())


def numbered(tokens: Sequence[str]) -> list[str]:
    """Tokens with their places in front, so that two equal words stay two: "3 the"."""
    return [f"{place} {token}" for place, token in enumerate(tokens)]


def columns(matrix: np.ndarray, axes: Axes) -> dict[str, Sequence]:
    """The matrix as named columns: the rows' names, then a column for each key."""
    return {_corner(axes): numbered(axes.rows), **dict(zip(numbered(axes.keys), matrix.T))}


def _corner(axes: Axes) -> str:
    return " \\ ".join(axes.sides)


def to_csv(matrix: np.ndarray, axes: Axes, about: Sequence[str]) -> str:
    """The matrix as CSV: `about` in lines that begin with #, a header of keys, then its rows, weights in full."""
    file = io.StringIO()
    for line in about:
        file.write("# " + " ".join(line.split()) + "\n")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_corner(axes), *numbered(axes.keys)])
    for label, row in zip(numbered(axes.rows), matrix):
        writer.writerow([label, *(repr(float(weight)) for weight in row)])
    return file.getvalue()
