"""Text that is held out from training, with nothing in training that is nearly the same.

Sentences are compared as `folded`: lower case, contractions spelled out, punctuation dropped, all
names one name, all numbers one number. Two are near duplicates where one word added, dropped or
replaced makes them equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

from models.training.grammar import MEN, WOMEN

PER_MILLE = 10
FEWEST_WORDS, MOST_CROWDED = 4, 40
OTHER_NAMES = (
    "Tom",
    "John",
    "Bob",
    "Mary",
    "Jane",
    "Alice",
    "Jack",
    "Bill",
    "Jim",
    "Mike",
    "Marie",
    "Jean",
    "Linda",
    "Ken",
    "Ann",
)
NAME = re.compile(rf"\b({'|'.join(sorted({*MEN, *WOMEN, *OTHER_NAMES}))})\b")
SHORT_FORMS = (
    ("n't", " not"),
    ("'re", " are"),
    ("'ve", " have"),
    ("'ll", " will"),
    ("'m", " am"),
    ("'d", " would"),
    ("'s", " is"),
)


def folded(text: str) -> tuple[str, ...]:
    """The words by which two sentences are compared."""
    text = (
        NAME.sub("nnn", text.replace("’", "'"))
        .lower()
        .replace("can't", "cannot")
        .replace("won't", "will not")
    )
    for short, long in SHORT_FORMS:
        text = text.replace(short, long)
    return tuple(re.sub(r"[0-9]+", "000", word) for word in re.findall(r"[^\W_]+", text))


def divide(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """(training, held-out): places in `texts`. Of the sentences of at least 4 words a fixed share,
    chosen by their letters, is held out; what is nearly the same as one of them belongs to neither.

    A sentence with more than 40 near duplicates is trained on instead: holding it out would cost a
    whole family of sentences.
    """
    words = [folded(text) for text in texts]
    by_pattern: dict[int, list[int]] = {}
    for at, sentence in enumerate(words):
        for pattern in _patterns(sentence):
            by_pattern.setdefault(pattern, []).append(at)
    held_out, dropped = set(), set()
    for at, sentence in enumerate(words):
        if len(sentence) < FEWEST_WORDS or crc32(" ".join(sentence).encode()) % 1000 >= PER_MILLE:
            continue
        near_duplicates = {
            other for pattern in _patterns(sentence) for other in by_pattern[pattern]
        }
        if len({words[other] for other in near_duplicates}) <= MOST_CROWDED:
            held_out.add(at)
            dropped |= near_duplicates
    return [at for at in range(len(texts)) if at not in dropped and at not in held_out], sorted(
        held_out
    )


def _patterns(words: tuple[str, ...]) -> set[int]:
    """Two sentences share one of these if they are near duplicates: the sentence, and it with each
    word dropped or left open."""
    return (
        {hash(words)}
        | {hash((*words[:at], *words[at + 1 :])) for at in range(len(words))}
        | {hash((*words[:at], None, *words[at + 1 :])) for at in range(len(words))}
    )
