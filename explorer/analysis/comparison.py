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

from explorer.analysis import logit_lens
from explorer.analysis.alignment import Alignment, averaged, numbered
from explorer.analysis.embeddings import cosine
from explorer.analysis.interventions import LARGE
from models.recording import Attention, Recording, Stream

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
class RowChange:
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


def change(found: Sides, a: tuple[int, int], b: tuple[int, int]) -> RowChange:
    """What differs most between a head of A and one of B."""
    one, other = found.heads(a, b)
    far = np.where(found.free, row_distances(one, other), -1)
    at = int(far.argmax())
    moved = other[at] - one[at]
    less, more = int(moved.argmin()), int(moved.argmax())
    labels = found.column_labels
    return RowChange(
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


# Every head of one recording beside every head of another: their distances, and the nearest head
# for each.

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


# How alike the spaces of two recordings' vectors are: lengths, linear CKA, and paths in one plane
# or two.

MOST_TOKENS = 256  # of a comparison of spaces, evenly spaced above it
FEWEST_TOKENS = 3
SHUFFLES = 20


def states(stream: Stream) -> tuple[str, ...]:
    """The states a stream passes on, one after the embeddings and one after each sub-layer: after
    its LayerNorm where that follows the sum."""
    found = logit_lens.states(stream, sums=False)
    start = [site for site in found if site.startswith("embed")]
    return (*start[-1:], *(site for site in found if site not in start))


def state_title(site: str) -> str:
    """A state as an axis names it: "start", "L2 attention"."""
    return "start" if site.startswith("embed") else logit_lens.site_name(site)


@dataclass(frozen=True, eq=False)
class Spaces:
    """Vectors of the units that are text, on both sides: a, b (site, unit, d_model), float64;
    sites_a, sites_b; labels (unit)."""

    labels: tuple[str, ...]
    sites_a: tuple[str, ...]
    sites_b: tuple[str, ...]
    a: np.ndarray
    b: np.ndarray

    @property
    def nbytes(self) -> int:
        """What it weighs."""
        return self.a.nbytes + self.b.nbytes


def spaces(a: Stream, b: Stream, alignment: Alignment) -> Spaces:
    """The states of two streams at their common units; a unit's vector is the mean over its
    tokens."""
    units = [unit for unit in alignment.units if not unit.special]
    made = [
        averaged(
            stream.resid[[stream.sites.index(site) for site in states(stream)]].astype(np.float64),
            [getattr(unit, side) for unit in units],
        )
        if units
        else np.zeros((len(states(stream)), 0, stream.resid.shape[-1]))
        for stream, side in ((a, "a"), (b, "b"))
    ]
    return Spaces(tuple(unit.label for unit in units), states(a), states(b), *made)


def depth(n: int) -> np.ndarray:
    """Where n states stand between the first, 0, and the last, 1."""
    return np.linspace(0, 1, n) if n > 1 else np.zeros(n)


def norms(vectors: np.ndarray) -> np.ndarray:
    """Lengths of (site, unit, d_model): mean, least and largest over units, (3, site)."""
    length = np.linalg.norm(vectors, axis=-1)
    return np.stack((length.mean(axis=1), length.min(axis=1), length.max(axis=1)))


def ends(found: Spaces, unit: int) -> tuple[float, float]:
    """How far one unit's last states are apart on the two sides, and their cosine. Both sides are
    one model's."""
    one, other = found.a[-1, unit], found.b[-1, unit]
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.linalg.norm(one - other)), float(one @ other) / length if length > 0 else 1.0


@dataclass(frozen=True, eq=False)
class Likeness:
    """Linear CKA between every state of A and of B, values (site of A, site of B), 0 to 1; chance,
    the same shape: its mean where B's units are in another order. n of n_all units were used."""

    values: np.ndarray
    chance: np.ndarray
    n: int
    n_all: int


def likeness(found: Spaces) -> Likeness:
    """Linear CKA (Kornblith et al. 2019) of the states on both sides, over units. Raises ValueError
    for fewer than three units."""
    n_all = len(found.labels)
    if n_all < FEWEST_TOKENS:
        raise ValueError(
            f"{n_all} aligned tokens are too few to compare spaces; it takes {FEWEST_TOKENS}"
        )
    used = np.unique(np.linspace(0, n_all - 1, min(n_all, MOST_TOKENS)).round().astype(int))
    one, other = (_grams(side[:, used]) for side in (found.a, found.b))
    flat = one.reshape(len(one), -1)
    rng = np.random.default_rng(0)
    chance = np.mean(
        [
            flat @ other[:, order][:, :, order].reshape(len(other), -1).T
            for order in (rng.permutation(len(used)) for _ in range(SHUFFLES))
        ],
        axis=0,
    )
    values = flat @ other.reshape(len(other), -1).T
    return Likeness(np.clip(values, 0, 1), np.clip(chance, 0, 1), len(used), n_all)


def cka(x: np.ndarray, y: np.ndarray) -> float:
    """Linear CKA of two sets of vectors of the same things, (thing, d) and (thing, e): |Y'X|² /
    (|X'X| |Y'Y|), both centred, Frobenius norms."""
    return float((_grams(x[None]) * _grams(y[None])).sum())


def _grams(vectors: np.ndarray) -> np.ndarray:
    """Gram matrices (site, thing, thing) of centred vectors (site, thing, d), each at Frobenius
    length 1; zeros where all vectors are the same."""
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    gram = centred @ centred.swapaxes(1, 2)
    length = np.linalg.norm(gram, axis=(1, 2), keepdims=True)
    return np.where(length > 1e-20, gram / np.where(length > 1e-20, length, 1), 0)


@dataclass(frozen=True, eq=False)
class Plane:
    """Paths in a plane: points (site, unit, 2), how much of the vectors' spread each axis has, and
    what the plane was fitted on."""

    points: np.ndarray
    explained: tuple[float, float]


def planes(found: Spaces, common: bool) -> tuple[Plane, Plane]:
    """Both sides' paths in the two directions along which they spread most: together in one plane,
    or each in its own."""
    flat = [side.reshape(-1, side.shape[-1]) for side in (found.a, found.b)]
    bases = [_plane(np.concatenate(flat))] * 2 if common else [_plane(each) for each in flat]
    a, b = (
        Plane((side - centre) @ axes, explained)
        for side, (centre, axes, explained) in zip((found.a, found.b), bases)
    )
    return a, b


def _plane(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    centre = rows.mean(axis=0)
    values, vectors = np.linalg.eigh((rows - centre).T @ (rows - centre))
    axes = vectors[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    total = max(float(values.sum()), 1e-30)
    return centre, axes, (float(values[-1]) / total, float(values[-2]) / total)


def followed(found: Spaces, common: bool) -> int:
    """The unit to follow where the reader has chosen none: of one model's two runs the one whose
    last states differ most in direction, else the longest word."""
    if not common:
        return max(range(len(found.labels)), key=lambda at: sum(map(str.isalpha, found.labels[at])))
    return int(cosine(found.a[-1], found.b[-1]).argmin())


def norm_columns(found: Spaces) -> dict[str, list]:
    """Lengths by state on both sides as named columns."""
    rows = [
        (side, state_title(site), float(deep), *map(float, values))
        for side, names, vectors in (("A", found.sites_a, found.a), ("B", found.sites_b, found.b))
        for site, deep, values in zip(names, depth(len(names)), norms(vectors).T)
    ]
    return _columns(("side", "state", "depth", "mean", "least", "largest"), rows)


def likeness_columns(found: Spaces, like: Likeness) -> dict[str, list]:
    """CKA and its chance value for every pair of states as named columns."""
    pairs = [(at, to) for at in range(len(found.sites_a)) for to in range(len(found.sites_b))]
    return {
        "state of A": [state_title(found.sites_a[at]) for at, _ in pairs],
        "state of B": [state_title(found.sites_b[to]) for _, to in pairs],
        "CKA": [float(like.values[pair]) for pair in pairs],
        "by chance": [float(like.chance[pair]) for pair in pairs],
    }


def path_columns(found: Spaces, made: tuple[Plane, Plane]) -> dict[str, list]:
    """Every point of both pictures as named columns."""
    rows = [
        (side, label, state_title(site), *map(float, plane.points[at, unit]))
        for side, names, plane in (("A", found.sites_a, made[0]), ("B", found.sites_b, made[1]))
        for unit, label in enumerate(numbered(found.labels))
        for at, site in enumerate(names)
    ]
    return _columns(("side", "token", "state", "x", "y"), rows)


def _columns(names: Sequence[str], rows: Sequence[tuple]) -> dict[str, list]:
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}
