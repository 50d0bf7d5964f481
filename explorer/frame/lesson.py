"""The class that this window takes part in: its line at the foot of every page."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from explorer.components import follow
from explorer.memory import address
from explorer.memory.models import DEFAULT_MODEL
from models.examples import DEFAULT_TEXT


def show(pages: Mapping[str, str]) -> None:
    """The line, which the browser alone fills: the server hears of a class over its own addresses.
    `pages`: titles by page, the first one's address being "/"."""
    names = {
        "/" if at == 0 else f"/{name}": title.strip()
        for at, (name, title) in enumerate(pages.items())
    }
    defaults = {"text": DEFAULT_TEXT, "model": DEFAULT_MODEL}
    follow.show(defaults, address.fits_address(st.session_state.text), names)
