"""Translation: how does a decoder look back at the source?"""

from __future__ import annotations

import streamlit as st

from explorer.analysis.translation import views
from explorer.frame import onscreen
from explorer.memory import address, models, told
from explorer.sentences.escape import literal
from explorer.views.translation import search, steps, tables
from explorer.views.translation.screen import screen

USUAL = "translator"  # for a model that runs in its own code


def page() -> None:
    """The page: a model that translates, and the search for what it says."""
    with st.spinner("Loading the model …"):
        model = onscreen.model_for("encoder-decoder")
        if not models.offers(model).weights:
            st.info(
                f"{literal(models.title(model))}: Headlight cannot write with it word by word, so "
                f"**{USUAL}** is shown. Its cross-attention is on the Attention page."
            )
            model = USUAL
    search.seek(model, st.session_state.text)
    explore(model, st.session_state.text)


@told.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    st.subheader(
        "How does a decoder look back at the source?",
        anchor=False,
        help=(
            "The decoder writes the output one token at a time. For each token its "
            "cross-attention weighs the source tokens: that is what is drawn."
        ),
    )
    card = models.handle(model).card
    address.one_of("cross", views(card.n_layer, card.n_head))
    on = screen(model, text, search.controls(model, text))
    if on.forced is None:
        steps.hypotheses(on)
    steps.totals(on)
    steps.alignment(on)
    tables.files(on)
    room = st.container()
    if on.forced is None and len(on.search.steps[-1]) > 1:
        left, room = st.columns(2, gap="large")
        with left:
            steps.tree(on)
    with room:
        tables.note(on)
    tables.tables(on)
    address.write()


page()
