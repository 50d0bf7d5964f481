"""A button that reads a file of the reader's own, in the browser, and sends its text. Nothing is
uploaded as a file."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.components import wire
from explorer.components.bundle import loader

_mount = st.components.v2.component(
    "headlight.load", html='<div class="load"></div>', js=loader("load")
)


def show(label: str, most: int, key: str, on_text: Callable[[], None]) -> None:
    """The button. A file's first `most` characters stand in `st.session_state[key]["text"]` when
    `on_text` is called."""
    data = wire.encode({"token": label, "label": label, "most": most}, {})
    _mount(data=data, key=key, on_text_change=on_text)
