"""Many sentences: what does a head do in all of them?"""

from __future__ import annotations

import streamlit as st

from explorer.analysis import many
from explorer.memory import address, models, shelf
from explorer.memory.passes import record
from explorer.views.sentences import reading, results


def page() -> None:
    """The sentences are read one by one, in the background; what has been read is shown as it
    comes."""
    st.subheader(
        "What does a head do in many sentences?",
        anchor=False,
        help="A head that looks at one word in one sentence may do so by chance. Over many, its "
        "habits have a mean and a spread. The sentences below are read, not the one above.",
    )
    model = st.session_state.model
    with st.spinner("Loading the model …"):
        of = record(model, "").attention[0].name
    texts = reading.field()
    if not texts:
        st.info("There are no sentences yet. Type or paste some, one a line, or load a file.")
        return address.write()
    read = reading.asked(model, texts, of)
    reading.progress(read, len(texts))
    made = read.latest or ()
    found = [each for each in made if isinstance(each, many.Sentence)]
    results.unread(made)
    if found:
        card = models.facts(model)
        about = (
            f"Where attention goes, mean of {len(found)} sentences",
            f"Headlight · model {model} ({card['n_parameters']:,} parameters), {of}-attention",
            f"First sentence: {found[0].text}",
        )
        name = shelf.name_of(record(model, ""), "many", len(found), texts)
        results.results(model.replace("/", "-").replace(":", "-"), found, about, name)
    address.write()


page()
