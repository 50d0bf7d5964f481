"""What all Plotly figures share: colours, dashes and markers of lines, scales of heat maps, the
lines above and the legend below.

Colours stand out on a light and on a dark page alike: Plotly keeps them when the theme changes.
Dashes and markers tell lines apart without colour. Everything written is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

Values = Sequence | np.ndarray  # along an axis
# characters of a line of the subtitle, of the title, and of a tick: what a phone shows
LINE, TITLE, LABEL = 62, 40, 14
MOST_LINES = 5  # of the subtitle
MOST_TICKS = 26
MOST_FLOATS = 40_000  # cells that are sent in single precision; of more, a byte each
# Okabe and Ito's colours, in tones for both pages.
COLOURS = ("#d55e00", "#3b8fd1", "#1a9e77", "#b56a9b")
DASHES = ("solid", "dash", "dot", "dashdot")
MARKERS = ("circle", "square", "diamond", "triangle-up")
GREY = "#8a8578"
SEQUENTIAL = "Cividis"
DIVERGING = [[0, "#1d5f9e"], [0.25, "#79acd6"], [0.5, "#efeae0"], [0.75, "#e39a4b"], [1, "#94430a"]]


def band(at: int, opacity: float = 0.18) -> str:
    """Colour number `at`, seen through."""
    red, green, blue = (int(COLOURS[at][place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def line(figure: go.Figure, x: Values, y: Values, name: str, at: int, **more: object) -> None:
    """Add line number `at`, in its own colour, dash and marker; one beyond the first four is grey.
    `more` is the trace's own."""
    colour = COLOURS[at] if at < len(COLOURS) else GREY
    look = {
        "mode": "lines+markers" if len(x) <= 90 else "lines",
        "line": {"color": colour, "dash": DASHES[at % 4], "width": 2.5},
        "marker": {"symbol": MARKERS[at % 4], "size": 7, "color": colour},
        "hovertemplate": f"{clean(name, 60)}: %{{y:.4f}}<extra></extra>",
    }
    figure.add_scatter(x=x, y=y, name=clean(name, 60), **(look | more))


def heat(
    values: np.ndarray,
    low: float,
    high: float,
    hover: str,
    bar: str,
    **more: object,
) -> go.Heatmap:
    """A heat map from `low` to `high`, two-sided where these are; row 0 wherever its axis has it.
    `hover` says where a cell is, `bar` what the colours mean. Of many cells each is sent as a
    byte."""
    z, worth = values.astype(np.float32), "%{z:.4f}"
    ticks, said = [low, high], [f"{low:.3g}", f"{high:.3g}"]
    if values.size > MOST_FLOATS:
        share = np.clip((values - low) / ((high - low) or 1), 0, 1)
        z, worth = (
            np.rint(255 * share).astype(np.uint8),
            f"≈ {low:g} + {high - low:.4g} × %{{z}}/255",
        )
        ticks = [0, 255]
    return go.Heatmap(
        z=z,
        zmin=ticks[0],
        zmax=ticks[1],
        colorscale=DIVERGING if low < 0 < high and low == -high else SEQUENTIAL,
        hovertemplate=f"{hover}<br>{worth}<extra></extra>",
        colorbar={
            "title": {"text": bar, "side": "right"},
            "thickness": 12,
            "outlinewidth": 0,
            "tickvals": ticks,
            "ticktext": said,
        },
        **more,
    )


def ticked(labels: Sequence[str], most: int = MOST_TICKS, longest: int = LABEL) -> dict:
    """Ticks with labels, every few of them where there are many."""
    places = list(range(0, len(labels), max(1, -(-len(labels) // most))))
    named = [clean(labels[at], longest) for at in places]
    return {"tickmode": "array", "tickvals": places, "ticktext": named}


def dressed(
    figure: go.Figure,
    about: Sequence[str],
    height: int = 430,
    hover: str = "x unified",
    above: int = 0,
    below: float = 0.26,
    most: int = MOST_LINES,
) -> go.Figure:
    """The figure with its title, the lines below it and a legend under it. above: pixels kept for
    what stands over the plot; below: where the legend begins, in heights of the plot;
    most: lines of the subtitle."""
    # Plotly cuts a second line of a title off.
    (title, *more), *rest = wrapped(about[0], TITLE), *about[1:]
    broken = [*more, *(each for line in rest for each in wrapped(line, LINE))]
    if len(broken) > most:
        broken = [*broken[: most - 1], broken[most - 1][: LINE - 2].rstrip(" …") + " …"]
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
        legend={"orientation": "h", "y": -below, "yanchor": "top", "x": 0},
        hovermode=hover,
        height=height + above + 15 * len(broken),
        margin={"t": 52 + above + 16 * len(broken), "l": 10, "r": 10, "b": 10},
    )
    return figure


def clean(label: str, most: int = LABEL) -> str:
    """A label that is shown as it is, cut where it is long."""
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in label)
    return html.escape(shown if len(shown) <= most else shown[: most - 1] + "…", quote=False)


def wrapped(text: str, most: int) -> list[str]:
    """A text in lines of at most so many characters."""
    made = [""]
    for word in text.split(" "):
        for piece in [word[at : at + most] for at in range(0, len(word), most)] or [""]:
            longer = f"{made[-1]} {piece}" if made[-1] else piece
            if len(longer) > most:
                made.append(piece)
            else:
                made[-1] = longer
    return made
