"""Two recordings' heads side by side: patterns on common units of text, and how far heads are
apart.

A pattern on units (see `explorer.analysis.alignment`): weights of a group's keys are summed, of a
group's queries averaged, and what goes outside stands in a last column. So every row still sums to
1.

Distance of two rows p, q: the square root of the Jensen-Shannon divergence to base 2 (Lin 1991), a
metric (Endres & Schindelin 2003), from 0, equal, to 1, nothing in common. Distance of two heads:
the mean over units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.analysis.alignment import Alignment, group_means
from explorer.analysis.attention import numbered
from explorer.analysis.interventions import CHUNK_SIZE
from explorer.figures.csv import Cells, long_form
from explorer.figures.formatting import hundredths
from models.contract.cancellation import expect_wanted
from models.contract.recording import Attention, Recording

TINY = np.float32(1e-30)


# ---- matrices on common units ----


class UnitPattern:
    """A pattern (layer, head, query, key) on units, as an array (layer, head, row, column + 1) of
    which each part is made when it is asked for: of long texts the whole is as large as all else
    that is shown. Keys of a unit are summed, its queries averaged; the last column is what goes to
    no unit. Rows sum to 1."""

    def __init__(
        self,
        pattern: np.ndarray,
        rows: Sequence[Sequence[int]],
        columns: Sequence[Sequence[int]],
    ) -> None:
        self._pattern, self._rows, n = pattern, rows, pattern.shape[-1]
        inside = [at for group in columns for at in group]
        self._outside = sorted(set(range(n)) - set(inside))
        self._n_columns = len(columns)
        self._order = np.array([*inside, *self._outside], dtype=int)
        self._in_order = np.array_equal(self._order, np.arange(n))
        self._starts, self._inside = np.cumsum([0, *map(len, columns)])[:-1], len(inside)
        self.shape = (*pattern.shape[:2], len(rows), len(columns) + 1)
        self.ndim = len(self.shape)

    def __getitem__(self, head: tuple[int, int]) -> np.ndarray:
        """The weights of one head (layer, head)."""
        return self._on_units(self._pattern[head])

    def __iter__(self) -> Iterator[np.ndarray]:
        """A layer (head, row, column) after another."""
        return map(self._on_units, self._pattern)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.stack(list(self)).astype(dtype or self._pattern.dtype, copy=False)

    def _on_units(self, pattern: np.ndarray) -> np.ndarray:
        shape = (*pattern.shape[:-2], len(self._rows), self._n_columns + 1)
        weights = np.zeros(shape, dtype=pattern.dtype)
        rows_on_units = group_means(pattern, self._rows)
        rows_on_units = rows_on_units if self._in_order else rows_on_units[..., self._order]
        if self._inside == self._n_columns:
            weights[..., :-1] = rows_on_units[..., : self._inside]
        elif self._n_columns:
            weights[..., :-1] = np.add.reduceat(
                rows_on_units[..., : self._inside], self._starts, axis=-1
            )
        if self._outside:
            weights[..., -1] = rows_on_units[..., self._inside :].sum(axis=-1)
        return weights


def free_rows(a: np.ndarray, b: np.ndarray, rows: Alignment) -> np.ndarray:
    """Mask (row) of the units that count: those whose query had a choice of keys on one side at
    least, allowed (query, key) each; all where none had."""
    choice_a, choice_b = a.sum(axis=1) > 1, b.sum(axis=1) > 1
    free = np.array(
        [choice_a[list(unit.a)].any() or choice_b[list(unit.b)].any() for unit in rows.units],
        dtype=bool,
    )
    return free if free.any() else ~free


@dataclass(frozen=True, eq=False)
class PatternPair:
    """Two attentions on common units. a, b (layer, head, row, column + 1), the last column is
    outside. free (row): rows that count."""

    rows: Alignment
    columns: Alignment
    a: UnitPattern
    b: UnitPattern
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
        return (*self.columns.labels, *((self.columns.differing,) if self.leaves_out else ()))

    def heads(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Head (layer, head) of A and one of B, (row, column), outside included where there is
        any."""
        end = None if self.leaves_out else -1
        return self.a[a][:, :end], self.b[b][:, :end]


def align_patterns(
    a: tuple[Recording, Attention],
    b: tuple[Recording, Attention],
    rows: Alignment,
    columns: Alignment,
) -> PatternPair:
    """Both attentions on the units of `rows` and `columns`."""
    pattern_a, pattern_b = (
        UnitPattern(
            attention.pattern,
            [getattr(unit, side) for unit in rows.units],
            [getattr(unit, side) for unit in columns.units],
        )
        for (_, attention), side in ((a, "a"), (b, "b"))
    )
    return PatternPair(
        rows, columns, pattern_a, pattern_b, free_rows(a[1].reachable, b[1].reachable, rows)
    )


# ---- how far heads are apart ----


def row_distances(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Jensen-Shannon distance of distributions along the last axis, (...), 0 to 1."""
    expect_wanted()
    if p.ndim > 2 and p.size > CHUNK_SIZE:
        return np.stack([row_distances(one, other) for one, other in zip(p, q)])
    p, q = p.astype(np.float64), q.astype(np.float64)
    divergence = (plogp(p) / 2 + plogp(q) / 2 - plogp((p + q) / 2)).sum(axis=-1) / np.log(2)
    return np.sqrt(np.clip(divergence, 0, 1))


def plogp(p: np.ndarray) -> np.ndarray:
    """p log p, 0 where p is."""
    return p * np.log(np.maximum(p, TINY))


def same_place_distances(patterns: PatternPair) -> np.ndarray:
    """The distance of each head to the one in the same place on the other side, (layer, head).
    Raises ValueError where shapes differ."""
    if not patterns.same_shape:
        raise ValueError(
            f"heads in the same place need the same shape, not {patterns.a.shape[:2]} and "
            f"{patterns.b.shape[:2]}"
        )
    return np.stack(
        [
            row_distances(a[:, patterns.free], b[:, patterns.free]).mean(axis=-1)
            for a, b in zip(patterns.a, patterns.b)
        ]
    )


@dataclass(frozen=True)
class RowChange:
    """The row of a pair of heads that differs most, and in it the column that lost most and the one
    that gained most, from A to B. cells: (row, column) of the loss and of the gain."""

    row: str
    distance: float
    lost: str
    lost_from: float
    lost_to: float
    gained: str
    gained_from: float
    gained_to: float
    cells: tuple[tuple[int, int], tuple[int, int]]


def largest_row_change(patterns: PatternPair, a: tuple[int, int], b: tuple[int, int]) -> RowChange:
    """Row that differs most between a head of A and one of B, and its largest loss and gain."""
    weights_a, weights_b = patterns.heads(a, b)
    row_distance = np.where(patterns.free, row_distances(weights_a, weights_b), -1)
    row = int(row_distance.argmax())
    difference = weights_b[row] - weights_a[row]
    lost_column, gained_column = int(difference.argmin()), int(difference.argmax())
    labels = _distinct_labels(patterns.column_labels)
    return RowChange(
        _distinct_labels(patterns.rows.labels)[row],
        float(row_distance[row]),
        labels[lost_column],
        float(weights_a[row, lost_column]),
        float(weights_b[row, lost_column]),
        labels[gained_column],
        float(weights_a[row, gained_column]),
        float(weights_b[row, gained_column]),
        ((row, lost_column), (row, gained_column)),
    )


def _distinct_labels(labels: Sequence[str]) -> list[str]:
    """Labels; those that stand several times with their places in front."""
    counts = Counter(labels)
    return [one if counts[one] == 1 else named for one, named in zip(labels, numbered(labels))]


def pair_distance(patterns: PatternPair, a: tuple[int, int], b: tuple[int, int]) -> float:
    """The distance of a head of A to one of B."""
    return float(row_distances(patterns.a[a][patterns.free], patterns.b[b][patterns.free]).mean())


def pair_matrices(
    patterns: PatternPair, a: tuple[int, int], b: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """A head of A, one of B and B - A, each (row, column), the largest weight of both, and the
    largest difference either way."""
    weights_a, weights_b = patterns.heads(a, b)
    difference = weights_b.astype(np.float64) - weights_a
    return (
        weights_a,
        weights_b,
        difference,
        scale_maximum(np.stack((weights_a, weights_b))),
        scale_maximum(np.abs(difference)),
    )


def scale_maximum(values: np.ndarray) -> float:
    """The upper end of a colour scale from 0: the largest value, or 1 where all are 0."""
    return float(values.max(initial=0)) or 1.0


def head_number(head: tuple[int, int], shape: Sequence[int]) -> int:
    """A head's place in reading order."""
    return head[0] * shape[1] + head[1]


def unaligned_shares(patterns: PatternPair) -> tuple[float, float]:
    """The share of all compared attention that goes to no unit, on A and on B."""
    a, b = unaligned_by_row(patterns)
    return float(a.mean()), float(b.mean())


def unaligned_by_row(patterns: PatternPair) -> tuple[np.ndarray, np.ndarray]:
    """The share of each row that goes to no unit, mean over heads, for A and B: (row) each."""
    share_a, share_b = (
        np.stack([layer[..., -1] for layer in side]).mean(axis=(0, 1), dtype=np.float64)
        for side in (patterns.a, patterns.b)
    )
    return share_a, share_b


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


def changed_columns(patterns: PatternPair, paired_distances: np.ndarray) -> dict[str, list]:
    """Heads in the same place, the most changed first, as named columns."""
    order = most_changed(paired_distances)
    changes = [largest_row_change(patterns, head, head) for head in order]
    return {
        "head": [name(head) for head in order],
        "distance": [float(paired_distances[head]) for head in order],
        "row that differs most": [row_change.row for row_change in changes],
        "less at": [
            f"{each.lost}  {hundredths(each.lost_from)} → {hundredths(each.lost_to)}"
            for each in changes
        ],
        "more at": [
            f"{each.gained}  {hundredths(each.gained_from)} → {hundredths(each.gained_to)}"
            for each in changes
        ],
    }


def pair_columns(patterns: PatternPair, a: tuple[int, int], b: tuple[int, int]) -> dict[str, list]:
    """Every cell of two heads on common units: row, column, both weights and B - A."""
    weights_a, weights_b = patterns.heads(a, b)
    rows, columns = numbered(patterns.rows.labels), numbered(patterns.column_labels)
    return {
        "row": [row for row in rows for _ in columns],
        "column": [column for _ in rows for column in columns],
        "A": weights_a.ravel().astype(float).tolist(),
        "B": weights_b.ravel().astype(float).tolist(),
        "B - A": (weights_b - weights_a).ravel().astype(float).tolist(),
    }


# Every head of one recording beside every head of another: their distances, and the nearest head
# for each.

# All pairs of heads x rows x keys: about a second. Above it fewer rows are taken, evenly spaced.
MOST_WORK = 400_000_000
FEWEST_ROWS = 8
AT_ONCE = 2**15  # numbers of an array that stays near the processor from one step to the next
EQUAL = 1e-14  # divergence up to which sums of p log p, at most 8, differ by rounding


@dataclass(frozen=True, eq=False)
class Distances:
    """Every head of A to every head of B: values (head of A, head of B), heads in reading order.
    n_rows of all_rows rows were used."""

    values: np.ndarray
    shape_a: tuple[int, int]
    shape_b: tuple[int, int]
    n_rows: int
    all_rows: int


def distance_matrix(patterns: PatternPair, most: int = MOST_WORK) -> Distances:
    """Every head of A to every head of B. Where heads x heads x rows x columns is more than `most`,
    evenly spaced rows stand for all."""
    rows = np.flatnonzero(patterns.free)
    (la, ha), (lb, hb) = patterns.a.shape[:2], patterns.b.shape[:2]
    fitting = max(FEWEST_ROWS, most // (la * ha * lb * hb * patterns.a.shape[-1]))
    used_rows = (
        rows
        if len(rows) <= fitting
        else rows[np.unique(np.linspace(0, len(rows) - 1, fitting).round().astype(int))]
    )
    totals = np.zeros((la * ha, lb * hb))
    step = max(1, AT_ONCE // (lb * hb * patterns.b.shape[-1]))
    for start in range(0, len(used_rows), step):
        at = used_rows[start : start + step]
        # (head, row, column): halves, none 0, so that the mean of two has a logarithm.
        parts = [
            np.maximum(np.concatenate([layer[:, at] for layer in side]) / np.float64(2), TINY)
            for side in (patterns.a, patterns.b)
        ]
        attended = np.any([(part > TINY).any(axis=(0, 1)) for part in parts], axis=0)
        a, b = (np.compress(attended, part, axis=-1) for part in parts)
        of_a, of_b = (np.vecdot(part, np.log(2 * part)) for part in (a, b))
        of_both, mean, log = of_a[:, None] + of_b, np.empty_like(b), np.empty_like(b)
        for head, rest in zip(a, of_both):
            np.log(np.add(b, head, out=mean), out=log)
            rest -= np.vecdot(mean, log)
        of_both[of_both < EQUAL] = 0
        totals += np.sqrt(np.minimum(of_both / np.log(2), 1)).sum(axis=-1)
    return Distances(totals / len(used_rows), (la, ha), (lb, hb), len(used_rows), len(rows))


@dataclass(frozen=True)
class Nearest:
    """A head of A, the nearest head of B and its distance, the next best, and the median over all
    heads of B. mutual: A's is B's nearest too."""

    head: tuple[int, int]
    nearest: tuple[int, int]
    distance: float
    next: tuple[int, int] | None
    next_distance: float
    median: float
    mutual: bool


def nearest(matrix: Distances) -> tuple[Nearest, ...]:
    """The nearest head of B for every head of A, in reading order; of equal ones the one in the
    same place, else the first."""
    values, matches = matrix.values, []
    nearest_back = values.argmin(axis=0)
    for at, row in enumerate(values):
        order = np.argsort(row, kind="stable")
        head = divmod(at, matrix.shape_a[1])
        first = (
            at if matrix.shape_a == matrix.shape_b and row[at] == row[order[0]] else int(order[0])
        )
        second = next((int(candidate) for candidate in order if candidate != first), None)
        mutual = bool(nearest_back[first] == at or values[at, first] == values[:, first].min())
        matches.append(
            Nearest(
                head,
                divmod(first, matrix.shape_b[1]),
                float(row[first]),
                None if second is None else divmod(second, matrix.shape_b[1]),
                float("nan") if second is None else float(row[second]),
                float(np.median(row)),
                mutual,
            )
        )
    return tuple(matches)


def nearest_to(matches: Sequence[Nearest], head: tuple[int, int]) -> tuple[int, int]:
    """The head of B that is nearest to a head of A."""
    return next(match.nearest for match in matches if match.head == head)


def farthest_head(matches: Sequence[Nearest]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The head of A whose nearest head of B is farthest, and that one."""
    match = max(matches, key=lambda candidate: candidate.distance)
    return match.head, match.nearest


def nearest_columns(matches: Sequence[Nearest]) -> dict[str, list]:
    """The nearest heads as named columns."""
    return {
        "head of A": [name(match.head) for match in matches],
        "nearest": [name(match.nearest) for match in matches],
        "distance": [match.distance for match in matches],
        "next best": ["–" if match.next is None else name(match.next) for match in matches],
        "at": [match.next_distance for match in matches],
        "median": [match.median for match in matches],
        "both ways": ["yes" if match.mutual else "" for match in matches],
    }


def distance_columns(
    matches: Sequence[Nearest], columns: Sequence[str], values: np.ndarray
) -> dict[str, Cells]:
    """The distances (head of A, head of B) as named columns, a row for each pair of heads, with
    what `nearest_columns` says of the head of A."""
    near = nearest_columns(matches)
    long = long_form({"head of A": near["head of A"], "head of B": columns}, values, "distance")
    near["its distance"] = near.pop("distance")
    each = np.repeat(np.arange(len(matches)), len(columns))
    return long | {name: [near[name][at] for at in each] for name in near if name not in long}
