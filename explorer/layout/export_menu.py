"""The Export menu: everything that leaves a page, in one place on every page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

from explorer import export
from explorer.components import mounts
from explorer.layout import current_recording
from explorer.panels import attention
from explorer.panels.spec import Panel, document, python
from explorer.state import cache, models, places, url_state
from explorer.state.cache import Run
from explorer.text import python_snippets
from explorer.text.markdown_escape import literal
from models.edits import from_line, to_line
from models.recording import Recording

# What of a page leaves it as a file: which view, of which recording, under which choices, by
# names alone.

# A tab without panels is taken as all heads.


@dataclass(frozen=True)
class ExportSource:
    """The source of a recording: a model's name, a text, edits in one line, and the decoder's
    input, typed or as ids, None for the model's own output."""

    model: str
    text: str
    edits: str = ""
    target: str | tuple[int, ...] | None = None

    def recording(self) -> Recording:
        """The recording, from the shelf."""
        return cache.record(self.model, self.text, from_line(self.edits), self.target)


@dataclass(frozen=True)
class PageExport:
    """A view of a recording under choices (name, value)."""

    view: str
    source: ExportSource
    choices: tuple[tuple[str, str], ...] = ()

    def page(self, link: str) -> str:
        """The view as one HTML file that leads back to `link`."""
        source = self.source
        return export.page(
            source.recording(),
            self.view,
            model=models.handle(source.model),
            target=source.target if isinstance(source.target, str) else None,
            link=link,
            other=None,
            **dict(self.choices),
        )


def page_export(page: str) -> PageExport:
    """The export of a page that has no panels: all heads, as the tab Heads shows them."""
    return PageExport("heads", _plain_source(), _heads_choices())


def _plain_source() -> ExportSource:
    """The model and text on screen without edits."""
    state = st.session_state
    return ExportSource(state.model, state.text, "", current_recording.typed_target(state.model))


def base_address(page: str) -> str:
    """The address of this Headlight, without the place's own name."""
    where = urlsplit(st.context.url or "")
    path = where.path.removesuffix("/").removesuffix(places.place_of(page))
    return f"{where.scheme}://{where.netloc}{path}" if where.scheme else ""


def _heads_choices() -> tuple[tuple[str, str], ...]:
    parameters = url_state.link_parameters()
    if parameters.get("view") not in attention.VIEWS:  # a table
        parameters.pop("view", None)
    names = export.CHOICES["heads"]
    return tuple((name, parameters[name]) for name in names if parameters.get(name))


WORDS = {"heads": "all heads"}


@dataclass(frozen=True)
class File:
    """A file that a page offers: its name, its kind, and what makes it, which may hold arrays for
    as long as a run lasts."""

    label: str
    name: str
    mime: str
    make: Callable[[], Any]


class _MenuState(threading.local):
    """The entries of the export menu in this thread's run: files; the result of lines of Python,
    their recordings, their imports and the lines, where the view on screen has no file; and imports
    and lines beside a file."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.numbers: tuple[str, Sequence[Run], python_snippets.More] | None = None
        self.more: tuple[list[str], list[str]] = ([], [])
        self.panels: list[Panel] = []


_menu_state = _MenuState()


def begin() -> None:
    """Clear the entries of the last run."""
    _menu_state.files, _menu_state.numbers, _menu_state.more = {}, None, ([], [])
    _menu_state.panels = []


def offer(label: str, name: str, mime: str, make: Callable[[], Any]) -> None:
    """Put a file of the page into the menu, in place of one of the same name."""
    _menu_state.files[name] = File(label, name, mime, make)


def offer_panel(panel: Panel) -> None:
    """Put a panel of the page into the menu: its file and its Python stand in the place of those of
    the page's view."""
    _menu_state.panels.append(panel)


def offer_numbers_code(
    title: str, runs: Sequence[Run], needs: Sequence[str], lines: Sequence[str]
) -> None:
    """Put the lines of Python into the menu that give the numbers of the view on screen, `what`, in
    the place of those that make the page's file, which shows another view. of, needs and lines as
    in `recipe.numbers`."""
    _menu_state.numbers = title, runs, (needs, lines)


def offer_more_code(needs: Sequence[str], *lines: str) -> None:
    """Put lines behind those that make the page's file or give the numbers of the view: they give
    what of the page is in neither. In them `model` and `recording` are those of the lines
    before."""
    _menu_state.more[0].extend(needs)
    _menu_state.more[1].extend(lines)


def sources(*runs: Run) -> list[python_snippets.Source]:
    """Recordings as lines of Python name them."""
    return [(each.model, each.text, to_line(each.edits), each.target) for each in runs]


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
    files, numbers_code, extra_code = (
        list(_menu_state.files.values()),
        _menu_state.numbers,
        _menu_state.more,
    )
    panels = _menu_state.panels
    begin()
    if not room.open:
        return
    if panels:
        with room:
            _fill_from_panels(panels, files, page)
        return
    out = page_export(page)
    with room:
        st.markdown("**Pictures of this page**")
        mounts.picture_list("export pictures")
        if files:
            st.markdown("**Numbers and pages**")
        with st.container(horizontal=True, gap="small"):
            for at, file in enumerate(files):
                _button(literal(file.label), file, f"export {at}")
        st.markdown("**One HTML file**, interactive and offline")
        with st.container(horizontal=True, gap="small"):
            _page(out, page)
        if numbers_code is None:
            numbers_too = ", with its numbers"
            numbers_too *= bool(extra_code[1])
            st.markdown(f"**Reproduce in Python**: {_code_result(out)}{numbers_too}")
        else:
            st.markdown(f"**Reproduce in Python**: numbers of {numbers_code[0]}")
        code = (
            lines(out, page, extra_code)
            if numbers_code is None
            else _numbers(*numbers_code[1:], extra_code)
        )
        st.code(code, language="python", wrap_lines=True, height=240)


def _fill_from_panels(panels: Sequence[Panel], files: Sequence[File], page: str) -> None:
    """The menu of a page made of panels."""
    st.markdown("**Pictures of this page**")
    mounts.picture_list("export pictures")
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
    st.code(python(panels), language="python", wrap_lines=True, height=240)


def lines(out: PageExport, page: str, extra_code: python_snippets.More = ((), ())) -> str:
    """The lines of Python for a page. beside: as in `recipe.recipe`."""
    source = out.source
    file = f"{out.view}.html"
    return python_snippets.recipe(out.view, astuple(source), None, out.choices, file, extra_code)


def _numbers(
    runs: Sequence[Run], numbers_code: python_snippets.More, extra_code: python_snippets.More
) -> str:
    """The lines of Python for a view without a file."""
    needs, code_lines = ((*one, *more) for one, more in zip(numbers_code, extra_code))
    return python_snippets.numbers(sources(*runs), needs, code_lines)


def _page(out: PageExport, page: str) -> None:
    words = WORDS.get(out.view, out.view)
    name = f"headlight-{out.source.model.replace('/', '-').replace(':', '-')}-{out.view}.html"
    file = File("", name, "text/html", partial(out.page, base_address(page)))
    _button(words[0].upper() + words[1:], file, f"export page {out.view}")


def _code_result(out: PageExport) -> str:
    """The result of a page's lines of Python."""
    return WORDS.get(out.view, f"the view “{out.view}”")


def _button(label: str, file: File, key: str) -> None:
    st.download_button(
        label, file.make, file.name, file.mime, key=key, help=file.name, on_click="ignore"
    )
