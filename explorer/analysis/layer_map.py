"""A sentence's way through a model: the stations that a token's vector passes, what each added to
it, and which head pushed what is said."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.recording import Recording, Stream
from models.results import Attribution, Part, softmax
from models.token_relations import BLANKS, is_punctuation


@dataclass(frozen=True)
class Station:
    """One place on the way.

    what: "words", "positions", "heads", "cross" or "ffn"; layer: -1 before the first. share: the
    length of what was written there over the length of the vector it was added to; NaN where
    nothing is added to. site: the name of what was written."""

    stream: str
    what: str
    layer: int
    share: float
    site: str


WHAT = {"pos": "positions", "attn": "heads", "cross": "cross", "ffn": "ffn"}


def held(recording: Recording, chosen: str) -> tuple[str, int]:
    """The (stream, token) whose way is shown, in the stream that speaks: the chosen token by its
    number; else an encoder's last word, a decoder's last token, the first of a translation."""
    stream = recording.streams[-1]
    n = len(stream.tokens)
    if chosen.isdecimal() and len(chosen) < 6 and int(chosen) < n:
        return stream.name, int(chosen)
    if len(recording.streams) > 1:
        return stream.name, 0
    if recording.model.kind == "encoder":
        words = [
            at
            for at, (token, special) in enumerate(zip(stream.tokens, stream.special))
            if not (special or token in BLANKS or is_punctuation(token))
        ]
        return stream.name, words[-1] if words else n - 1
    return stream.name, n - 1


def stations(recording: Recording, stream: str, token: int) -> tuple[Station, ...]:
    """The stations of a token in the order it passes them. Of a model with two streams the
    encoder's come first, for the token in the middle of its text."""
    found: tuple[Station, ...] = ()
    for each in recording.streams:
        at = token if each.name == stream else len(each.tokens) // 2
        found += _of(each, at)
    return found


def likeliest(logits: np.ndarray, most: int = 3) -> tuple[list[int], list[float]]:
    """The likeliest tokens by scores (id), best first: their ids and probabilities."""
    p = softmax(logits)
    # Sorted are those alone that are no less likely than the last of them.
    least = np.partition(p, -most)[-most] if most < len(p) else 0.0
    among = np.flatnonzero(p >= least)
    best = among[np.argsort(-p[among], kind="stable")][:most]
    return best.tolist(), p[best].tolist()


def pusher(taken: Attribution) -> Part | None:
    """The head that put most into a word's logit; None where none raised it."""
    heads = [part for part in taken.parts if part.kind == "head" and part.value > 0]
    return max(heads, key=lambda part: part.value, default=None)


def _of(stream: Stream, token: int) -> tuple[Station, ...]:
    found = [Station(stream.name, "words", -1, float("nan"), stream.sites[0])]
    # One vector after the other: of all at once the last digits would be others.
    lengths = {
        site: float(np.sqrt(vector.dot(vector)))
        for site, vector in zip(stream.sites, stream.resid[:, token])
    }
    for before, wrote, _ in stream.writes():
        place, _, _ = wrote.rpartition(".")
        layer, _, what = place.rpartition(".")
        stood, added = lengths[before], lengths[wrote]
        if what in WHAT:
            share = added / stood if stood else float("nan")
            number = int(layer) if layer.isdecimal() else -1
            found.append(Station(stream.name, WHAT[what], number, share, wrote))
    return tuple(found)
