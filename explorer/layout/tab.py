"""A tab as a row: the panels that it shows, and those that open below them. One view draws every
such tab: the selection, a widget for each choice that its panels declare, the panels with their
tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import recorded_findings, residual
from explorer.layout import controls, current_recording, output, selection_bar
from explorer.layout.controls import bind, pick
from explorer.panels.choice import Choice, Parameter, parameters
from explorer.panels.spec import Panel
from explorer.state import url_state
from explorer.text.markdown_escape import literal
from explorer.text.templates import sentences
from models.recording import Recording, Stream
from models.run import Run

PanelFunction = Callable[..., Panel]
FEW = 6  # options that stand side by side; more are a menu
MANY = 1024  # whole numbers on a slider; more are typed
SLIDER, FIELD = 260, 480  # pixels


@dataclass(frozen=True)
class Fold:
    """A part of a tab that opens: its label, or what gives it of a run; its panels; or what draws
    it by hand, of a run and the tab's choices. wait: said while its panels are made."""

    label: str | Callable[[Run], str]
    panels: tuple[PanelFunction, ...] = ()
    draw: Callable[[Run, Mapping[str, Any]], None] | None = None
    wait: str = ""


@dataclass(frozen=True)
class Tab:
    """A tab: its panels from top to bottom, and the parts below them of which one is open at a
    time. open_fold: the choice of the address that names it, with `closed` for none. layer_of: the
    layer that a token of a stream is opened in. select: draws the selection in a run, by the
    choices made so far, and gives the arguments that it selects, for a tab that selects more than a
    token and a layer. beside: draws by hand what else stands beside the choices. of_stream: names
    of choices that end with another stream. wait: said while the panels are made."""

    panels: tuple[PanelFunction, ...]
    folds: Mapping[str, Fold] = field(default_factory=dict)
    open_fold: str = ""
    closed: str = ""
    layer_of: Callable[[Stream, int], int] | None = None
    select: Callable[[Run, Mapping[str, Any]], dict[str, Any]] | None = None
    beside: Callable[[Run], None] | None = None
    of_stream: tuple[str, ...] = ()
    wait: str = ""


def view(row: Tab) -> Callable[[], None]:
    """A function that draws a tab on the page."""
    names = Choice((row.closed, *row.folds), "the part that is open")
    fold = Parameter(row.open_fold, str, False, row.closed, names)
    if row.folds:
        url_state.declare(row.open_fold, fold)

    @current_recording.tab()
    def draw_tab(source: Run) -> None:
        if row.folds:
            url_state.value(fold, source, {})
        _draw(row, source)

    return draw_tab


def views(
    choice: str, rows: Mapping[str, tuple[str, Tab]], edited: bool = True, typed: bool = True
) -> Callable[[], None]:
    """A function that draws one of several views of a tab, by their labels: the one that a choice
    of the address names. edited and typed as of `current_recording.read_current`."""
    labels = {name: label for name, (label, _) in rows.items()}
    parameter = Parameter(choice, str, False, next(iter(rows)), Choice(labels, "the view"))
    url_state.declare(choice, parameter)

    @current_recording.tab(edited, typed)
    def draw_views(source: Run) -> None:
        bar = st.container(horizontal=True, vertical_alignment="center")
        url_state.value(parameter, source, {})
        name = pick("View", labels, choice, bare=True, container=bar)
        _draw(rows[name][1], source, bar)

    return draw_views


def _draw(row: Tab, source: Run, views_bar: DeltaGenerator | None = None) -> None:
    chosen = _choose(row, source, views_bar)
    with st.spinner(row.wait) if row.wait else nullcontext():
        for panel in row.panels:
            show(panel, partial(panel, source, **taken(panel, chosen)))
    parts = {
        name: (
            fold.label(source) if callable(fold.label) else fold.label,
            partial(_draw_fold, row, fold, source, chosen),
        )
        for name, fold in row.folds.items()
    }
    if parts:
        controls.folds(row.open_fold, row.closed, parts)


def _choose(row: Tab, source: Run, views_bar: DeltaGenerator | None) -> dict[str, Any]:
    """The choices of a tab's panels, with their widgets: few words and the selection, then fields
    and sliders, then the View menu. views_bar: where the stream is chosen, beside the views."""
    declared, chosen = _declared(row), dict[str, Any]()
    shown = [each for each in declared if _has_widget(each) and not _in_menu(each)]
    fields = [each for each in shown if not _is_few(each)]
    bar = st.container(horizontal=True, vertical_alignment="bottom" if fields else "center")
    for each in shown:
        if each not in fields:
            chosen[each.argument] = widget(each, source, chosen, bar)
    chosen |= _select(row, source, chosen, bar, views_bar or bar)
    for panel in row.panels:
        chosen |= url_state.values(panel, source, chosen)
    for each in fields:
        widget(each, source, chosen, bar)
    if row.beside is not None:
        with bar:
            row.beside(source)
    in_menu = [each for each in declared if _in_menu(each) and each.is_there(source, chosen)]
    with bar.popover("View") if in_menu else nullcontext():
        for each in in_menu:
            widget(each, source, chosen)
    return chosen


def _select(
    row: Tab,
    source: Run,
    chosen: Mapping[str, Any],
    bar: DeltaGenerator,
    stream_bar: DeltaGenerator,
) -> dict[str, Any]:
    """What is selected on a tab, with its menus."""
    recording, arguments = source.recording(), {each.argument for each in _declared(row)}
    names = tuple(each.name for each in recording.streams)
    selected: dict[str, Any] = {}
    if "stream" in arguments:
        after = partial(_clear, ("token", *row.of_stream))
        selected["stream"] = controls.pick_stream(names, names[0], after, stream_bar)
    with bar:
        if row.select is not None:
            selected |= row.select(source, {**chosen, **selected})
        elif "token" in arguments:
            stream = recording.stream(selected.get("stream", names[0]))
            selected |= _selected(row, recording, stream)
    return selected


def _declared(row: Tab) -> list[Parameter]:
    """The arguments of a tab's panels, each once."""
    every = [each for panel in row.panels for each in parameters(panel)]
    return [
        each for at, each in enumerate(every) if each.name not in {one.name for one in every[:at]}
    ]


def _selected(row: Tab, recording: Recording, stream: Stream) -> dict[str, int]:
    """The token on screen, and where the tab shows one layer the layer, with their menus."""
    default = recorded_findings.first_word(recording, stream)
    layers = {each.layer for each in residual.sublayers(stream) if each.layer >= 0}
    if row.layer_of is None or not layers:
        return {"token": selection_bar.word(stream, default)}
    layer_of = partial(row.layer_of, stream)
    token, layer = selection_bar.word_and_layer(stream, default, len(layers), layer_of)
    return {"token": token, "layer": layer}


def _draw_fold(row: Tab, fold: Fold, source: Run, chosen: Mapping[str, Any]) -> None:
    if fold.draw is not None:
        fold.draw(source, chosen)
    # What the panels above have no widget for is chosen here.
    on_tab = [each for each in _declared(row) if each.choice is None or each.choice.label]
    names = {(each.argument, each.name) for each in on_tab}
    reasons: set[str] = set()  # why panels are not there, each said once
    for panel in fold.panels:
        shared = {
            each.argument: chosen[each.argument]
            for each in parameters(panel)
            if (each.argument, each.name) in names and each.argument in chosen
        }
        place = st.container(horizontal=True, vertical_alignment="bottom")
        try:
            with st.spinner(fold.wait) if fold.wait else nullcontext():
                made = panel(source, **taken(panel, url_state.values(panel, source, shared)))
        except ValueError as why:
            if str(why) not in reasons:
                st.info(literal(str(why)))
            reasons.add(str(why))
            continue
        with place:
            choose(panel, source, shared)
        show(panel, made)


def taken(panel: PanelFunction, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some choices that a panel takes."""
    arguments = {each.argument for each in parameters(panel)}
    return {name: value for name, value in chosen.items() if name in arguments}


def show(panel: PanelFunction, make: Callable[[], Panel] | Panel) -> None:
    """A panel, or what makes it, with its table."""
    name = f"{panel.__module__.rpartition('.')[2]} {panel.__name__}"
    output.show_panel(make, name.replace("_", " "))


def choose(panel: PanelFunction, source: Run, selected: Mapping[str, Any]) -> dict[str, Any]:
    """The choices of a panel by its arguments, with a widget for each that has one; those of
    `selected` are known."""
    chosen = url_state.values(panel, source, selected)
    for each in parameters(panel):
        if each.choice is not None and each.argument not in selected:
            chosen[each.argument] = widget(each, source, chosen)
    return chosen


def has_menu(panel: PanelFunction) -> bool:
    """True for a panel with choices in the View menu."""
    return any(map(_in_menu, parameters(panel)))


def _has_widget(parameter: Parameter) -> bool:
    return parameter.choice is not None and bool(parameter.choice.label)


def _in_menu(parameter: Parameter) -> bool:
    return parameter.choice is not None and parameter.choice.menu


def _is_few(parameter: Parameter) -> bool:
    """True for a choice among few words, which stand side by side for every run."""
    options = parameter.choice.options if parameter.choice else ()
    return parameter.kind is str and not callable(options) and 0 < len(options) <= FEW


def widget(
    parameter: Parameter,
    source: Run,
    chosen: Mapping[str, Any],
    container: DeltaGenerator | None = None,
) -> Any:
    """The value of a choice, with its widget: a switch, a row of buttons, a slider over numbers, a
    menu, or a field. One that is made by a press in a picture has none."""
    value = url_state.value(parameter, source, chosen)
    choice, name = parameter.choice, parameter.name
    if choice is None or not choice.label or not parameter.is_there(source, chosen):
        return value
    suited = parameter.default if choice.suits is None else choice.suits(source, chosen)
    effective = suited if value == parameter.default else value
    place, help = st if container is None else container, choice.help or None
    clear = partial(_clear, choice.clears) if choice.clears else None
    options = parameter.values(source, chosen)
    if parameter.kind is bool:
        bound = bind(name, f"{name} on", bool(effective), parameter.word, clear)
        place.toggle(choice.label, help=help, **bound)
    elif isinstance(options, range):
        write = lambda each: parameter.word(parameter.default if each == suited else each)
        _number(parameter, options, place, effective, write, clear)
    elif parameter.kind is str and not choice.options:
        place.text_input(
            choice.label,
            key=name,
            persist_state="session",
            on_change=clear,
            placeholder=effective or help,
            width=FIELD,
            help=help,
        )
        if not url_state.fits_address(value):
            st.info(sentences("frame", "text")("fits_no_link", n=len(value)))
    elif labels := {
        parameter.word(each): label for each, label in parameter.options(source, chosen).items()
    }:
        if choice.typed is not None:
            _word_or_typed(parameter, parameter.word(value), labels, source, place)
        else:
            _word(parameter, parameter.word(effective), labels, container, clear)
    return value


def _clear(names: Sequence[str]) -> None:
    """Choices back to their defaults. For a callback."""
    for name in names:
        st.session_state[name] = url_state.default(name)


def _number(
    parameter: Parameter,
    options: range,
    place: Any,
    value: int,
    write: Callable[[Any], str],
    after: Callable[[], None] | None,
) -> None:
    """A slider over whole numbers, or a field for one of many; of a single one there is none."""
    choice, name = parameter.choice, parameter.name
    if choice is None or len(options) < 2:
        return
    within = min(max(value, options[0]), options[-1])
    is_slider = len(options) <= MANY
    make = partial(place.slider, width=SLIDER) if is_slider else place.number_input
    bound = bind(name, f"{name} {'slider' if is_slider else 'field'}", within, write, after)
    help = choice.help or None
    make(choice.label, options[0], options[-1], step=options.step, help=help, **bound)


def _word(
    parameter: Parameter,
    word: str,
    labels: Mapping[str, str],
    container: DeltaGenerator | None,
    after: Callable[[], None] | None,
) -> None:
    """A slider over numbers, a menu of what depends on the run or of many words, or a row of
    buttons."""
    choice, name = parameter.choice, parameter.name
    if choice is None:
        return
    place, help = st if container is None else container, choice.help or None
    if parameter.kind in (int, float) and not callable(choice.options):
        place.select_slider(
            choice.label,
            tuple(labels),
            key=name,
            format_func=labels.__getitem__,
            persist_state="session",
            on_change=after,
            width=420,
            help=help,
        )
    elif callable(choice.options) or len(labels) > FEW:
        place.selectbox(
            choice.label,
            tuple(labels),
            format_func=labels.__getitem__,
            width=160 if parameter.kind is int else 320,
            help=help,
            **bind(
                name, f"{name} menu", word if word in labels else next(iter(labels)), after=after
            ),
        )
    else:
        pick(choice.label, labels, name, help, not choice.menu, container, on_change=after)


def _word_or_typed(
    parameter: Parameter, word: str, labels: Mapping[str, str], source: Run, place: Any
) -> None:
    """A menu that takes what else is typed, with a sentence on how it is read. An option stands
    after a "#", which nobody types."""
    state, choice, name = st.session_state, parameter.choice, parameter.name
    if choice is None:
        return
    options = {f"#{each}": label for each, label in labels.items()}
    key = f"{name} field"
    state[key] = f"#{word}"
    place.selectbox(
        choice.label,
        tuple(options),
        key=key,
        format_func=lambda each: options.get(each, each),
        accept_new_options=True,
        on_change=_take_typed,
        args=(parameter, source, tuple(options)),
        help=choice.help or None,
        width=240,
    )
    typed, sentence = state.get(f"{name} typed", ("", ""))
    if sentence and typed == word:
        place.caption(sentence)


def _take_typed(parameter: Parameter, source: Run, options: Sequence[str]) -> None:
    """Store what was chosen in the menu, or the value of what was typed. For a callback."""
    state, choice, name = st.session_state, parameter.choice, parameter.name
    value, sentence = state[f"{name} field"] or "", ""
    if value in options or choice is None or choice.typed is None:
        state[name] = value.removeprefix("#")
    else:
        read, sentence = choice.typed(source, value)
        state[name] = parameter.word(read)
    state[f"{name} typed"] = state[name], sentence
