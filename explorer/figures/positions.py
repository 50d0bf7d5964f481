"""The table of positions as Plotly figures: the table, its waves, products and turns. `about`:
title, then the lines below it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.dress import COLOURS, GREY, band, dressed, heat, line, square

TALL = 400


def table(
    encoding: np.ndarray,
    about: Sequence[str],
    pair: int | None = None,
    wavelengths: tuple[float, float] | None = None,
    end: float | None = None,
) -> go.Figure:
    """An encoding (position, d) as a heat map, dimensions along x, position 0 on top, its scale
    even about 0; `pair` framed. With `wavelengths`, those of the first and the last pair, both ends
    are named. Colours end at plus and minus `end` where it is given; numbers beyond keep their
    worth."""
    n, d = encoding.shape
    top = end or (1.0 if wavelengths else float(np.abs(encoding).max()))
    drawn = heat(encoding, -top, top, "position %{y}<br>dimension %{x}", "value")
    figure = go.Figure(drawn)
    if end:
        drawn = figure.data[0]
        drawn.update(z=encoding.astype(np.float32), zmin=-top, zmax=top)
        drawn.hovertemplate = "position %{y}<br>dimension %{x}<br>%{z:.4f}<extra></extra>"
        drawn.colorbar.update(
            tickvals=[-top, 0, top], ticktext=[f"≤ −{top:.3g}", "0", f"≥ {top:.3g}"]
        )
    if pair is not None:
        for look in (
            {"color": "#000000", "width": 3},
            {"color": "#ffffff", "width": 1.2, "dash": "dot"},
        ):
            figure.add_shape(
                type="rect", x0=2 * pair - 0.5, x1=2 * pair + 1.5, y0=-0.5, y1=n - 0.5, line=look
            )
    for at, anchor, words in _ends(wavelengths):
        figure.add_annotation(
            x=at,
            y=1,
            xref="paper",
            yref="paper",
            xanchor=anchor,
            yanchor="bottom",
            yshift=2,
            text=words,
            showarrow=False,
            font={"size": 13},
        )
    figure.update_xaxes(title="dimension", range=[-0.5, d - 0.5], showgrid=False, zeroline=False)
    figure.update_yaxes(title="position", range=[n - 0.5, -0.5], showgrid=False, zeroline=False)
    return dressed(figure, about, TALL, "closest", above=24)


def _ends(wavelengths: tuple[float, float] | None) -> list[tuple[int, str, str]]:
    if wavelengths is None:
        return []
    fast, slow = (f"{each:.2f}" if each < 100 else f"{each:,.0f}" for each in wavelengths)
    return [(0, "left", f"← fast, λ {fast}"), (1, "right", f"λ {slow}, slow →")]


def wave(
    place: np.ndarray,
    curves: tuple[np.ndarray, np.ndarray],
    dots: tuple[np.ndarray, np.ndarray],
    dimensions: tuple[int, int],
    about: Sequence[str],
) -> go.Figure:
    """A pair's sine and cosine, as fine curves over `place` (point) and as dots at the whole
    positions (position)."""
    figure = go.Figure()
    for at, (name, curve, own) in enumerate(zip(("sin", "cos"), curves, dots)):
        name = f"{name}, dimension {dimensions[at]}"
        line(
            figure,
            place,
            curve,
            name,
            at,
            mode="lines",
            hoverinfo="skip",
            hovertemplate=None,
            showlegend=False,
        )
        said = f"position %{{x}}<br>{name}: %{{y:.6f}}<extra></extra>"
        line(figure, np.arange(len(own)), own, name, at, mode="markers", hovertemplate=said)
    figure.update_xaxes(title="position", zeroline=False)
    figure.update_yaxes(range=[-1.1, 1.1], tickvals=[-1, 0, 1], zeroline=True)
    return dressed(figure, about, TALL, "closest")


def norms(lengths: np.ndarray, about: Sequence[str]) -> go.Figure:
    """The length of every row of a table, (position), as a line."""
    figure = go.Figure()
    line(figure, np.arange(len(lengths)), lengths, "length", 0, showlegend=False)
    figure.update_xaxes(title="position", zeroline=False)
    figure.update_yaxes(title="length", rangemode="tozero")
    return dressed(figure, about, 260)


def by_distance(
    mean: np.ndarray, low: np.ndarray, high: np.ndarray, about: Sequence[str]
) -> go.Figure:
    """Products against distance, all (distance): their mean as a line, within the band from the
    smallest to the largest."""
    distance, figure = np.arange(len(mean)), go.Figure()
    thin = {"color": COLOURS[0], "width": 1}
    line(figure, distance, low, "smallest", 0, mode="lines", line=thin | {"dash": "dot"})
    line(
        figure,
        distance,
        high,
        "largest",
        0,
        mode="lines",
        line=thin,
        fill="tonexty",
        fillcolor=band(0),
    )
    line(figure, distance, mean, "mean", 1, mode="lines")
    return _against_distance(figure, about)


def products(law: np.ndarray, low: np.ndarray, high: np.ndarray, about: Sequence[str]) -> go.Figure:
    """p_i . p_j against distance: the law as a curve, the smallest and largest measured product as
    marks, all (distance)."""
    distance, figure = np.arange(len(law)), go.Figure()
    line(
        figure,
        distance,
        law,
        "sum of cosines",
        1,
        mode="lines",
        hoverinfo="skip",
        hovertemplate=None,
    )
    for values, name, symbol in (
        (low, "smallest", "triangle-up-open"),
        (high, "largest", "triangle-down-open"),
    ):
        marks = {"color": COLOURS[0], "size": 8 if len(law) < 90 else 5, "symbol": symbol}
        line(figure, distance, values, f"{name} measured", 0, mode="markers", marker=marks)
    return _against_distance(figure, about)


def _against_distance(figure: go.Figure, about: Sequence[str]) -> go.Figure:
    figure.update_xaxes(title="distance |i − j|", zeroline=False)
    figure.update_yaxes(title="p<sub>i</sub> · p<sub>j</sub>")
    return dressed(figure, about)


def gram(products: np.ndarray, about: Sequence[str], first: int = 0) -> go.Figure:
    """p_i . p_j of all pairs, (position, position), the `first` position on top left."""
    low, high = float(products.min()), float(products.max())
    placed = {"x0": first, "y0": first, "dx": 1, "dy": 1}
    figure = go.Figure(heat(products, low, high, "i = %{y}<br>j = %{x}", "product", **placed))
    square(figure, "j", "i")
    return dressed(figure, about, hover="closest")


def circle(
    sine: np.ndarray,
    cosine: np.ndarray,
    ends: tuple[tuple[float, float], tuple[float, float]],
    arc: np.ndarray,
    names: tuple[str, str],
    about: Sequence[str],
) -> go.Figure:
    """A pair on the unit circle, cos along x and sin along y: its positions as dots, two of them as
    arrows, and `arc` (point, 2) from one to the other. `ends` are (sin, cos), `names` what they are
    called."""
    figure, round_ = go.Figure(), np.linspace(0, 2 * np.pi, 181)
    quiet = {"mode": "lines", "hoverinfo": "skip", "hovertemplate": None, "showlegend": False}
    said = "cos %{x:.4f}, sin %{y:.4f}<extra></extra>"
    grey = {"color": GREY, "size": 6}
    line(
        figure,
        np.cos(round_),
        np.sin(round_),
        "circle",
        4,
        **quiet,
        line={"color": GREY, "width": 1},
    )
    line(
        figure,
        cosine,
        sine,
        "the other positions",
        4,
        mode="markers",
        marker=grey,
        customdata=np.arange(len(sine)),
        hovertemplate=f"position %{{customdata}}<br>{said}",
    )
    line(
        figure,
        arc[:, 1],
        arc[:, 0],
        "turn",
        0,
        **quiet,
        line={"color": COLOURS[0], "width": 3, "dash": "dot"},
    )
    for at, ((y, x), name) in enumerate(zip(ends, names)):
        colour, symbol = (COLOURS[1], "circle") if at == 0 else (COLOURS[0], "diamond")
        line(
            figure,
            [0, x],
            [0, y],
            name,
            at,
            line={"color": colour, "width": 3},
            marker={"size": [0, 14], "color": colour, "symbol": symbol},
            hovertemplate=f"{name}<br>{said}",
        )
    plain = {"range": [-1.2, 1.2], "tickvals": [-1, 0, 1], "constrain": "domain", "zeroline": True}
    figure.update_xaxes(title="cos", **plain)
    figure.update_yaxes(title="sin", scaleanchor="x", **plain)
    return dressed(figure, about, 480, "closest")
