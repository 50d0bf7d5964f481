"""A question of the quiz: one that a recording answers, and its answers, of which one is right by a
stated margin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

Slots = tuple[tuple[str, str | float], ...]

# Kinds that are read off a picture: the word that a word attends to, and that receives most.
LOOKS, RECEIVED = "looks", "received"
# Kinds that are reasoned. What is predicted; which of four pictures; what changes where a part, a
# word or a place is another; and what follows from how attention and FFN are made.
NEXT, MASKED, BACK, AHEAD = "next", "masked", "back", "ahead"
SCALE, POSITIONS, RESIDUAL, NORM, HEADS = "scale", "positions", "residual", "norm", "heads"
CHANGED, SWAPPED, ADDED = "changed", "swapped", "added"
SUM, CONVEX, MASK, FFN = "sum", "convex", "mask", "ffn"
# The kinds in the order in which one of each is asked, and by how much the right answer leads at
# least: a probability, a weight or a mean of weights, a cosine, a factor, words; 0 for a law, which
# holds for every text.
MIN_MARGIN = {
    NEXT: 0.05,
    MASKED: 0.05,
    BACK: 0.3,
    SCALE: 0.05,
    MASK: 0.0,
    CHANGED: 0.1,
    SUM: 0.0,
    LOOKS: 0.1,
    POSITIONS: 0.15,
    FFN: 0.0,
    SWAPPED: 0.3,
    RESIDUAL: 0.1,
    HEADS: 0.02,
    ADDED: 0.0,
    CONVEX: 0.0,
    NORM: 2.0,
    AHEAD: 0.3,
    RECEIVED: 0.1,
}
READ_OFF = (LOOKS, RECEIVED)
FEWEST_ANSWERS, MOST_ANSWERS = 3, 4  # answers


@dataclass(frozen=True)
class AnswerOption:
    """One answer, and what was measured of it: a word with its token, a head, or by its key a
    sentence of the question's kind, which may name the words `word` and `other`. picture: a
    pattern, its rows divided by "/", a digit from 0 to 9 for each weight."""

    value: float = 0.0
    word: str = ""
    token: int = -1
    head: int = -1
    layer: int = -1
    key: str = ""
    other: str = ""
    picture: str = ""

    @property
    def name(self) -> str:
        """Name that tells it from other answers."""
        parts = (self.key, self.word, self.other)
        return " ".join(filter(None, parts)) or f"Layer {self.layer}, head {self.head}"


@dataclass(frozen=True)
class Question:
    """One question about one recording.

    kind: one of MIN_MARGIN. form: which of the kind's wordings, "" for its only one. choices: in
    order, the right one first until they are shuffled; right: its index. margin: its lead. slots:
    words and numbers that its sentences name. covers: the answer is the model's prediction, which
    is covered until the reveal. attention, layer, head: the question's head, "" and -1 where it is
    about none. words: the words in question. token: that word's; key: the other word's. edits:
    those that it is about, and text: the other text, "" for none. interest: the rank of questions
    of a kind. page and address: the tab and the choices that show the answer. rival: what the model
    says second where that is no word, and so no answer."""

    kind: str
    form: str = ""
    choices: tuple[AnswerOption, ...] = ()
    right: int = 0
    margin: float = 0.0
    slots: Slots = ()
    covers: bool = False
    attention: str = ""
    layer: int = -1
    head: int = -1
    words: tuple[str, ...] = ()
    token: int = -1
    key: int = -1
    stream: str = ""
    edits: str = ""
    text: str = ""
    interest: float = 0.0
    page: str = "heads"
    address: tuple[tuple[str, str], ...] = ()
    rival: AnswerOption | None = None

    @property
    def answer(self) -> AnswerOption:
        """The right one."""
        return self.choices[self.right]

    @property
    def second(self) -> AnswerOption:
        """The second of what is measured: an answer, or what is none."""
        others = (each for each in self.choices if each is not self.answer)
        return self.rival or max(others, key=lambda each: each.value)

    @property
    def shows_head(self) -> bool:
        """True for a question beside which the pattern of its head stands."""
        return self.kind == SWAPPED or self.form == "rule"

    @property
    def exchanges(self) -> bool:
        """True for a question in which two words are exchanged."""
        return self.kind == SWAPPED or self.form in ("order", "causal") and self.kind == POSITIONS

    @property
    def is_reason(self) -> bool:
        """True for a question of what changes and why, or of what follows of how a model is made;
        False for one that begins with what a head's picture shows."""
        return self.kind not in READ_OFF


def options(right: str, *wrong: str, value: float = 0.0) -> tuple[AnswerOption, ...]:
    """Answers by their keys, the right one first, with what was measured."""
    return AnswerOption(value, key=right), *(AnswerOption(key=each) for each in wrong)


def most_question(ranked: list[AnswerOption], about: Question) -> Iterator[Question]:
    """The question which of some has most, from all that could be shown, the most first; nothing
    where the first does not lead by enough, or there are too few."""
    choices = tuple(ranked[:MOST_ANSWERS])
    if len(choices) < FEWEST_ANSWERS:
        return
    margin = choices[0].value - (about.rival or choices[1]).value
    names = {each.name.casefold() for each in choices}
    if margin >= MIN_MARGIN[about.kind] and len(names) == len(choices):
        yield replace(about, choices=choices, margin=margin)


def answer_names(labels: tuple[str, ...], all_words: bool) -> tuple[tuple[str, ...], np.ndarray]:
    """The names of words among answers, and a mask of those that can be answers. Words that occur
    once, or all of them; repeated ones have their number, as "the (2)"."""
    folded = [label.casefold() for label in labels]
    counts = Counter(folded)
    unique = np.array([counts[label] == 1 for label in folded], bool)
    if not all_words:
        return labels, unique
    numbers = [folded[: at + 1].count(label) for at, label in enumerate(folded)]
    names = (
        label if one else f"{label} ({number})"
        for label, one, number in zip(labels, unique, numbers)
    )
    return tuple(names), np.ones(len(labels), bool)
