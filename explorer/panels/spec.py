"""A panel: what a reader sees of one view, and all that can be made of it: picture, table, file,
Python call.

A panel function takes a `Run` and plain choices and returns a `Panel`. The page, the HTML file, the
CSV file, the presenter and the notebook are made from that value alone; `explorer/components/
figures.js` draws every figure, on the screen and as SVG.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec
from urllib.parse import parse_qsl

import numpy as np

from explorer.analysis.framing import at_formulas
from explorer.analysis.measure import MeasureContext
from explorer.components import codec
from explorer.figures import figure_engine, figure_export, html_export, plotly_export
from explorer.figures.csv import Columns, file_of, plain_columns, to_csv
from explorer.figures.figure_export import Sheet
from explorer.figures.formatting import Written
from explorer.figures.html_export import Document, DocumentSpec, Line, Part, TextLines, View
from explorer.figures.kinds import Figure, PictureCard, as_plain
from explorer.panels import memory
from explorer.panels.choice import (
    Parameter,
    as_opened,
    as_taken,
    choices_of,
    completed,
    parameters,
    with_numbers,
)
from explorer.text import glossary, places
from explorer.text.formulas import formula_lines
from explorer.wording.templates import sentences
from models.contract.edits import describe, to_line
from models.contract.model import Model
from models.contract.recording import Recording
from models.example_texts import DEFAULT_MODEL
from models.runtime import registry
from models.runtime.caching import picture_name
from models.runtime.run import Run

if TYPE_CHECKING:
    from explorer.figures import notebook_widget

FIGURES = sentences("selection", "figure_files")
NOTES = sentences("frame", "text")
Arguments = ParamSpec("Arguments")
BESIDE = ["attention.heads", "attention.head"]  # panels that stand side by side in a document


@dataclass(frozen=True, eq=False)
class Panel:
    """One view.

    title: the field's term. finding: the sentence that says what is to be seen. figures: side by
    side, the main one first. table: the numbers in long form, named columns. details: further
    sentences. caption: lines that say model, text and edits. file: a name without ending. call: the
    Python expression that makes the panel of `run`. choices: its arguments. token: a name that
    equal panels share. name: of its function, such as "attention.head". special: labels that only
    special tokens have, which every figure draws paler. formulas: ids of formulas of
    explorer/text/formulas.toml, those that are about the model stand beside the figures, with
    the lines of numbers whose result stands in these, framed; they are of the layer, head and token
    among the choices, or among `at`, which stands for choices that were left open, and for the run
    where another one is drawn; focus: symbols in them that are spoken of. numbers: those of its
    sentence and its picture by their names, of which one means the same in every panel of a run
    with the same word, head and layer. made_of: recordings that a caller handed in, for which its
    runs stand, and their models; the app hands in none, so that what it keeps holds none.
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
    name: str = ""
    special: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
    focus: tuple[str, ...] = ()
    at: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, Written] = field(default_factory=dict)
    made_of: tuple[Recording | Model, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"<Headlight panel {self.name} {self.title!r}>"

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments it was made with: its function's own where its choices say none."""
        declared = inspect.signature(PANELS[self.name]).parameters.values()
        defaults = {each.name: each.default for each in declared}
        return defaults | dict(as_taken(self.choices)) | dict(self.at)

    def typeset(self) -> list[dict[str, Any]]:
        """Its formulas for the browser. Raises ValueError for a panel that was not made of a
        run."""
        at = self.arguments
        run = self.at.get("run", self.run)
        if run is None:
            raise ValueError("this panel was not made of a run")

        def make() -> list[dict[str, Any]]:
            with memory.reserved(self.name, run, {}):
                return formula_lines(self.formulas, MeasureContext.of(run), at)

        return run.memo(("formulas", self.token, *self.formulas), make)

    def encode(self, bare: bool = False) -> bytes:
        """Encode the panel for the renderer: a header and blocks of numbers. bare: without title
        and details on the page, which says them elsewhere."""
        blocks: dict[str, np.ndarray] = {}
        frames = (each for figure in self.figures for each in getattr(figure, "frames", ()))
        stops = (each for figure in self.figures for each in getattr(figure, "stops", ()))
        walked = (*(each.sentence for each in frames), *(each.finding for each in stops))
        text = " ".join((self.title, *walked, self.finding, *self.details))
        figures, formulas = self.figures, list[dict[str, Any]]()
        if self.formulas:
            figures, formulas = at_formulas(figures, self.typeset())
        header = {
            "panel": self.name,
            "title": self.title,
            "bare": bare,
            "finding": self.finding,
            "figures": [as_plain(figure, blocks) for figure in figures],
            "details": [] if bare else list(self.details),
            "formulas": formulas,
            "first": self.name in places.FORMULA_FIRST,
            "focus": list(self.focus),
            "terms": [] if bare else glossary.terms_in(text),
            "caption": list(self.caption),
            "file": self.file,
            "token": self.token,
            "special": list(self.special),
        }
        if PANELS.get(self.name) in PREDICT:
            header["predicts"] = True
        return codec.encode(header, blocks)

    @cached_property
    def bare(self) -> bytes:
        """`encode(bare=True)`, made once."""
        return self.encode(bare=True)

    def save(
        self,
        path: str | Path,
        *,
        width: str | None = None,
        caption: bool = True,
        dark: bool = False,
        title: bool = True,
        formulas: bool = True,
        notes: bool = True,
    ) -> None:
        """Write the panel as one of FILES, by the ending of the path; `figures[1].save` writes the
        second of its figures alone.

        Of SVG, PDF and PNG: width: as on paper, such as "8.5cm"; caption: whether model, text and
        edits stand below it; dark: in the dark theme's colours; title: whether its title stands
        above it; formulas: whether its formulas stand below it; notes: whether what explains its
        figures does. Raises ValueError for another ending, and where what draws a picture is not
        installed.
        """
        path, sheet = Path(path), Sheet(width, caption, dark, title, formulas, notes)
        ending = path.suffix[1:].lower()
        if ending not in FILES:
            endings = " or ".join(f".{each}" for each in FILES)
            raise ValueError(f"a panel is saved as {endings}, not as {path.name}")
        path.write_bytes(FILES[ending].make(self, sheet))

    def _repr_html_(self) -> str:
        """The panel in a notebook: its document in a frame, over a still picture of it."""
        return self.html().framed(self.still)

    def _repr_svg_(self) -> str | None:
        """The panel in a notebook that becomes a paper, or whose viewer shows pictures alone."""
        return self.still or None

    def widget(self) -> notebook_widget.PanelWidget:
        """The panel in a cell of a notebook; a press in it comes back to Python as `chosen`, and is
        drawn. Raises ValueError where anywidget is not installed."""
        if find_spec("anywidget") is None:
            raise ValueError(FIGURES("no_anywidget"))
        from explorer.figures import notebook_widget

        return notebook_widget.PanelWidget(self)

    @cached_property
    def still(self) -> str:
        """Its picture as SVG without its font, for a viewer that runs no code; "" where nothing is
        here that draws it."""
        return figure_export.still(self.encode()) if figure_engine.is_there() else ""

    @property
    def cause(self) -> dict[str, Any]:
        """Its origin, for a file that stands alone: the panel and its choices, the model and its
        weights, the texts, the edits, the version. Raises ValueError for a panel that was not made
        of a run."""
        if self.run is None:
            raise ValueError("this panel was not made of a run")
        recording = self.run.recording()
        return {
            "made_with": figure_export.MADE_WITH,
            "panel": self.name,
            "title": self.title,
            "finding": self.finding,
            "model": recording.model.name,
            "weights": recording.model.fingerprint,
            "text": recording.text,
            "target": recording.target,
            "edits": to_line(recording.edits),
            "choices": {name: _plain_choice(each) for name, each in self.choices.items()},
            "call": self.call,
        }

    def plotly(self, dark: bool = False) -> plotly_export.go.Figure:
        """Its figures as one of Plotly's, with the same numbers, labels and colours, one plot below
        the other; of those behind a slider the one on show. Raises ValueError where Plotly is not
        installed."""
        return plotly_export.figure(self.figures, self.title, dark)

    def with_choices(self, chosen: Mapping[str, Any]) -> Panel:
        """The same panel with other choices of its run, by the names that an address has for them,
        such as {"layer": "1"}, or as one `address`; what it does not take is left out. The panel
        itself where it takes nothing of them, and where it cannot be made of them."""
        words = {name: str(value) for name, value in chosen.items()}
        words |= dict(parse_qsl(words.pop("address", ""), keep_blank_values=True))
        function = PANELS[self.name]
        try:
            new = {
                each.argument: each.parse(words[each.name])
                for each in parameters(function)
                if each.name in words
            }
            return function(self.run, **{**self.choices, **new}) if new and self.run else self
        except ValueError:
            return self

    def html(self) -> Document:
        """The panel as an HTML document that asks for nothing from elsewhere."""
        return document([self])

    def csv(self) -> str:
        """The table as CSV, below the title and the caption. Raises NoRoom where it is larger than
        what may be written here."""
        with memory.writing(self.table):
            return to_csv(self.table, (self.title, *self.caption))

    def json(self) -> str:
        """Its words, its table and the call that makes it, as JSON. Raises NoRoom as `csv`."""
        with memory.writing(self.table):
            return self._json()

    def _json(self) -> str:
        plain = {
            "panel": self.name,
            "title": self.title,
            "finding": self.finding,
            "details": self.details,
            "caption": self.caption,
            "call": self.call,
            "numbers": {name: _plain_number(each) for name, each in self.numbers.items()},
            "table": plain_columns(self.table),
            "token": self.token,
        }
        return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def document(
    panels: Sequence[Panel], link: str = "", query: Mapping[str, str] | None = None
) -> Document:
    """Panels as an HTML document that asks for nothing from elsewhere, as `sheet` lays them out.
    `link`: the address of a Headlight, and `query` what shows the same there; without both, the
    `way_back`. Raises ValueError for no panel."""
    query = way_back(panels) if query is None and not link and panels else query
    return html_export.document(sheet(panels, query or {}), link)


def sheet(panels: Sequence[Panel], query: Mapping[str, str], name: str = "") -> DocumentSpec:
    """Panels as a sheet of a document: one below the other, or of all heads and one of them side by
    side. query: the address of the same in Headlight. Raises ValueError for no panel."""
    if not panels:
        raise ValueError("a document needs a panel")
    captions: list[Line] = [("p", line) for panel in panels[1:] for line in panel.caption]
    beside = [panel.name for panel in panels] == BESIDE
    columns = (0, 1) if beside else (2,) * len(panels)
    parts: list[Part] = [
        View("panel", panel.encode(), column=at) for panel, at in zip(panels, columns)
    ]
    if captions:
        parts.append(TextLines(captions, column=2))
    return DocumentSpec(panels[0].title, panels[0].caption, parts, query, name)


def way_back(panels: Sequence[Panel]) -> dict[str, str]:
    """The query of an address of Headlight that has the run of the first of some panels, and their
    choices, on screen."""
    run = panels[0].run
    wanted = {
        each.name: each.spelled(panel.run, panel.choices[each.argument])
        for panel in panels
        for each in parameters(PANELS[panel.name])
        if each.argument in panel.choices
        and panel.run is not None
        and not isinstance(panel.choices[each.argument], Run)
    }
    if run is not None:
        wanted["text"] = run.text
        wanted["model"] = run.model if run.model != DEFAULT_MODEL else ""
        wanted["edits"] = to_line(run.edits)
        wanted["target"] = run.target if isinstance(run.target, str) else ""
    return {name: value for name, value in wanted.items() if value}


def _plain_number(number: Written) -> dict[str, float | str | None]:
    """A number as JSON has it, null where it is none, and as a sentence has it."""
    return {"value": float(number) if isfinite(number) else None, "text": number.text}


def _plain_choice(value: Any) -> Any:
    """A choice as JSON has it."""
    return value if isinstance(value, (str, int, float, bool, type(None))) else _argument(value)


WHOLE = Sheet()  # of a picture as the app hands it out


@dataclass(frozen=True)
class FileKind:
    """A kind of file that a panel leaves as: its media type, what writes it, and whether that is a
    picture, which is drawn on a sheet."""

    media_type: str
    write: Callable[[Panel, Sheet], bytes]
    is_picture: bool = False

    def make(self, panel: Panel, sheet: Sheet = WHOLE) -> bytes:
        """The file. Raises ValueError for a sheet where nothing is drawn, for a picture of a panel
        without figures, and where what draws is not installed."""
        if sheet != WHOLE and not self.is_picture:
            raise ValueError(FIGURES("no_sheet", ending=self.media_type))
        if self.is_picture and not panel.figures:
            raise ValueError(FIGURES("no_figure", finding=panel.finding))
        return self.write(panel, sheet)


def _png(panel: Panel, sheet: Sheet) -> bytes:
    """A panel as PNG; the picture card as large as sites show it that show a link."""
    if isinstance(panel.figures[0], PictureCard) and sheet == WHOLE:
        return _picture(figure_export.card)(panel, sheet)
    return _picture(figure_export.png)(panel, sheet)


def _picture(
    write: Callable[[bytes, str, dict[str, Any], Sheet], bytes],
) -> Callable[[Panel, Sheet], bytes]:
    return lambda panel, sheet: write(panel.encode(), panel.title, panel.cause, sheet)


# By the ending of the file's name; "bin" is what the renderer reads.
FILES = {
    "html": FileKind("text/html", lambda panel, _: panel.html().encode()),
    "csv": FileKind("text/csv", lambda panel, _: file_of(panel.csv())),
    "json": FileKind("application/json", lambda panel, _: panel.json().encode()),
    "bin": FileKind("application/octet-stream", lambda panel, _: panel.encode()),
    "svg": FileKind("image/svg+xml", _picture(figure_export.svg), True),
    "pdf": FileKind("application/pdf", _picture(figure_export.pdf), True),
    "png": FileKind("image/png", _png, True),
}


def python(panels: Sequence[Panel]) -> str:
    """The lines that make panels again and save them."""
    lines = ["from headlight import Run, edits, panels", ""]
    for at, panel in enumerate(panels):
        name = "panel" if at == 0 else f"panel_{at + 1}"
        if at == 0 or panel.run != panels[at - 1].run:
            lines.append(f"run = {_run(panel.run)}")
        lines += [f"{name} = {panel.call}", f'{name}.save("{panel.file}.html")']
    lines.append("panel.table  # named columns")
    return "\n".join(lines)


def _argument(value: Any) -> str:
    """An argument of a panel function in Python."""
    return _run(value) if isinstance(value, Run) else repr(value)


def _run(run: Run | None) -> str:
    """The call that makes a run."""
    if run is None:
        raise ValueError("this panel was not made of a run")
    words = [repr(run.model), repr(run.text)]
    if run.edits:
        words.append("edits=(" + ", ".join(f"edits.{edit!r}" for edit in run.edits) + ",)")
    if run.target is not None:
        words.append(f"target={run.target!r}")
    if run.ids is not None:
        words.append(f"ids={run.ids!r}")
    return f"Run({', '.join(words)})"


# Every panel function by its name, such as "soft_lookup.temperature".
PANELS: dict[str, Callable[..., Panel]] = {}
PREDICT: set[Callable[..., Panel]] = set()  # those that tell what a model predicts


def panel_names() -> list[str]:
    """The names of all panels, each module of this package imported."""
    _import_all()
    return sorted(PANELS)


@cache
def _import_all() -> None:
    folder = __package__ or ""
    for each in iter_modules(import_module(folder).__path__):
        import_module(f"{folder}.{each.name}")


@cache
def choices_by_panel() -> dict[str, tuple[Parameter, ...]]:
    """The choices that each panel declares, by the name of the panel."""
    return {name: choices_of(PANELS[name]) for name in panel_names()}


def _held(*arguments: object) -> tuple[Recording | Model, ...]:
    """The recordings that a caller handed in, of those runs that stand for one, and their models
    where these are in memory alone."""
    runs = [each for each in arguments if isinstance(each, Run) and each.contents]
    models = [registry.load(each.model) for each in runs if registry.holds(each.model)]
    return (*filter(None, (each.held() for each in runs)), *models)


def _with_its_panel(panel: Panel) -> Iterator[Figure]:
    """The figures of a panel, each with what it needs to be saved alone: the panel without them."""
    for at, figure in enumerate(panel.figures):
        own = copy(figure)  # others may have the same one
        title, call = figure.title or panel.title, f"{panel.call}.figures[{at}]"
        vars(own)["panel"] = replace(panel, figures=(), title=title, call=call)
        yield own


def _by_itself(columns: Columns) -> Columns:
    """Named columns that keep nothing else in memory: a part of a larger array is a copy."""
    return {
        name: cells.copy() if isinstance(cells, np.ndarray) and cells.base is not None else cells
        for name, cells in columns.items()
    }


def model_line(recording: Recording, subject: str = "") -> str:
    """The model, what of it is shown, and its edits."""
    model = recording.model
    subject_part = f" · {subject}" if subject else ""
    edits = describe(recording.edits) if recording.edits else "none"
    return (
        f"Headlight · model {model.name} ({model.n_parameters:,} parameters, weights "
        f"{model.fingerprint}){subject_part} · edits: {edits}"
    )


def caption(
    recording: Recording, *what: str, subject: str = "", target: str = "Target"
) -> tuple[str, ...]:
    """The lines below a figure: the model's, `what` is shown, and the texts that were read, the
    second one called `target`. Which layers these are, where not all have attention."""
    target_line = (f"{target}: {read_text(recording, target=True)}",) if recording.target else ()
    what = (*what, *hybrid(recording))
    return (model_line(recording, subject), *what, f"Text: {read_text(recording)}", *target_line)


def hybrid(recording: Recording) -> tuple[str, ...]:
    """The line that says which layers of a model are shown, where some have no attention."""
    return tuple(
        NOTES(
            "hybrid",
            model=recording.model.name,
            layers=", ".join(map(str, attention.layers.tolist())),
        )
        for attention in recording.attention
        if attention.layers.size
    )


def read_text(recording: Recording, target: bool = False) -> str:
    """The part of its text, or of its target, that a model read, on one line; " …" in place of what
    did not fit."""
    texts = recording.texts_with_cover(recording.covered)
    text, dropped, stream = (
        (texts[1], recording.target_dropped, -1) if target else (texts[0], recording.dropped, 0)
    )
    end = int(recording.streams[stream].spans[:, 1].max(initial=0)) if dropped else 0
    return " ".join((text[:end] if end > 0 else text).split()) + (" …" if dropped else "")


def special_labels(recording: Recording) -> tuple[str, ...]:
    """The labels that special tokens of a recording have and no others."""
    marked = [
        (label, mark)
        for stream in recording.streams
        for label, mark in zip(stream.tokens, stream.special.tolist())
    ]
    plain = {label for label, mark in marked if not mark}
    return tuple(sorted({label for label, mark in marked if mark} - plain))


def panel(
    function: Callable[Concatenate[Run, Arguments], Panel],
) -> Callable[Concatenate[Run | Recording | Model, Arguments], Panel]:
    """A panel function that takes a run, a recording, or a loaded model on the default text, and
    whose panel is completed: its table, its caption, its file name, its call and its token."""
    signature = inspect.signature(function)
    module = function.__module__.rpartition(".")[2]
    name = f"{module}.{function.__name__}"
    taken = parameters(function)

    @wraps(function)
    def complete(
        source: Run | Recording | Model, /, *arguments: Arguments.args, **choices: Arguments.kwargs
    ) -> Panel:
        run = Run.of(source)
        bound = signature.bind(run, *arguments, **choices)
        for argument, value in bound.arguments.items():
            if isinstance(value, Recording):
                bound.arguments[argument] = Run.of(value)
            elif isinstance(value, np.generic):
                bound.arguments[argument] = value.item()
        for each in taken:
            each.expect(bound.arguments.get(each.argument, each.default))
        bound.arguments |= with_numbers(taken, run, bound.arguments)
        run, known = as_opened(taken, run, bound.arguments)
        bound.arguments |= known
        with memory.reserved(name, run, bound.arguments) as at_hand:
            selection = completed(taken, at_hand, bound.arguments)
            given = {**bound.arguments, **selection}
            bound.arguments |= {"run": at_hand, **as_taken(selection)}
            panel = function(*bound.args, **bound.kwargs)
        named = {
            each.argument: given[each.argument]
            for each in taken
            if each.argument in given and not each.is_first(run, given[each.argument])
        }
        recording = run.recording()
        read = recording.covering(panel.at.get("run", run).covered)
        words = ", ".join(["run", *(f"{each}={_argument(value)}" for each, value in named.items())])
        made = replace(
            panel,
            table=_by_itself(panel.table),
            caption=caption(read, *panel.caption),
            file="-".join(("headlight", recording.model.name, panel.file or function.__name__)),
            call=f"panels.{name}({words})",
            run=run,
            at={**as_taken(selection), **panel.at},
            choices=named,
            token=picture_name(recording, module, function.__name__, *sorted(named.items())),
            name=name,
            special=special_labels(recording),
            made_of=_held(run, *named.values()),
        )
        return replace(made, figures=tuple(_with_its_panel(made)))

    PANELS[name] = complete
    return complete


def predicts(
    function: Callable[Concatenate[Run | Recording | Model, Arguments], Panel],
) -> Callable[Concatenate[Run | Recording | Model, Arguments], Panel]:
    """A panel that tells what a model predicts: a class that is asked about it sees it covered."""
    PREDICT.add(function)
    return function
