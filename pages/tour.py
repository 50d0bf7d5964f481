"""Tour: the story of the Transformer on one's own sentence, one picture a step."""

from __future__ import annotations

import streamlit as st

from explorer.frame import onscreen
from explorer.memory import address, told
from explorer.memory.passes import Shown
from explorer.views.tour import step as panel
from explorer.views.tour.seen import seen_of


def page() -> None:
    """The page: the text is recorded, and the step is drawn from its names."""
    with st.spinner("Loading the model …"):
        target = onscreen.typed_target(st.session_state.model)
        source = onscreen.shown(target=target)
    walk(source)


@told.fragment
def walk(source: Shown) -> None:
    """The step on screen. Another step runs this alone."""
    seen = seen_of(source)
    steps = panel.way(seen)
    panel.show(seen, steps, panel.chosen(steps))
    address.write()


page()
