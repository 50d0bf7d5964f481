"""One head: its picture, what can be done with it, how it was classified, and its files."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import attention, head_naming
from explorer.analysis.attention import SCALE_LABELS, HeadView, notes, row_rule
from explorer.analysis.findings import ALIGNED, LINK, NEAR_LINK, Finding, Link
from explorer.components import panel
from explorer.layout import export_menu, navigation, output
from explorer.layout.controls import pick
from explorer.layout.output import offer_recording
from explorer.panels import attention as attention_panels
from explorer.panels.spec import Panel
from explorer.state import models
from explorer.state.cache import Run
from explorer.text import head_naming as head_naming_text
from explorer.text import templates
from explorer.text.attention import summary
from explorer.text.markdown_escape import literal
from explorer.views.attention import findings, grid
from explorer.views.attention.page_state import (
    AttentionState,
    choices,
    keep_head,
    made_once,
    screen,
)
from models.edits import HeadEdit, ZeroHead, from_line, to_line

TABLE = "Table"
VIEWS = (*attention_panels.VIEWS, TABLE)
TOKEN_LABELS = {
    "All": "All",
    "Quiet": "Hide common sinks",
    "No specials": "Hide special tokens",
    "No sinks": "Hide the head’s sinks",
}


def show(on: AttentionState, view: HeadView) -> None:
    """The picture of one head, and what it leaves out."""
    at, name = (view.head.layer, view.head.head), st.session_state.attention
    made = panel_of(on, view, st.session_state.view, st.session_state.incoming == "1")
    panel.show(made.bare, "one head", partial(take_token, on.source, name, at))
    export_menu.offer_panel(made)
    rules(on, view)


def panel_of(on: AttentionState, view: HeadView, kind: str, incoming: bool = False) -> Panel:
    """The panel of the head on screen; kind: one of VIEWS."""
    token, key = view.tokens
    if view.cell is not None:
        key = view.opened.key
    elif token is not None:
        key = None
    return made_once(
        on,
        attention_panels.head,
        layer=view.head.layer,
        head=view.head.head,
        token=token,
        key=key,
        view=next(iter(attention_panels.VIEWS)) if kind == TABLE else kind,
        options=attention_panels.options_of(view.choices, incoming),
        attention=on.name,
    )


def numbers(on: AttentionState, view: HeadView) -> None:
    """The matrix as a table and as a file, and the recording."""
    kind = st.session_state.view
    made = panel_of(on, view, kind, st.session_state.incoming == "1")
    about = (made.title, *made.caption)
    output.with_table(made.table, about, made.file, opened=kind == TABLE)
    offer_recording(on.source.model, on.source.text, on.source.target)


def rules(on: AttentionState, view: HeadView) -> None:
    """Show what the picture leaves out, and what its rows are named after."""
    if lines := notes(view.matrix_view, view.choices):
        measured = " The head’s name is measured on all tokens."
        st.caption(" ".join(map(literal, lines)) + measured)
    if on.axes.produced is not None:
        st.caption(row_rule(on.source.target))


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
    if cells := attention_panels.evidence(view):
        st.caption(cells)
    if table_of := head_naming_text.table(view.head):
        st.markdown(table_of)
    st.caption(head_naming_text.rule(across=on.axes.produced is not None))


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
        TOKEN_LABELS,
        key="att_keep",
        help="What grid, matrix, lines and sentence leave out; how much of the attention goes "
        "there is stated. **Common sinks**: attention sinks of a quarter of the heads, and all "
        "special tokens. **Special tokens**: those that the model adds and nobody typed. **The "
        "head’s sinks**: attention sinks of the selected head, in its picture alone.",
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
    one = findings.seen(attention_panels.leading_findings(on.recording), view)
    if one is not None and one.kind in (LINK, NEAR_LINK, ALIGNED):
        query, key = one.query, one.keys[0]
        link: Link | Finding = one
    elif best := attention_panels.head_link(on.recording, on.attention, head):
        query, key, link = best.query, best.key, best
    else:
        return None, None
    weight = float(on.attention.pattern[head.layer, head.head, query, key])
    return link, (on.axes.rows[query], on.axes.keys[key], weight)


def take_sum() -> None:
    """Store the toggle that makes the rows sum to 1 again."""
    st.session_state.att_sum = attention.ROW_SUMS[st.session_state["att renormalise"]]


def take_token(source: Run, name: str, at: tuple[int, int]) -> None:
    """Store a choice in the picture, a row, a column, or a row and a cell's column, as tokens; of a
    cell between words its strongest pair of tokens."""
    state = st.session_state
    if source.text != state.text:  # chosen in a picture of the text before
        return
    pressed = state["one head"].get("select") or {}
    row, column, opened = (int(pressed.get(each, -1)) for each in ("row", "column", "cell"))
    on = screen(source, name)
    matrix = attention.head_matrix(on.recording, on.attention, at, on.axes, choices())
    keep_head(at)
    state.token = state.source = state.anatomy_cell = ""
    state.att_word = "none" if row < 0 and column < 0 else ""
    if 0 <= row < len(matrix.row_tokens):
        state.token = str(matrix.row_tokens[row][0])
        if 0 <= opened < len(matrix.key_tokens):
            query, key = matrix.strongest_pair(on.attention.pattern[at], row, opened)
            state.token, state.anatomy_cell = str(query), f"{query}.{key}"
    elif 0 <= column < len(matrix.key_tokens):
        state.source = str(matrix.key_tokens[column][0])
