"""A Plotly figure on a page, with what every one of them has."""

from __future__ import annotations

from typing import Any

import streamlit as st


def show(figure: Any, key: str, alt: str, file: str = "") -> None:
    """Draw a figure. `alt` says what it shows to those who do not see it; its picture is saved as
    headlight-`file`.svg, by its key where no file is named."""
    name = f"headlight-{file or key}"
    config = {"displaylogo": False, "toImageButtonOptions": {"format": "svg", "filename": name}}
    st.plotly_chart(figure, key=key, config=config, alt=alt)
