"""Why the encoding is added and not concatenated: how much of it lies in the directions of the
embeddings."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import added as numbers
from explorer.figures import order as draw
from explorer.frame import export
from explorer.memory import models, shelf
from explorer.sentences import positions as sentences
from explorer.views.positions.panel import chart, tables
from explorer.views.positions.source import Source

EMBEDDED, HELD = 0.9, 0.99  # shares of variance that this screen speaks of


def overlap_of(source: Source) -> numbers.Overlap:
    """How much of the encoding lies in the embeddings' directions, kept beside the recording."""
    return shelf.derived(
        source.plain,
        ("overlap",),
        lambda: numbers.overlap(models.embeddings(source.model), source.table()),
    )


def show(source: Source) -> None:
    """The screen."""
    if source.adds == "none":
        st.info(sentences.none_to_find(models.title(source.model)))
        return
    if not models.offers(source.model).weights:
        st.info(sentences.no_weights(models.title(source.model)))
        return
    card, found = source.card, overlap_of(source)
    about = (
        "The encoding within the embeddings’ directions",
        f"Headlight · model {source.model} (weights {card.fingerprint}) · all {card.n_vocab:,} "
        "embeddings, each about their mean; "
        f"encoding of all {card.n_positions} positions, about its mean · no text",
    )
    left, right = st.columns([1.1, 1], gap="large")
    with left:
        figure = draw.shares(found.words, found.places, found.chance, about)
        chart(figure, "shares", about[0], f"positions-overlap-{source.model}")
    with right:
        r, room = found.most(EMBEDDED), numbers.room_needed(source.table(), HELD)
        st.markdown(sentences.overlap(models.title(source.model), found, r, EMBEDDED))
        st.markdown(sentences.ADDING)
        st.markdown(sentences.price(room, HELD, card.d_model, card.n_positions))
    st.caption(sentences.WHERE["learned" if source.adds == "learned" else "sinusoids"])
    export.numbers(
        "the encoding within the embeddings’ directions",
        (source.shown,),
        ("explorer.analysis import added, positions",),
        (
            source.table_line,
            "found = added.overlap(library.embeddings(model), table)",
            "shares = added.overlap_columns(found)",
        ),
    )
    tables(
        ("Shares", about, lambda: numbers.overlap_columns(overlap_of(source))),
        file=f"positions-overlap-{source.model}",
    )
