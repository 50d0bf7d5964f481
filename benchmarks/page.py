"""The app that browser.py measures: `streamlit run benchmarks/page.py`. The same server, middleware
and components as the app."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from explorer.server.routes import MIDDLEWARE, ROUTES

app = st.App(Path(__file__).with_name("matrices.py"), routes=ROUTES, middleware=MIDDLEWARE)
