"""A text's stream and its sites, for the tests of paths of embeddings."""

from __future__ import annotations

from explorer.analysis import logit_lens


def states(stream, sums: bool = False):
    return logit_lens.states(stream, sums)


def of(model, text: str, stream: str | None = None):
    recording = model.record(text)
    return recording.stream(stream) if stream else recording.streams[0]
