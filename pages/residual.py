"""Residual stream: what did each sub-layer write, and how far did it turn the vector?"""

from __future__ import annotations

import streamlit as st

from explorer.analysis import residual as numbers
from explorer.analysis.called import norm_of
from explorer.frame import onscreen
from explorer.frame.picker import pick
from explorer.memory import address, models, told
from explorer.memory.passes import Shown
from explorer.sentences import residual as words
from explorer.sentences.own_code import WHOLE_LAYERS
from explorer.views.residual import gradient, norms, recurrence, writes
from explorer.views.residual.screen import Screen

FLOWS = {
    "Writes": ("What was written", writes.show),
    "LayerNorm": ("", norms.show),  # by the name it has in the model
    "Heads": ("Heads", writes.heads),
    "Gradient": ("Gradient", gradient.show),
    "RNN": ("Beside an RNN", recurrence.show),
}


@told.fragment
def explore(source: Shown) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    recording = source.recording()
    place = numbers.norm_place(recording.streams[0])
    norm = norm_of(recording, models.offers(recording.model.name).rms)
    st.subheader(
        "What did each sub-layer write, and how far did it turn the vector?",
        anchor=False,
        help=f"Every token has one vector. {words.way_on(place, norm)}",
    )
    flow, on = controls(source, norm)
    if flow != "RNN" and not numbers.sublayers(on.stream):
        st.info(
            f"{models.named(source.model)} does not show what its sub-layers write: "
            f"{WHOLE_LAYERS}. So there is nothing to draw here. “Beside an RNN” needs your text "
            "alone."
        )
        return address.write()
    if not numbers.adds(on.stream):
        st.info(
            f"**{models.named(source.model)} was trained without residual connections**: what a "
            "sub-layer writes is not added to the vector, it takes its place."
        )
    FLOWS[flow][1](on)
    address.write()


def controls(source: Shown, norm: str) -> tuple[str, Screen]:
    """What is looked at, and of which stream. norm: what the model's norms are called."""
    recording = source.recording()
    names = tuple(stream.name for stream in recording.streams)
    left, right = st.columns([2.2, 1]) if len(names) > 1 else (st.container(), None)
    flows = {each: said or norm for each, (said, _) in FLOWS.items()}
    flow = pick("Look at", flows, "flow", at=left)
    name = names[0]
    if right:
        st.session_state["stream shown"] = address.one_of("stream", names)
        right.segmented_control(
            "Stream", names, key="stream shown", required=True, on_change=take_stream
        )
        name = st.session_state["stream shown"]
    return flow, Screen(source, recording, recording.stream(name))


def take_stream() -> None:
    """Another stream has other tokens."""
    st.session_state.stream = st.session_state["stream shown"]
    st.session_state.token = ""


address.one_of("flow", tuple(FLOWS))
explore(onscreen.read())
