"""Models in our own classes as a source: the functions of models/offers.py's Source."""

from __future__ import annotations

import numpy as np

from models.edits import KINDS
from models.offers import Offers
from models.own import Handle, record
from models.readouts import readout
from models.readouts.readout import lens
from models.readouts.readout import logits_at as logits

__all__ = ["lens", "logits", "nearest", "offers", "record"]


def offers(handle: Handle) -> Offers:
    """Everything, as far as the model was built with it."""
    config, kind = handle.model.config, handle.card.kind
    return Offers(
        kind=kind,
        attention=tuple(handle.model.attentions()),
        scale=handle.card.d_head**-0.5 if config.scaled_scores else 1.0,
        norm=config.norm,
        positions=config.positions,
        logits=("encoder" if kind == "encoder" else "decoder") if config.readout else "",
        edits=tuple(KINDS.values()),
        scaled_embedding=config.scaled_embedding,
        linear_readout=config.readout in ("tied", "untied"),
        rms=config.rms,
        parallel=config.parallel,
    )


def nearest(handle: Handle, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words whose embeddings come nearest to vectors (row, d_model), by cosine."""
    return readout.nearest(handle.model.embedding.token.weight, vectors, top)
