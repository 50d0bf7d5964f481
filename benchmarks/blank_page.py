"""The page that `class.py` measures beside the app: Streamlit alone, one line of text."""

from __future__ import annotations

import streamlit as st

st.caption(st.query_params.get("text", ""))
