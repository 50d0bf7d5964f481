"""The presenter: P fills the screen with the current picture, its headline and its caption. It
lives in the browser alone."""

from __future__ import annotations

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

_mount = st.components.v2.component(
    "headlight.presenter", html='<div class="presenter"></div>', js=loader("presenter")
)


def show() -> None:
    """Listen for its keys."""
    _mount(data=codec.encode({}, {}), key="presenter")
