"""Positions in a model: how does the model know word order?"""

from __future__ import annotations

import streamlit as st

from explorer.layout import current_recording
from explorer.layout.controls import pick
from explorer.state import cache, event_log, url_state
from explorer.views.positions import add_vs_concat, distance, order, sentence, shift, sinusoids
from explorer.views.positions.page_state import PositionSource

SCREENS = {
    "Waves": ("What is added to tell positions apart?", sinusoids.show),
    "Distance": ("What do two positions’ encodings say about their distance?", distance.show),
    "Shift": ("Why is moving by k positions a rotation?", shift.show),
    "Sentence": ("What does it add to this sentence, and to its scores?", sentence.show),
    "Order": ("Does the model notice another order of the words?", order.show),
    "Adding": ("Why add the encoding, and not concatenate it?", add_vs_concat.show),
}
ABOUT = (
    "How does the model know word order? Attention alone treats a text as a bag of words. What "
    "follows is how position gets in, and what happens without."
)


@event_log.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would
    keep for every visitor."""
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        top = st.container(width="content")
        screen = pick("Question", tuple(SCREENS), "ask", bare=True)
    question, show = SCREENS[screen]
    top.subheader(question, anchor=False, help=ABOUT)
    names = [stream.name for stream in cache.record(model, text).streams]
    stream = st.session_state.stream
    show(PositionSource(model, text, stream if stream in names else names[0]))
    url_state.write()


def word_order() -> None:
    """The tab Positions: choices that do not exist are forgotten, the text is recorded, and the
    rest is drawn from its names."""
    for choice, options in (
        ("ask", tuple(SCREENS)),
        ("order", order.ORDERS),
        ("positions", order.POSITIONS),
    ):
        url_state.one_of(choice, options)
    with st.spinner("Loading the model …"):
        on_screen = current_recording.current_run()
    explore(on_screen.model, st.session_state.text)
