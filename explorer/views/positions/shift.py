"""Why moving by k positions is a rotation: one pair on the unit circle."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import positions
from explorer.figures.positions import circle
from explorer.layout import export_menu
from explorer.state import models
from explorer.text import positions as positions_text
from explorer.views.positions.page_state import PositionSource, about_formula
from explorer.views.positions.panel import chart, number, pair_of, row, sizes, tables, told_none

MOST = 64  # positions on the circle


def show(source: PositionSource) -> None:
    """The screen."""
    if source.adds == "none":
        told_none(source)
    words = st.container()
    with row("shift"):
        n, d = sizes(source)
        pair = pair_of(d)
        place = number("Position, pos", "place", 0, n - 1, min(3, n - 1))
        by = number("Shift, k", "shift", 0, n - 1, min(5, n - 1))
    if source.adds == "learned":
        words.info(
            positions_text.no_rotation(
                models.title(source.model), positions.rotation_errors(source.learned(), by), by
            )
        )
    wave, some = positions.wave(2 * n, d, pair), min(n, MOST)
    before, after = ((wave.sine[at], wave.cosine[at]) for at in (place, place + by))
    about = (f"Pair {pair}: from position {place} to {place + by}", *about_formula(n, d))
    left, right = st.columns([1, 1.1], gap="large")
    with left:
        figure = circle(
            wave.sine[:some],
            wave.cosine[:some],
            (before, after),
            positions.arc_points(d, pair, place, by),
            (f"position {place}", f"position {place + by}"),
            about,
        )
        radians = positions.rotation_angle(d, pair, by)[0]
        alt = (
            f"Pair {pair} on the unit circle: position {place} turned by {radians:.3f} radians "
            f"to {place + by}"
        )
        chart(figure, "circle", alt, f"positions-shift-{by}-pair-{pair}")
    with right:
        st.markdown(positions_text.turn(d, pair, by))
        turn = positions.rotation_matrix(d, pair, by)
        st.latex(positions_text.turn_formula(turn, before, after, place, place + by))
        st.markdown(positions_text.turn_everywhere(n, d, by))
    export_menu.offer_numbers_code(
        "this rotation",
        (),
        ("positions",),
        (
            f"wave = positions.wave({some}, {d}, {pair})",
            f"table = positions.circle_columns(wave, {by}, {d}, {pair})",
        ),
    )
    tables(
        (
            "Pair",
            about,
            lambda: positions.circle_columns(positions.wave(some, d, pair), by, d, pair),
        ),
        file=f"positions-shift-{by}-pair-{pair}",
    )
