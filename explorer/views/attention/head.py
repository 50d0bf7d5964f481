"""One head: its picture, what can be done with it, how it was classified, and its files."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import attention, head_naming
from explorer.analysis.attention import SCALE_LABELS, HeadView, mask_rule, notes, row_rule
from explorer.analysis.findings import ALIGNED, LINK, NEAR_LINK, Finding, Link
from explorer.components import head
from explorer.components.figure_caption import Picture
from explorer.layout import controls, export_menu, navigation, output
from explorer.layout.controls import pick
from explorer.layout.output import offer_csv, offer_recording
from explorer.state import cache, models
from explorer.state.cache import Run
from explorer.text import head_naming as head_naming_text
from explorer.text import python_snippets, templates
from explorer.text.attention import summary
from explorer.text.markdown_escape import literal
from explorer.views.attention import findings, grid
from explorer.views.attention.page_state import AttentionState, choices, keep_head, screen
from models.edits import HeadEdit, ZeroHead, from_line, to_line

VIEWS = ("Lines", "Matrix", "Both", "Table")
KEPT_LABELS = {
    "All": "All",
    "Quiet": "No shared sinks",
    "No specials": "No special tokens",
    "No sinks": "No own sinks",
}


def show(on: AttentionState, view: HeadView) -> None:
    """The sentence tinted and the picture of one head."""
    picture(on, view, st.session_state.view)
    if st.session_state.view == "Table":
        table(on, view)
    rules(on, view)
    files(on, view)


def rules(on: AttentionState, view: HeadView) -> None:
    """Show what the picture leaves out, and what its rows are named after."""
    if lines := notes(view.matrix_view, view.choices):
        measured = " The head’s name is measured on all tokens."
        st.caption(" ".join(map(literal, lines)) + measured)
    if on.axes.said is not None:
        st.caption(row_rule(on.source.target))
    elif st.session_state.view == "Table" and not on.attention.allowed.all():
        st.caption(f"{mask_rule(on.attention.allowed)} Their weight is 0.")


def actions(on: AttentionState, view: HeadView) -> None:
    """The ways on from this head: how its weight is made, the model without it, another
    sentence, the next finding."""
    with st.container(horizontal=True, gap="medium", key="head-actions"):
        steps(on, view)


def steps(on: AttentionState, view: HeadView) -> None:
    """The buttons of `actions`."""
    sentences = templates.sentences("heads", "head")
    weight = f"{view.opened.weight:.2f}"
    if st.button(sentences("computed", weight=weight), key="to weight", type="tertiary"):
        navigation.go("weight", {})
    fits = ZeroHead in models.capabilities(on.source.model).edits
    if fits and st.button(sentences("ablate"), key="ablate", type="tertiary"):
        ablate(ZeroHead(view.head.layer, view.head.head, on.attention.name))
        navigation.go("edit", {})
    if st.button(sentences("compare"), key="to compare", type="tertiary"):
        st.session_state.other_what = "Sentence"
        navigation.go("compare", {})
    findings.offer_next(on, view)


def ablate(edit: HeadEdit) -> None:
    """Put an edit of a head among the edits."""
    try:
        edits = from_line(str(st.session_state.edits))
    except ValueError:  # Experiment says which of them cannot be read
        edits = ()
    if edit not in edits:
        st.session_state.edits = to_line((*edits, edit))


def details(on: AttentionState, view: HeadView) -> None:
    """Show the measures of the head, and how it was classified."""
    meanings = head_naming.meanings(on.recording, on.attention)
    output.markdown(summary(view.head, meanings, *tied(on, view)))
    output.caption(head_naming_text.figures(view.head))
    if table_of := head_naming_text.table(view.head):
        st.markdown(table_of)
    st.caption(head_naming_text.rule(across=on.axes.said is not None))


def options(on: AttentionState) -> None:
    """Show the options of the View menu: the picture, the heads, the tokens and the colours."""
    state = st.session_state
    pick("Picture of the head", VIEWS, key="view")
    state["incoming shown"] = state.incoming == "1"
    st.toggle("Also show what attends to the word", key="incoming shown", on_change=take_incoming)
    pick("Heads as", grid.LAYOUTS, key="grid")
    pick("In each head", {"Word": "Selected word", "All": "All rows"}, key="grid_rows")
    pick(
        "Which tokens",
        KEPT_LABELS,
        key="att_keep",
        help="What grid, matrix, lines and sentence leave out; how much of the attention goes "
        "there is stated. **Shared sinks**: tokens on which a quarter of the heads rest, and all "
        "special tokens. **Special tokens**: those that the model adds and nobody typed. **Own "
        "sinks**: tokens on which the head of the large picture rests, in that picture alone.",
    )
    if state.att_keep != "All":
        state["att renormalise"] = state.att_sum == "Renormalised"
        st.toggle(
            "Renormalise",
            key="att renormalise",
            help="Rows are divided by what they give the shown tokens and sum to 1 again.",
            on_change=take_sum,
        )
    pick("Rows and columns", attention.UNITS, key="att_unit")
    pick(
        "Colour scale",
        SCALE_LABELS,
        key="scale",
        help="What the top of the colour scale is: 1 for all heads alike, each head’s largest "
        "weight, or each row’s.",
    )
    pick(
        "Tone",
        attention.TONES,
        key="tone",
        help="Log shows three powers of ten below the top of the scale, so that faint attention is "
        "seen.",
    )


def take_incoming() -> None:
    """Store the toggle that shows lines to the selected word."""
    st.session_state.incoming = "1" if st.session_state["incoming shown"] else ""


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
    """Encode the head's picture for the browser, as "Matrix", "Lines" or "Both"."""
    shown, chosen = view.matrix_view, view.choices
    at, axes = (view.head.layer, view.head.head), shown.axes
    chosen_so = chosen.scale, chosen.tone, as_, chosen.unit, chosen.token_filter, chosen.row_sums
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
        head.HeadAppearance(
            as_.lower(), chosen.scale.lower(), chosen.log, st.session_state.get("incoming") == "1"
        ),
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
    how = f"attention.DisplayOptions({asked.unit!r}, {asked.token_filter!r}, {asked.row_sums!r})"
    export_menu.offer_more_code(
        ("attention",),
        f"of = recording.attention[{on.recording.attention.index(on.attention)}]",
        *python_snippets.axes_of(on.attention.query != on.attention.key),
        f"at = {view.head.layer}, {view.head.head}",
        f"shown = attention.head_matrix(recording, of, at, axes, {how})",
        "table = attention.columns(shown.matrix, shown.axes, shown.hidden)",
    )


def take_sum() -> None:
    """Store the toggle that makes the rows sum to 1 again."""
    st.session_state.att_sum = attention.ROW_SUMS[st.session_state["att renormalise"]]


def take_token(source: Run, name: str, at: tuple[int, int]) -> None:
    """Store a choice in the picture, [row, column, cell's column], as tokens; of a cell between
    words its strongest pair of tokens."""
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
