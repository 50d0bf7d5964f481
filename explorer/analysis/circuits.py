"""A head's circuits ready to be shown: which words are asked for, how far the head copies, and a
table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from models.prediction import Circuits as Circuits  # for the floors above
from models.recording import Attention, Recording

MOST_WORDS = 64  # different words of a text that are read at once


def words_of(recording: Recording, attention: Attention, also: Sequence[int]) -> tuple[int, ...]:
    """The different words of the text that is looked at, as it has them, at most MOST_WORDS, and
    `also` these ids."""
    ids = [int(each) for each in recording.stream(attention.key).ids]
    return tuple(dict.fromkeys([*also, *list(dict.fromkeys(ids))[:MOST_WORDS]]))


def most_looked_at(attention: Attention, layer: int, head: int, query: int) -> int:
    """The key that a query gives the largest weight."""
    return int(attention.pattern[layer, head, query].argmax())


@dataclass(frozen=True)
class Copies:
    """How many of n words, handed over, raise themselves into the words that they raise most, and
    how many raise themselves at all."""

    n: int
    among_first: int
    raised: int


def copies(of: Circuits) -> Copies:
    """How far the head copies, by its weights alone."""
    first = int((of.own_rank < of.up_ids.shape[1]).sum())
    return Copies(len(of.ids), first, int((of.own > 0).sum()))


def nearest_words(of: Circuits, at: int, most: int) -> np.ndarray:
    """The words of the text that a word, as a query, scores highest: their places in `ids`."""
    return np.argsort(-of.among[at], kind="stable")[:most]


def table(of: Circuits, labels: Callable[[np.ndarray], list[str]]) -> dict[str, Sequence]:
    """A row for each word: whom it looks for, what it makes the head raise and lower, and itself.
    labels: of ids."""

    def listed(ids: np.ndarray) -> list[str]:
        return [" · ".join(labels(row)) for row in ids]

    best = of.ids[[int(row.argmax()) for row in of.among]]
    return {
        "word": labels(of.ids),
        "looks for, of these words": labels(best),
        "looks for, of all words": listed(of.key_ids),
        "looked at, raises": listed(of.up_ids),
        "looked at, lowers": listed(of.down_ids),
        "itself, logit": of.own.tolist(),
        "itself, rank": (of.own_rank + 1).tolist(),
    }
