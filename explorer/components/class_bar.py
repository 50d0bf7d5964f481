"""Part of a window that takes part in a class: a line at its foot, and the question that is
asked."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

_mount = st.components.v2.component(
    "headlight.follow", html='<div class="follow" hidden></div>', js=loader("class_bar")
)


def show(
    defaults: Mapping[str, str],
    texts: Mapping[str, str],
    subject: Mapping[str, str] | None,
    at: str,
    pages: Mapping[str, str],
) -> None:
    """Draw it. defaults: what an address means that does not say it; texts: what tabs open on by
    their addresses, where it is another text; subject: text and model on screen, None for a text
    that no address can carry; at: the address that this run of the page is of; pages: what places
    are called, by their addresses."""
    header = {
        "defaults": dict(defaults),
        "texts": dict(texts),
        "subject": None if subject is None else dict(subject),
        "at": at,
        "pages": dict(pages),
    }
    _mount(data=codec.encode(header, {}), key="follow")
