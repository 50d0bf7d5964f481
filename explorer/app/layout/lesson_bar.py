"""The bar of the lesson that is followed: its step on screen with what is said there, and the way
to the others."""

from __future__ import annotations

import re
from dataclasses import asdict
from hashlib import sha256

import streamlit as st

from explorer.app import mounts
from explorer.app.layout.own_lesson import OWN, own, own_formula, store
from explorer.app.state.visit import visit
from explorer.panels import lessons, worksheet
from explorer.text import lesson as lesson_text
from explorer.text.lesson import OF_CLASS, PACKED, Lesson
from explorer.wording.markdown_escape import literal
from models import model_names
from models.runtime.run import Run

FIRST = "three-minutes"  # for who is here for the first time


def followed() -> Lesson | None:
    """The lesson that the address names, on the text and model on screen; None for none. Raises
    ValueError, in one sentence, for one that cannot be shown."""
    name = str(st.session_state.lesson)
    if name in ("", OF_CLASS) or (name == OWN and not visit.lessons_read and not own().items):
        return None
    if name.startswith(PACKED):
        return lesson_text.from_word(name)
    if name == OWN and own().items:
        return own()
    if name not in lessons.written():
        raise ValueError(lesson_text.REFUSALS("unknown", name=name))
    if model_names.is_recorded(visit.model):
        raise ValueError(lesson_text.REFUSALS("recorded"))
    run = Run(visit.model, visit.text)
    chosen = str(st.session_state.lesson_word)
    return lessons.on(run, name, int(chosen) if re.fullmatch(r"\d{1,9}", chosen) else None)


def show(is_sharing: bool) -> None:
    """Put the bar on the page, where a lesson is followed. That of a class the browser itself
    fetches. The browser keeps the reader's own. is_sharing: a step may be added to it."""
    if visit.page != "lessons":  # which keeps it itself
        store(is_sharing)
    if st.session_state.lesson == OF_CLASS:
        at = min(_step(), lesson_text.MOST_ITEMS)
        header = {"title": "", "items": [], "at": at, "choices": {"lesson": OF_CLASS}}
        mounts.lesson_bar(header | {"of_class": True}, f"{OF_CLASS} {at}", on_end=_end)
        return
    try:
        lesson = followed()
    except ValueError as why:
        st.session_state.lesson = st.session_state.lesson_step = ""
        st.info(literal(str(why)))
        return
    if lesson is None or not lesson.items:
        return
    at = _step() if _step() < len(lesson.items) else 0
    names = ("lesson", "lesson_word")
    here = {name: word for name in names if (word := str(st.session_state[name]))}
    items = [
        asdict(each)
        | {"picture": worksheet.picture_address(each), "typeset": own_formula(each.formula)}
        | {"options": "\n".join(each.choices)}
        for each in lesson.items
    ]
    # The reader's own is the same one while it is written.
    about = visit.own_lesson if here["lesson"] == OWN else lesson.word
    name = sha256(about.encode()).hexdigest()[:12]
    is_own = here["lesson"] not in lessons.written()
    header = asdict(lesson) | {"id": name, "is_own": is_own, "items": items, "at": at}
    header["choices"] = here
    header["alone"] = bool(lessons.written().get(here["lesson"], {}).get("alone"))
    mounts.lesson_bar(header, f"{lesson.word} {at}", on_end=_end)


def _step() -> int:
    """The step that the address names, from 0, which it is without one."""
    step = str(st.session_state.lesson_step)
    return int(step) - 1 if lesson_text.STEP.fullmatch(step) else 0


def begin(name: str = FIRST) -> None:
    """Follow a lesson from its first step, to which the browser goes. For a callback."""
    visit.acted = True
    st.session_state.lesson, st.session_state.lesson_step = name, ""


def opening() -> tuple[str, dict[str, str]] | None:
    """The tab and the choices of the first step of the lesson that an address names without a
    step; None where it names none, or one that cannot be shown."""
    if not st.session_state.lesson or st.session_state.lesson_step:
        return None
    try:
        lesson = followed()
    except ValueError:  # which the bar says
        return None
    if lesson is None or not lesson.items:
        return None
    tab, choices = lesson_text.parts(lesson.items[0].address)
    return tab, {**choices, "lesson": str(st.session_state.lesson), "lesson_step": "1"}


def _end() -> None:
    """The lesson is followed no longer; after one with a text of its own the reader's is back."""
    visit.acted = True
    if "text" in lessons.written().get(str(st.session_state.lesson), {}):
        visit.wanted_text, visit.wanted_model = visit.before_lesson
    st.session_state.lesson = st.session_state.lesson_step = st.session_state.lesson_word = ""
