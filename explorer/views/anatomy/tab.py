"""One attention weight, from query and key to what its head wrote."""

from __future__ import annotations

import streamlit as st

from explorer.layout import controls, current_recording
from explorer.layout.controls import attention_names, subject
from explorer.state import event_log, models, url_state
from explorer.state.cache import Run
from explorer.text.capability_messages import NO_CELLS
from explorer.views.anatomy import cell, heads, story
from explorer.views.anatomy.with_edits import switched


def one_weight() -> None:
    """The tab One weight: the text is recorded, under the edits of Edit the model, and the rest
    is drawn from its names."""
    source = switched(current_recording.read_current())
    recording = source.recording()
    url_state.one_of("attention", attention_names(recording))
    controls.choose_attention(recording)
    explore(source)


@event_log.fragment
def explore(source: Run) -> None:
    """The page below the sentence bar. Another head or cell runs this alone.

    It takes names and not the recording, which Streamlit would keep for every visitor.
    """
    st.subheader(
        "How is this attention weight computed?",
        anchor=False,
        help="One cell of one head, from its query and key to the head’s output. Every number "
        "follows from those before it, in 64 bits, from the model’s recorded vectors.",
    )
    on = subject(source)
    head, at = cell.choose(on)
    left, right = st.columns([1, 1.25], gap="large")
    if not on.attention.opens:
        st.info(NO_CELLS.format(models.markdown_name(source.model)))
        return url_state.write()
    shown = cell.opened(on, head, at)
    with left, st.container():
        grid = cell.matrix(on, head)
    with right:
        cell.in_short(shown)
    story.show(shown, grid)
    if shown.outputs is not None:
        heads.split(shown)
        heads.three_forms(shown)
    url_state.write()
