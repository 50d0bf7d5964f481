"""Vectors in a plane: lengths and cosines, the directions along which vectors spread most, and what
these leave out.

Axis legend: d_model as in `models/recording.py`; `axis` counts the three directions of a basis.
Lengths are in the units of the residual stream; errors and explained variances are shares from 0 to
1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def unit(array: np.ndarray) -> np.ndarray:
    """Vectors (..., d_model) at length 1; a vector of zeros stays one."""
    length = np.linalg.norm(array, axis=-1, keepdims=True)
    return array / np.where(length > 0, length, 1)


def moved(array: np.ndarray) -> np.ndarray:
    """How far each vector of (site, ..., d_model) lies from the one at the site before, in all
    dimensions: (site, ...), 0 at the first."""
    return np.linalg.norm(np.diff(array, axis=0, prepend=array[:1]), axis=-1)


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The cosine along the last axis; 0 where one of the two is 0."""
    return (unit(a) * unit(b)).sum(-1)


@dataclass(frozen=True, eq=False)
class Basis:
    """Three directions at right angles and the point they start from.

    centre (d_model), the mean of all vectors it was made for; axes (axis, d_model), of length 1;
    explained (axis): the share of those vectors' squared distance from the centre that lies along
    each; names: of the axes.
    """

    centre: np.ndarray
    axes: np.ndarray
    explained: np.ndarray
    names: tuple[str, ...]

    def project(self, array: np.ndarray) -> np.ndarray:
        """Coordinates (..., axis) of vectors (..., d_model)."""
        return (array - self.centre) @ self.axes.T

    def error(self, array: np.ndarray, n_axes: int = 2) -> np.ndarray:
        """The share of each vector's squared length, taken from the centre, that lies outside the
        first `n_axes` directions."""
        total = ((array - self.centre) ** 2).sum(-1)
        inside = (self.project(array)[..., :n_axes] ** 2).sum(-1)
        return np.clip(1 - inside / np.where(total > 0, total, 1), 0, 1) * (total > 0)


def principal(rows: np.ndarray) -> Basis:
    """The three directions along which vectors (row, d_model) spread most: principal components,
    signs fixed by their largest entry.

    Raises ValueError for fewer than three dimensions.
    """
    if rows.shape[1] < 3:
        raise ValueError(f"a basis of three axes needs three dimensions, not {rows.shape[1]}")
    centre = rows.mean(0)
    return _basis(rows, centre, _spread(rows - centre, 3), ("PC 1", "PC 2", "PC 3"))


def through(rows: np.ndarray, start: np.ndarray, end: np.ndarray, name: str) -> Basis:
    """The first axis points from one vector to another (both d_model); the other two are the
    principal components of what it leaves over.

    Raises ValueError where the two are the same.
    """
    way = end - start
    length = np.linalg.norm(way)
    if not length > 0:
        raise ValueError("no axis leads from a point to itself")
    first = way / length
    centre = rows.mean(0)
    offset = rows - centre
    rest = _spread(offset - np.outer(offset @ first, first), 2, first)
    return _basis(
        rows, centre, np.vstack((first, rest)), (name, "PC 1 of the rest", "PC 2 of the rest")
    )


def _spread(offset: np.ndarray, n: int, avoid: np.ndarray | None = None) -> np.ndarray:
    """The n main directions (n, d_model) of centred rows, at right angles to `avoid`."""
    weight = offset.T @ offset
    if (
        avoid is not None
    ):  # last of all, also where nothing is left over and every direction is as good
        weight -= (np.trace(weight) + 1) * np.outer(avoid, avoid)
    _, found = np.linalg.eigh(weight)
    axes = found[:, ::-1][:, :n].T
    sign = np.sign(axes[np.arange(n), np.abs(axes).argmax(1)])
    return axes * sign[:, None]


def _basis(rows: np.ndarray, centre: np.ndarray, axes: np.ndarray, names: tuple[str, ...]) -> Basis:
    offset = rows - centre
    total = (offset**2).sum()
    return Basis(centre, axes, ((offset @ axes.T) ** 2).sum(0) / (total if total > 0 else 1), names)
