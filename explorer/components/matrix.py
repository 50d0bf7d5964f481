"""Numbers of pairs of tokens: one matrix or several side by side, and one row of them as the tinted sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from explorer.components import wire
from explorer.components.bundle import loader

MOST_EXACT = 100_000  # numbers that are sent in single precision, of all panels
MOST_FINE = 500_000  # of more, 16 bits each; of still more a byte each: a view stays under 1.5 MB


@dataclass(frozen=True, eq=False)
class Panel:
    """One matrix: title, values (row, column), NaN where there is no number, and the ends of its colour scale. Where `low` is under 0, blue is
    below 0 and orange above. drawn: False for numbers that are only read out beside the others. under: a line below the matrix."""

    title: str
    values: np.ndarray
    low: float
    high: float
    under: str = ""
    drawn: bool = True


def panels(
    each: Sequence[Panel],
    rows: Sequence[str],
    columns: Sequence[str],
    special: Sequence[bool],
    *,
    sides: tuple[str, str],
    marks: Sequence[tuple[int, int]] = (),
    missing: str = "",
    digits: int = 4,
    choose: bool = True,
    title: str,
    caption: Sequence[str],
    file: str,
    token: str,
) -> bytes:
    """What the browser needs to draw matrices of the same rows and columns.

    sides: what rows and columns are. marks: cells (row, column) to be marked. missing: what a cell without a number is. choose: True where a row
    can be chosen. It holds no selection, so that choosing a row sends none of it again. token: the name of this picture.
    """
    header = {
        "kind": "panels",
        "token": token,
        "panels": [
            {
                "title": one.title,
                "under": one.under,
                "low": float(one.low),
                "high": float(one.high),
                "drawn": one.drawn,
            }
            for one in each
        ],
        "rows": list(rows),
        "columns": list(columns),
        "special": [bool(one) for one in special],
        "sides": list(sides),
        "marks": [[int(row), int(column)] for row, column in marks],
        "missing": missing,
        "digits": digits,
        "choose": choose,
        "title": title,
        "caption": list(caption),
        "file": file,
    }
    blocks = {}
    for at, one in enumerate(each):
        blocks |= wire.numbers(at, one.values, MOST_EXACT // len(each), MOST_FINE // len(each))
    return wire.encode(header, blocks)


def row(
    values: np.ndarray,
    columns: Sequence[str],
    special: Sequence[bool],
    *,
    chosen: int,
    label: str,
    says: str,
    low: float,
    high: float,
    missing: str = "",
    digits: int = 4,
    choose: bool = True,
    title: str,
    token: str,
    picture: str,
) -> bytes:
    """One row (column) as the sentence tinted by it.

    chosen: which row. label: its name. says: what a number of it is, between label and column. choose: True where a column is chosen as a row.
    picture: the name of the matrices it belongs to, which will frame the row.
    """
    header = {
        "kind": "row",
        "token": token,
        "picture": picture,
        "columns": list(columns),
        "special": [bool(one) for one in special],
        "chosen": chosen,
        "label": label,
        "says": says,
        "low": float(low),
        "high": float(high),
        "missing": missing,
        "digits": digits,
        "choose": choose,
        "title": title,
    }
    return wire.encode(header, {"v0": values.astype(np.float32)})


_mount = st.components.v2.component(
    "headlight.matrix", html='<div class="matrices"></div>', js=loader("matrix")
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw what `panels` or `row` made. When the callback runs, `st.session_state[key]["row"]` is the row to choose."""
    _mount(data=data, key=key, on_row_change=on_choice)
