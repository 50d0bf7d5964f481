"""What two positions' encodings say about their distance: a law for sinusoids, none for a learned
table."""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer.analysis import positions
from explorer.figures.positions import by_distance, gram, products
from explorer.layout import export_menu
from explorer.text.positions import distance, learned_distance
from explorer.views.positions.page_state import PositionSource, about_formula
from explorer.views.positions.panel import chart, row, sizes, tables, told_none
from explorer.views.positions.sinusoids import learned_rows

MOST = 128  # positions whose products are shown pair by pair
AGAINST = "pᵢ · pⱼ against distance"


def show(source: PositionSource) -> None:
    """The screen."""
    if source.adds == "learned":
        _learned(source)
        return
    if source.adds == "none":
        told_none(source)
    with row("distance"):
        n, d = sizes(source)
    encoding, about = positions.table(n, d), about_formula(n, d)
    found, some = positions.products(encoding), min(n, MOST)
    pairs = f"pᵢ · pⱼ of the {f'first {some}' if some < n else n} positions"
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        figure = products(found.law, found.low, found.high, (AGAINST, *about))
        chart(figure, "products", AGAINST, f"positions-products-{n}x{d}")
    with right:
        figure = gram(positions.gram(encoding, some), (pairs, *about))
        alt = f"{pairs}, equal along every diagonal"
        chart(figure, "gram", alt, f"positions-gram-{some}x{d}")
    st.markdown(distance(found, n, d))
    export_menu.offer_numbers_code(
        "these positions’ products",
        (),
        ("positions",),
        (
            f"table = positions.table({n}, {d})",
            "distance = positions.product_columns(positions.products(table))",
            f'pairs = positions.table_columns(positions.gram(table, {some}), "j =")',
        ),
    )
    tables(
        (
            "By distance",
            (AGAINST, *about),
            lambda: positions.product_columns(positions.products(positions.table(n, d))),
        ),
        (
            "All pairs",
            (pairs, *about),
            lambda: positions.table_columns(positions.gram(positions.table(n, d), some), "j ="),
        ),
        file=f"positions-products-{n}x{d}",
    )


def _learned(source: PositionSource) -> None:
    """p_i . p_j of a learned table: no law, and how much of it the distance tells."""
    rows = learned_rows(source)
    n, longer = len(rows), positions.first_stands_out(rows)
    first = int(longer is not None and n > 2)

    def shown() -> Any:
        return source.learned()[first:n]

    found, some = positions.by_distance(shown()), min(n - first, MOST)
    about = (*source.about_table(n), *(("Position 0 left out",) if first else ()))
    pairs = f"pᵢ · pⱼ of positions {first} to {first + some - 1}"
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        figure = by_distance(found.mean, found.low, found.high, (AGAINST, *about))
        chart(figure, "products", AGAINST, f"positions-products-{source.model}")
    with right:
        figure = gram(positions.gram(shown(), some), (pairs, *about), first)
        chart(figure, "gram", pairs, f"positions-gram-{some}-{source.model}")
    st.markdown(learned_distance(found, n - first, longer if first else None))
    export_menu.offer_numbers_code(
        "these positions’ products",
        (source.shown,),
        ("positions",),
        (
            source.table_line,
            f"table = table[{first}:{n}]",
            "distance = positions.distance_columns(positions.by_distance(table))",
            f'pairs = positions.table_columns(positions.gram(table, {some}), "j =", {first})',
        ),
    )
    tables(
        (
            "By distance",
            (AGAINST, *about),
            lambda: positions.distance_columns(positions.by_distance(shown())),
        ),
        (
            "All pairs",
            (pairs, *about),
            lambda: positions.table_columns(positions.gram(shown(), some), "j =", first),
        ),
        file=f"positions-products-{source.model}",
    )
