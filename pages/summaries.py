"""Summaries: what do all heads say together, and can you trust the sum?"""

from __future__ import annotations

import streamlit as st

from explorer.frame import onscreen
from explorer.frame.picker import attention_names, pick
from explorer.frame.subject import subject
from explorer.memory import address, models, told
from explorer.memory.passes import Shown
from explorer.sentences import summaries as words
from explorer.views.summaries import matrix, writes
from explorer.views.summaries.screen import KEPT


def page() -> None:
    """The page: choices that do not exist are forgotten, the text is recorded, and the rest is
    drawn from its names."""
    address.one_of("sum_what", tuple(words.LABELS))
    address.one_of("att_keep", tuple(KEPT))
    source = onscreen.read()
    address.one_of("attention", attention_names(source.recording()))
    explore(source)


@told.fragment
def explore(source: Shown) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    st.subheader("What do all heads say together, and can you trust the sum?", anchor=False)
    on = subject(source)
    controls = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    what = pick("Summary", words.LABELS, "sum_what", at=controls)
    if what in words.THROUGH and on.across:
        st.info(words.NO_WAY_ACROSS.format(what))
    elif what in ("Values", "Writes") and not models.shows_writes(on.recording):
        st.info(words.CLOSED.format(models.named(source.model)))
    elif what == "Writes":
        writes.show(on, controls)
    else:
        matrix.show(on, what)
    address.write()


page()
