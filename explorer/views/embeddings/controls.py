"""What the reader chooses: one text or two, the anchors, and how the paths are drawn."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import embeddings, residual
from explorer.analysis.words import words as words_in
from explorer.layout import current_recording
from explorer.layout.controls import pick
from explorer.state import cache, models, url_state
from explorer.text import example_contexts
from explorer.views.embeddings.page_state import (
    LENGTHS,
    PLANES,
    SPACES,
    SPECIALS,
    SUMS,
    EmbeddingRequest,
)
from models.example_texts import EXAMPLES
from models.recording import Recording

CONTEXTS = {"Two": "Two contexts", "One": "One text"}
EXAMPLE = ("Apple and juice", "Apple devices")


def asked(model: str, text: str) -> EmbeddingRequest:
    """What is to be drawn, with the controls that choose it."""
    first = cache.record(model, text)
    # The first stream stands as "" in the address.
    names = ("", *(each.name for each in first.streams[1:]))
    stream = url_state.one_of("stream", names) or first.streams[0].name
    reads = stream == first.streams[0].name
    own = _own_second(first, text, reads)
    # On a phone behind the picture.
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="after-texts"):
        pick("Texts", CONTEXTS, "contexts", bare=True, on_change=_forget_mate)
        second = _second(own)
        words = _anchors(reads)
        st.button(
            "“apple” in two contexts",
            icon=":material/lightbulb:",
            on_click=_take_example,
            type="tertiary",
            help="The lecture notes’ own example: an apple with juice, and apple devices.",
        )
        with st.popover("", icon=":material/tune:", help="How the paths are drawn"):
            _drawing(first)
    if second is not None:
        _tell(model, second)
    state = st.session_state
    how = state.plane, state.length, state.sums, state.specials
    st.session_state["second shown"] = second or ""  # for the files of the page
    return EmbeddingRequest(model, text, second, stream, _groups(words, reads), *how)


def _own_second(first: Recording, text: str, reads: bool) -> str:
    """A sentence that has the followed word in another context, for readers who have typed none; ""
    where there is none."""
    stream = first.streams[0]
    token = url_state.whole_number("token", len(stream.tokens))
    start, end = stream.spans[token] if token is not None else (0, 0)
    word = text[max(0, start) : max(0, end)].strip()
    if not reads or (token is not None and not word):
        return ""
    read = words_in(stream, first.text)
    whole = [label for label, size in zip(read.labels, read.sizes) if size == 1]
    other = example_contexts.other_sentence(first.text, word, EXAMPLES.values(), whole)
    if not other:
        return ""
    there = cache.record(first.model.name, other).streams[0]
    if token is None:
        token = embeddings.default_token(stream, there, embeddings.shown_tokens(stream, False))
    return other if embeddings.matching_token(stream, token, there) is not None else ""


def _second(own: str) -> str | None:
    """The second text: what is typed, else the page's `own`; None for one text alone."""
    state = st.session_state
    if state.contexts == "One":
        return None
    st.text_input(
        "The same word in another context",
        key="second",
        persist_state="session",
        on_change=_forget_mate,
        placeholder=own or "Type a sentence that shares a word with the first",
    )
    return state.second if state.second.strip() else own or None


def _anchors(reads: bool) -> bool:
    """The field with the anchor words, where they are used: for a second text that is typed, and
    for the plane through them."""
    state = st.session_state
    typed = state.contexts == "Two" and state.second.strip()
    if not (typed or state.plane == "Words"):
        return False
    st.text_input(
        "Anchor words, two groups: a, b / c, d",
        key="anchors",
        persist_state="session",
        disabled=not reads,
        help="The same model reads each word in "
        f"“{embeddings.frame_word('…')}”. Its vector is the mean over its tokens, a group’s the "
        f"mean over its words. At most {embeddings.MOST_WORDS} words per group.",
    )
    return True


def _groups(wanted: bool, reads: bool) -> tuple[tuple[str, ...], ...]:
    """The groups of anchor words, none where they are not used."""
    words = embeddings.groups(st.session_state.anchors)
    if not wanted:
        return ()
    if not reads:
        st.info(
            "Anchor words are in the source language, so they can only be compared in the "
            "encoder’s stream."
        )
        return ()
    if len(words) < 2:
        st.info(
            "Type two groups of anchor words with / between them, for example: fruit, tree, juice "
            "/ mac, os, app"
        )
        return ()
    return words


def _tell(model: str, second: str) -> None:
    """Say where a second text did not fit the model, or fits no link."""
    there = cache.record(model, second)
    if there.dropped:
        size = there.model.n_positions
        st.warning(
            f"The second text has {there.dropped + size:,} tokens; "
            f"{models.markdown_name(model)} reads "
            f"{size}. The last {there.dropped:,} are not shown. The field keeps them."
        )
    if not url_state.fits_address(second):
        st.info(
            "The second text is too long for a link. It stays in this tab. Reloading the page "
            "removes it."
        )


def _drawing(first: Recording) -> None:
    """How the paths are drawn."""
    if len(first.streams) > 1:
        titles = {"": f"{first.streams[0].name.capitalize()}: reads"}
        titles |= {one.name: f"{one.name.capitalize()}: writes" for one in first.streams[1:]}
        pick(
            "Stream",
            titles,
            "stream",
            "The vectors of the encoder, which reads the text, or of the decoder, which generates "
            "the translation.",
            on_change=_forget_place,
        )
    pick("View", SPACES, "space", "An animated plane, or three dimensions to rotate.")
    pick(
        "Plane",
        PLANES,
        "plane",
        "The directions of largest variance, or a first axis from the first group of anchor words "
        "to the second.",
    )
    pick(
        "Vectors",
        LENGTHS,
        "length",
        "Unchanged, or each divided by its norm, so only directions count.",
    )
    if residual.norm_place(first.streams[0]) == "post":
        pick(
            "Sites",
            SUMS,
            "sums",
            "Each state after its norm, or the sums before the norms as well.",
            on_change=_forget_stage,
        )
    pick(
        "Tokens",
        SPECIALS,
        "specials",
        "Special tokens are often far away and then determine the main directions.",
    )


def _take_example() -> None:
    state = st.session_state
    if state.text != EXAMPLES[EXAMPLE[0]]:
        current_recording.take_text(EXAMPLES[EXAMPLE[0]])
    state.second, state.contexts = EXAMPLES[EXAMPLE[1]], "Two"
    state.plane, state.frame = "Words", "Close"
    state.token = ""
    _forget_mate()


def _forget_mate() -> None:
    st.session_state.mate = ""


def _forget_stage() -> None:
    st.session_state.stage = ""


def _forget_place() -> None:
    st.session_state.token = ""
    _forget_mate()
    _forget_stage()
