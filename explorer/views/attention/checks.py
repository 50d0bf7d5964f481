"""How a weight is made, and whether the recording is right: what a doubting reader looks at."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import right
from explorer.analysis.head_view import HeadView
from explorer.frame import terms
from explorer.memory import models, passes, shelf
from explorer.sentences import attention as sentences
from explorer.views.attention.screen import Screen
from models.recording import Attention, Recording


def formula(on: Screen, view: HeadView) -> None:
    """The formula of a weight, with this sentence's numbers in it."""
    if not on.attention.opens:  # without scores there is nothing to say how they are made
        st.markdown(sentences.CLOSED.format(models.named(on.source.model)))
        return
    made = scoring(on.recording, on.attention, view.head.layer)
    told = sentences.formula(view, made, typed=on.source.target is not None)
    terms.markdown(told, "query", "key", "value", "score", "softmax")


def scoring(recording: Recording, attention: Attention, layer: int) -> str:
    """How this model makes a score of q and k."""
    biased = models.offers(recording.model.name).biased
    return f"q · k{right.scaling(attention, layer)}{' plus a bias' if biased else ''}"


def is_it_right(recording: Recording) -> None:
    """The laws of the recording, checked when the reader asks."""
    state = st.session_state
    with st.expander(
        "Is it right?",
        icon=":material/fact_check:",
        key="att right",
        expanded=state.att_right == "Open",
        on_change="rerun",
    ) as panel:
        state.att_right = "Open" if panel.open else ""
        if panel.open:
            checks = shelf.derived(
                recording, "right", lambda: right.checks(recording, *parameters(recording))
            )
            st.markdown(sentences.verdicts(checks))


def parameters(recording: Recording) -> tuple:
    """What the laws are checked with: W_O, the norms by stream, and how the model was built; None
    for what a model does not show."""
    built = models.cards().get(recording.model.name, {}).get("config") or {}
    built = built | {"biased": models.offers(recording.model.name).biased}
    try:
        norms = {stream.name: passes.norms(recording, stream.name) for stream in recording.streams}
        return passes.outputs(recording), norms, built
    except (ValueError, AttributeError):
        return None, None, built
