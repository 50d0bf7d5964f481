"""Where weights mislead: rows in which most of the weight is little of what is written."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import summaries
from explorer.layout import output
from explorer.layout.output import offer_csv
from explorer.state import models
from explorer.text.markdown_escape import literal
from explorer.text.summaries import CLOSED, MARKED, RULE, gap, misleading, nowhere
from explorer.views.summaries.page_state import Summary

MOST_LISTED = 4
LINES = (  # of Python that give the table
    "apart = summaries.disagreements(of, model.outputs()[of.name][0])",
    "misleading = summaries.disagreement_columns(apart, axes.rows, axes.keys)",
)


def show(made: Summary) -> None:
    """The widest gaps as steps to their heads, and all of them as a table."""
    found, axes = made.parted, made.on.axes
    if found is None:
        st.caption(CLOSED.format(models.markdown_name(made.on.recording.model.name)))
        return

    def told(one: summaries.Disagreement) -> str:
        return gap(one, literal(axes.rows[one.query]), literal(axes.keys[one.key]))

    st.markdown("**Where the weights mislead**")
    if not found.found:
        nearest = told(found.nearest) if found.nearest else ""
        st.markdown(nowhere(found.rows_in_all, nearest))
        return
    marked = made.what in MARKED
    st.markdown(misleading(len(found.found), found.rows_in_all, marked))
    with st.container(gap=None):
        for at, one in enumerate(found.found[:MOST_LISTED]):
            st.button(
                told(one),
                key=f"gap {at}",
                type="tertiary",
                on_click=open_gap,
                args=(one.layer, one.head, one.query),
                help="Open this head at this row.",
            )
    columns = partial(summaries.disagreement_columns, found, axes.rows, axes.keys)
    label = f"All {len(found.found):,} as a table"
    with st.expander(label, key="gaps table", on_change="rerun") as box:
        if box.open:
            output.data_table(columns(), "Where weights and what is written disagree", "%.3g")
    about = (f"A token takes {RULE}", *made.on.caption())
    name = "Where weights and writes disagree as CSV"
    offer_csv(columns, about, made.on.file("disagreements"), name)


def open_gap(layer: int, head: int, query: int) -> None:
    """Open the head of a disagreement at its row."""
    state = st.session_state
    state.sum_what, state.token = "Values", str(query)
    state.sum_layer, state.sum_head = str(layer), str(head)
