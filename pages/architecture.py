"""Architecture: what happens to a word on its way through?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import residual
from explorer.layout import controls, current_recording, navigation, output, selection_bar
from explorer.panels import architecture
from explorer.panels import attention as attention_panels
from explorer.panels import feed_forward as feed_forward_panels
from explorer.state import event_log, url_state
from explorer.state.cache import Run
from explorer.views.embeddings import word_paths
from explorer.views.positions import word_order
from explorer.views.residual import residual_stream


def diagram() -> None:
    """The tab Diagram: the text is recorded, and the rest is drawn from its names."""
    url_state.one_of("diagram_layers", ("Folded", "All"))
    diagram_fragment(current_recording.read_current())


@event_log.fragment
def diagram_fragment(source: Run) -> None:
    """The tab below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    recording = source.recording()
    stream = recording.streams[0]
    opening = attention_panels.opening_word(recording, recording.attention[0])
    default = residual.most_turned_token(stream) if opening is None else opening
    token = selection_bar.word(stream, default)
    every_layer = st.session_state.diagram_layers == "All"
    make = partial(architecture.diagram, source, token, every_layer)
    output.show_panel(make, "architecture")
    url_state.write()


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
    stream = recording.stream(controls.pick_stream(names, names[0], container=bar))
    n_layers = sum(each.place == "ffn" for each in residual.sublayers(stream))
    opening = attention_panels.opening_word(recording, recording.attention[0])
    default = opening if opening is not None and stream is recording.streams[0] else 0
    layer: int | None = None  # of a model that shows no FFN
    with bar:
        if n_layers:
            layer_of = partial(residual.largest_ffn, stream)
            token, layer = selection_bar.word_and_layer(stream, default, n_layers, layer_of)
        else:
            token = selection_bar.word(stream, default)
    unit = int(state.unit) if state.unit.isdecimal() and len(state.unit) < 7 else None
    make = partial(feed_forward_panels.units, source, token, layer, unit, stream.name)
    output.show_panel(make, "feed forward")
    url_state.write()


navigation.show_tabs(
    {
        "diagram": diagram,
        "positions": word_order,
        "residual": residual_stream,
        "embeddings": word_paths,
        "feedforward": feed_forward,
    }
)
