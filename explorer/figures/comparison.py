"""Two recordings' vectors in Plotly: lengths by depth, the likeness of their spaces, and paths in
one plane or two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.plotly_style import COLOURS, MARKERS, band, clean, dressed, heat, line, ticked

MOST_LINES = 8  # of the subtitle, which says what both sides are
Path = tuple[str, Sequence[str], np.ndarray, tuple[float, float]]


def lengths(
    sides: Sequence[tuple[str, Sequence[str], np.ndarray, np.ndarray]], about: Sequence[str]
) -> go.Figure:
    """One line and a band for each (name, titles of states, depth (state), values (3, state): mean,
    least, largest) over depth 0 to 1."""
    figure = go.Figure()
    for at, (_, _, depth, (_, least, most)) in enumerate(sides):
        figure.add_scatter(
            x=[*depth, *depth[::-1]],
            y=[*most, *least[::-1]],
            mode="lines",
            fill="toself",
            fillcolor=band(at),
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
        )
    for at, (name, titles, depth, (mean, least, most)) in enumerate(sides):
        named = [[clean(title, 16), *ends] for title, *ends in zip(titles, least, most)]
        said = "mean %{y:.3g}, from %{customdata[1]:.3g} to %{customdata[2]:.3g}"
        hover = f"%{{customdata[0]}}: {said}<extra>%{{fullData.name}}</extra>"
        line(figure, depth, mean, name, at, customdata=named, hovertemplate=hover)
    figure.update_xaxes(title="depth: 0 the first state, 1 the last", range=[-0.02, 1.02])
    figure.update_yaxes(title="length", rangemode="tozero")
    return dressed(figure, about, 400, "closest", most=MOST_LINES)


def likeness(
    values: np.ndarray,
    chance: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    about: Sequence[str],
) -> go.Figure:
    """Linear CKA as a heat map (row, column) from 0 to 1, row 0 at the bottom, the value by chance
    on hover."""
    drawn = heat(values, 0, 1, "A %{y}<br>B %{x}", "CKA", customdata=chance)
    drawn.hovertemplate = (
        "A %{y}<br>B %{x}<br>CKA %{z:.3f}, by chance %{customdata:.3f}<extra></extra>"
    )
    drawn.texttemplate = "%{z:.2f}" if values.size <= 144 else None
    figure = go.Figure(drawn)
    figure.update_xaxes(
        title="states of B", tickangle=-60, showgrid=False, **ticked(columns, 30, 16)
    )
    figure.update_yaxes(title="states of A", showgrid=False, **ticked(rows, 30, 16))
    return dressed(figure, about, 430, "closest", most=MOST_LINES)


def paths(
    sides: Sequence[Path],
    labels: Sequence[str],
    chosen: int,
    together: bool,
    about: Sequence[str],
) -> go.Figure:
    """Every unit's path, faint, and the chosen one's, strong. sides: (name, titles of states,
    points (state, unit, 2), explained shares of both axes), in one pair of axes where `together`,
    else in two side by side, each to its own scale."""
    figure = go.Figure()
    for at, side in enumerate(sides):
        where = {} if together or at == 0 else {"xaxis": "x2", "yaxis": "y2"}
        _all_paths(figure, at, side, labels, where)
        _followed(figure, at, side, (labels[chosen], chosen), where)
    for at, (*_, explained) in enumerate(sides[: 1 if together else 2]):
        number, whose = ("", "A: ") if at == 0 else ("2", "B: ")
        across = {
            "domain": [0, 1] if together else [[0, 0.47], [0.53, 1]][at],
            "title": f"{'' if together else whose}PC 1, {explained[0]:.0%}",
            "zeroline": False,
        }
        up = {"anchor": f"x{number}", "scaleanchor": f"x{number}", "zeroline": False}
        figure.update_layout(
            {
                f"xaxis{number}": across,
                f"yaxis{number}": up | {"title": f"PC 2, {explained[1]:.0%}"},
            }
        )
    return dressed(figure, about, 520, "closest", most=MOST_LINES)


def _all_paths(figure: go.Figure, at: int, side: Path, labels: Sequence[str], where: dict) -> None:
    name, _, points, _ = side
    gap = np.full((1, points.shape[1], 2), np.nan)
    x, y = np.concatenate((points, gap)).transpose(2, 1, 0).reshape(2, -1)
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": band(at, 0.4), "width": 1},
        hoverinfo="skip",
        showlegend=False,
        **where,
    )
    figure.add_scatter(
        x=points[-1, :, 0],
        y=points[-1, :, 1],
        mode="markers",
        name=f"{clean(name, 60)}, last state",
        marker={"symbol": MARKERS[at], "size": 7, "color": COLOURS[at], "opacity": 0.75},
        hovertext=[clean(label, 16) for label in labels],
        hovertemplate="%{hovertext}, last state<br>%{x:.3g}, %{y:.3g}<extra></extra>",
        **where,
    )


def _followed(figure: go.Figure, at: int, side: Path, chosen: tuple[str, int], where: dict) -> None:
    _, titles, points, _ = side
    label, unit = clean(chosen[0], 16), chosen[1]
    own = points[:, unit]
    line(
        figure,
        own[:, 0],
        own[:, 1],
        f"{chosen[0]}, {'AB'[at]}",
        at,
        mode="lines+markers+text",
        text=[""] * (len(own) - 1) + [f"<b>{label}</b> {'AB'[at]}"],
        textposition="top center",
        textfont={"size": 16},
        hovertext=[clean(title, 16) for title in titles],
        hovertemplate="%{hovertext}<br>%{x:.3g}, %{y:.3g}<extra></extra>",
        **where,
    )
