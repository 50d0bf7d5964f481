"""A tab drawn by its row of the table (`text/places.py`): the panels that it shows, all of them or
some at a time, and those that open below them. One view draws every such tab: the selection, a
widget for each choice that its panels declare, the panels with their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.layout import controls, current_recording, navigation, output, selection_bar
from explorer.layout.controls import bind, pick
from explorer.panels.choice import (
    EVERY,
    Options,
    Parameter,
    arguments_of,
    choices_of,
    parameters,
)
from explorer.panels.spec import Panel
from explorer.screens.rows import PanelFunction, Row, arguments_of_all, panels_of, shared_with
from explorer.state import url_state
from explorer.state.visit import visit
from explorer.text import places
from explorer.text.markdown_escape import literal
from explorer.text.places import Views
from explorer.text.templates import sentences
from models.run import Run

FEW = 6  # options that stand side by side; more are a menu
MANY = 1024  # whole numbers on a slider; more are typed
SLIDER, MENU = 260, 320  # pixels
SHORT = 16  # letters of a label that a narrow menu holds


@dataclass(frozen=True)
class Hand:
    """What is drawn by hand on a tab, and what its row leaves to functions.

    read: as of `current_recording.tab`, where it is not the text on screen with what the row reads
    of it. subject: gives of the run that was read the one that the
    panels are of, with the arguments that are known by then; it takes the choices that its own
    signature declares, and draws into the bar at the top what these are chosen by. A ValueError of
    it is said in place of the panels, and for None nothing stands there. select: draws by hand the
    selection in that run, by the choices made so far, the selection among them, and the names of
    what the panels take that are shown; it gives what it changes. on_press: called after a press in
    a panel, with its run and the choices as they were before. beside and below: draw what else
    stands beside the choices, and below the panels where all of them are there. folds: by their
    names, what draws parts of a run and the tab's choices; labels: what they are called, by the
    run. fits: by the tab that a lead is to, for which runs it is there. for_classes: the same of
    the row that a classifier of texts has."""

    read: Callable[[], Run | None] | None = None
    subject: Callable[..., tuple[Run, Mapping[str, Any]] | None] | None = None
    select: Callable[[Run, Mapping[str, Any], set[str]], dict[str, Any]] | None = None
    on_press: Callable[[Run, Mapping[str, Any]], None] | None = None
    beside: Callable[[Run, Mapping[str, Any]], None] | None = None
    below: Callable[[Run, Mapping[str, Any]], None] | None = None
    folds: Mapping[str, Callable[[Run, Mapping[str, Any]], None]] = field(default_factory=dict)
    labels: Mapping[str, Callable[[Run], str]] = field(default_factory=dict)
    fits: Mapping[str, Callable[[Run], bool]] = field(default_factory=dict)
    for_classes: Hand | None = None


NOTHING = Hand()


@dataclass(frozen=True)
class DrawnRow(Row):
    """A tab of the table with its panel functions, and what is drawn by hand on it."""

    hand: Hand = NOTHING

    @property
    def has_fields(self) -> bool:
        """True where a widget at its top has a label above it."""
        of_subject = choices_of(self.hand.subject) if self.hand.subject else ()
        has_labels = any(map(_has_widget, of_subject))
        return has_labels or self.view is None and any(map(_is_field, self.arguments))


VIEWS: dict[str, Callable[[], None]] = {}  # what draws each tab, by its id


def by_hand(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Make a function what draws all of a tab."""

    def decorate(draw: Callable[[], None]) -> Callable[[], None]:
        VIEWS[name] = draw
        return draw

    return decorate


def view(name: str, hand: Hand = NOTHING) -> None:
    """Have a tab drawn by its row of the table."""
    row = DrawnRow(places.TABS[name], hand)
    if row.fold is not None:
        url_state.declare(row.fold.name, row.fold)
    if row.view is not None:
        url_state.declare(row.view.name, row.view)
    if hand.subject is not None:
        url_state.declare(hand.subject.__name__, *choices_of(hand.subject))
    classes = row.tab.for_classes
    of_classes = DrawnRow(classes, hand.for_classes or NOTHING) if classes else None
    edited, typed = (each in row.tab.reads for each in ("edits", "target"))

    @by_hand(name)
    @current_recording.tab(
        hand.read or partial(current_recording.read_current, edited=edited, typed=typed)
    )
    def draw_tab(run: Run) -> None:
        if row.fold is not None:
            url_state.value(row.fold, run, {})
        _draw(of_classes if of_classes and run.loaded.capabilities.classes else row, run)


def _draw(row: DrawnRow, run: Run) -> None:
    tab, hand = row.tab, row.hand
    alignment: Literal["bottom", "center"] = "bottom" if row.has_fields else "center"
    bar = st.container(horizontal=True, vertical_alignment=alignment)
    panels = row.panels
    known: Mapping[str, Any] = {}
    if hand.subject is not None:
        try:
            subject = hand.subject(run, bar, **url_state.values(hand.subject, run))
        except ValueError as why:
            st.info(literal(str(why)))
            return
        if subject is None:
            return
        run, known = subject
    if tab.views is not None:
        panels = (*_pick_view(row, tab.views, run, bar), *panels)
    declared = arguments_of_all(panels)
    with st.spinner(tab.wait) if tab.wait else nullcontext():
        chosen = _chosen(row, run, panels, declared, known, bar)
        pressed = None if hand.on_press is None else partial(hand.on_press, run, chosen)
        drawn = [show(panel, run, chosen, pressed) for panel in panels]
    if all(drawn) and hand.below is not None:
        hand.below(run, chosen)
    if tab.folds or tab.leads:
        with output.links("of tab"):
            for to, lead in tab.leads.items() if all(drawn) else ():
                if to not in hand.fits or hand.fits[to](run):
                    at = {name: chosen[name] for name in lead.keeps if name in chosen}
                    navigation.link(to, lead.label, {**at, **known, **lead.choices})
            _folds(row, run, chosen, declared)


def _pick_view(
    row: DrawnRow, views: Views, run: Run, bar: DeltaGenerator
) -> tuple[PanelFunction, ...]:
    """The panels of the view on screen, with the buttons of the views, and of those of its
    group."""
    name, labels, choice = _view_on_screen(row, run), row.labels, views.choice
    group_of = {each: group for group, names in views.groups.items() for each in names}
    names = views.groups.get(group_of.get(name, ""), ())
    buttons = {
        views.groups[group_of[each]][0] if each in group_of else each: group_of.get(each, label)
        for each, label in labels.items()
    }
    bound = bind(choice, f"{choice} view", names[0] if names else name)
    if len(buttons) > FEW:
        bar.selectbox(
            "View",
            buttons,
            format_func=buttons.__getitem__,
            label_visibility="collapsed",
            width=MENU,
            **bound,
        )
    else:
        pick("View", buttons, bare=True, container=bar, **bound)
    if names:
        in_group = {each: labels[each] for each in names}
        bound = bind(choice, f"{choice} of group", name)
        pick("Part", in_group, bare=True, container=bar, **bound)
    return row.of_views[name]


def _view_on_screen(row: DrawnRow, run: Run) -> str:
    """The word of the view on screen, "" for a tab without views."""
    return url_state.value(row.view, run, {}) if row.view else ""


def _chosen(
    row: DrawnRow,
    run: Run,
    panels: Sequence[PanelFunction],
    declared: Sequence[Parameter],
    known: Mapping[str, Any],
    bar: DeltaGenerator,
) -> dict[str, Any]:
    """The selection and the choices of the panels, beside those known, with their widgets in the
    order of the signatures; below views sliders and fields have a line of their own. The View menu
    is last."""
    chosen = dict(known)
    declared = [each for each in declared if each.argument not in known]
    at_token = next((i for i, each in enumerate(declared) if each.argument == "token"), 0)
    before, after = (
        [each for each in part if _has_widget(each) and not _in_menu(each)]
        for part in (declared[:at_token], declared[at_token:])
    )
    for each in before:
        chosen[each.argument] = widget(each, run, chosen, bar)
    chosen |= _select(row, run, chosen, panels, declared, bar)
    for panel in panels:
        chosen |= url_state.values(panel, run, chosen)
    if row.view is not None and any(map(_is_field, after)):
        bar = st.container(horizontal=True, vertical_alignment="bottom")
    for each in after:
        widget(each, run, chosen, bar)
    if row.hand.beside is not None:
        with bar:
            row.hand.beside(run, chosen)
    in_menu = [each for each in declared if _in_menu(each) and each.is_there(run, chosen)]
    with bar.popover("View") if in_menu else nullcontext():
        for each in in_menu:
            widget(each, run, chosen)
    return chosen


def _select(
    row: DrawnRow,
    run: Run,
    chosen: Mapping[str, Any],
    panels: Sequence[PanelFunction],
    declared: Sequence[Parameter],
    bar: DeltaGenerator,
) -> dict[str, Any]:
    """The selection on a tab, of what its panels on show declare and else its others, with its
    menus."""
    selection_bar.take()
    parts = row.selection(panels, chosen)
    others = [each for each in declared if not each.is_selected]
    now = url_state.resolve((*parts.values(), *others), run, chosen)
    selected = {**chosen, **{each.argument: now[each.argument] for each in parts.values()}}
    if "stream" in parts:
        names = tuple(each.name for each in run.recording().streams)
        after = partial(url_state.clear, ("token", *row.tab.of_stream))
        controls.pick_stream(names, selected["stream"], after, bar)
    with bar:
        if "attention" in parts and not row.is_open:
            controls.pick_attention(run.recording(), selected["attention"])
        if row.hand.select is not None:
            return selected | row.hand.select(run, selected, {each.name for each in declared})
        shown = {
            name
            for name, each in parts.items()
            if each.choice and each.choice.suits not in (None, EVERY)
        }
        has_every = any(
            each.choice.takes_every
            for each in parts.values()
            if each.choice and each.name == "token"
        )
        selection_bar.draw(run, selected, shown, "every word" if has_every else "")
    return selected


def _folds(
    row: DrawnRow, run: Run, chosen: Mapping[str, Any], declared: Sequence[Parameter]
) -> None:
    """The parts of a tab of which one is open at a time, as `controls.folds`. chosen: the choices
    of the tab, which a part's panels have where they mean the same by them; declared: of which they
    are."""
    tab, hand = row.tab, row.hand
    grouped: dict[str, list[str]] = {}
    for name, fold in tab.folds.items():
        grouped.setdefault(fold.group or name, []).append(name)
    draws = {name: partial(_draw_fold, row, name, run, chosen, declared) for name in tab.folds}
    labels = {
        name: hand.labels[name](run) if name in hand.labels else fold.label
        for name, fold in tab.folds.items()
    }
    labelled = {
        tuple(names): (labels[names[0]], draws[names[0]])
        if group in tab.folds
        else (
            group,
            partial(_draw_group, tab.open_fold, {each: labels[each] for each in names}, draws),
        )
        for group, names in grouped.items()
    }
    controls.folds(tab.open_fold, tab.closed, labelled)


def _draw_group(
    choice: str, labels: Mapping[str, str], draws: Mapping[str, Callable[[], None]]
) -> None:
    """One of several parts, with a button for each."""
    word, first = st.session_state[choice], next(iter(labels))
    name = word if word in labels else first
    pick("Part", labels, bare=True, **bind(choice, f"{choice} of {first}", name))
    draws[name]()


def _draw_fold(
    row: DrawnRow, name: str, run: Run, chosen: Mapping[str, Any], declared: Sequence[Parameter]
) -> None:
    fold = row.tab.folds[name]
    if name in row.hand.folds:
        row.hand.folds[name](run, chosen)
    reasons: set[str] = set()  # why panels are not there, each said once
    for panel in panels_of(fold.panels):
        shared = shared_with(panel, chosen, declared)
        place = st.container(horizontal=True, vertical_alignment="bottom")
        try:
            with st.spinner(fold.wait) if fold.wait else nullcontext():
                drawn = panel(run, **arguments_of(panel, url_state.values(panel, run, shared)))
        except ValueError as why:
            if str(why) not in reasons:
                st.info(literal(str(why)))
            reasons.add(str(why))
            continue
        with place:
            choose(panel, run, shared)
        output.show_panel(drawn, widget_key(panel))


def show(
    panel: PanelFunction,
    run: Run,
    chosen: Mapping[str, Any],
    on_press: Callable[[], None] | None = None,
) -> Panel | None:
    """The panel of a run with those of some choices that it takes, and its table; None where it
    says why it is not there. With a `source` among them, a press in the panel selects the weight of
    another key. on_press: called after a press."""
    if "source" in chosen:
        on_press = partial(selection_bar.take_cell, widget_key(panel), chosen["token"])
    make = partial(panel, run, **arguments_of(panel, chosen))
    return output.show_panel(make, widget_key(panel), on_press)


def widget_key(panel: PanelFunction) -> str:
    """The key of a panel's widget, as "attention head"."""
    return f"{panel.__module__.rpartition('.')[2]} {panel.__name__}".replace("_", " ")


def pressed(panel: PanelFunction) -> dict[str, Any]:
    """The last press in a panel: the choices that its picture gives the cell or the word."""
    return st.session_state[widget_key(panel)].get("select") or {}


def choose(panel: PanelFunction, run: Run, selected: Mapping[str, Any]) -> dict[str, Any]:
    """The choices of a panel by its arguments, with a widget for each that has one; those of
    `selected` are known."""
    chosen = url_state.values(panel, run, selected)
    for each in parameters(panel):
        if each.choice is not None and each.argument not in selected:
            chosen[each.argument] = widget(each, run, chosen)
    return chosen


def _has_widget(parameter: Parameter) -> bool:
    return parameter.choice is not None and bool(parameter.choice.label)


def _in_menu(parameter: Parameter) -> bool:
    return parameter.choice is not None and parameter.choice.menu


def _is_field(parameter: Parameter) -> bool:
    """True for a choice beside the panels whose widget has a label above it: all but few words,
    which stand side by side."""
    options = parameter.choice.options if parameter.choice else ()
    is_few = parameter.kind is str and not callable(options) and 0 < len(options) <= FEW
    return _has_widget(parameter) and not _in_menu(parameter) and not is_few


def widget(
    parameter: Parameter,
    run: Run,
    chosen: Mapping[str, Any],
    container: DeltaGenerator | None = None,
) -> Any:
    """The value of a choice, with its widget: a switch, a row of buttons, a slider over numbers, a
    menu, or a field. One that is made by a press in a picture has none."""
    value = url_state.value(parameter, run, chosen)
    choice, name = parameter.choice, parameter.name
    if choice is None or not choice.label or not parameter.is_there(run, chosen):
        return value
    suited = parameter.suited(run, chosen)
    effective = suited if value == parameter.default else value
    place: Any = st if container is None else container
    clear = partial(url_state.clear, choice.clears) if choice.clears else None
    options = parameter.values(run, chosen)
    if callable(choice.options) and len(options) < 2:
        return value
    if choice.typed is not None:
        _typed_field(parameter, run, options, place)
    elif isinstance(options, range):
        write = lambda each: parameter.word(parameter.default if each == suited else each)
        _number(parameter, options, place, effective, write, clear)
    elif parameter.kind is bool and not isinstance(choice.options, Mapping):
        bound = bind(name, f"{name} on", bool(effective), parameter.word, clear)
        place.toggle(choice.label, help=choice.help or None, **bound)
    elif not choice.options:
        _text_field(parameter, effective, place, clear)
    else:
        _word(parameter, effective, parameter.options(run, chosen), container, clear)
    return value


def _number(
    parameter: Parameter,
    options: range,
    place: Any,
    value: int,
    write: Callable[[Any], str],
    after: Callable[[], None] | None,
) -> None:
    """A slider over whole numbers, or a field for one of many."""
    choice, name = parameter.choice, parameter.name
    if choice is None:
        return
    within = min(max(value, options[0]), options[-1])
    is_slider = len(options) <= MANY
    make = partial(place.slider, width=SLIDER) if is_slider else place.number_input
    bound = bind(name, f"{name} {'slider' if is_slider else 'field'}", within, write, after)
    help = choice.help or None
    make(choice.label, options[0], options[-1], step=options.step, help=help, **bound)


def _text_field(
    parameter: Parameter, value: Any, place: Any, after: Callable[[], None] | None
) -> None:
    """A field for any text, with what stands for an empty one."""
    choice = parameter.choice
    if choice is None:
        return
    place.text_input(
        choice.label,
        key=parameter.name,
        persist_state="session",
        on_change=after,
        placeholder=str(value) or choice.help or None,
        help=choice.help or None,
    )
    if not url_state.fits_address(str(value)):
        st.info(sentences("frame", "text")("fits_no_link", n=len(value)))


def _word(
    parameter: Parameter,
    value: Any,
    options: Mapping[Any, str],
    container: DeltaGenerator | None,
    after: Callable[[], None] | None,
) -> None:
    """A slider over numbers, a menu of what depends on the run or of many words, or a row of
    buttons."""
    choice, name, place = parameter.choice, parameter.name, st if container is None else container
    labels, word = {parameter.word(each): options[each] for each in options}, parameter.word(value)
    if choice is None or not labels:
        return
    help = choice.help or None
    if parameter.kind in (int, float) and not callable(choice.options):
        place.select_slider(
            choice.label,
            tuple(labels),
            format_func=labels.__getitem__,
            width=420,
            help=help,
            **bind(name, f"{name} slider", word, after=after),
        )
    elif callable(choice.options) or len(labels) > FEW:
        selected = word if word in labels else next(iter(labels))
        is_short = parameter.kind is int and max(map(len, labels.values())) <= SHORT
        place.selectbox(
            choice.label,
            tuple(labels),
            format_func=labels.__getitem__,
            width="stretch" if choice.menu else MENU // 2 if is_short else MENU,
            help=help,
            **bind(name, f"{name} menu", selected, after=after),
        )
    else:
        bound: dict[str, Any] = {"key": name, "on_change": after}
        if choice.suits is not None:
            bound = bind(name, f"{name} shown", word, after=after)
        is_bare = not choice.menu
        pick(choice.label, labels, help=help, bare=is_bare, container=container, **bound)


def _typed_field(parameter: Parameter, run: Run, options: Options, place: Any) -> None:
    """A field for a text whose value is taken, or a menu of some values that takes such a text too,
    with a sentence on how it is read. In the menu an option stands after a "#", which nobody
    types."""
    state, choice, name = st.session_state, parameter.choice, parameter.name
    if choice is None:
        return
    word, key = str(state[name]), f"{name} field"
    labels: dict[str, str] = {}
    if isinstance(options, Mapping):
        labels = {f"#{parameter.word(each)}": label for each, label in options.items()}
    bound = {"key": key, "on_change": _take_typed, "args": (parameter, run, tuple(labels))}
    if labels:
        state[key] = f"#{word}"
        place.selectbox(
            choice.label,
            tuple(labels),
            format_func=lambda each: labels.get(each, each),
            accept_new_options=True,
            help=choice.help or None,
            width=240,
            **bound,
        )
    else:
        place.text_input(choice.label, help=choice.help or None, **bound)
    typed, sentence = visit.typed_readings.get(name, ("", ""))
    if sentence and typed == word:
        place.caption(sentence)


def _take_typed(parameter: Parameter, run: Run, options: Sequence[str]) -> None:
    """Store what was chosen in the menu, or the value of what was typed. For a callback."""
    state, choice, name = st.session_state, parameter.choice, parameter.name
    text, sentence = (state[f"{name} field"] or "").strip(), ""
    if not text or text in options or choice is None or choice.typed is None:
        state[name] = text.removeprefix("#")
    else:
        read, sentence = choice.typed(run, text)
        state[name] = parameter.word(read)
    visit.typed_readings = {**visit.typed_readings, name: (state[name], sentence)}
