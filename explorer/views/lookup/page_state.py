"""The head and the query of the Lookup page."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.analysis import soft_lookup
from explorer.analysis.attention import numbered
from explorer.layout import controls
from explorer.layout.controls import Subject, pick_head
from explorer.state import url_state
from explorer.text.markdown_escape import literal
from explorer.text.soft_lookup import WHICH_FIRST, WHICH_FOUND


@dataclass(frozen=True, eq=False)
class LookupState:
    """A head of an attention and one of its queries."""

    on: Subject
    layer: int
    head: int
    query: int

    @property
    def at(self) -> tuple[int, int, int]:
        """(layer, head, query)."""
        return self.layer, self.head, self.query

    @property
    def where(self) -> str:
        """Which head, in words."""
        return f"layer {self.layer}, head {self.head}"

    def row(self, at: int) -> str:
        """A query with its place, as Markdown."""
        return f"**{literal(self.on.axes.rows[at])}** ({at})"

    def key(self, at: int) -> str:
        """A key with its place, as Markdown."""
        return f"**{literal(self.on.axes.keys[at])}** ({at})"


def choose(on: Subject, query_too: bool, soft: bool) -> LookupState:
    """What is on screen, with its controls: as on the Attention page, on its strongest finding too;
    of what is `soft` and hard, where these part most."""
    *size, rows = on.attention.pattern.shape[:3]
    layer, head = url_state.whole_number("layer", size[0]), url_state.whole_number("head", size[1])
    query = url_state.whole_number("token", rows)
    if layer is None or head is None:
        layer = head = None
    if layer is None and query is None and not soft:
        first = controls.opening_finding(on.recording, on.attention)
        if first is not None and first.query >= 0:
            layer, head, query = *first.at, first.query
    if layer is None or head is None or query is None:
        axes, asked = on.axes, (layer, head, query)
        layer, head, query = on.kept(
            ("divided", *asked),
            lambda: soft_lookup.most_divided_row(
                on.attention, axes.rows, axes.keys, axes.special, *asked
            ),
        )
    pick_head(size, (layer, head))
    if query_too:
        st.session_state["lookup query"] = query
        st.selectbox(
            "Query",
            range(rows),
            format_func=numbered(on.axes.rows).__getitem__,
            key="lookup query",
            on_change=take_query,
            width=220,
            help=WHICH_FIRST if soft else WHICH_FOUND,
        )
    return LookupState(on, layer, head, query)


def take_query() -> None:
    """The query that was chosen."""
    st.session_state.token = str(st.session_state["lookup query"])


def ignore() -> None:
    """A picture in which nothing is chosen."""
