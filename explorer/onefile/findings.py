"""What a recording is told by, for a file: its findings, from the model itself and not from the
app's memory."""

from __future__ import annotations

from explorer.analysis import heads as naming
from explorer.analysis.finding import Finding
from explorer.analysis.findings import findings
from explorer.analysis.findings_stream import Answer
from explorer.onefile.asked import Asked
from models import library

ASKED_UP_TO = 64  # tokens, as on the first page: a lens over a vocabulary takes long on a long text


def found_in(asked: Asked) -> tuple[Finding, ...]:
    """The findings of a recording, the most telling first."""
    recording = asked.recording
    across = any(one.query != one.key for one in recording.attention)
    after = asked.following(recording.attention[-1].query) if across else ""
    named = {one.name: naming.describe(recording, one) for one in recording.attention}
    return findings(recording, after, _answer(asked), named)


def _answer(asked: Asked) -> Answer | None:
    """What a decoder says next, through its layers; None for other models and long texts."""
    recording, stream = asked.recording, asked.recording.streams[-1]
    n = len(stream.tokens)
    wanted = recording.model.kind == "decoder" and 1 < n <= ASKED_UP_TO
    if not wanted or library.offers(asked.model).logits != stream.name:
        return None
    try:
        lens = library.lens(asked.model, recording, stream.name)
        id = int(lens.final_id[n - 1])
        parts = library.attribute(asked.model, recording, stream.name, n - 1, id)
    except ValueError:  # a model whose logits cannot be read or taken apart
        return None
    return Answer(lens, n - 1, asked.labels([id])[0], parts)
