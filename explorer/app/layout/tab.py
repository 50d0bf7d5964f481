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

from explorer.app.layout import controls, current_recording, navigation, output, selection_bar
from explorer.app.layout.controls import bind, pick
from explorer.app.state import url_state
from explorer.app.state.visit import visit
from explorer.panels.choice import EVERY, Options, Parameter, arguments_of, declared
from explorer.panels.spec import Panel
from explorer.screens.rows import PanelFunction, Row, arguments_of_all, panels_of
from explorer.screens.screen import Screen, at_first, name_of, row_of, screen_of
from explorer.screens.subjects import SUBJECTS
from explorer.text import places
from explorer.text.places import Tab, Views
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models.runtime.run import Run

FEW = 6  # options that stand side by side; more are a menu
MANY = 1024  # whole numbers on a slider; more are typed
SLIDER, MENU = 260, 320  # pixels
SHORT = 16  # letters of a label that a narrow menu holds


@dataclass(frozen=True)
class Hand:
    """All that is drawn by hand on a tab, of its screen.

    read: as of `current_recording.tab`, where it is not the text on screen with what the row reads
    of it. top: draws into the bar at the top what its subject is chosen by, from the run that was
    read and the choices that the subject declares. made: draws the same, and gives what stands in
    the place of a subject: the run that the panels are of, with the arguments that are known by
    then; for None nothing stands there. A ValueError of both is said in place of the panels.
    select: draws the selection. instead: draws what stands in place of the panels for now, and says
    whether something does. offered: draws what stands between the first panel and the menus. beside
    and below: draw what else stands beside the choices, and in place of the panels below where all
    of the tab's are there. folds: by their names, what draws parts of the tab; labels: what they
    are called, by the run. fits: by the tab that a lead is to, for which runs it is there.
    for_classes: the same of the row that a classifier of texts has."""

    read: Callable[[], Run | None] | None = None
    top: Callable[..., None] | None = None
    made: Callable[[Run, DeltaGenerator], tuple[Run, Mapping[str, Any]] | None] | None = None
    select: Callable[[Screen], None] | None = None
    instead: Callable[[Screen], bool] | None = None
    offered: Callable[[Screen], None] | None = None
    beside: Callable[[Screen], None] | None = None
    below: Callable[[Screen], None] | None = None
    folds: Mapping[str, Callable[[Screen], None]] = field(default_factory=dict)
    labels: Mapping[str, Callable[[Run], str]] = field(default_factory=dict)
    fits: Mapping[str, Callable[[Run], bool]] = field(default_factory=dict)
    for_classes: Hand | None = None


NOTHING = Hand()
VIEWS: dict[str, Callable[[], None]] = {}  # what draws each tab, by its id


def by_hand(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Make a function what draws all of a tab."""

    def decorate(draw: Callable[[], None]) -> Callable[[], None]:
        VIEWS[name] = draw
        return draw

    return decorate


def view(name: str, hand: Hand = NOTHING) -> None:
    """Have a tab drawn by its row of the table."""
    tab = places.ROWS[name]
    row = Row(tab)
    for each in (row.fold, row.view):
        if each is not None:
            url_state.declare(each.name, each)
    if subject := SUBJECTS.get(tab.subject):
        url_state.declare(subject.__name__, *declared(subject))
    edited, typed = (each in tab.reads for each in ("edits", "target"))

    @by_hand(name)
    @current_recording.tab(
        hand.read or partial(current_recording.read_current, edited=edited, typed=typed)
    )
    def draw_tab(run: Run) -> None:
        of_run = row_of(tab, run)
        _draw(of_run, hand if of_run is tab else hand.for_classes or NOTHING, run)


def _draw(tab: Tab, hand: Hand, run: Run) -> None:
    alignment: Literal["bottom", "center"] = "bottom" if _has_fields(tab) else "center"
    top = lead_room()
    bar = st.container(horizontal=True, vertical_alignment=alignment)
    with st.spinner(tab.wait) if tab.wait else nullcontext():
        try:
            shown = _screen(tab, hand, run, bar)
        except ValueError as why:
            st.info(literal(str(why)))
            return
        if shown is None or not _choices(shown, hand, bar):
            return
        first, *others = shown.on_show
        with top:
            drawn = [_show(shown, first)]
            if hand.offered is not None:
                hand.offered(shown)
        is_whole = all(drawn + [_show(shown, panel) for panel in others])
    tab = shown.tab
    if is_whole:
        (hand.below or partial(parts, names=tab.below))(shown)
    if tab.folds or tab.leads or tab.alone:
        with output.links("of tab"):
            _lead_of_alone(tab)
            for to, lead in tab.leads.items() if is_whole else ():
                if to not in hand.fits or hand.fits[to](run):
                    at = {name: shown.chosen[name] for name in lead.keeps if name in shown.chosen}
                    navigation.link(to, lead.label, {**at, **shown.known, **lead.choices})
            _folds(shown, hand)


def lead_room() -> DeltaGenerator:
    """The room of a tab's finding and its picture, above the menus."""
    return st.container(key="lead")


def _lead_of_alone(tab: Tab) -> None:
    """A button that leads from the panels that a tab opens on to its own ones, and back."""
    alone = tab.alone
    if alone is None or not alone.is_there:
        return
    is_on_show = tab.panels == alone.panels
    closed = places.TABS[tab.id].closed
    word, label = (alone.others, alone.label) if is_on_show else (closed, alone.back)
    args = tab.open_fold, word
    st.button(label, key="of alone", type="tertiary", on_click=_open_part, args=args)


def _open_part(choice: str, word: str) -> None:
    """The part of a tab that a word names is open. For a callback."""
    st.session_state[choice] = word


def _has_fields(tab: Tab) -> bool:
    """True where a widget at its top has a label above it."""
    row, subject = Row(tab), SUBJECTS.get(tab.subject)
    if subject is not None and any(map(_has_widget, declared(subject))):
        return True
    return row.view is None and any(map(_is_field, row.arguments))


def _screen(tab: Tab, hand: Hand, run: Run, bar: DeltaGenerator) -> Screen | None:
    """The screen of the visit's words, once what was pressed in the selection's menus is in them;
    None for a tab that has nothing to show yet. Raises ValueError as `screen_of`."""
    subject, made = SUBJECTS.get(tab.subject), None
    if hand.made is not None:
        selection_bar.take()
    elif words := selection_bar.pressed():
        before = screen_of(tab, run, url_state.words())
        url_state.put(before.words(), before.after("", words))
    words = url_state.words()
    url_state.put(words, {**words, **at_first(tab, run, words)})
    if hand.top is not None:
        hand.top(run, bar, **(url_state.values(subject, run) if subject else {}))
    if hand.made is not None and (made := hand.made(run, bar)) is None:
        return None
    shown = screen_of(tab, run, url_state.words(), made)
    url_state.follow(shown.asked, shown.refused)
    return shown


def _pick_view(shown: Screen, views: Views, bar: DeltaGenerator) -> None:
    """The buttons of the views, and of those of the group of the one on show; of views with an
    index the way back to it."""
    name, labels, choice = shown.view, shown.row.labels, views.choice
    if views.index:
        if name == views.index:
            return
        bar.button(
            labels[views.index],
            key=f"{choice} index",
            type="tertiary",
            icon=":material/arrow_back:",
            on_click=_show_index,
            args=(choice, views.index),
        )
        labels = {each: label for each, label in labels.items() if each != views.index}
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


def _show_index(choice: str, index: str) -> None:
    st.session_state[choice] = index


def _choices(shown: Screen, hand: Hand, bar: DeltaGenerator) -> bool:
    """The notes, and the widgets of the selection and of the panels' choices, beside those known,
    in the order of the signatures; below views sliders and fields have a line of their own. The
    View menu is last. False where something else stands in the place of the panels."""
    run, chosen = shown.run, shown.chosen
    for note in shown.notes:
        st.warning(literal(note))
    if shown.tab.views is not None:
        _pick_view(shown, shown.tab.views, bar)
    if not shown.on_show:  # the index of the others
        return hand.instead is None or not hand.instead(shown)
    every = [each for each in arguments_of_all(shown.on_show) if each.argument not in shown.known]
    at_token = next((i for i, each in enumerate(every) if each.argument == "token"), 0)
    before, after = (
        [each for each in part if _has_widget(each) and not _in_menu(each)]
        for part in (every[:at_token], every[at_token:])
    )
    for each in before:
        widget(each, run, chosen, bar)
    _select(shown, hand, bar)
    if shown.view and any(map(_is_field, after)):
        bar = st.container(horizontal=True, vertical_alignment="bottom")
    for each in after:
        widget(each, run, chosen, bar)
    if hand.beside is not None:
        with bar:
            hand.beside(shown)
    in_menu = [each for each in every if _in_menu(each) and each.is_there(run, chosen)]
    with bar.popover("View") if in_menu else nullcontext():
        for each in in_menu:
            widget(each, run, chosen)
    return hand.instead is None or not hand.instead(shown)


def _select(shown: Screen, hand: Hand, bar: DeltaGenerator) -> None:
    """The menus of the selection."""
    run, chosen, parts = shown.run.covering(shown.covered), shown.chosen, shown.selection
    there = {name: each for name, each in parts.items() if each.is_there(run, chosen)}
    if "stream" in there:
        names = tuple(each.name for each in run.recording().streams)
        after = partial(url_state.clear, shown.tab.of_stream)
        controls.pick_stream(names, chosen["stream"], after, bar)
    with bar:
        if "attention" in there and not shown.row.is_open:
            controls.pick_attention(run.recording(), chosen["attention"])
        if hand.select is not None:
            hand.select(shown)
            return
        menus = {
            name
            for name, each in there.items()
            if each.choice and each.choice.suits not in (None, EVERY)
        }
        token = parts.get("token")
        has_every = token is not None and token.choice is not None and token.choice.takes_every
        selection_bar.draw(run, chosen, menus, "every word" if has_every else "")


def _folds(shown: Screen, hand: Hand) -> None:
    """The parts of a tab of which one is open at a time, as `controls.folds`."""
    tab = shown.tab
    grouped: dict[str, list[str]] = {}
    for name, fold in tab.folds.items():
        grouped.setdefault(fold.group or name, []).append(name)
    draws = {name: partial(_draw_fold, shown, hand, name) for name in tab.folds}
    labels = {
        name: hand.labels[name](shown.run) if name in hand.labels else fold.label
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


def _draw_fold(shown: Screen, hand: Hand, name: str) -> None:
    fold = shown.tab.folds[name]
    if name in hand.folds:
        hand.folds[name](shown)
    parts(shown, fold.panels, fold.wait)


def parts(shown: Screen, names: Sequence[str], wait: str = "") -> None:
    """Panels below those of a tab, each with the widgets of the choices that are its own. wait:
    said while they are made."""
    reasons: set[str] = set()  # why panels are not there, each said once
    for panel in panels_of(names):
        part = shown.part(panel)
        url_state.follow(part.own, part.refused)
        place = st.container(horizontal=True, vertical_alignment="bottom")
        try:
            with st.spinner(wait) if wait else nullcontext():
                drawn = part.make()
        except ValueError as why:
            if str(why) not in reasons:
                st.info(literal(str(why)))
            reasons.add(str(why))
            continue
        with place:
            for each in part.own:
                widget(each, shown.run, part.chosen)
        output.show_panel(drawn, widget_key(panel), partial(_press, shown, panel))


def _show(shown: Screen, panel: PanelFunction) -> Panel | None:
    """A panel of a screen, as `show`."""
    make = partial(panel, shown.run, **arguments_of(panel, shown.chosen))
    return output.show_panel(make, widget_key(panel), partial(_press, shown, panel))


def _press(shown: Screen, panel: PanelFunction, pressed: Mapping[str, object]) -> None:
    """The visit's words after a press in a panel; one that answers the question that stands is of
    the whole page."""
    visit.new_run |= shown.covered != shown.run.covered
    url_state.put(shown.words(), shown.after(name_of(panel), pressed))


def show(
    panel: PanelFunction,
    run: Run,
    chosen: Mapping[str, Any],
    on_press: Callable[[], None] | None = None,
) -> Panel | None:
    """The panel of a run with those of some choices that it takes, and its table; None where it
    says why it is not there. on_press: called after a press."""
    make = partial(panel, run, **arguments_of(panel, chosen))

    def take_and_call(pressed: Mapping[str, object]) -> None:
        output.put_pressed(pressed)
        if on_press is not None:
            on_press()

    return output.show_panel(make, widget_key(panel), take_and_call)


def widget_key(panel: PanelFunction) -> str:
    """The key of a panel's widget, as "attention head"."""
    return f"{panel.__module__.rpartition('.')[2]} {panel.__name__}".replace("_", " ")


def choose(panel: PanelFunction, run: Run, selected: Mapping[str, Any]) -> dict[str, Any]:
    """The choices of a panel by its arguments, with a widget for each that has one; those of
    `selected` are known."""
    chosen = url_state.values(panel, run, selected)
    for each in declared(panel):
        if each.argument not in selected:
            widget(each, run, chosen)
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
) -> None:
    """The widget of a choice, which is made: a switch, a row of buttons, a slider over numbers, a
    menu, or a field. One that is made by a press in a picture has none."""
    value, choice, name = chosen[parameter.argument], parameter.choice, parameter.name
    if choice is None or not choice.label or not parameter.is_there(run, chosen):
        return
    suited = parameter.suited(run, chosen)
    effective = suited if value == parameter.default else value
    place: Any = st if container is None else container
    clear = partial(url_state.clear, choice.clears) if choice.clears else None
    options = parameter.values(run, chosen)
    if callable(choice.options) and len(options) < 2:
        return
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
        placeholder=str(value) or None,
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
