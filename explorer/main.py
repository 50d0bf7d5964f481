"""The Streamlit script: the list of pages and the frame around every page. It runs anew on every
action, so it imports little."""

from __future__ import annotations

import streamlit as st

from explorer.layout import navigation

pages = navigation.pages()
page = st.navigation(list(pages.values()), position="top")
title = f"{page.title.strip()} · Headlight"
st.set_page_config(page_title=title, page_icon=navigation.mark(), layout="wide")
st.logo(navigation.mark(), size="large")

# after the first elements
from explorer.layout import export_menu, header  # noqa: E402
from explorer.state import event_log, url_state  # noqa: E402

with event_log.timed_run():
    url_state.begin(page.url_path)
    export_menu.begin()
    if asked := st.session_state.pop("wanted_page", None):
        # What a widget holds goes with its page: the model is taken along by hand.
        st.session_state.model = st.session_state.model
        st.switch_page(pages[asked])
    name = page.url_path or event_log.FIRST_PAGE
    if name == "tour":
        st.session_state.toured = True  # the first page offers it no more
    menu = header.header()
    # The strip's room is kept: what follows does not jump.
    strip = st.container(height=48, border=False, gap=None, key="map-room")
    with strip:
        header.class_bar(navigation.TABS | navigation.PAGES_WITHOUT_TAB)  # it takes no room
    page.run()
    with strip:
        header.layer_map(name)
    header.listen_for_presenter()
    export_menu.fill(menu, name)
