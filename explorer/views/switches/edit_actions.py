"""Writing the edits of the address: what every button of the Switches page does."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from explorer.analysis import terminology
from models.edits import Edit, to_line

Edits = tuple[Edit, ...]


def put(edits: Edits) -> None:
    """Make these the edits; with none the page stays as the model was trained."""
    st.session_state.edits = to_line(terminology.sorted_edits(edits))
    if not edits:
        st.session_state.experiment = "off"


def shown(key: str, value: object) -> None:
    """What a widget shows is what the edits say, before it is made."""
    st.session_state[key] = value


def take_preset(made: Mapping[str, Edits]) -> None:
    """The example just chosen; pressed once more, nothing is switched."""
    put(made.get(st.session_state["switch preset"], ()))


def take_back(edits: Edits) -> None:
    """Only those that are still lit."""
    put(tuple(edit for at, edit in enumerate(edits) if at in st.session_state["switched"]))


def open_model(name: str, edits: Edits) -> None:
    """That model, under these edits."""
    state = st.session_state
    state.model, state.acted = name, True
    state.token = state.layer = state.head = state.attention = state.only = ""
    put(edits)


def nothing() -> None:
    """For a picture that is only looked at."""
