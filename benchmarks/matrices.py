"""The benchmark's Streamlit script: one field that names a case, and what the app would draw for
random matrices of that shape.

A case is "KIND LAYERSxHEADSxTOKENS #NUMBER"; the number makes each one new, so that nothing comes
from a cache.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass

import numpy as np
import streamlit as st

from explorer.components import heads as heads_components
from explorer.components.figure_caption import Picture
from explorer.components.head import HeadAppearance, HeadMatrix, PinnedCell, payload, show


@dataclass(frozen=True)
class Head:
    layer: int
    head: int
    name: str = "previous"
    score: float = 0.5
    chance: float = 0.1
    entropy: float = 0.5
    distance: float = 2.0
    sink: float = 0.1


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


def take_head() -> None:
    st.session_state.opened = st.session_state.grid.get("head")


once()
case = st.text_input("case", key="case")
kind, _, rest = case.partition(" ")
if kind in ("grid", "plotly", "make"):
    shape = tuple(map(int, rest.split(" ")[0].split("x")))
    pattern = matrices(shape)
    tokens = [f"w{at}" for at in range(shape[2])]
    if kind == "grid":
        if (
            st.session_state.get("drawn") != case
        ):  # the app, too, keeps this payload for as long as text and scale stay
            heads = [Head(layer, head) for layer in range(shape[0]) for head in range(shape[1])]
            allowed = np.ones((shape[2], shape[2]), bool)
            grid = heads_components.HeadGrid(
                pattern, allowed, heads, tokens, tokens, "head", False, case
            )
            st.session_state.payload = heads_components.payload(grid)
            st.session_state.drawn, st.session_state.opened = case, None
        heads_components.show(st.session_state.payload, "grid", on_choice=take_head)
        if opened := st.session_state.get("opened"):
            layer, _, head = map(str, opened.partition("."))
            allowed, special = np.ones((shape[2], shape[2]), bool), [False] * shape[2]
            at = int(layer), int(head)
            data = payload(
                HeadMatrix(pattern[at], allowed, tokens, tokens, special),
                at,
                PinnedCell(),
                HeadAppearance(),
                Picture("", (), "", f"{case} {opened}"),
            )
            show(data, "one", on_choice=lambda: None)
    elif kind == "plotly":
        st.plotly_chart(subplots(pattern, case), key="plotly")
st.caption(f"done {case} {st.session_state.get('opened', '')}")
