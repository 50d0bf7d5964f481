"""The sentence field: one line that grows. Enter draws, Shift + Enter breaks the line, and where
the model is quick it draws while one types."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

_mount = st.components.v2.component(
    "headlight.sentence",
    html='<div class="sentence"></div>',
    js=loader("sentence"),
)


def show(
    text: str, model: str, key: str, longest: int, live: bool, on_text: Callable[[], None]
) -> None:
    """The field with the text that is drawn. What the reader wants drawn stands in
    `st.session_state[key]["text"]` when `on_text` is called; at most `longest` characters are
    taken.

    live: draw while the reader types, a moment after the last key.
    """
    # Half of a surrogate pair is no text and would break the header.
    clean = text.encode("utf-8", "replace").decode("utf-8")
    header = {"text": clean, "model": model, "longest": longest, "live": live}
    _mount(data=codec.encode(header, {}), key=key, on_text_change=on_text)
