"""The Export menu: everything that leaves a page, in one place on every page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

import streamlit as st

from explorer import export
from explorer.components import image_export
from explorer.layout import current_recording
from explorer.panels.spec import Panel, document, python
from explorer.state import cache, models, places, url_state
from explorer.state.cache import Run
from explorer.text import python_snippets
from explorer.text.markdown_escape import literal
from models.edits import from_line, to_line
from models.recording import Recording

# What of a page leaves it as a file: which view, of which recording, under which choices, by
# names alone.

# The view that a tab's file shows. A tab that has none of its own is taken as all heads.
VIEW_OF = {
    "compare": "comparison",
}
# The choices of a page that its view takes too. Which pair a comparison opens is told apart below.
CHOICES_OF = export.CHOICES | {"comparison": ("other_of", "other_to", "other_tone")}


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
    """A view of a recording, and of another one beside it in some views, under choices (name,
    value)."""

    view: str
    source: ExportSource
    other: ExportSource | None = None
    choices: tuple[tuple[str, str], ...] = ()

    def page(self, link: str) -> str:
        """The view as one HTML file that leads back to `link`."""
        source, other = self.source, self.other
        return export.page(
            source.recording(),
            self.view,
            model=models.handle(source.model),
            other=other.recording() if other else None,
            target=source.target if isinstance(source.target, str) else None,
            link=link,
            **dict(self.choices),
        )


def page_export(page: str) -> PageExport:
    """The export of a page as it is on screen; of all heads where the page's own view does not
    exist for this model."""
    plain = _plain_source(page)
    source, other = _sources(page, plain)
    view = VIEW_OF.get(page, "heads")
    if not _fits(view, source, other):
        view, source = "heads", plain
    if view not in export.OF_TWO:
        other = None
    return PageExport(view, source, other, _choices(page, view))


def _plain_source(page: str) -> ExportSource:
    """The model and text on screen without edits: those of the checkpoint, where one is shown."""
    state = st.session_state
    if page == "checkpoints" and (one := state.get("checkpoint shown")):
        return ExportSource(one.model, one.text, "", one.target)
    return ExportSource(state.model, state.text, "", current_recording.typed_target(state.model))


def _sources(page: str, plain: ExportSource) -> tuple[ExportSource, ExportSource | None]:
    """The sources of a page's view and of the recording beside it, None where there is none."""
    state = st.session_state
    if page == "compare" and (shown := state.get("sides shown")):
        # The sides as the page laid them beside each other; none where it could not.
        first, second = shown
        typed = current_recording.typed_target(state.model)
        return _source(first, typed), _source(second, typed)
    if page == "weight" and state.edits:
        return replace(plain, edits=state.edits), None
    return plain, None


def _choices(page: str, view: str) -> tuple[tuple[str, str], ...]:
    """The choices that a view takes, as the page has them on screen."""
    if view == "comparison":
        return _comparison_choices()
    chosen = _view_choices(view)
    if page == "checkpoints" and st.session_state.train_of:
        chosen = tuple((dict(chosen) | {"attention": st.session_state.train_of}).items())
    return chosen


def base_address(page: str) -> str:
    """The address of this Headlight, without the place's own name."""
    where = urlsplit(st.context.url or "")
    path = where.path.removesuffix("/").removesuffix(places.place_of(page))
    return f"{where.scheme}://{where.netloc}{path}" if where.scheme else ""


def _view_choices(view: str) -> tuple[tuple[str, str], ...]:
    parameters = url_state.link_parameters()
    if parameters.get("view") not in export.DRAWN:  # a table, or another library's picture
        parameters.pop("view", None)
    return tuple((name, parameters[name]) for name in CHOICES_OF[view] if parameters.get(name))


def _comparison_choices() -> tuple[tuple[str, str], ...]:
    """Compare's choices, with the open pair of heads. In a view of heads, the head of B follows
    from that of A, unless it was chosen."""
    state = st.session_state
    pair = state.get("pair shown", "").split(".")
    is_paired = state.other_view == "Heads" and state.other_pair.count(".") < 3
    value = ".".join(pair[:2] if is_paired else pair)
    return _view_choices("comparison") + ((("other_pair", value),) if value else ())


def _source(side: Any, typed: str | None) -> ExportSource:
    """A side of Compare. A target that was typed stays as it was typed."""
    target = side.target if typed is None or side.target is None else typed
    return ExportSource(side.model, side.text, to_line(side.edits), target)


def _fits(view: str, source: ExportSource, other: ExportSource | None) -> bool:
    """True where the view can be had of this model and text."""
    try:
        source.recording()
        other_recording = other.recording() if other and view in export.OF_TWO else None
    except ValueError:  # edits that this model or text cannot follow
        return False
    return view != "comparison" or other_recording is not None


WORDS = {"heads": "all heads"}
# What the lines of a page make that has no file of its own.
CODE_RESULTS = {"claims": "every claim’s verdict", "sentences": "these tables"}


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
    """Forget what the last run offered."""
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
        image_export.show("export pictures")
        if files:
            st.markdown("**Numbers and pages**")
        with st.container(horizontal=True, gap="small"):
            for at, file in enumerate(files):
                _button(literal(file.label), file, f"export {at}")
        st.markdown("**One HTML file**, interactive and offline")
        with st.container(horizontal=True, gap="small"):
            _page(out, page)
            if page == "heads":
                _page(replace(out, view="findings", choices=()), page)
        if numbers_code is None:
            numbers_too = ", with its numbers"
            numbers_too *= bool(extra_code[1]) and page not in CODE_RESULTS
            st.markdown(f"**Reproduce in Python**: {_code_result(out, page)}{numbers_too}")
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
    image_export.show("export pictures")
    st.markdown("**Numbers and pages**")
    with st.container(horizontal=True, gap="small"):
        for at, file in enumerate(files):
            _button(literal(file.label), file, f"export {at}")
        name = f"{panels[0].file}.html"
        link = f"{base_address(page)}{page}?{urlencode(url_state.link_parameters())}"
        html = File("One HTML file", name, "text/html", partial(document, tuple(panels), link))
        _button(html.label, html, "export panels")
    st.markdown("**Reproduce in Python**")
    st.code(python(panels), language="python", wrap_lines=True, height=240)


def lines(out: PageExport, page: str, extra_code: python_snippets.More = ((), ())) -> str:
    """The lines of Python for a page. beside: as in `recipe.recipe`."""
    source = out.source
    if page == "claims":
        return python_snippets.claims(
            source.model, source.text, current_recording.typed_target(source.model)
        )
    texts, attention = st.session_state.get("sentences read", ((), ""))
    if page == "sentences" and texts:
        return python_snippets.many(source.model, texts, attention, extra_code)
    other = astuple(out.other) if out.other else None
    file = f"{out.view}.html"
    return python_snippets.recipe(out.view, astuple(source), other, out.choices, file, extra_code)


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


def _code_result(out: PageExport, page: str) -> str:
    """The result of a page's lines of Python."""
    return CODE_RESULTS.get(page) or WORDS.get(out.view, f"the view “{out.view}”")


def _button(label: str, file: File, key: str) -> None:
    st.download_button(
        label, file.make, file.name, file.mime, key=key, help=file.name, on_click="ignore"
    )
