"""Runs with edits of the small models."""

from __future__ import annotations

import numpy as np

from models.contract import edits
from models.contract.recording import Recording
from models.network import own_model

TEXT, OTHER = "the cat sat on the mat", "the dog ran to the cat"


def last(recording: Recording) -> np.ndarray:
    return recording.streams[-1].resid[-1]


def recorded(model: own_model.OwnModel, *asked: edits.Edit, text: str = TEXT) -> Recording:
    """A pass under edits; a translator reads the same target each time."""
    return model.record(
        text, asked, "the mat sat" if model.card.kind == "encoder-decoder" else None
    )
