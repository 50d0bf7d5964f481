"""A text at every checkpoint of a model: recordings, and the habits of all heads, measured once and
kept."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.analysis.training import Stage
from explorer.layout import controls
from explorer.state import cache
from explorer.state.cache import Run
from explorer.state.models import Checkpoint, checkpoints
from models.recording import Attention, Recording

FIRST = (
    "cross",
    "decoder self",
    "encoder self",
)  # of a model that has several, the telling one first


@dataclass(frozen=True)
class Text:
    """What is read at every checkpoint of a model, by name: the same text, and of a translator the
    same target, that of the whole model."""

    model: str
    text: str
    target: tuple[int, ...] | None

    def shown(self, at: Checkpoint) -> Run:
        """Its recording at a checkpoint, by name."""
        return Run(at.model, self.text, (), self.target)


def text_of(model: str, text: str) -> Text:
    """The text as all checkpoints of a model read it."""
    whole = cache.record(model, text)
    two = len(whole.streams) > 1
    return Text(model, text, tuple(map(int, whole.streams[-1].ids[1:])) if two else None)


def attention_names(recording: Recording) -> tuple[str, ...]:
    """A recording's attentions, the one in which a training is seen best first."""
    names = [each.name for each in recording.attention]
    return tuple(sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else 0))


def attention_of(recording: Recording, name: str) -> Attention:
    """One of a recording's attentions."""
    return next(each for each in recording.attention if each.name == name)


def stages(of: Text, attention: str) -> tuple[Stage, ...]:
    """All heads of an attention at each checkpoint; the first time it is asked for, with a bar that
    says how far it has come."""
    return cache.cached_for_recordings(
        of.model, ("stages", of.text, of.target, attention), lambda: _measured(of, attention)
    )


def _measured(of: Text, attention: str) -> tuple[Stage, ...]:
    made = []
    with st.spinner("Reading the text at every checkpoint …"):
        for at in checkpoints(of.model):
            recording = of.shown(at).recording()
            heads = controls.named_heads(recording, attention_of(recording, attention))
            made.append(Stage(at.step, heads))
            del recording  # before the next one is made
    return tuple(made)
