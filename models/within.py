"""What is inside a model beyond its recording, as a part of the one door: `models.library` hands
these on. Importing this module costs nothing, as there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from models.arguments import expect_handle, expect_recording_of
from models.prediction import Circuits, Neurons
from models.recording import Recording

if TYPE_CHECKING:
    import numpy as np

    from models import own


def neurons(
    handle: Any,
    recording: Recording,
    stream: str,
    layer: int,
    token: int,
    id: int,
    against: int | None = None,
) -> Neurons:
    """The hidden units of a layer's FFN by what they add to a word's logit at a token; with
    `against` to the difference to another word's."""
    from models.readouts import neurons as of_ffn

    expect_handle(handle)
    expect_recording_of(handle, recording, stream, token)
    return of_ffn.neurons(ours(handle), recording, stream, layer, token, id, against)


def circuits(
    handle: Any,
    attention: str,
    layer: int,
    head: int,
    ids: tuple[int, ...],
    values: np.ndarray | None = None,
) -> Circuits:
    """What a head's matrices make of words, each by itself: whom it looks for, and what it writes
    of it; with `values` (word, d_head) of these."""
    from models.readouts import circuits as of_head

    return of_head.circuits(ours(handle), attention, layer, head, ids, values)


def ours(handle: Any) -> own.Handle:
    """The handle, if it is of a model in our own classes. Raises ValueError where it is not."""
    from models import own

    if not isinstance(handle, own.Handle):
        raise ValueError(f"{handle.card.name} runs in its own code, which does not show this")
    return handle
