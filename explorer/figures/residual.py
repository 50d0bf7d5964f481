"""Gradients through layers and through tokens, a sub-layer's Jacobian, and LayerNorm beside
BatchNorm, as Plotly figures."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

LINE, TITLE = 62, 40  # characters of a line of the subtitle and of the title: what a phone shows
MOST_LINES = 5  # of the subtitle
FAINTEST = 1e-9  # of a gradient that is drawn
# Okabe and Ito's colours in tones that stand out on a light and on a dark page alike; dashes and
# markers tell them apart without colour.
COLOURS = ("#d55e00", "#3b8fd1", "#1a9e77", "#b56a9b")
DASHES = ("solid", "dash", "dot", "dashdot")
MARKERS = ("circle", "square", "diamond", "triangle-up")


def lines(
    series: Sequence[tuple[str, np.ndarray]],
    about: Sequence[str],
    x: Sequence[object],
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
    figure = lines(
        [(name, np.where(each < 1e-6, 0, each)) for name, each in values],
        about,
        np.arange(1, len(values[0][1]) + 1),
        "singular value, from the largest down",
        "size",
        log=True,
    )
    figure.add_hline(y=1, line={"color": "#888888", "width": 1})
    return figure


def fading(series: Sequence[tuple[str, np.ndarray]], about: Sequence[str]) -> go.Figure:
    """What is left of a gradient layer by layer, one line for each (name, values (layer)), on a log
    axis that ends at FAINTEST; a line at 1."""
    figure = lines(
        [(name, np.where(each < FAINTEST, 0, each)) for name, each in series],
        about,
        range(len(series[0][1])),
        "layer, from the input up",
        "length, of that at the last layer",
        log=True,
    )
    figure.add_hline(y=1, line={"color": "#888888", "width": 1})
    return figure


def bars(
    series: Sequence[tuple[str, np.ndarray]],
    about: Sequence[str],
    labels: Sequence[str],
    y_title: str,
) -> go.Figure:
    """Bars side by side for each (name, values) over labels, which stay apart where they are equal."""
    figure = go.Figure()
    places = list(range(len(labels)))
    for at, (name, values) in enumerate(series):
        figure.add_bar(
            x=places,
            y=values,
            name=name,
            marker={"color": COLOURS[at], "line": {"width": 0}},
            customdata=[_clean(each) for each in labels],
            hovertemplate="%{x} %{customdata}: %{y:.4g}",
        )
    every = max(1, -(-len(labels) // 40))
    figure.update_xaxes(
        tickmode="array",
        tickvals=places[::every],
        ticktext=[_clean(each) for each in labels[::every]],
        tickangle=-60 if len(labels) > 12 else 0,
    )
    figure.update_yaxes(title=y_title)
    figure.update_layout(bargap=0.25)
    return dressed(figure, about)


def dressed(figure: go.Figure, about: Sequence[str]) -> go.Figure:
    """The figure with its title, the lines below it and a legend under it. Everything is escaped."""
    (title, *more), *rest = (
        _wrapped(about[0], TITLE),
        *about[1:],
    )  # Plotly cuts a second line of a title off
    broken = [*more, *(each for line in rest for each in _wrapped(line, LINE))]
    if len(broken) > MOST_LINES:
        broken = [*broken[: MOST_LINES - 1], broken[MOST_LINES - 1][: LINE - 2].rstrip(" …") + " …"]
    subtitle = "<br>".join(html.escape(each, quote=False) for each in broken)
    figure.update_layout(
        title={
            "text": html.escape(title, quote=False),
            "subtitle": {"text": subtitle},
            "y": 0.99,
            "yanchor": "top",
            "x": 0,
            "xanchor": "left",
        },
        legend={"orientation": "h", "y": -0.26, "yanchor": "top", "x": 0},
        hovermode="x unified",
        height=430 + 15 * len(broken),
        margin={"t": 52 + 16 * len(broken), "l": 10, "r": 10, "b": 10},
    )
    return figure


def _decades(series: Sequence[tuple[str, np.ndarray]]) -> float:
    everything = (
        np.concatenate([values[values > 0] for _, values in series]) if series else np.ones(1)
    )
    return float(np.log10(everything.max() / everything.min())) if everything.size else 0.0


def _clean(label: str, most: int = 12) -> str:
    return html.escape(label if len(label) <= most else label[: most - 1] + "…", quote=False)


def _wrapped(line: str, most: int) -> list[str]:
    made = [""]
    for word in line.split(" "):
        for piece in [word[at : at + most] for at in range(0, len(word), most)] or [""]:
            longer = f"{made[-1]} {piece}" if made[-1] else piece
            if len(longer) > most:
                made.append(piece)
            else:
                made[-1] = longer
    return made
