"""The class that this window takes part in: its line at the foot of every page."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st

from explorer.components import follow
from explorer.memory import address
from explorer.memory.models import DEFAULT_MODEL
from explorer.memory.settings import well_formed
from models.examples import DEFAULT_TEXT


def show(pages: Mapping[str, str]) -> None:
    """The line, which the browser alone fills: the server hears of a class over its own addresses.
    `pages`: titles by page, the first one's address being "/"."""
    names = {
        "/" if at == 0 else f"/{name}": title.strip()
        for at, (name, title) in enumerate(pages.items())
    }
    defaults = {"text": DEFAULT_TEXT, "model": DEFAULT_MODEL}
    subject = {name: well_formed(st.session_state[name]) for name in defaults}
    fits = address.fits_address(st.session_state.text)
    page = st.session_state.page
    at = f"/{page}?{urlencode(address.shown())}"
    texts = {f"/{name}": text for name, text in address.FIRST_TEXTS.items()}
    follow.show(defaults, texts, subject if fits else None, at, names)
