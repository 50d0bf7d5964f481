"""The head and the query that a page about one head shows, with their controls."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import soft_lookup
from explorer.analysis.attention import numbered
from explorer.layout import controls
from explorer.layout.controls import Subject
from explorer.state import url_state


def choose(on: Subject, divided: bool = False) -> tuple[int, int, int]:
    """(layer, head, query) of the address. Where it names none: those of the strongest finding, or
    where `divided`, of the row whose second key matters most."""
    *size, rows = on.attention.pattern.shape[:3]
    layer, head = url_state.whole_number("layer", size[0]), url_state.whole_number("head", size[1])
    query = url_state.whole_number("token", rows)
    if layer is None or head is None:
        layer = head = None
    if layer is None and query is None and not divided:
        first = controls.opening_finding(on.recording, on.attention)
        if first is not None and first.query >= 0:
            layer, head, query = *first.at, first.query
    if layer is None or head is None or query is None:
        axes, named = on.axes, (layer, head, query)
        layer, head, query = on.kept(
            ("divided", *named),
            lambda: soft_lookup.most_divided_row(
                on.attention, axes.rows, axes.keys, axes.special, *named
            ),
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        controls.pick_head(size, (layer, head))
        st.session_state["selected query"] = query
        st.selectbox(
            "Query",
            range(rows),
            format_func=numbered(on.axes.rows).__getitem__,
            key="selected query",
            on_change=_take_query,
            width=220,
        )
    return layer, head, query


def _take_query() -> None:
    st.session_state.token = str(st.session_state["selected query"])
