"""The Streamlit script: the list of pages and the frame around every page. It runs anew on every
action, so it imports little."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "pages"

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
ASIDE = {"classroom": "Class", "sentences": "Many sentences"}
MARK = str(ROOT / "explorer/static/headlight.svg")

pages = {
    name: st.Page(
        PAGES / f"{name}.py",
        title=tab,
        url_path=name,
        default=name == "attention",
        visibility="hidden" if name in ASIDE else "visible",
    )
    for name, tab in (TABS | ASIDE).items()
}
page = st.navigation(list(pages.values()), position="top")
st.set_page_config(page_title=f"{page.title.strip()} · Headlight", page_icon=MARK, layout="wide")
st.logo(MARK, size="large")

# after the first elements
from explorer.frame import bar, export, lesson, presenting, way  # noqa: E402
from explorer.memory import address, told  # noqa: E402

with told.run():
    address.begin(page.url_path)
    export.begin()
    if asked := st.session_state.pop("wanted_page", None):
        # What a widget holds goes with its page: the model is taken along by hand.
        st.session_state.model = st.session_state.model
        st.switch_page(pages[asked])
    if page.url_path == "tour":
        st.session_state.toured = True  # the first page offers it no more
    menu = bar.show()
    # The strip's room is kept: what follows does not jump.
    strip = st.container(height=48, border=False, gap=None, key="map-room")
    with strip:
        lesson.show(TABS | ASIDE)  # it takes no room
    page.run()
    with strip:
        way.show(page.url_path or "attention")
    presenting.listen()
    export.fill(menu, page.url_path or "attention")
