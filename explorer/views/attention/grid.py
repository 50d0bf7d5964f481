"""Every head at once, and above it what holds for all pictures of the page: colour scale, and which
tokens are shown."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import attention, head_naming
from explorer.analysis.attention import SCALE_LABELS, DisplayOptions, hidden_tokens
from explorer.components import heads
from explorer.layout import output
from explorer.layout.controls import pick
from explorer.state import cache
from explorer.text.markdown_escape import literal
from explorer.views.attention.page_state import AttentionState, choices

KEPT_LABELS = {
    "All": "All",
    "Quiet": "No shared sinks",
    "No specials": "No special tokens",
    "No sinks": "No own sinks",
}


def show(on: AttentionState) -> None:
    """The grid of all heads with its controls."""
    # On a phone behind the grid.
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="after-all"):
        controls()
    data, note = drawn(on, choices())
    heads.show(data, "heads", on_choice=take_head)
    if note:
        output.caption(literal(note), "sink")


def drawn(on: AttentionState, chosen: DisplayOptions) -> tuple[bytes, str]:
    """What `made` gives, kept beside the recording."""
    what = (on.attention.name, "grid", chosen.scale, chosen.tone, chosen.kept)
    name = cache.picture_name(on.recording, *what)
    # Kept without the arrays it is made of, which may be a whole recording's.
    return cache.cached_for(
        on.recording, what, lambda: made(on, chosen, name), weigh=lambda both: len(both[0])
    )


def made(on: AttentionState, chosen: DisplayOptions, name: str) -> tuple[bytes, str]:
    """What the browser draws the grid from, and a line on what is left out."""
    left = hidden_tokens(on.recording, on.attention, chosen)
    data = heads.payload(
        heads.HeadGrid(
            on.attention.pattern,
            on.attention.allowed,
            on.heads,
            head_naming.meanings(on.recording, on.attention),
            on.axes.rows,
            on.axes.keys,
            chosen.scale.lower(),
            chosen.log,
            name,
            on.axes.said is not None,
            left.keys,
        )
    )
    return data, left.note


def controls() -> None:
    """What holds for grid, matrix, lines and sentence alike."""
    pick(
        "Which tokens",
        KEPT_LABELS,
        key="att_keep",
        bare=True,
        help="What grid, matrix, lines and sentence leave out; how much of the attention goes "
        "there is stated. **Shared sinks**: tokens on which a quarter of the heads rest, and all "
        "special tokens. **Special tokens**: those that the model adds and nobody typed. **Own "
        "sinks**: tokens on which the head of the large picture rests, in that picture alone.",
    )
    with st.popover(
        "",
        icon=":material/palette:",
        help="Colour scale and tone",
        key="colours",
        on_change="rerun",
    ) as box:
        if box.open:
            colours()


def colours() -> None:
    """How weights become colours."""
    pick(
        "Colour scale",
        SCALE_LABELS,
        key="scale",
        help=(
            "What the top of the colour scale is: each head’s largest weight, each row’s, "
            "or 1 for all heads alike."
        ),
    )
    pick(
        "Tone",
        attention.TONES,
        key="tone",
        help=(
            "Log shows three powers of ten below the top of the scale, so that faint "
            "attention is seen."
        ),
    )


def take_head() -> None:
    """The head chosen in the grid. A word that the app holds stays held: the grid showed each head
    at that word."""
    state = st.session_state
    state.layer, _, state.head = (state.heads.get("head") or "").partition(".")
    if not state.token and not state.source:
        state.token = state.get("held word", "")
