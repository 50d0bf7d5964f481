"""A model under edits: what breaks without the scale, the mask, positions, or a head."""

from __future__ import annotations

import streamlit as st

from explorer.layout import current_recording
from explorer.layout.controls import pick_attention
from explorer.state import event_log, url_state
from explorer.state.cache import Run
from explorer.views.switches import (
    ablation_models,
    answers,
    attention,
    controls,
    patching,
    status,
    vectors,
)
from explorer.views.switches.run_pair import both, numbers_of

EFFECTS = {
    "Attention": attention.show,
    "Vectors": vectors.show,
    "Trained without": ablation_models.show,
}


def edit_model() -> None:
    """The tab Edit the model: the text is recorded, and the rest is drawn from its names."""
    url_state.one_of("effects", tuple(EFFECTS))
    with st.spinner("Loading the model …"):
        source = current_recording.current_run()
    explore(source)


def patch() -> None:
    """The tab Patching: the text is recorded, and the rest is drawn from its names."""
    with st.spinner("Loading the model …"):
        source = current_recording.current_run()
    explore_patches(source)


@event_log.fragment
def explore(source: Run) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    state = st.session_state
    if state.edits != state["edits shown"]:
        st.rerun(scope="app")  # the frame names the edits
    on = both(source.recording())
    if not on.error:
        numbers_of(on)
    status.warn(on.wrong)
    status.show(on)
    pick_attention(on.plain)
    left, right = st.columns([2.8, 1], gap="large")
    with right:
        controls.show(on)
    with left:  # on a phone above the switches
        answers.show(on)
        if not on.error:
            st.segmented_control(
                "View",
                tuple(EFFECTS),
                key="effects",
                wrap=True,
                format_func=lambda name: name.partition(" ")[0],  # short: a phone shows all three
                required=True,
                persist_state="session",
                label_visibility="collapsed",
            )
            EFFECTS[st.session_state.effects](on)
            status.everything(on)
    url_state.write()


@event_log.fragment
def explore_patches(source: Run) -> None:
    """Parts of another sentence's run put into this one, under the edits of the address; it takes
    names, as `explore` does."""
    state = st.session_state
    if state.edits != state["edits shown"]:
        st.rerun(scope="app")  # the frame names the edits
    on = both(source.recording())
    status.warn(on.wrong)
    if on.error:
        st.error(on.error)
    else:
        pick_attention(on.plain)
        answers.tokens(on)
        patching.show(on)
    url_state.write()
