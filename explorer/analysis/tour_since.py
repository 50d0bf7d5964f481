"""The tour's step on what changed since the paper: today's parts put into this model one at a time,
and how far its words' vectors move."""

from __future__ import annotations

import numpy as np

from explorer.analysis import residual
from explorer.analysis.evidence import Untestable
from explorer.analysis.plates import Bars, Row, Shown, share
from explorer.analysis.tour_seen import Seen, text_of
from models.edits import OtherNorm, OtherPositions, SharedKeys, SideBySide, Window
from models.recording import Stream

# What models of today have, as an edit of an address.
CHANGES = {
    "RMSNorm for LayerNorm": "OtherNorm:rms:",
    "FFN beside attention": "SideBySide:",
    "rotary positions": "OtherPositions:rotary",
    "a window of near tokens": "Window:4",
    "one key and value for all heads": "SharedKeys:1",
}
KINDS = (OtherNorm, SideBySide, OtherPositions, Window, SharedKeys)


def since(seen: Seen) -> Shown:
    """How far the last vectors of the text's words move with each change, in the mean, of their
    length; the number is the largest. What the model has already is left out."""
    stream = seen.recording.streams[-1]
    text = changeable(seen)
    moved = {}
    for name, edit in CHANGES.items():
        try:
            other = seen.evidence.again(edit, "", None).stream(stream.name)
        except ValueError:  # it has this already, or runs in its own code
            continue
        far = _moved(stream, other, text)
        if far:
            moved[name] = far
    if not moved:
        raise Untestable("This model has these parts already, or runs in its own code.")
    most = max(moved, key=lambda name: moved[name])
    rows = tuple(Row(name, (far,), (share(far),), on=name == most) for name, far in moved.items())
    bars = Bars(
        title="How far the last vectors move when a part is exchanged after training",
        columns=("moved",),
        rows=rows,
        mark=(list(moved).index(most), 0),
        shared=True,
        wide=True,
    )
    words = {"most": most, "least": min(moved, key=lambda name: moved[name])}
    address = (("edits", CHANGES[most]),)
    variant = "single" if len(moved) == 1 else ""
    return Shown(share(moved[most]), moved[most], (bars,), words, address, variant)


def changeable(seen: Seen) -> np.ndarray:
    """The places of the text. Raises Untestable without words, and where no part can be
    exchanged."""
    if not any(issubclass(kind, seen.edits) for kind in KINDS):
        raise Untestable("This model runs in its own code, so its parts cannot be exchanged.")
    return text_of(seen.recording.streams[-1])


def _moved(one: Stream, other: Stream, text: np.ndarray) -> float:
    """The mean distance of last vectors, of their length."""
    a, b = (residual.at(each, each.sites[-1])[text] for each in (one, other))
    return float((np.linalg.norm(a - b, axis=-1) / np.linalg.norm(a, axis=-1)).mean())
