"""The logit lens: a table of the words that every site would say at every token, one token's way
through the sites, and the sum of a logit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

TOP_SHOWN = 5  # words of a cell that is pointed at
NONE = -1


class LensPayload(Protocol):
    """What each site says: top_ids and top_logprobs (site, token, rank); final_id (token); rank,
    logprob and kl (site, token)."""

    @property
    def top_ids(self) -> np.ndarray: ...
    @property
    def top_logprobs(self) -> np.ndarray: ...
    @property
    def final_id(self) -> np.ndarray: ...
    @property
    def rank(self) -> np.ndarray: ...
    @property
    def logprob(self) -> np.ndarray: ...
    @property
    def kl(self) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class LensAxes:
    """What the table and a token's way are drawn on: short and long names of the sites, the tokens'
    labels, and the words of several pieces that may come next, by their first token."""

    sites: Sequence[str]
    spoken: Sequence[str]
    tokens: Sequence[str]
    whole: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CellContent:
    """What the cells say: the next word or the one that stands there, in which measure's colour, of
    how many words in all."""

    asks_next: bool
    measure: str
    n_vocab: int


def grid(
    lens: LensPayload,
    right: np.ndarray,
    words: Mapping[int, str],
    axes: LensAxes,
    asked: CellContent,
    token: str,
) -> bytes:
    """What the browser needs to draw the table; no choice of a cell is in it, so choosing one sends
    none of it again.

    right (token): the id that would be right, -1 for none. words: the labels of all that these
    name, by ascending id. `token` names this picture, for whoever waits for it.
    """
    ids = np.fromiter(words, dtype=np.int64)
    top = lens.top_ids[..., :TOP_SHOWN]
    header = {
        "role": "grid",
        "token": token,
        "labels": list(words.values()),
        "sites": list(axes.sites),
        "spoken": list(axes.spoken),
        "tokens": list(axes.tokens),
        "right": [int(np.searchsorted(ids, one)) if one != NONE else NONE for one in right],
        "final": np.searchsorted(ids, lens.final_id).tolist(),
        "whole": {int(np.searchsorted(ids, id)): word for id, word in axes.whole.items()},
        "top": TOP_SHOWN,
        "asksNext": asked.asks_next,
        "measure": asked.measure,
        "nVocab": asked.n_vocab,
    }
    blocks = {
        "words": np.searchsorted(ids, top).astype(np.uint32),
        # A probability itself may be too small for a float32.
        "logp": lens.top_logprobs[..., :TOP_SHOWN].astype(np.float32),
        "rank": lens.rank.astype(np.uint32),
        "answer": lens.logprob.astype(np.float32),
        "kl": lens.kl.astype(np.float32),
    }
    return codec.encode(header, blocks)


def way(
    column: Sequence, held: int, labels: Mapping[int, str], axes: LensAxes, token: str
) -> bytes:
    """What the browser needs to show one token's way through the sites, and to mark it in the
    table.

    column: the token at every site, each with token, ids, final_id, rank, probability and kl;
    `held` the place of the chosen one; labels of their words by id.
    """
    at = column[held].token
    header = {
        "role": "way",
        "token": token,
        "site": held,
        "at": at,
        "where": axes.tokens[at],
        "nTokens": len(axes.tokens),
        "sites": list(axes.sites),
        "spoken": list(axes.spoken),
        "answer": labels[column[held].final_id],
        "way": [
            {
                "word": labels[int(one.ids[0])],
                "same": int(one.ids[0]) == one.final_id,
                "p": one.probability,
                "rank": one.rank,
                "kl": one.kl,
            }
            for one in column
        ],
    }
    return codec.encode(header, {})


def sum_up(groups: Sequence[tuple[str, float]], total: float, token: str) -> bytes:
    """What the browser needs to add up a logit: groups (name, value) in the order of the network,
    and the sum of all."""
    header = {
        "role": "sum",
        "token": token,
        "groups": [{"name": name, "value": value} for name, value in groups],
        "total": total,
    }
    return codec.encode(header, {})


_grid = st.components.v2.component(
    "headlight.lens", html='<div class="lens"></div>', js=loader("logit_lens")
)
_way = st.components.v2.component(
    "headlight.lens_way", html='<div class="lens way"></div>', js=loader("logit_lens")
)
_sum = st.components.v2.component(
    "headlight.lens_sum", html='<div class="lens sums"></div>', js=loader("logit_lens")
)


def show_grid(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw the table. A chosen cell stands in `st.session_state[key]["cell"]` as "site.token", both
    from 0, when `on_choice` is called."""
    _grid(data=data, key=key, on_cell_change=on_choice)


def show_way(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw a token's way. Another site is chosen as in the table."""
    _way(data=data, key=key, on_cell_change=on_choice)


def show_sum(data: bytes, key: str) -> None:
    """Draw the sum."""
    _sum(data=data, key=key)
