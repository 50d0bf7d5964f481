"""The feed-forward network of a layer at one word."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import residual
from explorer.layout import controls, current_recording, output, selection_bar
from explorer.panels import attention as attention_panels
from explorer.panels import feed_forward as feed_forward_panels
from explorer.state import event_log, url_state
from explorer.state.cache import Run


def feed_forward() -> None:
    """The tab Feed-forward: the text is recorded, and the rest is drawn from its names."""
    feed_forward_fragment(current_recording.read_current())


@event_log.fragment
def feed_forward_fragment(source: Run) -> None:
    """The tab below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    recording, state = source.recording(), st.session_state
    bar = st.container(horizontal=True, vertical_alignment="center")
    names = tuple(each.name for each in recording.streams)
    name = state.stream if state.stream in names else names[0]
    stream = recording.stream(controls.pick_stream(names, name, container=bar))
    n_layers = sum(each.place == "ffn" for each in residual.sublayers(stream))
    opening = attention_panels.opening_word(recording, recording.attention[0])
    with bar:
        token, layer = selection_bar.word_and_layer(
            stream,
            opening if opening is not None and stream is recording.streams[0] else 0,
            n_layers,
            partial(residual.largest_ffn, stream),
        )
    unit = int(state.unit) if state.unit.isdecimal() and len(state.unit) < 7 else None
    make = partial(feed_forward_panels.units, source, token, layer, unit, stream.name)
    output.show_panel(make, "feed forward")
    url_state.write()
