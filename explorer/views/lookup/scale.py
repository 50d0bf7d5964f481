"""Why the scale: Var(q.k) by width, of random vectors and of this model's, and what the softmax
makes of it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.analysis import evidence, scale
from explorer.frame.subject import Subject
from explorer.frame.table import with_table
from explorer.memory import shelf
from explorer.sentences import scale as words

TITLES = ("Var(q·k) by width", "The softmax’s largest weight by width")


def panel(on: Subject, caption: Sequence[str]) -> None:
    """Two pictures side by side and what they say. caption: what a figure must say of model and
    text."""
    from explorer.figures.scale import by_width

    recording, attention = on.recording, on.attention
    random = shelf.derived(
        recording, ("scale, random",), lambda: scale.at_random(evidence.gaussian)
    )
    own = shelf.derived(
        recording, ("scale, own", attention.name), lambda: scale.of_model(attention)
    )
    st.markdown(words.LAW)
    left, right = st.columns(2, gap="large")
    with left:
        figure = by_width(scale.variances(random, own), (TITLES[0], *caption), "Var(q·k)", log=True)
        st.plotly_chart(figure, key="variance by width", alt=TITLES[0])
    with right:
        figure = by_width(
            scale.largest(random, own), (TITLES[1], *caption), "largest weight", log=False
        )
        st.plotly_chart(figure, key="largest weight by width", alt=TITLES[1])
    st.markdown(words.said(random, own, recording.model.d_head))
    on.numbers(
        "why the scale",
        ("explorer.analysis import evidence, scale",),
        "table = scale.table(scale.at_random(evidence.gaussian), scale.of_model(of))",
    )
    with_table(
        scale.table(random, own),
        (" and ".join(TITLES), *caption),
        f"headlight-{recording.model.name}-scale",
        form="%.4g",
    )
