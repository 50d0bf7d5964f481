"""The Streamlit script: the places and the frame around every one. It runs anew on every action,
so it imports little."""

from __future__ import annotations

import streamlit as st

from explorer.app.layout import navigation

pages = navigation.pages()
page = st.navigation(list(pages.values()), position="top")
title = f"{page.title} · Headlight"
st.set_page_config(page_title=title, page_icon=navigation.mark(), layout="wide")
st.logo(navigation.mark(), size="large")

# after the first elements
from explorer.app.layout import export_menu, header, lesson_bar, share_menu  # noqa: E402
from explorer.app.state import event_log, host, opened_recordings, sessions, url_state  # noqa: E402
from explorer.app.state.scheduling import script_queue  # noqa: E402
from explorer.app.state.visit import visit  # noqa: E402
from explorer.app.views import tabs  # noqa: E402
from explorer.text import places  # noqa: E402

assert tabs.VIEWS  # with them the choices of all tabs are declared

here = page.url_path or places.FIRST
named = places.tab_in(here, st.query_params.get("tab", ""))
if (there := places.place_of(named)) != here:  # it may have stood here when the link was shared
    st.switch_page(pages[there], query_params=st.query_params.to_dict())
with sessions.uninterrupted():
    opened_recordings.open_first()
    url_state.begin(here)
    export_menu.begin()
    if tab := visit.wanted_page:
        visit.wanted_page = ""
        # What a widget holds goes with its page: the model is taken along by hand.
        visit.model = visit.model
        st.switch_page(pages[places.place_of(tab)], query_params=url_state.lead_to(tab))
if first := lesson_bar.opening():
    tab, choices = first
    choices = choices if tab == places.first_tab(places.place_of(tab)) else {"tab": tab, **choices}
    st.switch_page(pages[places.place_of(tab)], query_params=choices)
# What is made ahead of this run comes first: two threads for one text take longer, and so does the
# browser that draws the page's other parts meanwhile.
script_queue.wait_for((visit.model, visit.text))
ahead = host.recorded_ahead(visit.model, visit.text)
with ahead, event_log.timed_run():
    if st.session_state.lesson:
        visit.toured = True  # the first page offers it no more
    share, export = header.header()
    header.class_bar()  # it takes no room
    header.listen_for_presenter()  # before the page, so that a slow one leaves its slide on screen
    lesson_bar.show(is_sharing=bool(share.open))
    navigation.show_places(pages)
    page.run()
    share_menu.fill(share)
    export_menu.fill(export, visit.page)
