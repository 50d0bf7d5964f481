"""Attention: which head looks where?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import attention as numbers
from explorer.frame import onscreen, opening
from explorer.memory import address, models
from explorer.memory.passes import Shown
from explorer.sentences import attention as sentences
from explorer.views.attention import checks, findings, grid, head
from explorer.views.attention.screen import (
    OF_A_HEAD,
    chosen_head,
    held_tokens,
    names_of,
    screen,
    take_attention,
)
from models.recording import Recording

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
    with st.spinner("Loading the model …"):
        target = typed_target()
        shown = onscreen.shown(target=target)
    if target is not None:
        tell_target(shown.recording())
    address.one_of("attention", names_of(shown.recording()))
    if not any(st.session_state[name] for name in ("attention", *OF_A_HEAD)):
        # Nothing is chosen yet: the attention that the strongest finding is seen in.
        first = next(
            (one for one in opening.found(shown.recording()) if one.page == "attention"), None
        )
        st.session_state.attention = dict(first.address)["attention"] if first else ""
    explore(shown)


@st.fragment
def explore(source: Shown) -> None:
    """The page below the sentence bar. A choice of attention, head, token or view runs this alone.

    It takes names and not the recording, which Streamlit would keep for every visitor for as long
    as the visit lasts.
    """
    top = st.container(key="findings")
    which(source)
    on = screen(source, st.session_state.attention)
    left, right = st.columns([1, 1.08], gap="large")
    with left:
        grid.show(on)  # on its way to the browser before the findings are made
    first = opening.first(on.recording, on.attention)
    view = on.view(chosen_head(on, first), held_tokens(on, first))
    with top:
        findings.show(on.recording, source)
    with right:
        head.show(on, view)
    with left:
        checks.formula(on, view)
        checks.is_it_right(on.recording)
    address.write()


def which(source: Shown) -> None:
    """The control that chooses an attention where there are several, and a line on who looks at whom."""
    recording = source.recording()
    names = names_of(recording)
    with st.container(gap="xsmall"):
        if len(names) > 1:
            st.segmented_control(
                "Attention",
                names,
                key="attention",
                format_func=partial(labelled, recording.attention[0].name),
                required=True,
                persist_state="session",
                label_visibility="collapsed",
                on_change=partial(take_attention, source),
            )
        attention = recording.attention[names.index(st.session_state.attention)]
        if len(names) > 1 or not attention.allowed.all():
            st.caption(sentences.WHO[attention.name])


def labelled(first: str, name: str) -> str:
    """What the control calls an attention; the `first` one needs no word in the address."""
    return sentences.LABELS[name or first]


def typed_target() -> str | None:
    """What the reader typed for the decoder to read, on the page of translations; None where the
    model writes its own."""
    writes = models.handle(st.session_state.model).card.kind == "encoder-decoder"
    return st.session_state.target if writes and st.session_state.target.strip() else None


def tell_target(recording: Recording) -> None:
    """A word on a target that is not the model's own, and the way back."""
    dropped = ""
    if recording.target_dropped:
        dropped = f" Its last {recording.target_dropped:,} tokens do not fit and are left out."
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            "The decoder reads the target that you typed on the page Translation, not what it would write itself."
            + dropped
        )
        st.button("Back to the model’s own", on_click=drop_target)


def drop_target() -> None:
    """The model's own words again."""
    st.session_state.target = st.session_state.token = st.session_state.source = ""


page()
