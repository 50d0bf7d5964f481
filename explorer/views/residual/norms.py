"""The norms: every token's, one of them step by step, and BatchNorm beside it."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import residual
from explorer.analysis.attention import numbered
from explorer.analysis.residual import norm_place, stream_norms
from explorer.analysis.terminology import norm_name
from explorer.layout import output
from explorer.layout.output import with_table
from explorer.state import cache, models
from explorer.text import residual as residual_text
from explorer.text.capability_messages import WHICH_TENSORS
from explorer.text.markdown_escape import literal
from explorer.views.residual import chart
from explorer.views.residual.page_state import ResidualState, not_shown, pick, pick_place

THREE = st.column_config.NumberColumn(format="%.3f")
TIMES = ("0", "0.5", "1", "2", "3", "5", "10")


def show(on: ResidualState) -> None:
    """The spread and the mean of every token before and after each norm."""
    stream, model = on.stream, on.recording.model.name
    if not stream_norms(stream):
        st.info(residual_text.no_norm(models.markdown_name(model), on.norm))
        return
    measure, log = pick("norm", residual.NORMS)
    grid = on.kept(("norms", measure), lambda: residual.norm_grid(stream, measure, on.norm))
    if not models.capabilities(model).weights:
        not_shown(on, "the gains and biases of its norms", WHICH_TENSORS.format("these are"))
        return
    norms = cache.norms(on.recording, stream.name)
    called = norm_name(each[3] for each in norms.values())
    biased = any(each[1].any() for each in norms.values())

    def note() -> str:
        error = on.kept(("norm error",), lambda: residual.norm_error(stream, norms))
        return residual_text.norms(error, norm_place(stream), called, biased)

    chart.show(on, grid, f"every token, {called} by {called}", log, note)
    st.subheader(f"One {called}, step by step", anchor=False)
    name, site = pick_place({each.name: each.site for each in stream_norms(stream)}, called)
    steps = residual.norm_stages(stream, norms, site, on.token)
    one = norm_name([norms[site][3]])
    st.markdown(f"{on.called(on.token)} in one {one}, {name}:")
    st.dataframe(steps, hide_index=True, column_config=dict.fromkeys(list(steps)[1:], THREE))
    times = beside_batch_norm(on, name, site, norms[site][2:])
    on.numbers(
        f"every {called}",
        (
            "residual",
            "attention",
        ),
        f"norms = model.norms({stream.name!r})",
        f"grid = residual.norm_grid(stream, {measure!r}, {on.norm!r})",
        "table = residual.table(grid, stream.tokens)",
        f"steps = residual.norm_stages(stream, norms, {site!r}, {on.token})",
        f"how = norms[{site!r}][2:]",
        f"moved = residual.norm_change(stream, {site!r}, {on.token}, {times!r}, *how)",
        f'both = {{{one!r}: moved.layer, "BatchNorm": moved.batch}}',
        'moves = {"token": attention.numbered(stream.tokens), **both}',
    )


def beside_batch_norm(on: ResidualState, name: str, site: str, how: tuple[float, bool]) -> float:
    """The same sums over features and over tokens, when the followed token's vector is
    multiplied. Returns by what."""
    from explorer.figures.residual import bars

    st.subheader("Why not BatchNorm?", anchor=False)
    called = norm_name(how[1:])
    times, token, tokens = factor(), on.token, on.stream.tokens
    found = residual.norm_change(on.stream, site, token, times, *how)
    st.markdown(residual_text.batch_norm(name, literal(tokens[token]), token, times, called))
    worst = residual.largest_other(found.batch, token)
    least = residual.largest_other(found.layer, token)
    if worst is None or least is None:
        st.info(residual_text.one_token(called))
    else:
        own = float(found.layer[token]), float(found.batch[token])
        far = literal(tokens[worst[0]]), *worst
        st.markdown(residual_text.moved(len(tokens) - 1, least[1], far, own, called))
    picture = on.picture(
        f"Moves when token {token} is multiplied by {times:g}",
        f"|y′ − y| of the normalised vectors, {name}; gain and bias left out",
        f"changed: token {token}, {tokens[token]}",
        file="layernorm-batchnorm",
        what=("batch norm", site, token, times),
    )
    series = (called, found.layer), ("BatchNorm", found.batch)
    output.plotly_chart(
        bars(series, picture.about, tokens, "moved by"), "batch norm", picture.title, "norms"
    )
    with_table({"token": numbered(tokens), **dict(series)}, picture.about, picture.file)
    return times


def factor() -> float:
    """By what the vector is multiplied, as the address says or the slider."""
    if str(st.session_state.times) not in TIMES:
        st.session_state.times = "3"
    asked = st.select_slider(
        "Multiply the followed token’s vector by",
        TIMES,
        key="times",
        persist_state="session",
        width=420,
        help="Computed from the recorded vectors; the model does not run again.",
    )
    return float(asked)
