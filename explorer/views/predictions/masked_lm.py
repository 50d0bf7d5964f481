"""An encoder: the sentence, its masked words, and the prediction for one of them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import predictions
from explorer.panels import attention as attention_panels
from explorer.state import models, url_state
from explorer.state.cache import Run
from explorer.views.predictions.page_state import NOTHING, show_prediction
from models.edits import HideToken
from models.recording import Recording, Stream


def show(source: Run) -> None:
    """The sentence, and the prediction for one of its tokens, masked or not."""
    plain = source.recording()
    hidden, place = gaps(plain)
    if place is None:
        st.info("The text has no word to mask.")
        return
    run = Run(source.model, source.text, tuple(HideToken(at) for at in hidden), source.target)
    with st.spinner("Reading the text without the masked words …"):
        run.recording()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            "Select a word of the sentence to mask it, and again to unmask it.", width="content"
        )
        if len(hidden) > 1:
            unmask = f"Unmask all {len(hidden)} words"
            st.button(unmask, key="show all", type="tertiary", on_click=show_all)
    show_prediction(run, place, partial(mask, hidden, place, typed_masks(plain)))


def typed_masks(recording: Recording) -> tuple[int, ...]:
    """The places where the reader typed a mask token of the model on screen."""
    return predictions.typed_masks(
        recording.streams[0], models.capabilities(recording.model.name).mask
    )


def gaps(recording: Recording) -> tuple[tuple[int, ...], int | None]:
    """The masked words, in order, without typed mask tokens, and the selected token; None in a text
    without tokens of its own. Where none is selected, the first typed mask, else the word that the
    first page opens on."""
    stream, state = recording.streams[0], st.session_state
    n, first, typed = (
        len(stream.tokens),
        predictions.default_masked_word(stream),
        typed_masks(recording),
    )
    if first is None:
        return (), None
    if typed:
        return _beside_typed(stream, typed)
    opening = attention_panels.opening_word(recording, recording.attention[0])
    if (
        opening is not None
        and not stream.special[opening]
        and not predictions.is_piece(stream.tokens, opening)
    ):
        first = opening
    chosen = url_state.whole_number("token", n)
    place = chosen if chosen is not None and not stream.special[chosen] else None
    if state.hidden == NOTHING:
        return (), first if place is None else place
    chosen_tokens = tuple(
        sorted({at for at in url_state.whole_numbers("hidden", n) if not stream.special[at]})
    )
    hidden = chosen_tokens or ((first if place is None else place),)
    return hidden, hidden[0] if place is None else place


def _beside_typed(stream: Stream, typed: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The same of a text with typed masks: another word is masked or selected where the reader
    chose it on this page."""
    n, state = len(stream.tokens), st.session_state
    places = url_state.whole_numbers("hidden", n) if state.hidden != NOTHING else ()
    hidden = {at for at in places if not stream.special[at]} - {*typed}
    chosen = url_state.whole_number("token", n)
    is_selected = (
        chosen in typed or state.hidden and chosen is not None and not stream.special[chosen]
    )
    return tuple(sorted(hidden)), chosen if is_selected and chosen is not None else typed[0]


def mask(hidden: tuple[int, ...], place: int, typed: tuple[int, ...]) -> None:
    """Mask the token that was pressed and select it; unmask it where it is both already. hidden and
    place: the masked tokens and the selected one before the press."""
    state = st.session_state
    pressed = (state.prediction.get("select") or {}).get("token")
    if pressed is None:
        return
    at = int(pressed)
    if at in typed:
        now = {*hidden}
    elif at == place and at in hidden:
        now = {*hidden} - {at}
    else:  # the word that is masked at first was not the reader's choice
        now = {at} if not state.hidden else {*hidden, at}
    state.word = ""
    state.hidden = ".".join(map(str, sorted(now))) or NOTHING


def show_all() -> None:
    """Unmask every word."""
    st.session_state.hidden = NOTHING
