"""What a window shows that takes part in a class: a line at its foot, and the question that is
asked."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from explorer.components import wire
from explorer.components.bundle import loader

_mount = st.components.v2.component(
    "headlight.follow", html='<div class="follow" hidden></div>', js=loader("follow")
)


def show(defaults: Mapping[str, str], fits: bool, pages: Mapping[str, str]) -> None:
    """Draw it. defaults: what an address means that does not say it; fits: whether the address can
    carry the text on screen; pages: what pages are called, by their addresses."""
    header = {"defaults": dict(defaults), "fits": fits, "pages": dict(pages)}
    _mount(data=wire.encode(header, {}), key="follow")
