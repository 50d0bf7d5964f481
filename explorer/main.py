"""The Streamlit script: the list of pages and the frame around every page. It runs anew on every
action, so it imports little."""

from __future__ import annotations

import streamlit as st

from explorer.frame import tabs

pages = tabs.pages()
page = st.navigation(list(pages.values()), position="top")
title = f"{page.title.strip()} · Headlight"
st.set_page_config(page_title=title, page_icon=tabs.mark(), layout="wide")
st.logo(tabs.mark(), size="large")

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
    name = page.url_path or told.FIRST_PAGE
    if name == "tour":
        st.session_state.toured = True  # the first page offers it no more
    menu = bar.show()
    # The strip's room is kept: what follows does not jump.
    strip = st.container(height=48, border=False, gap=None, key="map-room")
    with strip:
        lesson.show(tabs.TABS | tabs.ASIDE)  # it takes no room
    page.run()
    with strip:
        way.show(name)
    presenting.listen()
    export.fill(menu, name)
