"""What is added to tell positions apart: the table and one pair of its waves, or a learned table as
it is."""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer.analysis import positions as numbers
from explorer.figures import positions as draw
from explorer.frame import export
from explorer.memory import models
from explorer.sentences import positions as sentences
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
from explorer.views.positions.source import Source, about_formula


def show(source: Source) -> None:
    """The screen."""
    if source.adds == "learned":
        _learned(source)
        return
    if source.adds == "none":
        told_none(source)
    with row("waves"):
        n, d = sizes(source)
        pair = pair_of(d)
    wave, turns = numbers.wave(n, d, pair), numbers.wavelengths(d)
    about = about_formula(n, d)
    title = f"Pair {pair}: a turn in {sentences.size(turns[pair])} positions"
    left, right = st.columns([1.1, 1], gap="large")
    with left:
        figure = draw.table(
            numbers.table(n, d), ("Positional encoding", *about), pair, (turns[0], turns[-1])
        )
        alt = f"Heat map of the encoding: {n} positions down, {d} dimensions along"
        chart(figure, "table", alt, f"positions-{n}x{d}")
    with right:
        figure = draw.wave(
            wave.place,
            (wave.fine_sine, wave.fine_cosine),
            (wave.sine, wave.cosine),
            (2 * pair, 2 * pair + 1),
            (title, *about),
        )
        chart(figure, "wave", title, f"positions-pair-{pair}-of-{d}")
        st.markdown(sentences.waves(wave, turns, n, d, pair))
    if source.adds == "sinusoids":
        off = numbers.off_formula(source.stream)
        st.info(sentences.adds_this(models.title(source.model), off, "minilm" in models.cards()))
    export.more(
        ("explorer.analysis import positions",),
        f"table = positions.table_columns(positions.table({n}, {d}))",
        f"pair = positions.wave_columns(positions.wave({n}, {d}, {pair}))",
    )
    tables(
        (
            "Table",
            ("Positional encoding", *about),
            lambda: numbers.table_columns(numbers.table(n, d)),
        ),
        ("Pair", (title, *about), lambda: numbers.wave_columns(numbers.wave(n, d, pair))),
        file=f"positions-{n}x{d}",
    )


def learned_rows(source: Source) -> Any:
    """As many first rows of a learned table as the reader asks for."""
    table = source.learned()
    with row("learned"):
        n = len(table)
        if n > 2:
            n = number("Positions", "places", 2, n, min(DEFAULT_PLACES, n))
    return table[:n]


def _learned(source: Source) -> None:
    """A table that training has made, as it is: no wave, no formula."""
    whole, shown = source.learned(), learned_rows(source)
    n, d = shown.shape
    lengths, about = numbers.lengths(whole), source.about_table(n)
    title = ("Length of each position’s vector", *about)
    left, right = st.columns([1.1, 1], gap="large")
    with left:
        end = numbers.scale_end(shown)
        lines = (
            "The learned table of positions",
            *about,
            f"Colours end at ±{sentences.size(end)}; one number in a hundred lies beyond",
        )
        alt = f"Heat map of the learned table: {n} positions down, {d} dimensions along"
        chart(draw.table(shown, lines, end=end), "learned table", alt, f"positions-{source.model}")
    with right:
        off = numbers.off_formula(source.stream)
        st.markdown(sentences.learned(models.title(source.model), lengths, off, d))
        chart(
            draw.norms(lengths[:n], title), "norms", title[0], f"positions-lengths-{source.model}"
        )
    export.more(
        ("explorer.analysis import positions",),
        source.table_line,
        f"rows = positions.table_columns(table[:{n}])",
        f"lengths = positions.length_columns(table[:{n}])",
    )
    tables(
        (
            "Table",
            ("The learned table of positions", *about),
            lambda: numbers.table_columns(source.learned()[:n]),
        ),
        ("Lengths", title, lambda: numbers.length_columns(source.learned()[:n])),
        file=f"positions-{source.model}",
        key="own",
    )
