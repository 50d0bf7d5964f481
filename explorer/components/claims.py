"""A list of claims with their verdicts, grouped; one of them open with its numbers, its test and
its reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

TONES = ("holds", "fails", "open", "waiting")


@dataclass(frozen=True)
class ClaimRow:
    """One claim: its name, how its verdict looks (one of TONES), the verdict's mark and word, the
    statement, the number and what it is; and what opens under it: the reason, the test, its
    formula, the bound and the same figure by chance (two short lines below the number), where it
    holds in full, what kind of claim it is, parts as (name, value), a word on the note, its terms
    as (name, what it means), and (file, label, address) of a page to see it on.

    Raises ValueError for a tone that does not exist.
    """

    id: str
    tone: str
    mark: str
    verdict: str
    statement: str
    shown: str
    noun: str
    why: str
    how: str
    formula: str
    rule: str
    chance: str
    holds: str
    kind: str
    parts: Sequence[tuple[str, str]]
    remark: str
    terms: Sequence[tuple[str, str]]
    page: tuple[str, str, str]

    def __post_init__(self) -> None:
        if self.tone not in TONES:
            raise ValueError(f"no tone is called {self.tone!r}; there are {', '.join(TONES)}")


def payload(
    groups: Sequence[tuple[str, str, Sequence[ClaimRow]]],
    *,
    counts: Sequence[tuple[str, str, Sequence[tuple[int, str, str]]]],
    says: str,
    open: str,
    told: int,
    token: str,
) -> bytes:
    """Encode the list of claims for the browser.

    groups: (name, line under it, rows). counts: (name, what it means, each (number, words, tone))
    above the list, a line each. says: a line under the counts, spoken when it changes. open: the
    claim to open, by the address, the `told`-th time that it says something of its own; what the
    reader opens after that is the list's own affair. token: the name of this picture."""
    header = {
        "token": token,
        "open": open,
        "told": told,
        "says": says,
        "counts": [
            {
                "name": name,
                "means": means,
                "each": [{"n": n, "words": words, "tone": tone} for n, words, tone in each],
            }
            for name, means, each in counts
        ],
        "groups": [
            {"name": name, "under": under, "rows": [vars(row) for row in rows]}
            for name, under, rows in groups
        ],
    }
    return codec.encode(header, {})


_mount = st.components.v2.component(
    "headlight.claims",
    html='<div class="claims"></div>',
    js=loader("claims"),
)


def show(data: bytes, key: str, on_open: Callable[[], None], on_go: Callable[[], None]) -> None:
    """Draw the list. The claim just opened ("" where one was closed) stands in
    `st.session_state[key]["claim"]` when `on_open` is called, the file of a page to go to in
    `st.session_state[key]["go"]` when `on_go` is called."""
    _mount(data=data, key=key, on_claim_change=on_open, on_go_change=on_go)
