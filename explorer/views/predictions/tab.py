"""Predictions of a model: for one place, while it writes, at each layer, and out of which parts."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import predictions
from explorer.analysis.logit_lens import read_stream
from explorer.layout import current_recording
from explorer.panels.logit_lens import MEASURES
from explorer.state import event_log, models, url_state
from explorer.state.cache import Run
from explorer.text.markdown_escape import literal
from explorer.text.templates import sentences
from explorer.views.predictions import generation, logit_attribution, logit_lens, masked_lm
from explorer.views.predictions.page_state import fills, show_prediction, way_to
from models.edits import HideToken
from models.recording import Recording


def recorded() -> Run:
    """The text, recorded by a model that predicts words."""
    current_recording.show_fallback()
    with st.spinner("Loading the model …"):
        target = current_recording.typed_target(st.session_state.model)
        source = current_recording.current_run(target=target)
    current_recording.show_target(target)
    url_state.one_of("lens", MEASURES)
    return source


def can_hide(recording: Recording) -> bool:
    """True for a model that fills in masked words and has a mask."""
    return fills(recording) and HideToken in models.capabilities(recording.model.name).edits


def word() -> None:
    """The tab Next or masked word."""
    show_word(recorded())


@event_log.fragment
def show_word(source: Run) -> None:
    """The prediction for one place. It takes names and not the recording, which Streamlit would
    keep for as long as the visit lasts."""
    recording = source.recording()
    model, text = source.model, source.text
    if (typed := predictions.first_mask(text)) and not models.capabilities(model).mask:
        name = "typed_mask_next" if recording.model.kind == "decoder" else "typed_mask"
        slots = {"model": literal(models.title(model)), "mask": literal(typed)}
        st.info(sentences("predictions", "word")(name, **slots))
    if can_hide(recording):
        masked_lm.show(source)
    elif fills(recording):
        st.info(
            f"{literal(models.title(model))} has no [MASK] to mask a word with, so it predicts no "
            "masked words. Logit lens and Attribution show what happens inside it."
        )
    else:
        n = len(recording.streams[-1].tokens)
        token = url_state.whole_number("token", n)
        show_prediction(source, n - 1 if token is None else token)
    url_state.write()


def generate() -> None:
    """The tab Generate."""
    source = recorded()
    recording = source.recording()
    if recording.model.kind == "decoder":
        generation.show(source.model, source.text)
    else:
        st.title("Generated text", anchor=False)
        if fills(recording):
            st.info(
                f"{models.markdown_name(source.model)} fills in masked words and writes no text. "
                "Choose a model that predicts the next word, such as **decoder** or **smollm2**."
            )
        else:
            writes_elsewhere(recording)
    url_state.write()


def writes_elsewhere(recording: Recording) -> None:
    """For a model whose words are shown being written on another tab: where."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("This model writes its translation, token by token.", width="content")
        way_to("translate", "Open Translate", recording)


def selected(source: Run) -> tuple[Run, int | None]:
    """The run with the words hidden that Next or masked word hides, and the token whose prediction
    is opened, None for the first one that is predicted."""
    recording, place = source.recording(), None
    edits: tuple[HideToken, ...] = ()
    if can_hide(recording):
        hidden, place = masked_lm.gaps(recording)
        edits = tuple(map(HideToken, hidden))
    chosen = url_state.whole_number("token", len(read_stream(recording).tokens))
    run = Run(source.model, source.text, edits, source.target)
    return run, place if chosen is None else chosen


def lens() -> None:
    """The tab Logit lens."""
    show_lens(recorded())


@event_log.fragment
def show_lens(source: Run) -> None:
    """The predictions at each layer; it takes names, as `show_word` does."""
    logit_lens.show(*selected(source))
    url_state.write()


def attribution() -> None:
    """The tab Attribution."""
    show_attribution(recorded())


@event_log.fragment
def show_attribution(source: Run) -> None:
    """The parts of one logit, and the neurons of one layer; it takes names, as `show_word` does."""
    logit_attribution.show(*selected(source))
    url_state.write()
