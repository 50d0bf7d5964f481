"""The heads of a layer together: the split into heads and back, and attention written in three
ways."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import anatomy
from explorer.components import anatomy as anatomy_components
from explorer.text.anatomy import shapes_of, verdict
from explorer.text.markdown_escape import literal
from explorer.views.anatomy.cell import CellView

FORMULAS = (
    r"o_i = \sum_h \sum_j a^h_{ij} \, (v^h_j W_O^h) + b",
    r"O \vphantom{\sum_h} = [A_1 V_1 \mid \dots \mid A_H V_H] \, W_O + b",
    r"O = \sum_h A_h V_h W_O^h + b",
)


def split(shown: CellView) -> None:
    """The split into heads and back, with this sentence's sizes and this token's numbers."""
    st.subheader(
        "Splitting into heads and concatenating",
        anchor=False,
        help="One wide vector is split into equal pieces, one per head. Each piece attends "
        "separately, and the results are concatenated.",
    )
    cell, attention = shown.cell, shown.on.attention
    n_head, d_head = attention.q.shape[1], attention.q.shape[-1]
    token = shown.on.name("split", cell.layer, cell.head, cell.query)
    n, m = attention.allowed.shape
    sizes = anatomy_components.Split(
        n,
        m,
        heads=n_head,
        d_head=d_head,
        d_v=attention.v.shape[-1],
        d_model=shown.on.recording.model.d_model,
        head=cell.head,
        query=cell.query,
    )
    anatomy_components.show(
        anatomy_components.shapes(sizes, shown.query, token), "anatomy shapes", ignore
    )
    if shown.done is None:
        return
    strip = partial(anatomy_components.strip, heads=n_head, head=cell.head)
    for name, rows, what in (
        ("q, all heads", shown.done.q, "every head’s q"),
        ("z, concatenated", shown.done.z, "every head’s z, concatenated"),
    ):
        data = strip(rows.ravel(), name, f"{what}, of {shown.query}", f"{token} {name}")
        anatomy_components.show(data, f"anatomy {name}", ignore)


def three_forms(shown: CellView) -> None:
    """The lecture notes' three ways to write attention, on this token: the same numbers."""
    st.subheader(
        "Three equivalent formulas",
        anchor=False,
        help="This layer’s attention output at the selected token, computed in three ways.",
    )
    on, cell, outputs = shown.on, shown.cell, shown.outputs
    assert outputs is not None  # else the page does not show this
    what = ("forms", cell.layer, cell.query)
    found = on.kept(
        what,
        lambda: anatomy.output_forms(on.recording, on.attention, cell.layer, cell.query, outputs),
    )
    token, top = on.name(*what), anatomy.largest_component(found)
    names = ("Per position", "Matrices, then concat", "A sum over heads")
    vectors = (found.per_position, found.concatenated, found.by_head)
    n_head, d_v = on.attention.v.shape[1], on.attention.v.shape[-1]
    n, m = on.attention.allowed.shape
    shapes = shapes_of(n_head, n, m, d_v, on.recording.model.d_model)
    places = st.columns(3, gap="medium")
    for place, name, formula, vector, shape in zip(places, names, FORMULAS, vectors, shapes):
        with place:
            st.markdown(f"**{name}**")
            st.latex(formula)
            about = f"{name}: the output at {shown.query}"
            data = anatomy_components.strip(vector, "", about, f"{token} {name}", scale=top)
            anatomy_components.show(data, f"anatomy {name}", ignore)
            st.caption(shape)
    st.markdown(verdict(found, literal(shown.query)))


def ignore() -> None:
    """A picture in which nothing is chosen."""
