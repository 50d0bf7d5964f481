"""The translation on screen: the search, the hypothesis or what was typed, and what was recorded of
it."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.analysis import translation as numbers
from explorer.analysis.caption import model_line, read_text
from explorer.components.picture import Picture
from explorer.frame import onscreen
from explorer.memory import address, background, models, passes, shelf
from explorer.memory.passes import Shown
from explorer.sentences import translation as words
from explorer.views.translation import search as searching
from models.recording import Recording


@dataclass(frozen=True, eq=False)
class Screen:
    """One translation. place: of the hypothesis on screen; forced: what the reader typed, None for
    the model's own; end: what its last row says, None where it was cut off. It is made anew in
    every run."""

    source: Shown
    recording: Recording
    search: background.Search
    place: int
    forced: str | None
    end: numbers.End | None

    @property
    def said(self) -> numbers.Said:
        """How likely the model held each produced token."""
        return said_of(self.recording, self.end)

    @property
    def says(self) -> tuple[str, ...]:
        """The produced tokens."""
        return numbers.produced(self.recording, self.end)[1]

    @property
    def name(self) -> str:
        """Which view of the cross-attention is shown."""
        return st.session_state.cross

    def picture(self) -> Picture:
        """How the picture of that view is called."""
        model, name = self.recording.model, self.name
        title = numbers.title(name, *numbers.cross(self.recording).pattern.shape[:2])
        layer, _, head = name.partition(".")
        at = f"L{layer}H{head}" if head else f"L{layer}-mean" if layer else "mean"
        ids, _ = numbers.produced(self.recording, self.end)
        token = shelf.name_of(self.recording, ids.tobytes(), self.forced is not None)
        return Picture(
            title, caption(self, title), f"headlight-{model.name}-cross-{at}", f"{token} {name}"
        )


def caption(on: Screen, title: str) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""
    whose = "typed and force-fed" if on.forced is not None else "the model’s own"
    return (
        model_line(on.recording, f"cross-attention, {title.lower()}"),
        words.ROW,
        f"Source: {read_text(on.recording)}",
        f"Output, {whose}: {read_text(on.recording, target=True)}",
    )


def screen(model: str, text: str, forced: str | None) -> Screen:
    """The translation that the reader chose: of the search as far as it came, or what was typed."""
    search = searching.searched(model, text)
    held = search.steps[-1]
    place = searching.chosen_place(held)
    beam = held[place]
    target = forced if forced is not None else beam.ids[: len(beam.ids) - beam.done]
    source = onscreen.shown(model, target=target)
    recording = source.recording()
    ended = beam.done if forced is None else not recording.target_dropped
    st.session_state["on the map"] = source
    address.one_of("cross", numbers.views(*numbers.cross(recording).pattern.shape[:2]))
    end = models.end(model) if ended else None
    return Screen(source, recording, search, place, forced, end)


def said_of(recording: Recording, end: numbers.End | None) -> numbers.Said:
    """How likely the model held each produced token of a recording."""
    ids, _ = numbers.produced(recording, end)
    return shelf.derived(
        recording,
        ("said", ids.tobytes()),
        lambda: numbers.said(passes.all_logits(recording, "decoder"), ids),
    )
