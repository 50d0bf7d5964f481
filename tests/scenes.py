"""A text's stream and its sites, for the tests of paths of embeddings."""

from __future__ import annotations

from explorer.analysis import sites
from models import library


def states(stream, sums: bool = False):
    return sites.states(stream, sums)


def of(handle, text: str, stream: str | None = None):
    recording = library.record(handle, text)
    return recording.stream(stream) if stream else recording.streams[0]
