"""An answer that a model wrote: its words, and what one head read to say one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.contract.recording import CONTINUES
from models.contract.results import softmax


@dataclass(frozen=True)
class SpokenWord:
    """A word of a text: its label, its first token and the token after its last one."""

    label: str
    start: int
    end: int


def words_of(tokens: Sequence[str], start: int, end: int) -> list[SpokenWord]:
    """The words that the tokens from `start` to `end` spell: a token with those that go on with
    it."""
    found: list[SpokenWord] = []
    for at in range(start, end):
        label = tokens[at].removeprefix(CONTINUES)
        if label != tokens[at] and found and label[:1].isalnum():
            last = found[-1]
            found[-1] = SpokenWord(last.label + label, last.start, at + 1)
        else:
            found.append(SpokenWord(label, at, at + 1))
    return found


@dataclass(frozen=True, eq=False)
class ReadWord:
    """A word as a head writes it: the head, the word of the question that it reads most, as a place
    among those words, and its weights on every token before (key)."""

    layer: int
    head: int
    word: int
    weights: np.ndarray


def on_words(weights: np.ndarray, words: Sequence[SpokenWord]) -> np.ndarray:
    """The weights (..., key) on words: those on their tokens, summed (..., word)."""
    if not words:
        return np.zeros((*weights.shape[:-1], 0))
    return np.stack([weights[..., one.start : one.end].sum(axis=-1) for one in words], axis=-1)


@dataclass(frozen=True)
class WithoutHead:
    """A token without a head: its probability before and after, and the token that leads then, with
    its probability."""

    before: float
    after: float
    leads: int
    most: float

    @property
    def turns(self) -> bool:
        """True where it loses much and another one leads."""
        return self.before - self.after >= TURNS and self.most > self.after


TURNS = 0.1  # of probability, which a token that a head decides loses at least


def without_head(plain: np.ndarray, ablated: np.ndarray, token: int) -> WithoutHead:
    """A token under the logits of its place (id), and under those without a head."""
    before, after = softmax(plain), softmax(ablated)
    leads = int(after.argmax())
    return WithoutHead(float(before[token]), float(after[token]), leads, float(after[leads]))
