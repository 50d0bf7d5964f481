"""Anatomy: why is this weight what it is?"""

from __future__ import annotations

import streamlit as st

from explorer.frame import onscreen, opening
from explorer.frame.picker import attention_names
from explorer.frame.subject import subject
from explorer.memory import address, models, told
from explorer.memory.passes import Shown
from explorer.sentences.own_code import NO_CELLS
from explorer.views.anatomy import cell, heads, story
from explorer.views.anatomy.switched import switched


def page() -> None:
    """The page: the text is recorded, under the edits of the page Switches, and the rest is drawn
    from its names."""
    source = switched(onscreen.read())
    recording = source.recording()
    address.one_of("attention", attention_names(recording))
    opening.choose_attention(recording)
    explore(source)


@told.fragment
def explore(source: Shown) -> None:
    """The page below the sentence bar. Another head or cell runs this alone.

    It takes names and not the recording, which Streamlit would keep for every visitor.
    """
    st.subheader(
        "Why is this weight what it is?",
        anchor=False,
        help="One cell of one head, from its query and key to what the head wrote. Every number "
        "follows from those before it, computed in 64 bits from the model’s recorded vectors.",
    )
    left, right = st.columns([1, 1.25], gap="large")
    with left:
        on = subject(source)
        head, at = cell.choose(on)
    if not on.attention.opens:
        st.info(NO_CELLS.format(models.named(source.model)))
        return address.write()
    shown = cell.opened(on, head, at)
    with left, st.container():
        grid = cell.matrix(on, head)
    with right:
        cell.in_short(shown)
    story.show(shown, grid)
    if shown.outputs is not None:
        heads.split(shown)
        heads.three_forms(shown)
    address.write()


page()
