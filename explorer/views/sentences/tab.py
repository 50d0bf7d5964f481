"""Tab of the attention of heads over many sentences."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import corpus
from explorer.layout import controls
from explorer.state import cache, models, url_state
from explorer.state.cache import record
from explorer.views.sentences import corpus_input, results


def many_sentences() -> None:
    """The tab Many sentences. They are read one by one, in the background; what has been read is
    shown as it comes."""
    st.subheader(
        "Head patterns over many sentences",
        anchor=False,
        help="A pattern in one sentence may be due to chance. Over many sentences it has a mean "
        "and a standard deviation. This page reads the sentences below, not the one above.",
    )
    model = st.session_state.model
    with st.spinner("Loading the model …"):
        nothing = record(model, "")
    attention = controls.pick_attention(nothing)
    texts = corpus_input.field()
    st.session_state["sentences read"] = texts, attention.name
    if not texts:
        st.info("There are no sentences yet. Type or paste some, one per line, or load a file.")
        return url_state.write()
    read = corpus_input.asked(model, texts)
    corpus_input.progress(read, len(texts))
    made = [each if isinstance(each, str) else each[attention.name] for each in read.latest or ()]
    found = [each for each in made if isinstance(each, corpus.Sentence)]
    results.unread(made)
    if found:
        card, written = models.facts(model), attention.query != nothing.streams[0].name
        about = (
            f"Where attention goes, mean of {len(found)} sentences",
            f"Headlight · model {model} ({card['n_parameters']:,} parameters), "
            f"{attention.name}-attention{', target the model’s own' * written}",
            f"First sentence: {found[0].text}",
        )
        several = attention.name.split() if len(nothing.attention) > 1 else ()
        said = model.replace("/", "-").replace(":", "-")
        file = "-".join(("headlight", said, *several, "many"))
        name = cache.picture_name(nothing, "many", attention.name, len(found), texts)
        results.results(found, about, file, name)
    url_state.write()
