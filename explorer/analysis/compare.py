"""Two recordings' heads side by side: patterns on common units of text, and how far heads are
apart.

A pattern on units (see `explorer.analysis.alignment`): weights of a group's keys are summed, of a
group's queries averaged, and what goes outside stands in a last column. So every row still sums to
1.

Distance of two rows p, q: the square root of the Jensen-Shannon divergence to base 2 (Lin 1991), a
metric (Endres & Schindelin 2003), from 0, equal, to 1, nothing in common. Distance of two heads:
the mean over units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.analysis.alignment import Alignment, averaged, numbered
from explorer.analysis.switches import LARGE
from models.recording import Attention, Recording

NOT_ALIGNED = "(not aligned)"
TINY = np.float32(1e-30)


# ---- matrices on common units ----


class Laid:
    """A pattern (layer, head, query, key) on units, as an array (layer, head, row, column + 1) of
    which each part is made when it is asked for: of long texts the whole is as large as all else
    that is shown. Keys of a unit are summed, its queries averaged; the last column is what goes to
    no unit. Rows sum to 1. `outside`: False without that column."""

    def __init__(
        self,
        pattern: np.ndarray,
        rows: Sequence[Sequence[int]],
        columns: Sequence[Sequence[int]],
        outside: bool = True,
    ) -> None:
        self._pattern, self._rows, self._columns = pattern, rows, columns
        n, self._end = pattern.shape[-1], None if outside else -1
        inside = [at for group in columns for at in group]
        self._outside = sorted(set(range(n)) - set(inside))
        self._order = np.array([*inside, *self._outside], dtype=int)
        self._in_order = np.array_equal(self._order, np.arange(n))
        self._starts, self._inside = np.cumsum([0, *map(len, columns)])[:-1], len(inside)
        self.shape = (*pattern.shape[:2], len(rows), len(columns) + outside)
        self.ndim = len(self.shape)

    def __getitem__(self, head: tuple[int, int]) -> np.ndarray:
        """The weights of one head (layer, head)."""
        return self._on_units(self._pattern[head])

    def __iter__(self) -> Iterator[np.ndarray]:
        """A layer (head, row, column) after another."""
        return map(self._on_units, self._pattern)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.stack(list(self)).astype(dtype or self._pattern.dtype, copy=False)

    def inside(self) -> Laid:
        """Without the last column."""
        return Laid(self._pattern, self._rows, self._columns, outside=False)

    def _on_units(self, pattern: np.ndarray) -> np.ndarray:
        shape = (*pattern.shape[:-2], len(self._rows), len(self._columns) + 1)
        made = np.zeros(shape, dtype=pattern.dtype)
        picked = averaged(pattern, self._rows)
        picked = picked if self._in_order else picked[..., self._order]
        if self._inside == len(self._columns):
            made[..., :-1] = picked[..., : self._inside]
        elif len(self._columns):
            made[..., :-1] = np.add.reduceat(picked[..., : self._inside], self._starts, axis=-1)
        if self._outside:
            made[..., -1] = picked[..., self._inside :].sum(axis=-1)
        return made[..., : self._end]


def free_rows(a: np.ndarray, b: np.ndarray, rows: Alignment) -> np.ndarray:
    """Which units (row) count: those whose query had a choice of keys on one side at least, allowed
    (query, key) each; all where none had."""
    choice_a, choice_b = a.sum(axis=1) > 1, b.sum(axis=1) > 1
    free = np.array(
        [choice_a[list(unit.a)].any() or choice_b[list(unit.b)].any() for unit in rows.units],
        dtype=bool,
    )
    return free if free.any() else ~free


@dataclass(frozen=True, eq=False)
class Sides:
    """Two attentions on common units. a, b (layer, head, row, column + 1), the last column is
    outside. free (row): rows that count."""

    rows: Alignment
    columns: Alignment
    a: Laid
    b: Laid
    free: np.ndarray

    @property
    def same_shape(self) -> bool:
        """True where both have as many layers and heads."""
        return self.a.shape[:2] == self.b.shape[:2]

    @property
    def leaves_out(self) -> bool:
        """True where some key is in no unit."""
        return bool(self.columns.outside_a or self.columns.outside_b)

    @property
    def column_labels(self) -> tuple[str, ...]:
        """Names of the columns, with that of the last one where anything is outside."""
        return (*self.columns.labels, *((NOT_ALIGNED,) if self.leaves_out else ()))

    def weights(self) -> tuple[Laid, Laid]:
        """All heads of A and of B, (layer, head, row, column), outside included where there is
        any."""
        return (self.a, self.b) if self.leaves_out else (self.a.inside(), self.b.inside())

    def heads(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Head (layer, head) of A and one of B, (row, column), outside included where there is
        any."""
        end = None if self.leaves_out else -1
        return self.a[a][:, :end], self.b[b][:, :end]


def sides(
    a: tuple[Recording, Attention],
    b: tuple[Recording, Attention],
    rows: Alignment,
    columns: Alignment,
) -> Sides:
    """Both attentions on the units of `rows` and `columns`."""
    one, other = (
        Laid(
            attention.pattern,
            [getattr(unit, side) for unit in rows.units],
            [getattr(unit, side) for unit in columns.units],
        )
        for (_, attention), side in ((a, "a"), (b, "b"))
    )
    return Sides(rows, columns, one, other, free_rows(a[1].allowed, b[1].allowed, rows))


# ---- how far heads are apart ----


def row_distances(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Jensen-Shannon distance of distributions along the last axis, (...), 0 to 1."""
    if p.ndim > 2 and p.size > LARGE:
        return np.stack([row_distances(one, other) for one, other in zip(p, q)])
    p, q = p.astype(np.float64), q.astype(np.float64)
    divergence = (plogp(p) / 2 + plogp(q) / 2 - plogp((p + q) / 2)).sum(axis=-1) / np.log(2)
    return np.sqrt(np.clip(divergence, 0, 1))


def plogp(p: np.ndarray) -> np.ndarray:
    """p log p, 0 where p is."""
    return p * np.log(np.maximum(p, TINY))


def paired(found: Sides) -> np.ndarray:
    """The distance of each head to the one in the same place on the other side, (layer, head).
    Raises ValueError where shapes differ."""
    if not found.same_shape:
        raise ValueError(
            f"heads in the same place need the same shape, not {found.a.shape[:2]} and "
            f"{found.b.shape[:2]}"
        )
    return np.stack(
        [
            row_distances(a[:, found.free], b[:, found.free]).mean(axis=-1)
            for a, b in zip(found.a, found.b)
        ]
    )


@dataclass(frozen=True)
class Change:
    """The row of a pair of heads that differs most, and in it the column that lost most and the one
    that gained most, from A to B."""

    row: str
    distance: float
    lost: str
    lost_from: float
    lost_to: float
    gained: str
    gained_from: float
    gained_to: float


def change(found: Sides, a: tuple[int, int], b: tuple[int, int]) -> Change:
    """What differs most between a head of A and one of B."""
    one, other = found.heads(a, b)
    far = np.where(found.free, row_distances(one, other), -1)
    at = int(far.argmax())
    moved = other[at] - one[at]
    less, more = int(moved.argmin()), int(moved.argmax())
    labels = found.column_labels
    return Change(
        found.rows.labels[at],
        float(far[at]),
        labels[less],
        float(one[at, less]),
        float(other[at, less]),
        labels[more],
        float(one[at, more]),
        float(other[at, more]),
    )


def pair_distance(found: Sides, a: tuple[int, int], b: tuple[int, int]) -> float:
    """The distance of a head of A to one of B."""
    return float(row_distances(found.a[a][found.free], found.b[b][found.free]).mean())


def pair_matrices(
    found: Sides, a: tuple[int, int], b: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """A head of A, one of B and B - A, each (row, column), the largest weight of both, and the
    largest difference either way."""
    one, other = found.heads(a, b)
    change = other.astype(np.float64) - one
    return one, other, change, top(np.stack((one, other))), top(np.abs(change))


def top(values: np.ndarray) -> float:
    """The upper end of a colour scale from 0: the largest value, or 1 where all are 0."""
    return float(values.max(initial=0)) or 1.0


def head_number(head: tuple[int, int], shape: Sequence[int]) -> int:
    """A head's place in reading order."""
    return head[0] * shape[1] + head[1]


def lost(found: Sides) -> tuple[float, float]:
    """The share of all compared attention that goes to no unit, on A and on B."""
    a, b = outside(found)
    return float(a.mean()), float(b.mean())


def outside(found: Sides) -> tuple[np.ndarray, np.ndarray]:
    """The share of each row that goes to no unit, mean over heads, for A and B: (row) each."""
    one, other = (
        np.stack([layer[..., -1] for layer in side]).mean(axis=(0, 1), dtype=np.float64)
        for side in (found.a, found.b)
    )
    return one, other


# ---- words, tables and files ----


def name(head: tuple[int, int]) -> str:
    """A head as people write it: "L2 H3"."""
    return f"L{head[0]} H{head[1]}"


def names(shape: tuple[int, int]) -> list[str]:
    """All heads of (layers, heads) in reading order."""
    return [name((layer, head)) for layer in range(shape[0]) for head in range(shape[1])]


def most_changed(paired_distances: np.ndarray) -> list[tuple[int, int]]:
    """Heads of (layer, head), the most changed first."""
    order = np.argsort(-paired_distances, axis=None, kind="stable")
    return [divmod(int(at), paired_distances.shape[1]) for at in order]


def all_same(paired_distances: np.ndarray) -> bool:
    """Whether no head differs from the one in its place. paired_distances: (n_layer, n_head), see
    `paired`."""
    return not paired_distances.any()


def changed_columns(found: Sides, paired_distances: np.ndarray) -> dict[str, list]:
    """Heads in the same place, the most changed first, as named columns."""
    order = most_changed(paired_distances)
    changes = [change(found, head, head) for head in order]
    return {
        "head": [name(head) for head in order],
        "distance": [float(paired_distances[head]) for head in order],
        "row that differs most": [one.row for one in changes],
        "less at": [f"{one.lost}  {one.lost_from:.2f} → {one.lost_to:.2f}" for one in changes],
        "more at": [
            f"{one.gained}  {one.gained_from:.2f} → {one.gained_to:.2f}" for one in changes
        ],
    }


def pair_columns(found: Sides, a: tuple[int, int], b: tuple[int, int]) -> dict[str, list]:
    """Every cell of two heads on common units: row, column, both weights and B - A."""
    one, other = found.heads(a, b)
    rows, columns = numbered(found.rows.labels), numbered(found.column_labels)
    return {
        "row": [row for row in rows for _ in columns],
        "column": [column for _ in rows for column in columns],
        "A": one.ravel().astype(float).tolist(),
        "B": other.ravel().astype(float).tolist(),
        "B - A": (other - one).ravel().astype(float).tolist(),
    }


def most_apart(columns: dict[str, list], most: int) -> dict[str, list]:
    """The rows of `pair_columns` with the largest |B - A|, largest first; all of them, in their
    order, where there are at most `most`."""
    if len(columns["B - A"]) <= most:
        return columns
    order = np.argsort(-np.abs(columns["B - A"]), kind="stable")[:most]
    return {name: [values[at] for at in order] for name, values in columns.items()}


def outside_columns(found: Sides) -> dict[str, list]:
    """What each row gives to no unit, mean over heads, as named columns."""
    one, other = outside(found)
    return {"row": numbered(found.rows.labels), "A": one.tolist(), "B": other.tolist()}
