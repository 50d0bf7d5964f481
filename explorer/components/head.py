"""One head in three linked views: the sentence tinted, the matrix or the lines, and its downloads
as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader
from explorer.components.figure_caption import Picture

HINT = {
    "matrix": (
        "Point at a cell, or tap it, for its weight. Choose a token to hold its row and column."
    ),
    "lines": "Point at a token, or tap it, to see its lines alone.",
}
HINT_ELSE = "Choose a token to see what it looks at."
HINT_ACROSS = {
    "matrix": (
        "Point at a cell, or tap it, for its weight. A target token holds its row, a source "
        "token its column."
    ),
    "lines": HINT["lines"],
}
HINT_ACROSS_ELSE = (
    "Choose a target token to see what it looks at, a source token to see what looks at it."
)


@dataclass(frozen=True, eq=False)
class HeadMatrix:
    """A head's weights as they are drawn: matrix and allowed (query, key), what rows and columns
    are called, and which columns are special. said: between two texts, for each row the token it
    produces and whether it is a special one. hidden (row): the share of each row that goes to
    tokens left out. places: the numbers of rows and of columns, None for 0, 1, 2 ..."""

    matrix: np.ndarray
    allowed: np.ndarray
    queries: Sequence[str]
    keys: Sequence[str]
    special: Sequence[bool]
    said: Sequence[tuple[str, bool]] | None = None
    hidden: np.ndarray | None = None
    places: tuple[Sequence[int] | None, Sequence[int] | None] = (None, None)


@dataclass(frozen=True)
class PinnedCell:
    """Selection in a head's matrix: a row (`pin`) and a column, -1 for none, both the chosen
    token's where rows and columns are one text; the cell that is opened; and the cells that speak
    for the head's name."""

    pin: int = -1
    column: int = -1
    cell: tuple[int, int] | None = None
    evidence: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class HeadAppearance:
    """Style of a head's picture: "matrix", "lines" or "both" of them, on the scale of the "head",
    the "row" or "global", linear or by powers of ten. incoming: True where lines to the selected
    word are drawn too."""

    view: str = "matrix"
    scale: str = "head"
    log: bool = False
    incoming: bool = False


def payload(
    shown: HeadMatrix,
    at: tuple[int, int],
    held: PinnedCell,
    look: HeadAppearance,
    picture: Picture,
    sizes: tuple[int, int] | None = None,
) -> bytes:
    """Encode one head, (layer, head), for the browser. sizes: how many rows and columns there are
    in all, for the grid of all heads, which shows the held token's row."""
    matrix = shown.matrix
    blocks = codec.fine(matrix)
    if held.pin >= 0 and "exact" not in blocks:
        blocks["row"] = matrix[held.pin].astype(np.float32)
    if held.column >= 0 and "exact" not in blocks:
        blocks["column"] = matrix[:, held.column].astype(np.float32)
    if shown.hidden is not None:
        blocks["hidden"] = shown.hidden.astype(np.float32)
    across = shown.said is not None
    hints, otherwise = (HINT_ACROSS, HINT_ACROSS_ELSE) if across else (HINT, HINT_ELSE)
    header = {
        "layer": at[0],
        "head": at[1],
        "sizes": list(matrix.shape if sizes is None else sizes),
        "queries": list(shown.queries),
        "keys": list(shown.keys),
        "special": [bool(one) for one in shown.special],
        "said": [[label, bool(ends)] for label, ends in shown.said]
        if shown.said is not None
        else None,
        "places": [None if one is None else list(one) for one in shown.places],
        "cell": None if held.cell is None else list(held.cell),
        "pin": held.pin,
        "column": held.column,
        "evidence": [list(cell) for cell in held.evidence],
        **vars(look),
        **picture.plain(),
        "hint": hints.get("matrix" if look.view == "both" else look.view, otherwise),
    }
    return codec.encode(header, blocks | runs(shown.allowed))


def runs(allowed: np.ndarray) -> dict[str, np.ndarray]:
    """Run-length encode the allowed cells, (query, key) bool, as a block for the browser: under
    `runs` the lengths of the stretches of equal cells in reading order, the first of them allowed
    (0 where the first cell is not). No block where every cell is allowed."""
    if allowed.all():
        return {}
    cells = np.concatenate(([True], allowed.ravel(), [not allowed.flat[-1]]))
    turns = np.flatnonzero(cells[1:] != cells[:-1])
    return {"runs": np.diff(turns, prepend=0).astype(np.uint32)}


_mount = st.components.v2.component(
    "headlight.head",
    html='<div class="head"></div>',
    js=loader("head"),
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw the head. When `on_choice` is called, `st.session_state[key]["token"]` has what is now
    held, [row, column, cell], -1 for none; the column is held alone, between two texts, or not at
    all; `cell` is the column of a cell that was chosen in the held row."""
    _mount(data=data, key=key, on_token_change=on_choice)
