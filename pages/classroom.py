"""Class: a class that follows its teacher, and questions on the sentence, for oneself or for the
class."""

from __future__ import annotations

import streamlit as st

from explorer.app import mounts
from explorer.app.layout import current_recording, navigation
from explorer.app.state import url_state
from explorer.app.state.visit import visit
from explorer.app.views.quiz import quiz_tab


def page() -> None:
    """The page: the class, then the questions."""
    st.title("Live class", anchor=False)
    if st.session_state.quiz != "Heads":  # which is about the head that is selected
        navigation.explain_selection()
    mounts.class_form()
    run = current_recording.current_run(target=current_recording.typed_target(visit.model))
    quiz_tab(run, **url_state.values(quiz_tab, run))
    url_state.write()


page()
