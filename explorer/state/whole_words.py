"""Words that a decoder predicts next, whole where a prediction is only their first piece."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.state import cache, models
from explorer.state.scheduling import turn
from explorer.state.settings import truncate
from models.capabilities import TextGenerator
from models.model import Model
from models.results import WholeWord, softmax

MAX_WORDS = 3  # of a list, the likeliest first
MIN_PROBABILITY = 0.05  # the probability below which a piece is not followed
MOST_PIECES = 6
CONTINUATION_MARK = "\u2027"  # what the label of a piece that goes on inside a word begins with


def whole_words(
    model: str,
    text: str,
    continuation: tuple[int, ...],
    next_tokens: Sequence[tuple[int, float]],
    limit: int = MAX_WORDS,
) -> dict[int, WholeWord]:
    """The words that the likeliest next tokens begin, by the token, each gone on with the likeliest
    piece until the word ends; none for a token that is a whole word.

    then: what was written after the text. firsts: tokens with their probabilities, the likeliest
    first, of which `most` are followed. Kept by its cause.
    """
    if models.facts(model)["kind"] != "decoder" or not models.capabilities(model).writes:
        return {}
    followed = tuple(
        (id, probability)
        for id, probability in next_tokens[:limit]
        if probability >= MIN_PROBABILITY
    )
    labels = models.labels(model, [id for id, _ in followed])
    followed = tuple(
        first for first, label in zip(followed, labels) if label[-1:].isalnum() and label.strip()
    )
    if not followed:
        return {}
    loaded = models.handle(model)

    def complete() -> dict[int, WholeWord]:
        try:
            with turn():
                writing = loaded.generate(truncate(text), continuation)
                n, words = len(writing.ids), {}
                for id, probability in followed:
                    while len(writing.ids) > n:
                        writing.back()
                    words[id] = _complete_word(loaded, writing, id, probability)
        except ValueError:  # no room for a token more
            return {}
        return {id: each for id, each in words.items() if len(each.pieces) > 1}

    ids = tuple(id for id, _ in followed)
    return cache.get(("whole", model, loaded.card.fingerprint, text, continuation, ids), complete)


def _complete_word(loaded: Model, writing: TextGenerator, id: int, probability: float) -> WholeWord:
    """The word that a token begins; its pieces are added to the writing."""
    pieces, cut = loaded.labels([id]), False
    writing.add(id)
    while not writing.is_full:
        likely = softmax(writing.logits)
        best = int(likely.argmax())
        (label,) = loaded.labels([best])
        if not (label.startswith(CONTINUATION_MARK) and label[1:].isalpha()):
            break
        if cut := len(pieces) == MOST_PIECES:
            break
        pieces.append(label)
        probability *= float(likely[best])
        writing.add(best)
    word = pieces[0] + "".join(piece.removeprefix(CONTINUATION_MARK) for piece in pieces[1:])
    return WholeWord(word + "…" * cut, tuple(pieces), probability, cut)
