"""Every head at once, and below it the menu of patterns."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from explorer.analysis import head_naming
from explorer.analysis.attention import DisplayOptions
from explorer.analysis.terminology import windowed
from explorer.components import panel
from explorer.layout import export_menu, output
from explorer.panels import attention as attention_panels
from explorer.panels.attention import ROWS
from explorer.panels.spec import Panel
from explorer.state import url_state
from explorer.text import templates
from explorer.text.attention import WHO, WHO_TERMS, WINDOW
from explorer.views.attention.page_state import AttentionState, choices, made_once

LAYOUTS = ("Grid", "List")


def show(on: AttentionState) -> None:
    """The grid of all heads."""
    state = st.session_state
    named = patterns(on)
    url_state.one_of("pattern", tuple(named))
    made = panel_of(on, choices(), state.grid_rows, state.pattern, state.grid == LAYOUTS[1])
    panel.show(made.bare, "heads", take_head)
    export_menu.offer_panel(made)
    sentences = templates.sentences("heads", "grid")
    sinks = state.att_keep != "All" or any(head.name == head_naming.SINK for head in on.heads)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sinks"):
        st.selectbox(
            sentences("find"),
            list(named),
            format_func=lambda name: named.get(name, name),
            key="pattern",
            persist_state="session",
            label_visibility="collapsed",
            width=220,
            help=sentences("find"),
        )
        if sinks:
            label, tokens = ("hide", "Quiet") if state.att_keep == "All" else ("unhide", "All")
            st.button(
                sentences(label), key="keep sinks", type="tertiary", on_click=keep, args=(tokens,)
            )
    attention = on.attention
    if len(on.recording.attention) > 1 or not attention.allowed.all():
        who = WHO[attention.name] + WINDOW * windowed(attention.allowed)
        output.caption(who, *WHO_TERMS[attention.name])


def panel_of(
    on: AttentionState,
    display: DisplayOptions,
    rows: str = ROWS[0],
    pattern: str = "",
    listed: bool = False,
) -> Panel:
    """The panel of all heads. It has no selection, so choosing a head sends none of it again."""
    return made_once(
        on,
        attention_panels.heads,
        rows=rows,
        pattern=pattern,
        options=attention_panels.options_of(display),
        listed=listed,
        attention=on.name,
    )


def numbers(on: AttentionState) -> None:
    """The measures of all heads as a table and as a file."""
    state = st.session_state
    made = panel_of(on, choices(), state.grid_rows, state.pattern, state.grid == LAYOUTS[1])
    label = templates.sentences("heads", "grid")("table", heads=len(on.heads))
    output.with_table(made.table, (made.title, *made.caption), made.file, label)


def keep(tokens: str) -> None:
    """Set which tokens are shown."""
    st.session_state.att_keep = tokens


def patterns(on: AttentionState) -> dict[str, str]:
    """The names that heads have on this text with their numbers, "" for all heads."""
    counts = Counter(head.name for head in on.heads)
    names = (name for name in head_naming.meanings(on.recording, on.attention) if counts[name])
    titles = {"previous": "previous token", "next": "next token"}
    return {"": "Find heads by pattern"} | {
        name: f"{titles.get(name, name)} ({counts[name]})" for name in names
    }


def take_head() -> None:
    """Store the head that was pressed. The word on screen stays selected: the grid showed each head
    at that word."""
    state = st.session_state
    pressed = state.heads.get("select") or {}
    state.layer, state.head = str(pressed.get("layer", "")), str(pressed.get("head", ""))
    if not state.token and not state.source:
        state.token = state.get("held word", "")
