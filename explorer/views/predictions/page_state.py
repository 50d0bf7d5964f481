"""Parts that the tabs of Predict share: labels, links, a prediction, the whole vocabulary as a
table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import streamlit as st

from explorer.analysis import predictions
from explorer.analysis.caption import caption
from explorer.analysis.csv import Columns
from explorer.layout import export_menu, navigation, output
from explorer.layout.output import with_table
from explorer.panels import predictions as predictions_panels
from explorer.state import models, url_state
from explorer.state.cache import Run
from models.edits import HideToken
from models.recording import Recording

NOTHING = "none"  # masked, as the address says it: no word. Where it says nothing, one is


def labels_of(recording: Recording, words: Iterable) -> list[str]:
    """Labels of the words that have these ids."""
    return models.labels(recording.model.name, [word.id for word in words])


def fills(recording: Recording) -> bool:
    """True for a model that fills gaps, False for one that writes."""
    return recording.model.kind == "encoder"


def whole_vocabulary(
    recording: Recording, of: predictions.Distribution, about: Sequence[str], file: str, scores: str
) -> None:
    """The whole distribution as a table, made when it is opened, and as a file. scores: what gives
    them in lines of Python."""
    name, n = recording.model.name, recording.model.n_vocab
    export_menu.offer_more_code(
        ("predictions", "Sampling"),
        f"says = predictions.distribution({scores}, {of.sampling})",
        f"words = predictions.columns(says, model.labels(range({n})))",
    )
    with_table(
        partial(_columns, name, n, of),
        caption(recording, *about),
        f"headlight-{name}-{file}",
        f"All {n:,} tokens as a table",
        form="%.6f",
    )


def _columns(model: str, n: int, of: predictions.Distribution) -> Columns:
    return predictions.columns(of, models.labels(model, range(n)))


def way_to(page: str, label: str, recording: Recording, **choices: object) -> None:
    """A link to the tab of a page with these choices. A text too long for an address goes along in
    the session, and so do they."""
    words = {name: str(value) for name, value in choices.items()}
    if url_state.fits_address(recording.text):
        asked = {"model": recording.model.name, "text": recording.text, **words}
        if st.session_state.target:
            asked["target"] = st.session_state.target
        navigation.link(page, label, asked)
    elif st.button(label, key=f"way to {page}", type="tertiary", on_click=_take, args=(words,)):
        navigation.go(page, words)


def _take(choices: dict[str, str]) -> None:
    for name, value in choices.items():
        st.session_state[name] = value


def show_prediction(run: Run, token: int) -> None:
    """The prediction at a token, and the way to how its logit is made."""
    recording = run.recording()
    word = url_state.whole_number("word", recording.model.n_vocab)
    if output.show_panel(partial(predictions_panels.word, run, token, word), "prediction") is None:
        return
    chosen: dict[str, object] = {"token": token, "word": st.session_state.word}
    if fills(recording):
        masked = [edit.token for edit in run.edits if isinstance(edit, HideToken)]
        chosen["hidden"] = ".".join(map(str, masked)) or NOTHING
    way_to("attribution", "Contributions to this logit", recording, **chosen)


def nothing() -> None:
    """For a picture that is only looked at."""


def keep_hidden(hidden: tuple[int, ...]) -> None:
    """Keep masked tokens masked: to select a word is not to mask it."""
    if not st.session_state.hidden and hidden:
        st.session_state.hidden = ".".join(map(str, hidden))
