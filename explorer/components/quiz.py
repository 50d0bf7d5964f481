"""Questions with answers to choose from: for oneself, each with what is right and where it is seen;
and for a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader


@dataclass(frozen=True)
class Item:
    """A question: its text, its answers and what was measured of each ("" where the answer says
    it), which is right, what is said then, and the address that shows it."""

    text: str
    choices: tuple[str, ...]
    measured: tuple[str, ...]
    right: int
    says: str
    to: str


_mount = st.components.v2.component(
    "headlight.questions", html='<div class="questions"></div>', js=loader("quiz")
)


def show(items: Sequence[Item], token: str) -> None:
    """Draw them. `token`: the name of this set; another set begins with no answers."""
    header = {"token": token, "items": [asdict(each) for each in items]}
    _mount(data=codec.encode(header, {}), key="questions of a text")
