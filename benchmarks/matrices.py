"""The benchmark's Streamlit script: one field that names a case, and what the app would draw for
random matrices of that shape.

A case is "KIND LAYERSxHEADSxTOKENS #NUMBER"; the number makes each one new, so that nothing comes
from a cache.
"""

from __future__ import annotations

import gc

import numpy as np
import streamlit as st

from explorer.analysis.figures import Figure, HeadMatrices, LinkedWeights
from explorer.components import codec, mounts
from explorer.panels.spec import Panel
from explorer.text import templates


@st.cache_resource
def once() -> None:
    """Start up as the app does: import the heavy packages, then exempt them from garbage
    collection."""
    import torch  # noqa: F401
    import transformers  # noqa: F401
    from plotly.subplots import make_subplots  # noqa: F401

    gc.collect()
    gc.freeze()


@st.cache_resource(max_entries=6)
def matrices(shape: tuple[int, int, int]) -> np.ndarray:
    """Random attention of that shape, made before the clock starts: the forward pass is not what is
    measured here."""
    layers, heads, n = shape
    scores = np.random.default_rng(0).normal(size=(layers, heads, n, n)).astype(np.float32) * 3
    weights = np.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True)


def subplots(pattern: np.ndarray, title: str):
    """The yardstick: every head as its own heatmap in one Plotly figure."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    layers, heads = pattern.shape[:2]
    figure = make_subplots(layers, heads)
    for layer in range(layers):
        for head in range(heads):
            figure.add_trace(
                go.Heatmap(z=pattern[layer, head], showscale=False), layer + 1, head + 1
            )
    figure.update_layout(title=title, height=900)
    return figure


def encoded(name: str, token: str, figure: Figure) -> bytes:
    """A panel of one figure, as the tab Heads sends it."""
    return Panel("", "random", (figure,), name=name, token=token).encode(bare=True)


def grid_of(pattern: np.ndarray, tokens: tuple[str, ...]) -> HeadMatrices:
    """All heads of random attention."""
    cells, peak, fold = codec.thumbnails(pattern)
    n = peak.size
    return HeadMatrices(
        select=("layer", "head"),
        follows="head",
        weights={"cells": cells, "peak": peak, "most": pattern.max(axis=-1)},
        shape=cells.shape,
        fold=fold,
        names=("previous",) * n,
        strengths=(0.4,) * n,
        scores=(".50",) * n,
        back=(False,) * n,
        tokens=tokens,
        keys=tokens,
        scale="head",
        says=SAYS["small"],
    )


def head_of(pattern: np.ndarray, at: tuple[int, int], tokens: tuple[str, ...]) -> LinkedWeights:
    """One head of it."""
    return LinkedWeights(
        at=at,
        rows=tokens,
        columns=tokens,
        weights=codec.fine(pattern[at]),
        views=("matrix",),
        special=((), (False,) * len(tokens)),
        sizes=pattern.shape[2:],
        says=SAYS["weights"] | {"every": ""},
    )


def take_head() -> None:
    chosen = st.session_state.grid.get("select") or {}
    st.session_state.opened = ".".join(chosen.values())


MARKS = str.maketrans("{}", "<>")
SAYS = {
    panel: {name: str(each).translate(MARKS) for name, each in words.items()}
    for panel, words in templates.all_of("heads").items()
}
once()
case = st.text_input("case", key="case")
kind, _, rest = case.partition(" ")
if kind in ("grid", "plotly", "make"):
    shape = tuple(map(int, rest.split(" ")[0].split("x")))
    pattern = matrices(shape)
    tokens = tuple(f"w{at}" for at in range(shape[2]))
    if kind == "grid":
        # The app, too, keeps this payload for as long as text and scale stay.
        if st.session_state.get("drawn") != case:
            st.session_state.payload = encoded("attention.heads", case, grid_of(pattern, tokens))
            st.session_state.drawn, st.session_state.opened = case, None
        mounts.panel(st.session_state.payload, "grid", take_head)
        if opened := st.session_state.get("opened"):
            layer, _, head = map(str, opened.partition("."))
            figure = head_of(pattern, (int(layer), int(head)), tokens)
            mounts.panel(encoded("attention.head", f"{case} {opened}", figure), "one", lambda: None)
    elif kind == "plotly":
        st.plotly_chart(subplots(pattern, case), key="plotly")
st.caption(f"done {case} {st.session_state.get('opened', '')}")
