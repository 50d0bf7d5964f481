"""Curves over states or steps, of runs and models beside each other, as Plotly figures."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.plotly_style import COLOURS, DASHES, MARKERS, dressed

GREY = "#8a8177"  # stands out on a light and on a dark page alike


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


def curves(series: Sequence[tuple[str, np.ndarray]], about: Sequence[str]) -> go.Figure:
    """Loss by step, one line for each (name, (look, 2) of step and loss), the first thick and grey:
    the one the others are measured against.

    They need not have looked at the same steps. `about`: title, then lines.
    """
    steps = np.unique(np.concatenate([curve[:, 0] for _, curve in series]))
    spread = []
    for name, curve in series:
        losses = np.full(len(steps), np.nan)
        losses[np.searchsorted(steps, curve[:, 0])] = curve[:, 1]
        spread.append((name, losses))
    figure = lines(spread, about, steps, "step", "loss, nats", log=False)
    figure.update_traces(connectgaps=True)
    figure.data[0].line.update(color=GREY, width=5)
    return figure


def _decades(series: Sequence[tuple[str, np.ndarray]]) -> float:
    everything = (
        np.concatenate([values[values > 0] for _, values in series]) if series else np.ones(1)
    )
    return float(np.log10(everything.max() / everything.min())) if everything.size else 0.0
