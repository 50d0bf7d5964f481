"""Naive, symmetric and asymmetric scores of this text's pairs side by side."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import soft_lookup
from explorer.analysis.soft_lookup import largest
from explorer.analysis.summaries import mask_values
from explorer.analysis.terminology import mask_reason
from explorer.components import matrix
from explorer.layout.controls import pick
from explorer.layout.output import with_table
from explorer.state import models
from explorer.text import soft_lookup as soft_lookup_text
from explorer.views.lookup.page_state import LookupState, ignore

BEFORE = {"Weights": "After the softmax", "Scores": "Before it"}


def show(shown: LookupState) -> None:
    """The three matrices, what is measured of them, and the pair that tells them apart best."""
    on, at = shown.on, (shown.layer, shown.head)
    if on.across:
        st.info(soft_lookup_text.NO_SYMMETRY)
        return
    x = soft_lookup.attention_input(on.recording, on.attention, shown.layer)
    if x is None:
        st.info(soft_lookup_text.NO_VECTORS.format(models.markdown_name(on.recording.model.name)))
        return
    first = st.container()
    with first.container(key="after-three"):  # on a phone behind the matrices
        st.markdown(
            f"Three ways to score a pair, from the vectors x that enter layer {shown.layer}; the "
            "first two are divided by the root of their vectors’ width, the third is head "
            f"{shown.head}’s own score, as the model makes it."
        )
        before = pick("Show", BEFORE, "look_before", bare=True)
    made = on.kept(
        ("constructions", *at), lambda: soft_lookup.scoring_variants(x, on.attention, *at)
    )
    picture = on.picture(
        f"Three constructions, {shown.where}, {before.lower()}",
        "Scores: x · x / √d_model, q · q / √d_head, and the model’s own of q and k. Asymmetry: "
        "|S − Sᵀ| / (2 |S|), 0 for a symmetric S",
        file=f"L{shown.layer}H{shown.head}-constructions-{before.lower()}",
        what=("three", *at, before),
    )
    data = on.kept(("three drawn", picture.token), lambda: drawn(shown, made, before, picture))
    with first:
        matrix.show(data, "three", ignore)
    st.markdown(soft_lookup_text.ASYMMETRY + soft_lookup_text.AFTER[before])
    if pair := soft_lookup.most_asymmetric_pair(made[2], on.axes.special):
        st.markdown(soft_lookup_text.one_way(made, *((token, shown.row(token)) for token in pair)))
    keys = on.axes.keys
    on.numbers(
        "three ways to score a pair",
        ("soft_lookup",),
        f"x = soft_lookup.attention_input(recording, of, {shown.layer})",
        f"made = soft_lookup.scoring_variants(x, of, {shown.layer}, {shown.head})",
        f"table = soft_lookup.scoring_table(made, axes.keys, {before!r})",
    )
    with_table(lambda: soft_lookup.scoring_table(made, keys, before), picture.about, picture.file)


def drawn(
    shown: LookupState,
    made: tuple[soft_lookup.ScoringVariant, ...],
    before: str,
    picture: matrix.Picture,
) -> bytes:
    """The matrices for the browser: scores, which have no mask yet, or weights."""
    allowed, axes = shown.on.attention.allowed, shown.on.axes
    scores = before == "Scores"
    turns = models.capabilities(shown.on.recording.model.name).positions == "rotary"
    panels = []
    for one in made:
        values = one.scores if scores else mask_values(one.weights, allowed)
        top = largest(values)
        under = soft_lookup_text.under(one, turns)
        panels.append(
            matrix.MatrixPanel(
                soft_lookup_text.TITLES[one.name], values, -top if scores else 0, top, under=under
            )
        )
    sheet = matrix.MatrixSheet(
        axes.rows,
        axes.keys,
        axes.special,
        axes.sides,
        missing="" if scores else mask_reason(allowed),
        digits=3,
        choose=False,
    )
    return matrix.panels(panels, sheet, picture)
