"""Attention: which head looks where?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import attention as numbers
from explorer.analysis.called import windowed
from explorer.analysis.head_view import Asked
from explorer.frame import onscreen, opening, terms
from explorer.frame.picker import attention_names
from explorer.memory import address, told
from explorer.memory.passes import Shown
from explorer.memory.runs import line
from explorer.sentences import attention as sentences
from explorer.views.attention import checks, findings, grid, head
from explorer.views.attention.screen import (
    choices,
    chosen_head,
    held_tokens,
    screen,
    take_attention,
)

CHOICES = (
    ("view", head.VIEWS),
    ("scale", numbers.SCALES),
    ("tone", numbers.TONES),
    ("att_unit", numbers.UNITS),
    ("att_keep", numbers.KEPT),
    ("att_sum", numbers.SUMS),
    ("att_right", ("", "Open")),
)


def page() -> None:
    """The page: choices that do not exist are forgotten, the text is recorded, and the rest is
    drawn from its names."""
    for name, options in CHOICES:
        address.one_of(name, options)
    shown = onscreen.read()
    line.wait_for((shown.model, shown.text))
    address.one_of("attention", attention_names(shown.recording()))
    opening.choose_attention(shown.recording())
    explore(shown)


@told.fragment
def explore(source: Shown) -> None:
    """The page below the sentence bar. A choice of attention, head, token or view runs this alone.

    It takes names and not the recording, which Streamlit would keep for every visitor for as long
    as the visit lasts.
    """
    top = st.container(key="findings", gap="xsmall")
    which(source)
    on = screen(source, st.session_state.attention)
    left, right = st.columns([1, 1.9 if st.session_state.view == "Both" else 1.08], gap="large")
    # On its way to the browser before the findings are made, but behind those that are there.
    begun = not opening.is_found(on.recording)
    if begun:
        with left:
            grid.show(on)
    first = opening.first(on.recording, on.attention)
    held = held_tokens(on, first)
    st.session_state["held word"] = "" if held[0] is None else str(held[0])
    asked = Asked(held, st.session_state.anatomy_cell)
    view = on.view(chosen_head(on, first), asked, choices())
    with top:
        findings.show(on, view)
    if not begun:
        with left:
            grid.show(on)
    with right:
        head.show(on, view)
    with left:
        checks.formula(on, view)
        checks.is_it_right(on.recording)
    address.write()


def which(source: Shown) -> None:
    """The control that chooses an attention where there are several, and a line on who looks at
    whom."""
    recording = source.recording()
    names = attention_names(recording)
    if len(names) > 1:
        st.segmented_control(
            "Attention",
            names,
            key="attention",
            wrap=True,
            format_func=partial(labelled, recording.attention[0].name),
            required=True,
            persist_state="session",
            label_visibility="collapsed",
            on_change=partial(take_attention, source),
        )
    attention = recording.attention[names.index(st.session_state.attention)]
    if len(names) > 1 or not attention.allowed.all():
        said = sentences.WHO[attention.name]
        if windowed(attention.allowed):
            said += sentences.WINDOW
        terms.caption(said, *sentences.WHO_TERMS[attention.name])


def labelled(first: str, name: str) -> str:
    """What the control calls an attention; the `first` one needs no word in the address."""
    return sentences.LABELS[name or first]


page()
