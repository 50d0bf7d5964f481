"""What positions add to this sentence, and to its scores."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import positions
from explorer.analysis.consistency import scale_text
from explorer.analysis.csv import Columns
from explorer.analysis.positions import self_attention
from explorer.figures.positions import by_offset, lengths
from explorer.layout import export_menu
from explorer.state import models
from explorer.text import positions as positions_text
from explorer.text.markdown_escape import literal
from explorer.text.positions import nothing_to_show, turned_alone, within
from explorer.views.positions.page_state import PositionSource
from explorer.views.positions.panel import chart, head, pick_stream, row, tables
from models.recording import Recording


def refused(source: PositionSource) -> str:
    """Why a model cannot be compared with itself without positions, "" where it can."""
    if source.adds == "none" and source.within and not source.without:
        return within(models.title(source.model), source.within)
    try:
        source.both()
    except ValueError as why:  # a model in another's code may not let its positions be taken away
        return f"{literal(str(why))}. This screen compares a model with and without its positions."
    return ""


def show(source: PositionSource) -> None:
    """The screen."""
    if why := refused(source):
        st.info(why)
        return
    plain, bare = source.both()
    pick_stream(source)
    if source.adds == "none":
        if not source.without:
            st.info(nothing_to_show(models.title(source.model)))
            return
        st.info(turned_alone(models.title(source.model), source.within))
        scores, line = _scores(source, plain, bare)
        _numbers(source, line)
        tables(scores, file=f"positions-sentence-{source.model}")
        return
    left, right = st.columns(2, gap="large")
    with left:
        lengths, first = _lengths(source)
    with right:
        scores, line = _scores(source, plain, bare)
    _numbers(source, first, line)
    tables(lengths, scores, file=f"positions-sentence-{source.model}")


def _numbers(source: PositionSource, *lines: str) -> None:
    """The lines of Python that give the tables."""
    needs = ("positions",)
    what = "what positions add to this sentence"
    first = f"stream = recording.stream({source.stream_name!r})"
    export_menu.offer_numbers_code(what, source.two, needs, (first, *lines))


def _lengths(source: PositionSource) -> tuple[tuple, str]:
    """Lengths of what is added up, token by token; returns its table, and the line of Python that
    makes it."""
    stream = source.stream
    names = (
        models.word_vector(source.model),
        "encoding" if source.adds == "sinusoids" else "position",
    )
    found = positions.position_sum(stream)
    about = (f"Lengths: word and {names[1]}", *source.caption())
    figure = lengths(found.word, found.encoding, found.both, stream.tokens, about, names)
    chart(figure, "lengths", about[0], f"positions-lengths-{source.model}")
    scale = models.embedding_scale(source.model)
    after = positions_text.after(positions.sum_reader(stream), source.norm)
    st.markdown(positions_text.lengths(found, stream.tokens, names, scale, after))

    def columns() -> Columns:
        again = source.stream
        return positions.position_sum_columns(positions.position_sum(again), again.tokens, names[0])

    line = (
        "lengths = positions.position_sum_columns(positions.position_sum(stream), stream.tokens, "
        f"{names[0]!r})"
    )
    return ("Lengths", about, columns), line


def _scores(source: PositionSource, plain: Recording, bare: Recording) -> tuple[tuple, str]:
    """A head's scores by distance, with positions and without; returns its table, and the line of
    Python that makes it."""
    name = source.stream_name
    with row():
        at = head(source)
    scores = positions.by_offset(plain, bare, name, *at)
    turns = source.adds == "none"
    away = "queries and keys not turned" if turns else "with no positions added"
    lines = (
        f"Mean score by distance, layer {at[0]}, head {at[1]}",
        *source.caption(f"Text tokens only; without: the same run, {away}"),
    )
    if len(scores.offset):
        figure = by_offset(scores.offset, scores.pairs, scores.lines, lines)
        file = f"positions-scores-{source.model}-L{at[0]}H{at[1]}"
        chart(figure, "offsets", lines[0], file)
        scaled = scale_text(self_attention(plain, name), at[0])
        parts = positions_text.parted(at[0], positions.sum_reader(source.stream), source.norm)
        st.markdown(
            positions_text.scores(scores, positions_text.TURNED if turns else parts, scaled)
        )
    else:
        st.info("There are no words here yet between which a distance could be measured.")
    table = lambda: positions.offset_columns(positions.by_offset(*source.both(), name, *at))
    asked = f"recording, other, {name!r}, {at[0]}, {at[1]}"
    line = f"scores = positions.offset_columns(positions.by_offset({asked}))"
    return ("Scores", lines, table), line
