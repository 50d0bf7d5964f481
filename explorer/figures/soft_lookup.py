"""How far soft lookups are from hard ones, as a Plotly histogram."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.plotly_style import COLOURS, DASHES, MARKERS, dressed

# A number against the width of queries and keys, as Plotly figures.


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


def histogram(
    values: np.ndarray, here: float | None, near: float, about: Sequence[str], bins: int = 40
) -> go.Figure:
    """How many of the values, any shape, NaN left out, fall into each of `bins` equal parts from 0
    to the largest; a line at `here` and a dotted one at `near`. `about`: title, then lines."""
    known = values[np.isfinite(values)]
    top = float(known.max()) if known.size and known.max() > 0 else 1.0
    counts, edges = np.histogram(known, bins=bins, range=(0, top))
    width = top / bins
    figure = go.Figure(
        go.Bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=counts,
            width=width * 0.96,
            marker={"color": COLOURS[0], "line": {"width": 0}},
            hovertemplate="%{x:.2f} ± " + f"{width / 2:.2f}: %{{y}} lookups<extra></extra>",
        )
    )
    figure.add_vline(x=near, line={"color": "#888888", "width": 2, "dash": "dot"})
    if here is not None and np.isfinite(here):
        figure.add_vline(
            x=here,
            line={"color": COLOURS[1], "width": 4},
            annotation={"text": "this query", "font": {"size": 14}},
            annotation_position="top right" if here < top / 2 else "top left",
        )
    figure.update_xaxes(
        title="distance / length of the hard value", range=[0, top * 1.02], zeroline=False
    )
    figure.update_yaxes(title="lookups")
    figure = dressed(figure, about)
    return figure.update_layout(showlegend=False, bargap=0, hovermode="closest")
