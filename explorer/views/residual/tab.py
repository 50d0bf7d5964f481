"""The residual stream: what did each sub-layer write, and how far did it turn the vector?"""

from __future__ import annotations

import streamlit as st

from explorer.analysis import residual
from explorer.analysis.terminology import recording_norm_name
from explorer.layout import current_recording
from explorer.layout.controls import pick
from explorer.state import event_log, models, url_state
from explorer.state.cache import Run
from explorer.text.capability_messages import WHOLE_LAYERS
from explorer.text.residual import way_on
from explorer.views.residual import gradient, norms, recurrence, sublayer_outputs
from explorer.views.residual.page_state import ResidualState

FLOWS = {
    "Writes": ("What was written", sublayer_outputs.show),
    "LayerNorm": ("", norms.show),  # by the name it has in the model
    "Heads": ("Heads", sublayer_outputs.heads),
    "Gradient": ("Gradient", gradient.show),
    "RNN": ("Beside an RNN", recurrence.show),
}


@event_log.fragment
def explore(source: Run) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    recording = source.recording()
    place = residual.norm_place(recording.streams[0])
    norm = recording_norm_name(recording, models.capabilities(recording.model.name).rms)
    st.subheader(
        "What did each sub-layer write, and how far did it turn the vector?",
        anchor=False,
        help=f"Every token has one vector. {way_on(place, norm)}",
    )
    flow, on = controls(source, norm)
    if flow != "RNN" and not residual.sublayers(on.stream):
        st.info(
            f"{models.markdown_name(source.model)} does not show what its sub-layers write: "
            f"{WHOLE_LAYERS}. So there is nothing to draw here. “Beside an RNN” needs your text "
            "alone."
        )
        return url_state.write()
    if not residual.has_residual(on.stream):
        st.info(
            f"**{models.markdown_name(source.model)} was trained without residual "
            "connections**: what a sub-layer writes is not added to the vector, it takes its place."
        )
    FLOWS[flow][1](on)
    url_state.write()


def controls(source: Run, norm: str) -> tuple[str, ResidualState]:
    """What is looked at, and of which stream. norm: what the model's norms are called."""
    recording = source.recording()
    names = tuple(stream.name for stream in recording.streams)
    left, right = st.columns([2.2, 1]) if len(names) > 1 else (st.container(), None)
    flows = {each: said or norm for each, (said, _) in FLOWS.items()}
    flow = pick("Look at", flows, "flow", container=left)
    name = names[0]
    if right:
        st.session_state["stream shown"] = url_state.one_of("stream", names)
        right.segmented_control(
            "Stream", names, key="stream shown", required=True, on_change=take_stream
        )
        name = st.session_state["stream shown"]
    return flow, ResidualState(source, recording, recording.stream(name))


def take_stream() -> None:
    """Another stream has other tokens."""
    st.session_state.stream = st.session_state["stream shown"]
    st.session_state.token = ""


def residual_stream() -> None:
    """The tab Residual stream: the text is recorded, and the rest is drawn from its names."""
    url_state.one_of("flow", tuple(FLOWS))
    explore(current_recording.read_current())
