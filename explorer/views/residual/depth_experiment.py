"""What residual connections are for: the gradient through a deep stack with random weights, with
them and without."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.analysis import gradients
from explorer.layout import output
from explorer.layout.output import with_table
from explorer.state import cache
from explorer.text.gradients import deep, stack, table
from models.recording import Recording


def panel(recording: Recording, stream: str, caption: Sequence[str]) -> None:
    """The gradient's length layer by layer in four ways, and what it says. caption: what a figure
    must say of model and text."""
    from explorer.figures.residual import fading

    with st.spinner("Going back through 64 layers …"):
        found = cache.depth_gradients(recording, stream)
    st.subheader(f"The same in a stack of {found.layers} layers", anchor=False)
    about = (
        f"Gradient by layer, {found.layers} layers, random weights",
        "length over all tokens, of that at the last layer; below 10⁻⁹ not drawn",
        *caption,
    )
    left, right = st.columns([1.25, 1], gap="large")
    kept = [(way, norm / norm[-1]) for way, norm in zip(found.ways, found.norm)]
    with left:
        output.plotly_chart(fading(kept, about), "deep", about[0], "deep-stack")
    with right:
        st.markdown(table(found.ways, found.norm))
        st.markdown(deep(found.ways, found.norm))
        st.caption(stack(found.width, found.layers, found.tokens, found.gain, found.draws))
    columns = gradients.stack_columns(found)
    with_table(columns, about, "headlight-gradient-deep-stack", form="%.4g")
