"""The Export menu: everything that leaves a page, in one place on every page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from explorer import export as views
from explorer.components import pictures
from explorer.frame import onscreen
from explorer.frame.taken import Taken, back, taken
from explorer.memory.passes import Shown
from explorer.sentences import recipe
from explorer.sentences.escape import literal
from models.written_edits import to_line

# How a page's file can draw a head, and the summaries that it can show.
DRAWN, SUMS = views.DRAWN, views.SUMS
WORDS = {"heads": "all heads", "lens": "the logit lens", "paths": "the paths"}
# What the lines of a page make that has no file of its own.
MADE = {"claims": "every claim’s verdict", "sentences": "these tables"}


@dataclass(frozen=True)
class File:
    """A file that a page offers: its name, its kind, and what makes it, which may hold arrays for
    as long as a run lasts."""

    label: str
    name: str
    mime: str
    make: Callable[[], Any]


class _Offered(threading.local):
    """What the run of this thread offers: files; what lines of Python make, of which recordings,
    what they import and the lines, where the view on screen has no file; and what lines beside it
    import, and these."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.numbers: tuple[str, Sequence[Shown], recipe.More] | None = None
        self.more: tuple[list[str], list[str]] = ([], [])


_offered = _Offered()


def begin() -> None:
    """Forget what the last run offered."""
    _offered.files, _offered.numbers, _offered.more = {}, None, ([], [])


def offer(label: str, name: str, mime: str, make: Callable[[], Any]) -> None:
    """Put a file of the page into the menu, in place of one of the same name."""
    _offered.files[name] = File(label, name, mime, make)


def numbers(what: str, of: Sequence[Shown], needs: Sequence[str], lines: Sequence[str]) -> None:
    """Put the lines of Python into the menu that give the numbers of the view on screen, `what`, in
    the place of those that make the page's file, which shows another view. of, needs and lines as
    in `recipe.numbers`."""
    _offered.numbers = what, of, (needs, lines)


def more(needs: Sequence[str], *lines: str) -> None:
    """Put lines behind those that make the page's file or give the numbers of the view: they give
    what of the page is in neither. In them `model` and `recording` are those of the lines
    before."""
    _offered.more[0].extend(needs)
    _offered.more[1].extend(lines)


def sources(*of: Shown) -> list[recipe.Source]:
    """Recordings as lines of Python name them."""
    return [(each.model, each.text, to_line(each.edits), each.target) for each in of]


def menu() -> Any:
    """The menu's button, for the line at the top. What it holds is put into it by `fill`, after the
    page."""
    return st.popover(
        "",
        icon=":material/download:",
        help="Export: picture, numbers, one HTML file, Python",
        key="export menu",
        on_change="rerun",
        width="content",
    )


def fill(room: Any, page: str) -> None:
    """Fill the menu, if it is open. The page has run, so everything that it offers is known."""
    files, told, beside = list(_offered.files.values()), _offered.numbers, _offered.more
    begin()
    if not room.open:
        return
    out = taken(page)
    with room:
        st.markdown("**Pictures of this page**")
        pictures.show("export pictures")
        if files:
            st.markdown("**Numbers and pages**")
        with st.container(horizontal=True, gap="small"):
            for at, each in enumerate(files):
                _button(literal(each.label), each, f"export {at}")
        st.markdown("**One HTML file**, interactive, with no network")
        with st.container(horizontal=True, gap="small"):
            _page(out, page)
            if page == "attention":
                _page(replace(out, view="findings", choices=()), page)
        if told is None:
            numbers_too = " again"
            if beside[1] and page not in MADE:
                numbers_too += ", and the numbers beside it"
            st.markdown(f"**Python** that makes {_made(out, page)}{numbers_too}")
        else:
            st.markdown(f"**Python** that gives the numbers of {told[0]}")
        code = lines(out, page, beside) if told is None else _numbers(*told[1:], beside)
        st.code(code, language="python", wrap_lines=True, height=240)


def lines(out: Taken, page: str, beside: recipe.More = ((), ())) -> str:
    """The lines of Python for a page. beside: as in `recipe.recipe`."""
    source = out.source
    if page == "claims":
        return recipe.claims(source.model, source.text, onscreen.typed_target(source.model))
    texts, attention = st.session_state.get("sentences read", ((), ""))
    if page == "sentences" and texts:
        return recipe.many(source.model, texts, attention, beside)
    other = astuple(out.other) if out.other else None
    file = f"{out.view}.html"
    return recipe.recipe(out.view, astuple(source), other, out.choices, file, beside)


def _numbers(of: Sequence[Shown], asked: recipe.More, beside: recipe.More) -> str:
    """The lines of Python for a view without a file."""
    needs, made = ((*one, *more) for one, more in zip(asked, beside))
    return recipe.numbers(sources(*of), needs, made)


def _page(out: Taken, page: str) -> None:
    words = WORDS.get(out.view, out.view)
    name = f"headlight-{out.source.model.replace('/', '-').replace(':', '-')}-{out.view}.html"
    file = File("", name, "text/html", partial(out.page, back(page)))
    _button(words[0].upper() + words[1:], file, f"export page {out.view}")


def _made(out: Taken, page: str) -> str:
    """What the lines of a page make."""
    return MADE.get(page) or WORDS.get(out.view, f"the view “{out.view}”")


def _button(label: str, file: File, key: str) -> None:
    st.download_button(
        label, file.make, file.name, file.mime, key=key, help=file.name, on_click="ignore"
    )
