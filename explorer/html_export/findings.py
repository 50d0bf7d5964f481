"""Findings of a recording for a file, from the model itself and not from the app's memory."""

from __future__ import annotations

from explorer.analysis import head_naming, logit_lens
from explorer.analysis.attention import argmax_id
from explorer.analysis.findings import Finding, StreamPrediction, findings
from explorer.html_export.request import ExportRequest
from models import whole_words
from models.results import softmax

ASKED_UP_TO = 64  # tokens, as on the first page


def found_in(asked: ExportRequest) -> tuple[Finding, ...]:
    """The findings of a recording, the most telling first."""
    recording = asked.recording
    across = any(one.query != one.key for one in recording.attention)
    after = asked.following(recording.attention[-1].query) if across else ""
    named = {one.name: head_naming.describe(recording, one) for one in recording.attention}
    return findings(recording, after, _answer(asked), named)


def _answer(asked: ExportRequest) -> StreamPrediction | None:
    """A decoder's next-token prediction, through its layers; None for other models and long
    texts."""
    recording, stream = asked.recording, asked.recording.streams[-1]
    n = len(stream.tokens)
    wanted = recording.model.kind == "decoder" and 1 < n <= ASKED_UP_TO
    if not wanted or asked.model.capabilities.logits != stream.name:
        return None
    try:
        scores = asked.model.logits(recording, stream.name, n - 1)
        id = argmax_id(scores)
        is_cheap = logit_lens.is_cheap(recording, stream)
        lens = asked.model.lens(recording, stream.name) if is_cheap else None
        parts = asked.model.attribute(recording, stream.name, n - 1, id)
    except ValueError:  # a model whose logits cannot be read or taken apart
        return None
    said = tuple(asked.labels([id]))
    if not recording.edits:
        first = whole_words.followed_tokens(asked.model, [(id, float(softmax(scores)[id]))])
        for each in whole_words.whole_words(asked.model, recording.text, (), first).values():
            said = each.word, *said
    return StreamPrediction(lens, n - 1, said, parts)
