"""What positions do to a sentence as Plotly figures: lengths, scores, two orders of the words, and
room for both. `about`: title, then the lines below it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.dress import COLOURS, GREY, clean, dressed, heat, line, square, ticked


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
