"""Lookup: is attention a lookup, or messages on a graph?"""

from __future__ import annotations

import streamlit as st

from explorer.frame import onscreen
from explorer.frame.picker import pick
from explorer.frame.subject import subject
from explorer.memory import address, models, told
from explorer.memory.passes import Shown
from explorer.sentences import lookup as words
from explorer.views.lookup import circuits, messages, scale, soft, three
from explorer.views.lookup.screen import choose

WAYS = {
    "Hard": "Soft or hard?",
    "Graph": "Messages",
    "Three": "Three constructions",
    "Words": "Words in, words out",
    "Scale": "Why the scale",
}
SCALED = "q and k: each head’s brought to a mean square of 1 a component, heads side by side"


@told.fragment
def explore(source: Shown) -> None:
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
        st.info(words.CLOSED.format(models.named(source.model)))
    elif shown is None:
        scale.panel(on, on.caption(SCALED))
    else:
        {
            "Hard": soft.show,
            "Graph": messages.show,
            "Three": three.show,
            "Words": circuits.show,
        }[way](shown)
    address.write()


for name, options in (
    ("look_at", tuple(WAYS)),
    ("look_before", tuple(three.BEFORE)),
    ("look_as", tuple(circuits.AS)),
):
    address.one_of(name, options)
explore(onscreen.read())
