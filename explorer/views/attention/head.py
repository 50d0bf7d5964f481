"""One head: its name and what speaks for it, its picture, and its numbers as a table and as
files."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import attention, head_naming
from explorer.analysis.attention import HeadView, heat, mask_rule, notes, row_rule
from explorer.analysis.findings import ALIGNED, LINK, NEAR_LINK, Finding, Link
from explorer.components import head
from explorer.components.figure_caption import Picture
from explorer.layout import controls, export_menu, navigation, output
from explorer.layout.controls import pick
from explorer.layout.output import offer_csv, offer_recording
from explorer.state import cache, models
from explorer.state.cache import Run
from explorer.text import glossary, python_snippets
from explorer.text import head_naming as head_naming_text
from explorer.text.attention import opened, summary
from explorer.text.markdown_escape import literal
from explorer.views.attention import findings
from explorer.views.attention.page_state import AttentionState, choices, keep_head, screen
from explorer.views.predictions.page_state import way_to

VIEWS = ("Lines", "Matrix", "Both", "Table", "Plotly")


def show(on: AttentionState, view: HeadView) -> None:
    """The panel of one head."""
    as_ = title(on, view)
    picture(on, view, as_)
    if as_ == "Table":
        table(on, view)
    if as_ == "Plotly":
        in_plotly(view)
    units()
    told(on, view, as_)
    way("weight", f"Show how this weight is computed: {opened(view.opened)}", "zoom_in")
    if on.attention.query == on.attention.key:
        way("sentences", "Test this head on other sentences", "stacks")
    in_words(on, view)
    files(on, view)
    with st.expander("Why this name?", key="why this name", on_change="rerun") as why:
        if why.open:
            st.markdown(head_naming.meanings(on.recording, on.attention)[view.head.name])
            if table_of := head_naming_text.table(view.head):
                st.markdown(table_of)
            st.caption(head_naming_text.rule(across=on.axes.said is not None))


def way(tab: str, label: str, icon: str) -> None:
    """The way to a tab that shows the same head and word."""
    pressed = st.button(label, key=f"to {tab}", icon=f":material/{icon}:", type="tertiary")
    if pressed:
        navigation.go(tab, {})


def in_words(on: AttentionState, view: HeadView) -> None:
    """The way to what the head's weights say, in words."""
    if not models.shows_writes(on.recording):
        return
    at: dict[str, object] = {"layer": view.head.layer, "head": view.head.head}
    if on.attention is not on.recording.attention[0]:
        at["attention"] = on.attention.name
    way_to("circuits", "QK and OV circuits of this head", on.recording, **at)


def title(on: AttentionState, view: HeadView) -> str:
    """The head's name with what is measured of it, and the choice of its picture, which is
    returned."""
    head = view.head
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        st.header(
            f"Layer {head.layer}, head {head.head}",
            anchor=False,
            help=glossary.meaning("layer", "head", "weight"),
        )
        as_ = pick("View", VIEWS, key="view", bare=True)
    meanings = head_naming.meanings(on.recording, on.attention)
    output.markdown(summary(head, meanings, *tied(on, view)))
    return as_


def tied(
    on: AttentionState, view: HeadView
) -> tuple[Link | Finding | None, tuple[str, str, float] | None]:
    """The words of this head that are told of, and the tokens of them that the picture shows, with
    their weight: the headline's, where it is one of this head and of the word held."""
    head = view.head
    one = findings.seen(controls.recording_findings(on.recording), view)
    if one is not None and one.kind in (LINK, NEAR_LINK, ALIGNED):
        query, key = one.query, one.keys[0]
        link: Link | Finding = one
    elif best := controls.head_link(on.recording, on.attention, head):
        query, key, link = best.query, best.key, best
    else:
        return None, None
    weight = float(on.attention.pattern[head.layer, head.head, query, key])
    return link, (on.axes.rows[query], on.axes.keys[key], weight)


def picture(on: AttentionState, view: HeadView, as_: str) -> None:
    """The sentence tinted, and the matrix or the lines."""
    at, source, name = (view.head.layer, view.head.head), on.source, st.session_state.attention
    head.show(drawn(on, view, as_), "one head", on_choice=partial(take_token, source, name, at))


def drawn(on: AttentionState, view: HeadView, as_: str) -> bytes:
    """What the browser draws the picture from."""
    shown, chosen = view.shown, view.choices
    at, axes = (view.head.layer, view.head.head), shown.axes
    chosen_so = chosen.scale, chosen.tone, as_, chosen.unit, chosen.kept, chosen.row_sums
    return head.payload(
        head.HeadMatrix(
            shown.matrix,
            shown.allowed,
            axes.rows,
            axes.keys,
            axes.special,
            axes.said,
            shown.hidden,
            (axes.row_places, axes.key_places),
        ),
        at,
        head.PinnedCell(view.pin, view.column, view.cell, view.evidence),
        head.HeadAppearance(as_.lower(), chosen.scale.lower(), chosen.log),
        Picture(
            view.title,
            view.caption,
            view.file,
            cache.picture_name(on.recording, view.attention, *at, *chosen_so),
        ),
        on.attention.allowed.shape if chosen.unit == "Tokens" else None,
    )


def table(on: AttentionState, view: HeadView) -> None:
    """The matrix as a table."""
    columns = view.columns
    four = dict.fromkeys(list(columns)[1:], st.column_config.NumberColumn(format="%.4f", width=76))
    rows, keys = on.axes.sides
    st.dataframe(
        columns,
        hide_index=True,
        height=480,
        column_config=four,
        alt=f"{view.title}, rows {rows} tokens, columns {keys} tokens",
    )


def in_plotly(view: HeadView) -> None:
    """The same matrix in Plotly, imported only when it is wanted."""
    from explorer.figures.attention import ColourScale, heatmap

    drawn = heat(view)
    about = (view.title, *view.caption)
    figure = heatmap(
        drawn.values,
        drawn.weights,
        drawn.rows,
        drawn.columns,
        about,
        ColourScale(drawn.low, drawn.high, drawn.name),
        drawn.sides,
    )
    rows, keys = view.shown.axes.sides
    st.plotly_chart(
        figure,
        key="plotly",
        config={
            "displaylogo": False,
            "toImageButtonOptions": {"format": "svg", "filename": view.file},
        },
        alt=f"{view.title}, {keys} tokens along x, {rows} tokens down y",
    )


def units() -> None:
    """What rows and columns are: tokens or words; and whether rows sum to 1 again where some are
    left out."""
    state = st.session_state
    left_out = state.att_keep != "All"
    if not left_out:
        state.att_sum = attention.ROW_SUMS[0]
    with beside() if left_out else nullcontext():
        pick("Rows and columns", attention.UNITS, key="att_unit", bare=True)
        if left_out:
            state["att renormalise"] = state.att_sum == "Renormalised"
            st.toggle(
                "Renormalise",
                key="att renormalise",
                help=(
                    "Rows are divided by what they give the shown tokens, so that they sum to 1 "
                    "again."
                ),
                on_change=take_sum,
            )


def beside() -> DeltaGenerator:
    """Room for a choice and what belongs to it."""
    return st.container(horizontal=True, gap="small", vertical_alignment="center")


def told(on: AttentionState, view: HeadView, as_: str) -> None:
    """What is measured of the head, and what the picture shows and by which rules."""
    output.caption(head_naming_text.figures(view.head))
    if lines := notes(view.shown, view.choices):
        measured = " The name and the figures above are measured on all tokens."
        st.caption(" ".join(map(literal, lines)) + measured)
    if on.axes.said is not None:
        st.caption(row_rule(on.source.target))
    elif as_ == "Table" and not on.attention.allowed.all():
        st.caption(f"{mask_rule(on.attention.allowed)} Their weight is 0.")


def files(on: AttentionState, view: HeadView) -> None:
    """The matrix and the recording for the Export menu, made when they are asked for, from names
    alone."""
    source, name, asked = on.source, st.session_state.attention, view.choices
    at = view.head.layer, view.head.head

    def columns() -> attention.Columns:
        again = screen(source, name)
        shown = attention.head_matrix(again.recording, again.attention, at, again.axes, asked)
        return attention.columns(shown.matrix, shown.axes, shown.hidden)

    numbers_of(on, view)
    offer_csv(columns, (view.title, *view.caption), view.file)
    offer_recording(source.model, source.text, source.target)


def numbers_of(on: AttentionState, view: HeadView) -> None:
    """The lines of Python that give the matrix, as it is on screen."""
    asked = view.choices
    how = f"attention.DisplayOptions({asked.unit!r}, {asked.kept!r}, {asked.row_sums!r})"
    export_menu.offer_more_code(
        ("attention",),
        f"of = recording.attention[{on.recording.attention.index(on.attention)}]",
        *python_snippets.axes_of(on.attention.query != on.attention.key),
        f"at = {view.head.layer}, {view.head.head}",
        f"shown = attention.head_matrix(recording, of, at, axes, {how})",
        "table = attention.columns(shown.matrix, shown.axes, shown.hidden)",
    )


def take_sum() -> None:
    """Whether the rows shall sum to 1 again."""
    st.session_state.att_sum = attention.ROW_SUMS[st.session_state["att renormalise"]]


def take_token(source: Run, name: str, at: tuple[int, int]) -> None:
    """What was just chosen in the picture, [row, column, cell's column], as tokens; of a cell
    between words its strongest pair of tokens."""
    state = st.session_state
    if source.text != state.text:  # chosen in a picture of the text before
        return
    row, column, opened = (*(state["one head"].get("token") or (-1, -1)), -1)[:3]
    on = screen(source, name)
    shown = attention.head_matrix(on.recording, on.attention, at, on.axes, choices())
    keep_head(at)
    state.token = state.source = state.anatomy_cell = ""
    state.att_word = "none" if row < 0 and column < 0 else ""
    if 0 <= row < len(shown.row_tokens):
        state.token = str(shown.row_tokens[row][0])
        if 0 <= opened < len(shown.key_tokens):
            query, key = shown.strongest_pair(on.attention.pattern[at], row, opened)
            state.token, state.anatomy_cell = str(query), f"{query}.{key}"
    elif 0 <= column < len(shown.key_tokens):
        state.source = str(shown.key_tokens[column][0])
