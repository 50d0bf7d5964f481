"""Positions as Plotly figures: the table of sinusoids, its waves, products and turns, and what order does to a sentence.

`about` are the lines above a figure, the first one its title, so that a figure out of context still tells. Everything is escaped. Colours
are such as read on a light and on a dark page: Plotly keeps them when the theme changes.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

ORANGE, BLUE, GREY = "#cb6a12", "#3f86c8", "#8a8578"
DIVERGING = [[0, "#1d5f9e"], [0.25, "#79acd6"], [0.5, "#efeae0"], [0.75, "#e39a4b"], [1, "#94430a"]]
SEQUENTIAL = "Cividis"
LONGEST_LABEL, LONGEST_LINE, LINE = 14, 170, 58
MOST_FLOATS = 40_000  # cells that are sent in single precision; of more, a byte each
MOST_TICKS = 26


def table(
    encoding: np.ndarray,
    about: Sequence[str],
    pair: int | None = None,
    wavelengths: tuple[float, float] | None = None,
    end: float | None = None,
) -> go.Figure:
    """An encoding (position, d) as a heatmap, dimensions along x, position 0 on top, its scale even about 0; `pair` framed. With `wavelengths`,
    those of the first and the last pair, both ends are named. Colours end at plus and minus `end` where it is given, numbers beyond keep
    their worth."""
    n, d = encoding.shape
    top = end or (1.0 if wavelengths else float(np.abs(encoding).max()))
    z, low, high, worth = (
        (encoding.astype(np.float32), -top, top, "%{z:.4f}") if end else _cells(encoding, -top, top)
    )
    figure = go.Figure(
        go.Heatmap(
            z=z,
            zmin=low,
            zmax=high,
            colorscale=DIVERGING,
            hovertemplate=f"position %{{y}}<br>dimension %{{x}}<br>{worth}<extra></extra>",
            colorbar={
                "thickness": 10,
                "outlinewidth": 0,
                "tickvals": [low, (low + high) / 2, high],
                "ticktext": [f"{'≤ ' * bool(end)}−{top:.3g}", "0", f"{'≥ ' * bool(end)}{top:.3g}"],
            },
        )
    )
    if pair is not None:
        for line in (
            {"color": "#000000", "width": 3},
            {"color": "#ffffff", "width": 1.2, "dash": "dot"},
        ):
            figure.add_shape(
                type="rect", x0=2 * pair - 0.5, x1=2 * pair + 1.5, y0=-0.5, y1=n - 0.5, line=line
            )
    if wavelengths is not None:
        for at, anchor, words in (
            (0, "left", f"← fast, λ {_number(wavelengths[0])}"),
            (1, "right", f"λ {_number(wavelengths[1])}, slow →"),
        ):
            figure.add_annotation(
                x=at,
                xref="paper",
                y=1,
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
    return _told(figure, about, 430, above=24)


def wave(
    place: np.ndarray,
    sine: np.ndarray,
    cosine: np.ndarray,
    at_positions: tuple[np.ndarray, np.ndarray],
    dimensions: tuple[int, int],
    about: Sequence[str],
) -> go.Figure:
    """A pair's sine and cosine, as fine curves over `place` (point) and as dots at the whole positions (position)."""
    figure = go.Figure()
    for curve, dots, name, colour, dash, symbol in (
        (sine, at_positions[0], f"sin, dimension {dimensions[0]}", ORANGE, "solid", "circle"),
        (cosine, at_positions[1], f"cos, dimension {dimensions[1]}", BLUE, "dash", "square"),
    ):
        figure.add_scatter(
            x=place,
            y=curve,
            mode="lines",
            line={"color": colour, "width": 1.5, "dash": dash},
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_scatter(
            x=np.arange(len(dots)),
            y=dots,
            mode="markers",
            name=name,
            marker={"color": colour, "size": 7 if len(dots) < 90 else 4, "symbol": symbol},
            hovertemplate=f"position %{{x}}<br>{name}: %{{y:.6f}}<extra></extra>",
        )
    figure.update_xaxes(title="position", zeroline=False)
    figure.update_yaxes(range=[-1.1, 1.1], tickvals=[-1, 0, 1], zeroline=True)
    return _told(figure, about, 360, legend=True)


def norms(lengths: np.ndarray, about: Sequence[str]) -> go.Figure:
    """The length of every row of a table, (position), as a line."""
    figure = go.Figure(
        go.Scatter(
            x=np.arange(len(lengths)),
            y=lengths,
            mode="lines+markers",
            line={"color": ORANGE, "width": 2},
            marker={"size": 6 if len(lengths) < 90 else 3},
            hovertemplate="position %{x}: %{y:.4f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="position", zeroline=False)
    figure.update_yaxes(title="length", rangemode="tozero")
    return _told(figure, about, 260)


def by_distance(
    mean: np.ndarray, low: np.ndarray, high: np.ndarray, about: Sequence[str]
) -> go.Figure:
    """Products against distance, all (distance): their mean as a line, within the band from the smallest to the largest."""
    distance = np.arange(len(mean))
    figure = go.Figure(
        go.Scatter(
            x=distance,
            y=low,
            mode="lines",
            line={"color": ORANGE, "width": 1, "dash": "dot"},
            name="smallest",
            hovertemplate="distance %{x}, smallest: %{y:.4f}<extra></extra>",
        )
    )
    figure.add_scatter(
        x=distance,
        y=high,
        mode="lines",
        line={"color": ORANGE, "width": 1},
        fill="tonexty",
        fillcolor="rgba(203, 106, 18, 0.18)",
        name="largest",
        hovertemplate="distance %{x}, largest: %{y:.4f}<extra></extra>",
    )
    figure.add_scatter(
        x=distance,
        y=mean,
        mode="lines",
        line={"color": BLUE, "width": 3},
        name="mean",
        hovertemplate="distance %{x}, mean: %{y:.4f}<extra></extra>",
    )
    figure.update_xaxes(title="distance |i − j|", zeroline=False)
    figure.update_yaxes(title="p<sub>i</sub> · p<sub>j</sub>")
    return _told(figure, about, 460, legend=True)


def products(law: np.ndarray, low: np.ndarray, high: np.ndarray, about: Sequence[str]) -> go.Figure:
    """p_i . p_j against distance: the law as a curve, the smallest and largest measured product as marks, all (distance)."""
    distance = np.arange(len(law))
    figure = go.Figure(
        go.Scatter(
            x=distance,
            y=law,
            mode="lines",
            name="sum of cosines",
            line={"color": BLUE, "width": 2},
            hoverinfo="skip",
        )
    )
    for values, name, symbol in (
        (low, "smallest measured", "triangle-up-open"),
        (high, "largest measured", "triangle-down-open"),
    ):
        figure.add_scatter(
            x=distance,
            y=values,
            mode="markers",
            name=name,
            marker={"color": ORANGE, "size": 8 if len(law) < 90 else 5, "symbol": symbol},
            hovertemplate=f"distance %{{x}}<br>{name}: %{{y:.6f}}<extra></extra>",
        )
    figure.update_xaxes(title="distance |i − j|", zeroline=False)
    figure.update_yaxes(title="p<sub>i</sub> · p<sub>j</sub>")
    return _told(figure, about, 460, legend=True)


def gram(products: np.ndarray, about: Sequence[str], first: int = 0) -> go.Figure:
    """p_i . p_j of all pairs, (position, position), the `first` position on top left."""
    z, low, high, worth = _cells(products, float(products.min()), float(products.max()))
    figure = go.Figure(
        go.Heatmap(
            z=z,
            x0=first,
            y0=first,
            dx=1,
            dy=1,
            zmin=low,
            zmax=high,
            colorscale=SEQUENTIAL,
            showscale=z is products,
            colorbar={"thickness": 10, "outlinewidth": 0},
            hovertemplate=f"i = %{{y}}<br>j = %{{x}}<br>{worth}<extra></extra>",
        )
    )
    figure.update_xaxes(title="j", constrain="domain", zeroline=False, showgrid=False)
    figure.update_yaxes(
        title="i",
        autorange="reversed",
        scaleanchor="x",
        constrain="domain",
        zeroline=False,
        showgrid=False,
    )
    return _told(figure, about, 460)


def circle(
    sine: np.ndarray,
    cosine: np.ndarray,
    before: tuple[float, float],
    after: tuple[float, float],
    arc: np.ndarray,
    names: tuple[str, str],
    about: Sequence[str],
) -> go.Figure:
    """A pair on the unit circle, cos along x and sin along y: its positions as dots, two of them as arrows, and `arc` (point, 2) from one to
    the other. `before` and `after` are (sin, cos), `names` what they are called."""
    round_ = np.linspace(0, 2 * np.pi, 181)
    figure = go.Figure(
        go.Scatter(
            x=np.cos(round_),
            y=np.sin(round_),
            mode="lines",
            line={"color": GREY, "width": 1},
            hoverinfo="skip",
            showlegend=False,
        )
    )
    figure.add_scatter(
        x=cosine,
        y=sine,
        mode="markers",
        name="the other positions",
        marker={"color": GREY, "size": 6},
        customdata=np.arange(len(sine)),
        hovertemplate="position %{customdata}<br>cos %{x:.4f}, sin %{y:.4f}<extra></extra>",
    )
    figure.add_scatter(
        x=arc[:, 1],
        y=arc[:, 0],
        mode="lines",
        line={"color": ORANGE, "width": 3, "dash": "dot"},
        hoverinfo="skip",
        showlegend=False,
    )
    for (y, x), name, colour, symbol in (
        (before, names[0], BLUE, "circle"),
        (after, names[1], ORANGE, "diamond"),
    ):
        figure.add_scatter(
            x=[0, x],
            y=[0, y],
            mode="lines+markers",
            name=name,
            line={"color": colour, "width": 3},
            marker={"size": [0, 14], "color": colour, "symbol": symbol},
            hovertemplate=f"{html.escape(name)}<br>cos %{{x:.4f}}, sin %{{y:.4f}}<extra></extra>",
        )
    figure.update_xaxes(
        title="cos", range=[-1.2, 1.2], tickvals=[-1, 0, 1], constrain="domain", zeroline=True
    )
    figure.update_yaxes(
        title="sin",
        range=[-1.2, 1.2],
        tickvals=[-1, 0, 1],
        scaleanchor="x",
        constrain="domain",
        zeroline=True,
    )
    return _told(figure, about, 540, legend=True)


def lengths(
    word: np.ndarray,
    encoding: np.ndarray,
    both: np.ndarray,
    tokens: Sequence[str],
    about: Sequence[str],
    names: tuple[str, str] = ("√d × embedding", "encoding"),
) -> go.Figure:
    """Lengths for each token, (token): of the word's vector as bars, of the position's as a line, of their sum as marks; `names`: what the
    first two are called."""
    places = np.arange(len(tokens))
    figure = go.Figure(
        go.Bar(
            x=places,
            y=word,
            name=names[0],
            marker={"color": BLUE},
            hovertemplate=f"%{{x}}: %{{y:.3f}}<extra>{names[0]}</extra>",
        )
    )
    figure.add_scatter(
        x=places,
        y=encoding,
        mode="lines+markers",
        name=names[1],
        line={"color": ORANGE, "width": 2.5},
        marker={"size": 6},
        hovertemplate=f"%{{x}}: %{{y:.3f}}<extra>{names[1]}</extra>",
    )
    figure.add_scatter(
        x=places,
        y=both,
        mode="markers",
        name="their sum",
        marker={"color": GREY, "symbol": "diamond-open", "size": 9, "line": {"width": 2}},
        hovertemplate="%{x}: %{y:.3f}<extra>their sum</extra>",
    )
    figure.update_xaxes(**_ticks(tokens))
    figure.update_yaxes(title="length", rangemode="tozero")
    return _told(figure, about, 420, legend=True)


def by_offset(
    offset: np.ndarray,
    pairs: np.ndarray,
    together: np.ndarray,
    alone: np.ndarray,
    places: np.ndarray | None,
    about: Sequence[str],
) -> go.Figure:
    """A head's mean score by offset, key minus query, all (offset): with positions, without, and position x position where it is known."""
    figure = go.Figure()
    drawn = [
        (together, "with positions", ORANGE, "solid", "circle"),
        (alone, "without", BLUE, "dash", "square"),
    ]
    if places is not None:
        drawn.append((places, "position × position", GREY, "dot", "diamond"))
    for values, name, colour, dash, symbol in drawn:
        figure.add_scatter(
            x=offset,
            y=values,
            mode="lines+markers",
            name=name,
            line={"color": colour, "width": 2, "dash": dash},
            marker={"size": 7 if len(offset) < 90 else 3, "symbol": symbol},
            customdata=pairs,
            hovertemplate=f"key − query = %{{x}}, %{{customdata}} pairs<br>{name}: %{{y:.4f}}<extra></extra>",
        )
    figure.update_xaxes(title="key − query, in tokens", zeroline=True)
    figure.update_yaxes(title="mean score")
    return _told(figure, about, 420, legend=True)


def differences(
    sites: Sequence[str], with_: np.ndarray, without: np.ndarray, about: Sequence[str]
) -> go.Figure:
    """The largest difference between two orders at every site, (site), NaN where there is none to draw; on a log scale."""
    figure = go.Figure()
    for values, name, colour, dash, symbol in (
        (with_, "with positions", ORANGE, "solid", "circle"),
        (without, "without", BLUE, "dash", "square"),
    ):
        figure.add_scatter(
            x=np.arange(len(sites)),
            y=values,
            mode="lines+markers",
            name=name,
            line={"color": colour, "width": 2, "dash": dash},
            marker={"size": 8, "symbol": symbol},
            connectgaps=True,
            hovertemplate=f"%{{x}}<br>{name}: %{{y:.3g}}<extra></extra>",
        )
    figure.update_xaxes(
        tickangle=-60, tickmode="array", tickvals=list(range(len(sites))), ticktext=list(sites)
    )
    figure.update_yaxes(
        type="log",
        title="largest difference",
        exponentformat="power",
        dtick=1,
        minor={"showgrid": False},
    )
    return _told(figure, about, 420, legend=True)


def weights(
    matrix: np.ndarray, tokens: Sequence[str], top: float, about: Sequence[str]
) -> go.Figure:
    """A head's weights (query, key) from 0 to `top`, row 0 on top."""
    z, low, high, worth = _cells(matrix, 0, top)
    figure = go.Figure(
        go.Heatmap(
            z=z,
            zmin=low,
            zmax=high,
            colorscale=SEQUENTIAL,
            hovertemplate=f"query %{{y}}<br>key %{{x}}<br>{worth}<extra></extra>",
            colorbar={
                "thickness": 10,
                "outlinewidth": 0,
                "tickvals": [low, high],
                "ticktext": ["0", f"{top:.2f}"],
            },
        )
    )
    figure.update_xaxes(
        title="key",
        tickangle=-60,
        constrain="domain",
        zeroline=False,
        showgrid=False,
        **_ticks(tokens),
    )
    figure.update_yaxes(
        title="query",
        autorange="reversed",
        scaleanchor="x",
        constrain="domain",
        zeroline=False,
        showgrid=False,
        **_ticks(tokens),
    )
    return _told(figure, about, 430)


def shares(
    words: np.ndarray, places: np.ndarray, chance: np.ndarray, about: Sequence[str]
) -> go.Figure:
    """How much lies in the first r directions, all (r): of the embeddings, of the encoding, and of anything by chance."""
    figure = go.Figure()
    for values, name, colour, dash in (
        (words, "embeddings", BLUE, "dash"),
        (places, "encoding", ORANGE, "solid"),
        (chance, "chance", GREY, "dot"),
    ):
        figure.add_scatter(
            x=np.arange(len(values)),
            y=values,
            mode="lines",
            name=name,
            line={"color": colour, "width": 2.5, "dash": dash},
            hovertemplate=f"%{{x}} directions: %{{y:.1%}} of {name}<extra></extra>",
        )
    figure.update_xaxes(title="principal directions of the embeddings", zeroline=False)
    figure.update_yaxes(title="share in them", tickformat=".0%", range=[0, 1.02])
    return _told(figure, about, 440, legend=True)


def _cells(values: np.ndarray, low: float, high: float) -> tuple[np.ndarray, float, float, str]:
    """The cells as they travel, their range, and what a hover says: single precision, or for many cells a byte each."""
    if values.size <= MOST_FLOATS:
        return values.astype(np.float32), low, high, "%{z:.4f}"
    share = (values - low) / ((high - low) or 1)
    code = np.rint(255 * share).astype(np.uint8)
    return code, 0, 255, f"≈ {low:g} + {high - low:.4g} × %{{z}}/255"


def _told(
    figure: go.Figure, about: Sequence[str], height: int, above: int = 0, legend: bool = False
) -> go.Figure:
    """The figure with its lines above it, and its legend at the bottom."""
    title, *rest = about
    small = [
        html.escape(part, quote=False)
        for line in rest
        for part in textwrap.wrap(_cut(line, LONGEST_LINE), LINE)
    ]
    room = 44 + 15 * len(small) + above
    figure.update_layout(
        title={
            "text": html.escape(_cut(title, LINE), quote=False),
            "font": {"size": 15},
            "subtitle": {"text": "<br>".join(small), "font": {"size": 11}},
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 8},
            "x": 0,
            "xanchor": "left",
        },
        height=height + room,
        margin={"t": room, "l": 10, "r": 10, "b": 100 if legend else 10},
        hoverlabel={"namelength": -1},
    )
    if legend:
        figure.update_layout(
            legend={
                "orientation": "h",
                "x": 0,
                "y": 0,
                "yref": "container",
                "yanchor": "bottom",
                "font": {"size": 13},
                "itemsizing": "constant",
            }
        )
    figure.update_xaxes(title_font_size=14, tickfont_size=13)
    figure.update_yaxes(title_font_size=14, tickfont_size=13)
    return figure


def _ticks(labels: Sequence[str]) -> dict:
    every = max(1, -(-len(labels) // MOST_TICKS))
    places = list(range(0, len(labels), every))
    return {
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [html.escape(_cut(labels[at], LONGEST_LABEL), quote=False) for at in places],
    }


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
