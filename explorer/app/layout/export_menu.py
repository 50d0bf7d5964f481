"""The Export menu: everything that leaves a page, in one place on every page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

from explorer.app import mounts
from explorer.app.layout import current_recording
from explorer.app.state import models, url_state
from explorer.app.state.url_state import MAX_ADDRESS
from explorer.app.state.visit import visit
from explorer.panels import attention
from explorer.panels.address import address_of
from explorer.panels.spec import Panel, document, python
from explorer.text import places
from explorer.wording.markdown_escape import literal
from models.runtime.run import Run


def base_address(page: str) -> str:
    """The address of this Headlight, without the place's own name."""
    where = urlsplit(st.context.url or "")
    path = where.path.removesuffix("/").removesuffix(places.place_of(page))
    return f"{where.scheme}://{where.netloc}{path}" if where.scheme else ""


@dataclass(frozen=True)
class File:
    """A file that a page offers: its name, its kind, and what makes it, which may hold arrays for
    as long as a run lasts."""

    label: str
    name: str
    mime: str
    make: Callable[[], Any]


class _MenuState(threading.local):
    """The entries of the export menu in this thread's run: files, panels, and lines of Python in
    the place of those that make the panels."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.panels: list[Panel] = []
        self.code = ""


_menu_state = _MenuState()


def begin() -> None:
    """Clear the entries of the last run."""
    _menu_state.files, _menu_state.panels, _menu_state.code = {}, [], ""


def offer(label: str, name: str, mime: str, make: Callable[[], Any]) -> None:
    """Put a file of the page into the menu, in place of one of the same name."""
    _menu_state.files[name] = File(label, name, mime, make)


def offer_panel(panel: Panel) -> None:
    """Put a panel of the page into the menu: its file and its Python."""
    _menu_state.panels.append(panel)


def panels_on_page() -> list[Panel]:
    """The panels that the page has shown so far."""
    return _menu_state.panels


def offer_code(lines: str) -> None:
    """Put lines of Python into the menu, where a page shows what no panel's call makes again."""
    _menu_state.code = lines


def menu() -> Any:
    """The menu's button, for the line at the top. What it holds is put into it by `fill`, after the
    page."""
    return st.popover(
        "Export",
        icon=":material/download:",
        type="tertiary",
        help="Picture, numbers, one HTML file, Python",
        key="export menu",
        on_change="rerun",
        width="content",
    )


def fill(room: Any, page: str) -> None:
    """Fill the menu, if it is open. The page has run, so everything that it offers is known."""
    files, panels, code = list(_menu_state.files.values()), _menu_state.panels, _menu_state.code
    begin()
    if not room.open:
        return
    try:
        panels = panels or all_heads()
    except ValueError as reason:  # a layer that a link names and this model does not have
        room.info(literal(str(reason)))
        return
    with room:
        st.markdown("**Pictures of this page**")
        mounts.picture_list(_addresses(panels), "export pictures")
        st.markdown("**Numbers and pages**")
        with st.container(horizontal=True, gap="small"):
            for at, file in enumerate(files):
                _button(literal(file.label), file, f"export {at}")
            name = f"{panels[0].file}.html"
            address = places.address(page, url_state.link_parameters())
            link = base_address(page).rstrip("/") + address
            html = File("One HTML file", name, "text/html", partial(document, tuple(panels), link))
            _button(html.label, html, "export panels")
        st.markdown("**Reproduce in Python**")
        st.code(code or python(panels), language="python", wrap_lines=True, height=240)


def _addresses(panels: Sequence[Panel]) -> dict[str, str]:
    """The addresses of the panels that every visitor may open, by their tokens."""
    addresses = {}
    for panel in panels:
        runs = [each for each in (panel.run, *panel.choices.values()) if isinstance(each, Run)]
        with models.of_all_visitors(), suppress(ValueError):
            address = address_of(panel, "html")
            if all(models.is_allowed(each.model) for each in runs) and len(address) <= MAX_ADDRESS:
                addresses[panel.token] = address
    return addresses


def all_heads() -> list[Panel]:
    """The panels of a page that has none of its own: all heads of the model on the text on
    screen, without edits, and the chosen one."""
    state = st.session_state
    chosen = {name: state[name] for name in ("layer", "head", "token") if state[name]}
    run = current_recording.run_on_screen(current_recording.typed_target(visit.model))
    return list(attention.opened(run, chosen))


def _button(label: str, file: File, key: str) -> None:
    st.download_button(
        label, file.make, file.name, file.mime, key=key, help=file.name, on_click="ignore"
    )
