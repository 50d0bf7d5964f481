"""The head as a graph, and the messages that one token receives."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from explorer.analysis import soft_lookup
from explorer.analysis.summaries import mask_values
from explorer.analysis.terminology import mask_reason
from explorer.components import graph, matrix
from explorer.components.figure_caption import Picture
from explorer.layout import output
from explorer.layout.controls import pick
from explorer.layout.output import offer_csv, with_table
from explorer.state import cache, models, url_state
from explorer.text import soft_lookup as soft_lookup_text
from explorer.text.markdown_escape import literal
from explorer.views.lookup.page_state import LookupState

RULES = ("0.5", "1", "1.5", "2", "3", "5")
WHOSE = {"One": "This head", "Mean": "Mean of the layer"}


def show(shown: LookupState) -> None:
    """The graph, and beside it what one token receives and who is heard."""
    on, at = shown.on, (shown.layer, shown.head)
    first = st.container()
    with first.container(key="after-messages"):  # on a phone behind the graph
        st.markdown(soft_lookup_text.MESSAGES)
        times, whose, layout = controls(on.across)
    one = whose == "One"
    weights = (
        on.attention.pattern[at] if one else soft_lookup.mean_of_heads(on.attention, shown.layer)
    )
    edges = soft_lookup.edges(weights, on.attention.allowed, times)
    rule = f"Edges: weights of at least {times:g} × the even share of their row"
    picture = on.picture(
        (
            "Attention as a graph, "
            f"{shown.where if one else f'layer {shown.layer}, mean of its heads'}"
        ),
        (
            f"{rule}; from the token that is looked at to the one that looks. Width: the weight. "
            "Fuller nodes are given more weight in all"
        ),
        file=f"L{shown.layer}{f'H{shown.head}' if one else ''}-graph",
        what=("graph", *at, times, whose, layout),
    )
    left, right = first.columns([1.15, 1], gap="large")
    with left:
        sources = on.axes.keys if on.across else None
        nodes = graph.Nodes(on.axes.rows, on.axes.special, sources, layout)
        graph.show(graph.payload(edges, nodes, picture), "graph", partial(take, "graph"))
        st.caption(soft_lookup_text.edges(edges, rule, layout, on.across))
    with right:
        if one and on.attention.opens:
            inbox(shown, picture)
        else:
            row_of(shown, weights, picture)
            closed = soft_lookup_text.CLOSED.format(models.markdown_name(on.recording.model.name))
            st.markdown(soft_lookup_text.NO_MESSAGES if on.attention.opens else closed)
        loud, *sums = soft_lookup.most_attended_key(weights)
        st.markdown(soft_lookup_text.heard(shown.key(loud), *sums))
    whole = f"of.pattern[{shown.layer}, {shown.head}]"
    received = (
        f"messages = soft_lookup.message_table(of, {', '.join(map(str, shown.at))}, axes.keys)"
    )
    on.numbers(
        "this graph",
        ("soft_lookup",),
        f"weights = {whole if one else f'soft_lookup.mean_of_heads(of, {shown.layer})'}",
        f"table = soft_lookup.nodes(weights, of.allowed, {times!r}, axes.rows, axes.keys)",
        *((received,) if one and on.attention.opens else ()),
    )
    columns = partial(
        soft_lookup.nodes, weights, on.attention.allowed, times, on.axes.rows, on.axes.keys
    )
    label = "Every token: edges and weights in and out"
    with_table(columns, picture.about, f"{picture.file}-nodes", label)


def controls(across: bool) -> tuple[float, str, str]:
    """Which edges are drawn, of which weights, and how they are laid out."""
    url_state.one_of("look_layout", graph.LAYOUTS)
    url_state.one_of("look_rule", RULES)
    url_state.one_of("look_heads", tuple(WHOSE))
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        times = st.select_slider(
            "Draw edges from … × the even share",
            RULES,
            key="look_rule",
            persist_state="session",
            width=300,
            help="The even share is 1 / the number of tokens that a token may look at.",
        )
        whose = pick("Weights of", WHOSE, "look_heads")
        if not across:
            st.segmented_control(
                "Layout", graph.LAYOUTS, key="look_layout", required=True, persist_state="session"
            )
    return float(times), whose, st.session_state.look_layout


def row_of(shown: LookupState, weights: Any, picture: Picture) -> None:
    """One token's weights as the tinted sentence."""
    on = shown.on
    values = mask_values(weights[shown.query], on.attention.allowed[shown.query])
    sheet = matrix.MatrixSheet(
        on.axes.rows,
        on.axes.keys,
        on.axes.special,
        on.axes.sides,
        missing=mask_reason(on.attention.allowed),
    )
    row = matrix.SheetRow(shown.query, "hears", 0, soft_lookup.largest(values), not on.across)
    matrix.show(matrix.row(values, row, sheet, picture), "heard", partial(take, "heard"))


def inbox(shown: LookupState, picture: Picture) -> None:
    """The messages to one token, their sum, and what it is checked against."""
    on, at = shown.on, shown.at
    label = on.axes.rows[shown.query]
    st.markdown(f"**What “{literal(label)}” ({shown.query}) receives**")
    row_of(shown, on.attention.pattern[at[:2]], picture)
    columns = soft_lookup.message_table(on.attention, *at, on.axes.keys)
    output.data_table(columns, f"Messages to {label}", "%.3g")
    about = (f"{picture.title}, messages to token {shown.query}", *picture.caption)
    offer_csv(columns, about, f"{picture.file}-messages", "Messages as CSV")
    wrote = None
    if models.shows_writes(on.recording):
        outputs = cache.outputs(on.recording)[on.attention.name]
        wrote = soft_lookup.output_error(on.recording, on.attention, *outputs, at[0], at[2])
    st.markdown(soft_lookup_text.received(*soft_lookup.message_sum_error(on.attention, *at), wrote))


def take(key: str) -> None:
    """The token that was chosen in a picture."""
    st.session_state.token = str(int(st.session_state[key].get("row") or 0))
