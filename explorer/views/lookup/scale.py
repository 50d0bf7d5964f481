"""Why the scale: Var(q.k) by width, of random vectors and of this model's, and what the softmax
makes of it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.analysis import evidence, soft_lookup
from explorer.layout.controls import Subject
from explorer.layout.output import with_table
from explorer.state import cache
from explorer.text.soft_lookup import LAW, said

TITLES = ("Var(q·k) by width", "The softmax’s largest weight by width")


def panel(on: Subject, caption: Sequence[str]) -> None:
    """Two pictures side by side and what they say. caption: what a figure must say of model and
    text."""
    from explorer.figures.soft_lookup import by_width

    recording, attention = on.recording, on.attention
    random = cache.cached_for(
        recording, ("scale, random",), lambda: soft_lookup.random_variance(evidence.gaussian)
    )
    own = cache.cached_for(
        recording, ("scale, own", attention.name), lambda: soft_lookup.model_variance(attention)
    )
    st.markdown(LAW)
    left, right = st.columns(2, gap="large")
    with left:
        figure = by_width(
            soft_lookup.variance_lines(random, own), (TITLES[0], *caption), "Var(q·k)", log=True
        )
        st.plotly_chart(figure, key="variance by width", alt=TITLES[0])
    with right:
        figure = by_width(
            soft_lookup.largest_weight_lines(random, own),
            (TITLES[1], *caption),
            "largest weight",
            log=False,
        )
        st.plotly_chart(figure, key="largest weight by width", alt=TITLES[1])
    st.markdown(said(random, own, recording.model.d_head))
    on.numbers(
        "why the scale",
        (
            "evidence",
            "soft_lookup",
        ),
        "table = soft_lookup.variance_table(soft_lookup.random_variance(evidence.gaussian), "
        "soft_lookup.model_variance(of))",
    )
    with_table(
        soft_lookup.variance_table(random, own),
        (" and ".join(TITLES), *caption),
        f"headlight-{recording.model.name}-scale",
        form="%.4g",
    )
