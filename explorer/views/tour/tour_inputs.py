"""Inputs of the tour's steps, through the app's cache."""

from __future__ import annotations

from explorer.analysis.terminology import recording_norm_name
from explorer.analysis.tour import TourContext
from explorer.panels import attention as attention_panels
from explorer.panels.claims import material
from explorer.state import cache, models
from explorer.state.cache import Run


def seen_of(source: Run) -> TourContext:
    """The recording on screen as the steps see it. It is made anew in every run and nowhere
    kept."""
    recording = source.recording()
    model = recording.model.name
    first = next(
        (
            one
            for one in attention_panels.recording_findings(recording)
            if one.page == "attention" and one.query >= 0
        ),
        None,
    )
    shows = models.capabilities(model)
    return TourContext(
        material(recording, source.text),
        first,
        labels=lambda ids: models.labels(model, ids),
        inside=lambda stream, layer, token: cache.ffn_activations(recording, stream, layer, token),
        nearest=lambda vectors, top: cache.nearest_to(model, vectors, top),
        lens=cache.lens,
        predicted_words=cache.predicted_words,
        edits=shows.edits,
        logits=shows.logits,
        scale=models.embedding_scale(model),
        norm=recording_norm_name(recording, shows.rms),
        key_heads=shows.key_heads,
        gate=shows.gate,
        ffn_biases=shows.ffn_biases,
        has_rotary_positions=shows.positions == "rotary",
    )
