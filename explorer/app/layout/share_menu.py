"""The Share menu: the address of what is on screen, its headline as a picture card, and a loop of
the flow."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

import streamlit as st

from explorer.app import mounts
from explorer.app.layout import current_recording, export_menu, own_lesson
from explorer.app.state import url_state
from explorer.app.state.visit import visit
from explorer.panels import architecture, card, corpus, flow_beam
from explorer.panels.choice import arguments_of
from explorer.panels.spec import Panel
from explorer.screens.subjects import under_edits
from explorer.text import places
from explorer.wording.templates import sentences
from models.runtime.run import Run

WORDS = sentences("frame", "share")
FLOW = "flow"  # the tab
OF_THIS_COMPUTER = ("localhost", "127.0.0.1", "::1")


def menu() -> Any:
    """The menu's button. What it holds is put into it by `fill`, after the page."""
    return st.popover(
        "Share",
        icon=":material/share:",
        type="tertiary",
        width="content",
        key="share",
        on_change="rerun",
    )


def fill(room: Any) -> None:
    """Fill the menu, if it is open. The loop is made when it is asked for: a large model's takes
    seconds."""
    if not room.open:
        return
    with room:
        link = _address()
        run = _run()
        selected = url_state.values(card.headline, run)
        panels, why = {}, ""
        try:
            panels["card"] = _card(run, selected)
            if visit.loop_of == panels["card"].token:
                with st.spinner(WORDS("loop")):
                    whole = {**selected, "level": architecture.MODEL, "beam": flow_beam.END}
                    panels["flow"] = _panel_of(architecture.flow, run, whole)
        except ValueError as reason:  # the model shows too little
            why = str(reason)
        ask = partial(_ask_for_loop, panels["card"].token if panels else "")
        payloads = {name: panel.bare for name, panel in panels.items()}
        mounts.share(link, payloads, why, "share pictures", ask)
        _offer_to_lesson()
        _show_link(link)


def _offer_to_lesson() -> None:
    """The press that makes what is on screen a step of the reader's own lesson."""
    tab, panels = visit.page, export_menu.panels_on_page()
    if not places.ROWS[tab].is_step:
        return
    panel = own_lesson.main_panel(each.name for each in panels)
    finding = next((each.finding for each in panels if each.name == panel), "")
    st.button(
        WORDS("to_lesson"),
        key="add to lesson",
        type="tertiary",
        icon=":material/playlist_add:",
        disabled=not visit.lessons_read,  # till then it would begin another one
        on_click=own_lesson.add,
        args=(tab, finding, panel),
    )


def _ask_for_loop(token: str) -> None:
    """The loop of what the card of this token is of is wanted."""
    visit.loop_of = token


def _address() -> str:
    """The address of what is on screen."""
    query = urlencode(url_state.link_parameters())
    page = st.context.url or ""
    at = page if urlsplit(page).path or not page else f"{page}/"
    return f"{at}{'?' + query if query else ''}"


def _show_link(link: str) -> None:
    """The address in words, with a note on what it does not contain and where it does not lead."""
    state = st.session_state
    typed = visit.sentences or corpus.EXAMPLE_LINES
    is_absent = typed not in (corpus.EXAMPLE_LINES, state.many_text)
    st.code(link, language=None, wrap_lines=True)
    st.caption(WORDS("same_link_without_list" if is_absent else "same_link"))
    if urlsplit(link).hostname in OF_THIS_COMPUTER:
        st.caption(WORDS("this_computer"))


def _run() -> Run:
    """The text on screen under the edits of Take out, without these where it cannot follow
    them."""
    run = current_recording.run_on_screen(current_recording.typed_target(visit.model))
    return under_edits(run, str(st.session_state.edits))[0]


def _card(run: Run, selected: dict[str, Any]) -> Panel:
    """The card of what is on screen: of the whole machine, once its light is on, what the model
    says."""
    on = url_state.values(architecture.flow, run)
    if visit.page == FLOW and on["beam"] and on["level"] == architecture.MODEL:
        with suppress(ValueError):  # it says nothing, or no word can be taken out
            return _panel_of(card.answer, run, on)
    return _panel_of(card.headline, run, selected)


def _panel_of(panel: Any, run: Run, selected: dict[str, Any]) -> Panel:
    """A panel of what is selected. Raises ValueError where the model shows too little for it."""
    return panel(run, **arguments_of(panel, url_state.values(panel, run, selected)))
