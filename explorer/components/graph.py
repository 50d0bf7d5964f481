"""Attention as a graph: tokens as nodes, weights as edges, a message along each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader
from explorer.components.figure_caption import Picture

LAYOUTS = ("Arcs", "Circle")


@dataclass(frozen=True)
class Nodes:
    """The tokens of a graph: labels (query) and special (key); sources: the keys' labels where they
    are another text than the queries, and then the two stand side by side, whatever the layout."""

    labels: Sequence[str]
    special: Sequence[bool]
    sources: Sequence[str] | None
    layout: str


def payload(edges: Any, nodes: Nodes, picture: Picture) -> bytes:
    """What the browser needs to draw the graph. It holds no selection.

    edges: from key to query, with queries, keys and weights (edge), strongest first, and weight_out
    (key), the sum of the weights that each key is given, which its node's size shows.
    """
    header = {
        "labels": list(nodes.labels),
        "sources": None if nodes.sources is None else list(nodes.sources),
        "special": [bool(each) for each in nodes.special],
        "layout": nodes.layout.lower(),
        **picture.plain(),
    }
    blocks = {
        "queries": edges.queries.astype(np.uint32),
        "keys": edges.keys.astype(np.uint32),
        "weights": edges.weights.astype(np.float32),
        "out": edges.weight_out.astype(np.float32),
    }
    return codec.encode(header, blocks)


_mount = st.components.v2.component(
    "headlight.graph", html='<div class="graph"></div>', js=loader("graph")
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw the graph. When the callback runs, `st.session_state[key]["row"]` is the token whose
    messages to open."""
    _mount(data=data, key=key, on_row_change=on_choice)
