"""Recordings whose patterns are planted: what must be found in them is known."""

from __future__ import annotations

import numpy as np

from explorer.analysis import head_naming
from models.contract import token_relations
from models.contract.recording import Attention, Card, Recording, Stream

WORDS = ("[CLS]", "The", "fox", "saw", "the", "bird", ".", "The", "fox", "ran", ".", "[SEP]")
NOBODY = {head_naming.NO_PATTERN, "diffuse"}  # names that claim nothing


def special(tokens: tuple[str, ...]) -> list[bool]:
    return [token.startswith("[") for token in tokens]


def relations(tokens: tuple[str, ...]) -> dict[str, np.ndarray]:
    return token_relations.text_relations(tokens, special(tokens))


def stream_of(name: str, tokens: tuple[str, ...]) -> Stream:
    n, nothing = len(tokens), np.zeros((1, len(tokens), 4), np.float32)
    spans = np.full((n, 2), -1)
    is_special = np.array(special(tokens), dtype=bool)
    return Stream(name, tokens, np.arange(n), is_special, spans, ("embed",), nothing)


def recording_of(
    pattern: np.ndarray,
    tokens: tuple[str, ...] = WORDS,
    layer: int = 0,
    allowed: np.ndarray | None = None,
    source: tuple[str, ...] = (),
) -> Recording:
    """A recording whose last layer, `layer`, has the patterns (head, query, key), from `tokens` to
    `source` where there is one; those of the layers before it are even, all else is zeros."""
    pattern = np.asarray(pattern, dtype=np.float32)[None]
    heads, n, keys = pattern.shape[1:]
    allowed = np.ones((n, keys), bool) if allowed is None else allowed
    even = np.broadcast_to(allowed / allowed.sum(axis=1, keepdims=True), pattern.shape)
    pattern = np.concatenate([*[even] * layer, pattern]).astype(np.float32)
    q, k = (np.zeros((1 + layer, heads, each, 2), np.float32) for each in (n, keys))
    streams = (stream_of("encoder", source or tokens),)
    streams += (stream_of("decoder", tokens),) if source else ()
    names = ("cross", "decoder", "encoder") if source else ("self", "encoder", "encoder")
    attention = Attention(*names, np.zeros_like(pattern), pattern, allowed, q, k, k)
    card = Card("planted", "any", 1 + layer, heads, 4, 2, 9, 99, 0, "none", "none")
    return Recording(card, " ".join(tokens), (), streams, (attention,))


def toward(mask: np.ndarray, share: float = 0.9, allowed: np.ndarray | None = None) -> np.ndarray:
    """Rows that give `share` to the masked keys and the rest evenly to all that are allowed; even
    rows where nothing is masked."""
    allowed = np.ones_like(mask) if allowed is None else allowed
    marked = mask.sum(axis=1, keepdims=True)
    even = allowed / allowed.sum(axis=1, keepdims=True)
    return np.where(marked > 0, share * mask / np.maximum(marked, 1) + (1 - share) * even, even)


def described(recording: Recording) -> tuple[head_naming.Head, ...]:
    return head_naming.describe(recording, recording.attention[0])


def named(
    pattern: np.ndarray,
    tokens: tuple[str, ...] = WORDS,
    layer: int = 1,
    allowed: np.ndarray | None = None,
) -> head_naming.Head:
    """The one head of the last layer, by default of two: in the first none is an induction head."""
    return described(recording_of(pattern[None], tokens, layer, allowed))[layer]
