"""Form that starts or joins a class. The browser and the class's own addresses do all of it."""

from __future__ import annotations

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

_mount = st.components.v2.component(
    "headlight.classroom", html='<div class="classroom"></div>', js=loader("classroom")
)


def show() -> None:
    """Draw it."""
    _mount(data=codec.encode({}, {}), key="lesson started or joined")
