"""An encoder: what would fill a gap."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import predictions as numbers
from explorer.analysis.numbers import chance
from explorer.components import bars, strip
from explorer.frame import opening
from explorer.memory import address, models, passes, shelf
from explorer.sentences import predictions as sentences
from explorer.views.predictions.screen import labels_of, nothing, whole_vocabulary
from models.edits import HideToken
from models.recording import Recording, Stream

NOTHING = "none"  # hidden, said in the address: no word. Where the address says nothing, one is


def show(model: str, text: str) -> tuple[tuple[HideToken, ...], int | None]:
    """What would stand at a place, hidden or not. Returns the edits that hide words, and the place
    looked at."""
    hidden, place = gaps(passes.record(model, text))
    typed = typed_masks(passes.record(model, text))
    edits = tuple(HideToken(at) for at in hidden)
    if place is None:
        return edits, place
    with st.spinner("Reading the text without the hidden words …"):
        recording = passes.record(model, text, edits)
        plain = passes.record(model, text).streams[0]
        of = numbers.distribution(passes.logits(recording, plain.name, place))
    st.subheader(
        "What would stand here?",
        anchor=False,
        help="A hidden word is replaced by [MASK]. The model then gives every word of its "
        "vocabulary a probability for this place, from the words on both sides.",
    )
    left, right = st.columns([1, 1.1], gap="large")
    with left:
        sentence(recording, plain, hidden, place)
        label, best = plain.tokens[place], numbers.top(of, most=1)
        others = int((~plain.special).sum()) - len(typed)
        stood = sentences.typed(label, len(typed), others)
        if place not in typed:
            (own,) = numbers.top(of, [int(plain.ids[place])], most=0)
            stood = sentences.stood(own, label, place in hidden, len(of.order))
        st.markdown(f"{stood}  \n{sentences.how_sure(of, True)}")
        st.markdown(sentences.formula(of, labels_of(recording, best)[0], best[0].id, True))
    with right:
        fillers(recording, of, None if place in typed else int(plain.ids[place]), place)
        how = "hidden" if place in hidden else "typed" if place in typed else "seen"
        about = f"What fits token {place}, “{label}”, {how}"
        scores = f"library.logits(model, recording, {plain.name!r}, {place})"
        whole_vocabulary(recording, of, (about,), f"token-{place}", scores)
    return edits, place


def typed_masks(recording: Recording) -> tuple[int, ...]:
    """The places where the reader typed a mask token of the model on screen."""
    return numbers.typed_masks(recording.streams[0], models.offers(recording.model.name).mask)


def gaps(recording: Recording) -> tuple[tuple[int, ...], int | None]:
    """The words that are hidden, in order, typed mask tokens left out, and the place that is looked
    at; None in a text without tokens of its own. Where none is chosen, the first typed mask, else
    the word that the first page opens on."""
    stream, state = recording.streams[0], st.session_state
    n, first, typed = len(stream.tokens), numbers.word_to_hide(stream), typed_masks(recording)
    if first is None:
        return (), None
    if typed:
        return _beside_typed(stream, typed)
    told = opening.word(recording, recording.attention[0])
    if told is not None and not stream.special[told] and not numbers.is_piece(stream.tokens, told):
        first = told
    chosen = address.whole("token", n)
    place = chosen if chosen is not None and not stream.special[chosen] else None
    if state.hidden == NOTHING:
        return (), first if place is None else place
    asked = tuple(sorted({at for at in address.numbers("hidden", n) if not stream.special[at]}))
    hidden = asked or ((first if place is None else place),)
    return hidden, hidden[0] if place is None else place


def _beside_typed(stream: Stream, typed: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The same of a text with typed masks: a word is hidden, or looked at, where the reader chose
    that on this page."""
    n, state = len(stream.tokens), st.session_state
    places = address.numbers("hidden", n) if state.hidden != NOTHING else ()
    hidden = {at for at in places if not stream.special[at]} - {*typed}
    chosen = address.whole("token", n)
    looked_at = (
        chosen in typed or state.hidden and chosen is not None and not stream.special[chosen]
    )
    return tuple(sorted(hidden)), chosen if looked_at and chosen is not None else typed[0]


def sentence(recording: Recording, stream: Stream, hidden: tuple[int, ...], place: int) -> None:
    """The sentence, each word of it to be hidden and shown."""
    typed = numbers.typed_masks(stream, models.offers(recording.model.name).mask)
    tokens = [
        _typed(stream, at, at == place)
        if at in typed
        else _token(stream, at, at in hidden, at == place)
        for at in range(len(stream.tokens))
    ]
    word = f"“{stream.tokens[place]}” (token {place})"
    seen = "which the model sees" if place not in hidden else "hidden from the model"
    model, text = recording.model.name, recording.text
    strip.show(
        strip.payload(
            tokens,
            about="The sentence. Arrow keys move, Enter hides a word, and shows it again.",
            says=f"Selected: {word}{'' if place in typed else f', {seen}'}.",
            hint="Click a word to hide it, and again to show it. With several hidden, the first "
            "click on one looks at it.",
            chosen=place,
            token=shelf.name_of(recording, "sentence", place),
        ),
        "sentence",
        on_choice=lambda: take_token(model, text),
        on_tick=nothing,
    )
    if len(hidden) > 1:
        st.button(f"Show all {len(hidden)} hidden words", key="show all", on_click=show_all)
    if place in hidden and numbers.is_piece(stream.tokens, place):
        st.caption(sentences.PIECE)


def _token(stream: Stream, at: int, gone: bool, looked_at: bool) -> strip.Token:
    label = stream.tokens[at]
    if stream.special[at]:
        return strip.Token(label, tone="special")
    how = f"{'hidden' if gone else 'seen'}{', looked at' if looked_at else ''}"
    spoken = f"{label}, token {at}, {how}"
    if gone:
        return strip.Token("[MASK]", label, "hidden", f"[MASK] {spoken}", open=True)
    return strip.Token(label, "", "", spoken, open=True)


def _typed(stream: Stream, at: int, looked_at: bool) -> strip.Token:
    spoken = f"{stream.tokens[at]}, token {at}, typed as a mask{', looked at' if looked_at else ''}"
    return strip.Token(stream.tokens[at], "", "hidden", spoken, open=True)


def fillers(recording: Recording, of: numbers.Distribution, here: int | None, place: int) -> None:
    """The likeliest words as bars, the word of the text (id `here`, None for a typed mask) among
    them, and all others as one bar."""
    words = numbers.top(of, () if here is None else [here])
    others = numbers.rest(of, words)
    rows = [
        bars.Bar(
            label,
            word.own,
            (f"{word.rank + 1:,}", chance(word.own)),
            str(word.id),
            mark="in the text" if word.id == here else "",
            gap=word.rank >= numbers.MOST_ROWS,
        )
        for word, label in zip(words, labels_of(recording, words))
    ]
    if others.n:
        label = f"all {others.n:,} other words"
        rows.append(bars.Bar(label, others.own, ("", chance(others.own)), tone="rest"))
    chosen = str(st.session_state.word)
    bars.show(
        bars.payload(
            rows,
            ("rank", "probability"),
            about=f"What fits token {place}, the likeliest first.",
            chosen=chosen,
            action="shows further down what raised or lowered the word",
            full=words[0].own,
            token=shelf.name_of(recording, "fillers", place, chosen),
        ),
        "fillers",
        on_choice=take_word,
    )
    st.caption(
        f"All {len(of.order):,} words together: {others.all_own:.4f}. The likeliest word sets the "
        "scale; a bar with a break is longer than drawn. Choose a bar to see, further down, what "
        "raised or lowered its word."
    )


def take_token(model: str, text: str) -> None:
    """A click on a word: one that is hidden and looked at is shown again; any other is looked at,
    and hidden if it was not."""
    state = st.session_state
    recording = passes.record(model, text)
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
    """A click on a bar: its word is what the section on the heads takes apart; a second click lets
    it go."""
    chosen = st.session_state.fillers["row"]
    st.session_state.word = "" if chosen == st.session_state.word else chosen
