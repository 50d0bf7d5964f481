"""The tab Logit lens."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis.logit_lens import read_stream
from explorer.layout import output
from explorer.layout.controls import pick
from explorer.panels import logit_lens
from explorer.state import cache
from explorer.state.cache import Run
from explorer.views.predictions.page_state import keep_hidden
from models.edits import HideToken

COLOURS = {
    "Top word": "Probability of the word",
    "Answer": "Probability of the final answer",
    "Rank": "Rank of the final answer",
    "KL": "Divergence from the final distribution",
}


def show(source: Run, token: int | None) -> None:
    """The lens and how one prediction develops."""
    state, recording = st.session_state, source.recording()
    with st.spinner("Reading every site …"):
        lens = cache.lens(recording, read_stream(recording).name)
    if state.site not in lens.sites:
        state.site = ""
    with st.popover("View"):
        measure = pick("Colour by", COLOURS, "lens")
    hidden = tuple(edit.token for edit in source.edits if isinstance(edit, HideToken))
    make = partial(logit_lens.lens, source, token, state.site, measure)
    output.show_panel(make, "logit lens", partial(keep_hidden, hidden))
    output.show_panel(partial(logit_lens.development, source, token, state.site), "development")
