"""Why the encoding is added and not concatenated: how much of it lies in the directions of the
embeddings."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import positions
from explorer.figures.positions import shares
from explorer.layout import export_menu
from explorer.state import cache, models
from explorer.text.positions import ADDING, WHERE, no_weights, none_to_find, overlap, price
from explorer.views.positions.page_state import PositionSource
from explorer.views.positions.panel import chart, tables

EMBEDDED, HELD = 0.9, 0.99  # shares of variance that this screen speaks of


def overlap_of(source: PositionSource) -> positions.Overlap:
    """How much of the encoding lies in the embeddings' directions, kept beside the recording."""
    return cache.cached_for(
        source.plain,
        ("overlap",),
        lambda: positions.overlap(models.embeddings(source.model), source.table()),
    )


def show(source: PositionSource) -> None:
    """The screen."""
    if source.adds == "none":
        st.info(none_to_find(models.title(source.model)))
        return
    if not models.capabilities(source.model).weights:
        st.info(no_weights(models.title(source.model)))
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
        figure = shares(found.words, found.places, found.chance, about)
        chart(figure, "shares", about[0], f"positions-overlap-{source.model}")
    with right:
        r, room = found.most(EMBEDDED), positions.dimensions_needed(source.table(), HELD)
        st.markdown(overlap(models.title(source.model), found, r, EMBEDDED))
        st.markdown(ADDING)
        st.markdown(price(room, HELD, card.d_model, card.n_positions))
    st.caption(WHERE["learned" if source.adds == "learned" else "sinusoids"])
    export_menu.offer_numbers_code(
        "the encoding within the embeddings’ directions",
        (source.shown,),
        ("positions",),
        (
            source.table_line,
            "found = positions.overlap(model.embeddings(), table)",
            "shares = positions.overlap_columns(found)",
        ),
    )
    tables(
        ("Shares", about, lambda: positions.overlap_columns(overlap_of(source))),
        file=f"positions-overlap-{source.model}",
    )
