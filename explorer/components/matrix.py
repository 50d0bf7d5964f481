"""Numbers of pairs of tokens: one matrix or several side by side, and one row of them as the tinted
sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader
from explorer.components.figure_caption import Picture

MOST_EXACT = 100_000  # numbers that are sent in single precision, of all panels
MOST_FINE = 500_000  # of more, 16 bits each; of still more a byte each: a view stays under 1.5 MB


@dataclass(frozen=True, eq=False)
class MatrixPanel:
    """One matrix: title, values (row, column), NaN where there is no number, and the ends of its
    colour scale. Where `low` is under 0, blue is below 0 and orange above. drawn: False for numbers
    that are only read out beside the others. under: a line below the matrix.

    spare: how many bytes beyond one a cell its weights, from 0 to 1, may take as `wire.fine` packs
    them; None for `wire.numbers`. less: the places of two panels that are packed so, where this one
    is the second less the first and is not sent."""

    title: str
    values: np.ndarray
    low: float
    high: float
    under: str = ""
    drawn: bool = True
    spare: int | None = None
    less: tuple[int, int] | None = None

    def blocks(self, at: int, n: int) -> dict[str, np.ndarray]:
        """Its numbers for the browser, as the one at a place among n."""
        if self.less is not None:
            return {}
        if self.spare is not None:
            found = codec.fine(self.values, self.spare)
            return {f"{at} {name}": block for name, block in found.items()}
        return codec.numbers(at, self.values, MOST_EXACT // n, MOST_FINE // n)


@dataclass(frozen=True)
class MatrixSheet:
    """Axes shared by matrices side by side: the names of their rows and columns, which columns are
    special, and what the two sides are. places: the numbers of rows and of columns, None for 0, 1,
    2 ... marks: cells (row, column) to be marked. missing: what a cell without a number is. choose:
    True where a row can be chosen."""

    rows: Sequence[str]
    columns: Sequence[str]
    special: Sequence[bool]
    sides: tuple[str, str]
    places: tuple[Sequence[int] | None, Sequence[int] | None] = (None, None)
    marks: Sequence[tuple[int, int]] = ()
    missing: str = ""
    digits: int = 4
    choose: bool = True

    def plain(self) -> dict:
        """The same for a header."""
        return {
            "rows": list(self.rows),
            "columns": list(self.columns),
            "special": [bool(one) for one in self.special],
            "sides": list(self.sides),
            "places": [None if one is None else list(map(int, one)) for one in self.places],
            "marks": [[int(row), int(column)] for row, column in self.marks],
            "missing": self.missing,
            "digits": self.digits,
            "choose": self.choose,
        }


def panels(each: Sequence[MatrixPanel], sheet: MatrixSheet, picture: Picture) -> bytes:
    """Encode matrices of the same rows and columns for the browser. No selection is in it, so that
    choosing a row sends none of it again."""
    drawn = [
        {
            "title": one.title,
            "under": one.under,
            "low": float(one.low),
            "high": float(one.high),
            "drawn": one.drawn,
            "coded": one.spare is not None,
            "less": one.less,
        }
        for one in each
    ]
    header = {"kind": "panels", "panels": drawn, **sheet.plain(), **picture.plain()}
    blocks: dict[str, np.ndarray] = {}
    for at, one in enumerate(each):
        blocks |= one.blocks(at, len(each))
    return codec.encode(header, blocks)


@dataclass(frozen=True)
class SheetRow:
    """A row of a sheet that is shown as a sentence: which one; what a number of it is, between its
    name and a column's; the ends of its colour scale; choose: True where a column is chosen as a
    row."""

    chosen: int
    says: str
    low: float
    high: float
    choose: bool = True


def row(values: np.ndarray, row: SheetRow, sheet: MatrixSheet, picture: Picture) -> bytes:
    """One row (column) as the sentence tinted by it; `picture`: the matrices that it belongs to,
    which will frame it."""
    label = sheet.rows[row.chosen]
    header = {
        "kind": "row",
        **sheet.plain(),
        **asdict(row),
        "label": label,
        "title": f"{picture.title}, row of {label}",
        "token": f"{picture.token} {row.chosen}",
        "picture": picture.token,
    }
    return codec.encode(header, {"v0": values.astype(np.float32)})


_mount = st.components.v2.component(
    "headlight.matrix", html='<div class="matrices"></div>', js=loader("matrix")
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw what `panels` or `row` made. When the callback runs, `st.session_state[key]["row"]` is
    the row to choose."""
    _mount(data=data, key=key, on_row_change=on_choice)
