"""Streams of the small models, for the tests of the residual stream."""

from __future__ import annotations

from models.network.own_model import OwnModel, record

TEXT = "the cat sat on the mat"


def streams(model: OwnModel, *edits, text: str = TEXT):
    recording = record(
        model, text, edits, "le chat" if model.card.kind == "encoder-decoder" else None
    )
    return [(recording, stream) for stream in recording.streams]
