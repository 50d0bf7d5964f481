"""Checkpoints of a training, a live one, and two models that differ in one thing."""

from __future__ import annotations

import streamlit as st

from explorer.layout import current_recording
from explorer.state import event_log, models, url_state
from explorer.text import training
from explorer.text.markdown_escape import literal
from explorer.views.training import checkpoint_scores, head_formation, live, twins


def model_on_screen() -> str:
    """The model on screen without its step, which is the first one to be seen."""
    base, _, step = st.session_state.model.partition("@")
    if step and not st.session_state.train_step:
        st.session_state.train_step = step
    return base


@event_log.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings."""
    head_formation.show(checkpoint_scores.text_of(model, text))
    url_state.write()


@event_log.fragment
def train_live() -> None:
    """The tab Train live: a model of the reader's own."""
    st.caption(training.WHOSE.format(literal(models.title(st.session_state.model))))
    live.show()
    url_state.write()


@event_log.fragment
def compare(model: str, text: str) -> None:
    """Two models trained alike but for one thing."""
    twins.show(model, text)
    url_state.write()


def checkpoints() -> None:
    """The tab Checkpoints: the text is recorded, and the rest is drawn from its names."""
    current_recording.show_fallback()
    if missing := models.missing_checkpoints(st.session_state.model):
        st.info(missing)
        return
    with st.spinner("Loading the model …"):
        model = model_on_screen()
        current_recording.current_run(model)
    explore(model, st.session_state.text)


def paired_runs() -> None:
    """The tab Pre-LN vs post-LN: two trainings that differ in one thing."""
    current_recording.show_fallback()
    if missing := models.missing_checkpoints(""):
        st.info(missing)
        return
    compare(st.session_state.model.partition("@")[0], st.session_state.text)
