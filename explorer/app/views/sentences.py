"""Tab of the attention of heads over many sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import corpus
from explorer.app import mounts
from explorer.app.layout import controls, selection_bar
from explorer.app.layout.tab import Hand, view
from explorer.app.state import event_log, jobs, url_state
from explorer.app.state.jobs import Job
from explorer.app.state.visit import visit
from explorer.figures.formatting import plural
from explorer.panels import corpus as corpus_panels
from explorer.panels.choice import Choice, Parameter, as_taken
from explorer.panels.selection import select
from explorer.screens.screen import Screen
from explorer.screens.subjects import of_sentences
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models.runtime.run import Run

WORDS = sentences("corpus", "tab")

MOST_CHARACTERS = 150_000
PAUSE = 0.4  # seconds between two looks at how many have been read
LONGEST_NAME = 60  # characters of a file's name
WHOLE = ""  # the choice of no column
TABLES = (".csv", ".tsv")

url_state.declare(
    "many_sentences",
    Parameter("many_text", str, False, "", Choice(help=WORDS("own"))),
    Parameter("many_column", str, False, "", Choice(help=WORDS("column"))),
)


def read_nothing() -> Run:
    """The model on screen with no text: the sentences are read by it one by one, in the
    background."""
    run = Run(visit.model, "")
    with st.spinner("Loading the model …"):
        run.recording()
    return run


def sentences_read(run: Run, bar: DeltaGenerator) -> tuple[Run, Mapping[str, Any]] | None:
    """The panels' run of the sentences that have been read; None before the first. Raises
    ValueError where there are no sentences."""
    name = url_state.values(corpus_panels.patterns, run)["attention"]
    attention = select(run, attention=name).attention
    with bar:
        controls.pick_attention(run.recording(), name)
    with bar.popover("Sentences", key="many sentences"):
        is_linked = _take_link()
        texts = _field()
    with bar:
        is_added = _offer_own(texts)
    if not texts:
        raise ValueError(WORDS("none_yet"))
    reading = jobs.corpus_job(run.model, texts, corpus_panels.KEY, corpus.measure_recording)
    if is_linked or is_added or texts == corpus.lines_of(corpus_panels.EXAMPLE_LINES):
        reading.resume()
    with bar.container(width="content"):
        _progress(reading, len(texts))
    results = [one if isinstance(one, str) else one[attention.name] for one in reading.latest or ()]
    if unread := [one for one in results if isinstance(one, str)]:
        st.warning(WORDS("unread", n=len(unread), why=literal(unread[0])))
    read = [text for text, one in zip(texts, results) if not isinstance(one, str)]
    on_screen = Run(run.model, visit.text)
    return of_sentences(on_screen, read, url_state.words()) if read else None


def _offer_own(texts: tuple[str, ...]) -> bool:
    """Say that a list is read, and offer to add the sentence above to it; True where it was just
    added."""
    is_there = visit.text in texts
    n = plural(len(texts), "sentence")
    st.caption(WORDS("listed_with" if is_there else "listed", n=n), width="content")
    if not is_there:
        st.button(WORDS("add"), key="many add", on_click=_add_own)
    added, visit.sentence_added = visit.sentence_added, False
    return added


def _add_own() -> None:
    """Put the sentence above first into the field, to be read at once."""
    visit.sentences = f"{visit.text}\n{visit.sentences or ''}"
    visit.sentence_added = True


def select_head(shown: Screen) -> None:
    """The menus of the head."""
    selection_bar.draw(shown.run, as_taken(shown.chosen), ("layer", "head"))


def _take_link() -> bool:
    """Put the sentences of a link into the field; True where it has some. The field keeps a list
    that is too long for an address."""
    state = st.session_state
    if visit.sentences is None:
        visit.sentences = corpus_panels.EXAMPLE_LINES
    text = visit.linked.pop("many_text", "")
    if text:
        visit.sentences, visit.sentences_column = text, state.many_column
    return bool(text)


def _field() -> tuple[str, ...]:
    """The field of the sentences, and the ways to fill it. Returns the sentences to read."""
    state = st.session_state
    text = st.text_area(
        "Sentences, one per line, or a table as CSV",
        key="sentences",
        height=200,
        max_chars=MOST_CHARACTERS,
        persist_state="session",
    )
    is_own = text != corpus_panels.EXAMPLE_LINES and url_state.fits_address(text)
    state.many_text = text if is_own else ""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        mounts.file_reader("Load a file", MOST_CHARACTERS, "sentences_file", _take_file)
        column = _column(corpus.columns_of(text))
    state.many_column = column if is_own else WHOLE
    if column:
        st.caption(WORDS("column_names"))
    name, before = visit.sentences_unreadable
    if name and before == text:
        st.caption(WORDS("not_utf8", file=literal(name)))
    if text and visit.sentences_cut == text:
        st.caption(WORDS("cut", most=MOST_CHARACTERS))
    lines = corpus.lines_of(text, column)
    if len(lines) > corpus.MOST_LINES:
        st.caption(WORDS("too_many", most=corpus.MOST_LINES, n=len(lines)))
    return lines[: corpus.MOST_LINES]


def _column(names: tuple[str, ...]) -> str:
    """The column that is read; `WHOLE` until a reader chooses one or loads a table: sentences with
    equally many commas look like one."""
    if not names:
        return WHOLE
    if visit.sentences_column not in names:
        visit.sentences_column = WHOLE
    return st.selectbox(
        "Column to read",
        (WHOLE, *names),
        key="sentences_column",
        format_func=lambda name: f"Column “{name}”" if name else "Whole lines",
        persist_state="session",
        width=260,
    )


def _take_file() -> None:
    """The text of a file that the reader chose; of a table the column that holds most text."""
    file = visit.sentences_file.get("file") or {}
    if file and file.get("text") is None:
        visit.sentences_unreadable = str(file.get("name"))[:LONGEST_NAME], visit.sentences or ""
        return  # what the field had stays
    text = str(file.get("text") or "").encode("utf-8", "replace").decode("utf-8")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if file.get("cut"):
        visit.sentences_cut = text = corpus.complete_rows(text)
    is_table = str(file.get("name")).casefold().endswith(TABLES)
    visit.sentences, visit.sentences_column = (
        text,
        corpus.widest_column(text) if is_table else WHOLE,
    )


def _progress(reading: Job, n: int) -> None:
    """Show the progress of reading, with a way to stop it and to go on. It draws itself again while
    it works."""
    stage = _stage(reading)
    event_log.fragment(_draw_progress, run_every=PAUSE if reading.running else None)(
        reading, n, stage
    )


def _stage(reading: Job) -> tuple[bool, bool, bool]:
    return reading.running, reading.finished, bool(reading.latest)


def _draw_progress(reading: Job, n: int, stage: tuple[bool, bool, bool]) -> None:
    done, working = len(reading.latest or ()), reading.running
    if _stage(reading) != stage:
        st.rerun()  # the whole page: what was read is shown, and whether this runs by itself
    with st.container(horizontal=True, vertical_alignment="center", width="content"):
        if working:
            st.progress(done / n, text=f"{done} of {n} sentences read", width=260)
            st.button("Cancel", key="many cancel", on_click=reading.stop)
            return
        if not reading.finished:
            label = "Continue" if done else f"Read {n} sentences"
            st.button(label, key="many go", type="primary", on_click=reading.resume)
            if done:  # it was stopped
                st.caption(WORDS("stopped", done=done, n=n))


view("sentences", Hand(read=read_nothing, made=sentences_read, select=select_head))
