"""The first minute: the strongest finding as a headline, and what else is worth a look, each a step
to head and word."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.finding import Finding
from explorer.analysis.findings import worth
from explorer.frame import opening
from explorer.frame.onscreen import take_text
from explorer.memory.passes import Shown
from explorer.sentences import findings as sentences
from explorer.sentences import glossary
from models.recording import Recording

MOST = 5


def show(recording: Recording, source: Shown) -> None:
    """The headline of a recording and the buttons under it. Of a text without words it says
    nothing."""
    chosen = worth(opening.found(recording), MOST)
    if not chosen:
        return
    best = chosen[0]
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        said = sentences.headline(best)
        words = glossary.explained(f"{said} {sentences.evidence(best)}", "head")
        st.title(said, anchor=False, help=f"{sentences.evidence(best)}\n\n{words}", width="content")
        if test := sentences.question(best):
            pressed = st.button(
                test,
                key="retype",
                type="tertiary",
                icon=":material/edit:",
                on_click=retype,
                args=(source.text, best),
            )
            if pressed:
                st.rerun()  # the whole page: the text stands above it
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="worth"):
        st.caption("Worth a look", width="content")
        for at, one in enumerate(chosen):
            button(at, one)


def button(at: int, one: Finding) -> None:
    """A step to a finding."""
    elsewhere = one.page != "attention"
    pressed = st.button(
        sentences.short(one),
        key=f"worth {at}",
        help=sentences.headline(one) + ". " + sentences.evidence(one),
        on_click=opening.take,
        args=(one,),
        icon=":material/arrow_outward:" if elsewhere else None,
    )
    if pressed and elsewhere:
        st.switch_page(f"../pages/{one.page}.py")


def retype(text: str, one: Finding) -> None:
    """Change the one word, and stay at the finding's head and word."""
    opening.take(one)
    take_text(text.replace(*one.retype, 1))
    for name, value in one.address:
        st.session_state[name] = value
