"""Training: when does a head learn its pattern?"""

from __future__ import annotations

import streamlit as st

from explorer.frame import onscreen
from explorer.frame.picker import pick
from explorer.memory import address, models, stages, told
from explorer.sentences.escape import literal
from explorer.views.training import course, formed, live, twins

VIEWS = {"Checkpoints": "Checkpoints", "Live": "Train one live", "Twins": "Twins"}
# What is shown in the place of a model without earlier weights: one that reads the same text where
# the model fills in words, else the one whose head forms at a jump.
MEANS, FILLS = "induction", "twin-post"


def model_on_screen() -> str:
    """The model on screen without its step, if it has earlier weights; else one that has, with a
    word for the reader."""
    chosen = st.session_state.model
    base, _, step = chosen.partition("@")
    if stages.checkpoints(base):
        if step and not st.session_state.train_step:
            st.session_state.train_step = step
        return base
    fitting = stages.with_checkpoints()
    instead = FILLS if models.facts(chosen)["kind"] == "encoder" else MEANS
    st.caption(
        f"{literal(models.title(chosen))} comes without earlier weights, so **{instead}** is "
        f"shown. Models that have them: {', '.join(fitting)}."
    )
    return instead


@told.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings."""
    formed.show(course.text_of(model, text))
    address.write()


@told.fragment
def train() -> None:
    """A model of the reader's own."""
    live.show()
    address.write()


@told.fragment
def compare(text: str) -> None:
    """Two models trained alike but for one thing."""
    twins.show(text)
    address.write()


address.one_of("train_view", tuple(VIEWS))
pick("View", VIEWS, "train_view", bare=True)
if st.session_state.train_view == "Live":
    train()
elif st.session_state.train_view == "Twins":
    compare(st.session_state.text)
else:
    with st.spinner("Loading the model …"):
        model = model_on_screen()
        onscreen.shown(model)
    explore(model, st.session_state.text)
