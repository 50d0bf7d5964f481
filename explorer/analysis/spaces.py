"""How alike the spaces of two recordings' vectors are: lengths, linear CKA, and paths in one plane
or two.

Axis legend: site as in `models/recording.py`; unit: tokens that are the same piece of text on both
sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import lens, sites
from explorer.analysis.alignment import Alignment, averaged, numbered
from explorer.analysis.planes import cosine
from models.recording import Stream

MOST_TOKENS = 256  # of a comparison of spaces, evenly spaced above it
FEWEST_TOKENS = 3
SHUFFLES = 20


def states(stream: Stream) -> tuple[str, ...]:
    """The states a stream passes on, one after the embeddings and one after each sub-layer: after
    its LayerNorm where that follows the sum."""
    found = sites.states(stream, sums=False)
    start = [site for site in found if site.startswith("embed")]
    return (*start[-1:], *(site for site in found if site not in start))


def state_title(site: str) -> str:
    """A state as an axis names it: "start", "L2 attention"."""
    return "start" if site.startswith("embed") else lens.site_name(site)


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
