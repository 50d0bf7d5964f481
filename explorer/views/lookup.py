"""Concepts: attention as a soft lookup, as messages, its scores and its scale; and the circuits of
a head."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.layout import current_recording, output
from explorer.layout.controls import attention_on_screen, pick
from explorer.layout.selection_bar import choose
from explorer.panels import circuits, soft_lookup
from explorer.state import models, url_state
from explorer.state.cache import Run

VIEWS = {
    "Hard": "Soft lookup",
    "Graph": "Messages",
    "Three": "Three kinds of scores",
    "Scale": "Why the scale",
}
TIMES = ("0.5", "1", "1.5", "2", "3", "5")
LAYOUTS = ("Arcs", "Circle")


@current_recording.tab(
    edited=False,
    look_at=tuple(VIEWS),
    look_rule=TIMES,
    look_layout=LAYOUTS,
    look_heads=("One", "Mean"),
    look_before=("Weights", "Scores"),
)
def concepts(source: Run) -> None:
    """The tab Concepts."""
    view = pick("View", VIEWS, "look_at", bare=True)
    on = choose(attention_on_screen(source))
    at, name, state = on.at, on.attention.name, st.session_state
    if view == "Hard":
        make = partial(soft_lookup.temperature, source, *at, temperature(), name)
        output.show_panel(make, "temperature")
        output.show_panel(partial(soft_lookup.heads, source, *at[:2], name), "lookup heads")
    elif view == "Graph":
        with st.popover("View"):
            st.select_slider(
                "Edges from … × the uniform weight", TIMES, key="look_rule", persist_state="session"
            )
            pick("Layout", LAYOUTS, "look_layout")
            pick("Weights of", {"One": "This head", "Mean": "Mean of the layer"}, "look_heads")
        layout, mean = state.look_layout.lower(), state.look_heads == "Mean"
        make = partial(
            soft_lookup.messages, source, *at, float(state.look_rule), layout, mean, name
        )
        output.show_panel(make, "messages")
    elif view == "Three":
        with st.popover("View"):
            pick("Show", {"Weights": "After the softmax", "Scores": "Before it"}, "look_before")
        make = partial(soft_lookup.scoring, source, *at[:2], state.look_before, name)
        output.show_panel(make, "scoring")
    else:
        output.show_panel(partial(soft_lookup.scale, source, name), "scale")


@current_recording.tab(edited=False, look_as=("Bare", "Here"), look_keys=("Text", "All"))
def qk_and_ov(source: Run) -> None:
    """The tab QK & OV: the circuits of the head on the selected words, or on a word that is
    typed."""
    on = choose(attention_on_screen(source), view=partial(circuit_options, source.model))
    state, recording = st.session_state, on.recording
    key = url_state.whole_number("look_key", len(recording.attention[0].allowed[0]))
    word = url_state.whole_number("look_word", recording.model.n_vocab)
    scope = "context " * (state.look_as == "Here") + "vocabulary" * (state.look_keys == "All")
    make = partial(circuits.circuits, source, *on.at, key, word, scope.strip(), on.attention.name)
    output.show_panel(make, "circuits")


def circuit_options(model: str) -> None:
    """Show the options of the View menu: the value and the keys, and a word that is typed."""
    pick("Value of the key", {"Bare": "Bare word", "Here": "In this text"}, "look_as")
    pick("Keys", {"Text": "In this text", "All": "In the vocabulary"}, "look_keys")
    st.text_input("Any other word", key="typed word", on_change=take_word, args=(model,))


def take_word(model: str) -> None:
    """The first token of what was typed."""
    first = models.first_token(model, st.session_state["typed word"].strip())
    st.session_state.look_word = "" if first is None else str(first[0])


def temperature() -> float:
    """The temperature of the address, 1 where it says none that is on the slider."""
    try:
        value = float(st.session_state.look_temperature.replace("∞", "inf"))
    except ValueError:
        value = 1.0
    known = value in (0, float("inf")) or soft_lookup.COLDEST <= value <= soft_lookup.HOTTEST
    st.session_state.look_temperature = f"{value if known else 1:g}"
    return value if known else 1.0
