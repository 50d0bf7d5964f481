"""The table of positions: sinusoids and their laws, learned tables, and which of the two a model
adds.

Axis legend: position (counted from 0), pair (of dimensions 2i and 2i + 1, the paper's i). `d` is
d_model. A rotation turns the pair (sin, cos) of one position into that of another; an angle is in
radians."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis.csv import Columns
from models.recording import Attention, Recording, Stream

BASE = 10_000.0
WIDEST, LONGEST = 1024, 512
# points of a drawn wave from one position to the next, where there are at least as many as this in
# a turn
DRAWN_POINTS = 4
FAR = 2.0  # a first position that is longer than the middle one by more than this factor stands out
# a recorded encoding that is within this of the formula is the formula's, in single precision
SAME = 1e-5


# ---- the table ----


def rates(d: int) -> np.ndarray:
    """By how much the angle of each pair grows from one position to the next, 1 / 10000^(2i/d):
    (pair). Raises ValueError for an odd d."""
    if d < 2 or d % 2:
        raise ValueError(
            f"sines and cosines come in pairs, so d_model must be even and at least 2; it is {d}"
        )
    return BASE ** (-np.arange(0, d, 2) / d)


def table(n: int, d: int) -> np.ndarray:
    """The encoding of positions 0 to n - 1, (position, d): sin of pair i's angle in column 2i, cos
    in column 2i + 1."""
    angle = np.arange(n)[:, None] * rates(d)
    return np.stack((np.sin(angle), np.cos(angle)), axis=-1).reshape(n, d)


def wavelengths(d: int) -> np.ndarray:
    """After how many positions each pair is back where it was, 2 pi 10000^(2i/d): (pair)."""
    return 2 * np.pi / rates(d)


@dataclass(frozen=True)
class Wave:
    """One pair over the positions: (position) angle, sine and cosine; and the same finely, (point),
    to draw the curves through them."""

    angle: np.ndarray
    sine: np.ndarray
    cosine: np.ndarray
    place: np.ndarray
    fine_sine: np.ndarray
    fine_cosine: np.ndarray


def wave(n: int, d: int, pair: int) -> Wave:
    """Pair `pair` of an encoding over n positions."""
    rate = rates(d)[pair]
    angle, place = np.arange(n) * rate, np.linspace(0, n - 1, (n - 1) * DRAWN_POINTS + 1)
    return Wave(
        angle, np.sin(angle), np.cos(angle), place, np.sin(place * rate), np.cos(place * rate)
    )


# ---- products and shifts ----


@dataclass(frozen=True)
class Products:
    """p_i . p_j of all pairs of positions, gathered by distance |i - j|: (distance). `law` is the
    sum of cos(rate x distance) over the pairs of dimensions, `low` and `high` the smallest and
    largest product measured. `deviation`: the largest difference of any product to the law."""

    law: np.ndarray
    low: np.ndarray
    high: np.ndarray
    deviation: float


def products(encoding: np.ndarray) -> Products:
    """The products of a table of sinusoids (position, d)."""
    n, d = encoding.shape
    gram = encoding @ encoding.T
    law = np.cos(np.arange(n)[:, None] * rates(d)).sum(axis=1)
    diagonals = [np.diagonal(gram, distance) for distance in range(n)]
    low, high = (
        np.array([each.min() for each in diagonals]),
        np.array([each.max() for each in diagonals]),
    )
    return Products(law, low, high, float(np.maximum(np.abs(low - law), np.abs(high - law)).max()))


def gram(encoding: np.ndarray, most: int) -> np.ndarray:
    """p_i . p_j of the first `most` positions, (position, position)."""
    first = encoding[:most]
    return first @ first.T


@dataclass(frozen=True)
class ByDistance:
    """p_i . p_j of all pairs of any table's positions, gathered by distance |i - j|: (distance)
    mean, low and high. `told`: the share, 0 to 1, of the products' variance that the distance alone
    accounts for; 1 for sinusoids."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    told: float


def by_distance(table: np.ndarray) -> ByDistance:
    """The products of a table (position, d) that need follow no formula."""
    found = table.astype(np.float64) @ table.astype(np.float64).T
    diagonals = [np.diagonal(found, distance) for distance in range(len(found))]
    mean = np.array([each.mean() for each in diagonals])
    within = sum(
        (1 + (distance > 0)) * ((each - each.mean()) ** 2).sum()
        for distance, each in enumerate(diagonals)
    )
    total = ((found - found.mean()) ** 2).sum()
    return ByDistance(
        mean,
        np.array([each.min() for each in diagonals]),
        np.array([each.max() for each in diagonals]),
        float(1 - within / total) if total else 1.0,
    )


def lengths(table: np.ndarray) -> np.ndarray:
    """The length of every row of a table (position, d): (position)."""
    return np.linalg.norm(table.astype(np.float64), axis=1)


def first_stands_out(table: np.ndarray) -> float | None:
    """How many times as long the vector of position 0 is as the middle one of a table (position,
    d), where that is more than FAR times; else None."""
    found = lengths(table)
    middle = float(np.median(found))
    return float(found[0]) / middle if middle and found[0] > FAR * middle else None


def scale_end(table: np.ndarray) -> float:
    """Where the colours of a table (position, d) may end, so that a few far numbers do not make all
    others look alike: the 99th percentile of their sizes."""
    return float(np.percentile(np.abs(table), 99)) or float(np.abs(table).max()) or 1.0


@dataclass(frozen=True)
class Tried:
    """The paper's rotation by a shift tried on a table it was not made for: how far it misses the
    row that stands there, `turned`, and how far the row misses it that is not turned at all,
    `still`; means over the positions, as shares of the mean length of a row."""

    turned: float
    still: float


def tried(table: np.ndarray, shift: int) -> Tried | None:
    """The rotation tried on a table (position, d). None where no position is so far on, or d is
    odd."""
    table = table.astype(np.float64)
    if not 0 < shift < len(table) or table.shape[1] % 2:
        return None
    here, there, size = table[:-shift], table[shift:], np.linalg.norm(table, axis=1).mean() or 1
    turned, still = (
        np.linalg.norm(each - there, axis=1).mean() / size for each in (shifted(here, shift), here)
    )
    return Tried(float(turned), float(still))


def turn(d: int, pair: int, shift: int) -> np.ndarray:
    """The matrix (2, 2) that takes (sin, cos) of a pair at any position to the same `shift`
    positions on."""
    angle = shift * rates(d)[pair]
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def turned_by(d: int, pair: int, shift: int) -> tuple[float, float]:
    """The angle by which `shift` positions turn a pair, in radians and in degrees."""
    angle = float(shift * rates(d)[pair])
    return angle, float(np.degrees(angle))


def shifted(encoding: np.ndarray, shift: int) -> np.ndarray:
    """Every row of a table (position, d) with each of its pairs turned as far as `shift` positions
    take it: the same shape."""
    n, d = encoding.shape
    turns = np.stack([turn(d, pair, shift) for pair in range(d // 2)])
    return np.einsum("iab,nib->nia", turns, encoding.reshape(n, -1, 2)).reshape(n, d)


def shift_error(n: int, d: int, shift: int) -> float:
    """The largest difference, over all pairs and n positions, between the turned encoding and the
    encoding `shift` positions on."""
    ahead = table(n + shift, d)
    return float(np.abs(shifted(ahead[:n], shift) - ahead[shift:]).max())


def drawn_arc(d: int, pair: int, place: int, shift: int) -> np.ndarray:
    """The way on the unit circle from a pair at one position to where it is `shift` on, (point, 2)
    as (sin, cos); whole turns drawn once."""
    rate = rates(d)[pair]
    turned = shift * rate if shift * rate < 2 * np.pi else 2 * np.pi
    angle = np.linspace(0, turned, 120) + place * rate
    return 0.55 * np.stack((np.sin(angle), np.cos(angle)), axis=1)


# ---- in a sentence ----


def kind(stream: Stream) -> str:
    """What a stream adds for the positions: "sinusoids" of the formula, "learned" for any other
    table, "none" for nothing."""
    if "pos.wrote" not in stream.sites:
        return "none"
    return "sinusoids" if off_formula(stream) <= SAME else "learned"


def off_formula(stream: Stream) -> float:
    """The largest difference between what a model adds for the positions and the formula's
    sinusoids. Up to `SAME` they are sinusoids; beyond it the table is another one, such as a
    learned one. Raises KeyError for a stream that adds nothing."""
    wrote = stream.at("pos.wrote").astype(np.float64)
    n, d = wrote.shape
    return float(np.abs(wrote - table(n, d)).max(initial=0)) if d % 2 == 0 else float("inf")


def attention_of(recording: Recording, stream: str) -> Attention:
    """The self-attention of a stream. Raises ValueError for a stream without one."""
    for attention in recording.attention:
        if attention.query == attention.key == stream:
            return attention
    raise ValueError(f"no attention looks from {stream!r} to itself")


# ---- as tables ----


def table_columns(values: np.ndarray, name: str = "dimension", first: int = 0) -> Columns:
    """A table (position, column) as named columns; `name` is what they are called, before their
    number. `first`: the position of the first row, and where the columns are positions too, of the
    first column."""
    return {
        "position": np.arange(first, first + len(values)),
        **{f"{name} {first + at}": column for at, column in enumerate(values.T)},
    }


def length_columns(table: np.ndarray) -> Columns:
    """The length of every row of a table (position, d) as named columns."""
    return {"position": np.arange(len(table)), "length": lengths(table)}


def wave_columns(of: Wave) -> Columns:
    """A pair over the positions as named columns."""
    return {
        "position": np.arange(len(of.angle)),
        "angle": of.angle,
        "sin": of.sine,
        "cos": of.cosine,
    }


def product_columns(of: Products) -> Columns:
    """The products by distance as named columns."""
    return {
        "distance": np.arange(len(of.law)),
        "sum of cosines": of.law,
        "smallest p·p": of.low,
        "largest p·p": of.high,
    }


def circle_columns(of: Wave, shift: int, d: int, pair: int) -> Columns:
    """A pair at every position, and turned by `shift` positions, as named columns."""
    turned = turn(d, pair, shift) @ np.stack((of.sine, of.cosine))
    return {
        "position": np.arange(len(of.angle)),
        "sin": of.sine,
        "cos": of.cosine,
        f"turned by {shift}: sin": turned[0],
        f"turned by {shift}: cos": turned[1],
    }


def distance_columns(of: ByDistance) -> Columns:
    """Products of a learned table by distance as named columns."""
    return {
        "distance": np.arange(len(of.mean)),
        "mean p·p": of.mean,
        "smallest p·p": of.low,
        "largest p·p": of.high,
    }
