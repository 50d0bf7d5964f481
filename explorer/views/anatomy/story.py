"""The cell step by step, and its numbers as tables and as a file."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import anatomy
from explorer.analysis.anatomy import facts, vectors
from explorer.analysis.csv import stacked
from explorer.components import anatomy as anatomy_components
from explorer.layout.output import offer_csv
from explorer.text.anatomy import dividing, formulas, memory_said, reasons
from explorer.text.capability_messages import WHICH_TENSORS
from explorer.views.anatomy.cell import CellView, take_cell

NO_OUTPUT = (
    f"This model does not give its W_O here: {WHICH_TENSORS.format('that is')}. "
    "So the steps end at z, and the head’s output in the residual stream is not known."
)
FROM_ANOTHER_TEXT = (
    "An edit replaced a head’s z by that of another text. That z is not in this recording, so "
    "the steps end here."
)


def show(shown: CellView, grid: str) -> None:
    """The story of a weight. grid: the name of the matrix that the cell is chosen in."""
    cell, done, picture = shown.cell, shown.done, shown.picture()
    allowed = shown.on.attention.allowed
    masks = not allowed.all()
    why = {f"{name}Why": line for name, line in reasons(cell, allowed).items()}
    told = {
        **facts(cell, done, shown.on.axes.rows, shown.on.axes.keys),
        **why,
        "masks": masks,
        "missing": NO_OUTPUT if shown.outputs is None else FROM_ANOTHER_TEXT,
        "dividing": dividing(cell),
        "best": list(anatomy.largest_products(cell)),
        "formulas": formulas(cell, done),
    }
    own = None if done is None or shown.outputs is None else shown.outputs[0][cell.layer, cell.head]
    data = anatomy_components.story(told, vectors(cell, done), own, picture, grid)
    anatomy_components.show(data, "anatomy story", lambda: take_cell("anatomy story"))
    tables = anatomy.tables(cell, done, shown.on.axes.keys)
    offer_csv(
        lambda: stacked(tables.items(), "step"), picture.about, picture.file, "All steps as CSV"
    )
    numbers_of(shown)
    with st.expander("The numbers behind each step"):
        for name, columns in tables.items():
            st.markdown(f"**{name}**")
            height = min(360, 38 + 35 * len(next(iter(columns.values()))))
            st.dataframe(columns, hide_index=True, height=height, alt=name)
        recording = shown.on.recording
        longest = recording.model.n_positions
        now = max(len(stream.tokens) for stream in recording.streams)
        here, most = (anatomy.memory(recording, n) for n in (now, longest))
        st.caption(memory_said(here, longest, most))


def numbers_of(shown: CellView) -> None:
    """The lines of Python that give every step of the cell."""
    cell, written = shown.cell, "None"
    if shown.done is not None:
        asked = f"recording, of, {cell.layer}, {cell.query}"
        written = f"anatomy.head_outputs({asked}, model.outputs()[of.name])"
    at = cell.layer, cell.head, cell.query, cell.key
    shown.on.more(
        (
            "anatomy",
            "csv",
        ),
        f"cell = anatomy.cell(recording, of, {', '.join(map(str, at))})",
        f"written = {written}",
        "steps = anatomy.tables(cell, written, axes.keys)",
        'table = csv.stacked(steps.items(), "step")',
    )
