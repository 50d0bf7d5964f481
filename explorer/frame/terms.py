"""The words of the field, explained where they stand: on hover, or in one press on a phone."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from explorer.sentences import glossary


def caption(text: str, *more: str, width: Literal["stretch", "content"] = "stretch") -> None:
    """A caption whose own terms, and `more`, are explained beside it."""
    st.caption(text, help=glossary.explained(text, *more), width=width)


def markdown(text: str, *more: str) -> None:
    """Markdown whose own terms, and `more`, are explained beside it."""
    st.markdown(text, help=glossary.explained(text, *more))
