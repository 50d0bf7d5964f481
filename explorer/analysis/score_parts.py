"""The parts of an attention score, put in order: the largest by themselves, the rest as sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.contract.results import Part, ScoreParts


@dataclass(frozen=True)
class Largest:
    """The largest parts of one side, in order, by their places; `rest`: how many others there
    are."""

    places: tuple[int, ...]
    rest: int


def largest(parts: Sequence[Part], most: int) -> Largest:
    """The `most` parts with the largest values, up or down. One that would be left alone is
    listed too."""
    order = sorted(range(len(parts)), key=lambda at: -abs(parts[at].value))
    places = order[: most if len(order) > most + 1 else len(order)]
    return Largest(tuple(places), len(order) - len(places))


@dataclass(frozen=True)
class SourceRow:
    """A source with its parts of the score in the query and in the key. side: "query" or "key" for
    one of two texts, "" where both sides read the same stream."""

    source: Part
    side: str
    query: float
    key: float


def by_source(of: ScoreParts, apart: bool) -> list[SourceRow]:
    """Every source once, the largest first. apart: query and key are of two texts, so that nothing
    is a source of both."""
    rows: dict[tuple, SourceRow] = {}
    for side, parts in (("query", of.query_parts), ("key", of.key_parts)):
        for part in parts:
            of_side = side if apart else ""
            at = (of_side, part.kind, part.layer, part.head, part.attention)
            row = rows.get(at, SourceRow(part, of_side, 0.0, 0.0))
            rows[at] = (
                replace(row, query=part.value) if side == "query" else replace(row, key=part.value)
            )
    return sorted(rows.values(), key=lambda row: -max(abs(row.query), abs(row.key)))


def main_source(parts: Sequence[Part], total: float) -> Part:
    """The part that does most for a score in its sign."""
    return max(parts, key=lambda part: part.value * (1 if total >= 0 else -1))


def pairs(of: ScoreParts, most: int) -> tuple[Largest, Largest, np.ndarray]:
    """The products of the largest parts of both sides, and of the sums of the rest as the last row
    and column, (row, column): what is shown of `both`, with the same sum."""
    query, key = largest(of.query_parts, most), largest(of.key_parts, most)
    rows = _folded(of.both, query)
    return query, key, _folded(rows.T, key).T


def _folded(values: np.ndarray, side: Largest) -> np.ndarray:
    """The rows of a matrix that are listed, and the sum of all others where there are any."""
    listed = values[list(side.places)]
    if not side.rest:
        return listed
    others = np.delete(values, side.places, axis=0)
    return np.concatenate([listed, others.sum(0, keepdims=True)])


def table(of: ScoreParts, names: tuple[Sequence[str], Sequence[str]]) -> dict[str, list]:
    """Every pair of parts in long form. names: of the parts of both sides."""
    n_query, n_key = of.both.shape
    return {
        "query source": [names[0][row] for row in range(n_query) for _ in range(n_key)],
        "key source": [names[1][column] for _ in range(n_query) for column in range(n_key)],
        "part of the score": of.both.ravel().tolist(),
    }
