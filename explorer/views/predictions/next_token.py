"""A decoder: the text, one token of it selected, and the prediction after that one."""

from __future__ import annotations

import streamlit as st

from explorer.components import token_strip
from explorer.state import cache, url_state
from explorer.state.cache import Run
from explorer.views.predictions.page_state import nothing, show_prediction
from models.recording import Recording, Stream


def show(source: Run, recording: Recording) -> None:
    """The text, and the most likely tokens after the selected one."""
    stream = recording.streams[-1]
    n = len(stream.tokens)
    chosen = url_state.whole_number("token", n)
    place = n - 1 if chosen is None else chosen
    tokens(recording, stream, place)
    show_prediction(source, place)


def tokens(recording: Recording, stream: Stream, place: int) -> None:
    """The text, each token of it to be selected."""
    strip = [
        token_strip.Token(
            label, tone="special" if special else "", spoken=f"{label}, token {at}", open=True
        )
        for at, (label, special) in enumerate(zip(stream.tokens, stream.special))
    ]
    token_strip.show(
        token_strip.payload(
            strip,
            about="The text. Arrow keys move, Enter selects a token.",
            says=f"Selected: “{stream.tokens[place]}” (token {place}). The model reads up to it.",
            chosen=place,
            token=cache.picture_name(recording, "next after", place),
        ),
        "text so far",
        on_choice=take_token,
        on_tick=nothing,
    )


def take_token() -> None:
    """The token pressed is the one after which the model predicts."""
    state = st.session_state
    state.token, state.word = str(int(state["text so far"]["at"])), ""
