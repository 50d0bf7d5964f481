"""Predictions: what would the model say, here, at each layer, and next?"""

from __future__ import annotations

import streamlit as st

from explorer.analysis import lens as reading
from explorer.analysis import predictions as numbers
from explorer.frame import onscreen
from explorer.memory import address, models, told
from explorer.memory.passes import Shown
from explorer.sentences import predictions as sentences
from explorer.sentences.escape import literal
from explorer.views.predictions import filling, lens, neurons, parts, writing
from explorer.views.predictions.screen import way_to
from models.edits import HideToken
from models.recording import Recording
from models.written_edits import to_line


def page() -> None:
    """The text is recorded by a model that says words, and the rest is drawn from its names."""
    onscreen.tell_instead()
    with st.spinner("Loading the model …"):
        target = onscreen.typed_target(st.session_state.model)
        source = onscreen.shown(target=target)
    onscreen.tell_target(target)
    address.one_of("lens", tuple(reading.MEASURES))
    st.session_state.playing = False
    explore(source)


@told.fragment
def explore(source: Shown) -> None:
    """The page below the sentence bar, section by section. It takes names and not the recording,
    which Streamlit would keep for as long as the visit lasts."""
    recording = source.recording()
    model, text, kind = source.model, source.text, recording.model.kind
    if (typed := numbers.spelled_mask(text)) and not models.offers(model).mask:
        st.info(sentences.mask_is_text(models.title(model), typed, writes=kind == "decoder"))
    edits: tuple[HideToken, ...] = ()
    place = None
    if kind == "encoder" and HideToken in models.offers(model).edits:
        edits, place = filling.show(model, text)
    elif kind == "encoder":
        st.info(
            f"{literal(models.title(model))} has no [MASK] to hide a word with, so nothing can be "
            "filled in. What happens inside it stands below."
        )
    elif kind == "decoder":
        place = address.whole("token", len(recording.streams[0].tokens))
        writing.show(model, text)
    else:
        writes_elsewhere(recording)
    st.session_state["hidden shown"] = to_line(edits)  # for the files of the page
    on = lens.inside(Shown(model, text, edits, source.target), place)
    lens.show(on)
    taken = parts.show(on)
    if taken is not None:
        neurons.show(on, taken, parts.words_of(on, taken))
    address.write()


def writes_elsewhere(recording: Recording) -> None:
    """For a model whose words are shown being written on another page: where, and what is left for
    this one."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            "This model writes its translation, word by word, on another page. Here is what "
            "happens inside its decoder on the way to each word.",
            width="content",
        )
        way_to("translation", "Open the Translation page", recording)


page()
