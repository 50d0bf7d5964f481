"""The heads of a model on a text: which attends where?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import attention
from explorer.analysis.attention import HeadSelection, HeadView
from explorer.layout import controls, current_recording, selection_bar
from explorer.layout.controls import attention_names
from explorer.panels import attention as attention_panels
from explorer.state import event_log, url_state
from explorer.state.cache import Run
from explorer.state.scheduling import script_queue
from explorer.text.attention import LABELS
from explorer.views.attention import findings, grid, head, recording_checks
from explorer.views.attention.page_state import (
    AttentionState,
    choices,
    chosen_head,
    screen,
    selected_tokens,
    take_attention,
)

CHOICES = (
    ("view", head.VIEWS),
    ("scale", attention.SCALES),
    ("tone", attention.TONES),
    ("att_unit", attention.UNITS),
    ("att_keep", attention.TOKEN_FILTERS),
    ("att_sum", attention.ROW_SUMS),
    ("att_right", ("", "Open")),
    ("grid", grid.LAYOUTS),
    ("grid_rows", attention_panels.ROWS),
    ("incoming", ("", "1")),
)


def heads() -> None:
    """The tab Heads: choices that do not exist are forgotten, the text is recorded, and the rest is
    drawn from its names."""
    if st.session_state.view == "Plotly":  # a view of earlier versions
        st.session_state.view = "Matrix"
    for name, options in CHOICES:
        url_state.one_of(name, options)
    run = current_recording.read_current()
    script_queue.wait_for((run.model, run.text))
    url_state.one_of("attention", attention_names(run.recording()))
    controls.choose_attention(run.recording())
    explore(run)


@event_log.fragment
def explore(source: Run) -> None:
    """The page below the sentence bar. A choice of attention, head, token or view runs this alone.

    It takes names and not the recording, which Streamlit would keep for every visitor for as long
    as the visit lasts.
    """
    selection_bar.take()
    if st.session_state.att_keep == "All":
        st.session_state.att_sum = attention.ROW_SUMS[0]
    top = st.container(key="findings", gap="xsmall")
    which(source)
    bar = st.container(key="after-selection")
    on = screen(source, st.session_state.attention)
    left, right = st.columns([1, 1.9 if st.session_state.view == "Both" else 1.18], gap="large")
    # On its way to the browser before the findings are made, but behind those that are there.
    begun = not attention_panels.has_findings(on.recording)
    if begun:
        with left:
            grid.show(on)
    first = attention_panels.opening_finding(on.recording, on.attention)
    tokens = selected_tokens(on, first)
    st.session_state["held word"] = "" if tokens[0] is None else str(tokens[0])
    chosen = HeadSelection(tokens, st.session_state.anatomy_cell)
    view = on.view(chosen_head(on, first), chosen, choices())
    with top:
        findings.show(on, view)
    with bar:
        selection(on, view)
    if not begun:
        with left:
            grid.show(on)
    with right:
        head.show(on, view)
    head.actions(on, view)
    with st.expander("How this head was classified", key="why this name", on_change="rerun") as why:
        if why.open:
            head.details(on, view)
    recording_checks.verify(on, view)
    head.numbers(on, view)
    grid.numbers(on)
    url_state.write()


def selection(on: AttentionState, view: HeadView) -> None:
    """The selection bar: the word, the word it attends to, the head, and the View menu."""
    row = view.tokens[0]
    words = selection_bar.Words(
        on.axes.rows,
        selection_bar.EVERY_WORD if row is None else row,
        on.axes.keys,
        view.opened.key,
        every="every word",
    )
    layers, heads = on.attention.pattern.shape[:2]
    at = view.head.layer, view.head.head
    selection_bar.show(words, (layers, heads), at, partial(head.options, on))


def which(source: Run) -> None:
    """The control that chooses an attention where there are several."""
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


def labelled(first: str, name: str) -> str:
    """Label of an attention in the control; the `first` one needs no word in the address."""
    return LABELS[name or first]
