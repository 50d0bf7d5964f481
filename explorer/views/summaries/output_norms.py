"""What each head wrote: layers down, heads across."""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer.analysis import summaries
from explorer.analysis.attention import numbered
from explorer.components import matrix
from explorer.layout.controls import Subject, pick
from explorer.state import cache, url_state
from explorer.text.summaries import MEANING, caution, writes
from explorer.views.summaries.matrix import files

MEASURES = {"Length": "Length", "Share": "Signed share"}


def show(on: Subject, controls: Any) -> None:
    """The length of what each head wrote, or its signed share of attention's write."""
    with controls:
        row, measure = asked(on)
    w_o, b_o = cache.outputs(on.recording)[on.attention.name]
    what = ("contributions", row)
    found = on.kept(what, lambda: summaries.contributions(on.attention, w_o, b_o, row))
    values, rows, columns = summaries.layer_table(found, measure)
    where = "mean of all tokens" if row is None else f"token {row}, {on.axes.rows[row]}"
    picture = on.picture(
        f"What each head wrote ({MEASURES[measure].lower()}), {where}",
        MEANING["Writes"],
        file=f"writes-{measure.lower()}",
        what=("writes", measure, row),
    )
    high = summaries.scale_maximum(values, "Writes")
    sheet = matrix.MatrixSheet(
        rows, columns, [False] * len(columns), ("layer", "head"), digits=3, choose=False
    )
    left, right = st.columns([1, 1.05], gap="large")
    with left:
        panel = matrix.MatrixPanel("", values, 0 if measure == "Length" else -high, high)
        matrix.show(matrix.panels([panel], sheet, picture), "head writes", ignore)
    with right:
        for line in writes(found, measure, row is None):
            st.markdown(line)
        said = caution("Writes", 0, (0.0, 0.0), None)
        st.markdown(f":material/warning: {said}")
    on.numbers(
        "what each head wrote",
        ("summaries",),
        f"found = summaries.contributions(of, *model.outputs()[of.name], {row})",
        f"values, rows, columns = summaries.layer_table(found, {measure!r})",
        'table = {"layer": rows, **dict(zip(columns, values.T))}',
    )
    files(lambda: {"layer": rows, **dict(zip(columns, values.T))}, (values, rows, columns), picture)


def asked(on: Subject) -> tuple[int | None, str]:
    """Of which token, None for the mean of all, and what of the writes."""
    row = url_state.whole_number("token", len(on.axes.rows))
    st.session_state["written at"] = -1 if row is None else row
    url_state.one_of("sum_measure", tuple(MEASURES))
    labels = ["All tokens (mean)", *numbered(on.axes.rows)]
    st.selectbox(
        "Token",
        range(-1, len(on.axes.rows)),
        format_func=lambda at: labels[at + 1],
        key="written at",
        on_change=take_token,
        width=240,
    )
    measure = pick("Measure", MEASURES, "sum_measure")
    return row, measure


def take_token() -> None:
    """The token whose writes are shown."""
    at = st.session_state["written at"]
    st.session_state.token = "" if at < 0 else str(at)


def ignore() -> None:
    """A picture in which nothing is chosen."""
