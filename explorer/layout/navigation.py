"""The pages of the app: what the tab of each says, Streamlit's objects for them, and the mark.
Files are looked for once and not in every run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from explorer.state.event_log import FIRST_PAGE

EXPLORER = Path(__file__).resolve().parent.parent
PAGES = EXPLORER.parent / "pages"

# Each page's file and what its tab says: short, so that all tabs are seen on a screen of 1280
# pixels.
TABS = {
    "attention": "Attention",
    "tour": "Tour",
    "anatomy": "Anatomy",
    "positions": "Positions",
    "residual": "Residual",
    "embeddings": "Embeddings",
    "summaries": "Summaries",
    "lookup": "Lookup",
    "predictions": "Predict",
    "translation": "Translate",
    "switches": "Switches",
    "compare": "Compare",
    "training": "Training",
    "claims": "Claims\u2003",  # beside a logo Streamlit cuts the row of tabs 16 px short
}
# Pages without a tab: a button of the frame leads there.
PAGES_WITHOUT_TAB = {"classroom": "Class", "sentences": "Many sentences"}


@cache
def mark() -> str:
    """The app's mark as an address that holds it whole, as Streamlit itself would make it."""
    svg = (EXPLORER / "static" / "headlight.svg").read_bytes()
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def pages() -> dict[str, Any]:
    """Every page by its name, for one run: Streamlit marks them while they run."""
    return {name: copy(page) for name, page in _all_pages().items()}


@cache
def _all_pages() -> Mapping[str, Any]:
    return {
        name: st.Page(
            PAGES / f"{name}.py",
            title=title,
            url_path=name,
            default=name == FIRST_PAGE,
            visibility="hidden" if name in PAGES_WITHOUT_TAB else "visible",
        )
        for name, title in (TABS | PAGES_WITHOUT_TAB).items()
    }
