"""The translation on screen: the search, the hypothesis or what was typed, and what was recorded of
it."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.analysis import translation
from explorer.analysis.caption import model_line, read_text
from explorer.components.figure_caption import Picture
from explorer.layout import current_recording
from explorer.state import cache, jobs, models, url_state
from explorer.state.cache import Run
from explorer.text.translation import ROW
from explorer.views.translation.search import chosen_place, searched
from models.recording import Recording


@dataclass(frozen=True, eq=False)
class TranslationState:
    """One translation. place: of the hypothesis on screen; forced: what the reader typed, None for
    the model's own; end: what its last row says, None where it was cut off. It is made anew in
    every run."""

    source: Run
    recording: Recording
    search: jobs.Search
    place: int
    forced: str | None
    end: translation.EndToken | None

    @property
    def said(self) -> translation.DecodedSteps:
        """How likely the model held each produced token."""
        return said_of(self.recording, self.end)

    @property
    def says(self) -> tuple[str, ...]:
        """The produced tokens."""
        return translation.produced_tokens(self.recording, self.end)[1]

    @property
    def name(self) -> str:
        """Which view of the cross-attention is shown."""
        return st.session_state.cross

    def picture(self) -> Picture:
        """How the picture of that view is called."""
        model, name = self.recording.model, self.name
        title = translation.view_title(
            name, *translation.cross_attention(self.recording).pattern.shape[:2]
        )
        layer, _, head = name.partition(".")
        at = f"L{layer}H{head}" if head else f"L{layer}-mean" if layer else "mean"
        ids, _ = translation.produced_tokens(self.recording, self.end)
        token = cache.picture_name(self.recording, ids.tobytes(), self.forced is not None)
        return Picture(
            title, caption(self, title), f"headlight-{model.name}-cross-{at}", f"{token} {name}"
        )


def caption(on: TranslationState, title: str) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""
    whose = "typed" if on.forced is not None else "generated"
    return (
        model_line(on.recording, f"cross-attention, {title.lower()}"),
        ROW,
        f"Source: {read_text(on.recording)}",
        f"Output, {whose}: {read_text(on.recording, target=True)}",
    )


def screen(model: str, text: str, forced: str | None) -> TranslationState:
    """The translation that the reader chose: of the search as far as it came, or what was typed."""
    search = searched(model, text)
    held = search.steps[-1]
    place = chosen_place(held)
    beam = held[place]
    target = forced if forced is not None else beam.ids[: len(beam.ids) - beam.done]
    source = current_recording.current_run(model, target=target)
    recording = source.recording()
    ended = beam.done if forced is None else not recording.target_dropped
    url_state.one_of(
        "cross", translation.view_names(*translation.cross_attention(recording).pattern.shape[:2])
    )
    end = models.end_token(model) if ended else None
    return TranslationState(source, recording, search, place, forced, end)


def said_of(recording: Recording, end: translation.EndToken | None) -> translation.DecodedSteps:
    """How likely the model held each produced token of a recording."""
    ids, _ = translation.produced_tokens(recording, end)
    return cache.cached_for(
        recording,
        ("said", ids.tobytes()),
        lambda: translation.decoded_steps(cache.all_logits(recording, "decoder"), ids),
    )
