"""What many tests of claims ask first: whether there are rows enough, which tokens are text, what
the model shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.analysis.evidence import (
    CLOSED,
    FEWEST,
    MOST_ROWS,
    TRIED,
    WORDS,
    Evidence,
    TooShort,
    Untestable,
    number,
)
from models.recording import Attention, Recording, Stream


def at_least(stream: Stream, n: int = FEWEST, what: str = "") -> None:
    """Raises TooShort for a stream of fewer than n tokens."""
    enough(len(stream.tokens), f"tokens{what}", n)


def enough(n: int, what: str, fewest: int = FEWEST) -> None:
    """Raises TooShort for fewer than so many of what a verdict rests on, such as "rows"."""
    if n < fewest:
        raise TooShort(
            f"This needs at least {WORDS.get(fewest, fewest)} {what}; there "
            f"{'is' if n == 1 else 'are'} {n} here."
        )


def opened(recording: Recording) -> tuple[Attention, ...]:
    """The attentions, all with the scores, queries, keys and values they are made of. Raises
    Untestable where some are not known, or there is none."""
    if not recording.attention:
        raise Untestable("This model shows no attention.")
    if not all(each.opens for each in recording.attention):
        raise Untestable(CLOSED)
    return recording.attention


def own(recording: Recording, stream: str = "") -> tuple[Attention, ...]:
    """The self-attentions, of one stream where it is named. Raises Untestable where there is
    none."""
    found = tuple(
        each
        for each in recording.attention
        if each.query == each.key and stream in ("", each.query)
    )
    if not found:
        raise Untestable("This model shows no self-attention.")
    return found


def masked(recording: Recording) -> tuple[Attention, Stream]:
    """The self-attention under a causal mask and its stream. Raises Untestable where there is
    none."""
    for each in recording.attention:
        if each.query == each.key == "decoder":
            return each, recording.stream("decoder")
    raise Untestable(
        "This model has no decoder: an encoder’s attention has no mask, and each token sees the "
        "later ones too."
    )


def writer(recording: Recording) -> Stream:
    """The stream that words are read from."""
    return recording.streams[-1]


def text_places(stream: Stream) -> np.ndarray:
    """The places of a stream's tokens that are text, all where none is."""
    places = np.flatnonzero(~stream.special)
    return places if len(places) else np.arange(len(stream.tokens))


def text_rows(stream: Stream) -> np.ndarray:
    """The places of a stream's tokens that are text. Raises TooShort for fewer than FEWEST."""
    places = text_places(stream)
    enough(len(places), "tokens of text")
    return places


def few(places: np.ndarray, most: int = MOST_ROWS) -> np.ndarray:
    """At most so many of some places, evenly spread."""
    return (
        places
        if len(places) <= most
        else places[np.linspace(0, len(places) - 1, most).round().astype(int)]
    )


def choosing(attention: Attention) -> np.ndarray:
    """The queries that have more than one key to choose from, at most MOST_ROWS of them. Raises
    TooShort for fewer than FEWEST."""
    places = np.flatnonzero(attention.allowed.sum(axis=1) > 1)
    enough(len(places), "tokens that have more than one token to look at")
    return few(places)


def softmax(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Softmax along the last axis over what is allowed, float64."""
    z = np.where(allowed, scores.astype(np.float64), -np.inf)
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def state_before(stream: Stream, layer: int, place: str) -> str:
    """The site of the state that a sub-layer adds to. Raises Untestable where the model does not
    show it."""
    for before, wrote, _ in stream.writes():
        if wrote == f"{layer}.{place}.wrote":
            return before
    raise Untestable(f"This model does not show what the {place} of layer {layer} wrote.")


def beginning(stream: Stream) -> str:
    """The site where token and position are together, or the token's alone in a model that adds no
    positions."""
    return "embed+pos" if "embed+pos" in stream.sites else stream.sites[0]


def another(stream: Stream, place: int) -> str:
    """A text of as many words as a stream has tokens, of which none is the token at a place."""
    label = stream.tokens[place].strip().lower()
    return " ".join(["b" if label == "a" else "a"] * len(stream.tokens))


def embedding_factor(e: Evidence) -> float:
    """By what the rows of the readout are multiplied to give the embeddings as the stream begins
    with them.

    The tied readout has those rows themselves: the scores of two tokens differ by E (h - h'), the
    bias falls out. Raises Untestable where it reads anything else."""
    stream = e.recording.streams[-1]
    at_least(stream)
    last = len(stream.tokens) - 1
    scores = e.logits(stream.name, last).astype(np.float64) - e.logits(stream.name, 0)
    product = e.embeddings() @ (stream.resid[-1, last].astype(np.float64) - stream.resid[-1, 0])
    times = float(product @ product) / float(product @ scores) if product @ scores else np.nan
    if not np.abs(product - times * scores).max() <= 1e-3 * np.abs(product).max():
        raise Untestable(
            "This model’s readout is not its embedding matrix itself, so the two cannot be "
            "compared."
        )
    return times


def by_layer(name: str, values: Sequence[float]) -> tuple[tuple[str, str], ...]:
    """Values of layers as rows of a small table."""
    return tuple(
        (f"{name}layer {layer}", number(float(value))) for layer, value in enumerate(values)
    )


def factor(ratio: float) -> float:
    """By what factor a ratio is away from 1, either way: 1 and more."""
    return float("nan") if not ratio > 0 else max(ratio, 1 / ratio)


def tried(places: np.ndarray) -> list[int]:
    """The tokens that are exchanged, one after another: TRIED of the places, evenly spread. Raises
    TooShort for fewer places than that."""
    enough(len(places), "tokens to try", TRIED)
    return [int(place) for place in few(places, TRIED)]


def patched(text: str, site: str, token: int) -> str:
    """The edit that takes one token's vector at a site from the run of another text, in one
    line."""
    return f"PatchSite:{text.replace(' ', '%20')}:{site.replace('+', '%2B')}:{token}:"
