"""The switches' pictures: a board of heads to be switched, all heads before and after, and one
head's matrix before, after and the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader
from explorer.components.figure_caption import Picture
from explorer.components.head import runs

LARGEST_GRID = 400_000  # bytes of thumbnails of one run, of two; one head's matrices come beside
STATES = ("", "zero", "mean", "even", "patch")  # how a head may stand on the board
SPOKEN = {
    "": "as it is",
    "zero": "zero-ablated",
    "mean": "mean-ablated",
    "even": "uniform attention",
    "patch": "taken from the other sentence",
}


def board(
    heads: tuple[int, int], off: Mapping[tuple[int, int], str], *, brush: str, token: str
) -> bytes:
    """A board of heads, layers down: `heads` how many layers and heads a layer, `off` the heads
    that are switched and how (STATES), `brush` what a press will do. Raises ValueError for a state
    that does not exist."""
    layers, per_layer = heads
    states = [off.get((layer, head), "") for layer in range(layers) for head in range(per_layer)]
    if wrong := {*states} - {*STATES}:
        raise ValueError(
            f"a head is not {', '.join(sorted(wrong))}; it is one of {', '.join(map(repr, STATES))}"
        )
    header = {
        "kind": "board",
        "token": token,
        "layers": layers,
        "heads": per_layer,
        "states": states,
        "spoken": SPOKEN,
        "brush": brush,
    }
    return codec.encode(header, {})


def pairs(before: np.ndarray, after: np.ndarray, distance: np.ndarray, *, token: str) -> bytes:
    """Every head twice: patterns (layer, head, query, key) of both runs as thumbnails to one scale
    a head, and how far it moved, distance (layer, head).

    It holds no selection, so that opening another head sends none of it again.
    """
    one, peak, fold = codec.thumbnails(before, LARGEST_GRID)
    other, peaks, _ = codec.thumbnails(after, LARGEST_GRID)
    header = {
        "kind": "pairs",
        "token": token,
        "layers": before.shape[0],
        "heads": before.shape[1],
        "rows": one.shape[2],
        "columns": one.shape[3],
        "fold": fold,
        "distance": [
            None if np.isnan(value) else round(float(value), 4) for value in distance.ravel()
        ],
    }
    return codec.encode(header, {"before": one, "after": other, "peak": peak, "peaks": peaks})


def trio(
    matrices: tuple[np.ndarray, np.ndarray],
    allowed: tuple[np.ndarray, np.ndarray],
    at: tuple[int, int],
    labels: tuple[Sequence[str], Sequence[str]],
    picture: Picture,
) -> bytes:
    """One head's weights (query, key) before and after, from which the browser makes the
    difference; `allowed` of both runs, `at` (layer, head), labels of rows and of keys."""
    header = {
        "kind": "trio",
        "layer": at[0],
        "head": at[1],
        "rows": list(labels[0]),
        "keys": list(labels[1]),
        **picture.plain(),
    }
    blocks: dict[str, np.ndarray] = {}
    for name, matrix, may in zip(("before", "after"), matrices, allowed):
        parts = codec.fine(matrix) | runs(may)
        blocks |= {f"{name}.{part}": block for part, block in parts.items()}
    return codec.encode(header, blocks)


_mount = st.components.v2.component(
    "headlight.switches", html='<div class="switches"></div>', js=loader("interventions")
)


def show(data: bytes, key: str, on_head: Callable[[], None]) -> None:
    """Draw what `board`, `pairs` or `trio` made. When the callback runs, the head pressed stands in
    `st.session_state[key]["head"]` as "layer.head", on the board "layer." for all of a layer."""
    _mount(data=data, key=key, on_head_change=on_head)
