"""Headlight as a library: load a model, record a text, write a page.

import headlight

encoder = headlight.load("encoder")
recording = headlight.record(encoder, "Ram pushed Hari", headlight.edits.ZeroHead(0, 4))
recording.attention[0].pattern  # (layer, head, query, key), rows sum to 1
"""

from __future__ import annotations

from collections.abc import Iterable

from explorer.export import page as page
from models import edits as edits
from models.argument_validation import expect_model
from models.model import Model
from models.recording import VERSION as __version__
from models.recording import Recording
from models.registry import load as load
from models.registry import names as names

__all__ = ["__version__", "edits", "load", "names", "page", "record"]


def record(
    model: Model | str,
    text: str,
    edits: edits.Edit | Iterable[edits.Edit] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """One forward pass over the text, as `Model.record`; a model's name loads it first.

    Raises TypeError for what is neither a model nor a name.
    """
    if isinstance(model, str):
        model = load(model)
    expect_model(model)
    return model.record(text, edits, target)
