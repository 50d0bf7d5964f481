"""A number of every token and place as a map, and the followed token's line beside it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.analysis import residual as numbers
from explorer.components import residual as pictures
from explorer.frame.table import offer_recording, with_table
from explorer.views.residual.screen import Screen


def show(on: Screen, grid: numbers.Grid, what: str, log: bool, note: Callable[[], str]) -> None:
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
        lambda: pictures.chart(grid, stream.tokens, stream.special, picture, log=log),
    )
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        pictures.show(data, "map", _take_token)
    with right:
        bars = what.endswith("head by head")
        line = pictures.followed(grid, stream.tokens, token, picture, bars=bars, log=log)
        pictures.show(line, "way of the token", _ignore)
        st.markdown(note())
    source, tokens = on.source, stream.tokens  # names, which a button to press later may keep
    offer_recording(source.model, source.text, source.target)
    with_table(lambda: numbers.table(grid, tokens), picture.about, picture.file, form="%.3g")


def _take_token() -> None:
    asked = st.session_state["map"].get("token")
    st.session_state.token = "" if asked is None else str(int(asked))


def _ignore() -> None:
    """The line is only looked at."""
