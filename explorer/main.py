"""The Streamlit script: the list of pages and the frame around every page. It runs anew on every action, so it imports little."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "pages"

st.set_page_config(
    page_title="Headlight", page_icon=str(ROOT / "explorer/static/headlight.svg"), layout="wide"
)
st.logo(str(ROOT / "explorer/static/wordmark.svg"), size="large")

page = st.navigation(
    {
        "See": [
            st.Page(PAGES / "attention.py", title="Attention", url_path="attention", default=True),
            st.Page(PAGES / "anatomy.py", title="Anatomy", url_path="anatomy"),
            st.Page(PAGES / "positions.py", title="Positions", url_path="positions"),
            st.Page(PAGES / "residual.py", title="Residual stream", url_path="residual"),
            st.Page(PAGES / "embeddings.py", title="Embeddings", url_path="embeddings"),
            st.Page(PAGES / "summaries.py", title="Summaries", url_path="summaries"),
            st.Page(PAGES / "lookup.py", title="Lookup", url_path="lookup"),
        ],
        "Predict": [
            st.Page(PAGES / "predictions.py", title="Predictions", url_path="predictions"),
            st.Page(PAGES / "translation.py", title="Translation", url_path="translation"),
        ],
        "Experiment": [
            st.Page(PAGES / "switches.py", title="Switches", url_path="switches"),
            st.Page(PAGES / "compare.py", title="Compare", url_path="compare"),
        ],
        "Learn": [
            st.Page(PAGES / "claims.py", title="Claims", url_path="claims"),
        ],
    },
    position="top",
)

from explorer.frame import bar  # noqa: E402  after the first elements are on their way
from explorer.memory import address, told  # noqa: E402

with told.run():
    address.begin(page.url_path)
    bar.show()
    page.run()
