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


def payload(
    matrix: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    special: Sequence[bool],
    *,
    layer: int,
    head: int,
    pin: int,
    view: str,
    scale: str,
    log: bool,
    title: str,
    caption: Sequence[str],
    file: str,
    evidence: Sequence[tuple[int, int]],
    token: str,
) -> bytes:
    """What the browser needs to draw one head. matrix (query, key); `pin` is the chosen token's place, -1 for none."""
    blocks = wire.fine(matrix)
    if pin >= 0 and "exact" not in blocks:
        blocks |= {"row": matrix[pin].astype(np.float32), "column": matrix[:, pin].astype(np.float32)}
    header = {
        "token": token,
        "layer": layer,
        "head": head,
        "queries": list(queries),
        "keys": list(keys),
        "special": [bool(one) for one in special],
        "pin": pin,
        "view": view,
        "scale": scale,
        "log": log,
        "title": title,
        "caption": list(caption),
        "file": file,
        "evidence": [list(cell) for cell in evidence],
        "hint": HINT.get(view, "Choose a token to see what it looks at."),
    }
    return wire.encode(header, blocks)


_mount = st.components.v2.component(
    "headlight.head",
    html='<div class="head"></div>',
    js=loader("head"),
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw the head. A chosen token stands in `st.session_state[key]["token"]` (-1 for none) when `on_choice` is called."""
    _mount(data=data, key=key, on_token_change=on_choice)
