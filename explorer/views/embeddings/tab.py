"""Word vectors: where does a word travel, layer by layer, and what does context change?"""

from __future__ import annotations

import streamlit as st

from explorer.layout import current_recording
from explorer.state import event_log, url_state
from explorer.text import embeddings
from explorer.views.embeddings import controls, pictures, tables
from explorer.views.embeddings.page_state import LENGTHS, PLANES, SPACES, SPECIALS, SUMS, screen

CHOICES = (
    ("contexts", controls.CONTEXTS),
    ("plane", PLANES),
    ("length", LENGTHS),
    ("sums", SUMS),
    ("specials", SPECIALS),
    ("space", SPACES),
)


@event_log.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would
    keep for every visitor."""
    if text != st.session_state.text:
        st.rerun()  # the example has put another text above, which only a whole run draws
    for name, options in CHOICES:
        url_state.one_of(name, tuple(options))
    top = st.container()
    on = screen(controls.asked(model, text))
    with top:
        headline, more = embeddings.told(on.scene, on.anchors, on.token, on.mate)
        st.title(headline, anchor=False, help=f"{embeddings.QUESTION} {embeddings.ABOUT}")
        st.markdown(more)
    if on.scene.fallback:
        st.info(
            "These two anchor groups have equal means, so they define no axis. The main "
            "directions are shown instead."
        )
    left, right = st.columns([1.42 if on.curves.lines else 1.15, 1], gap="large")
    with left:
        pictures.show(on)
    with right:
        pictures.beside(on)
        if not on.curves.lines:
            pictures.neighbours(on)
    if on.curves.lines:
        pictures.neighbours(on)
    tables.files(on)
    tables.note(on)
    tables.tables(on)
    url_state.write()


def paths_of_words() -> None:
    """The tab Embeddings: the text is recorded, and the rest is drawn from its names."""
    with st.spinner("Loading the model …"):
        shown = current_recording.current_run()
    explore(shown.model, st.session_state.text)
