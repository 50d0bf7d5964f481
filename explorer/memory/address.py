"""What is on screen and what the address bar says of it: the choices of all pages, by the same
names in both."""

from __future__ import annotations

from urllib.parse import quote

import streamlit as st

from explorer.memory import choices, collector, instead, offered
from explorer.memory.choices import default
from explorer.memory.models import DEFAULT_MODEL, is_loaded
from explorer.memory.settings import LONGEST_FIELD, well_formed
from explorer.sentences.escape import literal
from models import library
from models.examples import DEFAULT_TEXT, EXAMPLES

LONGEST_ADDRESS = (
    4000  # characters of encoded text that browsers, servers and chat programs all pass on
)

# What a page opens on where no text is asked for: Translation on one that its small model gets
# right.
FIRST_TEXTS = {"translation": EXAMPLES["Red car"]}
# Pages that a button of the frame leads to: it takes nothing along.
ASIDE = ("classroom", "sentences")
MOST_NUMBERS = 8000  # characters of a list of numbers


def shown() -> dict[str, str]:
    """What the address bar says."""
    said = st.query_params.to_dict()
    return {well_formed(name): well_formed(value) for name, value in said.items()}


def first_text(page: str) -> str:
    """The text that a page opens on."""
    return FIRST_TEXTS.get(page, DEFAULT_TEXT)


def begin(page: str) -> None:
    """Take what the address says into the session, before any widget is made: at the start, and
    when the reader went back or forward.

    An address that is not the one last written, in a run that no widget of the frame began, is the
    reader's own doing. A bare address on another `page` than before is a step through the app's own
    navigation: text and choices go along. The bare address stays in the browser's history; going
    back to it later means what it meant then (`bare`).
    """
    collector.served()
    state = st.session_state
    asked = shown()
    acted = state.pop("acted", False)
    if state.get("wanted_page") not in (None, *ASIDE):
        instead.keep()
    if "wanted_text" in state:
        state.text = well_formed(state.pop("wanted_text"))
        forget_token()
        acted = state.pop("acted")
    if "wanted_model" in state:
        state.model, link = state.pop("wanted_model"), state.get("offered_link", {})
        forget_head()
        if state.model == library.spelled(link.get("model", "")) and _is_text_of(link, page):
            _choose(link)  # the model that a link asked for is here: its choices are of that model
        state.pop("acted")
        acted = True
    before = state.get("page", page)
    moved, state.page = "page" not in state or before != page, page
    if "written" in state and moved and not asked:
        if state.text == first_text(before) != first_text(page):  # nobody has chosen it
            state.text = first_text(page)
            forget_token()
            del state.acted
        state.bare = wanted() if instead.bring_back() else state.written
        return
    if "written" in state and (acted or asked == state.written):
        return
    if not asked:
        asked = state.back = state.get("bare", asked)
    state.written = asked
    state.text = asked.get("text", first_text(page))[:LONGEST_FIELD]
    state.model = asked.get("model", DEFAULT_MODEL)
    state.model = library.spelled(state.model)
    if not offered.is_allowed(state.model):
        state.unknown_model = state.model
        state.model = DEFAULT_MODEL
    # A link alone fetches nothing: the reader is asked first. A page loaded anew fetches nothing.
    is_mine = offered.is_of_this_browser(state.model) and is_loaded(state.model)
    if offered.needs_asking(state.model) and not is_mine:
        state.offered_model, state.model = state.model, DEFAULT_MODEL
        state.offered_link = dict(asked)
    _choose(asked)


def _choose(asked: dict[str, str]) -> None:
    """Take every choice as a link has it."""
    held = st.session_state.to_dict()  # at once: each look by itself is a look whether to stop
    for name in choices.names():
        value = asked.get(name, default(name))
        if name not in held or held[name] != value:
            st.session_state[name] = value
    st.session_state.linked = dict(asked)


def _is_text_of(link: dict[str, str], page: str) -> bool:
    """True where the text on screen is still the one that a link to `page` asked for."""
    return link.get("text", first_text(page))[:LONGEST_FIELD] == st.session_state.text


def forget_token() -> None:
    """Another text: what was chosen of the last one means nothing there."""
    st.session_state.acted = True
    for name in choices.of("text"):
        st.session_state[name] = ""


def forget_head() -> None:
    """Another model: what was chosen of the last one means nothing there."""
    for offer in ("offered_model", "offered_link"):
        st.session_state.pop(offer, None)
    st.session_state.acted = True
    for name in choices.of("text", "model"):
        st.session_state[name] = ""


def whole(name: str, below: int) -> int | None:
    """A choice as a whole number from 0 to `below` - 1. One that is no such number is forgotten:
    None."""
    value = str(st.session_state.get(name, ""))
    if value.isdecimal() and len(value) < 6 and int(value) < below:
        _follow(name)
        return int(value)
    _refuse(name, value, "")
    return None


def numbers(name: str, below: int) -> tuple[int, ...]:
    """A choice as whole numbers from 0 to `below` - 1, with dots between them. One that is no such
    list is forgotten: ()."""
    value = str(st.session_state.get(name, ""))
    parts = value.split(".") if value else []
    if len(value) <= MOST_NUMBERS and all(
        part.isdecimal() and len(part) < 7 and int(part) < below for part in parts
    ):
        _follow(name)
        return tuple(map(int, parts))
    _refuse(name, value, "")
    return ()


def one_of(name: str, options: tuple[str, ...]) -> str:
    """A choice that must be one of some words; the first where it is none of them."""
    value = st.session_state.get(name)
    if value not in options:
        first = default(name)
        _refuse(name, str(value or ""), first if first in options else options[0])
    _follow(name)
    return st.session_state[name]


def _follow(name: str) -> None:
    """What a link asked for here could be followed: what becomes of it later is the reader's
    doing."""
    st.session_state.get("linked", {}).pop(name, None)


def _refuse(name: str, value: str, instead: str) -> None:
    """Put another value in the place of one that cannot be; what a link asked for is told to the
    reader when the page stands."""
    st.session_state[name] = instead
    if value and st.session_state.get("linked", {}).pop(name, None) == value:
        st.session_state.setdefault("refusals", {})[name] = value


def _tell() -> None:
    """Say in one sentence what of a link could not be followed."""
    refusals = st.session_state.pop("refusals", {})
    if refusals:
        asked = ", ".join(
            f"{name} “{literal(value[:40])}{'…' if len(value) > 40 else ''}”"
            for name, value in refusals.items()
        )
        st.toast(
            f"The link asks for {asked}, which this text and model do not have; the page is "
            "shown without.",
            icon=":material/link_off:",
            duration="long",
        )


def fits_address(text: str) -> bool:
    """True for a text that an address can carry."""
    return len(quote(text.encode("utf-8", "replace"))) <= LONGEST_ADDRESS


def wanted() -> dict[str, str]:
    """What an address has to say, so that it opens what is on screen: all that is not as it is by
    itself."""
    state = st.session_state.to_dict()
    chosen = ((name, well_formed(str(state[name]))) for name in choices.names())
    asked = {
        name: value for name, value in chosen if value != default(name) and fits_address(value)
    }
    text = well_formed(state["text"])
    if text != first_text(state["page"]) and fits_address(text):
        asked["text"] = text
    if state["model"] != DEFAULT_MODEL:
        asked["model"] = state["model"]
    return asked


def write() -> None:
    """Write what is on screen into the address bar, so that the link opens the same elsewhere."""
    collector.served()
    state = st.session_state
    asked, now = wanted(), st.query_params.to_dict()
    if asked != now and (now or asked != state.get("back")):
        st.query_params.from_dict(asked)
    state.written = asked
    _tell()
