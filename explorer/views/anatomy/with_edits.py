"""The edits set on the page Switches, on another page."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from explorer.state.cache import Run
from explorer.text.markdown_escape import literal
from models.edits import from_line


def switched(source: Run) -> Run:
    """What is on screen under the edits of the page Switches, with a word on them and the way back;
    as it is where this text or model cannot follow them. A translator's decoder goes on reading
    what it says unedited, so that the rows stay the same."""
    if not st.session_state.edits:
        return source
    try:
        plain, target = source.recording(), source.target
        if target is None and len(plain.streams) > 1:
            target = tuple(map(int, plain.streams[-1].ids[1:]))
        edited = replace(source, edits=from_line(st.session_state.edits), target=target)
        edited.recording()
    except ValueError:
        st.caption("The edits do not apply to this text, so the unedited model is shown.")
        return source
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Edited: {literal(', '.join(map(str, edited.edits)))}.")
        st.button("Show the unedited model", on_click=drop)
    return edited


def drop() -> None:
    """Forget the edits."""
    st.session_state.edits = ""
