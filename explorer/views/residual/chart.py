"""A number of every token and place as a map, and the followed token's line beside it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.analysis import residual
from explorer.components import residual as residual_components
from explorer.layout.output import offer_recording, with_table
from explorer.views.residual.page_state import ResidualState


def show(
    on: ResidualState, grid: residual.TokenGrid, what: str, log: bool, note: Callable[[], str]
) -> None:
    """The map, the followed token's line and a note beside them, the table and the files. A grid of
    heads, which have no order, has bars in the place of the line."""
    measure, stream, token = grid.measure, on.stream, on.token
    scale = ", on a logarithmic scale" if log else ""
    picture = on.picture(
        f"{measure.name}: {what}",
        f"{measure.name}: {measure.meaning}{scale}",
        file=measure.name.lower().replace(" ", "-"),
        what=(what, measure.name, log),
    )
    data = on.kept(
        ("chart", picture.token),
        lambda: residual_components.chart(grid, stream.tokens, stream.special, picture, log=log),
    )
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        residual_components.show(data, "map", _take_token)
    with right:
        bars = what.endswith("head by head")
        line = residual_components.followed(grid, stream.tokens, token, picture, bars=bars, log=log)
        residual_components.show(line, "way of the token", _ignore)
        st.markdown(note())
    source, tokens = on.source, stream.tokens  # names, which a button to press later may keep
    offer_recording(source.model, source.text, source.target)
    with_table(lambda: residual.table(grid, tokens), picture.about, picture.file, form="%.3g")


def _take_token() -> None:
    asked = st.session_state["map"].get("token")
    st.session_state.token = "" if asked is None else str(int(asked))


def _ignore() -> None:
    """The line is only looked at."""
