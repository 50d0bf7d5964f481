"""A panel on the page, drawn in the browser from what `Panel.encode` gives."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.components.bundle import loader

_mount = st.components.v2.component(
    "headlight.panel", html='<div class="panel"></div>', js=loader("panel")
)


def show(data: bytes, key: str, on_select: Callable[[], None]) -> None:
    """Draw what `Panel.encode` gave. When the callback runs, `st.session_state[key]["select"]` maps
    the names of choices to the values that were pressed."""
    _mount(data=data, key=key, on_select_change=on_select)
