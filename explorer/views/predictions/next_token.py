"""A decoder: which token it predicts after a chosen one, beside the one that follows."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import predictions
from explorer.components import token_strip
from explorer.state import cache, url_state
from explorer.text import predictions as predictions_text
from explorer.views.predictions.masked_lm import fillers
from explorer.views.predictions.page_state import labels_of, nothing, whole_vocabulary
from models.recording import Recording, Stream


def show(recording: Recording) -> None:
    """The text, one token of it chosen, and the likeliest tokens after that one."""
    stream = recording.streams[-1]
    n = len(stream.tokens)
    chosen = url_state.whole_number("token", n)
    place = n - 1 if chosen is None else chosen
    of = predictions.distribution(cache.logits(recording, stream.name, place))
    st.subheader(
        "Predict the next token",
        anchor=False,
        help="A decoder gives every token of its vocabulary a probability to follow, from the "
        "tokens so far.",
    )
    left, right = st.columns([1, 1.1], gap="large")
    with left:
        tokens(recording, stream, place)
        best = predictions.top_words(of, most=1)
        st.markdown(predictions_text.how_sure(of, fills=False))
        st.markdown(
            predictions_text.formula(of, labels_of(recording, best)[0], best[0].id, fills=False)
        )
    with right:
        following = int(stream.ids[place + 1]) if place + 1 < n else None
        firsts = [(word.id, word.own) for word in predictions.top_words(of)]
        whole = cache.predicted_words(recording, firsts) if following is None else {}
        fillers(recording, of, following, place, whole)
        about = f"What follows token {place}, “{stream.tokens[place]}”"
        scores = f"model.logits(recording, {stream.name!r}, {place})"
        whole_vocabulary(recording, of, (about,), f"after-token-{place}", scores)


def tokens(recording: Recording, stream: Stream, place: int) -> None:
    """The text, each token of it to be chosen."""
    strip = [
        token_strip.Token(
            label, tone="special" if special else "", spoken=f"{label}, token {at}", open=True
        )
        for at, (label, special) in enumerate(zip(stream.tokens, stream.special))
    ]
    token_strip.show(
        token_strip.payload(
            strip,
            about="The text. Arrow keys move, Enter chooses a token.",
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
