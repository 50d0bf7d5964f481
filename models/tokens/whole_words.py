"""Words that a decoder predicts next, whole where a prediction is only their first piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from models.contract.capabilities import TextGenerator
from models.contract.model import Model
from models.contract.recording import CONTINUES
from models.contract.results import WholeWord, largest, softmax

MAX_WORDS = 3  # of a list, the likeliest first
MIN_PROBABILITY = 0.05  # the probability below which only a piece that is no word is followed
MAX_LISTED = 10  # tokens of a list
MOST_PIECES = 6
SHORT_WORDS = frozenset(
    "A I Ah Am An As At Be By Do Go He I If In Is It Me Mr Ms My No Of Oh Ok On"
    " Or So To Up Us We".split()
)


def followed_tokens(
    model: Model,
    next_tokens: Sequence[tuple[int, float]],
    limit: int = MAX_WORDS,
    least: float = MIN_PROBABILITY,
) -> tuple[tuple[int, float], ...]:
    """Those of the next tokens that may begin a longer word, with their probabilities; none for a
    model that continues no text. next_tokens: the likeliest first; `limit` of them are followed,
    those of a probability of at least `least`, and of all others those of a letter or two that are
    no word."""
    if model.card.kind != "decoder" or not model.capabilities.writes:
        return ()
    likely = [(int(id), float(probability)) for id, probability in next_tokens[:MAX_LISTED]]
    labels = model.labels([id for id, _ in likely])
    return tuple(
        token
        for at, (token, label) in enumerate(zip(likely, labels))
        if label[-1:].isalnum() and ((at < limit and token[1] >= least) or is_initial(label))
    )


def is_initial(label: str) -> bool:
    """True for a capital, or a capital and a letter, which is no word."""
    label = label.removeprefix(CONTINUES)  # after a line break and after a chat's template
    return len(label) <= 2 and label.isalpha() and label[0].isupper() and label not in SHORT_WORDS


def likely_tokens(logits: np.ndarray) -> list[tuple[int, float]]:
    """The tokens of a list with their probabilities, the likeliest first."""
    p = softmax(logits)
    return [(int(id), float(p[id])) for id in largest(p, MAX_LISTED)]


@dataclass
class _Word:
    """A word in the making: its tokens, their labels, and their probability."""

    ids: list[int]
    pieces: list[str]
    probability: float
    cut: bool = False

    def goes_on(self, model: Model, logits: np.ndarray) -> bool:
        """Add the likeliest next token where it is a piece of the word; True where it is."""
        best = int(logits.argmax())
        (label,) = model.labels([best])
        ends = best in model.tokenizer.eos_ids
        if ends or not (label.startswith(CONTINUES) and label[1:].isalpha()):
            return False
        self.cut = len(self.pieces) == MOST_PIECES
        if not self.cut:
            self.ids.append(best)
            self.pieces.append(label)
            self.probability *= float(softmax(logits)[best])
        return not self.cut

    @property
    def whole(self) -> WholeWord:
        """The word as it is now."""
        first, *rest = self.pieces
        word = first + "".join(piece.removeprefix(CONTINUES) for piece in rest)
        pieces, ids = tuple(self.pieces), tuple(self.ids)
        return WholeWord(word + "…" * self.cut, pieces, ids, self.probability, self.cut)


def whole_words(
    model: Model, writing: TextGenerator, next_tokens: Sequence[tuple[int, float]]
) -> dict[int, WholeWord]:
    """The words that next tokens of a text begin, by the token, each gone on with the likeliest
    piece until the word ends; none for a token that is a whole word. All are read at once.

    next_tokens: tokens with their probabilities, of `followed_tokens`.
    """
    labels = model.labels([id for id, _ in next_tokens])
    words = [_Word([id], [label], p) for (id, p), label in zip(next_tokens, labels)]
    unfinished = words
    while unfinished and len(writing.ids) + len(unfinished[0].ids) <= writing.n_positions:
        logits = writing.logits_after([each.ids for each in unfinished])
        unfinished = [
            each for each, scores in zip(unfinished, logits) if each.goes_on(model, scores)
        ]
    return {each.ids[0]: each.whole for each in words if len(each.pieces) > 1}


def probabilities(
    writing: TextGenerator, words: Iterable[tuple[int, ...]], first: np.ndarray
) -> list[float]:
    """The probability of each of some words (ids) after a text, the product of their tokens'.
    first: the probability of each token (id) there; 0 for a word that there is no room for."""
    words = list(words)
    p = [float(first[ids[0]]) for ids in words]
    for n in range(1, max(map(len, words), default=0)):
        longer = [at for at, ids in enumerate(words) if len(ids) > n]
        if len(writing.ids) + n > writing.n_positions:
            return [0.0 if at in longer else each for at, each in enumerate(p)]
        for at, scores in zip(longer, writing.logits_after([words[at][:n] for at in longer])):
            p[at] *= float(softmax(scores)[words[at][n]])
    return p
