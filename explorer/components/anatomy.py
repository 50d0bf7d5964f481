"""One weight taken apart: the head's matrix to choose a cell from, the story of the cell step by
step, vectors as strips, and the split into heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader
from explorer.components.figure_caption import Picture
from explorer.components.head import runs


def matrix(
    pattern: np.ndarray,
    allowed: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    about: str,
    sides: tuple[str, str],
    token: str,
) -> bytes:
    """What the browser needs to draw a head's weights, (query, key), for a cell to be chosen. It
    does not say which one is."""
    header = {
        "kind": "matrix",
        "token": token,
        "queries": list(queries),
        "keys": list(keys),
        "about": about,
        "sides": list(sides),
    }
    return codec.encode(header, codec.fine(pattern) | runs(allowed))


def story(
    facts: Mapping[str, object],
    vectors: Mapping[str, np.ndarray],
    w_o: np.ndarray | None,
    picture: Picture,
    matrix: str,
) -> bytes:
    """What the browser needs to tell how a weight comes about.

    facts: plain values and words, NaN and infinities as None. vectors: those of
    `analysis.anatomy_story`. w_o: the head's slice of W_O, (d_v, d_model), drawn and not told.
    matrix: the name of the matrix that the cell belongs to.
    """
    header = {"kind": "story", "matrix": matrix, **picture.plain(), **facts}
    blocks = {name: np.asarray(vector, dtype=np.float32) for name, vector in vectors.items()}
    if w_o is not None:
        top = float(np.abs(w_o).max()) or 1.0
        blocks["w_o"] = np.rint(127.5 + 127.5 * w_o / top).astype(np.uint8)
    return codec.encode(header, blocks)


def strip(
    vector: np.ndarray,
    name: str,
    about: str,
    token: str,
    *,
    heads: int = 0,
    head: int = -1,
    scale: float | None = None,
) -> bytes:
    """What the browser needs to draw one vector, by dimension, as a strip.

    heads: how many equal pieces it is cut in, 0 for none, and `head` the one that stands out.
    scale: the |value| of full colour, the vector's largest where None.
    """
    top = float(np.abs(vector).max(initial=0.0)) if scale is None else scale
    header = {
        "kind": "strip",
        "token": token,
        "name": name,
        "unit": "dimension",
        "about": about,
        "heads": heads,
        "head": head,
        "top": top,
    }
    return codec.encode(header, {"vector": np.asarray(vector, dtype=np.float32)})


@dataclass(frozen=True)
class Split:
    """The sizes of a split into heads: n queries, m keys, heads of width d_head, with values of
    width d_v, and d_model; and of which `head` and `query` it is shown."""

    n: int
    m: int
    heads: int
    d_head: int
    d_v: int
    d_model: int
    head: int
    query: int


def shapes(split: Split, label: str, token: str) -> bytes:
    """What the browser needs to draw the split into heads and back, and the row of one query,
    called `label`, with one head's piece."""
    return codec.encode({"kind": "shapes", "token": token, "label": label, **asdict(split)}, {})


_mount = st.components.v2.component(
    "headlight.anatomy",
    html='<div class="anatomy"></div>',
    js=loader("anatomy"),
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw one of these. When `on_choice` is called, `st.session_state[key]["cell"]` has the cell
    that was chosen, [query, key]."""
    _mount(data=data, key=key, on_cell_change=on_choice)
