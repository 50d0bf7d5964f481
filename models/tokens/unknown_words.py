"""Unknown words of a source: numbers and names that a translator has not learned.

A word is known that stands in the model's training text, itself or without an ending; a number or a
name has to stand there a few times. What the tokenizer keeps in one piece is a word of the
vocabulary. A file beside a model's weights has the words of its training text; a model without one
has no unknown words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from models import shipped_models
from models.contract.recording import Recording, Stream

if TYPE_CHECKING:
    from models.tokens.tokenizer import Tokens

FILE = "known_words.json"  # beside a model's weights: `training_words` of its training text
LEAST_NAMES, LEAST_NUMBERS = 2, 5  # times that a name or a number stands in what is learned
INFLECTIONS = ("s", "es", "ed", "ing", "ly")
WORD = re.compile(r"(?<![^\W_])(?:\d(?:[\d.,:/-]*\d)?|[^\W\d_][^\W_]*)(?![^\W_])")


class UnknownWord(NamedTuple):
    """A word of a source that is copied: its letters, and the columns of its tokens in the
    source."""

    word: str
    columns: tuple[int, ...]


@cache
def known_words(model: str) -> frozenset[str] | None:
    """The words of a model's training text, in lower case; None for a model that copies nothing."""
    file = shipped_models.WEIGHTS / model / FILE
    if model not in shipped_models.names() or not file.is_file():
        return None
    return frozenset(json.loads(file.read_text("utf-8"))["words"].split())


def training_words(texts: Iterable[str]) -> list[str]:
    """The words, in lower case, and numbers that a model has learned from its training texts. What
    stands with a capital alone, and not only at the beginning of a text, is a name."""
    common, names, numbers = set[str](), Counter[str](), Counter[str]()
    for text in texts:
        for at, match in enumerate(WORD.finditer(text)):
            word = match[0]
            if word[0].isdigit():
                numbers[word] += 1
            elif at and word[0].isupper():
                names[word.casefold()] += 1
            else:
                common.add(word.casefold())
    seen = (
        word
        for counts, least in ((names, LEAST_NAMES), (numbers, LEAST_NUMBERS))
        for word, count in counts.items()
        if count >= least
    )
    return sorted(common.union(seen))


def unknown_words(
    text: str, tokens: Tokens | Stream, known: frozenset[str] | None
) -> tuple[UnknownWord, ...]:
    """The words of a source that its model has not learned, in their order."""
    if known is None:
        return ()
    words = []
    for match in WORD.finditer(text):
        word = match[0]
        if not (word[0].isdigit() or word[0].isupper()) or _is_known(word.casefold(), known):
            continue
        columns = [
            at
            for at, (start, end) in enumerate(tokens.spans)
            if match.start() <= start < end <= match.end()
        ]
        if len(columns) < 2:  # one piece is a word of the vocabulary
            continue
        words.append(UnknownWord(word, tuple(columns)))
    return tuple(words)


def _is_known(word: str, known: frozenset[str]) -> bool:
    stems = (word.removesuffix(ending) for ending in INFLECTIONS)
    return word in known or any(stem in known for stem in stems)


def copied_words(recording: Recording) -> tuple[str, ...]:
    """The unknown words of a recorded source that stand in the output."""
    known = known_words(recording.model.name)
    words = unknown_words(recording.text, recording.streams[0], known)
    stand = set(WORD.findall(recording.target or ""))
    return tuple(one.word for one in words if one.word in stand)
