"""The gradient of an output on its way back through the layers, and one sub-layer's Jacobian."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import gradients, residual
from explorer.analysis.attention import numbered
from explorer.layout import output
from explorer.layout.output import with_table
from explorer.state import cache, models
from explorer.text import gradients as gradients_text
from explorer.text import residual as residual_text
from explorer.text.markdown_escape import literal
from explorer.views.residual import depth_experiment
from explorer.views.residual.page_state import ResidualState, not_shown, pick_place


def show(on: ResidualState) -> None:
    """The way back from the output, the same in a deep stack, and one sub-layer."""
    model = on.recording.model.name
    ours, why = models.capabilities(model).weights, models.capabilities(model).no_readout
    st.session_state["followed"] = on.token
    labels = numbered(on.stream.tokens)
    token = st.selectbox(
        "Token",
        range(len(labels)),
        format_func=labels.__getitem__,
        key="followed",
        on_change=_take_followed,
        width=320,
    )
    if why:
        st.info(
            f"**{models.markdown_name(model)} {why}**: it predicts no words, so there is no "
            "output whose gradient could go back through its layers. A stack of random layers and "
            "one of its own sub-layers can be differentiated:"
        )
        lines = []
    else:
        lines = highway(on, token)
    depth_experiment.panel(on.recording, on.stream.name, on.caption())
    lines.append("stack = gradients.stack_columns(headlight.registry.depth(stream.resid[0]))")
    if ours:
        lines += one_jacobian(on, token)
    else:
        not_shown(on, "a sub-layer’s Jacobian", "its code runs as a whole, no sub-layer by itself")
    on.numbers("the gradient on its way back", ("gradients",), *lines)


def highway(on: ResidualState, token: int) -> list[str]:
    """The length of the gradient at every state, with and without residuals and LayerNorm. Returns
    the lines of Python that give it."""
    from explorer.figures.residual import lines

    recording, stream = on.recording, on.stream
    with st.spinner("Going back through the layers …"):
        try:
            found = cache.stream_gradients(recording, stream.name, token)
        except ValueError as why:
            st.info(f"The way back cannot be shown: {literal(str(why))}.")
            return []
    (word,) = models.labels(recording.model.name, [found.id])
    where = f"token {found.token}, {recording.stream(found.output).tokens[found.token]}"
    if len(recording.streams) > 1:
        where += f", of the {found.output}"
    norm = on.norm if residual.norm_place(stream) is not None else ""
    taken = residual_text.taken(recording.model.name, residual.has_residual(stream), norm)
    if not models.capabilities(recording.model.name).weights:
        taken = residual_text.TAKEN_ONCE
    st.subheader("The way back from the output", anchor=False)
    st.markdown(residual_text.output(literal(word), literal(where), found.logit[0], taken))
    total = residual.token_norm(found.norm)
    sites = gradients.state_labels(found)
    picture = on.picture(
        "Gradient by the state after a sub-layer",
        f"output: logit of {word} at {where}; length over all tokens",
        file=f"gradient-token{token}",
        what=("gradient", token),
    )
    left, right = st.columns([1.25, 1], gap="large")
    with left:
        series, up = list(zip(found.ways, total)), "length of the gradient"
        figure = lines(series, picture.about, sites, "", up, log=True, named=True)
        output.plotly_chart(figure, "highway", picture.title, "gradient")
    with right:
        st.markdown(gradients_text.table(found.ways, total))
        st.markdown(gradients_text.highway(found.ways, total, recording.model.n_layer))
        st.markdown(gradients_text.why(norm))
    with_table(gradients.highway_columns(found, token), picture.about, picture.file)
    return [
        f"found = model.gradients(recording, {stream.name!r}, {token})",
        f"gradient = gradients.highway_columns(found, {token})",
    ]


def one_jacobian(on: ResidualState, token: int) -> list[str]:
    """How one sub-layer stretches the directions of a token's vector. Returns the lines of Python
    that give it."""
    from explorer.figures.residual import spectrum

    stream, d = on.stream, on.recording.model.d_model
    adds = residual.has_residual(stream)
    st.subheader("One sub-layer: I + ∂f" if adds else "One sub-layer: ∂f", anchor=False)
    places = {each.name: each.site for each in residual.sublayers(stream) if each.layer >= 0}
    name, site = pick_place(places, "Sub-layer")
    with st.spinner("Differentiating …"):
        found = cache.jacobian(on.recording, stream.name, token, site)
    st.markdown(residual_text.jacobian(found, on.called(token), name, d))
    norm = on.norm if residual.norm_place(stream) == "post" else ""
    picture = on.picture(
        f"Singular values of ∂f{' and I + ∂f' if found.adds else ''}",
        f"{name}, token {token}, {stream.tokens[token]}; below a millionth not drawn",
        file=f"jacobian-{site}-token{token}",
        what=("jacobian", site, token),
    )
    figure = spectrum(gradients.singular_value_series(found, norm), picture.about)
    output.plotly_chart(figure, "jacobian", picture.title)
    with_table(gradients.singular_value_columns(found, norm), picture.about, picture.file)
    return [
        f"found = model.jacobian(recording, {stream.name!r}, {token}, {site!r})",
        f"values = gradients.singular_value_columns(found, {norm!r})",
    ]


def _take_followed() -> None:
    st.session_state.token = str(st.session_state["followed"])
