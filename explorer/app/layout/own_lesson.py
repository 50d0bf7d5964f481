"""The reader's own lessons: what this visit has of them, and what the reader's browser keeps.

A visit has them by the names that the browser's store calls them. Each change of one is written to
the store by the page that follows it (components/lesson_store.js); a visit that begins reads them
there."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import streamlit as st

from explorer.app import mounts
from explorer.app.state import url_state
from explorer.app.state.visit import visit
from explorer.text import formulas, places
from explorer.text import lesson as lesson_text
from explorer.text.lesson import Item, Lesson
from explorer.wording.templates import sentences

WORDS = sentences("lesson", "bar")
OF_HEADS = ("attention.votes", "attention.heads", "attention.head")  # which are drawn by hand
# Choices that mean one thing on every tab.
OF_ALL_TABS = ("text", "target", "model", "covered", "attention", "token", "layer", "head")
TOLD_BY_PROOF = {"question", "answer", "address"}  # of a step, what its proof belongs to
OWN = "own"  # the word of the reader's own lesson where an address cannot hold it


def own() -> Lesson:
    """The reader's own lesson that is open."""
    lesson: Lesson | None = visit.own_lessons.get(visit.own_lesson)
    return lesson or Lesson(WORDS("untitled"))


def steps() -> tuple[int, ...]:
    """A name for each step of it, which it keeps wherever it is moved."""
    n = len(own().items)
    if len(visit.own_steps) != n:
        visit.own_steps = tuple(secrets.randbits(48) for _ in range(n))
    return visit.own_steps


def keep(lesson: Lesson) -> None:
    """Make this what the reader's open lesson is now."""
    visit.own_lesson = visit.own_lesson or secrets.token_urlsafe(6)
    visit.own_lessons = visit.own_lessons | {visit.own_lesson: lesson}


def open_as(name: str, lesson: Lesson | None = None) -> None:
    """Open one of the reader's lessons, or a new one under that name."""
    visit.own_lesson, visit.own_steps = name, ()
    if lesson is not None:
        keep(lesson)
    visit.lesson_title = own().title


def open_new(lesson: Lesson | None = None) -> None:
    """Open a lesson as one more of the reader's own; an empty one where None."""
    open_as(secrets.token_urlsafe(6), lesson or Lesson(WORDS("untitled")))


def forget() -> None:
    """Forget the lesson that is open, here and in the browser's store."""
    gone = visit.own_lesson
    visit.forgotten_lessons = (*visit.forgotten_lessons, gone)
    visit.own_lessons = {name: each for name, each in visit.own_lessons.items() if name != gone}
    open_as(next(reversed(visit.own_lessons), ""))


def arrange(change: Callable[[list[Any]], object]) -> None:
    """Change the order of the open lesson's steps, or which there are: `change` is called with a
    list of (name, step), in place."""
    pairs = list(zip(steps(), own().items))
    change(pairs)
    visit.own_steps = tuple(name for name, _ in pairs)
    keep(replace(own(), items=tuple(item for _, item in pairs)))


def write(step: int, **fields: str) -> None:
    """Write fields of a step by its name, wherever it is by now; the proof of a given lesson goes
    where another question, answer or page comes."""
    if step in steps():
        at, items = steps().index(step), list(own().items)
        if any(getattr(items[at], each) != fields[each] for each in TOLD_BY_PROOF & fields.keys()):
            fields = {"proof": "", **fields}
        items[at] = replace(items[at], **fields)
        keep(replace(own(), items=tuple(items)))


def append(item: Item) -> None:
    """Add a step at the end of the open lesson."""
    arrange(lambda pairs: pairs.append((secrets.randbits(48), item)))


def own_formula(line: str) -> formulas.Node | None:
    """A formula of a step, typeset; None for none, and for a line that is none."""
    try:
        return formulas.typeset(formulas.as_typed(line), {}) if line.strip() else None
    except (ValueError, IndexError, RecursionError):
        return None


def pictures_of(tab: str) -> dict[str, dict[str, str]]:
    """The panels that a step on a tab may speak of, each with the choice that shows it there."""
    row = places.ROWS[tab]
    named = row.panels or (OF_HEADS if tab == "heads" else ())
    pictures: dict[str, dict[str, str]] = {name: {} for name in named}
    if views := row.views:
        for word, (_, names) in views.panels.items():
            pictures |= {name: {views.choice: word} for name in names if name not in pictures}
    return pictures


def turn(step: int, tab: str, panel: str | None = None) -> None:
    """Lead a step to a picture of a tab, its main one where None, with the text, the model, the
    word and the head that it has."""
    if step not in steps():
        return
    item, pictures = own().items[steps().index(step)], pictures_of(tab)
    here, query = lesson_text.parts(item.address)
    kept = query if tab == here else {name: query[name] for name in OF_ALL_TABS if name in query}
    panel = main_panel(pictures) if panel is None else panel
    write(step, panel=panel, address=places.address(tab, kept | pictures.get(panel, {})))


def main_panel(names: Iterable[str]) -> str:
    """The panel of a page that a step speaks of, unless its author chooses another: the head that
    is selected, else the first; "" where there is none."""
    all_names = tuple(names)
    return "attention.head" if "attention.head" in all_names else next(iter(all_names), "")


def word_of(lesson: Lesson) -> str:
    """Word of an address for the reader's own lesson: the lesson whole where it is short enough."""
    return lesson.word if url_state.fits_address(lesson.word) else OWN


def add(tab: str, finding: str, panel: str) -> None:
    """Add what is on screen to the reader's own lesson. finding: what the panel says there."""
    choices = url_state.parameters_without_lesson()
    choices.pop("tab", None)
    append(Item(places.address(tab, choices), heading=finding, panel=panel))
    st.toast(WORDS("added", n=len(own().items)), icon=":material/playlist_add_check:")


def store(is_wanted: bool) -> None:
    """Let the browser keep the open lesson, and say once which others it keeps. is_wanted: that is
    needed also where this visit has no lesson of its own."""
    asks = (is_wanted or st.session_state.lesson == OWN) and not visit.lessons_read
    if not (visit.own_lesson or visit.forgotten_lessons or is_wanted or asks):
        return
    about = {
        "name": visit.own_lesson if own().items else "",
        "text": own().json,
        "forgotten": visit.forgotten_lessons,
        "asks": asks,
        "is_read": visit.lessons_read,
    }
    mounts.lesson_store(about, "lesson_store", _take_over)


def _take_over() -> None:
    """Take over what the browser keeps; a lesson that is none is left there."""
    sent = visit.lesson_store["read"]
    lessons = dict(visit.own_lessons)
    was, now = sent.get("renamed") or ("", "")
    if was in lessons:
        lessons[now] = lessons.pop(was)
        visit.own_lesson = now if visit.own_lesson == was else visit.own_lesson
    for name, text in sent["lessons"]:
        if name in lessons or name in visit.forgotten_lessons:
            continue
        try:
            lessons[name] = lesson_text.from_json(text)
        except ValueError:
            continue
    visit.own_lessons, visit.lessons_read = lessons, True
    if not visit.own_lesson and lessons:
        open_as(next(reversed(lessons)))
