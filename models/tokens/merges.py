"""The merges by which byte pair encoding reads a word (Sennrich, Haddow, Birch 2016): of all
neighbouring pieces the pair that training merged first is merged first, until no pair is one of its
merges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import tokenizers
from tokenizers import models

from models.tokens.encoding import encode
from models.tokens.token_labels import VocabularySpelling

NOT_BPE = "this tokenizer has no merges: it cuts words by another rule"


@dataclass(frozen=True)
class Merge:
    """One merge of a word: its place among all merges, from 0; the piece that it makes, as a place
    among the pieces after it; and these."""

    rank: int
    at: int
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Merges:
    """A word of a text by its merges. letters: the pieces that it begins as; n: how many merges the
    tokenizer has; ids: of the tokens that it ends as."""

    letters: tuple[str, ...]
    steps: tuple[Merge, ...]
    n: int
    ids: tuple[int, ...]

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces that it ends as."""
        return self.steps[-1].pieces if self.steps else self.letters


def merges(rules: tokenizers.Tokenizer | None, text: str, at: int) -> Merges:
    """The merges of the word that holds the text's token `at`, counted without special tokens.
    Raises ValueError for a tokenizer that merges no pairs, and where merges alone do not give the
    tokens that it gives."""
    if rules is None or not isinstance(rules.model, models.BPE):
        raise ValueError(NOT_BPE)
    ranks = _ranks(rules)
    word, tokens = _word(rules, text, at)
    pieces = list(word)
    spelling = VocabularySpelling.of(rules)
    spelled = lambda each: tuple(_spelled(rules, spelling, piece) for piece in each)
    letters, steps = spelled(pieces), []
    while pairs := [pair for pair in zip(pieces, pieces[1:]) if pair in ranks]:
        pair = min(pairs, key=ranks.__getitem__)
        place = 0
        while place < len(pieces) - 1:
            if (pieces[place], pieces[place + 1]) == pair:
                pieces[place : place + 2] = ["".join(pair)]
                steps.append(Merge(ranks[pair], place, spelled(pieces)))
            place += 1
    if pieces != tokens:
        raise ValueError(NOT_BPE)
    return Merges(
        letters,
        tuple(steps),
        len(ranks),
        tuple(int(rules.token_to_id(each) or 0) for each in pieces),
    )


def ids_of(rules: tokenizers.Tokenizer, word: str) -> list[int]:
    """The ids of the tokens that a word alone becomes, without special ones. Raises NotEncoded."""
    return encode(rules, word, special=False).ids


@lru_cache(maxsize=1)  # word after word of one text
def _ranks(rules: tokenizers.Tokenizer) -> dict[tuple[str, str], int]:
    """The place of each pair among a tokenizer's merges."""
    listed = json.loads(rules.to_str())["model"]["merges"]
    pairs = (each.split(" ", 1) if isinstance(each, str) else each for each in listed)
    return {(left, right): rank for rank, (left, right) in enumerate(pairs)}


def _word(rules: tokenizers.Tokenizer, text: str, at: int) -> tuple[str, Sequence[str]]:
    """The word, as the rules cut the text, that holds a token, and its tokens."""
    normal = rules.normalizer.normalize_str(text) if rules.normalizer else text
    cut = rules.pre_tokenizer.pre_tokenize_str(normal) if rules.pre_tokenizer else [(normal, None)]
    n = 0
    for word, _ in cut:
        tokens = [each.value for each in rules.model.tokenize(word)]
        n += len(tokens)
        if at < n:
            return word, tokens
    raise ValueError(f"the text has {n} tokens, and no token {at}")


def _spelled(rules: tokenizers.Tokenizer, spelling: VocabularySpelling, piece: str) -> str:
    """A piece as text, with a visible space; bytes that are no whole character as U+FFFD."""
    token = rules.token_to_id(piece)
    text = spelling.bytes_of(piece, -1 if token is None else token).decode("utf-8", "replace")
    return text.replace(spelling.space or " ", "␣").replace(" ", "␣")
