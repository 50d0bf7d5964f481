"""A sentence as a row of tokens: to be chosen one by one, or growing while it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

TONES = ("", "special", "hidden", "said")


@dataclass(frozen=True)
class Token:
    """One token: its label, a small line under it, how it stands there, and whether it can be
    chosen.

    Raises ValueError for a tone that does not exist.
    """

    label: str
    under: str = ""
    tone: str = ""
    spoken: str = ""
    open: bool = False

    def __post_init__(self) -> None:
        if self.tone not in TONES:
            raise ValueError(f"no tone is called {self.tone!r}; there are {', '.join(TONES)}")


def payload(
    tokens: Sequence[Token],
    *,
    about: str,
    says: str,
    token: str,
    chosen: int = -1,
    hint: str = "",
    every: float = 0,
    at_end: bool = False,
) -> bytes:
    """Encode the row of tokens for the browser.

    about: what the row is, for those who hear it. says: a line under it, spoken when it changes.
    token: the name of this picture. chosen: the place of the token looked at, -1 for none. every:
    seconds after which the browser asks for the next token by itself, 0 for never.
    at_end: True to keep the end of a long text in sight.
    """
    header = {
        "token": token,
        "about": about,
        "says": says,
        "hint": hint,
        "chosen": chosen,
        "every": float(every),
        "atEnd": at_end,
        "tokens": [
            {
                "label": one.label,
                "under": one.under,
                "tone": one.tone,
                "spoken": one.spoken,
                "open": one.open,
            }
            for one in tokens
        ],
    }
    return codec.encode(header, {})


_mount = st.components.v2.component(
    "headlight.strip",
    html='<div class="strip"></div>',
    js=loader("token_strip"),
)


def show(data: bytes, key: str, on_choice: Callable[[], None], on_tick: Callable[[], None]) -> None:
    """Draw the tokens. A chosen token's place stands in `st.session_state[key]["at"]` when
    `on_choice` is called; where `every` was set, the number of tokens that the browser has stands
    in `st.session_state[key]["tick"]` when `on_tick` is called, again and again."""
    _mount(data=data, key=key, on_at_change=on_choice, on_tick_change=on_tick)
