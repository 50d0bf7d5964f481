"""Predictions: what would the model say, here, at each layer, and next?"""

from __future__ import annotations

import streamlit as st

from explorer.analysis import logit_lens, predictions
from explorer.layout import current_recording
from explorer.state import event_log, models, url_state
from explorer.state.cache import Run
from explorer.text.markdown_escape import literal
from explorer.text.predictions import mask_is_text
from explorer.views.predictions import generation, logit_attribution, masked_lm, neurons
from explorer.views.predictions.logit_lens import inside, show
from explorer.views.predictions.page_state import way_to
from models.edits import HideToken, to_line
from models.recording import Recording


def page() -> None:
    """The text is recorded by a model that says words, and the rest is drawn from its names."""
    current_recording.show_fallback()
    with st.spinner("Loading the model …"):
        target = current_recording.typed_target(st.session_state.model)
        source = current_recording.current_run(target=target)
    current_recording.show_target(target)
    url_state.one_of("lens", tuple(logit_lens.MEASURES))
    st.session_state.playing = False
    explore(source)


@event_log.fragment
def explore(source: Run) -> None:
    """The page below the sentence bar, section by section. It takes names and not the recording,
    which Streamlit would keep for as long as the visit lasts."""
    recording = source.recording()
    model, text, kind = source.model, source.text, recording.model.kind
    if (typed := predictions.first_mask(text)) and not models.capabilities(model).mask:
        st.info(mask_is_text(models.title(model), typed, writes=kind == "decoder"))
    edits: tuple[HideToken, ...] = ()
    place = None
    if kind == "encoder" and HideToken in models.capabilities(model).edits:
        edits, place = masked_lm.show(model, text)
    elif kind == "encoder":
        st.info(
            f"{literal(models.title(model))} has no [MASK] to hide a word with, so nothing can be "
            "filled in. What happens inside it stands below."
        )
    elif kind == "decoder":
        place = url_state.whole_number("token", len(recording.streams[0].tokens))
        generation.show(model, text)
    else:
        writes_elsewhere(recording)
    st.session_state["hidden shown"] = to_line(edits)  # for the files of the page
    on = inside(Run(model, text, edits, source.target), place)
    show(on)
    taken = logit_attribution.show(on)
    if taken is not None:
        neurons.show(on, taken, logit_attribution.words_of(on, taken))
    url_state.write()


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
