"""Copying: numbers and names that a translator has not learned go into its output as they stand.

A model would spell an unknown word (`unknown_words`) by its sound. It is copied once, where the
decoder begins to spell it, by the middle layer's cross-attention (mean of the heads): where the
next token begins as the word does, or where the weight on the word is large and the next token is
neither likely nor a preposition. No piece goes on with a copied word. A copied token counts as
probability 1, since it is not drawn from the model's own distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor

from models.contract.recording import CONTINUES
from models.tokens.tokenizer import Tokenizer
from models.tokens.unknown_words import UnknownWord

# Words of the output that may stand between what precedes a name and the name.
BEFORE_NAMES = frozenset(
    "' à en dans de d avec pour sur par chez vers entre au aux du est sont était".split()
)
ALIKE, UNSURE, SURE = 0.3, 0.45, 0.65  # weights on a word from which it is copied
LIKELY = 0.5  # probability of a token that the model is sure of


def copier(tokenizer: Tokenizer, words: tuple[UnknownWord, ...]) -> Copier | None:
    """The copier of these words into one output, None where there are none."""
    if not words:
        return None
    pieces = tuple(map(tuple, tokenizer.ids([one.word for one in words])))
    return Copier(spelling(tokenizer), tokenizer.ends[1], words, dict(zip(words, pieces)))


class Spelling:
    """Spelling of the tokens of a vocabulary: their text, and which go on inside a word."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        labels = [tokenizer.label(token) for token in range(len(tokenizer))]
        texts = [tokenizer.text([token]) for token in range(len(tokenizer))]
        self.texts = [text.strip().casefold() for text in texts]
        self._begins: dict[str, Tensor] = {}
        self.goes_on = torch.tensor([label.startswith(CONTINUES) for label in labels], device="cpu")
        self.is_space = [label == "␣" for label in labels]

    def begins_like(self, word: str) -> Tensor:
        """Mask of the tokens that begin with the first letter of a word, (id) bool."""
        letter = word[0].casefold()
        if letter not in self._begins:
            begins = [text.startswith(letter) for text in self.texts]
            self._begins[letter] = torch.tensor(begins, device="cpu")
        return self._begins[letter]


@cache
def spelling(tokenizer: Tokenizer) -> Spelling:
    """The spelling of a tokenizer's vocabulary."""
    return Spelling(tokenizer)


@dataclass(frozen=True)
class Copier:
    """The rest of a source that is still to be copied into one output.

    pending: the words that are not copied yet; pieces: the ids that spell each word. queue: the
    pieces that come next, whatever the model says. copied: the word that was copied last;
    is_fresh: True right after it. last: the newest token."""

    vocabulary: Spelling
    end: int
    pending: tuple[UnknownWord, ...]
    pieces: Mapping[UnknownWord, tuple[int, ...]]
    queue: tuple[int, ...] = ()
    copied: UnknownWord | None = None
    is_fresh: bool = False
    last: int = -1

    def after(self, token: int) -> Copier:
        """The copier after a token was written."""
        if self.queue:
            return replace(self, queue=self.queue[1:], is_fresh=len(self.queue) == 1, last=token)
        return replace(self, is_fresh=False, last=token)

    def constrain(self, logits: Tensor, weights: Tensor) -> tuple[Copier, Tensor]:
        """The copier, and the scores (id) of the next token with -inf for those that may not come.
        weights (key): the cross-attention of the newest token."""
        if self.queue:
            return self, _only(logits, self.queue[0])
        p, allowed = logits.softmax(dim=-1), self._without_spelling(logits, weights)
        best = int(allowed.argmax())
        if best == self.end or not self.pending:
            return self, allowed
        word = max(self.pending, key=lambda word: float(weights[list(word.columns)].sum()))
        weight = float(weights[list(word.columns)].sum())
        if not self._begins(word, best, float(p[best]), weight):
            return self, allowed
        ids, is_space = self.pieces[word], self.vocabulary.is_space
        if self.last >= 0 and is_space[self.last] and is_space[ids[0]]:
            ids = ids[1:]
        pending = tuple(each for each in self.pending if each is not word)
        return replace(self, pending=pending, queue=ids, copied=word), _only(logits, ids[0])

    def _begins(self, word: UnknownWord, token: int, p: float, weight: float) -> bool:
        """True where a token that is about to be written begins to spell a word."""
        text = self.vocabulary.texts[token]
        if text[:1] == word.word[0].casefold() and weight > ALIKE:
            return True
        if p >= LIKELY:
            return weight > SURE and text not in BEFORE_NAMES
        return weight > UNSURE

    def _without_spelling(self, logits: Tensor, weights: Tensor) -> Tensor:
        """The scores without tokens that would spell the last copied word on, or once more."""
        if self.copied is None:
            return logits
        looks_back = float(weights[list(self.copied.columns)].sum()) > LIKELY
        if not (self.is_fresh or looks_back):
            return logits
        barred = self.vocabulary.goes_on | self.vocabulary.begins_like(self.copied.word)
        return logits.masked_fill(barred.to(logits.device), -torch.inf)


def _only(logits: Tensor, token: int) -> Tensor:
    """Scores with 0, a probability of 1, for one token and -inf for all others."""
    only = torch.full_like(logits, -torch.inf)
    only[token] = 0
    return only
