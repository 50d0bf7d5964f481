"""Words that a decoder predicts next, whole where a prediction is only their first piece."""

from __future__ import annotations

from collections.abc import Sequence

from models.capabilities import TextGenerator
from models.model import Model
from models.results import WholeWord, softmax

MAX_WORDS = 3  # of a list, the likeliest first
MIN_PROBABILITY = 0.05  # the probability below which a piece is not followed
MOST_PIECES = 6
CONTINUATION_MARK = "\u2027"  # what the label of a piece that goes on inside a word begins with


def followed_tokens(
    model: Model, next_tokens: Sequence[tuple[int, float]], limit: int = MAX_WORDS
) -> tuple[tuple[int, float], ...]:
    """Those of the next tokens that may begin a longer word, with their probabilities; none for a
    model that continues no text. next_tokens: the likeliest first; `limit` of them are followed."""
    if model.card.kind != "decoder" or not model.capabilities.writes:
        return ()
    likely = [
        (int(id), float(probability))
        for id, probability in next_tokens[:limit]
        if probability >= MIN_PROBABILITY
    ]
    labels = model.labels([id for id, _ in likely])
    return tuple(token for token, label in zip(likely, labels) if label[-1:].isalnum())


def whole_words(
    model: Model, text: str, continuation: tuple[int, ...], next_tokens: Sequence[tuple[int, float]]
) -> dict[int, WholeWord]:
    """The words that next tokens begin, by the token, each gone on with the likeliest piece until
    the word ends; none for a token that is a whole word.

    continuation: what was written after the text. next_tokens: tokens with their probabilities.
    """
    if not next_tokens:
        return {}
    try:
        writing = model.generate(text, continuation)
        n, words = len(writing.ids), {}
        for id, probability in next_tokens:
            while len(writing.ids) > n:
                writing.back()
            words[id] = _complete_word(model, writing, id, probability)
    except ValueError:  # no room for a token more
        return {}
    return {id: each for id, each in words.items() if len(each.pieces) > 1}


def _complete_word(model: Model, writing: TextGenerator, id: int, probability: float) -> WholeWord:
    """The word that a token begins; its pieces are added to the writing."""
    pieces, cut = model.labels([id]), False
    writing.add(id)
    while not writing.is_full:
        likely = softmax(writing.logits)
        best = int(likely.argmax())
        (label,) = model.labels([best])
        if not (label.startswith(CONTINUATION_MARK) and label[1:].isalpha()):
            break
        if cut := len(pieces) == MOST_PIECES:
            break
        pieces.append(label)
        probability *= float(likely[best])
        writing.add(best)
    word = pieces[0] + "".join(piece.removeprefix(CONTINUATION_MARK) for piece in pieces[1:])
    return WholeWord(word + "…" * cut, tuple(pieces), probability, cut)
