"""Choices on screen and in the address bar, of all pages, by the same names in both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from time import monotonic
from typing import Any
from urllib.parse import quote

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.app.state import garbage_collection, models
from explorer.app.state.models import is_loaded
from explorer.app.state.settings import MAX_FIELD
from explorer.app.state.visit import ReplacedModel, visit
from explorer.panels import choice, link_words, spec
from explorer.panels.choice import EVERY, Parameter
from explorer.screens import known_words, needs
from explorer.screens.needs import Unmet
from explorer.text import places
from explorer.wording import templates
from explorer.wording.markdown_escape import literal, well_formed
from models.contract.edits import of_any_text
from models.contract.recording import Recording
from models.example_texts import DEFAULT_MODEL, DEFAULT_TEXT
from models.runtime.run import Run

ADDRESS = templates.sentences("frame", "address")


_of_tabs: dict[str, tuple[Parameter, ...]] = {}  # what a tab declares itself, by the tab's function


def declare(tab: str, *choices: Parameter) -> None:
    """Take the choices that a tab declares, beside those of its panels, into the address; its row
    of the table of tabs names those that no panel has (`words`)."""
    _of_tabs[tab] = choices
    declared.cache_clear()
    _every.cache_clear()


@cache
def declared() -> dict[str, dict[str, Parameter]]:
    """The declared choices by their names in the address, of each by who declares it."""
    on_screen = {"every page": choice.parameters(known_words.OnScreen)}
    return choice.by_name(on_screen | spec.choices_by_panel() | _of_tabs)


@cache
def _every() -> dict[str, Parameter]:
    """All choices by their names."""
    return {name: next(iter(by.values())) for name, by in declared().items()}


def names() -> tuple[str, ...]:
    """The names of all choices."""
    return tuple(_every())


def default(name: str) -> str:
    """The word of a choice that an address without it means."""
    return _every()[name].first


def depending_on(*causes: str) -> tuple[str, ...]:
    """The names of the choices that depend on any of these, "text" or "model"."""
    return tuple(name for name, parameter in _every().items() if parameter.of in causes)


# A tab that the chosen model does not fit runs another. While the reader is there, or on a tab with
# the same need, that one is the model on screen, in the frame and in the address; the chosen one
# comes back on the next tab, with what was chosen of it.


def apply_fallback() -> bool:
    """Put a model that fits the page on screen where the chosen one does not, and say whether it
    was; one that is not in memory yet is judged when it is."""
    state = st.session_state
    fallback = visit.replaced_model
    if fallback is not None and not (visit.model == fallback.replacement and _serves(fallback)):
        visit.replaced_model = None  # the reader, or a link, asked for another
    unmet = needs.unmet(visit.page, visit.model)
    if unmet is None or not (replacement := unmet.replacement):
        return False
    choices = tuple((name, str(state[name])) for name in depending_on("text", "model"))
    visit.replaced_model = ReplacedModel(visit.model, replacement, visit.page, visit.text, choices)
    visit.model = replacement
    return True


def _serves(fallback: ReplacedModel) -> bool:
    """True where the tab on screen has the need for which a model is shown instead of another."""
    return places.ROWS[visit.page].needs == places.ROWS[fallback.page].needs


def restore_model() -> bool:
    """Show the chosen model and its choices again on another tab, unless that tab has the same
    need. True where there was one."""
    state = st.session_state
    fallback = visit.replaced_model
    if fallback is not None and visit.model == fallback.replacement and _serves(fallback):
        return False
    visit.replaced_model = None
    if fallback is None or visit.model != fallback.replacement:
        return False
    visit.model = fallback.model
    restored = (
        depending_on("model") if visit.text != fallback.text else depending_on("text", "model")
    )
    for name, value in fallback.chosen:
        state[name] = value if name in restored else ""
    return True


def accept_fallback() -> None:
    """Keep the model on screen in place of the chosen one, because the reader pressed something of
    it."""
    visit.replaced_model = None


def fallback_message() -> tuple[str, str]:
    """The model shown instead of the chosen one and why, and others that fit; ("", "") for none."""
    fallback = visit.replaced_model
    if fallback is None:
        return "", ""
    return Unmet(fallback.page, fallback.model).instead(fallback.replacement)


# Characters of encoded text that browsers, servers and chat programs all pass on.
MAX_ADDRESS = 4000
IN_FLIGHT = 10.0  # seconds in which a browser may still send the address that was replaced
MAX_NUMBERS_LENGTH = 8000  # characters of a list of numbers


OFF = "off"  # the choice of a link that names heads which are switched off
BESIDE_EDITS = "off beside edits"  # such a choice of a link that has `edits` too


def query_parameters() -> dict[str, str]:
    """The parameters in the address bar."""
    parameters = st.query_params.to_dict()
    return {well_formed(name): well_formed(value) for name, value in parameters.items()}


def opening(page: str) -> tuple[str, str]:
    """The text and the model that a bare address of a tab opens."""
    if visit.first_recording[1]:
        return visit.first_recording
    return link_words.opening(page)


def replaced_text() -> str:
    """The text in whose place the tab on screen shows what it opens on; "" where it does not."""
    text, _ = visit.replaced_text
    return text if (visit.text, visit.model) == opening(visit.page) else ""


def take_back_text() -> None:
    """Show the text and the model again in whose place a tab shows what it opens on. For a
    callback."""
    visit.text, visit.model = visit.replaced_text
    visit.replaced_text = "", ""
    forget_head()


def text_and_model(parameters: Mapping[str, str], page: str) -> tuple[str, str]:
    """The text and the model that an address of a tab asks for."""
    text, model = link_words.text_and_model(parameters, page, opening(page))
    return text[:MAX_FIELD], models.canonical_name(model)


def begin(place: str) -> None:
    """Take what the address says into the session, before any widget is made: at the start, and
    when the reader went back or forward. `visit.page` is the tab on screen.

    An address that is not the one last written, in a run that no widget of the frame began, is the
    reader's own doing, unless the browser sent it before it got the one last written. One that the
    reader went back to says all by itself, its tab too. A bare
    address of another `place` than before is a step through the app's own navigation: text and
    choices go along. The bare address stays in the browser's history; going back to it later means
    what it meant then (`bare`, by place).
    """
    garbage_collection.mark_served()
    parameters = query_parameters()
    acted, visit.acted = visit.acted, False
    if visit.wanted_page not in ("", "classroom"):  # there one takes nothing along
        accept_fallback()
    previous = visit.page
    came = not previous or places.place_of(previous) != place
    open_tab = _wanted_tab(place)
    if visit.wanted_text is not None:
        visit.text, visit.wanted_text = well_formed(visit.wanted_text), None
        forget_token()
        acted, visit.acted = True, False
    if visit.wanted_model:
        _take_wanted_model(previous)
        acted = True
    went, visit.went = visit.went or open_tab, False
    run = get_script_run_ctx(suppress_warning=True)
    went_back = getattr(run, "is_history_navigation", False)
    is_own = parameters == visit.written or _is_outdated(parameters)
    known = is_own and not went_back
    visit.begun = parameters
    if (acted or went or known or (came and not parameters)) and visit.written is not None:
        _show_tab(place, visit.tabs.get(place, ""))
        if visit.page != previous:
            _carry_over(previous, acted, came and not parameters)
        return
    if not parameters:
        parameters = visit.back = visit.bare.get(place, parameters)
    _show_tab(place, parameters.get("tab", ""))
    _take_link(parameters, visit.page)


def _is_outdated(parameters: dict[str, str]) -> bool:
    """True for an address that the browser sent before it got the last one: that of a run that
    ended before it wrote its own, or the one that was just replaced."""
    if parameters == visit.begun:
        return True
    replaced, time = visit.replaced
    return parameters == replaced and monotonic() - time < IN_FLIGHT


def _wanted_tab(place: str) -> bool:
    """Note the tab of a press, which is open from now on in its place; True where there was one. In
    another place than the one on screen, a navigation follows."""
    wanted = visit.wanted_page
    if not wanted:
        return False
    visit.tabs = {**visit.tabs, places.place_of(wanted): wanted}
    if places.place_of(wanted) == place:
        visit.wanted_page = ""
    return True


def _show_tab(place: str, tab: str) -> None:
    """The tab of a place that is on screen; the first where it has none of that name."""
    visit.page = places.tab_in(place, tab)
    visit.tabs = {**visit.tabs, place: visit.page}


def _carry_over(previous: str, acted: bool, is_bare: bool) -> None:
    """Carry text, model and choices over from the tab `previous`, unless they are all defaults.
    acted: a press brought them along. is_bare: to the bare address of a place, which means from now
    on what it brought along."""
    state = st.session_state
    page = visit.page
    before, first = places.ROWS[previous].text, places.ROWS[page].text
    is_restored = restore_model()
    chosen = acted or any(state[name] for name in depending_on("text", "model"))
    if not chosen and (visit.text, visit.model) == opening(previous) != opening(page):
        visit.replaced_text = visit.text, visit.model
        visit.text, visit.model = opening(page)
        forget_head()
        visit.acted = False
        if opening(page) == opening(places.first_tab(places.FIRST)):
            visit.replaced_text = "", ""
    elif (state.token and first != DEFAULT_TEXT) or visit.text != before:
        pass  # a word of the text is chosen, or the text itself
    elif before != first:
        visit.text = first
        forget_token()
        visit.acted = False
    if is_bare:
        meaning = link_parameters() if is_restored else visit.written or {}
        visit.bare = {**visit.bare, places.place_of(page): meaning}


def _take_wanted_model(page: str) -> None:
    """Show the model that was chosen or has come, with the choices of the link that named it."""
    visit.model, visit.wanted_model, offered = visit.wanted_model, "", visit.offered_link
    forget_head()
    if visit.model == models.canonical_name(offered.get("model", "")) and _is_text_of(
        offered, page
    ):
        # its model is here, of which its choices are
        _take_choices(link_words.in_todays_words(offered))
    visit.acted = False


def _take_link(parameters: dict[str, str], page: str) -> None:
    """Take text, model and choices as a link has them."""
    visit.written = parameters
    visit.text, visit.model = text_and_model(parameters, page)
    if not models.is_allowed(visit.model):
        visit.unknown_model = visit.model
        visit.model = DEFAULT_MODEL
    # A link alone fetches nothing: the reader is asked first. A page loaded anew fetches nothing.
    if models.needs_asking(visit.model) and not (
        models.is_of_this_browser(visit.model) and is_loaded(visit.model)
    ):
        visit.offered_model, visit.model = visit.model, DEFAULT_MODEL
        visit.offered_link = dict(parameters)
    _take_choices(link_words.in_todays_words(parameters, page))


def _take_choices(parameters: dict[str, str]) -> None:
    """Take every choice as a link has it, in today's words."""
    state = st.session_state.to_dict()  # at once: each look by itself is a look whether to stop
    for name, each in _every().items():
        word = parameters.get(name, each.first)
        if state.get(name) != word:
            st.session_state[name] = word
    visit.linked = parameters
    if heads := parameters.get(OFF):
        name = BESIDE_EDITS if "edits" in parameters else OFF
        visit.refusals = {**visit.refusals, name: heads}


def _is_text_of(link: dict[str, str], page: str) -> bool:
    """True where the text on screen is still that of a link to `page`."""
    return text_and_model(link, page)[0] == visit.text


def clear(names: Iterable[str]) -> None:
    """Choices back to their defaults. For a callback."""
    for name in names:
        st.session_state[name] = default(name)


def forget_token() -> None:
    """Clear what belongs to the last text: its choices, and of the edits those of its places."""
    _forget("text")


def forget_head() -> None:
    """Clear what belongs to the last model, and to the last text as that model read it."""
    visit.offered_model, visit.offered_link = "", {}
    _forget("text", "model")


def _forget(*causes: str) -> None:
    visit.acted = True
    for name in depending_on(*causes):
        st.session_state[name] = ""
    for name in link_words.EDITS:
        before = str(st.session_state.get(name, ""))  # nothing before the first run
        kept = "" if "model" in causes else of_any_text(before)
        if before:
            st.session_state[name] = kept
            visit.edits_left = (visit.page, causes[-1], before, kept)


def take_model(name: str) -> None:
    """Make a model the current one. For callbacks."""
    if name != visit.model:
        visit.model = name
        forget_head()


def follow_words(recording: Recording) -> None:
    """Select the words that a link names, as `link_words.followed`."""
    state = st.session_state
    names = ("attention", "stream", "token", "source")
    words = {name: str(state.get(name, "")) for name in names}
    for name, word in link_words.followed(recording, words).items():
        if word != words[name]:
            state[name] = word
            _mark_followed(name)


def whole_numbers(name: str, below: int) -> tuple[int, ...]:
    """A choice as whole numbers from 0 to `below` - 1, with dots between them. One that is no such
    list is forgotten: ()."""
    value = str(st.session_state.get(name, ""))
    parts = value.split(".") if value else []
    if len(value) <= MAX_NUMBERS_LENGTH and all(
        part.isdecimal() and len(part) < 7 and int(part) < below for part in parts
    ):
        _mark_followed(name)
        return tuple(map(int, parts))
    _refuse(name, value, "")
    return ()


def values(
    function: Callable[..., Any], run: Run, selected: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The choices that a function declares, by its arguments, as the address says them, else what
    suits; those of `selected` are known."""
    return resolve(choice.declared(function), run, selected)


def resolve(
    parameters: Sequence[Parameter], run: Run, known: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Choices by their arguments as the address says them, else what suits, beside those known; a
    word that is refused is forgotten, as by `follow`."""
    asked = [each for each in parameters if each.argument not in (known or {})]
    chosen, refused = choice.resolve(asked, run, link_words.with_key(words()), known)
    follow(asked, refused)
    return chosen


def words() -> dict[str, str]:
    """The choices of the visit that are not their defaults, as words of the address."""
    state = st.session_state.to_dict()  # at once: each look by itself is a look whether to stop
    return {
        name: word
        for name, each in _every().items()
        if (word := str(state.get(name, each.first))) != each.first
    }


def put(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Make the choices of the visit those of an address, where it differs from the one before."""
    for name, each in _every().items():
        if (word := after.get(name, each.first)) != before.get(name, each.first):
            st.session_state[name] = word


def follow(asked: Iterable[Parameter], refused: Mapping[str, str]) -> None:
    """Mark a link's words for these choices as applied, and forget those that are refused, unless
    the words depend on the run and another panel may have it."""
    state, names = st.session_state, {each.name for each in asked}
    if "source" in names and (
        "source" in refused or not link_words.with_key(words()).get("source")
    ):
        state.weight_at = ""  # a cell of another row, or none
    for each in asked:
        name, how = each.name, each.choice
        word = str(state.get(name, each.first))
        is_shared = each.kind is str and len(declared().get(name, ())) > 1
        is_of_run = how is not None and callable(how.options) and is_shared
        if name not in refused:
            if word != each.first:
                _mark_followed(name)
        elif word != EVERY and not is_of_run:
            _refuse(name, word, each.first)


def one_of(name: str, options: tuple[str, ...]) -> str:
    """A choice that must be one of some words; the first where it is none of them."""
    value = st.session_state.get(name)
    if value not in options:
        first = default(name)
        _refuse(name, str(value or ""), first if first in options else options[0])
    _mark_followed(name)
    return st.session_state[name]


def _mark_followed(name: str) -> None:
    """Mark a link's choice as applied, so that later changes count as the reader's."""
    visit.linked.pop(name, None)


def _refuse(name: str, value: str, replacement: str) -> None:
    """Replace an invalid value. The reader gets a message about a link's value when the page is
    drawn."""
    st.session_state[name] = replacement
    if value and visit.linked.pop(name, None) == value:
        visit.refusals = {**visit.refusals, name: value}


def _show_refusals() -> None:
    """Say in one sentence what of a link could not be followed."""
    refusals, visit.refusals = dict(visit.refusals), {}
    messages = []
    if heads := refusals.pop(BESIDE_EDITS, ""):
        messages.append(ADDRESS("off_beside_edits", heads=_quoted(heads)))
    if refusals:
        unmet = (f"{_noun(name, value)} {_quoted(value)}" for name, value in refusals.items())
        messages.append(ADDRESS("unmet", unmet=", ".join(unmet)))
    if messages:
        st.toast(" ".join(messages), icon=":material/link_off:", duration="long")


def _quoted(value: str) -> str:
    """The first letters of a link's word, in quotation marks."""
    return f"“{literal(value[:40])}{'…' if len(value) > 40 else ''}”"


def _noun(name: str, value: str) -> str:
    """The name of a link's choice for a reader: a token that is no number is a word."""
    if name == OFF:
        return "switched-off head"
    return "word" if name in ("token", "source") and not value.isdecimal() else name


def fits_address(text: str) -> bool:
    """True for a text that an address can carry."""
    return len(quote(text.encode("utf-8", "replace"))) <= MAX_ADDRESS


def link_parameters() -> dict[str, str]:
    """The parameters of a link to the current screen: all choices that differ from their
    defaults."""
    state = st.session_state.to_dict()
    text, page = well_formed(visit.text), visit.page
    tab = places.ROWS[page]
    elsewhere = {name for each in places.ROWS.values() if each is not tab for name in each.own}
    chosen = (
        (name, well_formed(word))
        for name, each in _every().items()
        if (word := str(state[name])) != each.first and name not in elsewhere
    )
    parameters = link_words.written({name: word for name, word in chosen if fits_address(word)})
    first, model = opening(page)
    if parameters or (text, visit.model) != (first, model):
        if fits_address(text):
            parameters["text"] = text
        if visit.model != DEFAULT_MODEL or model != DEFAULT_MODEL:
            parameters["model"] = visit.model
    if parameters and tab.views and tab.views.earlier:
        parameters[tab.views.choice] = state[tab.views.choice]
    if page != places.first_tab(places.place_of(page)):
        parameters["tab"] = page
    return parameters


OF_LESSON = ("lesson", "lesson_step", "lesson_word", "covered")


def parameters_without_lesson() -> dict[str, str]:
    """The parameters of a link to the current screen that follows no lesson, its text and model in
    any case."""
    own = {name: word for name, word in link_parameters().items() if name not in OF_LESSON}
    return {"text": well_formed(visit.text), "model": visit.model, **own}


def lead_to(tab: str) -> dict[str, str]:
    """The address of a tab that a press leads to, noted as written by the app. Without it Back
    would first come to the tab's bare address."""
    if tab == "classroom":
        return {}
    page, visit.page = visit.page, tab
    visit.written = link_parameters()
    visit.page = page
    return visit.written


def write() -> None:
    """Write the choices on screen into the address bar, so that the link opens the same
    elsewhere."""
    garbage_collection.mark_served()
    parameters, current = link_parameters(), st.query_params.to_dict()
    if parameters != current and (current or parameters != visit.back):
        visit.replaced = query_parameters(), monotonic()
        st.query_params.from_dict(parameters)
    visit.written = parameters
    visit.begun = None
    visit.acted = False  # what was pressed is in the address now
    _show_refusals()
