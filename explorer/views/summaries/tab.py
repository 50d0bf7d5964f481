"""All heads in one matrix, and how far it can be trusted."""

from __future__ import annotations

import streamlit as st

from explorer.layout import current_recording
from explorer.layout.controls import attention_names, pick, subject
from explorer.state import event_log, models, url_state
from explorer.state.cache import Run
from explorer.text import summaries
from explorer.views.summaries import matrix, output_norms
from explorer.views.summaries.page_state import KEPT


def aggregated() -> None:
    """The tab Aggregated: choices that do not exist are forgotten, the text is recorded, and the
    rest is drawn from its names."""
    url_state.one_of("sum_what", tuple(summaries.LABELS))
    url_state.one_of("att_keep", tuple(KEPT))
    source = current_recording.read_current()
    url_state.one_of("attention", attention_names(source.recording()))
    explore(source)


@event_log.fragment
def explore(source: Run) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    st.subheader("What do all heads say together, and can you trust the sum?", anchor=False)
    on = subject(source)
    controls = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    what = pick("Summary", summaries.LABELS, "sum_what", container=controls)
    if what in summaries.THROUGH and on.across:
        st.info(summaries.NO_WAY_ACROSS.format(what))
    elif what in ("Values", "Writes") and not models.shows_writes(on.recording):
        st.info(summaries.CLOSED.format(models.markdown_name(source.model)))
    elif what == "Writes":
        output_norms.show(on, controls)
    else:
        matrix.show(on, what)
    url_state.write()
