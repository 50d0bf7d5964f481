"""What positions add to this sentence, and to its scores."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import added
from explorer.analysis.csv import Columns
from explorer.analysis.positions import attention_of
from explorer.analysis.right import scaling
from explorer.figures import order as draw
from explorer.frame import export
from explorer.memory import models
from explorer.sentences import order as sentences
from explorer.sentences import positions as of_tables
from explorer.sentences.escape import literal
from explorer.views.positions.panel import chart, head, pick_stream, row, tables
from explorer.views.positions.source import Source
from models.recording import Recording


def refused(source: Source) -> str:
    """Why a model cannot be compared with itself without positions, "" where it can."""
    if source.adds == "none" and source.within and not source.without:
        return of_tables.within(models.title(source.model), source.within)
    try:
        source.both()
    except ValueError as why:  # a model in another's code may not let its positions be taken away
        return f"{literal(str(why))}. This screen compares a model with and without its positions."
    return ""


def show(source: Source) -> None:
    """The screen."""
    if why := refused(source):
        st.info(why)
        return
    plain, bare = source.both()
    pick_stream(source)
    if source.adds == "none":
        if not source.without:
            st.info(of_tables.nothing_to_show(models.title(source.model)))
            return
        st.info(of_tables.turned_alone(models.title(source.model), source.within))
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


def _numbers(source: Source, *lines: str) -> None:
    """The lines of Python that give the tables."""
    needs = ("explorer.analysis import added",)
    what = "what positions add to this sentence"
    first = f"stream = recording.stream({source.stream_name!r})"
    export.numbers(what, source.two, needs, (first, *lines))


def _lengths(source: Source) -> tuple[tuple, str]:
    """Lengths of what is added up, token by token; returns its table, and the line of Python that
    makes it."""
    stream = source.stream
    names = (
        models.word_vector(source.model),
        "encoding" if source.adds == "sinusoids" else "position",
    )
    found = added.added(stream)
    about = (f"Lengths: word and {names[1]}", *source.caption())
    figure = draw.lengths(found.word, found.encoding, found.both, stream.tokens, about, names)
    chart(figure, "lengths", about[0], f"positions-lengths-{source.model}")
    scale = models.embedding_scale(source.model)
    after = sentences.after(added.follows(stream), source.norm)
    st.markdown(sentences.lengths(found, stream.tokens, names, scale, after))

    def columns() -> Columns:
        again = source.stream
        return added.added_columns(added.added(again), again.tokens, names[0])

    line = f"lengths = added.added_columns(added.added(stream), stream.tokens, {names[0]!r})"
    return ("Lengths", about, columns), line


def _scores(source: Source, plain: Recording, bare: Recording) -> tuple[tuple, str]:
    """A head's scores by distance, with positions and without; returns its table, and the line of
    Python that makes it."""
    name = source.stream_name
    with row():
        at = head(source)
    scores = added.by_offset(plain, bare, name, *at)
    turns = source.adds == "none"
    away = "queries and keys not turned" if turns else "with no positions added"
    lines = (
        f"Mean score by distance, layer {at[0]}, head {at[1]}",
        *source.caption(f"Text tokens only; without: the same run, {away}"),
    )
    if len(scores.offset):
        figure = draw.by_offset(scores.offset, scores.pairs, scores.lines, lines)
        file = f"positions-scores-{source.model}-L{at[0]}H{at[1]}"
        chart(figure, "offsets", lines[0], file)
        scaled = scaling(attention_of(plain, name), at[0])
        parts = sentences.parted(at[0], added.follows(source.stream), source.norm)
        st.markdown(sentences.scores(scores, sentences.TURNED if turns else parts, scaled))
    else:
        st.info("There are no words here yet between which a distance could be measured.")
    table = lambda: added.offset_columns(added.by_offset(*source.both(), name, *at))
    asked = f"recording, other, {name!r}, {at[0]}, {at[1]}"
    line = f"scores = added.offset_columns(added.by_offset({asked}))"
    return ("Scores", lines, table), line
