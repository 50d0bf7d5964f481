"""The empty page that others are measured beside: Streamlit alone, a field, and its text once
more."""

from __future__ import annotations

import streamlit as st

st.caption(st.text_input("Text", st.query_params.get("text", "")))
