"""Training: when does a head learn its pattern?"""

from __future__ import annotations

import streamlit as st

from explorer.frame import onscreen
from explorer.frame.picker import pick
from explorer.memory import address, models, stages, told
from explorer.sentences import training as sentences
from explorer.sentences.escape import literal
from explorer.views.training import course, formed, live, twins

VIEWS = {"Checkpoints": "Checkpoints", "Live": "Train one live", "Twins": "Twins"}


def model_on_screen() -> str:
    """The model on screen without its step, which is the first one to be seen."""
    base, _, step = st.session_state.model.partition("@")
    if step and not st.session_state.train_step:
        st.session_state.train_step = step
    return base


@told.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings."""
    formed.show(course.text_of(model, text))
    address.write()


@told.fragment
def train() -> None:
    """A model of the reader's own."""
    st.caption(sentences.WHOSE.format(literal(models.title(st.session_state.model))))
    live.show()
    address.write()


@told.fragment
def compare(model: str, text: str) -> None:
    """Two models trained alike but for one thing."""
    twins.show(model, text)
    address.write()


address.one_of("train_view", tuple(VIEWS))
pick("View", VIEWS, "train_view", bare=True)
view = st.session_state.train_view
if view != "Live":
    onscreen.tell_instead()
if view == "Live":
    train()
elif missing := stages.missing(st.session_state.model if view == "Checkpoints" else ""):
    st.info(missing)
elif view == "Twins":
    compare(st.session_state.model.partition("@")[0], st.session_state.text)
else:
    with st.spinner("Loading the model …"):
        model = model_on_screen()
        onscreen.shown(model)
    explore(model, st.session_state.text)
