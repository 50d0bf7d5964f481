"""State of the Attention page: the recording, one of its attentions, the labels of its axes, and
what the reader chose."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

import streamlit as st

from explorer.analysis import head_naming
from explorer.analysis.attention import Axes, DisplayOptions, HeadSelection, HeadView, head_view
from explorer.analysis.findings import Finding
from explorer.layout import controls
from explorer.layout.controls import attention_names
from explorer.panels import attention as attention_panels
from explorer.panels.selection import axes_of
from explorer.panels.spec import Panel
from explorer.state import cache, url_state
from explorer.state.cache import Run
from models.recording import Attention, Recording

OF_A_HEAD = (
    "layer",
    "head",
    "token",
    "source",
    "anatomy_cell",
)  # choices that mean nothing in another attention


LABEL_BYTES = 60  # that a word in a table takes

WORDS = ("", "none")  # what a page without a chosen word holds: the telling one, or none


@dataclass(frozen=True, eq=False)
class AttentionState:
    """One attention of a recording with its heads and its axes. It is made anew in every run and
    nowhere kept."""

    source: Run
    recording: Recording
    attention: Attention
    axes: Axes
    heads: tuple[head_naming.Head, ...]

    @property
    def name(self) -> str:
        """The attention's name in the address, "" for the first."""
        first = self.attention is self.recording.attention[0]
        return "" if first else self.attention.name

    def head(self, at: tuple[int, int]) -> head_naming.Head:
        """A head by (layer, head)."""
        return self.heads[at[0] * self.attention.pattern.shape[1] + at[1]]

    def view(
        self, at: tuple[int, int], selection: HeadSelection, chosen: DisplayOptions
    ) -> HeadView:
        """The panel of a head under what the reader chose."""
        return head_view(
            self.recording,
            self.attention,
            self.head(at),
            self.axes,
            chosen,
            selection,
            self.source.target,
        )


def screen(source: Run, name: str) -> AttentionState:
    """The attention of that name, "" for the first, on the screen."""
    recording = source.recording()
    attention = recording.attention[attention_names(recording).index(name)]
    axes = axes_of(recording, attention)
    return AttentionState(
        source, recording, attention, axes, attention_panels.named_heads(recording, attention)
    )


def made_once(on: AttentionState, panel: Callable[..., Panel], **choices: Hashable) -> Panel:
    """A panel of the page, kept beside the recording: pictures made ahead, the page and its tables
    ask for the same one."""
    key = ("panel", panel.__name__, on.source.target, *sorted(choices.items()))
    return cache.cached_for(on.recording, key, partial(panel, on.source, **choices), size_of)


def size_of(panel: Panel) -> int:
    """Bytes of a panel: its arrays, as it is sent, and its table."""
    cells = (getattr(each, "nbytes", LABEL_BYTES * len(each)) for each in panel.table.values())
    return 2 * len(panel.bare) + sum(cells)


def choices() -> DisplayOptions:
    """Read the reader's display options of a matrix."""
    state = st.session_state
    return DisplayOptions(state.att_unit, state.att_keep, state.att_sum, state.scale, state.tone)


def chosen_head(on: AttentionState, first: Finding | None) -> tuple[int, int]:
    """The head on screen: the one chosen, or else the one that the strongest finding is seen in, or
    else the one whose name stands out most."""
    layers, heads = on.attention.pattern.shape[:2]
    layer, head = url_state.whole_number("layer", layers), url_state.whole_number("head", heads)
    if layer is not None and head is not None:
        return layer, head
    return telling_head(on, first)


def telling_head(on: AttentionState, first: Finding | None) -> tuple[int, int]:
    """The head that the strongest finding is seen in, or else the one whose name stands out
    most."""
    if first is not None:
        return first.at
    best = max(on.heads, key=head_naming.clarity)
    return best.layer, best.head


def summary_row(on: AttentionState, at: tuple[int, int]) -> int | None:
    """The word that the strongest finding of a head is about."""
    for findings_of in (attention_panels.leading_findings, attention_panels.recording_findings):
        for one in findings_of(on.recording):
            if (one.attention, one.at) == (on.attention.name, at) and one.query >= 0:
                return one.query
    return None


def selected_tokens(on: AttentionState, first: Finding | None) -> tuple[int | None, int | None]:
    """The row and the column that are held: of one text the chosen token's, between two texts the
    one or the other. Until the reader chooses a token or lets go of one, the word is held that the
    head's strongest finding is about."""
    row = url_state.whole_number("token", len(on.axes.rows))
    column = url_state.whole_number(
        "source", len(on.axes.keys) if row is None and on.axes.produced else 0
    )
    if row is None and column is None and url_state.one_of("att_word", WORDS) != "none":
        row = summary_row(on, chosen_head(on, first))
    return (row, row) if on.axes.produced is None else (row, column)


def keep_head(at: tuple[int, int]) -> None:
    """From here on the head on screen is the reader's choice and no longer the app's."""
    st.session_state.layer, st.session_state.head = map(str, at)


def take_attention(source: Run) -> None:
    """Another attention has other heads and other tokens: it is opened on its own strongest
    finding, and stays chosen from here on."""
    state = st.session_state
    for choice in OF_A_HEAD:
        state[choice] = ""
    on = screen(source, state.attention)
    if (first := attention_panels.opening_finding(on.recording, on.attention)) is not None:
        controls.open_finding(first)
    else:
        keep_head(chosen_head(on, None))
