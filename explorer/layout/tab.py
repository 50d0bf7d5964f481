"""A tab as a row: the panels that it shows, and those that open below them. One view draws every
such tab: the selection, a widget for each choice that its panels declare, the panels with their
tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from models.recording import Recording, Stream
from models.run import Run

PanelFunction = Callable[..., Panel]
FEW = 6  # options that stand side by side; more are a menu


@dataclass(frozen=True)
class Fold:
    """A part of a tab that opens: its label, or what gives it of a run; its panels; or what draws
    it by hand, of a run and a stream. wait: said while its panels are made."""

    label: str | Callable[[Run], str]
    panels: tuple[PanelFunction, ...] = ()
    draw: Callable[[Run, str], None] | None = None
    wait: str = ""


@dataclass(frozen=True)
class Tab:
    """A tab: its panels from top to bottom, and the parts below them of which one is open at a
    time. open_fold: the choice of the address that names it, with `closed` for none. token_of: the
    token of a stream that is shown until a reader chooses; layer_of: the layer that one is opened
    in, None where the panels themselves know."""

    panels: tuple[PanelFunction, ...]
    folds: Mapping[str, Fold] = field(default_factory=dict)
    open_fold: str = ""
    closed: str = ""
    token_of: Callable[[Recording, Stream], int] = recorded_findings.first_word
    layer_of: Callable[[Stream, int], int] | None = None


def view(row: Tab) -> Callable[[], None]:
    """A function that draws a tab on the page."""
    if row.folds:
        names = Choice((row.closed, *row.folds), "the part that is open")
        url_state.declare(row.open_fold, Parameter(row.open_fold, str, False, row.closed, names))

    @current_recording.tab()
    def draw_tab(source: Run) -> None:
        _draw(row, source)

    return draw_tab


def _draw(row: Tab, source: Run) -> None:
    recording = source.recording()
    declared = [each for panel in row.panels for each in parameters(panel)]
    names = tuple(each.name for each in recording.streams)
    bar = st.container(horizontal=True, vertical_alignment="center")
    arguments = {each.argument for each in declared}
    chosen: dict[str, Any] = {}
    at_token = next((i for i, each in enumerate(declared) if each.argument == "token"), 0)
    before, after = (
        [each for each in part if _has_widget(each) and not _in_menu(each)]
        for part in (declared[:at_token], declared[at_token:])
    )
    chosen |= {each.argument: widget(each, source, chosen, bar) for each in before}
    if "stream" in arguments:
        chosen["stream"] = controls.pick_stream(names, names[0], container=bar)
    stream = recording.stream(chosen.get("stream", names[0]))
    if "token" in arguments:
        with bar:
            chosen |= _selected(row, recording, stream)
    for each in after:
        chosen[each.argument] = widget(each, source, chosen, bar)
    if "head" in arguments:
        chosen |= _head(recording)
    with bar.popover("View") if any(map(has_menu, row.panels)) else nullcontext():
        for panel in row.panels:
            chosen |= choose(panel, source, chosen)
    for panel in row.panels:
        show(panel, partial(panel, source, **taken(panel, chosen)))
    parts = {
        name: (
            fold.label(source) if callable(fold.label) else fold.label,
            partial(_draw_fold, fold, source, chosen),
        )
        for name, fold in row.folds.items()
    }
    if parts:
        controls.folds(row.open_fold, row.closed, parts)


def _selected(row: Tab, recording: Recording, stream: Stream) -> dict[str, int]:
    """The token on screen, and where the tab shows one layer the layer, with their menus."""
    default = row.token_of(recording, stream)
    layers = {each.layer for each in residual.sublayers(stream) if each.layer >= 0}
    if row.layer_of is None or not layers:
        return {"token": selection_bar.word(stream, default)}
    layer_of = partial(row.layer_of, stream)
    token, layer = selection_bar.word_and_layer(stream, default, len(layers), layer_of)
    return {"token": token, "layer": layer}


def _head(recording: Recording) -> dict[str, Any]:
    """The attention, the layer and the head that a reader chose, None for no choice."""
    name = url_state.one_of("attention", controls.attention_names(recording))
    of = next((each for each in recording.attention if each.name == name), recording.attention[0])
    layers, heads = of.pattern.shape[:2]
    return {
        "attention": name,
        "layer": url_state.whole_number("layer", layers),
        "head": url_state.whole_number("head", heads),
    }


def _draw_fold(fold: Fold, source: Run, selected: Mapping[str, Any]) -> None:
    if fold.draw is not None:
        fold.draw(source, selected.get("stream", ""))
    shared = {name: selected[name] for name in ("stream", "token", "log") if name in selected}
    reasons: set[str] = set()  # why panels are not there, each said once
    for panel in fold.panels:
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


def widget(
    parameter: Parameter,
    source: Run,
    chosen: Mapping[str, Any],
    container: DeltaGenerator | None = None,
) -> Any:
    """The value of a choice, with its widget: a switch, a row of buttons, a slider over numbers, or
    a menu. One that is made by a press in a picture has none."""
    value = url_state.value(parameter, source, chosen)
    choice, name = parameter.choice, parameter.name
    if choice is None or not choice.label:
        return value
    if callable(choice.options) and not choice.options(source, chosen):
        return value
    effective = value
    if choice.suits is not None and value == parameter.default:
        effective = choice.suits(source, chosen)
    place = st if container is None else container
    if parameter.kind is bool:
        place.toggle(
            choice.label,
            help=choice.help or None,
            **bind(name, f"{name} on", bool(effective), parameter.word),
        )
        return value
    labels = {
        parameter.word(each): label for each, label in parameter.options(source, chosen).items()
    }
    if not labels:
        return value
    if parameter.kind in (int, float):
        place.select_slider(
            choice.label, tuple(labels), key=name, persist_state="session", width=420
        )
    elif callable(choice.options) or len(labels) > FEW:
        word = parameter.word(effective)
        place.selectbox(
            choice.label,
            tuple(labels),
            format_func=labels.__getitem__,
            width=320,
            **bind(name, f"{name} menu", word if word in labels else next(iter(labels))),
        )
    else:
        is_bare = not choice.menu
        pick(choice.label, labels, name, choice.help or None, is_bare, container)
    return value
