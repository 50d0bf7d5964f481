"""Paths of tokens in three dimensions as a Plotly figure, to be turned."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

LONGEST_LABEL, LONGEST_LINE = 30, 110
# Middle tones, which stand out on a light and on a dark page alike: Plotly keeps its data colours
# when the theme changes.
COLOURS = ("#c2620e", "#3b82c4", "#8a8177", "#8a8177")
SYMBOLS = ("circle", "diamond", "square", "cross")


def paths(
    points: Sequence[tuple[str, int, Sequence[str], np.ndarray]],
    chosen: Sequence[tuple[str, int, np.ndarray]],
    site: int,
    titles: Sequence[str],
    axes: Sequence[str],
    about: Sequence[str],
) -> go.Figure:
    """Points at one site and whole paths of the chosen tokens, all in the same three axes and to
    one scale.

    points: (name, kind, labels, (token, 3)), kind 0 and 1 for the texts, 2 and 3 for groups of
    anchors; chosen: (name, kind, (site, 3)). site: where the chosen tokens' names stand, from 0.
    Other tokens show theirs on hover, so that names do not pile up. `titles` name the sites,
    `about` are the lines above, the first one the title. Everything is escaped.
    """
    title, *rest = (html.escape(_cut(line, LONGEST_LINE), quote=False) for line in about)
    figure = go.Figure()
    for name, kind, labels, xyz in points:
        named = [_safe(label) for label in labels]
        figure.add_scatter3d(
            x=xyz[:, 0],
            y=xyz[:, 1],
            z=xyz[:, 2],
            mode="markers+text" if kind > 1 else "markers",
            text=named,
            name=_safe(name),
            hovertext=named,
            marker={"size": 4, "symbol": SYMBOLS[kind], "color": COLOURS[kind]},
            textfont={"size": 11},
            hovertemplate="%{hovertext}<br>%{x:.3f}, %{y:.3f}, %{z:.3f}<extra></extra>",
        )
    for name, kind, xyz in chosen:
        here = [_safe(name) if at == site else "" for at in range(len(xyz))]
        figure.add_scatter3d(
            x=xyz[:, 0],
            y=xyz[:, 1],
            z=xyz[:, 2],
            mode="lines+markers+text",
            text=here,
            textposition="bottom center" if kind else "top center",
            textfont={"size": 15, "color": COLOURS[kind]},
            name=_safe(f"path of {name}"),
            hovertext=list(titles),
            line={"width": 6, "color": COLOURS[kind]},
            marker={"size": 3, "color": COLOURS[kind]},
            hovertemplate="%{hovertext}<br>%{x:.3f}, %{y:.3f}, %{z:.3f}<extra></extra>",
        )
    names = {
        axis: {"title": {"text": _safe(name, 40)}}
        for axis, name in zip(("xaxis", "yaxis", "zaxis"), axes)
    }
    figure.update_layout(
        title={"text": title, "subtitle": {"text": "<br>".join(rest)}, "y": 0.99, "yanchor": "top"},
        height=620,
        margin={"t": 130, "l": 0, "r": 0, "b": 0},
        scene={**names, "aspectmode": "data", "camera": {"eye": {"x": 1.1, "y": 1.1, "z": 0.65}}},
        legend={"orientation": "h", "y": -0.02},
    )
    return figure


def _safe(text: str, most: int = LONGEST_LABEL) -> str:
    return html.escape(_cut(text, most), quote=False)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
