"""A panel: what a reader sees of one view, and all that can be made of it: picture, table, file,
Python call.

A panel function takes a `Run` and plain choices and returns a `Panel`. The page, the HTML file, the
CSV file, the presenter and the notebook are made from that value alone; `explorer/components/
figures.js` draws every figure, on the screen and as SVG.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Concatenate, ParamSpec

import numpy as np

from explorer import html_export
from explorer.analysis.caption import caption
from explorer.analysis.csv import Columns, to_csv
from explorer.analysis.figures import Figure, as_plain
from explorer.components import codec
from explorer.html_export import Document, DocumentSpec, Line, Part, TextLines, View
from explorer.panels.choice import Parameter, choices_of, declared, parameters
from explorer.text import glossary
from models.caching import picture_name
from models.model import Model
from models.recording import Recording
from models.run import Run

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
    special tokens have, which every figure draws paler.
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

    def __repr__(self) -> str:
        return f"<Headlight panel {self.name} {self.title!r}>"

    def encode(self, bare: bool = False) -> bytes:
        """Encode the panel for the renderer: a header and blocks of numbers. bare: without title
        and details on the page, which says them elsewhere."""
        blocks: dict[str, np.ndarray] = {}
        frames = (each for figure in self.figures for each in getattr(figure, "frames", ()))
        sentences = (each.sentence for each in frames)
        text = " ".join((self.title, self.finding, *sentences, *self.details))
        header = {
            "panel": self.name,
            "title": self.title,
            "bare": bare,
            "finding": self.finding,
            "figures": [as_plain(figure, blocks) for figure in self.figures],
            "details": [] if bare else list(self.details),
            "terms": [] if bare else glossary.terms_in(text),
            "caption": list(self.caption),
            "file": self.file,
            "token": self.token,
            "special": list(self.special),
        }
        return codec.encode(header, blocks)

    @cached_property
    def bare(self) -> bytes:
        """`encode(bare=True)`, made once."""
        return self.encode(bare=True)

    def save(self, path: str | Path) -> None:
        """Write the panel as HTML or CSV, by the ending of the path. Raises ValueError for
        another."""
        path = Path(path)
        if path.suffix == ".html":
            path.write_text(document([self]), "utf-8")
        elif path.suffix == ".csv":
            path.write_text(self.csv(), "utf-8")
        else:
            raise ValueError(f"a panel is saved as .html or .csv, not as {path.name}")

    def _repr_html_(self) -> str:
        """The panel in a notebook: its document in a frame."""
        return document([self])._repr_html_()

    def csv(self) -> str:
        """The table as CSV, below the title and the caption."""
        return to_csv(self.table, (self.title, *self.caption))


def document(
    panels: Sequence[Panel], link: str = "", query: Mapping[str, str] | None = None
) -> Document:
    """Panels as an HTML document that asks for nothing from elsewhere: one below the other, or of
    all heads and one of them side by side. `link`: the address of a Headlight, and `query` what
    shows the same there. Raises ValueError for no panel."""
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
    return html_export.document(
        DocumentSpec(panels[0].title, panels[0].caption, parts, query or {}), link
    )


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
    return f"Run({', '.join(words)})"


# Every panel function by its name, such as "soft_lookup.temperature".
PANELS: dict[str, Callable[..., Panel]] = {}


def panel_names() -> list[str]:
    """The names of all panels, each module of this package imported."""
    folder = __package__ or ""
    for each in iter_modules(import_module(folder).__path__):
        import_module(f"{folder}.{each.name}")
    return sorted(PANELS)


def from_words(name: str, run: Run, choices: Mapping[str, str | Run]) -> Panel:
    """The panel of a name, its arguments given as words, another run as itself. Raises ValueError
    for a panel, an argument or a value that is not there."""
    if name not in (there := panel_names()):
        raise ValueError(f"no panel is called {name!r}; there are {', '.join(there)}")
    function = PANELS[name]
    by_name = {each.argument: each for each in parameters(function)}
    words = dict(choices)
    runs = {
        argument: made
        for argument, each in by_name.items()
        if (made := _made_run(each, run, words))
    }
    if other := next((each for each in words if each not in by_name), ""):
        raise ValueError(f"the panel {name} has no choice {other!r}; it has {', '.join(by_name)}")
    given = {
        each: word if isinstance(word, Run) else by_name[each].parse(word)
        for each, word in words.items()
    }
    return function(run, **runs, **given)


@cache
def choices_by_panel() -> dict[str, tuple[Parameter, ...]]:
    """The choices that each panel declares, by the name of the panel."""
    return {name: choices_of(PANELS[name]) for name in panel_names()}


def _made_run(parameter: Parameter, run: Run, words: dict[str, str | Run]) -> Run | None:
    """The other run that an argument is, made of those words of an address that are of it, which
    are taken out of `words`; None without any."""
    if parameter.choice is None or parameter.choice.made_by is None:
        return None
    parts = [each for each in choices_of(parameter.choice.made_by) if each.name in words]
    own = {each.argument: each.parse(str(words.pop(each.name))) for each in parts}
    return parameter.choice.made_by(run, **own) if own else None


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
    whose panel is completed: its caption, its file name, its call and its token."""
    signature = inspect.signature(function)
    module = function.__module__.rpartition(".")[2]
    name = f"{module}.{function.__name__}"
    chosen = declared(function)

    @wraps(function)
    def complete(
        source: Run | Recording | Model, /, *arguments: Arguments.args, **choices: Arguments.kwargs
    ) -> Panel:
        run = Run.of(source)
        bound = signature.bind(run, *arguments, **choices)
        named = {
            each: value
            for each, value in bound.arguments.items()
            if each != "run" and value != signature.parameters[each].default
        }
        for each in chosen:
            each.expect(bound.arguments.get(each.argument, each.default))
        made = function(run, *arguments, **choices)
        recording = run.recording()
        words = ", ".join(["run", *(f"{each}={_argument(value)}" for each, value in named.items())])
        return replace(
            made,
            caption=caption(recording, *made.caption),
            file="-".join(("headlight", recording.model.name, made.file or function.__name__)),
            call=f"panels.{name}({words})",
            run=run,
            choices=named,
            token=picture_name(recording, module, function.__name__, *sorted(named.items())),
            name=name,
            special=special_labels(recording),
        )

    PANELS[name] = complete
    return complete
