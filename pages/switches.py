"""Switches: what breaks without the scale, the mask, positions, residual, norm, this head?"""

from __future__ import annotations

import streamlit as st

from explorer.frame import onscreen
from explorer.frame.picker import pick_attention
from explorer.memory import address, told
from explorer.memory.passes import Shown
from explorer.views.switches import answers, attention, controls, fair, happened, patching, vectors
from explorer.views.switches.runs import both, numbers_of

EFFECTS = {
    "Attention": attention.show,
    "Vectors": vectors.show,
    "Patching": patching.show,
    "Trained without": fair.show,
}


def page() -> None:
    """The text is recorded, and the rest is drawn from its names."""
    address.one_of("effects", tuple(EFFECTS))
    with st.spinner("Loading the model …"):
        source = onscreen.shown()
    explore(source)


@told.fragment
def explore(source: Shown) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    on = both(source.recording())
    if not on.error:
        numbers_of(on)
    happened.warn(on.wrong)
    happened.show(on)
    pick_attention(on.plain)
    left, right = st.columns([2.8, 1], gap="large")
    with right:
        controls.show(on)
    with left:  # on a phone above the switches
        answers.show(on)
        if not on.error:
            st.segmented_control(
                "Look at",
                tuple(EFFECTS),
                key="effects",
                wrap=True,
                format_func=lambda name: name.partition(" ")[0],  # short: a phone shows all four
                required=True,
                persist_state="session",
                label_visibility="collapsed",
            )
            EFFECTS[st.session_state.effects](on)
            happened.everything(on)
    address.write()


page()
