"""One head in three linked views: the sentence tinted, the matrix or the lines, and its downloads as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from explorer.components import wire
from explorer.components.bundle import loader

HINT = {
    "matrix": "Point at a cell, or tap it, for its weight. Choose a token to hold its row and column.",
    "lines": "Point at a token, or tap it, to see its lines alone.",
}
HINT_ELSE = "Choose a token to see what it looks at."
HINT_ACROSS = {
    "matrix": "Point at a cell, or tap it, for its weight. A target token holds its row, a source token its column.",
    "lines": HINT["lines"],
}
HINT_ACROSS_ELSE = (
    "Choose a target token to see what it looks at, a source token to see what looks at it."
)


def payload(
    matrix: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    special: Sequence[bool],
    *,
    allowed: np.ndarray,
    said: Sequence[tuple[str, bool]] | None = None,
    hidden: np.ndarray | None = None,
    places: tuple[Sequence[int] | None, Sequence[int] | None] = (None, None),
    sizes: tuple[int, int] | None = None,
    cell: tuple[int, int] | None = None,
    layer: int,
    head: int,
    pin: int,
    column: int,
    view: str,
    scale: str,
    log: bool,
    title: str,
    caption: Sequence[str],
    file: str,
    evidence: Sequence[tuple[int, int]],
    token: str,
) -> bytes:
    """What the browser needs to draw one head. matrix and allowed (query, key).

    `pin` is the row that is held and `column` the column, -1 for none: both the chosen token's where rows and columns are one text. Between
    two texts at most one is held, and `said` has for each row the token it produces and whether it is a special one. hidden (row): the share
    of each row that goes to tokens left out. places: the numbers of rows and of columns, None for 0, 1, 2 ...
    sizes: how many rows and columns there are in all, for the grid of all heads, which shows the held token's row. `cell`: the one that is opened.
    """
    blocks = wire.fine(matrix)
    if pin >= 0 and "exact" not in blocks:
        blocks["row"] = matrix[pin].astype(np.float32)
    if column >= 0 and "exact" not in blocks:
        blocks["column"] = matrix[:, column].astype(np.float32)
    hints, otherwise = (HINT, HINT_ELSE) if said is None else (HINT_ACROSS, HINT_ACROSS_ELSE)
    header = {
        "token": token,
        "layer": layer,
        "head": head,
        "sizes": list(matrix.shape if sizes is None else sizes),
        "queries": list(queries),
        "keys": list(keys),
        "special": [bool(one) for one in special],
        "said": None if said is None else [[label, bool(is_special)] for label, is_special in said],
        "places": [None if one is None else list(one) for one in places],
        "cell": None if cell is None else list(cell),
        "pin": pin,
        "column": column,
        "view": view,
        "scale": scale,
        "log": log,
        "title": title,
        "caption": list(caption),
        "file": file,
        "evidence": [list(cell) for cell in evidence],
        "hint": hints.get(view, otherwise),
    }
    if hidden is not None:
        blocks["hidden"] = hidden.astype(np.float32)
    return wire.encode(header, blocks | runs(allowed))


def runs(allowed: np.ndarray) -> dict[str, np.ndarray]:
    """Which cells are allowed, (query, key) bool, as a block for the browser: under `runs` the lengths of the stretches of equal cells in
    reading order, the first of them allowed (0 where the first cell is not). No block where every cell is allowed."""
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
    """Draw the head. When `on_choice` is called, `st.session_state[key]["token"]` has what is now held, [row, column, cell], -1 for none; the
    column is held alone, between two texts, or not at all; `cell` is the column of a cell that was chosen in the held row."""
    _mount(data=data, key=key, on_token_change=on_choice)
