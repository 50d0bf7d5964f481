"""Calculation of a weight, and checks of the recording, for a reader who doubts them."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import consistency
from explorer.analysis.attention import HeadView
from explorer.layout import output
from explorer.state import cache, models
from explorer.text import attention
from explorer.views.attention.page_state import AttentionState
from models.recording import Attention, Recording


def formula(on: AttentionState, view: HeadView) -> None:
    """The formula of a weight, with this sentence's numbers in it."""
    if not on.attention.opens:  # without scores there is nothing to say how they are made
        st.markdown(attention.CLOSED.format(models.markdown_name(on.source.model)))
        return
    made = scoring(on.recording, on.attention, view.head.layer)
    sentence = attention.formula(view, made, typed=on.source.target is not None)
    output.markdown(sentence, "query", "key", "value", "score", "softmax")


def scoring(recording: Recording, attention: Attention, layer: int) -> str:
    """Formula of this model's score of q and k."""
    biased = models.capabilities(recording.model.name).biased
    return f"q · k{consistency.scale_text(attention, layer)}{' plus a bias' if biased else ''}"


def verify(on: AttentionState, view: HeadView) -> None:
    """Show how the weight is computed, and check the laws of the recording when the reader asks."""
    state, recording = st.session_state, on.recording
    with st.expander(
        "Verify the calculation",
        key="att right",
        expanded=state.att_right == "Open",
        on_change="rerun",
    ) as panel:
        state.att_right = "Open" if panel.open else ""
        if panel.open:
            formula(on, view)
            checks = cache.cached_for(
                recording, "right", lambda: consistency.checks(recording, *parameters(recording))
            )
            st.markdown(attention.verdicts(checks))


def parameters(recording: Recording) -> tuple:
    """Parameters that the laws are checked with: W_O, the norms by stream, and the model's
    configuration; None for what a model does not show."""
    built = models.cards().get(recording.model.name, {}).get("config") or {}
    built = built | {"biased": models.capabilities(recording.model.name).biased}
    try:
        norms = {stream.name: cache.norms(recording, stream.name) for stream in recording.streams}
        return cache.outputs(recording), norms, built
    except (ValueError, AttributeError):
        return None, None, built
