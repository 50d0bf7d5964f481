"""What a step of the tour shows: small labelled pictures, each with the one number of this sentence
written on it.

Numbers are finite; a cell that does not exist is None. A mark is a place on the picture and the
text that stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

MOST_TOKENS = 13  # of a sentence that one picture shows in type for the back row


@dataclass(frozen=True)
class StepFigure:
    """What every picture has: its title and a line under it."""

    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Grid(StepFigure):
    """A matrix: values (row, column), None for a cell that is not there, from 0 to `high`, or from
    -high to high where `signed`.

    marks: (row, column, text), framed. bare: rows are those of the picture before, and not named
    again.
    """

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    values: tuple[tuple[float | None, ...], ...] = ()
    high: float = 1.0
    signed: bool = False
    marks: tuple[tuple[int, int, str], ...] = ()
    bare: bool = False


@dataclass(frozen=True)
class BarRow:
    """A row of bars: its label, a length and a text for each column, and whether it is the one that
    is spoken of."""

    label: str
    values: tuple[float, ...]
    texts: tuple[str, ...]
    on: bool = False
    tone: str = ""


@dataclass(frozen=True)
class Bars(StepFigure):
    """Rows of bars under named columns, each column on its own scale, or all on one where `shared`;
    `wide` where texts are words. mark: the (row, column) whose text is the step's number."""

    columns: tuple[str, ...] = ()
    rows: tuple[BarRow, ...] = ()
    mark: tuple[int, int] | None = None
    shared: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Lines(StepFigure):
    """Who looks at whom: weights (left, right), None where it is not allowed; `held` the left one
    that is spoken of, and its mark (right, text)."""

    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    sides: tuple[str, str] = ("", "")
    weights: tuple[tuple[float | None, ...], ...] = ()
    held: int = -1
    mark: tuple[int, str] | None = None


@dataclass(frozen=True)
class Series:
    """A named curve, and what is written at its end; `on` for the one that is spoken of."""

    name: str
    x: tuple[float | None, ...]
    y: tuple[float | None, ...]
    end: str = ""
    on: bool = False


@dataclass(frozen=True)
class Curves(StepFigure):
    """Curves over one axis. ticks: (place, text) along x where they are not numbers. backwards: x
    falls to the right."""

    series: tuple[Series, ...] = ()
    x_title: str = ""
    y_title: str = ""
    log_x: bool = False
    log_y: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    backwards: bool = False


@dataclass(frozen=True)
class Strip:
    """A vector as a strip of colours: the sign before it, its label, its values and what is written
    beside it."""

    label: str
    values: tuple[float, ...]
    text: str = ""
    sign: str = ""
    on: bool = False


@dataclass(frozen=True)
class Strips(StepFigure):
    """Vectors under each other, all on one scale from -high to high."""

    strips: tuple[Strip, ...] = ()
    high: float = 1.0


@dataclass(frozen=True)
class Dial:
    """A turn: the vector before (length), after the addition (length, degrees) and at the end
    (length, degrees), in units of `full`."""

    label: str
    before: float
    total: tuple[float, float]
    after: tuple[float, float]
    text: str = ""
    on: bool = False


@dataclass(frozen=True)
class Dials(StepFigure):
    """Turns one after another; full: the length of an arrow that reaches the circle, and its
    name."""

    dials: tuple[Dial, ...] = ()
    full: float = 1.0
    circle: str = ""


@dataclass(frozen=True)
class Rung:
    """A row of words with their probabilities."""

    label: str
    words: tuple[tuple[str, float, str], ...]
    on: bool = False


@dataclass(frozen=True)
class Ladder(StepFigure):
    """Rows of words, likeliest first."""

    rungs: tuple[Rung, ...] = ()


@dataclass(frozen=True)
class Box:
    """A loop or a step in one: what it does, how often, and what is in it."""

    text: str
    count: str = ""
    inside: tuple[Box, ...] = field(default=())
    on: bool = False


@dataclass(frozen=True)
class Loops(StepFigure):
    """Nested loops."""

    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True)
class StepResult:
    """A step on this sentence: its number, as it stands on the picture and as a value; the words
    that its sentence names; its pictures side by side; the choices of the address that show the
    same on the step's page; and which of the step's sentences is true here, "" for the first."""

    number: str
    value: float
    panels: tuple[StepFigure, ...]
    words: dict[str, str] = field(default_factory=dict)
    address: tuple[tuple[str, str], ...] = ()
    variant: str = ""


def panel_data(panel: StepFigure) -> dict[str, Any]:
    """A picture as plain data, with its kind."""
    return {"kind": type(panel).__name__.lower(), **asdict(panel)}


def numbers(values: np.ndarray | Sequence[float]) -> tuple[float | None, ...]:
    """A row of numbers, None for those that are not finite."""
    return tuple(
        float(value) if np.isfinite(value) else None for value in np.asarray(values, np.float64)
    )


def matrix(values: np.ndarray, allowed: np.ndarray | None = None) -> tuple[tuple, ...]:
    """Rows of numbers, None where `allowed` is False."""
    if allowed is not None:
        values = np.where(allowed, values, np.nan)
    return tuple(numbers(row) for row in values)


def window(n: int, focus: Sequence[int], limit: int = MOST_TOKENS) -> np.ndarray:
    """Which of n places are shown: all where they fit, else those around `focus`, in order."""
    if n <= limit:
        return np.arange(n)
    focused = sorted({int(each) for each in focus if 0 <= each < n})[:limit]
    distance = np.abs(np.arange(n)[:, None] - np.array(focused or [0])).min(axis=1)
    nearest = np.argsort(distance, kind="stable")[:limit]
    return np.sort(nearest)


def truncation_note(n_shown: int, n: int, noun: str = "tokens") -> str:
    """A word on how much of a sentence is shown; "" where all is."""
    return "" if n_shown == n else f"{n_shown} of {n} {noun}"


def share(value: float) -> str:
    """A share of a length, short enough for a column: "94%", "0.3%", "0%" for what is rounding."""
    if value < 0.0005:
        return "0%"
    return f"{100 * value:.1f}%" if value < 0.01 else f"{100 * value:.0f}%"
