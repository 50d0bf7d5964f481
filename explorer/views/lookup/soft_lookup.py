"""One row as a soft lookup beside the hard one; then all heads and queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from explorer.analysis import soft_lookup
from explorer.analysis.csv import Columns
from explorer.components import matrix
from explorer.components import soft_lookup as soft_lookup_components
from explorer.components.figure_caption import Picture
from explorer.layout import output
from explorer.layout.controls import Subject, take_head
from explorer.layout.output import with_table
from explorer.state import cache
from explorer.text.soft_lookup import SOFT, near, own
from explorer.views.lookup.page_state import LookupState, ignore


def show(shown: LookupState) -> None:
    """The row at a temperature, and what all others come to."""
    on, at = shown.on, shown.at
    first = st.container()
    with first.container(key="after-soft"):  # on a phone behind the picture
        st.markdown(SOFT)
    temperature = asked_temperature()
    one = soft_lookup.lookup(on.attention, *at)
    label = on.axes.rows[shown.query]
    picture = on.picture(
        f"Soft and hard lookup, {shown.where}, query {label} ({shown.query})",
        (
            "Weights: softmax(scores / T) of the recorded scores; soft: the values mixed by "
            "them; hard: the value of the key with the highest score"
        ),
        file=f"L{shown.layer}H{shown.head}-lookup",
        what=("lookup", *at),
    )
    row = soft_lookup_components.LookupRow(
        on.attention.scores[at],
        on.attention.allowed[shown.query],
        on.attention.v[at[:2]],
        on.axes.keys,
        on.axes.special,
    )
    with first:
        soft_lookup_components.show(
            soft_lookup_components.payload(row, label, temperature, picture),
            "lookup",
            take_temperature,
        )
    weight = float(on.attention.pattern[at][one.key])
    st.markdown(own(shown.row(shown.query), shown.key(one.key), weight, one.relative, one.cosine))
    name, keys = on.attention.name, on.axes.keys
    columns = partial(columns_of, cache.run_of(on.recording), name, at, temperature, keys)
    with_table(columns, picture.about, picture.file)
    on.more(
        ("soft_lookup",),
        f"row = soft_lookup.row_table(of, *{at}, float('{temperature}'), axes.keys)",
        "every = soft_lookup.heads_table(soft_lookup.relative_distances(of))",
    )
    over_all(on, one)


def columns_of(
    source: cache.Run,
    name: str,
    at: tuple[int, int, int],
    temperature: float,
    keys: Sequence[str],
) -> Columns:
    """A row's numbers as columns, from the name of the recording: a button holds no arrays."""
    return soft_lookup.row_table(source.attention(name), *at, temperature, keys)


def over_all(on: Subject, one: soft_lookup.Lookup) -> None:
    """The same distance for every head and query."""
    from explorer.figures.soft_lookup import histogram

    st.subheader("Which heads look up, and which average?", anchor=False)
    found = on.kept(("everywhere",), lambda: soft_lookup.relative_distances(on.attention))
    ends = soft_lookup.extreme_heads(found)
    if ends is None:
        st.info("No token here has a choice of where to look, so soft and hard are the same.")
        return
    counted = soft_lookup.lookup_counts(found)
    st.markdown(near(*counted))
    with st.container(horizontal=True, gap="small"):
        for name, (layer, head, median) in zip(("Nearest to a lookup", "Farthest from one"), ends):
            said = f"{name}: layer {layer}, head {head} (median {median:.2f})"
            st.button(said, on_click=take_head, args=(layer, head))
    picture = on.picture(
        "Distance of soft from hard, median over the queries, of the hard value’s length",
        "|z_soft − z_hard| / |z_hard|: 0 is a lookup",
        file="soft-hard",
        what=("soft hard",),
    )
    left, right = st.columns([1, 1.1], gap="large")
    with left:
        st.markdown("**Each head’s median**: near 0 a lookup, large an average.")
        medians(soft_lookup.medians(found), picture)
    with right:
        title = f"All {counted[0]:,} lookups, dotted: {soft_lookup.LOOKUP_TOLERANCE:g}"
        figure = histogram(
            found, one.relative, soft_lookup.LOOKUP_TOLERANCE, (title, *picture.caption)
        )
        output.plotly_chart(figure, "spread of rows", title, "soft-hard-all")
    with_table(lambda: soft_lookup.heads_table(found), picture.about, picture.file)


def medians(middle, picture: Picture) -> None:
    """Each head's median distance, layers down, heads across."""
    layers, heads = middle.shape
    sheet = matrix.MatrixSheet(
        [f"layer {each}" for each in range(layers)],
        [f"head {each}" for each in range(heads)],
        [False] * heads,
        ("layer", "head"),
        digits=3,
        choose=False,
    )
    panel = matrix.MatrixPanel("", middle, 0, soft_lookup.largest(middle))
    matrix.show(matrix.panels([panel], sheet, picture), "soft hard", ignore)


def asked_temperature() -> float:
    """The temperature of the address, from 0 to infinity; 1 where it says none."""
    try:
        value = float(str(st.session_state.look_temperature))
    except ValueError:
        value = 1.0
    known = (
        value in (0, float("inf"))
        or soft_lookup_components.COLDEST <= value <= soft_lookup_components.HOTTEST
    )
    st.session_state.look_temperature = f"{value if known else 1:g}"
    return value if known else 1.0


def take_temperature() -> None:
    """The temperature that the slider came to."""
    st.session_state.look_temperature = str(st.session_state["lookup"].get("temperature"))
