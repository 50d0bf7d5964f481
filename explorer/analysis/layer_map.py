"""A sentence's way through a model: the stations that a token's vector passes, what each added to
it, and which head pushed what is said."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.recording import Recording, Stream
from models.results import Attribution, Part, softmax
from models.token_relations import BLANK_TOKENS, is_punctuation


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


SUBLAYER_NAMES = {"pos": "positions", "attn": "heads", "cross": "cross", "ffn": "ffn"}


def selected_token(recording: Recording, selection: str) -> tuple[str, int]:
    """The (stream, token) whose way is shown, in the stream that speaks: the chosen token by its
    number; else an encoder's last word, a decoder's last token, the first of a translation."""
    stream = recording.streams[-1]
    n = len(stream.tokens)
    if selection.isdecimal() and len(selection) < 6 and int(selection) < n:
        return stream.name, int(selection)
    if len(recording.streams) > 1:
        return stream.name, 0
    if recording.model.kind == "encoder":
        words = [
            at
            for at, (token, special) in enumerate(zip(stream.tokens, stream.special))
            if not (special or token in BLANK_TOKENS or is_punctuation(token))
        ]
        return stream.name, words[-1] if words else n - 1
    return stream.name, n - 1


def stations(recording: Recording, stream: str, token: int) -> tuple[Station, ...]:
    """The stations of a token in the order it passes them. Of a model with two streams the
    encoder's come first, for the token in the middle of its text."""
    stops: tuple[Station, ...] = ()
    for current in recording.streams:
        at = token if current.name == stream else len(current.tokens) // 2
        stops += _stream_stations(current, at)
    return stops


def top_tokens(logits: np.ndarray, most: int = 3) -> tuple[list[int], list[float]]:
    """The likeliest tokens by scores (id), best first: their ids and probabilities."""
    p = softmax(logits)
    # Sorted are those alone that are no less likely than the last of them.
    least = np.partition(p, -most)[-most] if most < len(p) else 0.0
    candidates = np.flatnonzero(p >= least)
    best = candidates[np.argsort(-p[candidates], kind="stable")][:most]
    return best.tolist(), p[best].tolist()


def largest_head_part(attribution: Attribution) -> Part | None:
    """The head that put most into a word's logit; None where none raised it."""
    heads = [part for part in attribution.parts if part.kind == "head" and part.value > 0]
    return max(heads, key=lambda part: part.value, default=None)


def _stream_stations(stream: Stream, token: int) -> tuple[Station, ...]:
    stops = [Station(stream.name, "words", -1, float("nan"), stream.sites[0])]
    # One vector after the other: of all at once the last digits would be others.
    lengths = {
        site: float(np.sqrt(vector.dot(vector)))
        for site, vector in zip(stream.sites, stream.resid[:, token])
    }
    for before, wrote, _ in stream.writes():
        place, _, _ = wrote.rpartition(".")
        layer, _, sublayer = place.rpartition(".")
        length_before, length_written = lengths[before], lengths[wrote]
        if sublayer in SUBLAYER_NAMES:
            share = length_written / length_before if length_before else float("nan")
            number = int(layer) if layer.isdecimal() else -1
            stops.append(Station(stream.name, SUBLAYER_NAMES[sublayer], number, share, wrote))
    return tuple(stops)
