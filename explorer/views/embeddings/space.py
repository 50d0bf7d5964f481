"""Paths of tokens in three dimensions, to be turned by hand: the one picture that Plotly draws."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.panels.embeddings import WordPath

LONGEST_LABEL = 30
# Middle tones, which stand out on a light and on a dark page alike: Plotly keeps its colours when
# the theme changes.
COLOURS = ("#c2620e", "#3b82c4", "#8a8177", "#8a8177")
SYMBOLS = ("circle", "diamond", "square", "cross")
HOVER = "%{hovertext}<br>%{x:.3f}, %{y:.3f}, %{z:.3f}<extra></extra>"


def show(on: WordPath) -> None:
    """Every token at the selected layer, and the paths of the selected word, on three axes."""
    name = f"headlight-{on.recordings[0].model.name}-paths-3d"
    image = {"format": "png", "scale": 2, "filename": name}
    config = {"displaylogo": False, "toImageButtonOptions": image}
    alt = f"Paths of tokens in three dimensions, at {on.site_title}"
    st.plotly_chart(figure(on), key="in space", config=config, alt=alt)


def figure(on: WordPath) -> go.Figure:
    """The picture: its points are named on hover, those of the selected word and anchors beside
    them."""
    scene, site = on.scene, on.site
    drawn = go.Figure()
    for group in scene.groups:
        labels = [_safe(label) for label in group.labels]
        drawn.add_scatter3d(
            **_places(scene.basis.project(group.vectors[site])),
            mode="markers+text" if group.kind > 1 else "markers",
            text=labels,
            name=_safe(group.name),
            hovertext=labels,
            marker={"size": 4, "symbol": SYMBOLS[group.kind], "color": COLOURS[group.kind]},
            hovertemplate=HOVER,
        )
    for text, place in on.places:
        label = _safe(on.label(text, place))
        path = scene.basis.project(scene.path(text, place))
        drawn.add_scatter3d(
            **_places(path),
            mode="lines+markers+text",
            text=[label if at == site else "" for at in range(len(path))],
            textposition="bottom center" if text else "top center",
            textfont={"size": 15, "color": COLOURS[text]},
            name=f"{label} ({_safe(scene.texts[text].name)})",
            hovertext=list(scene.titles),
            line={"width": 6, "color": COLOURS[text]},
            marker={"size": 3, "color": COLOURS[text]},
            hovertemplate=HOVER,
        )
    names = [
        f"{_safe(name)} ({share:.1%})"
        for name, share in zip(scene.basis.names, scene.basis.explained)
    ]
    axes = {f"{axis}axis": {"title": {"text": name}} for axis, name in zip("xyz", names)}
    eye = {"eye": {"x": 1.1, "y": 1.1, "z": 0.65}}
    drawn.update_layout(
        height=560,
        margin={"t": 0, "l": 0, "r": 0, "b": 0},
        scene={**axes, "aspectmode": "data", "camera": eye},
        legend={"orientation": "h", "y": -0.02},
    )
    return drawn


def _places(points: np.ndarray) -> dict[str, Any]:
    """Points (token, 3) as the coordinates of a trace."""
    return dict(zip("xyz", points.T))


def _safe(text: str) -> str:
    """A label as it is, cut where it is long; Plotly's texts are a kind of HTML."""
    cut = text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
    return html.escape(cut, quote=False)
