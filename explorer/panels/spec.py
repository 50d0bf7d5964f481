"""A panel: what a reader sees of one view, and all that can be made of it: picture, table, file,
Python call.

A panel function takes a `Run` and plain choices and returns a `Panel`. The page, the HTML file, the
CSV file, the presenter and the notebook are made from that value alone; `explorer/components/
figures.js` draws every figure, on the screen and as SVG.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, get_type_hints

import numpy as np

from explorer.analysis.caption import caption
from explorer.analysis.csv import Columns, to_csv
from explorer.components import codec
from explorer.state.cache import Run, picture_name

Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, eq=False)
class Figure:
    """What every figure has: a title, a line below it, and the choices that a press sets.

    select: names of the address, such as ("token", "source"); what is pressed gives a value for
    each.
    """

    title: str = ""
    note: str = ""
    select: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The name of the figure for the renderer."""
        return type(self).__name__.lower()


@dataclass(frozen=True, eq=False)
class Matrix(Figure):
    """A matrix: values (row, column) from `low` to `high`, NaN for a cell that does not exist.

    Colours run from -high to high where `signed`. marks: (row, column, text), framed. sides: what
    rows and columns are. missing: why a cell does not exist. digits: decimals of the values.
    """

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    values: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    low: float = 0.0
    high: float = 1.0
    signed: bool = False
    marks: tuple[tuple[int, int, str], ...] = ()
    sides: tuple[str, str] = ("", "")
    missing: str = ""
    digits: int = 2


@dataclass(frozen=True, eq=False)
class BarRow:
    """A row of bars: its label, and for each column a length and a text. key: what a press sets;
    outline: a length that is drawn as a dashed frame over the first bar."""

    label: str
    values: tuple[float, ...]
    texts: tuple[str, ...]
    selected: bool = False
    key: str = ""
    outline: float | None = None


@dataclass(frozen=True, eq=False)
class Bars(Figure):
    """Rows of bars below named columns, each column on its own scale, or all on one where `shared`.

    high: the length of a full bar, the largest where None. mark: the (row, column) whose text is
    the number that the panel's sentence names. header: what the rows are.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[BarRow, ...] = ()
    high: float | None = None
    shared: bool = False
    mark: tuple[int, int] | None = None
    header: str = ""


@dataclass(frozen=True, eq=False)
class TokenRow(Figure):
    """A sentence whose tokens are tinted by weights from 0 to 1; NaN: not allowed. selected: the
    token that the weights belong to, -1 for none."""

    tokens: tuple[str, ...] = ()
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))
    selected: int = -1


@dataclass(frozen=True, eq=False)
class Links(Figure):
    """Queries at the left, keys at the right, joined by their weights (query, key), NaN where not
    allowed; `selected` the query that is spoken of, and its mark (key, text)."""

    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    sides: tuple[str, str] = ("query", "key")
    weights: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    selected: int = -1
    mark: tuple[int, str] | None = None


@dataclass(frozen=True, eq=False)
class Series:
    """A curve: its name, its points, and what is written at its end. shape: "line", "points" or
    "steps"; main: the one that is spoken of."""

    name: str
    x: np.ndarray
    y: np.ndarray
    end: str = ""
    main: bool = False
    shape: str = "line"


@dataclass(frozen=True, eq=False)
class Chart(Figure):
    """Curves over one axis. ticks: (place, text) along x where they are not numbers. backwards: x
    falls to the right. square: one scale for both axes. guides: (x, text), dashed lines."""

    series: tuple[Series, ...] = ()
    x_title: str = ""
    y_title: str = ""
    log_x: bool = False
    log_y: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    backwards: bool = False
    square: bool = False
    guides: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Strip:
    """A vector as a strip of colours: the sign before it, its label, its values and a text at its
    end."""

    label: str
    values: np.ndarray
    text: str = ""
    sign: str = ""
    selected: bool = False


@dataclass(frozen=True, eq=False)
class Strips(Figure):
    """Vectors one below the other on one scale from -high to high."""

    strips: tuple[Strip, ...] = ()
    high: float = 1.0


@dataclass(frozen=True, eq=False)
class Edge:
    """A weighted edge of a graph, by the places of its nodes."""

    source: int
    target: int
    weight: float


@dataclass(frozen=True, eq=False)
class Graph(Figure):
    """Tokens as nodes and weights as edges from the token attended to. strengths: of each node's
    fill, 0 to 1. layout: "arcs" or "circle"; two_sided: the first `split` nodes are the sources."""

    nodes: tuple[str, ...] = ()
    strengths: tuple[float, ...] = ()
    edges: tuple[Edge, ...] = ()
    layout: str = "arcs"
    split: int = 0
    selected: int = -1


@dataclass(frozen=True, eq=False)
class TextTable(Figure):
    """A small table that is part of the picture: named columns, and rows of texts. keys: what a
    press on a row sets."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    keys: tuple[str, ...] = ()
    selected: int = -1


@dataclass(frozen=True, eq=False)
class Frame:
    """One position of a slider: its label, its sentence and its figures."""

    label: str
    figures: tuple[Figure, ...]
    sentence: str = ""


@dataclass(frozen=True, eq=False)
class Steps(Figure):
    """Frames behind a slider, of which one is on show. choice: the name of the address that holds
    the frame's label; plays: True where the frames are a sequence in time."""

    frames: tuple[Frame, ...] = ()
    current: int = 0
    choice: str = ""
    plays: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """One view.

    title: the field's term. finding: the sentence that says what is to be seen. figures: side by
    side, the main one first. table: the numbers in long form, named columns. details: further
    sentences. caption: lines that say model, text and edits. file: a name without ending. call: the
    Python expression that makes the panel of `run`. choices: its arguments. token: a name that
    equal panels share.
    """

    title: str
    finding: str
    figures: tuple[Figure, ...]
    table: Columns = field(default_factory=dict)
    details: tuple[str, ...] = ()
    caption: tuple[str, ...] = ()
    file: str = ""
    call: str = ""
    run: Run | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)
    token: str = ""

    def encode(self) -> bytes:
        """What the renderer draws: a header and blocks of numbers."""
        blocks: dict[str, np.ndarray] = {}
        header = {
            "title": self.title,
            "finding": self.finding,
            "figures": [_plain(figure, blocks) for figure in self.figures],
            "details": list(self.details),
            "caption": list(self.caption),
            "file": self.file,
            "token": self.token,
        }
        return codec.encode(header, blocks)

    def csv(self) -> str:
        """The table as CSV, below the title and the caption."""
        return to_csv(self.table, (self.title, *self.caption))


def _plain(value: Any, blocks: dict[str, np.ndarray]) -> Any:
    """A figure as JSON, its arrays in blocks: {"block": name, "shape": [...]}."""
    if isinstance(value, np.ndarray):
        name = str(len(blocks))
        blocks[name] = value.astype(np.float32)
        return {"block": name, "shape": list(value.shape)}
    if is_dataclass(value) and not isinstance(value, type):
        plain = {each.name: _plain(getattr(value, each.name), blocks) for each in fields(value)}
        return plain | ({"kind": value.kind} if isinstance(value, Figure) else {})
    if isinstance(value, (tuple, list)):
        return [_plain(each, blocks) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


# Every panel function by its name, such as "soft_lookup.temperature".
PANELS: dict[str, Callable[..., Panel]] = {}


def from_words(name: str, run: Run, choices: Mapping[str, str]) -> Panel:
    """The panel of a name, its arguments given as words. Raises ValueError for a panel, an argument
    or a value that is not there."""
    if name not in PANELS:
        raise ValueError(f"no panel is called {name!r}; there are {', '.join(sorted(PANELS))}")
    function = PANELS[name]
    hints = get_type_hints(function)
    names = [each for each in inspect.signature(function).parameters if each != "run"]
    if other := next((each for each in choices if each not in names), ""):
        raise ValueError(f"the panel {name} has no choice {other!r}; it has {', '.join(names)}")
    return function(run, **{each: _read(each, hints[each], word) for each, word in choices.items()})


def _read(name: str, kind: Any, word: str) -> Any:
    """A word as an argument of a type."""
    for reader in (int, float, bool):
        if kind in (reader, reader | None):
            try:
                return word == "True" if reader is bool else reader(word)
            except ValueError:
                raise ValueError(f"{name} is {word!r}; it must be a number") from None
    return word


def panel(
    function: Callable[Arguments, Panel],
) -> Callable[Arguments, Panel]:
    """Complete what a panel function returns: its caption, its file name, its call and its
    token."""
    signature = inspect.signature(function)
    module = function.__module__.rpartition(".")[2]

    @wraps(function)
    def complete(*arguments: Arguments.args, **choices: Arguments.kwargs) -> Panel:
        bound = signature.bind(*arguments, **choices)
        run: Run = bound.arguments["run"]
        given = {
            name: value
            for name, value in bound.arguments.items()
            if name != "run" and value != signature.parameters[name].default
        }
        made = function(*arguments, **choices)
        recording = run.recording()
        words = ", ".join(["run", *(f"{name}={value!r}" for name, value in given.items())])
        return replace(
            made,
            caption=caption(recording, *made.caption),
            file="-".join(("headlight", recording.model.name, made.file or function.__name__)),
            call=f"panels.{module}.{function.__name__}({words})",
            run=run,
            choices=given,
            token=picture_name(recording, module, function.__name__, *sorted(given.items())),
        )

    PANELS[f"{module}.{function.__name__}"] = complete
    return complete
