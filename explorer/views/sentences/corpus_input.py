"""Input of the sentences to be read, and the progress of reading them."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import corpus
from explorer.components import file_upload
from explorer.state import event_log, jobs
from explorer.state.jobs import Job
from models.example_texts import EXAMPLES

MOST_CHARACTERS = 150_000
LOOK = 0.4  # seconds between two looks at how far it has come
FIELD, COLUMN, CUT = "many text", "many column", "many cut"
WHOLE = ""  # the choice of no column
TABLES = (".csv", ".tsv")


def field() -> tuple[str, ...]:
    """The field with the sentences, and the ways to fill it. Returns what is to be read."""
    state = st.session_state
    state.setdefault(FIELD, "\n".join(EXAMPLES.values()))
    text = st.text_area(
        "Sentences, one per line, or a table as CSV",
        key=FIELD,
        height=200,
        max_chars=MOST_CHARACTERS,
        persist_state="session",
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        file_upload.show("Load a file", MOST_CHARACTERS, "many file", take_file)
        column = _column(corpus.columns_of(text))
    if column:
        st.caption("The first row contains the column names.")
    if text and state.get(CUT) == text:
        st.caption(
            f"The file has more than {MOST_CHARACTERS:,} characters. The field has the whole "
            "sentences among the first ones."
        )
    found = corpus.lines_of(text, column)
    if len(found) > corpus.MOST_LINES:
        st.caption(f"The first {corpus.MOST_LINES} of {len(found):,} are read.")
    return found[: corpus.MOST_LINES]


def _column(names: tuple[str, ...]) -> str:
    """The column that is read; `WHOLE` until a reader chooses one or loads a table: sentences with
    equally many commas look like one."""
    if not names:
        return WHOLE
    state = st.session_state
    if state.get(COLUMN) not in names:
        state[COLUMN] = WHOLE
    return st.selectbox(
        "Column to read",
        (WHOLE, *names),
        key=COLUMN,
        format_func=lambda name: f"Column “{name}”" if name else "Whole lines",
        persist_state="session",
        width=260,
    )


def take_file() -> None:
    """The text of a file that the reader chose; of a table the column that holds most text."""
    state = st.session_state
    given = state["many file"].get("file") or {}
    text = str(given.get("text") or "").encode("utf-8", "replace").decode("utf-8")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if given.get("cut"):
        state[CUT] = text = corpus.complete_rows(text)
    is_table = str(given.get("name")).casefold().endswith(TABLES)
    state[FIELD], state[COLUMN] = text, corpus.widest_column(text) if is_table else WHOLE


def asked(model: str, texts: tuple[str, ...]) -> Job:
    """The reading of these sentences, of every attention of the model: not begun, or as far as
    anyone has taken it."""
    return jobs.corpus_job(model, texts, "many", corpus.measure_recording)


def progress(reading: Job, n: int) -> None:
    """Show the progress of reading, with a way to stop it and to go on. It draws itself again while
    it works."""
    stage = _stage(reading)
    event_log.fragment(_drawn, run_every=LOOK if reading.running else None)(reading, n, stage)


def _stage(reading: Job) -> tuple[bool, bool]:
    return reading.running, reading.finished


def _drawn(reading: Job, n: int, stage: tuple[bool, bool]) -> None:
    done, working = len(reading.latest or ()), reading.running
    if _stage(reading) != stage:
        st.rerun()  # the whole page: what was read is shown, and whether this runs by itself
    with st.container(horizontal=True, vertical_alignment="center"):
        if working:
            st.progress(done / n, text=f"{done} of {n} sentences read")
            st.button("Cancel", key="many cancel", on_click=reading.stop)
            return
        if not reading.finished:
            label = "Continue" if done else f"Read {n} sentences"
            st.button(label, key="many go", on_click=reading.resume)
            if done:  # it was stopped
                st.caption(f"Stopped after {done} of {n} sentences. The results so far are shown.")
