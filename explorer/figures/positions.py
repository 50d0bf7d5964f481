"""The table of positions as Plotly figures: the table, its waves, products and turns. `about`:
title, then the lines below it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.plotly_style import (
    COLOURS,
    GREY,
    band,
    clean,
    dressed,
    heat,
    line,
    square,
    ticked,
)

# What positions do to a sentence as Plotly figures: lengths, scores, two orders of the words, and
# room for both. `about`: title, then the lines below it.


def lengths(
    word: np.ndarray,
    encoding: np.ndarray,
    both: np.ndarray,
    tokens: Sequence[str],
    about: Sequence[str],
    names: tuple[str, str] = ("√d × embedding", "encoding"),
) -> go.Figure:
    """Lengths for each token, (token): of the word's vector as bars, of the position's as a line,
    of their sum as marks; `names`: what the first two are called."""
    places = np.arange(len(tokens))
    figure = go.Figure(
        go.Bar(
            x=places,
            y=word,
            name=clean(names[0], 60),
            marker={"color": COLOURS[1]},
            hovertemplate=f"%{{x}}: %{{y:.3f}}<extra>{clean(names[0], 60)}</extra>",
        )
    )
    line(figure, places, encoding, names[1], 0)
    marks = {"color": GREY, "symbol": "diamond-open", "size": 9, "line": {"width": 2}}
    line(figure, places, both, "their sum", 4, mode="markers", marker=marks)
    figure.update_xaxes(**ticked(tokens))
    figure.update_yaxes(title="length", rangemode="tozero")
    return dressed(figure, about)


def by_offset(
    offset: np.ndarray,
    pairs: np.ndarray,
    lines: Sequence[tuple[str, np.ndarray]],
    about: Sequence[str],
) -> go.Figure:
    """A head's mean score by offset, key minus query, (offset) as are its `pairs`: one line for
    each (name, values (offset))."""
    figure = go.Figure()
    for at, (name, values) in enumerate(lines):
        said = f"{name}: %{{y:.4f}}, %{{customdata}} pairs<extra></extra>"
        line(figure, offset, values, name, at, customdata=pairs, hovertemplate=said)
    figure.update_xaxes(title="key − query, in tokens", zeroline=True)
    figure.update_yaxes(title="mean score")
    return dressed(figure, about)


def differences(
    sites: Sequence[str], with_: np.ndarray, without: np.ndarray, about: Sequence[str]
) -> go.Figure:
    """The largest difference between two orders at every site, (site), NaN where there is none to
    draw; on a log scale."""
    figure, places = go.Figure(), np.arange(len(sites))
    for at, (name, values) in enumerate((("with positions", with_), ("without", without))):
        said = f"{name}: %{{y:.3g}}<extra></extra>"
        line(figure, places, values, name, at, connectgaps=True, hovertemplate=said)
    figure.update_xaxes(tickangle=-60, **ticked(sites, longest=18))
    power = {"type": "log", "exponentformat": "power", "dtick": 1, "minor": {"showgrid": False}}
    figure.update_yaxes(title="largest difference", **power)
    return dressed(figure, about, 480, below=0.5)


def weights(
    matrix: np.ndarray, tokens: Sequence[str], top: float, about: Sequence[str]
) -> go.Figure:
    """A head's weights (query, key) from 0 to `top`, row 0 on top."""
    figure = go.Figure(heat(matrix, 0, top, "query %{y}<br>key %{x}", "weight"))
    square(figure, "key", "query", tokens)
    return dressed(figure, about, hover="closest")


def shares(
    words: np.ndarray, places: np.ndarray, chance: np.ndarray, about: Sequence[str]
) -> go.Figure:
    """How much lies in the first r directions, all (r): of the embeddings, of the encoding, and of
    anything by chance."""
    figure = go.Figure()
    for name, values, at in (
        ("embeddings", words, 1),
        ("encoding", places, 0),
        ("chance", chance, 4),
    ):
        said = f"%{{x}} directions: %{{y:.1%}} of {name}<extra></extra>"
        line(figure, np.arange(len(values)), values, name, at, mode="lines", hovertemplate=said)
    figure.update_xaxes(title="principal directions of the embeddings", zeroline=False)
    figure.update_yaxes(title="share in them", tickformat=".0%", range=[0, 1.02])
    return dressed(figure, about)


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
