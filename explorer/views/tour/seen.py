"""What the tour's steps look at, behind the memory's own doors."""

from __future__ import annotations

from explorer.analysis.called import norm_of
from explorer.analysis.tour_seen import Seen
from explorer.frame import opening
from explorer.memory import models, passes
from explorer.memory.passes import Shown
from explorer.views.claims.testing import material


def seen_of(source: Shown) -> Seen:
    """The recording on screen as the steps see it. It is made anew in every run and nowhere
    kept."""
    recording = source.recording()
    model = recording.model.name
    first = next(
        (one for one in opening.found(recording) if one.page == "attention" and one.query >= 0),
        None,
    )
    shows = models.offers(model)
    return Seen(
        material(recording, source.text),
        first,
        labels=lambda ids: models.labels(model, ids),
        inside=lambda stream, layer, token: passes.inside(recording, stream, layer, token),
        nearest=lambda vectors, top: passes.nearest_to(model, vectors, top),
        lens=passes.lens,
        edits=shows.edits,
        logits=shows.logits,
        scale=models.embedding_scale(model),
        norm=norm_of(recording, shows.rms),
        key_heads=shows.key_heads,
        gate=shows.gate,
        ffn_biases=shows.ffn_biases,
        turns=shows.positions == "rotary",
    )
