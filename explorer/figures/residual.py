"""Gradients through layers and through tokens, a sub-layer's Jacobian, and LayerNorm beside
BatchNorm, as Plotly figures."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.plotly_style import COLOURS, DASHES, MARKERS, clean, dressed

FAINTEST = 1e-9  # of a gradient that is drawn


def lines(
    series: Sequence[tuple[str, np.ndarray]],
    about: Sequence[str],
    x: Sequence[object] | np.ndarray,
    x_title: str,
    y_title: str,
    *,
    log: bool,
    named: bool = False,
    over: Sequence[np.ndarray] = (),
) -> go.Figure:
    """One line for each (name, values (x)) over `x`; on a log axis a value of 0 leaves a gap.
    named: `x` are words, one tick each.

    `over`: more values that a log axis must reach, so that two figures have one scale. `about`:
    title, then the lines below it. Everything is escaped.
    """
    figure = go.Figure()
    places = list(range(len(x))) if named else list(x)
    for at, (name, values) in enumerate(series):
        look = {"color": COLOURS[at % len(COLOURS)], "dash": DASHES[at % len(DASHES)], "width": 3}
        figure.add_scatter(
            x=places,
            y=np.where(values > 0, values, np.nan) if log else values,
            name=html.escape(name, quote=False),
            line=look,
            mode="lines+markers" if named else "lines",
            marker={"symbol": MARKERS[at % len(MARKERS)], "size": 9},
            customdata=[html.escape(str(each), quote=False) for each in x],
            hovertemplate="%{customdata}: %{y:.4g}",
        )
    ticks = (
        {
            "tickmode": "array",
            "tickvals": places,
            "ticktext": [html.escape(str(each), quote=False) for each in x],
        }
        if named
        else {}
    )
    figure.update_xaxes(title=x_title, **ticks)
    figure.update_yaxes(
        title=y_title,
        type="log" if log else "linear",
        exponentformat="power",
        **({"dtick": 1} if log and _decades(series) < 7 else {}),
    )
    if (
        log
        and (
            reached := np.concatenate(
                [each[each > 0] for each in (*over, *(values for _, values in series))]
            )
        ).size
        and len(over)
    ):
        figure.update_yaxes(range=[np.log10(reached.min()) - 0.2, np.log10(reached.max()) + 0.2])
    return dressed(figure, about)


def spectrum(values: Sequence[tuple[str, np.ndarray]], about: Sequence[str]) -> go.Figure:
    """Singular values, largest first, one line for each (name, values), on a log axis that ends a
    million times below 1; a line at 1."""
    places = np.arange(1, len(values[0][1]) + 1)
    titles = "singular value, from the largest down", "size"
    return _around_one(values, 1e-6, about, places, titles)


def fading(series: Sequence[tuple[str, np.ndarray]], about: Sequence[str]) -> go.Figure:
    """What is left of a gradient layer by layer, one line for each (name, values (layer)), on a log
    axis that ends at FAINTEST; a line at 1."""
    titles = "layer, from the input up", "length, of that at the last layer"
    return _around_one(series, FAINTEST, about, range(len(series[0][1])), titles)


def _around_one(
    series: Sequence[tuple[str, np.ndarray]],
    least: float,
    about: Sequence[str],
    x: Sequence[object] | np.ndarray,
    titles: tuple[str, str],
) -> go.Figure:
    """Lines on a log axis that ends at `least`, and one at 1. titles: of x and y."""
    shown = [(name, np.where(each < least, 0, each)) for name, each in series]
    figure = lines(shown, about, x, *titles, log=True)
    figure.add_hline(y=1, line={"color": "#888888", "width": 1})
    return figure


def bars(
    series: Sequence[tuple[str, np.ndarray]],
    about: Sequence[str],
    labels: Sequence[str],
    y_title: str,
) -> go.Figure:
    """Bars side by side for each (name, values) over labels, which stay apart where they are
    equal."""
    figure = go.Figure()
    places = list(range(len(labels)))
    for at, (name, values) in enumerate(series):
        figure.add_bar(
            x=places,
            y=values,
            name=name,
            marker={"color": COLOURS[at], "line": {"width": 0}},
            customdata=[clean(each, 12) for each in labels],
            hovertemplate="%{x} %{customdata}: %{y:.4g}",
        )
    every = max(1, -(-len(labels) // 40))
    figure.update_xaxes(
        tickmode="array",
        tickvals=places[::every],
        ticktext=[clean(each, 12) for each in labels[::every]],
        tickangle=-60 if len(labels) > 12 else 0,
    )
    figure.update_yaxes(title=y_title)
    figure.update_layout(bargap=0.25)
    return dressed(figure, about)


def _decades(series: Sequence[tuple[str, np.ndarray]]) -> float:
    everything = (
        np.concatenate([values[values > 0] for _, values in series]) if series else np.ones(1)
    )
    return float(np.log10(everything.max() / everything.min())) if everything.size else 0.0
