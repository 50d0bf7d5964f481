"""A list of words, or of anything else with a name, with bars and numbers; bars below zero go to
the left of a zero line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

TONES = ("", "cut", "rest")


@dataclass(frozen=True)
class Bar:
    """One row.

    value: the length of the filled bar, negative to the left of the zero line; behind: the length
    of a pale bar behind it, on the same scale.
    numbers: what stands at the right, a text for each column. key: what choosing the row sends, ""
    for a row that is not to be chosen.
    tone: "cut" for what is out (hatched, struck through), "rest" for many things taken together.
    mark: a short word beside the name.
    gap: True where rows were left out above it. Raises ValueError for a tone that does not exist.
    """

    label: str
    value: float
    numbers: tuple[str, ...]
    key: str = ""
    behind: float | None = None
    tone: str = ""
    mark: str = ""
    gap: bool = False

    def __post_init__(self) -> None:
        if self.tone not in TONES:
            raise ValueError(f"no tone is called {self.tone!r}; there are {', '.join(TONES)}")


def payload(
    rows: Sequence[Bar],
    columns: Sequence[str],
    *,
    about: str,
    token: str,
    chosen: str = "",
    full: float | None = None,
    action: str = "",
    signed: bool = False,
) -> bytes:
    """Encode the list for the browser.

    columns: heads of the numbers. about: what the list is, for those who hear it. token: the name
    of this picture, for whoever waits for it.
    chosen: the key of the row that is chosen, "" for none. full: the value of a bar as long as its
    track, the largest of all where None; longer bars are drawn torn.
    action: what choosing a row does, in a few words ("writes it"). signed: the zero line stands
    where the values need it.
    """
    lengths = [length for row in rows for length in (row.value, row.behind or 0.0)]
    low, high = (
        (min(0.0, *lengths), max(0.0, *lengths))
        if signed and lengths
        else (0.0, max(lengths, default=0.0) if full is None else full)
    )
    header = {
        "token": token,
        "about": about,
        "columns": list(columns),
        "action": action,
        "chosen": chosen,
        "low": float(low),
        "high": float(high),
        "rows": [_plain(row) for row in rows],
    }
    return codec.encode(header, {})


def _plain(row: Bar) -> dict:
    return {
        "label": row.label,
        "value": float(row.value),
        "behind": None if row.behind is None else float(row.behind),
        "numbers": list(row.numbers),
        "key": row.key,
        "tone": row.tone,
        "mark": row.mark,
        "gap": row.gap,
    }


_mount = st.components.v2.component(
    "headlight.bars",
    html='<div class="bars"></div>',
    js=loader("bars"),
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw the list. A chosen row's key stands in `st.session_state[key]["row"]` when `on_choice`
    is called."""
    _mount(data=data, key=key, on_row_change=on_choice)
