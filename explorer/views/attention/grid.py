"""Every head at once, and above it what holds for all pictures of the page: colour scale, and which
tokens are shown."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import attention as numbers
from explorer.analysis import heads as naming
from explorer.analysis.head_view import SCALE_LABELS
from explorer.components import heads as all_heads
from explorer.memory import shelf
from explorer.views.attention.screen import Screen

KEPT_LABELS = {"All": "All", "No specials": "No specials", "No sinks": "Quiet sinks"}


def show(on: Screen) -> None:
    """The grid of all heads with its controls."""
    across = on.axes.said is not None
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        controls()
    state = st.session_state
    what = (on.attention.name, "grid", state.scale, state.tone)
    data = shelf.derived(
        on.recording,
        what,
        lambda: all_heads.payload(
            on.attention.pattern,
            on.attention.allowed,
            on.heads,
            naming.meanings(on.recording, on.attention),
            on.axes.rows,
            on.axes.keys,
            across,
            state.scale.lower(),
            state.tone == "Log",
            shelf.name_of(on.recording, *what),
        ),
        weigh=len,
    )
    all_heads.show(data, "heads", on_choice=take_head)


def controls() -> None:
    """What holds for grid, matrix, lines and sentence alike."""
    st.segmented_control(
        "Which tokens",
        numbers.KEPT,
        key="att_keep",
        format_func=KEPT_LABELS.get,
        required=True,
        persist_state="session",
        label_visibility="collapsed",
        help="Quiet sinks leaves out tokens on which heads rest whatever the row; what goes there is stated beside each row.",
    )
    with st.popover("Colours", icon=":material/palette:"):
        st.segmented_control(
            "Colour scale",
            numbers.SCALES,
            key="scale",
            format_func=SCALE_LABELS.get,
            required=True,
            persist_state="session",
            help="What the top of the colour scale is: each head’s largest weight, each row’s, or 1 for all heads alike.",
        )
        st.segmented_control(
            "Tone",
            numbers.TONES,
            key="tone",
            required=True,
            persist_state="session",
            help="Log shows three powers of ten below the top of the scale, so that faint attention is seen.",
        )


def take_head() -> None:
    """The head chosen in the grid."""
    state = st.session_state
    state.layer, _, state.head = (state.heads.get("head") or "").partition(".")
