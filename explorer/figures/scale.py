"""A number against the width of queries and keys, as Plotly figures."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.dress import COLOURS, DASHES, MARKERS, dressed


def by_width(
    series: Sequence[tuple[str, Sequence[int], np.ndarray]],
    about: Sequence[str],
    y_title: str,
    *,
    log: bool,
) -> go.Figure:
    """One line for each (name, widths, values) over the width, which doubles from tick to tick;
    log: the values' axis is logarithmic too."""
    figure = go.Figure()
    for at, (name, widths, values) in enumerate(series):
        figure.add_scatter(
            x=list(widths),
            y=values,
            name=html.escape(name, quote=False),
            mode="lines+markers",
            line={"color": COLOURS[at % 4], "dash": DASHES[at % 4], "width": 3},
            marker={"symbol": MARKERS[at % 4], "size": 9},
            hovertemplate="%{y:.4g}",
        )
    ticks = sorted({int(width) for _, widths, _ in series for width in widths})
    figure.update_xaxes(title="width dₖ", type="log", tickmode="array", tickvals=ticks)
    figure.update_yaxes(title=y_title, type="log" if log else "linear", exponentformat="power")
    if not log:
        figure.update_yaxes(range=[0, 1.02])
    return dressed(figure, about)
