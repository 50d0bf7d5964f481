"""What is added to tell positions apart: the table and one pair of its waves, or a learned table as
it is."""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer.analysis import positions
from explorer.figures import positions as positions_figures
from explorer.layout import export_menu
from explorer.state import models
from explorer.text.positions import adds_this, learned, size, waves
from explorer.views.positions.page_state import PositionSource, about_formula
from explorer.views.positions.panel import (
    DEFAULT_PLACES,
    chart,
    number,
    pair_of,
    row,
    sizes,
    tables,
    told_none,
)


def show(source: PositionSource) -> None:
    """The screen."""
    if source.adds == "learned":
        _learned(source)
        return
    if source.adds == "none":
        told_none(source)
    with row("waves"):
        n, d = sizes(source)
        pair = pair_of(d)
    wave, turns = positions.wave(n, d, pair), positions.wavelengths(d)
    about = about_formula(n, d)
    title = f"Pair {pair}: a turn in {size(turns[pair])} positions"
    left, right = st.columns([1.1, 1], gap="large")
    with left:
        figure = positions_figures.table(
            positions.table(n, d), ("Positional encoding", *about), pair, (turns[0], turns[-1])
        )
        alt = f"Heat map of the encoding: {n} positions down, {d} dimensions along"
        chart(figure, "table", alt, f"positions-{n}x{d}")
    with right:
        figure = positions_figures.wave(
            wave.place,
            (wave.fine_sine, wave.fine_cosine),
            (wave.sine, wave.cosine),
            (2 * pair, 2 * pair + 1),
            (title, *about),
        )
        chart(figure, "wave", title, f"positions-pair-{pair}-of-{d}")
        st.markdown(waves(wave, turns, n, d, pair))
    if source.adds == "sinusoids":
        off = positions.formula_error(source.stream)
        st.info(adds_this(models.title(source.model), off, "minilm" in models.cards()))
    export_menu.offer_more_code(
        ("positions",),
        f"table = positions.table_columns(positions.table({n}, {d}))",
        f"pair = positions.wave_columns(positions.wave({n}, {d}, {pair}))",
    )
    tables(
        (
            "Table",
            ("Positional encoding", *about),
            lambda: positions.table_columns(positions.table(n, d)),
        ),
        ("Pair", (title, *about), lambda: positions.wave_columns(positions.wave(n, d, pair))),
        file=f"positions-{n}x{d}",
    )


def learned_rows(source: PositionSource) -> Any:
    """As many first rows of a learned table as the reader asks for."""
    table = source.learned()
    with row("learned"):
        n = len(table)
        if n > 2:
            n = number("Positions", "places", 2, n, min(DEFAULT_PLACES, n))
    return table[:n]


def _learned(source: PositionSource) -> None:
    """A table that training has made, as it is: no wave, no formula."""
    whole, shown = source.learned(), learned_rows(source)
    n, d = shown.shape
    lengths, about = positions.lengths(whole), source.about_table(n)
    title = ("Length of each position’s vector", *about)
    left, right = st.columns([1.1, 1], gap="large")
    with left:
        end = positions.scale_end(shown)
        lines = (
            "The learned table of positions",
            *about,
            f"Colours end at ±{size(end)}; one number in a hundred lies beyond",
        )
        alt = f"Heat map of the learned table: {n} positions down, {d} dimensions along"
        chart(
            positions_figures.table(shown, lines, end=end),
            "learned table",
            alt,
            f"positions-{source.model}",
        )
    with right:
        off = positions.formula_error(source.stream)
        st.markdown(learned(models.title(source.model), lengths, off, d))
        chart(
            positions_figures.norms(lengths[:n], title),
            "norms",
            title[0],
            f"positions-lengths-{source.model}",
        )
    export_menu.offer_more_code(
        ("positions",),
        source.table_line,
        f"rows = positions.table_columns(table[:{n}])",
        f"lengths = positions.length_columns(table[:{n}])",
    )
    tables(
        (
            "Table",
            ("The learned table of positions", *about),
            lambda: positions.table_columns(source.learned()[:n]),
        ),
        ("Lengths", title, lambda: positions.length_columns(source.learned()[:n])),
        file=f"positions-{source.model}",
        key="own",
    )
