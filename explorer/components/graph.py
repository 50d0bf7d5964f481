"""Attention as a graph: tokens as nodes, weights as edges, a message along each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from explorer.components import wire
from explorer.components.bundle import loader

LAYOUTS = ("Arcs", "Circle")


def payload(
    queries: np.ndarray,
    keys: np.ndarray,
    weights: np.ndarray,
    weight_out: np.ndarray,
    labels: Sequence[str],
    special: Sequence[bool],
    *,
    sources: Sequence[str] | None = None,
    layout: str,
    title: str,
    caption: Sequence[str],
    file: str,
    token: str,
) -> bytes:
    """What the browser needs to draw the graph: its edges from key to query, queries, keys and weights (edge), strongest first.

    weight_out (key): the sum of the weights that each key is given, which its node's size shows. labels (query). sources: the keys' labels where
    they are another text than the queries; then the two stand side by side, whatever the layout. special (key). It holds no selection.
    """
    header = {
        "token": token,
        "labels": list(labels),
        "sources": None if sources is None else list(sources),
        "special": [bool(each) for each in special],
        "layout": layout.lower(),
        "title": title,
        "caption": list(caption),
        "file": file,
    }
    blocks = {
        "queries": queries.astype(np.uint32),
        "keys": keys.astype(np.uint32),
        "weights": weights.astype(np.float32),
        "out": weight_out.astype(np.float32),
    }
    return wire.encode(header, blocks)


_mount = st.components.v2.component(
    "headlight.graph", html='<div class="graph"></div>', js=loader("graph")
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw the graph. When the callback runs, `st.session_state[key]["row"]` is the token whose messages to open."""
    _mount(data=data, key=key, on_row_change=on_choice)
