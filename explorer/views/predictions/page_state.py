"""Parts that the tabs of Predict share: a link to a tab, and the prediction at a token."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from explorer.layout import navigation, output
from explorer.panels import predictions as predictions_panels
from explorer.state import url_state
from explorer.state.cache import Run
from models.edits import HideToken
from models.recording import Recording

NOTHING = "none"  # masked, as the address says it: no word. Where it says nothing, one is


def fills(recording: Recording) -> bool:
    """True for a model that fills gaps, False for one that writes."""
    return recording.model.kind == "encoder"


def way_to(page: str, label: str, recording: Recording, **choices: object) -> None:
    """A link to the tab of a page with these choices. A text too long for an address goes along in
    the session, and so do they."""
    words = {name: str(value) for name, value in choices.items()}
    if url_state.fits_address(recording.text):
        query = {"model": recording.model.name, "text": recording.text, **words}
        if st.session_state.target:
            query["target"] = st.session_state.target
        navigation.link(page, label, query)
    elif st.button(label, key=f"way to {page}", type="tertiary", on_click=_take, args=(words,)):
        navigation.go(page, words)


def _take(choices: dict[str, str]) -> None:
    for name, value in choices.items():
        st.session_state[name] = value


def show_prediction(run: Run, token: int, on_select: Callable[[], None] | None = None) -> None:
    """The prediction at a token, and the way to how its logit is made."""
    recording = run.recording()
    word = url_state.whole_number("word", recording.model.n_vocab)
    make = partial(predictions_panels.word, run, token, word)
    if output.show_panel(make, "prediction", on_select or forget_word) is None:
        return
    chosen: dict[str, object] = {"token": token, "word": st.session_state.word}
    if fills(recording):
        masked = [edit.token for edit in run.edits if isinstance(edit, HideToken)]
        chosen["hidden"] = ".".join(map(str, masked)) or NOTHING
    way_to("attribution", "Contributions to this logit", recording, **chosen)


def forget_word() -> None:
    """Another token has other words."""
    if "token" in (st.session_state.prediction.get("select") or {}):
        st.session_state.word = ""


def keep_hidden(hidden: tuple[int, ...]) -> None:
    """Keep masked tokens masked: to select a word is not to mask it."""
    if not st.session_state.hidden and hidden:
        st.session_state.hidden = ".".join(map(str, hidden))
