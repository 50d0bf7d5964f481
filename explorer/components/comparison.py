"""Grids of heads side by side to one scale: both sides', and their difference where heads stand in
the same places; and the pair that is open.

The grids are sent once and hold no selection; the pair, in a small second message, marks its two
heads in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

LARGEST_SIDE = 60
LARGEST_GRID = 200_000  # bytes of thumbnails of one grid, of at most three


class Layers(Protocol):
    """An array (layer, head, row, column), or what gives it a layer at a time."""

    shape: tuple[int, ...]

    def __iter__(self) -> Iterator[np.ndarray]: ...


@dataclass(frozen=True, eq=False)
class Grids:
    """All heads of both sides, a and b (layer, head, row, column), the names of rows and columns,
    and both sides'. distances (layer, head): of heads in the same place, for a third grid of B - A;
    None where shapes differ."""

    a: Layers
    b: Layers
    rows: Sequence[str]
    columns: Sequence[str]
    titles: Sequence[str]
    distances: np.ndarray | None


def grids(of: Grids, log: bool, token: str) -> bytes:
    """What the browser needs to draw both sides' heads. log: three decades of weights, and
    differences as they are. token: the name of this picture."""
    heads = max(each.shape[0] * each.shape[1] for each in (of.a, of.b))
    side = int(min(LARGEST_SIDE, max(8, (LARGEST_GRID // heads) ** 0.5)))
    fold = max(1, -(-max(of.a.shape[2:]) // side))
    panels, blocks = [], {}
    for key, title, array in (("a", of.titles[0], of.a), ("b", of.titles[1], of.b)):
        small = np.stack([_folded(layer, fold, np.maximum) for layer in array])
        blocks[key] = np.rint(np.sqrt(np.clip(small, 0, 1)) * 255).astype(np.uint8)
        panels.append(_panel(key, title, array, 1.0))
    if of.distances is not None:
        blocks["change"], top = _change(of.a, of.b, fold)
        panels.append(_panel("change", "B − A", of.a, top))
        blocks["distance"] = of.distances.astype(np.float32)
    header = {
        "kind": "grids",
        "token": token,
        "panels": panels,
        "rows": list(of.rows),
        "columns": list(of.columns),
        "n_row": -(-len(of.rows) // fold),
        "n_column": -(-len(of.columns) // fold),
        "fold": fold,
        "log": log,
    }
    return codec.encode(header, blocks)


def _panel(key: str, title: str, array: Layers, top: float) -> dict:
    n_layer, n_head = array.shape[:2]
    return {"key": key, "title": title, "n_layer": n_layer, "n_head": n_head, "top": top}


def _change(a: Layers, b: Layers, fold: int) -> tuple[np.ndarray, float]:
    """Differences b - a (layer, ...) as bytes about 128, of each block the largest either way, and
    what the ends stand for."""
    small = np.stack([_largest(other - one, fold) for one, other in zip(a, b)])
    top = float(np.abs(small).max(initial=0))
    share = small / (top or 1)
    return (128 + np.rint(np.sign(share) * np.sqrt(np.abs(share)) * 127)).astype(np.uint8), top


def _largest(change: np.ndarray, fold: int) -> np.ndarray:
    """Of each block of differences the largest either way."""
    more, less = _folded(change, fold, np.maximum), _folded(change, fold, np.minimum)
    return np.where(more >= -less, more, less)


def _folded(array: np.ndarray, fold: int, most: np.ufunc) -> np.ndarray:
    """(..., row, column) with each block of fold x fold cells as its maximum, or minimum."""
    if fold == 1:
        return array
    columns = most.reduceat(array, np.arange(0, array.shape[-1], fold), axis=-1)
    return most.reduceat(columns, np.arange(0, array.shape[-2], fold), axis=-2)


def pair(
    a: tuple[int, int],
    b: tuple[int, int],
    *,
    title: str,
    words: str,
    token: str,
    picture: str,
    row: int | None = None,
) -> bytes:
    """The pair that is open, head (layer, head) of A and of B: its line, and the grids `picture`
    that mark it; with `row` that row of the matrix `picture` instead."""
    header = {
        "kind": "pair",
        "token": token,
        "picture": picture,
        "a": list(a),
        "b": list(b),
        "title": title,
        "words": words,
    }
    return codec.encode(
        header | {"map": None if row is None else {"picture": picture, "row": row}}, {}
    )


_mount = st.components.v2.component(
    "headlight.compare", html='<div class="compare"></div>', js=loader("comparison")
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw what `grids` or `pair` made. When the callback runs, `st.session_state[key]["head"]` is
    [grid, layer, head], the grid "a", "b" or "change"."""
    _mount(data=data, key=key, on_head_change=on_choice)
