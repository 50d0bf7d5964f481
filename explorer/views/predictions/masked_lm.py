"""An encoder: the sentence, its masked words, and the prediction for one of them."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import predictions
from explorer.components import token_strip
from explorer.layout import controls
from explorer.state import cache, models, url_state
from explorer.state.cache import Run
from explorer.views.predictions.page_state import NOTHING, nothing, show_prediction
from models.edits import HideToken
from models.recording import Recording, Stream


def show(source: Run) -> None:
    """The sentence, and the prediction for one of its tokens, masked or not."""
    plain = source.recording()
    hidden, place = gaps(plain)
    if place is None:
        return
    run = Run(source.model, source.text, tuple(HideToken(at) for at in hidden), source.target)
    with st.spinner("Reading the text without the masked words …"):
        recording = run.recording()
    sentence(recording, plain.streams[0], hidden, place)
    show_prediction(run, place)


def typed_masks(recording: Recording) -> tuple[int, ...]:
    """The places where the reader typed a mask token of the model on screen."""
    return predictions.typed_masks(
        recording.streams[0], models.capabilities(recording.model.name).mask
    )


def gaps(recording: Recording) -> tuple[tuple[int, ...], int | None]:
    """The words that are hidden, in order, typed mask tokens left out, and the place that is looked
    at; None in a text without tokens of its own. Where none is chosen, the first typed mask, else
    the word that the first page opens on."""
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
    told = controls.opening_word(recording, recording.attention[0])
    if (
        told is not None
        and not stream.special[told]
        and not predictions.is_piece(stream.tokens, told)
    ):
        first = told
    chosen = url_state.whole_number("token", n)
    place = chosen if chosen is not None and not stream.special[chosen] else None
    if state.hidden == NOTHING:
        return (), first if place is None else place
    asked = tuple(
        sorted({at for at in url_state.whole_numbers("hidden", n) if not stream.special[at]})
    )
    hidden = asked or ((first if place is None else place),)
    return hidden, hidden[0] if place is None else place


def _beside_typed(stream: Stream, typed: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The same of a text with typed masks: a word is hidden, or looked at, where the reader chose
    that on this page."""
    n, state = len(stream.tokens), st.session_state
    places = url_state.whole_numbers("hidden", n) if state.hidden != NOTHING else ()
    hidden = {at for at in places if not stream.special[at]} - {*typed}
    chosen = url_state.whole_number("token", n)
    looked_at = (
        chosen in typed or state.hidden and chosen is not None and not stream.special[chosen]
    )
    return tuple(sorted(hidden)), chosen if looked_at and chosen is not None else typed[0]


def sentence(recording: Recording, stream: Stream, hidden: tuple[int, ...], place: int) -> None:
    """The sentence, each word of it to be hidden and shown."""
    typed = predictions.typed_masks(stream, models.capabilities(recording.model.name).mask)
    tokens = [
        _typed(stream, at, at == place)
        if at in typed
        else _token(stream, at, at in hidden, at == place)
        for at in range(len(stream.tokens))
    ]
    word = f"“{stream.tokens[place]}” (token {place})"
    seen = "seen by the model" if place not in hidden else "masked"
    model, text = recording.model.name, recording.text
    token_strip.show(
        token_strip.payload(
            tokens,
            about="The sentence. Arrow keys move, Enter masks a word, and unmasks it.",
            says=f"Selected: {word}{'' if place in typed else f', {seen}'}.",
            hint="Press a word to mask it, and again to unmask it. With several masked, the first "
            "press on one selects it.",
            chosen=place,
            token=cache.picture_name(recording, "sentence", place),
        ),
        "sentence",
        on_choice=lambda: take_token(model, text),
        on_tick=nothing,
    )
    if len(hidden) > 1:
        st.button(f"Unmask all {len(hidden)} words", key="show all", on_click=show_all)


def _token(stream: Stream, at: int, gone: bool, looked_at: bool) -> token_strip.Token:
    label = stream.tokens[at]
    if stream.special[at]:
        return token_strip.Token(label, tone="special")
    how = f"{'masked' if gone else 'seen'}{', selected' if looked_at else ''}"
    spoken = f"{label}, token {at}, {how}"
    if gone:
        return token_strip.Token("[MASK]", label, "hidden", f"[MASK] {spoken}", open=True)
    return token_strip.Token(label, "", "", spoken, open=True)


def _typed(stream: Stream, at: int, looked_at: bool) -> token_strip.Token:
    spoken = f"{stream.tokens[at]}, token {at}, typed as a mask{', selected' if looked_at else ''}"
    return token_strip.Token(stream.tokens[at], "", "hidden", spoken, open=True)


def take_token(model: str, text: str) -> None:
    """A click on a word: one that is hidden and looked at is shown again; any other is looked at,
    and hidden if it was not."""
    state = st.session_state
    recording = cache.record(model, text)
    hidden, place = gaps(recording)
    at = int(state.sentence["at"])
    if at in typed_masks(recording):
        now = set(hidden)
    elif at == place and at in hidden:
        now = set(hidden) - {at}
    else:  # the word hidden to begin with was not the reader's choice
        now = {at} if not state.hidden else {*hidden, at}
    state.token, state.word = str(at), ""
    state.hidden = ".".join(map(str, sorted(now))) or NOTHING


def show_all() -> None:
    """Every word is shown again."""
    st.session_state.hidden = NOTHING
