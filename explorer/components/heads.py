"""All heads of an attention at once: thumbnails under buttons, filter by pattern, and a sortable
list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from operator import attrgetter
from typing import Protocol

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader
from explorer.components.head import runs

COLUMNS = {
    "score": "Mean attention along the pattern, 0 to 1",
    "chance": "What a head that attends evenly would score",
    "entropy": "Mean normalised row entropy: 0 one token, 1 uniform",
    "distance": (
        "Mean distance between query and key, in tokens, weighted by attention; special tokens "
        "and sinks left out"
    ),
    "sink": "Mean attention to the first token and the special ones",
}
# Between two texts: two places have no distance, and the first token is the source's.
COLUMNS_ACROSS = {name: words for name, words in COLUMNS.items() if name != "distance"} | {
    "sink": "Mean attention to the source’s first token and special ones"
}
SCORES = (
    "Score: mean attention along the pattern. Chance: that of uniform attention. Entropy 0 to 1."
)
LIST_NOTE = (
    f"{SCORES} Distance in tokens, without special tokens and sinks. Sink: mean attention to the "
    "first token and the special ones."
)
LIST_NOTE_ACROSS = f"{SCORES} Sink: mean attention to the source’s first token and special ones."
CHOICE = " Tokens without a choice are left out."
LISTED = ("score", "chance", "layer", "head", "name", "entropy", "distance", "sink")
RESTS = 0.5  # of a head's attention, from which on it is one that rests on quiet tokens

_listed = attrgetter(*LISTED)


class HeadRow(Protocol):
    """A head as it is listed: its layer, head and name, and every one of COLUMNS as a number."""

    @property
    def name(self) -> str:
        """The habit that it is called by."""


@dataclass(frozen=True, eq=False)
class HeadGrid:
    """Content of the grid of all heads; it has no selection, so choosing a head sends none of it
    again.

    pattern (layer, head, query, key), allowed (query, key); `heads` in the order of the first two
    axes; `tokens` names the rows, `keys` the columns; scale "row", "head"
    or "global"; `token` names this picture, for whoever waits for it; `across` where rows and
    columns are two texts. quiet (key) bool, None for none: keys whose columns stay empty, so that
    colours reach to the largest of the others; heads that give them more than RESTS of their
    attention stand back. listed: a list in place of the grid; by_word: of each head the selected
    word's row alone; only: the name of the heads shown, "" for all.
    """

    pattern: np.ndarray
    allowed: np.ndarray
    heads: Sequence[HeadRow]
    tokens: Sequence[str]
    keys: Sequence[str]
    scale: str
    log: bool
    token: str
    across: bool = False
    quiet: np.ndarray | None = None
    listed: bool = False
    by_word: bool = True
    only: str = ""


def payload(grid: HeadGrid) -> bytes:
    """Encode the grid of all heads for the browser."""
    pattern, across = grid.pattern, grid.across
    quiet = np.zeros(pattern.shape[-1], bool) if grid.quiet is None else grid.quiet
    back = np.zeros(len(grid.heads), bool)
    if quiet.any():
        back = pattern[..., quiet].sum(-1).mean(-1).ravel() > RESTS
        pattern = np.where(quiet, 0, pattern)
    cells, peak, fold = codec.thumbnails(pattern)
    header = {
        "token": grid.token,
        "n_head": pattern.shape[1],
        "rows": cells.shape[2],
        "columns": cells.shape[3],
        "fold": fold,
        "tokens": list(grid.tokens),
        "keys": None if list(grid.keys) == list(grid.tokens) else list(grid.keys),
        "scale": grid.scale,
        "log": grid.log,
        "heads": [_plain(head) | {"back": bool(at)} for head, at in zip(grid.heads, back)],
        "columns_mean": COLUMNS_ACROSS if across else COLUMNS,
        "quiet": np.flatnonzero(quiet).tolist(),
        "listed": grid.listed,
        "by_word": grid.by_word,
        "only": grid.only,
        "list_note": (LIST_NOTE_ACROSS if across else LIST_NOTE)
        + ("" if grid.allowed.all() else CHOICE),
    }
    blocks = {"cells": cells, "peak": peak} | runs(grid.allowed)
    if fold == 1:  # what a word looks at most is written out: to the digits of the large picture
        blocks["most"] = pattern.max(axis=-1).astype(np.float32)
        if across:
            blocks["most_in"] = pattern.max(axis=-2).astype(np.float32)
    return codec.encode(header, blocks)


def _plain(head: HeadRow) -> dict:
    listed = dict(zip(LISTED, map(_rounded, _listed(head))))
    if (
        head.name == "diffuse"
    ):  # its score is an entropy and no mean attention: it has its own column
        listed["score"] = listed["chance"] = None
    return listed


def _rounded(value: object) -> object:
    if not isinstance(value, float):
        return value
    return round(value, 4) if isfinite(value) else None


_mount = st.components.v2.component(
    "headlight.heads",
    html='<div class="heads"></div>',
    js=loader("heads"),
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw the heads. A choice stands in `st.session_state[key]["head"]` as "layer.head" when
    `on_choice` is called."""
    _mount(data=data, key=key, on_head_change=on_choice)
