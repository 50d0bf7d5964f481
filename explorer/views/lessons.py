"""The tab Lessons: those that come with the app, and the reader's own, collected on any tab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from explorer.components import mounts
from explorer.layout import current_recording, lesson_bar, navigation
from explorer.layout.tab import by_hand
from explorer.panels import lessons, worksheet
from explorer.state import models, url_state
from explorer.state.settings import settings
from explorer.state.visit import visit
from explorer.text import lesson as lesson_text
from explorer.text import places
from explorer.text.lesson import Item, Lesson
from explorer.text.markdown_escape import literal
from explorer.text.templates import named, sentences
from models.run import Run

WORDS = sentences("lesson", "tab")
FIELDS = named("lesson", "fields")  # what is written about an item, by the name of its field
LONG_FIELDS = ("says", "note", "answer")
JSON = "application/json"


@by_hand("lessons")
@current_recording.tab(current_recording.only_text)
def lessons_tab(run: Run) -> None:
    """The tab Lessons."""
    st.title(WORDS("title"), anchor=False)
    recording = run.recording()
    for name in lessons.names(recording.model.kind):
        _offer(run, name)
    st.header(WORDS("own"), anchor=False)
    st.caption(WORDS("how"))
    _own_lesson()


def _offer(run: Run, name: str) -> None:
    """A lesson that comes with the app, with the way to its first step."""
    about = lessons.written()[name]
    with st.container(border=True, key=f"lesson {name}"):
        st.header(about["title"], anchor=False)
        try:
            first, n = lessons.beginning(run, name)
        except ValueError as why:
            st.caption(f"{about['about']} {literal(str(why))}")
            return
        st.markdown(f"{about['about']} {WORDS('size', n=n, minutes=about['minutes'])}")
        with st.container(horizontal=True, vertical_alignment="center"):
            _start(first, name)
            _worksheet(partial(lessons.on, run, name), name)


def _start(first: Item, word: str) -> None:
    """A link to the first step of a lesson. word: what the address calls it."""
    tab, query = lesson_text.parts(first.address)
    navigation.link(tab, WORDS("start"), {**query, "lesson": word, "lesson_step": "1"}, word)


def _worksheet(lesson: Callable[[], Lesson], name: str) -> None:
    """A press that makes the worksheet of a lesson, which is made then."""
    # What this visitor may open is known here, and not where the file is made.
    may_open = lambda name: models.is_allowed(models.canonical_name(name))
    most = settings().max_chars
    st.download_button(
        WORDS("worksheet"),
        lambda: worksheet.document(worksheet.within(lesson(), most, may_open)),
        f"headlight-{name}.html",
        "text/html",
        key=f"worksheet {name}",
        type="tertiary",
        icon=":material/print:",
        on_click="ignore",
    )


# ---- the reader's own ----------------------------------------------------------------


def _own_lesson() -> None:
    """The items that were collected, in their order, and what can be done with them."""
    own = lesson_bar.own()
    if problem := visit.lesson_problem:
        visit.lesson_problem = ""
        st.warning(literal(problem))
    title = st.text_input(WORDS("name"), own.title, key="lesson_title", persist_state="session")
    if title != own.title:
        lesson_bar.keep(own := replace(own, title=title))
    with st.container(horizontal=True, vertical_alignment="center"):
        if own.items:
            word = lesson_bar.word_of(own)
            _start(own.items[0], word)
            st.download_button(
                WORDS("save"),
                own.json,
                "lesson.headlight.json",
                JSON,
                key="save lesson",
                type="tertiary",
                icon=":material/download:",
                on_click="ignore",
            )
            _worksheet(lambda: own, "lesson")
        mounts.file_reader(WORDS("load"), lesson_text.MOST_BYTES + 1, "lesson_file", _load)
    if not own.items:
        st.info(WORDS("empty"))
    if len(own.items) > 1:
        mounts.lesson_order(WORDS("drag"), "lesson_order", _drop)
    for at, item in enumerate(own.items):
        _edit(own, at, item)


def _load() -> None:
    """The lesson of the file that was opened takes the place of the reader's own."""
    text = visit.lesson_file["file"]["text"] or ""  # None for bytes that are no text
    try:
        lesson_bar.keep(lesson_text.from_json(text))
        visit.lesson_title = lesson_bar.own().title
    except ValueError as why:
        visit.lesson_problem = str(why)


def _edit(own: Lesson, at: int, item: Item) -> None:
    """One item with its place in the order and what is written about it."""
    n, place = len(own.items), places.title(lesson_text.parts(item.address)[0])
    with st.container(horizontal=True, vertical_alignment="center", key=f"item {at}"):
        moves = {
            "arrow_upward": (at - 1, WORDS("earlier")),
            "arrow_downward": (at + 1, WORDS("later")),
        }
        for icon, (to, label) in moves.items():
            st.button(
                label,
                key=f"{icon} {at}",
                icon=f":material/{icon}:",
                type="tertiary",
                disabled=not 0 <= to < n,
                on_click=_move,
                args=(at, to),
            )
        st.button(
            WORDS("remove"),
            key=f"remove {at}",
            icon=":material/delete:",
            type="tertiary",
            on_click=_remove,
            args=(at,),
        )
        heading = literal(item.heading or place)
        with st.expander(f"{at + 1}. {heading}", expanded=False):
            st.caption(literal(f"{place} · {_subject(item)}"))
            written: dict[str, Any] = {
                name: _field(name, label, at, item) for name, label in FIELDS.items()
            }
            if any(getattr(item, name) != text for name, text in written.items()):
                items = list(own.items)
                items[at] = replace(item, **written)
                lesson_bar.keep(replace(own, items=tuple(items)))
                st.rerun(scope="fragment")


def _subject(item: Item) -> str:
    """The model and the text of an item, as its address has them."""
    tab, query = lesson_text.parts(item.address)
    text, model = url_state.text_and_model(query, tab)
    return f"{model}: {text}"


def _field(name: str, label: str, at: int, item: Item) -> str:
    kinds: Mapping[bool, Any] = {True: st.text_area, False: st.text_input}
    key = f"lesson {name} {at} {hash(item.address)}"
    return str(
        kinds[name in LONG_FIELDS](
            label, getattr(item, name), key=key, max_chars=lesson_text.MOST_CHARACTERS
        )
        or ""
    )


def _move(at: int, to: int) -> None:
    own = lesson_bar.own()
    items = list(own.items)
    items.insert(to, items.pop(at))
    lesson_bar.keep(replace(own, items=tuple(items)))


def _drop() -> None:
    """An item that was dragged takes the place of the one that it was dropped on."""
    move, n = visit.lesson_order["move"], len(lesson_bar.own().items)
    if move["from"] in range(n) and move["to"] in range(n):  # of the list as it is now
        _move(move["from"], move["to"])


def _remove(at: int) -> None:
    own = lesson_bar.own()
    lesson_bar.keep(replace(own, items=own.items[:at] + own.items[at + 1 :]))
