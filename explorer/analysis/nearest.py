"""Every head of one recording beside every head of another: their distances, and the nearest head
for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.compare import TINY, Sides, head_number, name, names, plogp

# All pairs of heads x rows x keys: about a second. Above it fewer rows are taken, evenly spaced.
MOST_WORK = 400_000_000
FEWEST_ROWS = 8
MOST_BESIDE = 48  # heads of B in a map that has a list beside it


@dataclass(frozen=True, eq=False)
class Distances:
    """Every head of A to every head of B: values (head of A, head of B), heads in reading order.
    n_rows of all_rows rows were used."""

    values: np.ndarray
    shape_a: tuple[int, int]
    shape_b: tuple[int, int]
    n_rows: int
    all_rows: int


def distances(found: Sides, most: int = MOST_WORK) -> Distances:
    """Every head of A to every head of B. Where heads x heads x rows x columns is more than `most`,
    evenly spaced rows stand for all."""
    rows = np.flatnonzero(found.free)
    (la, ha), (lb, hb) = found.a.shape[:2], found.b.shape[:2]
    fitting = max(FEWEST_ROWS, most // (la * ha * lb * hb * found.a.shape[-1]))
    used = (
        rows
        if len(rows) <= fitting
        else rows[np.unique(np.linspace(0, len(rows) - 1, fitting).round().astype(int))]
    )
    a, b = (
        np.concatenate([layer[:, used].astype(np.float32) for layer in side])
        for side in (found.a, found.b)
    )
    for side in (a, b):
        side[side < TINY] = 0  # halves of smaller numbers are not exact
    values = np.empty((len(a), len(b)), dtype=np.float64)
    half_a, half_b = plogp(a) / 2, plogp(b) / 2
    mean, log = np.empty_like(b), np.empty_like(b)
    for at, (one, half) in enumerate(zip(a, half_a)):
        np.add(b, one, out=mean)
        mean *= 0.5
        np.log(np.maximum(mean, TINY, out=log), out=log)
        mean *= log
        np.subtract(half_b, mean, out=log)
        log += half  # equal rows leave exactly 0: half + half - whole, term by term
        values[at] = np.sqrt(np.clip(log.sum(axis=-1) / np.float32(np.log(2)), 0, 1)).mean(axis=-1)
    return Distances(values, (la, ha), (lb, hb), len(used), len(rows))


def few(all_values: Distances) -> bool:
    """True where the map of all distances is narrow enough to have something beside it."""
    return all_values.values.shape[1] <= MOST_BESIDE


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


def nearest(found: Distances) -> tuple[Nearest, ...]:
    """The nearest head of B for every head of A, in reading order; of equal ones the one in the
    same place, else the first."""
    values, made = found.values, []
    back = values.argmin(axis=0)
    for at, row in enumerate(values):
        order = np.argsort(row, kind="stable")
        head = divmod(at, found.shape_a[1])
        first = at if found.shape_a == found.shape_b and row[at] == row[order[0]] else int(order[0])
        second = next((int(each) for each in order if each != first), None)
        mutual = bool(back[first] == at or values[at, first] == values[:, first].min())
        made.append(
            Nearest(
                head,
                divmod(first, found.shape_b[1]),
                float(row[first]),
                None if second is None else divmod(second, found.shape_b[1]),
                float("nan") if second is None else float(row[second]),
                float(np.median(row)),
                mutual,
            )
        )
    return tuple(made)


def nearest_to(near: Sequence[Nearest], head: tuple[int, int]) -> tuple[int, int]:
    """The head of B that is nearest to a head of A."""
    return next(one.nearest for one in near if one.head == head)


def farthest_head(near: Sequence[Nearest]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The head of A whose nearest head of B is farthest, and that one."""
    one = max(near, key=lambda each: each.distance)
    return one.head, one.nearest


def marks(near: Sequence[Nearest], all_values: Distances) -> list[tuple[int, int]]:
    """The cell of the nearest head in each row of all distances."""
    return [
        (head_number(one.head, all_values.shape_a), head_number(one.nearest, all_values.shape_b))
        for one in near
    ]


def nearest_columns(near: Sequence[Nearest]) -> dict[str, list]:
    """The nearest heads as named columns."""
    return {
        "head of A": [name(one.head) for one in near],
        "nearest": [name(one.nearest) for one in near],
        "distance": [one.distance for one in near],
        "next best": ["–" if one.next is None else name(one.next) for one in near],
        "at": [one.next_distance for one in near],
        "median": [one.median for one in near],
        "both ways": ["yes" if one.mutual else "" for one in near],
    }


def distance_columns(all_values: Distances) -> dict[str, list]:
    """Every head of A to every head of B, a column for each head of B."""
    return {"A \\ B": names(all_values.shape_a)} | {
        label: column.tolist()
        for label, column in zip(names(all_values.shape_b), all_values.values.T)
    }
