"""Which sentences are read, and how far that has come."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import many
from explorer.components import load
from explorer.memory import background, told
from explorer.memory.background import Experiment
from models.examples import EXAMPLES

MOST_CHARACTERS = 150_000
LOOK = 0.4  # seconds between two looks at how far it has come
FIELD, COLUMN = "many text", "many column"


def field() -> tuple[str, ...]:
    """The field with the sentences, and the ways to fill it. Returns what is to be read."""
    state = st.session_state
    state.setdefault(FIELD, "\n".join(EXAMPLES.values()))
    text = st.text_area(
        "Sentences, one a line, or a table as CSV",
        key=FIELD,
        height=200,
        max_chars=MOST_CHARACTERS,
        persist_state="session",
    )
    names = many.columns_of(text)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        load.show("Load a file", MOST_CHARACTERS, "many file", take_file)
        if names:
            column = st.selectbox(
                "Column", names, key=COLUMN, index=_widest(text, names), width=220
            )
        else:
            column = ""
    found = many.lines_of(text, column)
    given = len(text.splitlines()) - bool(names)
    if len(found) == many.MOST_LINES < given:
        st.caption(f"The first {many.MOST_LINES} are read.")
    return found


def _widest(text: str, names: tuple[str, ...]) -> int:
    """The column that holds the most text: most likely the sentences."""
    sizes = [sum(map(len, many.lines_of(text, name))) for name in names]
    return sizes.index(max(sizes))


def take_file() -> None:
    """The text of a file that the reader chose."""
    st.session_state[FIELD] = str(st.session_state["many file"].get("text") or "")


def asked(model: str, texts: tuple[str, ...], attention: str) -> Experiment:
    """The reading of these sentences: not begun, or as far as anyone has taken it."""
    return background.through(model, texts, ("many", attention), partial(_measured, attention))


def _measured(attention: str, recording) -> many.Sentence:
    return many.measured(
        recording, next(each for each in recording.attention if each.name == attention)
    )


def progress(reading: Experiment, n: int) -> None:
    """How far it has come, with a way to stop it and to go on. It draws itself again while it
    works."""
    stage = _stage(reading)
    told.fragment(_drawn, run_every=LOOK if reading.running else None)(reading, n, stage)


def _stage(reading: Experiment) -> tuple[bool, bool]:
    return reading.running, reading.finished


def _drawn(reading: Experiment, n: int, stage: tuple[bool, bool]) -> None:
    done, working = len(reading.latest or ()), reading.running
    if _stage(reading) != stage:
        st.rerun()  # the whole page: what was read is shown, and whether this runs by itself
    with st.container(horizontal=True, vertical_alignment="center"):
        if working:
            st.progress(done / n, text=f"{done} of {n} sentences read")
            st.button("Cancel", key="many cancel", on_click=reading.stop)
            return
        if not reading.finished:
            label = "Go on" if done else f"Read {n} sentences"
            st.button(label, key="many go", on_click=reading.go_on)
            if done:  # it was stopped
                st.caption(f"Stopped after {done} of {n}; what was read is shown.")
