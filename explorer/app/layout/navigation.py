"""The frame's places and tabs: Streamlit's objects for them, the way to another tab, and the mark.
Files are looked for once and not in every run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import streamlit as st

from explorer.app.layout.controls import pick
from explorer.app.state import url_state
from explorer.app.state.visit import visit
from explorer.screens import needs
from explorer.text import places
from explorer.text.places import Tab
from explorer.wording.templates import sentences

APP = Path(__file__).resolve().parents[1]
PAGES = APP.parents[1] / "pages"


@cache
def mark() -> str:
    """The app's mark as an address that holds it whole, as Streamlit itself would make it."""
    svg = (APP / "static" / "headlight.svg").read_bytes()
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def pages() -> dict[str, Any]:
    """Every place by its name, for one run: Streamlit marks them while they run."""
    return {name: copy(page) for name, page in _all_pages().items()}


@cache
def _all_pages() -> Mapping[str, Any]:
    return {
        name: st.Page(
            PAGES / f"{name}.py",
            title=place.title,
            url_path=name,
            default=name == places.FIRST,
            visibility="visible" if place.icon else "hidden",
        )
        for name, place in places.PLACES.items()
    }


def show_places(pages: Mapping[str, Any]) -> None:
    """The places as a bar at the foot of a phone's window, where Streamlit hides its own menu."""
    with st.container(horizontal=True, key="places bar", gap=None):
        for name, place in places.PLACES.items():
            if place.icon:
                icon = f":material/{place.icon}:"
                st.page_link(pages[name], label=place.title, icon=icon)


def show_tabs(views: Mapping[str, Callable[[], None]]) -> None:
    """The tabs of the place on screen, and in the open one what it shows, which alone is computed.
    views: what draws each row, by its id."""
    state = st.session_state
    place, tab = places.place_of(visit.page), places.tab_of(visit.page)
    # Another model that a tab is shown for renames no other tab.
    chosen = visit.replaced_model.model if visit.replaced_model else visit.model
    titles = {each.id: needs.title(each, chosen) for each in places.PLACES[place].tabs}
    key = f"tabs of {place}"
    state[key] = titles[tab.id]
    tabs = st.tabs(list(titles.values()), key=key, on_change=_take_tab, args=(key, place))
    with tabs[list(titles).index(tab.id)]:
        pick_row(tab)
        explain_selection()
        unmet = needs.unmet(visit.page, visit.model)
        if unmet is not None and not unmet.replacement:
            st.info(unmet.sentence)
            url_state.write()
        else:
            views[visit.page]()


def pick_row(tab: Tab) -> None:
    """The buttons of what a tab shows beside each other, of which one is on screen, as far as they
    fit the model."""
    labels = {
        row: label
        for row, label in places.labels(tab).items()
        if row == visit.page or needs.unmet(row, visit.model) is None
    }
    if len(labels) > 1:
        key = f"rows of {tab.id}"
        st.session_state[key] = visit.page
        with st.container(key="rows", width="content"):
            pick(tab.title, labels, key, bare=True, on_change=_take_row, args=(key,))


def explain_selection() -> None:
    """On a tab that has no use for what is selected: why, and the way to the nearest that has."""
    state, row = st.session_state, places.ROWS[visit.page]
    if not row.nearest or not any(state[name] for name in row.unused):
        return
    words, nearest = sentences("frame", "unselected"), places.TABS[row.nearest]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(words(visit.page), width="content")
        label = words("nearest", tab=nearest.title)
        st.button(label, key="to nearest", type="tertiary", on_click=_want, args=(nearest.id,))


def _want(tab: str) -> None:
    visit.page = visit.wanted_page = tab
    url_state.restore_model()


def _take_tab(key: str, place: str) -> None:
    label = st.session_state[key]
    every = places.PLACES[place].tabs
    _open(next(tab.id for tab in every if label in (tab.title, *tab.titles.values())))


def _take_row(key: str) -> None:
    _open(st.session_state[key])


def _open(row: str) -> None:
    visit.tabs = {**visit.tabs, places.place_of(row): row}
    visit.went = True


def go(tab: str) -> NoReturn:
    """Go to a tab, under the choices that are already taken."""
    visit.wanted_page = tab
    st.rerun(scope="app")


def follow_press() -> None:
    """Go to the tab that a press below the bar leads to, where there was one. A press there draws
    that part of the page alone, which calls this."""
    if tab := visit.tab_of_press:
        visit.tab_of_press = ""
        go(tab)


def link(tab: str, label: str, choices: Mapping[str, object], key: str = "") -> None:
    """A link to a tab under what is on screen and these choices; a button where the text is too
    long for an address, which takes them along in the session. key: tells this link from others to
    the tab."""
    words = {name: "" if value is None else str(value) for name, value in choices.items()}
    if url_state.fits_address(visit.text):
        at = {**url_state.link_parameters(), **words, "tab": tab}
        st.page_link(
            f"../../pages/{places.place_of(tab)}.py",
            label=label,
            icon=":material/arrow_forward:",
            query_params={name: word for name, word in at.items() if word},
        )
    elif st.button(
        label, key=f"way to {tab}{key}", type="tertiary", on_click=_take_choices, args=(words,)
    ):
        go(tab)


def address_of(tab: str, choices: Mapping[str, str]) -> str:
    """The address, path and query, of a tab under what is on screen and these choices; "" where the
    text is too long for one."""
    if not url_state.fits_address(visit.text):
        return ""
    at = {**url_state.link_parameters(), "text": visit.text, "model": visit.model, **choices}
    own = {name: word for name, word in at.items() if word and name != "tab"}
    return places.address(tab, own)


def _take_choices(words: Mapping[str, str]) -> None:
    for name, word in words.items():
        st.session_state[name] = word
