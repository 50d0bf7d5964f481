"""A button that reads a file of the reader's own, in the browser, and sends its text. Nothing is
uploaded as a file."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

_mount = st.components.v2.component(
    "headlight.load", html='<div class="load"></div>', js=loader("file_upload")
)


def show(label: str, most: int, key: str, on_file: Callable[[], None]) -> None:
    """The button. When `on_file` is called, `st.session_state[key]["file"]` holds the file's name,
    its text, the first `most` characters of it, and whether it was cut there."""
    data = codec.encode({"token": label, "label": label, "most": most}, {})
    _mount(data=data, key=key, on_file_change=on_file)
