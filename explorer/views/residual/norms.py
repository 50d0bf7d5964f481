"""The norms: every token's, one of them step by step, and BatchNorm beside it."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import layer_norm as numbers
from explorer.analysis.attention import numbered
from explorer.analysis.called import norm
from explorer.analysis.residual import norm_place, norms_of
from explorer.frame import plot
from explorer.frame.table import with_table
from explorer.memory import models, passes
from explorer.sentences import residual as words
from explorer.sentences.escape import literal
from explorer.sentences.own_code import WHICH_TENSORS
from explorer.views.residual import chart
from explorer.views.residual.screen import Screen, not_shown, pick, pick_place

THREE = st.column_config.NumberColumn(format="%.3f")
TIMES = ("0", "0.5", "1", "2", "3", "5", "10")


def show(on: Screen) -> None:
    """The spread and the mean of every token before and after each norm."""
    stream, model = on.stream, on.recording.model.name
    if not norms_of(stream):
        st.info(words.no_norm(models.named(model), on.norm))
        return
    measure, log = pick("norm", numbers.NORMS)
    grid = on.kept(("norms", measure), lambda: numbers.norm_grid(stream, measure, on.norm))
    if not models.offers(model).weights:
        not_shown(on, "the gains and biases of its norms", WHICH_TENSORS.format("these are"))
        return
    norms = passes.norms(on.recording, stream.name)
    called = norm(each[3] for each in norms.values())
    biased = any(each[1].any() for each in norms.values())

    def note() -> str:
        error = on.kept(("norm error",), lambda: numbers.norm_error(stream, norms))
        return words.norms(error, norm_place(stream), called, biased)

    chart.show(on, grid, f"every token, {called} by {called}", log, note)
    st.subheader(f"One {called}, step by step", anchor=False)
    name, site = pick_place({each.name: each.site for each in norms_of(stream)}, called)
    steps = numbers.stages(stream, norms, site, on.token)
    one = norm([norms[site][3]])
    st.markdown(f"{on.called(on.token)} in one {one}, {name}:")
    st.dataframe(steps, hide_index=True, column_config=dict.fromkeys(list(steps)[1:], THREE))
    times = beside_batch_norm(on, name, site, norms[site][2:])
    on.numbers(
        f"every {called}",
        (
            "explorer.analysis import layer_norm, residual",
            "explorer.analysis.attention import numbered",
        ),
        f"norms = library.norms(model, {stream.name!r})",
        f"grid = layer_norm.norm_grid(stream, {measure!r}, {on.norm!r})",
        "table = residual.table(grid, stream.tokens)",
        f"steps = layer_norm.stages(stream, norms, {site!r}, {on.token})",
        f"how = norms[{site!r}][2:]",
        f"moved = layer_norm.change(stream, {site!r}, {on.token}, {times!r}, *how)",
        f'both = {{{one!r}: moved.layer, "BatchNorm": moved.batch}}',
        'moves = {"token": numbered(stream.tokens), **both}',
    )


def beside_batch_norm(on: Screen, name: str, site: str, how: tuple[float, bool]) -> float:
    """The same sums over features and over tokens, when the followed token's vector is
    multiplied. Returns by what."""
    from explorer.figures.residual import bars

    st.subheader("Why not BatchNorm?", anchor=False)
    called = norm(how[1:])
    times, token, tokens = factor(), on.token, on.stream.tokens
    found = numbers.change(on.stream, site, token, times, *how)
    st.markdown(words.batch_norm(name, literal(tokens[token]), token, times, called))
    worst = numbers.worst_other(found.batch, token)
    least = numbers.worst_other(found.layer, token)
    if worst is None or least is None:
        st.info(words.one_token(called))
    else:
        own = float(found.layer[token]), float(found.batch[token])
        far = literal(tokens[worst[0]]), *worst
        st.markdown(words.moved(len(tokens) - 1, least[1], far, own, called))
    picture = on.picture(
        f"Moves when token {token} is multiplied by {times:g}",
        f"|y′ − y| of the normalised vectors, {name}; gain and bias left out",
        f"changed: token {token}, {tokens[token]}",
        file="layernorm-batchnorm",
        what=("batch norm", site, token, times),
    )
    series = (called, found.layer), ("BatchNorm", found.batch)
    plot.show(bars(series, picture.about, tokens, "moved by"), "batch norm", picture.title, "norms")
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
