"""The pictures of a page as files, all in one place: whatever of its views can be taken along as
PNG and SVG, and the page as print."""

from __future__ import annotations

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

_mount = st.components.v2.component(
    "headlight.pictures", html='<div class="pictures"></div>', js=loader("image_export")
)


def show(key: str) -> None:
    """List the pictures that are on the page now."""
    _mount(data=codec.encode({"token": "pictures"}, {}), key=key)
