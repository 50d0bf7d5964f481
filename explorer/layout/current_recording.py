"""What the reader has on screen, text, model and recording, and the words that every page says
about them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext

import streamlit as st

from explorer.analysis.caption import read_text as read_text
from explorer.state import url_state
from explorer.state.cache import Run, record
from explorer.state.models import facts, handle, title
from explorer.state.settings import well_formed
from explorer.state.url_state import fits_address, forget_token
from explorer.text.markdown_escape import literal
from models.recording import NotEncoded

SHORT = 400  # characters
# A token that is a part of a character ends so, see models/tokenizer.py.
PIECE = re.compile(r" \d+/\d+$")


def about(model: str) -> str:
    """A model's card in a few lines of Markdown."""
    card = facts(model)
    size = card["config"]
    return (
        f"**{literal(title(model))}**: {card['summary']} {size['n_layer']} layers of "
        f"{size['n_head']} heads, {card['n_parameters']:,} parameters. {card['headline']}\n\n"
        + "\n".join(f"- {line}" for line in card["limits"])
    )


def tell_instead() -> None:
    """Say which model the page shows in the place of the chosen one, and why."""
    says, others = url_state.said()
    if says:
        st.caption(says, help=others)


def shown(model: str | None = None, target: str | tuple[int, ...] | None = None) -> Run:
    """What is on screen, recorded, with a word for the reader where the text did not fit or is
    empty.

    A page keeps this and not the Recording: whatever stands in a page's own names, Streamlit keeps
    for every visitor for as long as the visit lasts."""
    try:
        made = record(model or st.session_state.model, st.session_state.text, target=target)
    except NotEncoded as error:
        st.warning(str(error))
        st.stop()
    st.session_state.n_tokens = len(made.streams[0].tokens)  # for the log
    # Always there, so that what follows keeps its place on the page, and with it its state.
    words = st.container()
    whole = len(st.session_state.text)
    if whole > len(made.text):
        words.warning(
            f"Only the first {len(made.text):,} of {whole:,} characters are read. The field keeps "
            "the whole text."
        )
    if made.dropped:
        n = made.model.n_positions
        words.warning(
            f"This text has {made.dropped + n:,} tokens with the special ones; the model "
            f"{literal(title(made.model.name))} reads {n}. The last {made.dropped:,} tokens of "
            f"{'what is read' if whole > len(made.text) else 'the text'} are not shown. The field "
            "keeps the whole text."
        )
    if made.target_dropped:
        n = made.model.n_positions
        words.warning(
            f"Your own words are {made.target_dropped + n - 1:,} tokens; "
            f"{literal(title(made.model.name))} reads {n} with [BOS]. "
            f"The last {made.target_dropped:,} are left out. The field keeps them."
        )
    if made.streams[0].special.all():
        words.info(
            "There is no text yet, so the model sees only its special tokens. Type or paste a "
            "sentence above."
        )
    elif not made.text.strip():
        words.info("There is only white space so far. Type or paste a sentence above.")
    if split := next((token for token in made.streams[0].tokens if PIECE.search(token)), None):
        words.caption(
            f"“{literal(split)}” and its like are bytes: a character that the vocabulary lacks is "
            "read byte by byte."
        )
    if not fits_address(made.text):
        words.info(
            f"This text is too long for a link ({len(made.text):,} characters). It stays in this "
            "tab; reloading the page or sharing its address does not bring it back, so keep a "
            "copy."
        )
    return Run(made.model.name, st.session_state.text, (), target)


def read() -> Run:
    """What a page is of: the text on screen, recorded, and what was typed for a decoder to read,
    which is told."""
    # A short text is there before a spinner would be.
    long = len(st.session_state.text) > SHORT
    with st.spinner("Reading the text …") if long else nullcontext():
        target = typed_target(st.session_state.model)
        source = shown(target=target)
    tell_target(target)
    return source


def typed_target(model: str) -> str | None:
    """What the decoder of this model is to read where the reader typed it on the Translation page;
    None for its own words and for other models."""
    typed = st.session_state.target
    return typed if typed.strip() and handle(model).card.kind == "encoder-decoder" else None


def tell_target(target: str | None) -> None:
    """Say that the decoder reads what the reader typed on another page, and offer to let it go."""
    if target is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(
            "Its decoder reads your own words, "
            f"“{literal(' '.join(target.split())[:80])}{'…' if len(target) > 80 else ''}”, typed "
            "on the Translation page, not its own translation."
        )
        st.button("Back to the model’s own", key="drop target", on_click=_drop_target)


def _drop_target() -> None:
    st.session_state.acted = True
    st.session_state.target = st.session_state.token = st.session_state.source = ""


def take_preset(texts: Mapping[str, str]) -> None:
    """The text just chosen of `texts`; pressing it once more changes nothing."""
    if st.session_state.preset is not None:
        st.session_state.text = texts[st.session_state.preset]
        st.session_state.target = ""
        forget_token()


def take_text(text: str) -> None:
    """Make this the text on screen, as if the reader had typed it. For a callback, which runs
    before the field is made."""
    st.session_state.text = well_formed(text)
    forget_token()
