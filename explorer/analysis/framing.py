"""Places of a figure at which a number stands: formulas have their results framed there.

A number is looked for as a value, equal up to the rounding of 32 bits, and where no figure has it
as one, as a text. One of a vector stands only at its own component."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from explorer.figures.formatting import matches_text, parse_number
from explorer.figures.kinds import (
    Bars,
    Chart,
    Dials,
    Facts,
    Figure,
    Flow,
    Frame,
    Loops,
    Matrix,
    Network,
    Product,
    Relay,
    Stack,
    Steps,
    Strips,
    TextTable,
)

CLOSE = 2e-5  # how far a value may lie from its own, computed in another order, as a share of it
LEAST = 1e-7  # numbers nearer to 0 are those of rounding
# A text that tells a number: alone, behind a sign or what it is made of, or before its unit.
TOLD = re.compile(
    r"(?:.*[=≈×] )?(?P<number>−?\d[\d,]*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)(?: [^\d]*)?"
)
VECTORS = (Strips, Product, Network)

Place = tuple[int, int]
Datum = tuple[Place, float | str]


class Result(NamedTuple):
    """The number that a line of a formula comes to: its value, its text, and the component of a
    vector that it is, None for a number that is none."""

    value: float
    text: str
    component: int | None = None


def framed(figures: Sequence[Figure], result: Result) -> tuple[tuple[Figure, ...], bool]:
    """Figures with a frame around a result, and whether it stands in one of them."""
    for is_text in (False, True):
        made = tuple(_framed(each, result, is_text) for each in figures)
        if any(one is not own for one, own in zip(made, figures)):
            return made, True
    return tuple(figures), False


def _framed(figure: Figure, result: Result, is_text: bool) -> Figure:
    """A figure with one more frame, the same where the result is not in it."""
    if isinstance(figure, Stack):
        inner = tuple(_framed(each, result, is_text) for each in figure.figures)
        is_there = any(one is not own for one, own in zip(inner, figure.figures))
        return replace(figure, figures=inner) if is_there else figure
    places = (
        place
        for place, datum in data(figure, result.value)
        if isinstance(datum, str) == is_text and _is(result, place, datum, figure)
    )
    place = min(places, key=lambda each: _rank(figure, each), default=None)
    if place is None:
        return figure
    return replace(figure, framed=tuple(dict.fromkeys((*figure.framed, (*place, result.text)))))


def at_formulas(
    figures: Sequence[Figure], formulas: Sequence[Mapping[str, Any]]
) -> tuple[tuple[Figure, ...], list[dict[str, Any]]]:
    """Figures with a frame around each result of formulas, as `Formula.plain` has these, and the
    formulas with the lines of numbers alone whose result stands in a figure. A frame of a slider
    names the formulas among these that are its own, and its last one is shown with numbers."""
    known = [each["id"] for each in formulas]
    made = tuple(_with_formulas(each, known) for each in figures)
    lines = []
    for formula in formulas:
        kept = []
        for at, result in enumerate(formula["results"]):
            made, is_there = _everywhere(made, formula["id"], result)
            kept += [at] if is_there else []
        numbers = {name: [formula[name][at] for at in kept] for name in ("numbers", "results")}
        lines.append({**formula, **numbers})
    return made, lines


def _with_formulas(figure: Figure, known: Sequence[str]) -> Figure:
    """A figure whose frames name formulas of these alone."""
    if not isinstance(figure, Steps):
        return figure
    of = lambda ids: None if ids is None else tuple(id for id in ids if id in known)
    frames = tuple(replace(each, formulas=of(each.formulas)) for each in figure.frames)
    return replace(figure, frames=frames)


def _everywhere(
    figures: tuple[Figure, ...], id: str, result: Result
) -> tuple[tuple[Figure, ...], bool]:
    """Figures with a frame around a result of a formula, in all frames of a slider that the formula
    is of, and whether it stands in one."""
    steps = next((each for each in figures if isinstance(each, Steps)), None)
    if steps is None:
        return framed(figures, result)
    has_own = any(each.formulas for each in steps.frames)
    is_of = lambda frame: not has_own or (frame.formulas or ())[-1:] == (id,)
    ways = [_in_frame(each, result) if is_of(each) else (each, False) for each in steps.frames]
    if not any(is_there for _, is_there in ways):
        return (figures, False) if has_own else framed(figures, result)
    frames, now = tuple(frame for frame, _ in ways), steps.current
    changed: dict[Figure | None, Figure | None] = {
        steps.frames[now].beside: frames[now].beside,
        steps: replace(steps, frames=frames),
    }
    return tuple(changed.get(each) or each for each in figures), True


def _in_frame(frame: Frame, result: Result) -> tuple[Frame, bool]:
    """A frame of a slider with a frame around a result, and whether it stands there."""
    beside = () if frame.beside is None else (frame.beside,)
    made, is_there = framed((*frame.figures, *beside), result)
    own = made[: len(frame.figures)]
    matrix = made[-1] if beside else None
    assert matrix is None or isinstance(matrix, Matrix)
    return replace(frame, figures=own, beside=matrix), is_there


def _is(result: Result, place: Place, datum: float | str, figure: Figure) -> bool:
    """True where a datum is the result."""
    if isinstance(datum, str):
        match = TOLD.fullmatch(datum)
        return match is not None and (
            match["number"] == result.text
            or (
                matches_text(result.text, parse_number(match["number"]))
                and matches_text(match["number"], result.value)
            )
        )
    if not np.isfinite(datum) or not matches_text(result.text, datum):
        return False
    if abs(datum - result.value) > _reach(result.value):
        return False
    own = component_at(figure, place)
    return own is None or result.component in (None, own)


def _reach(value: float) -> float:
    """The distance from a result within which a value is the same number."""
    return max(CLOSE * abs(value), LEAST)


def component_at(figure: Figure, place: Place) -> int | None:
    """The component of a vector that stands at a place, None where no vector does."""
    if isinstance(figure, Product):
        return place[1] % figure.factors[place[0]].grid[1]
    if isinstance(figure, VECTORS):
        return place[1]
    if isinstance(figure, Matrix) and figure.columns[place[1]].isdecimal():
        return int(figure.columns[place[1]])
    return None


def _rank(figure: Figure, place: Place) -> tuple[int, Place]:
    """Order of the places of one number: marked or selected ones first, then those in their row."""
    row, column = place
    if isinstance(figure, Matrix):
        marks = [mark[:2] for mark in figure.marks]
        rows = {mark[0] for mark in marks} | {figure.selected}
        return (0 if place in marks else 1 if row in rows else 2), place
    if isinstance(figure, Bars):
        return int(not figure.rows[row].selected), place
    if isinstance(figure, Chart):
        return int(row != GUIDE and not figure.series[row].main), place
    if isinstance(figure, VECTORS):
        return int(not vectors(figure)[row].selected), place
    return 0, place


# ---- the data of a figure ------------------------------------------------------------------------

GUIDE = -1  # stands for a curve's number where the place is a dashed line of a chart


def data(figure: Figure, near: float) -> Iterator[Datum]:
    """The numbers and texts of a figure, each with its place as `Figure.framed` has it; of a
    matrix, which may have hundreds of thousands of numbers, those near a number alone."""
    if isinstance(figure, Matrix):
        yield from _in_matrix(figure, near)
    elif read := READ.get(type(figure)):
        yield from read(figure)


def vectors(figure: Any) -> Sequence[Any]:
    """The strips of strips, the factors of a product, or the layers of a network."""
    name = {Strips: "strips", Product: "factors", Network: "layers"}[type(figure)]
    found: Sequence[Any] = getattr(figure, name)
    return found


def _in_vectors(figure: Any) -> Iterator[Datum]:
    for at, vector in enumerate(vectors(figure)):
        if getattr(vector, "grid", None) == getattr(vector, "shape", None):  # no means of blocks
            for component, value in enumerate(np.ravel(vector.values)):
                yield (at, component), float(value)


def _in_bars(figure: Any) -> Iterator[Datum]:
    for at, row in enumerate(figure.rows):
        for column, (value, text) in enumerate(zip(row.values, row.texts)):
            yield (at, column), float(value)
            yield (at, column), text


def _in_chart(figure: Any) -> Iterator[Datum]:
    for at, series in enumerate(figure.series):
        for point, value in enumerate(series.y):
            yield (at, point), float(value)
    for at, (value, _) in enumerate(figure.guides):
        yield (GUIDE, at), float(value)


def _in_matrix(figure: Matrix, near: float) -> Iterator[Datum]:
    values = np.asarray(figure.values, float)
    for row, column in np.argwhere(np.abs(values - near) <= _reach(near)).tolist():
        yield (row, column), float(values[row, column])
    for cell, text in enumerate(figure.words):
        yield divmod(cell, len(figure.columns)), text


def _in_texts(rows: Sequence[Sequence[str]]) -> Iterator[Datum]:
    for at, row in enumerate(rows):
        for column, text in enumerate(row):
            yield (at, column), text


def _in_loops(figure: Any) -> Iterator[Datum]:
    boxes, at = list(figure.boxes), 0
    while boxes:
        box = boxes.pop(0)
        yield (at, 0), box.count
        boxes, at = [*box.inside, *boxes], at + 1


READ: dict[type[Figure], Callable[[Any], Iterator[Datum]]] = {
    Bars: _in_bars,
    Chart: _in_chart,
    Dials: lambda figure: _in_texts([(each.text,) for each in figure.dials]),
    Facts: lambda figure: _in_texts([each[:1] for each in figure.facts]),
    Flow: lambda figure: (((at, 0), each.chance) for at, each in enumerate(figure.lanes)),
    Loops: _in_loops,
    Network: _in_vectors,
    Product: _in_vectors,
    Relay: lambda figure: (((0, at), float(each)) for at, each in enumerate(figure.values)),
    Strips: _in_vectors,
    TextTable: lambda figure: _in_texts(figure.rows),
}
