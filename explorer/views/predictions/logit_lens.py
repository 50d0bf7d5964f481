"""The tab Logit lens, and the token whose prediction a tab opens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import streamlit as st

from explorer.analysis import logit_lens
from explorer.layout import output
from explorer.layout.controls import pick
from explorer.panels import logit_lens as logit_lens_panels
from explorer.state import cache, models, url_state
from explorer.state.cache import Run
from models.edits import HideToken
from models.recording import Recording, Stream
from models.results import Lens

COLOURS = {
    "Top word": "Probability of the word",
    "Answer": "Probability of the final answer",
    "Rank": "Rank of the final answer",
    "KL": "Divergence from the final distribution",
}


@dataclass(frozen=True, eq=False)
class LensSelection:
    """A recording, its lens, and the token looked at. It is made anew in every run and nowhere
    kept; `source` names the recording."""

    source: Run
    recording: Recording
    found: Lens
    token: int

    @property
    def model(self) -> str:
        """The model's name."""
        return self.recording.model.name

    @property
    def stream(self) -> Stream:
        """The stream that words are read from."""
        return logit_lens.read_stream(self.recording)


def inside(source: Run, place: int | None) -> LensSelection:
    """What is looked at: the token of the address, or `place` where it names none."""
    with st.spinner("Reading the words off every site …"):
        recording = source.recording()
        stream = logit_lens.read_stream(recording)
        found = cache.lens(recording, stream.name)
    token = url_state.whole_number("token", len(stream.tokens))
    if token is None:
        token = logit_lens.default_token(recording) if place is None else place
    return LensSelection(source, recording, found, token)


def show(on: LensSelection) -> None:
    """The lens and how one prediction develops."""
    state = st.session_state
    if state.site not in on.found.sites:
        state.site = ""
    with st.popover("View"):
        measure = pick("Colour by", COLOURS, "lens")
    hidden = tuple(edit.token for edit in on.source.edits if isinstance(edit, HideToken))
    make = partial(logit_lens_panels.lens, on.source, on.token, state.site, measure)
    output.show_panel(make, "logit lens", partial(keep_hidden, hidden))
    make = partial(logit_lens_panels.development, on.source, on.token, state.site)
    output.show_panel(make, "development")


def keep_hidden(hidden: tuple[int, ...]) -> None:
    """What is hidden stays hidden: to select a word is not to hide it."""
    if not st.session_state.hidden and hidden:
        st.session_state.hidden = ".".join(map(str, hidden))


def readout_of(model: str) -> tuple[str, bool]:
    """How a model says its words, and whether a bias is added to their scores."""
    return str(models.readout(model)), models.capabilities(model).readout_bias
