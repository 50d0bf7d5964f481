"""The attention of both runs: one head before, after and the difference, and how far each moved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from explorer.analysis import interventions
from explorer.analysis.csv import Columns
from explorer.components import bars
from explorer.components import interventions as interventions_components
from explorer.components.figure_caption import Picture
from explorer.layout import export_menu
from explorer.layout.controls import axes_of, take_head, take_named
from explorer.layout.output import offer_recording, with_table
from explorer.state import cache, url_state
from explorer.text import python_snippets
from explorer.text.interventions import MOVED, another_head
from explorer.views.switches.edit_actions import nothing
from explorer.views.switches.run_pair import Runs, target_of
from models.edits import ZeroHead
from models.recording import Attention

MOST_LISTED = 6
Labels = tuple[Sequence[str], Sequence[str]]


def show(on: Runs) -> None:
    """One head's matrices, and below them all heads."""
    before = on.which()
    after = next(one for one in on.other.attention if one.name == before.name)
    with st.spinner("Comparing every row of every head …"):
        distance = cache.cached_for(
            on.other,
            ("moved heads", before.name),
            lambda: interventions.head_distances(before, after),
        )
    at = head_of(on, distance)
    axes = axes_of(on.plain, before)
    one_head(on, before, after, at, (axes.rows, axes.keys))
    st.subheader("Heads with the largest change", anchor=False, help=MOVED)
    data = cache.cached_for(
        on.other,
        ("pairs", before.name),
        lambda: interventions_components.pairs(
            before.pattern,
            after.pattern,
            distance,
            token=cache.picture_name(on.other, "pairs", before.name),
        ),
        weigh=len,
    )
    interventions_components.show(data, "pairs", take_named("pairs"))
    most_changed(on, before.name, distance, at)
    which = on.plain.attention.index(before)
    export_menu.offer_more_code(
        ("attention",),
        f"recording, of, then = before, before.attention[{which}], after.attention[{which}]",
        *python_snippets.axes_of(before.query != before.key),
        "heads = interventions.head_columns(interventions.head_distances(of, then))",
        f"both = of.pattern[{at}], then.pattern[{at}]",
        "cells = interventions.matrix_columns(*both, axes.rows, axes.keys)",
    )
    with_table(
        interventions.head_columns(distance),
        on.caption("mean Jensen–Shannon distance of a head’s rows, base 2"),
        f"headlight-{on.model}-switches-heads",
        "Every head as a table",
    )


def one_head(
    on: Runs, before: Attention, after: Attention, at: tuple[int, int], labels: Labels
) -> None:
    """A head's matrix before, after and the difference, and its files."""
    layer, head = at
    named = f", {before.name}-attention" if len(on.plain.attention) > 1 else ""
    picture = Picture(
        f"Layer {layer}, head {head}{named}",
        on.caption("Attention weights before, after, and after − before on a symmetric scale"),
        f"headlight-{on.model}-switches-L{layer}H{head}",
        cache.picture_name(on.other, "trio", before.name, layer, head),
    )
    st.subheader(picture.title, anchor=False)
    asked_about(on, before.name, at)
    matrices = before.pattern[at], after.pattern[at]
    data = interventions_components.trio(
        matrices, (before.allowed, after.allowed), at, labels, picture
    )
    interventions_components.show(data, "trio", nothing)
    runs = cache.run_of(on.plain), cache.run_of(on.other)
    columns = partial(both_matrices, runs, before.name, at, labels)
    about = picture.title, *picture.caption
    with_table(columns, about, picture.file, "This head as a table", form="%.4f")
    target = target_of(on.plain)
    offer_recording(on.model, on.plain.text, target, on.edits)


def asked_about(on: Runs, name: str, at: tuple[int, int]) -> None:
    """Why this head is shown where the question above names another, and the way to that one."""
    link = on.link
    if link is None or (link.attention, link.at) == (name, at):
        return
    chosen = st.session_state.layer and st.session_state.head
    says = another_head(link, bool(chosen), isinstance(on.edits[0], ZeroHead))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(says, width="content")
        words = f"Show layer {link.layer}, head {link.head}"
        first = link.attention == on.plain.attention[0].name
        where = "" if first else link.attention, link.at
        st.button(words, key="head asked about", on_click=take_asked, args=where)


def take_asked(attention: str, at: tuple[int, int]) -> None:
    """The head that the question is about. For a callback."""
    st.session_state.attention = attention
    take_head(*at)


def both_matrices(
    runs: tuple[cache.Run, cache.Run], name: str, at: tuple[int, int], labels: Labels
) -> Columns:
    """A head's matrix before and after as columns, from the names of the two runs: a button holds
    no arrays."""
    before, after = (each.attention(name).pattern[at] for each in runs)
    return interventions.matrix_columns(before, after, *labels)


def most_changed(on: Runs, name: str, distance: Any, at: tuple[int, int]) -> None:
    """The heads that moved furthest, each to be opened."""
    top = interventions.most_changed(distance, MOST_LISTED)
    if not top:
        st.caption("No head changed." if on.edits else "There is no edit, so no head changed.")
        return
    rows = [
        bars.Bar(
            f"layer {layer}, head {head}",
            float(distance[layer, head]),
            (f"{distance[layer, head]:.3f}",),
            f"{layer}.{head}",
        )
        for layer, head in top
    ]
    data = bars.payload(
        rows,
        ("distance",),
        about="The heads with the largest change.",
        token=cache.picture_name(on.other, "most changed", name, *at),
        chosen=f"{at[0]}.{at[1]}",
        full=1.0,
        action="opens the head",
    )
    bars.show(data, "changed", take_bar)


def head_of(on: Runs, distance: Any) -> tuple[int, int]:
    """The head on screen: the one chosen, or else the one that an experiment is about, if it moved,
    or else the one that changed most."""
    layers, per_layer = distance.shape
    layer, head = url_state.whole_number("layer", layers), url_state.whole_number("head", per_layer)
    if layer is not None and head is not None:
        return layer, head
    link = on.link
    if link is not None and link.attention == on.which().name and distance[link.at] > 0:
        return link.at
    return next(iter(interventions.most_changed(distance, 1)), (0, 0))


def take_bar() -> None:
    """The head whose bar was pressed."""
    layer, _, head = str(st.session_state["changed"].get("row") or "").partition(".")
    take_head(layer, head)
