"""An encoder: what would fill a gap."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from explorer.analysis import predictions
from explorer.analysis.formatting import probability
from explorer.components import bars, token_strip
from explorer.layout import controls
from explorer.state import cache, models, url_state
from explorer.text import predictions as predictions_text
from explorer.views.predictions.page_state import labels_of, nothing, whole_vocabulary
from models.edits import HideToken
from models.recording import Recording, Stream
from models.results import WholeWord

NOTHING = "none"  # hidden, said in the address: no word. Where the address says nothing, one is


def show(model: str, text: str) -> tuple[tuple[HideToken, ...], int | None]:
    """What would stand at a place, hidden or not. Returns the edits that hide words, and the place
    looked at."""
    hidden, place = gaps(cache.record(model, text))
    typed = typed_masks(cache.record(model, text))
    edits = tuple(HideToken(at) for at in hidden)
    if place is None:
        return edits, place
    with st.spinner("Reading the text without the hidden words …"):
        recording = cache.record(model, text, edits)
        plain = cache.record(model, text).streams[0]
        of = predictions.distribution(cache.logits(recording, plain.name, place))
    st.subheader(
        "What would stand here?",
        anchor=False,
        help="A hidden word is replaced by [MASK]. The model then gives every word of its "
        "vocabulary a probability for this place, from the words on both sides.",
    )
    left, right = st.columns([1, 1.1], gap="large")
    with left:
        sentence(recording, plain, hidden, place)
        label, best = plain.tokens[place], predictions.top_words(of, most=1)
        others = int((~plain.special).sum()) - len(typed)
        stood = predictions_text.typed(label, len(typed), others)
        if place not in typed:
            (own,) = predictions.top_words(of, [int(plain.ids[place])], most=0)
            stood = predictions_text.stood(own, label, place in hidden, len(of.order))
        st.markdown(f"{stood}  \n{predictions_text.how_sure(of, True)}")
        st.markdown(predictions_text.formula(of, labels_of(recording, best)[0], best[0].id, True))
    with right:
        fillers(recording, of, None if place in typed else int(plain.ids[place]), place)
        how = "hidden" if place in hidden else "typed" if place in typed else "seen"
        about = f"What fits token {place}, “{label}”, {how}"
        scores = f"model.logits(recording, {plain.name!r}, {place})"
        whole_vocabulary(recording, of, (about,), f"token-{place}", scores)
    return edits, place


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
    seen = "which the model sees" if place not in hidden else "hidden from the model"
    model, text = recording.model.name, recording.text
    token_strip.show(
        token_strip.payload(
            tokens,
            about="The sentence. Arrow keys move, Enter hides a word, and shows it again.",
            says=f"Selected: {word}{'' if place in typed else f', {seen}'}.",
            hint="Click a word to mask it, and again to show it. With several masked, the first "
            "click on one selects it.",
            chosen=place,
            token=cache.picture_name(recording, "sentence", place),
        ),
        "sentence",
        on_choice=lambda: take_token(model, text),
        on_tick=nothing,
    )
    if len(hidden) > 1:
        st.button(f"Show all {len(hidden)} hidden words", key="show all", on_click=show_all)
    if place in hidden and predictions.is_piece(stream.tokens, place):
        st.caption(predictions_text.PIECE)


def _token(stream: Stream, at: int, gone: bool, looked_at: bool) -> token_strip.Token:
    label = stream.tokens[at]
    if stream.special[at]:
        return token_strip.Token(label, tone="special")
    how = f"{'hidden' if gone else 'seen'}{', selected' if looked_at else ''}"
    spoken = f"{label}, token {at}, {how}"
    if gone:
        return token_strip.Token("[MASK]", label, "hidden", f"[MASK] {spoken}", open=True)
    return token_strip.Token(label, "", "", spoken, open=True)


def _typed(stream: Stream, at: int, looked_at: bool) -> token_strip.Token:
    spoken = f"{stream.tokens[at]}, token {at}, typed as a mask{', selected' if looked_at else ''}"
    return token_strip.Token(stream.tokens[at], "", "hidden", spoken, open=True)


def fillers(
    recording: Recording,
    of: predictions.Distribution,
    here: int | None,
    place: int,
    whole: Mapping[int, WholeWord] = MappingProxyType({}),
) -> None:
    """The likeliest words as bars, the word of the text (id `here`, None for a typed mask) among
    them, and all others as one bar. whole: the words of several pieces that tokens begin, by the
    token."""
    words = predictions.top_words(of, () if here is None else [here])
    others = predictions.remaining_words(of, words)
    rows = [
        bars.Bar(
            whole[word.id].word if word.id in whole else label,
            word.own,
            (f"{word.rank + 1:,}", probability(word.own)),
            str(word.id),
            mark="in the text"
            if word.id == here
            else f"first piece “{label}”" * (word.id in whole),
            gap=word.rank >= predictions.MOST_ROWS,
        )
        for word, label in zip(words, labels_of(recording, words))
    ]
    if others.n:
        label = f"all {others.n:,} other words"
        rows.append(bars.Bar(label, others.own, ("", probability(others.own)), tone="rest"))
    chosen = str(st.session_state.word)
    bars.show(
        bars.payload(
            rows,
            ("rank", "probability"),
            about=f"What fits token {place}, the likeliest first.",
            chosen=chosen,
            action="chooses the word that Attribution takes apart",
            full=words[0].own,
            token=cache.picture_name(recording, "fillers", place, chosen),
        ),
        "fillers",
        on_choice=take_word,
    )
    if whole:
        st.caption("  \n".join(map(predictions_text.whole_word, whole.values())))
    st.caption(
        f"All {len(of.order):,} words together: {others.all_own:.4f}. The likeliest word sets the "
        "scale; a bar with a break is longer than drawn. Choose a bar, and Attribution shows what "
        "raised or lowered its word."
    )


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


def take_word() -> None:
    """A click on a bar: its word is what Attribution takes apart; a second click lets
    it go."""
    chosen = st.session_state.fillers["row"]
    st.session_state.word = "" if chosen == st.session_state.word else chosen
