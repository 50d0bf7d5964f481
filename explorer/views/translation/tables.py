"""What happens in a translation with its numbers, and all of them as tables and files."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import translation as numbers
from explorer.analysis.csv import Columns
from explorer.analysis.right import scaling
from explorer.frame import table
from explorer.frame.table import offer_csv, offer_recording
from explorer.memory import models
from explorer.sentences import translation as words
from explorer.views.translation.screen import Screen, said_of


def note(on: Screen) -> None:
    """What happens, in plain words."""
    st.subheader("What happens here", anchor=False)
    scale = scaling(numbers.cross(on.recording), 0)
    st.markdown(words.made(on.recording, scale, on.said.logprob))
    st.caption(words.LOOKING)


def files(on: Screen) -> None:
    """The alignment and the recording as files."""
    source, end, name, picture = on.source, on.end, on.name, on.picture()

    def columns() -> Columns:
        recording = source.recording()
        matrix = numbers.view(numbers.cross(recording).pattern, name)
        _, says = numbers.produced(recording, end)
        reads, of = recording.stream("decoder").tokens, recording.stream("encoder").tokens
        return numbers.file_table(matrix, says, reads, said_of(recording, end), of)

    offer_csv(columns, picture.caption, picture.file, "Alignment as CSV")
    offer_recording(source.model, source.text, source.target)


def tables(on: Screen) -> None:
    """The numbers behind every picture."""
    with st.expander("Every number as a table"):
        shown = st.segmented_control(
            "Table",
            ("Tokens", "Words", "Alignment", *(("Beams",) if on.forced is None else ())),
            default="Tokens",
            key="table",
            wrap=True,
            required=True,
            label_visibility="collapsed",
        )
        if shown == "Words":
            st.caption(words.WORDS)
        elif shown == "Alignment":
            st.caption(words.ROW)
        table.show(columns(on, shown), f"{shown} of the translation", "%.4g")


def columns(on: Screen, shown: str) -> Columns:
    """One of the tables."""
    model, says = on.source.model, on.says
    if shown == "Words":
        groups = numbers.produced_words(on.recording, on.end is not None)
        return numbers.word_table(on.said, says, groups)
    if shown == "Alignment":
        matrix = numbers.view(numbers.cross(on.recording).pattern, on.name)
        return numbers.alignment_table(matrix, says, on.recording.stream("encoder").tokens)
    if shown == "Beams":
        steps = tuple(on.search.steps)
        texts = [[models.spelled(model, beam.ids) for beam in held] for held in steps]
        return numbers.beam_table(steps, texts)
    return numbers.token_table(on.said, says, models.labels(model, on.said.top_ids[:, 0]))
