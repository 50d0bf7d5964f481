"""One head's matrix as a Plotly figure, for zooming and for papers."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

LONGEST_LABEL, LONGEST_LINE = 14, 110
# Readable on a light and on a dark page alike: Plotly keeps its data colours when the theme changes.
COLOURS = "Cividis"


def heatmap(
    z: np.ndarray, weights: np.ndarray, queries: Sequence[str], keys: Sequence[str], about: Sequence[str], low: float, high: float, legend: str
) -> go.Figure:
    """A heatmap of `z` (query, key) from `low` to `high`: keys along x, queries down y, row 0 on top, the weights on hover.

    Positions are numbers and labels only name them, so that equal words stay apart. `about` are the lines above the figure, the first one
    its title. Everything is escaped.
    """
    every = max(1, -(-len(keys) // 60))
    title, *rest = (html.escape(_cut(line, LONGEST_LINE), quote=False) for line in about)
    figure = go.Figure(
        go.Heatmap(
            z=z,
            zmin=low,
            zmax=high,
            colorscale=COLOURS,
            customdata=weights,
            colorbar={"title": {"text": legend, "side": "right"}, "thickness": 12},
            hovertemplate="query %{y}<br>key %{x}<br>weight %{customdata:.4f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="key", side="top", tickangle=-90, constrain="domain", **_ticks(keys, every))
    figure.update_yaxes(title="query", autorange="reversed", scaleanchor="x", constrain="domain", **_ticks(queries, every))
    figure.update_layout(title={"text": title, "subtitle": {"text": "<br>".join(rest)}, "y": 0.99, "yanchor": "top"}, height=680, margin={"t": 190, "l": 10, "r": 10, "b": 10})
    return figure


def _ticks(labels: Sequence[str], every: int) -> dict:
    places = list(range(0, len(labels), every))
    return {"tickmode": "array", "tickvals": places, "ticktext": [html.escape(_cut(labels[at], LONGEST_LABEL), quote=False) for at in places]}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
