"""How far soft lookups are from hard ones, as a Plotly histogram."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

BAR, HERE = (
    "#cb6a12",
    "#3f86c8",
)  # read on a light and on a dark page alike: Plotly keeps its colours when the theme changes
LINE = 56  # characters: a phone is this wide


def histogram(
    values: np.ndarray, here: float | None, near: float, about: Sequence[str], bins: int = 40
) -> go.Figure:
    """How many of the values, any shape, NaN left out, fall into each of `bins` equal parts from 0 to the largest; a line at `here` and a dotted one at `near`.

    `about`: title, then the lines below it. Everything is escaped.
    """
    known = values[np.isfinite(values)]
    top = float(known.max()) if known.size and known.max() > 0 else 1.0
    counts, edges = np.histogram(known, bins=bins, range=(0, top))
    width = top / bins
    figure = go.Figure(
        go.Bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=counts,
            width=width * 0.96,
            marker={"color": BAR, "line": {"width": 0}},
            hovertemplate="%{x:.2f} ± " + f"{width / 2:.2f}: %{{y}} lookups<extra></extra>",
        )
    )
    figure.add_vline(x=near, line={"color": "#888888", "width": 2, "dash": "dot"})
    if here is not None and np.isfinite(here):
        figure.add_vline(x=here, line={"color": HERE, "width": 4})
        figure.add_annotation(
            text="this query",
            x=here,
            y=1,
            yref="paper",
            yanchor="bottom",
            xanchor="left" if here < top / 2 else "right",
            showarrow=False,
            font={"size": 14},
        )
    title, *rest = about
    lines = [
        html.escape(part, quote=False)
        for line in rest
        for part in textwrap.wrap(" ".join(line.split()), LINE, max_lines=3, placeholder=" …")
    ]
    figure.update_xaxes(
        title="distance / length of the hard value",
        range=[0, top * 1.02],
        zeroline=False,
        title_font={"size": 15},
        tickfont={"size": 14},
    )
    figure.update_yaxes(
        title="lookups", zeroline=True, title_font={"size": 15}, tickfont={"size": 14}
    )
    figure.update_layout(
        title={
            "text": html.escape(title, quote=False),
            "subtitle": {"text": "<br>".join(lines)},
            "x": 0,
            "xanchor": "left",
            "y": 0.98,
            "yanchor": "top",
        },
        showlegend=False,
        bargap=0,
        height=380 + 14 * len(lines),
        margin={"t": 58 + 17 * len(lines), "l": 10, "r": 10, "b": 10},
    )
    return figure
