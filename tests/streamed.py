"""Streams of the small models, for the tests of the residual stream."""

from __future__ import annotations

from models.own import Handle, record

TEXT = "the cat sat on the mat"


def streams(handle: Handle, *edits, text: str = TEXT):
    recording = record(
        handle, text, edits, "le chat" if handle.card.kind == "encoder-decoder" else None
    )
    return [(recording, stream) for stream in recording.streams]
