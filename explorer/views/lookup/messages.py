"""The head as a graph, and the messages that one token receives."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from explorer.analysis import lookup as numbers
from explorer.analysis.called import hidden
from explorer.analysis.summaries import masked
from explorer.components import graph as graphs
from explorer.components import matrix as pictures
from explorer.components.picture import Picture
from explorer.frame import table
from explorer.frame.picker import pick
from explorer.frame.table import offer_csv, with_table
from explorer.memory import address, models, passes
from explorer.sentences import lookup as words
from explorer.sentences.escape import literal
from explorer.views.lookup.screen import Screen

RULES = ("0.5", "1", "1.5", "2", "3", "5")
WHOSE = {"One": "This head", "Mean": "Mean of the layer"}


def show(shown: Screen) -> None:
    """The graph, and beside it what one token receives and who is heard."""
    on, at = shown.on, (shown.layer, shown.head)
    first = st.container()
    with first.container(key="after-messages"):  # on a phone behind the graph
        st.markdown(words.MESSAGES)
        times, whose, layout = controls(on.across)
    one = whose == "One"
    weights = on.attention.pattern[at] if one else numbers.mean_of_heads(on.attention, shown.layer)
    edges = numbers.edges(weights, on.attention.allowed, times)
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
        nodes = graphs.Nodes(on.axes.rows, on.axes.special, sources, layout)
        graphs.show(graphs.payload(edges, nodes, picture), "graph", partial(take, "graph"))
        st.caption(words.edges(edges, rule, layout, on.across))
    with right:
        if one and on.attention.opens:
            inbox(shown, picture)
        else:
            row_of(shown, weights, picture)
            closed = words.CLOSED.format(models.named(on.recording.model.name))
            st.markdown(words.NO_MESSAGES if on.attention.opens else closed)
        loud, *sums = numbers.loudest(weights)
        st.markdown(words.heard(shown.key(loud), *sums))
    whole = f"of.pattern[{shown.layer}, {shown.head}]"
    received = f"messages = lookup.received(of, {', '.join(map(str, shown.at))}, axes.keys)"
    on.numbers(
        "this graph",
        ("explorer.analysis import lookup",),
        f"weights = {whole if one else f'lookup.mean_of_heads(of, {shown.layer})'}",
        f"table = lookup.nodes(weights, of.allowed, {times!r}, axes.rows, axes.keys)",
        *((received,) if one and on.attention.opens else ()),
    )
    columns = partial(
        numbers.nodes, weights, on.attention.allowed, times, on.axes.rows, on.axes.keys
    )
    label = "Every token: edges and weights in and out"
    with_table(columns, picture.about, f"{picture.file}-nodes", label)


def controls(across: bool) -> tuple[float, str, str]:
    """Which edges are drawn, of which weights, and how they are laid out."""
    address.one_of("look_layout", graphs.LAYOUTS)
    address.one_of("look_rule", RULES)
    address.one_of("look_heads", tuple(WHOSE))
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
                "Layout", graphs.LAYOUTS, key="look_layout", required=True, persist_state="session"
            )
    return float(times), whose, st.session_state.look_layout


def row_of(shown: Screen, weights: Any, picture: Picture) -> None:
    """One token's weights as the tinted sentence."""
    on = shown.on
    values = masked(weights[shown.query], on.attention.allowed[shown.query])
    sheet = pictures.Sheet(
        on.axes.rows,
        on.axes.keys,
        on.axes.special,
        on.axes.sides,
        missing=hidden(on.attention.allowed),
    )
    row = pictures.Row(shown.query, "hears", 0, numbers.largest(values), not on.across)
    pictures.show(pictures.row(values, row, sheet, picture), "heard", partial(take, "heard"))


def inbox(shown: Screen, picture: Picture) -> None:
    """The messages to one token, their sum, and what it is checked against."""
    on, at = shown.on, shown.at
    label = on.axes.rows[shown.query]
    st.markdown(f"**What “{literal(label)}” ({shown.query}) receives**")
    row_of(shown, on.attention.pattern[at[:2]], picture)
    columns = numbers.received(on.attention, *at, on.axes.keys)
    table.show(columns, f"Messages to {label}", "%.3g")
    about = (f"{picture.title}, messages to token {shown.query}", *picture.caption)
    offer_csv(columns, about, f"{picture.file}-messages", "Messages as CSV")
    wrote = None
    if models.shows_writes(on.recording):
        outputs = passes.outputs(on.recording)[on.attention.name]
        wrote = numbers.wrote_error(on.recording, on.attention, *outputs, at[0], at[2])
    st.markdown(words.received(*numbers.lengths(on.attention, *at), wrote))


def take(key: str) -> None:
    """The token that was chosen in a picture."""
    st.session_state.token = str(int(st.session_state[key].get("row") or 0))
