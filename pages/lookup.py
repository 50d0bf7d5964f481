"""Lookup: is attention a lookup, or messages on a graph?"""

from __future__ import annotations

import streamlit as st

from explorer.layout import current_recording
from explorer.layout.controls import pick, subject
from explorer.state import event_log, models, url_state
from explorer.state.cache import Run
from explorer.text import soft_lookup
from explorer.views.lookup import circuits, messages, qk_variants, scale
from explorer.views.lookup.page_state import choose
from explorer.views.lookup.soft_lookup import show

WAYS = {
    "Hard": "Soft or hard?",
    "Graph": "Messages",
    "Three": "Three constructions",
    "Words": "Words in, words out",
    "Scale": "Why the scale",
}
SCALED = "q and k: each head’s brought to a mean square of 1 a component, heads side by side"


@event_log.fragment
def explore(source: Run) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        st.subheader(
            "Is attention a lookup, or messages on a graph?", anchor=False, width="content"
        )
        way = pick("Look at it as", WAYS, "look_at", bare=True)
    on = subject(source)
    # On a phone behind what follows.
    with st.container(horizontal=True, vertical_alignment="bottom", key="after-look"):
        shown = None if way == "Scale" else choose(on, way != "Three", way == "Hard")
    if not on.attention.opens and way != "Graph":
        st.info(soft_lookup.CLOSED.format(models.markdown_name(source.model)))
    elif shown is None:
        scale.panel(on, on.caption(SCALED))
    else:
        {
            "Hard": show,
            "Graph": messages.show,
            "Three": qk_variants.show,
            "Words": circuits.show,
        }[way](shown)
    url_state.write()


for name, options in (
    ("look_at", tuple(WAYS)),
    ("look_before", tuple(qk_variants.BEFORE)),
    ("look_as", tuple(circuits.AS)),
):
    url_state.one_of(name, options)
explore(current_recording.read_current())
