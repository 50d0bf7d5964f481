"""Two recordings' vectors in Plotly: lengths by depth, the likeness of their spaces, and paths in one plane or two."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

LINE, TITLE, LABEL = 66, 88, 16
# One colour, dash and marker for each side; middle tones, which stand out on a light and on a dark page alike.
COLOURS = ("#d97a1a", "#3b8fd1")
BANDS = ("rgba(217,122,26,0.16)", "rgba(59,143,209,0.16)")
DASHES = ("solid", "dash")
MARKERS = ("circle", "diamond")
FAINT = "rgba(136,136,136,0.35)"


def lengths(
    sides: Sequence[tuple[str, Sequence[str], np.ndarray, np.ndarray]], about: Sequence[str]
) -> go.Figure:
    """One line and a band for each (name, titles of states, depth (state), values (3, state): mean, least, largest) over depth 0 to 1."""
    figure = go.Figure()
    for at, (name, titles, depth, (mean, least, most)) in enumerate(sides):
        figure.add_scatter(
            x=[*depth, *depth[::-1]],
            y=[*most, *least[::-1]],
            mode="lines",
            fill="toself",
            fillcolor=BANDS[at],
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
        )
    for at, (name, titles, depth, (mean, least, most)) in enumerate(sides):
        figure.add_scatter(
            x=depth,
            y=mean,
            name=_clean(name, 60),
            mode="lines+markers",
            line={"color": COLOURS[at], "dash": DASHES[at], "width": 3},
            marker={"symbol": MARKERS[at], "size": 9},
            customdata=[
                [_clean(title), low, high] for title, low, high in zip(titles, least, most)
            ],
            hovertemplate="%{customdata[0]}: mean %{y:.3g}, from %{customdata[1]:.3g} to %{customdata[2]:.3g}<extra>%{fullData.name}</extra>",
        )
    figure.update_xaxes(title="depth: 0 the first state, 1 the last", range=[-0.02, 1.02])
    figure.update_yaxes(title="length", rangemode="tozero")
    return _dressed(figure, about, 400)


def likeness(
    values: np.ndarray,
    chance: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    about: Sequence[str],
) -> go.Figure:
    """Linear CKA as a heatmap (row, column) from 0 to 1, row 0 at the bottom, the value by chance on hover."""
    figure = go.Figure(
        go.Heatmap(
            z=values,
            zmin=0,
            zmax=1,
            colorscale="Cividis",
            customdata=chance,
            colorbar={"title": {"text": "CKA", "side": "right"}, "thickness": 12},
            hovertemplate="A %{y}<br>B %{x}<br>CKA %{z:.3f}, by chance %{customdata:.3f}<extra></extra>",
            texttemplate="%{z:.2f}" if values.size <= 144 else None,
        )
    )
    for axis, labels in ((figure.update_xaxes, columns), (figure.update_yaxes, rows)):
        every = max(1, -(-len(labels) // 30))
        axis(
            tickmode="array",
            tickvals=list(range(0, len(labels), every)),
            ticktext=[_clean(each) for each in labels[::every]],
            showgrid=False,
        )
    figure.update_xaxes(title="states of B", tickangle=-60)
    figure.update_yaxes(title="states of A")
    return _dressed(figure, about, 430)


def paths(
    sides: Sequence[tuple[str, Sequence[str], np.ndarray, tuple[float, float]]],
    labels: Sequence[str],
    chosen: int,
    together: bool,
    about: Sequence[str],
) -> go.Figure:
    """Every unit's path, faint, and the chosen one's, strong. sides: (name, titles of states, points (state, unit, 2), explained shares of both axes),
    in one pair of axes where `together`, else in two side by side, each to its own scale."""
    figure = go.Figure()
    for at, (name, titles, points, explained) in enumerate(sides):
        where = {} if together or at == 0 else {"xaxis": "x2", "yaxis": "y2"}
        gap = np.full((1, points.shape[1], 2), np.nan)
        x, y = np.concatenate((points, gap)).transpose(2, 1, 0).reshape(2, -1)
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": BANDS[at].replace("0.16", "0.4"), "width": 1},
            hoverinfo="skip",
            showlegend=False,
            **where,
        )
        figure.add_scatter(
            x=points[-1, :, 0],
            y=points[-1, :, 1],
            mode="markers",
            name=f"{_clean(name, 60)}, last state",
            marker={"symbol": MARKERS[at], "size": 7, "color": COLOURS[at], "opacity": 0.75},
            hovertext=[_clean(label) for label in labels],
            hovertemplate="%{hovertext}, last state<br>%{x:.3g}, %{y:.3g}<extra></extra>",
            **where,
        )
        own = points[:, chosen]
        figure.add_scatter(
            x=own[:, 0],
            y=own[:, 1],
            mode="lines+markers+text",
            name=f"{_clean(labels[chosen])}, {'AB'[at]}",
            line={"color": COLOURS[at], "dash": DASHES[at], "width": 4},
            marker={"symbol": MARKERS[at], "size": 8, "color": COLOURS[at]},
            text=[""] * (len(own) - 1) + [f"<b>{_clean(labels[chosen])}</b> {'AB'[at]}"],
            textposition="top center",
            textfont={"size": 16},
            hovertext=[_clean(title) for title in titles],
            hovertemplate="%{hovertext}<br>%{x:.3g}, %{y:.3g}<extra></extra>",
            **where,
        )
    for at, (*_, explained) in enumerate(sides[: 1 if together else 2]):
        number = "" if at == 0 else "2"
        domain = [0, 1] if together else [[0, 0.47], [0.53, 1]][at]
        title = "" if together else f"{'AB'[at]}: "
        figure.update_layout(
            {
                f"xaxis{number}": {
                    "domain": domain,
                    "title": f"{title}PC 1, {explained[0]:.0%}",
                    "zeroline": False,
                },
                f"yaxis{number}": {
                    "title": f"PC 2, {explained[1]:.0%}",
                    "anchor": f"x{number}",
                    "scaleanchor": f"x{number}",
                    "zeroline": False,
                },
            }
        )
    return _dressed(figure, about, 520)


def _dressed(figure: go.Figure, about: Sequence[str], height: int) -> go.Figure:
    title, *rest = about
    lines = [piece for each in rest for piece in _wrapped(each)][:9]
    figure.update_layout(
        title={
            "text": _clean(title, TITLE),
            "subtitle": {"text": "<br>".join(html.escape(line, quote=False) for line in lines)},
            "y": 0.99,
            "yanchor": "top",
            "x": 0,
            "xanchor": "left",
        },
        legend={"orientation": "h", "y": -0.3, "yanchor": "top", "x": 0},
        hovermode="closest",
        height=height + 16 * len(lines),
        margin={"t": 56 + 16 * len(lines), "l": 10, "r": 10, "b": 10},
    )
    return figure


def _clean(label: str, most: int = LABEL) -> str:
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in label)
    return html.escape(shown if len(shown) <= most else shown[: most - 1] + "…", quote=False)


def _wrapped(line: str) -> list[str]:
    made = [""]
    for word in line.split(" "):
        for piece in [word[at : at + LINE] for at in range(0, len(word), LINE)] or [""]:
            longer = f"{made[-1]} {piece}" if made[-1] else piece
            if len(longer) > LINE:
                made.append(piece)
            else:
                made[-1] = longer
    return made
