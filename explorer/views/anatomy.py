"""One attention weight, from query and key to the head's output."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis.attention import strongest_cell
from explorer.analysis.findings import Finding
from explorer.layout import controls, current_recording, navigation, output, selection_bar
from explorer.panels import anatomy
from explorer.panels import attention as attention_panels
from explorer.panels.selection import Selection
from explorer.state import url_state
from explorer.state.cache import Run


@current_recording.tab(before=controls.choose_attention)
def one_weight(source: Run) -> None:
    """The tab One weight."""
    on = controls.attention_on_screen(source, partial(controls.open_attention, source))
    (layer, head), (query, key) = choose(on)
    make = partial(
        anatomy.weight,
        source,
        *(layer, head, query, key),
        st.session_state.weight_step,
        on.attention.name,
    )
    if output.show_panel(make, "weight", partial(_take_cell, query)) is not None:
        cell = {"layer": str(layer), "head": str(head), "token": str(query)}
        there = {**url_state.link_parameters(), **cell}
        navigation.link("concepts", "Change the temperature of this softmax", there)
        with st.expander("All heads of the layer", key="all heads", on_change="rerun") as box:
            if box.open:
                make = partial(anatomy.split, source, layer, head, query, on.attention.name)
                output.show_panel(make, "split")
                make = partial(anatomy.formulas, source, layer, query, on.attention.name)
                output.show_panel(make, "formulas")


def choose(on: Selection) -> tuple[tuple[int, int], tuple[int, int]]:
    """The head and the cell on screen, with the selection bar: what is chosen, or else what the
    strongest finding is seen in."""
    selection_bar.take()
    attention, (layers, heads) = on.attention, on.attention.pattern.shape[:2]
    at, first = controls.head_on_screen((layers, heads)), None
    if at is None:
        first = attention_panels.opening_finding(on.recording, attention)
        at = attention_panels.opening_head(on.recording, attention)
    cell = _cell(on, at, first)
    roles = selection_bar.roles(on.recording.stream(attention.query))
    words = selection_bar.Words(on.axes.rows, cell[0], on.axes.keys, cell[1], roles=roles)
    selection_bar.show(words, (layers, heads), at)
    return at, cell


def _cell(on: Selection, at: tuple[int, int], first: Finding | None) -> tuple[int, int]:
    """The cell on screen: the one that is chosen, that of the strongest finding, or the largest of
    the row or, between two texts, of the column that is chosen."""
    row = url_state.whole_number("token", len(on.axes.rows))
    has_column = on.is_across and row is None
    column = url_state.whole_number("source", len(on.axes.keys) if has_column else 0)
    if row is None and column is None and first is not None and first.query >= 0 and first.keys:
        return first.query, first.keys[0]
    query, _, key = st.session_state.anatomy_cell.partition(".")
    is_cell = query.isdecimal() and key.isdecimal() and len(key) < 6 and query == str(row)
    if is_cell and int(key) < len(on.axes.keys):
        return int(query), int(key)
    st.session_state.anatomy_cell = ""  # of another row, or of no cell
    return strongest_cell(on.attention.pattern[at], on.attention.allowed, row, column)


def _take_cell(query: int) -> None:
    """The cell that was pressed in the matrix, or the key in the row of `query`."""
    state = st.session_state
    pressed = state["weight"].get("select") or {}
    if "key" in pressed:
        state.token = str(pressed.get("token", query))
        state.anatomy_cell = f"{state.token}.{pressed['key']}"
        state.source = ""
