"""A summary as a matrix, one of its rows as the sentence, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from explorer.analysis import attention, summaries
from explorer.analysis.csv import Columns
from explorer.components import matrix
from explorer.components.figure_caption import Picture
from explorer.layout import export_menu
from explorer.layout.controls import Subject
from explorer.layout.output import with_table
from explorer.state import cache, url_state
from explorer.text import summaries as summaries_text
from explorer.text.markdown_escape import literal
from explorer.views.summaries import weight_vs_norm
from explorer.views.summaries.page_state import KEPT, Summary, summary


def show(on: Subject, what: str) -> None:
    """The picture, what it means and how far it can be trusted, one of its rows, and the files."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="after-tokens"):
        layer, head = scope(on, what)
        st.session_state["kept shown"] = st.session_state.att_keep
        st.segmented_control(
            "Which tokens",
            tuple(KEPT),
            key="kept shown",
            wrap=True,
            format_func=KEPT.__getitem__,
            required=True,
            label_visibility="collapsed",
            on_change=take_kept,
            help="Shared sinks are tokens on which a quarter of the heads rest, and all special "
            "tokens, as on the Attention page. How much goes there is stated.",
        )
    made = summary(on, what, layer, head)
    if made is None:
        return
    picture = made.picture()
    left, right = st.columns([1, 1.05], gap="large")
    with left:
        if made.whole:
            drawn(made, picture)
        else:
            st.info(summaries_text.ONE_ROW.format(len(on.axes.rows)))
        if made.note:
            st.caption(literal(made.note))
    with right:
        st.markdown(f"**{summaries_text.LABELS[what]}.** {summaries_text.MEANING[what]}")
        st.markdown(f":material/warning: {caution(made)}")
        one_row(made, picture)
        weight_vs_norm.show(made)
    axes = made.shown.axes
    at = slice(None) if made.whole else slice(made.row, made.row + 1)
    named = attention.Axes(axes.rows[at], axes.keys, axes.special, axes.said, None, axes.key_places)
    values = made.shown.matrix[at]
    numbers_of(made, at)
    files(lambda: attention.columns(values, named), (values, named.rows, axes.keys), picture)


def numbers_of(made: Summary, at: slice) -> None:
    """The lines of Python that give the matrix, and where weights mislead: in the place of the
    file's where that shows another summary or all tokens."""
    layer, head = made.layer, made.head
    tokens = f"summaries.flow(of, range(len(of.allowed)), {layer})"
    values = {
        "Mean": f"summaries.mean(of, {layer})",
        "Max": f"summaries.largest(of, {layer})",
        "Rollout": f"summaries.rollout(of, {layer})",
        "Flow": tokens if made.whole else f"summaries.single_row_flow(of, {made.token}, {layer})",
        "Values": f"summaries.norms(of, model.outputs()[of.name][0], {layer}, {head})",
    }[made.what]
    kept = st.session_state.att_keep
    chosen = "" if made.whole else f"[{at.start}:{at.stop}]"
    filed = made.what in export_menu.SUMS and made.shown.hidden is None
    called = f"this summary, {summaries_text.LABELS[made.what].lower()}"
    put = made.on.more if filed else partial(made.on.numbers, called)
    put(
        (
            "dataclasses import replace",
            "attention",
            "head_naming",
            "summaries",
        ),
        *(() if made.parted is None else weight_vs_norm.LINES),
        f"values = {values}",
        "quiet = head_naming.shared_sinks(recording, of)",
        f"shown = attention.matrix_view(values, of.allowed, axes, None, {kept!r}, False, quiet)",
        f"axes = replace(shown.axes, rows=shown.axes.rows{chosen}, row_places=None)",
        f"table = attention.columns(shown.matrix{chosen}, axes)",
    )


def scope(on: Subject, what: str) -> tuple[int | None, int | None]:
    """Which layers and heads: all of them, one layer, or (of weighted values) one head."""
    layers, heads = on.attention.pattern.shape[:2]
    layer = pick(
        "sum_layer", "Up to layer" if what in summaries_text.THROUGH else "Layer", "Layer", layers
    )
    if what != "Values" or layer is None:
        return layer, None
    return layer, pick("sum_head", "Head", "Head", heads)


def pick(choice: str, label: str, noun: str, n: int) -> int | None:
    """One of n layers or heads; None for all. Their names are the same for every summary: the
    browser goes on showing the one that was chosen."""
    options = ("", *map(str, range(n)))
    url_state.one_of(choice, options)
    asked = st.selectbox(
        label,
        options,
        key=choice,
        persist_state="session",
        width=180,
        format_func=lambda each: f"{noun} {each}" if each else f"All {noun.lower()}s",
    )
    return int(asked) if asked else None


def drawn(made: Summary, picture: Picture) -> None:
    """The matrix, and of one head its weights and shares, which are read out with it."""
    each = [matrix.MatrixPanel("length" if made.what == "Values" else "", made.drawn, 0, made.high)]
    if made.head is not None:
        of = made.on.attention.pattern[made.layer, made.head]
        rows, keys = map(list, made.tokens)
        for name, values in (
            ("weight", of),
            ("share of lengths", summaries.row_shares(made.values)),
        ):
            beside = summaries.mask_values(values[rows][:, keys], made.shown.allowed)
            each.append(matrix.MatrixPanel(name, beside, 0, 1, drawn=False))
    what = ("summary drawn", picture.token)
    data = made.on.kept(what, lambda: matrix.panels(each, made.sheet, picture))
    matrix.show(data, "summary", partial(take, "summary", made.tokens[0]))


def one_row(made: Summary, picture: Picture) -> None:
    """One token's row as the tinted sentence."""
    row = matrix.SheetRow(
        made.row, summaries_text.SAYS[made.what], 0, made.high, not made.on.across
    )
    data = matrix.row(made.drawn[made.row], row, made.sheet, picture)
    matrix.show(data, "summary row", partial(take, "summary row", made.tokens[0]))


def caution(made: Summary) -> str:
    """What the picture does not say, with this text's numbers."""
    on, what = made.on, made.what
    layers, heads = on.attention.pattern.shape[:2]
    written = on.kept(("written",), lambda: summaries.output_share(on.recording, on.attention))
    sums = summaries.row_sums(made.values if made.whole else made.values[[made.token]])
    n = heads if made.layer is not None else layers * heads
    said = summaries_text.caution(what, n, sums, written)
    if what != "Values" or made.layer is None or made.head is None:
        return said
    w_o = cache.outputs(on.recording)[on.attention.name][0]
    parts = summaries.cancellation(on.attention, w_o, made.layer, made.head, made.token)
    return said + summaries_text.cancelled(made.token, *parts)


def files(
    columns: Callable[[], Columns],
    arrays: tuple[Any, Sequence[str], Sequence[str]],
    picture: Picture,
) -> None:
    """The table behind a picture, made when it is opened, and its files. arrays: values (row,
    column) and their names."""
    with_table(columns, picture.about, picture.file, form="%.4g")
    export_menu.offer(
        "Values, rows, keys and what they are as NPZ",
        f"{picture.file}.npz",
        "application/octet-stream",
        lambda: summaries.to_npz(*arrays, picture.about),
    )


def take_kept() -> None:
    """Which tokens are shown, here and on the Attention page."""
    st.session_state.att_keep = st.session_state["kept shown"]


def take(key: str, tokens: tuple[int, ...]) -> None:
    """The row that was chosen in a picture, as its token."""
    at = int(st.session_state[key].get("row") or 0)
    if at < len(tokens):
        st.session_state.token = str(tokens[at])
