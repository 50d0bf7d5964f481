"""A translation token by token, and what its decoder attends to in the source."""

from __future__ import annotations

import streamlit as st

from explorer.layout import current_recording
from explorer.state import event_log, url_state
from explorer.views.translation import search, steps, tables
from explorer.views.translation.page_state import screen


def translate() -> None:
    """The tab Translate: a model that translates, and the search for what it says."""
    current_recording.show_fallback()
    model, text = st.session_state.model, st.session_state.text
    search.seek(model, text)
    explore(model, text)


@event_log.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    st.subheader(
        "Translation and cross-attention",
        anchor=False,
        help=(
            "The decoder writes the output one token at a time. For each token its "
            "cross-attention weighs the source tokens: that is what is drawn."
        ),
    )
    with st.container(key="after-search"):  # on a phone behind the translation
        forced = search.controls(model, text)
    with st.container():
        on = screen(model, text, forced)
        if on.forced is None:
            steps.hypotheses(on)
        steps.totals(on)
        steps.alignment(on)
    tables.files(on)
    room = st.container()
    if on.forced is None and len(on.search.steps[-1]) > 1:
        left, room = st.columns(2, gap="large")
        with left:
            steps.tree(on)
    with room:
        tables.note(on)
    tables.tables(on)
    url_state.write()
