"""What of the Attention page is on screen: the recording, one of its attentions, what its axes are
called, and what the reader chose."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.analysis import attention as numbers
from explorer.analysis import heads as naming
from explorer.analysis.finding import Finding
from explorer.analysis.head_view import Asked, Choices, HeadView, head_view
from explorer.frame import opening
from explorer.frame.picker import attention_names, axes_of
from explorer.memory import address
from explorer.memory.passes import Shown
from models.recording import Attention, Recording

OF_A_HEAD = (
    "layer",
    "head",
    "token",
    "source",
    "anatomy_cell",
)  # choices that mean nothing in another attention


WORDS = ("", "none")  # what a page without a chosen word holds: the telling one, or none


@dataclass(frozen=True, eq=False)
class Screen:
    """One attention of a recording with its heads and its axes. It is made anew in every run and
    nowhere kept."""

    source: Shown
    recording: Recording
    attention: Attention
    axes: numbers.Axes
    heads: tuple[naming.Head, ...]

    def head(self, at: tuple[int, int]) -> naming.Head:
        """A head by (layer, head)."""
        return self.heads[at[0] * self.attention.pattern.shape[1] + at[1]]

    def view(self, at: tuple[int, int], asked: Asked, chosen: Choices) -> HeadView:
        """The panel of a head under what the reader chose."""
        return head_view(
            self.recording,
            self.attention,
            self.head(at),
            self.axes,
            chosen,
            asked,
            self.source.target,
        )


def screen(source: Shown, name: str) -> Screen:
    """The attention of that name, "" for the first, on the screen."""
    recording = source.recording()
    attention = recording.attention[attention_names(recording).index(name)]
    axes = axes_of(recording, attention)
    return Screen(source, recording, attention, axes, opening.named_heads(recording, attention))


def choices() -> Choices:
    """How the reader looks at a matrix."""
    state = st.session_state
    return Choices(state.att_unit, state.att_keep, state.att_sum, state.scale, state.tone)


def chosen_head(on: Screen, first: Finding | None) -> tuple[int, int]:
    """The head on screen: the one chosen, or else the one that the strongest finding is seen in, or
    else the one whose name stands out most."""
    layers, heads = on.attention.pattern.shape[:2]
    layer, head = address.whole("layer", layers), address.whole("head", heads)
    if layer is not None and head is not None:
        return layer, head
    return telling_head(on, first)


def telling_head(on: Screen, first: Finding | None) -> tuple[int, int]:
    """The head that the strongest finding is seen in, or else the one whose name stands out
    most."""
    if first is not None:
        return first.at
    best = max(on.heads, key=naming.clarity)
    return best.layer, best.head


def told_row(on: Screen, at: tuple[int, int]) -> int | None:
    """The word that the strongest finding of a head is about."""
    found = opening.found(on.recording)
    of_head = (one for one in found if (one.attention, one.at) == (on.attention.name, at))
    return next((one.query for one in of_head if one.query >= 0), None)


def held_tokens(on: Screen, first: Finding | None) -> tuple[int | None, int | None]:
    """The row and the column that are held: of one text the chosen token's, between two texts the
    one or the other. Until the reader chooses a token or lets go of one, the word is held that the
    head's strongest finding is about."""
    row = address.whole("token", len(on.axes.rows))
    column = address.whole("source", len(on.axes.keys) if row is None and on.axes.said else 0)
    if row is None and column is None and address.one_of("att_word", WORDS) != "none":
        row = told_row(on, chosen_head(on, first))
    return (row, row) if on.axes.said is None else (row, column)


def keep_head(at: tuple[int, int]) -> None:
    """From here on the head on screen is the reader's choice and no longer the app's."""
    st.session_state.layer, st.session_state.head = map(str, at)


def take_attention(source: Shown) -> None:
    """Another attention has other heads and other tokens: it is opened on its own strongest
    finding, and stays chosen from here on."""
    state = st.session_state
    for choice in OF_A_HEAD:
        state[choice] = ""
    on = screen(source, state.attention)
    if (first := opening.first(on.recording, on.attention)) is not None:
        opening.take(first)
    else:
        keep_head(chosen_head(on, None))
