"""Every head at once, and below it how many of them are sinks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import streamlit as st

from explorer.analysis import head_naming
from explorer.analysis.attention import DisplayOptions, hidden_tokens
from explorer.analysis.terminology import windowed
from explorer.components import heads
from explorer.layout import output
from explorer.state import cache, url_state
from explorer.text import templates
from explorer.text.attention import WHO, WHO_TERMS, WINDOW, sinks
from explorer.text.markdown_escape import literal
from explorer.views.attention.page_state import AttentionState, choices

LAYOUTS = ("Grid", "List")
ROWS = ("Word", "All")  # of each head: the selected word's row, or all rows


@dataclass(frozen=True)
class GridOptions:
    """Layout of the grid of heads: one of LAYOUTS, one of ROWS, and the name of the heads shown, ""
    for all."""

    layout: str = LAYOUTS[0]
    rows: str = ROWS[0]
    pattern: str = ""


def show(on: AttentionState) -> None:
    """The grid of all heads."""
    state = st.session_state
    named = patterns(on)
    url_state.one_of("pattern", tuple(named))
    options = GridOptions(state.grid, state.grid_rows, state.pattern)
    data, note = drawn(on, choices(), options)
    heads.show(data, "heads", on_choice=take_head)
    sentences = templates.sentences("heads", "grid")
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
        about = literal(note) if note else sinks(on.heads)
        if about:
            label, kept = ("unhide", "All") if note else ("hide", "Quiet")
            st.button(
                sentences(label), key="keep sinks", type="tertiary", on_click=keep, args=(kept,)
            )
    if about:
        output.caption(about, "sink")
    attention = on.attention
    if len(on.recording.attention) > 1 or not attention.allowed.all():
        who = WHO[attention.name] + WINDOW * windowed(attention.allowed)
        output.caption(who, *WHO_TERMS[attention.name])


def keep(kept: str) -> None:
    """Set which tokens are shown."""
    st.session_state.att_keep = kept


def patterns(on: AttentionState) -> dict[str, str]:
    """The names that heads have on this text with their numbers, "" for all heads."""
    counts = Counter(head.name for head in on.heads)
    names = (name for name in head_naming.meanings(on.recording, on.attention) if counts[name])
    titles = {"previous": "previous token", "next": "next token"}
    return {"": "Find heads by pattern"} | {
        name: f"{titles.get(name, name)} ({counts[name]})" for name in names
    }


def drawn(
    on: AttentionState, chosen: DisplayOptions, options: GridOptions = GridOptions()
) -> tuple[bytes, str]:
    """Return the result of `made`, kept beside the recording."""
    what = (on.attention.name, "grid", chosen.scale, chosen.tone, chosen.token_filter, options)
    name = cache.picture_name(on.recording, *what)
    # Kept without the arrays it is made of, which may be a whole recording's.
    return cache.cached_for(
        on.recording, what, lambda: made(on, chosen, options, name), weigh=lambda both: len(both[0])
    )


def made(
    on: AttentionState, chosen: DisplayOptions, options: GridOptions, name: str
) -> tuple[bytes, str]:
    """Encode the grid for the browser; returns the payload and a line on what is left out."""
    left = hidden_tokens(on.recording, on.attention, chosen)
    data = heads.payload(
        heads.HeadGrid(
            on.attention.pattern,
            on.attention.allowed,
            on.heads,
            on.axes.rows,
            on.axes.keys,
            chosen.scale.lower(),
            chosen.log,
            name,
            on.axes.said is not None,
            left.keys,
            options.layout == "List",
            options.rows == "Word",
            options.pattern,
        )
    )
    return data, left.note


def take_head() -> None:
    """The head chosen in the grid. The word on screen stays selected: the grid showed each head at
    that word."""
    state = st.session_state
    state.layer, _, state.head = (state.heads.get("head") or "").partition(".")
    if not state.token and not state.source:
        state.token = state.get("held word", "")
