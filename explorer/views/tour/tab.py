"""Tour: the story of the Transformer on one's own sentence, one picture a step."""

from __future__ import annotations

import streamlit as st

from explorer.layout import current_recording
from explorer.state import event_log, url_state
from explorer.state.cache import Run
from explorer.views.tour import step
from explorer.views.tour.tour_inputs import seen_of


def take_tour() -> None:
    """The tab Tour: the text is recorded, and the step is drawn from its names."""
    with st.spinner("Loading the model …"):
        target = current_recording.typed_target(st.session_state.model)
        source = current_recording.current_run(target=target)
    walk(source)


@event_log.fragment
def walk(source: Run) -> None:
    """The step on screen. Another step runs this alone."""
    seen = seen_of(source)
    steps = step.way(seen)
    step.show(seen, steps, step.chosen(steps))
    url_state.write()
