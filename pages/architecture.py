"""Architecture: what happens to a word on its way through?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import recorded_findings, residual
from explorer.layout import controls, current_recording, navigation, output, selection_bar
from explorer.panels import architecture
from explorer.panels import feed_forward as feed_forward_panels
from explorer.views.embeddings import word_paths
from explorer.views.positions import word_order
from explorer.views.residual import residual_stream
from models.run import Run


@current_recording.tab(diagram_layers=("Folded", "All"))
def diagram(source: Run) -> None:
    """The tab Diagram."""
    recording = source.recording()
    stream = recording.streams[0]
    token = selection_bar.word(stream, recorded_findings.first_word(recording, stream))
    every_layer = st.session_state.diagram_layers == "All"
    make = partial(architecture.diagram, source, token, every_layer)
    output.show_panel(make, "architecture")


@current_recording.tab()
def feed_forward(source: Run) -> None:
    """The tab Feed-forward."""
    recording, state = source.recording(), st.session_state
    bar = st.container(horizontal=True, vertical_alignment="center")
    names = tuple(each.name for each in recording.streams)
    stream = recording.stream(controls.pick_stream(names, names[0], container=bar))
    n_layers = sum(each.place == "ffn" for each in residual.sublayers(stream))
    default = recorded_findings.first_word(recording, stream)
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


navigation.show_tabs(
    {
        "diagram": diagram,
        "positions": word_order,
        "residual": residual_stream,
        "embeddings": word_paths,
        "feedforward": feed_forward,
    }
)
