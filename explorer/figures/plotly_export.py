"""A panel's figures as a Plotly figure, to be studied and worked on: the same numbers, labels and
colours, one plot below the other.

Plotly reads its texts as a kind of HTML, with formulas between dollar signs: all are escaped.
Numbers of a plot are those of its figure; what a colour scale changes stands beside them."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.components import bundle, codec
from explorer.figures import kinds
from explorer.wording.templates import sentences

if TYPE_CHECKING:
    import plotly.graph_objects as go

WORDS = sentences("selection", "figure_files")
ROW, HEAD, TALL = 26, 90, 340  # pixels of a row of a plot, of its title and axis, of a chart
FADED = "rgba(127,127,127,0.45)"
TALLEST = 620  # of one plot
MOST_TICKS = 40  # labels of an axis
MOST_NAMED = 40_000  # cells that each have a name of their own
PALE = 0.65  # opacity of a row that is not selected
GAP = 1  # cells between two heads
LENGTH_AND_ANGLE = "%{customdata[0]}, %{customdata[1]}°<extra></extra>"
PER_CELL = "%{y} · %{x}: %{customdata}<extra></extra>"


@dataclass
class Plot:
    """One plot: its title, its traces as Plotly's names them, its axes, and its height in pixels.
    kind: of the place that it takes, "xy" or "table"; is_square: one scale for both axes."""

    title: str
    traces: list[dict[str, Any]]
    x: dict[str, Any] = field(default_factory=dict)
    y: dict[str, Any] = field(default_factory=dict)
    height: float = TALL
    kind: str = "xy"
    is_square: bool = False


@dataclass(frozen=True)
class Colours:
    """The colours of a theme, and its scales as Plotly takes them."""

    ink: str
    paper: str
    primary: str
    border: str
    font: str
    sequential: list[str]
    categorical: list[str]

    @property
    def one(self) -> list[list[Any]]:
        """From nothing up."""
        last = len(self.sequential) - 1
        return [[at / last, colour] for at, colour in enumerate(self.sequential)]

    @property
    def two(self) -> list[list[Any]]:
        """Below 0, at 0 and above."""
        return [[0, self.categorical[1]], [0.5, self.paper], [1, self.categorical[0]]]


def figure(all_of: Sequence[kinds.Figure], title: str, dark: bool = False) -> go.Figure:
    """Figures as one of Plotly's; of those behind a slider the one that is on show. Raises
    ValueError where Plotly is not installed."""
    if find_spec("plotly") is None:
        raise ValueError(WORDS("no_plotly"))
    from plotly.graph_objects import Figure
    from plotly.subplots import make_subplots

    look = Colours(**bundle.colours("dark" if dark else "light"))  # type: ignore[arg-type]
    plots = [plot for each in _leaves(all_of) for plot in KINDS[type(each)](each, look)]
    heights = [each.height for each in plots]
    whole = sum(heights) + HEAD * len(plots)
    subplots: Figure = make_subplots(
        rows=len(plots),
        cols=1,
        specs=[[{"type": each.kind}] for each in plots],
        subplot_titles=[safe(each.title) for each in plots],
        row_heights=heights,
        vertical_spacing=min(HEAD / whole, 1 / max(1, len(plots))),
    )
    for row, plot in enumerate(plots, 1):
        place = subplots.get_subplot(row, 1)
        foot, top = place.y if plot.kind == "table" else place.yaxis.domain
        for trace in plot.traces:
            if "colorbar" in trace:
                bar = {"len": top - foot, "y": (foot + top) / 2}
                trace = trace | {"colorbar": trace["colorbar"] | bar}
            hidden = {} if plot.kind == "table" else {"showlegend": False}
            subplots.add_trace(hidden | trace, row=row, col=1)
        if plot.kind == "xy":
            grid = {"gridcolor": look.border, "zerolinecolor": look.border, "automargin": True}
            if plot.is_square:
                plot.y["scaleanchor"] = place.xaxis.plotly_name.replace("axis", "")
            subplots.update_xaxes(grid | plot.x, row=row, col=1)
            subplots.update_yaxes(grid | plot.y, row=row, col=1)
    subplots.update_layout(
        title={"text": safe(title)},
        height=whole + HEAD,
        paper_bgcolor=look.paper,
        plot_bgcolor=look.paper,
        font={"color": look.ink, "family": look.font},
        colorway=look.categorical,
        barmode="overlay",
        showlegend=any(trace.get("showlegend") for plot in plots for trace in plot.traces),
        legend={"orientation": "h", "yanchor": "top", "y": -60 / whole, "x": 0},
        hoverlabel={"align": "left"},
        margin={"t": HEAD, "l": 20, "r": 20, "b": 50},
    )
    subplots.update_annotations(xanchor="left", x=0, font={"size": 14})
    return subplots


def safe(text: str) -> str:
    """A text that Plotly shows as it is: no element of HTML, no formula."""
    return html.escape(text, quote=False).replace("$", "&#36;")


def _leaves(all_of: Sequence[kinds.Figure]) -> Iterator[kinds.Figure]:
    """The figures themselves: those of a stack, and of steps what is on show."""
    for each in all_of:
        match each:
            case kinds.Stack():
                yield from _leaves(each.figures)
            case kinds.Steps():
                yield from _leaves([each.whole] if each.whole is not None else [])
                yield from _leaves(each.frames[each.current].figures)
            case _:
                yield each


def _ticks(labels: Sequence[str]) -> dict[str, Any]:
    """An axis of labels, which may be the same word more than once."""
    ticks = range(0, len(labels), -(-len(labels) // MOST_TICKS) or 1)
    return {"tickvals": [*ticks], "ticktext": [safe(labels[at]) for at in ticks]}


def _finite(values: Any) -> list[Any]:
    """Numbers as Plotly takes them: None for none."""
    array = np.asarray(values, np.float64)
    cells = array.astype(object)
    cells[~np.isfinite(array)] = None
    return cells.tolist()


def _upright(n: int) -> dict[str, Any]:
    """An axis whose first row stands at the top, with room for n rows."""
    return {"range": [n - 0.5, -0.5], "showgrid": False, "zeroline": False}


def _heat(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    scale: list[list[Any]],
    **more: Any,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A matrix of colours (row, column) with its two axes; more: of the trace."""
    trace: dict[str, Any] = {
        "type": "heatmap",
        "z": _finite(values),
        "colorscale": scale,
        "hoverongaps": False,
        "customdata": _finite(values),
        "hovertemplate": PER_CELL,
        "colorbar": {"thickness": 12},
    }
    if max(len(rows), len(columns)) > MOST_TICKS and values.size <= MOST_NAMED:
        over = [safe(each) for each in columns]
        trace["text"] = [[f"{safe(row)} · {each}" for each in over] for row in rows]
        trace["hovertemplate"] = "%{text}: %{customdata}<extra></extra>"
    across = _ticks(columns) | {"showgrid": False, "zeroline": False}
    return trace | more, across, _ticks(rows) | _upright(len(rows))


def _high(rows: int) -> float:
    return min(TALLEST, max(3, rows) * ROW)


# ---- matrices ------------------------------------------------------------------------------------


def _matrix(one: kinds.Matrix, look: Colours) -> list[Plot]:
    low, high, scale = one.low, one.high, look.two if one.signed else look.one
    if one.signed:
        low = -high
    if one.log and 0 < low < high:
        shares = np.linspace(0, 1, len(scale))
        spread = (low * (high / low) ** shares - low) / (high - low)
        scale = [[float(at), colour] for at, (_, colour) in zip(spread, scale)]
    more: dict[str, Any] = {"zmin": low, "zmax": high}
    if one.words:
        words = np.array([safe(each) for each in one.words], object).reshape(np.shape(one.values))
        more |= {"text": words.tolist(), "texttemplate": "%{text}"}
    trace, x, y = _heat(one.values, one.rows, one.columns, scale, **more)
    marked = [*one.marks, *([(one.selected, -1, "")] if one.selected >= 0 else [])]
    places = [(row, column, text) for row, column, text in marked if column >= 0]
    marks = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [column for _, column, _ in places],
        "y": [row for row, _, _ in places],
        "text": [safe(text) for *_, text in places],
        "textposition": "middle right",
        "marker": {
            "symbol": "square-open",
            "size": 14,
            "color": look.primary,
            "line": {"width": 2},
        },
        "hoverinfo": "skip",
    }
    rows, columns = (safe(each) for each in one.sides)
    x, y = x | {"title": {"text": columns}}, y | {"title": {"text": rows}}
    return [Plot(one.title, [trace, *([marks] if places else [])], x, y, _high(len(one.rows)))]


def _head_matrices(one: kinds.HeadMatrices, look: Colours) -> list[Plot]:
    layers, heads, rows, columns = one.shape
    cells = np.asarray(one.weights["cells"], np.float64).reshape(one.shape)
    peak = np.asarray(one.weights["peak"], np.float64).reshape(layers, heads, 1, 1)
    weights = peak * (cells / 255) ** 2
    padded = np.pad(
        weights, ((0, 0), (0, 0), (0, GAP), (0, GAP)), constant_values=np.nan
    ).transpose(0, 2, 1, 3)
    tiled = padded.reshape(layers * (rows + GAP), heads * (columns + GAP))
    names = np.full(tiled.shape, "", object)
    for at in range(layers * heads):
        layer, head = divmod(at, heads)
        top, left = layer * (rows + GAP), head * (columns + GAP)
        name = one.names[at] if at < len(one.names) else ""
        names[top : top + rows, left : left + columns] = safe(f"L{layer} H{head} {name}".strip())
    trace, _, _ = _heat(tiled, (), (), look.one, zmin=0, zmax=1, text=names.tolist())
    trace["hovertemplate"] = "%{text}: %{customdata}<extra></extra>"
    middle: Callable[[int, int], list[float]] = lambda n, size: [
        at * (size + GAP) + size / 2 - 0.5 for at in range(n)
    ]
    x: dict[str, Any] = {
        "tickvals": middle(heads, columns),
        "ticktext": [f"H{at}" for at in range(heads)],
    }
    y: dict[str, Any] = {
        "tickvals": middle(layers, rows),
        "ticktext": [f"L{at}" for at in range(layers)],
    }
    y |= _upright(len(tiled))
    return [Plot(one.title, [trace], x | {"showgrid": False}, y, max(160, layers * 90))]


def _linked_weights(one: kinds.LinkedWeights, look: Colours) -> list[Plot]:
    weights = codec.unfold(one.weights).reshape(len(one.rows), -1)
    lengths = np.asarray(one.weights.get("runs", [weights.size]))
    allowed = np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)[: weights.size]
    weights = np.where(allowed.reshape(weights.shape), weights, np.nan)
    trace, x, y = _heat(weights, one.rows, one.columns, look.one, zmin=0, zmax=1)
    rows, columns = (safe(each) for each in one.sides)
    x, y = x | {"title": {"text": columns}}, y | {"title": {"text": rows}}
    return [Plot(one.title, [trace], x, y, _high(len(one.rows)))]


def _links(one: kinds.Links, look: Colours) -> list[Plot]:
    values = np.asarray(one.weights).reshape(len(one.left), len(one.right))
    trace, x, y = _heat(values, one.left, one.right, look.one, zmin=0, zmax=1)
    left, right = (safe(each) for each in one.sides)
    x, y = x | {"title": {"text": right}}, y | {"title": {"text": left}}
    return [Plot(one.title, [trace], x, y, _high(len(one.left)))]


def _token_row(one: kinds.TokenRow, look: Colours) -> list[Plot]:
    weights = np.asarray(one.weights, np.float64)
    heights = weights if weights.size else np.full(len(one.tokens), np.nan)
    trace, x, y = _heat(heights[None], ("",), one.tokens, look.one, zmin=0, zmax=1, showscale=False)
    words = {
        "type": "scatter",
        "mode": "text",
        "x": list(range(len(one.tokens))),
        "y": [0] * len(one.tokens),
        "text": [safe(text) for text in one.texts],
        "hoverinfo": "skip",
    }
    traces: list[dict[str, Any]] = [trace, *([words] if one.texts else [])]
    return [Plot(one.title, traces, x, y, 3 * ROW)]


def _sentence_votes(one: kinds.SentenceVotes, look: Colours) -> list[Plot]:
    traces: list[dict[str, Any]] = []
    colours = (look.primary, *look.categorical[1:3])
    along = np.linspace(0, np.pi, 30)
    for at, vote in enumerate(one.votes):
        sign, middle = (-1, 1)[vote.side == 0], (one.pronoun + vote.word) / 2
        half = (one.pronoun - vote.word) / 2
        trace = {
            "x": (middle + half * np.cos(along)).tolist(),
            "y": (sign * (0.3 + (1 + 0.1 * at) * np.sin(along))).tolist(),
            "line": {"color": colours[min(vote.noun, 2)], "width": 3},
            "name": safe(f"{vote.head}: {one.labels[vote.word]}"),
            "hovertemplate": "%{fullData.name}<extra></extra>",
            "showlegend": True,
        }
        traces.append({"type": "scatter", "mode": "lines"} | trace)
    traces += [_word(at, 0, label, look.ink) for at, label in enumerate(one.labels)]
    plain = {"showgrid": False, "zeroline": False, "showticklabels": False}
    return [Plot(one.title, traces, plain, plain)]


def _cloze(one: kinds.Cloze, look: Colours) -> list[Plot]:
    places = range(len(one.tokens))
    line = [("[ ]" if at in one.blanks and not one.tokens[at] else one.tokens[at]) for at in places]
    spaces = [" " if each else "" for each in one.spaced]
    sentence = "".join(space + word for space, word in zip(spaces, line)).strip()
    title = " ".join(filter(None, (one.title, sentence)))
    return _bars(kinds.Bars(title, columns=("",), rows=one.rows, high=1.0), look)


def _strips(one: kinds.Strips, look: Colours) -> list[Plot]:
    wide = max((len(each.values) for each in one.strips), default=0)
    values, shades = (np.full((len(one.strips), wide), np.nan) for _ in range(2))
    for at, each in enumerate(one.strips):
        values[at, : len(each.values)] = each.values
        shades[at] = values[at] * (one.high / (each.high or one.high or 1))
    labels = [" ".join(filter(None, (each.sign, each.label, each.text))) for each in one.strips]
    more = {"zmin": -one.high, "zmax": one.high, "customdata": _finite(values)}
    trace, _, y = _heat(shades, labels, (), look.two, **more)
    return [Plot(one.title, [trace], {"showgrid": False}, y, _high(len(labels)))]


# ---- bars and curves -----------------------------------------------------------------------------


def _bars(one: kinds.Bars, look: Colours) -> list[Plot]:
    plots = []
    for at, column in enumerate(one.columns):
        has = [row for row in one.rows if at < len(row.values)]
        places = [one.rows.index(row) for row in has]
        starts = [row.start if at == 0 else 0.0 for row in has]
        trace = {
            "type": "bar",
            "orientation": "h",
            "x": _finite([row.values[at] for row in has]),
            "y": places,
            "base": starts,
            "text": [safe(row.texts[at]) if at < len(row.texts) else "" for row in has],
            "textposition": "outside",
            "cliponaxis": False,
            "marker": {
                "color": look.primary,
                "opacity": [1.0 if row.selected else PALE for row in has],
            },
            "hovertemplate": "%{text}<extra></extra>",
        }
        outlined = [
            (place, row.outline) for place, row in zip(places, has) if row.outline is not None
        ]
        outline = {
            "type": "bar",
            "orientation": "h",
            "x": [length for _, length in outlined],
            "y": [place for place, _ in outlined],
            "marker": {"color": "rgba(0,0,0,0)", "line": {"color": look.primary, "width": 2}},
            "hovertemplate": "%{x}<extra></extra>",
        }
        title = ": ".join(filter(None, (one.title if at == 0 else "", column)))
        traces: list[dict[str, Any]] = [trace, *([outline] if outlined and at == 0 else [])]
        y = _ticks([row.label for row in one.rows]) | _upright(len(one.rows))
        x: dict[str, Any] = {} if one.high is None else {"range": [0, one.high * 1.15]}
        signed = any(value < 0 for row in has for value in row.values[at : at + 1])
        plots.append(Plot(title, traces, {} if signed else x, y, _high(len(one.rows))))
    return plots


def _chart(one: kinds.Chart, look: Colours) -> list[Plot]:
    rest = [each for each in look.categorical if each != look.primary]
    traces: list[dict[str, Any]] = []
    for at, each in enumerate(one.series):
        colour = look.primary if each.main else rest[at % len(rest)]
        plain: dict[str, Any] = {"type": "scatter", "x": _finite(each.x), "y": _finite(each.y)}
        plain |= {"name": safe(" ".join(filter(None, (each.name, each.end)))), "showlegend": True}
        line = {"color": colour, "width": 3 if each.main else 1.5}
        if each.shape == "band" and each.base is not None:
            foot = {"x": plain["x"], "y": _finite(each.base), "type": "scatter", "mode": "lines"}
            traces.append(foot | {"line": {"width": 0}, "hoverinfo": "skip", "showlegend": False})
            traces.append(
                plain
                | {"mode": "lines", "line": {"width": 0}, "fill": "tonexty", "fillcolor": FADED}
            )
        elif each.shape == "points":
            traces.append(plain | {"mode": "markers", "marker": {"color": colour}})
        elif each.shape == "steps":
            shape = line | {"shape": "hv"}
            traces.append(plain | {"mode": "lines", "line": shape, "fill": "tozeroy"})
        else:
            traces.append(plain | {"mode": "lines", "line": line})
    for place, text in one.guides:
        traces.append(_guide(place, text, one, look))
    return [Plot(one.title, traces, *_chart_axes(one), is_square=one.square)]


def _guide(place: float, text: str, one: kinds.Chart, look: Colours) -> dict[str, Any]:
    """A dashed line across a chart."""
    values = [np.asarray(each.y, np.float64) for each in one.series]
    every = np.concatenate([*values, [0.0]]) if values else np.zeros(1)
    every = every[np.isfinite(every) & ((every > 0) if one.log_y else True)]
    ends = one.y_range or ((float(every.min()), float(every.max())) if every.size else (0, 1))
    return {
        "type": "scatter",
        "mode": "lines+text",
        "x": [place, place],
        "y": list(ends),
        "text": ["", safe(text)],
        "line": {"dash": "dash", "color": look.ink, "width": 1},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _chart_axes(one: kinds.Chart) -> tuple[dict[str, Any], dict[str, Any]]:
    x: dict[str, Any] = {"title": {"text": safe(one.x_title)}}
    y: dict[str, Any] = {"title": {"text": safe(one.y_title)}}
    for axis, is_log, ends in ((x, one.log_x, one.x_range), (y, one.log_y, one.y_range)):
        if is_log:
            axis["type"] = "log"
        if ends and not (is_log and min(ends) <= 0):
            axis["range"] = [float(np.log10(end)) if is_log else float(end) for end in ends]
    if one.ticks:
        x |= {"tickvals": [place for place, _ in one.ticks]}
        x |= {"ticktext": [safe(f"{text}") for _, text in one.ticks]}
    if one.backwards:
        x |= {"range": x["range"][::-1]} if "range" in x else {"autorange": "reversed"}
    return x, y


# ---- points --------------------------------------------------------------------------------------


def _plane(one: kinds.Plane, look: Colours) -> list[Plot]:
    traces: list[dict[str, Any]] = []
    symbols = ("circle", "diamond", "square", "cross")
    for kind, cloud in enumerate(one.clouds):
        paths = np.asarray(cloud.paths, np.float64).reshape(len(cloud.labels), -1, 2)
        colour = look.categorical[kind % len(look.categorical)]
        labels = [safe(each) for each in cloud.labels]
        steps = [safe(each.label) for each in one.frames]
        for at, path in enumerate(paths):
            if not (one.trails or at == cloud.selected) or len(path) < 2:
                continue
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "x": _finite(path[:, 0]),
                    "y": _finite(path[:, 1]),
                    "text": [f"{labels[at]}, {step}" for step in steps],
                    "hovertemplate": "%{text}: %{x}, %{y}<extra></extra>",
                    "line": {"color": colour, "width": 3 if at == cloud.selected else 1},
                    "marker": {"size": 4},
                    "opacity": 1 if at == cloud.selected else 0.35,
                    "showlegend": False,
                }
            )
        now = paths[:, min(one.current, paths.shape[1] - 1)]
        marker = {"color": colour, "symbol": symbols[kind % 4], "size": 9}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": _finite(now[:, 0]),
                "y": _finite(now[:, 1]),
                "text": labels,
                "textposition": "top center",
                "hovertemplate": "%{text}: %{x}, %{y}<extra></extra>",
                "name": safe(cloud.name),
                "marker": marker,
                "showlegend": True,
            }
        )
    label = one.frames[one.current].label if one.frames else ""
    title = ", ".join(filter(None, (one.title, label)))
    x, y = ({"title": {"text": safe(each)}} for each in (one.x_title, one.y_title))
    return [Plot(title, traces, x, y, 1.5 * TALL, is_square=not one.apart)]


def _graph(one: kinds.Graph, look: Colours) -> list[Plot]:
    n = len(one.nodes)
    angles = 2 * np.pi * np.arange(n) / max(1, n)
    places = np.stack([np.sin(angles), np.cos(angles)], axis=1)
    if one.places:
        places = np.array(one.places, np.float64) * (1, -1)
    elif one.split:
        right = np.arange(n) >= one.split
        down = np.where(right, np.arange(n) - one.split, np.arange(n))
        places = np.stack([right.astype(float), -down.astype(float)], axis=1)
    texts = [*one.texts, *[""] * n]
    labels = [" ".join(filter(None, pair)) for pair in zip(one.nodes, texts)]
    return [_nodes(one.title, places, labels, one.strengths, one.edges, look)]


def _picture_card(one: kinds.PictureCard, look: Colours) -> list[Plot]:
    words = [(word, row) for row, text in enumerate(one.texts) for word in text]
    counts = [at for text in one.texts for at in range(len(text))]
    places = np.array([(at, -2.0 * row) for at, (_, row) in zip(counts, words)]).reshape(-1, 2)
    title = " ".join((" → ".join(one.says), one.number)).strip()
    labels = [word for word, _ in words]
    return [_nodes(title, places, labels, [1.0] * len(labels), one.edges, look)]


def _nodes(
    title: str,
    places: np.ndarray,
    labels: Sequence[str],
    strengths: Sequence[float],
    edges: Sequence[kinds.Edge],
    look: Colours,
) -> Plot:
    """Nodes at places (node, 2) with edges between them; the weight of an edge is at its middle."""
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [float(places[edge.source][0]), float(places[edge.target][0])],
            "y": [float(places[edge.source][1]), float(places[edge.target][1])],
            "line": {"width": 0.5 + 6 * max(0.0, edge.weight), "color": look.primary},
            "opacity": 0.5,
            "hoverinfo": "skip",
        }
        for edge in edges
    ]
    middles = [(places[edge.source] + places[edge.target]) / 2 for edge in edges]
    names = [f"{safe(labels[edge.source])} → {safe(labels[edge.target])}" for edge in edges]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [float(each[0]) for each in middles],
            "y": [float(each[1]) for each in middles],
            "text": names,
            "customdata": [float(edge.weight) for edge in edges],
            "hovertemplate": "%{text}: %{customdata}<extra></extra>",
            "marker": {"size": 6, "color": look.primary},
        }
    )
    traces.append(
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": places[:, 0].tolist(),
            "y": places[:, 1].tolist(),
            "text": [safe(each) for each in labels],
            "textposition": "middle right",
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {
                "size": 14,
                "color": [float(each) for each in strengths],
                "colorscale": look.one,
                "cmin": 0,
                "cmax": 1,
                "line": {"color": look.ink, "width": 1},
            },
        }
    )
    none = {"visible": False}
    return Plot(title, traces, none, none, max(TALL, ROW * len(labels)))


def _arrows(one: kinds.Arrows, look: Colours) -> list[Plot]:
    """The arrows as lines that end in a point."""
    colours = look.ink, look.categorical[1], look.primary
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": arrow.label,
            "x": [arrow.start[0], arrow.end[0]],
            "y": [arrow.start[1], arrow.end[1]],
            "line": {"color": colours[at % 3], "width": 3},
        }
        for at, arrow in enumerate(one.arrows)
    ]
    return [Plot(one.title, traces, {}, {}, is_square=True)]


def _dials(one: kinds.Dials, look: Colours) -> list[Plot]:
    traces: list[dict[str, Any]] = []
    for at, dial in enumerate(one.dials):
        arrows = (
            ("before", (dial.before, 0.0), FADED),
            ("sum", dial.total, look.categorical[1]),
            ("after", dial.after, look.primary),
        )
        for name, (length, degrees), colour in arrows:
            angle = np.radians(degrees)
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "x": [3.0 * at, 3.0 * at + float(length * np.sin(angle))],
                    "y": [0.0, float(length * np.cos(angle))],
                    "customdata": [[length, degrees]] * 2,
                    "hovertemplate": f"{name}: {LENGTH_AND_ANGLE}",
                    "line": {"color": colour, "width": 3},
                }
            )
    labels = [f"{dial.label}: {dial.text}" for dial in one.dials]
    x = _ticks(labels) | {"tickvals": [3.0 * at for at in range(len(labels))], "showgrid": False}
    return [Plot(one.title, traces, x, {"visible": False}, is_square=True)]


# ---- diagrams ------------------------------------------------------------------------------------


def _product(one: kinds.Product, look: Colours) -> list[Plot]:
    traces: list[dict[str, Any]] = []
    places: list[float] = []
    left = 0.0
    top = float(max((each.shape[0] for each in one.factors), default=1))
    largest = max((max(each.shape) for each in one.factors), default=1)
    gap = 0.2 * largest
    for each in one.factors:
        # A vector is as thick as one can see.
        rows, columns = (max(side, 0.04 * largest) for side in each.shape)
        outline = each.selected or not each.values.size
        if each.values.size:
            traces.append(_factor_cells(each, (left, top), (rows, columns), look))
        traces.append(_outline(left, columns, top, rows, look.primary if outline else look.border))
        for at, part in enumerate(each.parts):
            share = (at + 0.5) / len(each.parts)
            x = columns + gap / 4 if each.down else share * columns
            y = -share * rows if each.down else gap / 4
            colour = look.categorical[at % len(look.categorical)]
            traces.append(_word(left + x, top + y, part, colour))
        places.append(left + columns / 2)
        left += columns + gap
    labels = [
        " ".join(filter(None, (each.sign, each.name, "{} × {}".format(*each.shape))))
        for each in one.factors
    ]
    axis = _ticks(labels) | {
        "tickvals": places[: len(labels)],
        "showgrid": False,
        "zeroline": False,
    }
    return [Plot(one.title, traces, axis, {"visible": False}, is_square=True)]


def _factor_cells(
    one: kinds.Factor, place: tuple[float, float], size: tuple[float, float], look: Colours
) -> dict[str, Any]:
    """The numbers of a matrix, spread over its box. place: left and top; size: high and wide."""
    (left, top), (height, width) = place, size
    rows, columns = one.grid
    values = np.asarray(one.values, np.float64).reshape(rows, columns)
    high = float(np.nanmax(np.abs(values), initial=0)) or 1.0
    wide, tall = width / columns, height / rows
    return {
        "type": "heatmap",
        "z": _finite(values),
        "x": [left + (at + 0.5) * wide for at in range(columns)],
        "y": [top - (at + 0.5) * tall for at in range(rows)],
        "colorscale": look.two,
        "zmin": -high,
        "zmax": high,
        "showscale": False,
        "hovertemplate": "%{z}<extra></extra>",
    }


def _outline(left: float, wide: float, top: float, tall: float, colour: str) -> dict[str, Any]:
    """A box that is not filled."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [left, left + wide, left + wide, left, left],
        "y": [top, top, top - tall, top - tall, top],
        "line": {"color": colour, "width": 2},
        "hoverinfo": "skip",
    }


def _word(x: float, y: float, text: str, colour: str) -> dict[str, Any]:
    """A word at a place."""
    font = {"color": colour}
    words = {"x": [x], "y": [y], "text": [safe(text)], "textfont": font, "hoverinfo": "skip"}
    return {"type": "scatter", "mode": "text"} | words


def _network(one: kinds.Network, look: Colours) -> list[Plot]:
    traces: list[dict[str, Any]] = []
    tallest = max((len(each.values) for each in one.layers), default=1)
    for at, each in enumerate(one.layers):
        values = np.asarray(each.values, np.float64)
        high = each.high or float(np.nanmax(np.abs(values), initial=0)) or 1.0
        top = len(values) / 2
        traces.append(
            {
                "type": "heatmap",
                "z": _finite(values[:, None]),
                "x": [2 * at - 0.3, 2 * at + 0.3],
                "y": [top - row for row in range(len(values) + 1)],
                "colorscale": look.two,
                "zmin": -high,
                "zmax": high,
                "showscale": False,
                "hovertemplate": "%{z}<extra></extra>",
            }
        )
    for at, texts in enumerate(one.between):
        text = ", ".join(filter(None, texts))
        traces.append(_word(2 * at + 1, 0.56 * tallest, text, look.ink))
        ends = {"x": [2 * at + 0.4, 2 * at + 1.6], "y": [0, 0], "line": {"color": look.border}}
        traces.append({"type": "scatter", "mode": "lines", "hoverinfo": "skip"} | ends)
    labels = [" ".join(filter(None, (each.sign, each.label, each.text))) for each in one.layers]
    axis = _ticks(labels) | {"tickvals": [2 * at for at in range(len(labels))]}
    axis |= {"showgrid": False, "zeroline": False}
    return [Plot(one.title, traces, axis, {"visible": False})]


def _relay(one: kinds.Relay, look: Colours) -> list[Plot]:
    n = len(one.words)
    values = np.asarray(one.values, np.float64)
    texts = [one.text if at == 0 else "" for at in range(n)]
    bars = {
        "type": "bar",
        "x": list(range(len(values))),
        "y": _finite(values),
        "text": [safe(each) for each in texts[: len(values)]],
        "textposition": "outside",
        "marker": {"color": look.primary},
        "hovertemplate": "%{y}<extra></extra>",
    }
    traces: list[dict[str, Any]] = [bars]
    if n > 1:
        along = np.linspace(0, np.pi, 30)
        arc = {
            "x": ((n - 1) * (1 - np.cos(along)) / 2).tolist(),
            "y": (1.15 + 0.35 * np.sin(along)).tolist(),
            "line": {"color": look.categorical[1], "width": 3},
        }
        steps = {"x": list(range(n)), "y": [0.0] * n, "line": {"color": look.ink, "width": 2}}
        traces += [
            {"type": "scatter", "mode": "lines", "hoverinfo": "skip"} | arc,
            {"type": "scatter", "mode": "lines+markers", "hoverinfo": "skip"} | steps,
        ]
    middle = (n - 1) / 2
    traces.append(_word(middle, 1.58, one.arc, look.categorical[1]))
    traces.append(_word(middle, -0.12, one.state, look.ink))
    x = _ticks(one.words) | {"showgrid": False, "zeroline": False}
    return [Plot(one.title, traces, x, {"range": [-0.25, 1.7], "showgrid": False})]


def _branches(one: kinds.Branches, look: Colours) -> list[Plot]:
    names, places = [], []
    for at, part in enumerate(one.parts):
        norm = (part.norm_name, 3.0 * at + (0.4 if part.norm == "pre" else 2.4))
        middle = (part.name, 3.0 * at + 1.2)
        # A norm before the branch is a part of it; one after the sum stands on the stream.
        names += [middle[0], norm[0]]
        places += [(middle[1], 1.0), (norm[1], 1.0 if part.norm == "pre" else 0.0)]
    traces: list[dict[str, Any]] = []
    stream = {"x": [-0.6, 3.0 * len(one.parts)], "y": [0.0, 0.0]}
    colour = look.primary if one.lit else look.border
    plain = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
    traces.append(plain | stream | {"line": {"color": colour, "width": 4}})
    for at in range(len(one.parts)):
        start, end = 3.0 * at - 0.2, 3.0 * at + 1.9
        way = {"x": [start, start, end, end], "y": [0.0, 1.0, 1.0, 0.0]}
        traces.append(plain | way | {"line": {"color": look.ink, "width": 2}})
        traces.append(_word(end, 0.0, "+", look.ink))
    xs, ys = ([each[axis] for each in places] for axis in (0, 1))
    traces.append(
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": xs,
            "y": ys,
            "text": [safe(each) for each in names],
            "textposition": "top center",
            "marker": {"size": 16, "symbol": "square", "color": colour},
            "hoverinfo": "skip",
        }
    )
    none = {"visible": False}
    return [Plot(one.title, traces, none, none | {"range": [-0.6, 1.6]}, 0.6 * TALL)]


# ---- words ---------------------------------------------------------------------------------------


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], look: Colours
) -> list[Plot]:
    """A table of texts."""
    by_column = [[safe(f"{row[at]}") for row in rows] for at in range(len(columns))]
    shape = {"fill": {"color": look.paper}, "line": {"color": look.border}, "align": "left"}
    trace = {
        "type": "table",
        "header": {"values": [safe(each) for each in columns], **shape},
        "cells": {"values": by_column, **shape},
    }
    return [Plot(title, [trace], height=ROW * (len(rows) + 2), kind="table")]


def _text_table(one: kinds.TextTable, look: Colours) -> list[Plot]:
    return _table(one.title, one.columns, one.rows, look)


def _facts(one: kinds.Facts, look: Colours) -> list[Plot]:
    return _table(one.title, ("", ""), one.facts, look)


def _loops(one: kinds.Loops, look: Colours) -> list[Plot]:
    def rows(boxes: Sequence[kinds.Box], depth: int) -> Iterator[tuple[str, str]]:
        for each in boxes:
            yield "\u2003" * depth + each.text, each.count
            yield from rows(each.inside, depth + 1)

    return _table(one.title, ("", ""), list(rows(one.boxes, 0)), look)


def _paper_figure(one: kinds.PaperFigure, look: Colours) -> list[Plot]:
    """The blocks of both stacks, from below to above."""
    rows = [
        (tower.title, tower.count, block.name, block.text)
        for tower in one.towers
        for block in (
            *tower.under,
            *(each for tier in tower.layer for each in (*tier.blocks, tier.norm) if each),
            *tower.above,
        )
    ]
    answers = [(each.title, each.count, "", each.answer) for each in one.towers if each.answer]
    return _table(one.title, ("", "", "", ""), [*rows, *answers], look)


def _flow(one: kinds.Flow, look: Colours) -> list[Plot]:
    rows = [label for band in one.bands for label in band.rows]
    columns, shares = [], []
    for layer in one.layers:
        for attention in layer.attentions:
            for head, share in enumerate(np.asarray(attention.shares, np.float64)):
                columns.append(
                    " ".join(filter(None, (f"L{layer.layer} H{head}", attention.attention)))
                )
                shares.append(share)
    traces = []
    if shares:
        values = np.array(shares).T
        trace, x, y = _heat(values, rows[: len(values)], columns, look.one, zmin=0)
        traces.append(Plot(one.title, [trace], x, y, _high(len(values))))
    bars = kinds.Bars(
        title=one.says,
        columns=("",),
        rows=tuple(
            kinds.BarRow(each.label, (each.probability,), (each.text,)) for each in one.words
        ),
    )
    return traces + _bars(bars, look)


KINDS: dict[type, Callable[[Any, Colours], list[Plot]]] = {
    kinds.Matrix: _matrix,
    kinds.Bars: _bars,
    kinds.HeadMatrices: _head_matrices,
    kinds.TokenRow: _token_row,
    kinds.SentenceVotes: _sentence_votes,
    kinds.Cloze: _cloze,
    kinds.Links: _links,
    kinds.LinkedWeights: _linked_weights,
    kinds.Chart: _chart,
    kinds.Strips: _strips,
    kinds.Graph: _graph,
    kinds.TextTable: _text_table,
    kinds.Dials: _dials,
    kinds.Arrows: _arrows,
    kinds.Loops: _loops,
    kinds.PictureCard: _picture_card,
    kinds.Flow: _flow,
    kinds.Facts: _facts,
    kinds.Plane: _plane,
    kinds.PaperFigure: _paper_figure,
    kinds.Product: _product,
    kinds.Network: _network,
    kinds.Relay: _relay,
    kinds.Branches: _branches,
}
