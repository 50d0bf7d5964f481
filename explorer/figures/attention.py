"""One head's matrix as a Plotly figure, for zooming and for papers."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

LONGEST_LABEL = 14
# Readable on a light and on a dark page alike: Plotly keeps its data colours when the theme changes.
COLOURS = "Cividis"


def heatmap(
    z: np.ndarray, weights: np.ndarray, queries: Sequence[str], keys: Sequence[str], title: str, low: float, high: float, legend: str
) -> go.Figure:
    """A heatmap of `z` (query, key) from `low` to `high`: keys along x, queries down y, row 0 on top, the weights on hover.

    Positions are numbers and labels only name them, so that equal words stay apart. Labels are escaped.
    """
    every = max(1, -(-len(keys) // 60))
    names = [[html.escape(one, quote=False) for one in labels] for labels in (queries, keys)]
    hover = np.empty((*z.shape, 3), dtype=object)
    hover[..., 0] = np.array(names[0], dtype=object)[:, None]
    hover[..., 1] = np.array(names[1], dtype=object)[None, :]
    hover[..., 2] = weights
    figure = go.Figure(
        go.Heatmap(
            z=z,
            zmin=low,
            zmax=high,
            colorscale=COLOURS,
            customdata=hover,
            colorbar={"title": {"text": legend, "side": "right"}, "thickness": 12},
            hovertemplate="query %{customdata[0]} (%{y})<br>key %{customdata[1]} (%{x})<br>weight %{customdata[2]:.4f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="key", side="top", tickangle=-90, constrain="domain", **_ticks(keys, every))
    figure.update_yaxes(title="query", autorange="reversed", scaleanchor="x", constrain="domain", **_ticks(queries, every))
    figure.update_layout(title={"text": html.escape(title, quote=False), "y": 0.99, "yanchor": "top"}, height=640, margin={"t": 120, "l": 10, "r": 10, "b": 10})
    return figure


def _ticks(labels: Sequence[str], every: int) -> dict:
    places = list(range(0, len(labels), every))
    return {"tickmode": "array", "tickvals": places, "ticktext": [html.escape(_cut(labels[at]), quote=False) for at in places]}


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"
