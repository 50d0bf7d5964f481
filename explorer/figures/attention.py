"""One head's matrix as a Plotly figure, for zooming and for papers."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

LONGEST_LABEL, LONGEST_LINE = 14, 120
# Readable on a light and on a dark page alike: Plotly keeps its data colours when the theme
# changes.
COLOURS = "Cividis"


@dataclass(frozen=True)
class ColourScale:
    """The values of the first and the last colour, and what the scale is called."""

    low: float
    high: float
    name: str


def heatmap(
    z: np.ndarray,
    weights: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    about: Sequence[str],
    scale: ColourScale,
    sides: tuple[str, str] = ("query", "key"),
) -> go.Figure:
    """A heatmap of `z` (query, key) on a scale: keys along x, queries down y, row 0 on top, the
    weights on hover.

    A NaN in `z` is left blank, without hover. `sides` are what queries and keys are called.

    Positions are numbers and labels only name them, so that equal words stay apart. `about` are the
    lines above the figure, the first one its title. Everything is escaped.
    """
    query, key = sides
    title, *rest = (html.escape(_cut(line, LONGEST_LINE), quote=False) for line in about)
    figure = go.Figure(
        go.Heatmap(
            z=z,
            zmin=scale.low,
            zmax=scale.high,
            colorscale=COLOURS,
            customdata=weights,
            colorbar={"title": {"text": scale.name, "side": "right"}, "thickness": 12},
            hoverongaps=False,
            hovertemplate=f"{query} %{{y}}<br>{key} %{{x}}<br>"
            "weight %{customdata:.4f}<extra></extra>",
        )
    )
    figure.update_xaxes(
        title=key,
        side="top",
        tickangle=-90,
        constrain="domain",
        showgrid=False,
        zeroline=False,
        **_ticks(keys),
    )
    figure.update_yaxes(
        title=query,
        autorange="reversed",
        scaleanchor="x",
        constrain="domain",
        showgrid=False,
        zeroline=False,
        **_ticks(queries),
    )
    figure.update_layout(
        title={"text": title, "subtitle": {"text": "<br>".join(rest)}, "y": 0.99, "yanchor": "top"},
        height=680,
        margin={"t": 190, "l": 10, "r": 10, "b": 10},
    )
    return figure


def _ticks(labels: Sequence[str]) -> dict:
    every = max(1, -(-len(labels) // 60))
    places = list(range(0, len(labels), every))
    return {
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [html.escape(_cut(labels[at], LONGEST_LABEL), quote=False) for at in places],
    }


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
