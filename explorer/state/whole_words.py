"""Words that a decoder predicts next, whole where a prediction is only their first piece."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.state import cache, models
from explorer.state.scheduling import turn
from explorer.state.settings import beginning
from models.capabilities import TextGenerator
from models.model import Model
from models.results import Whole, softmax

MOST_WORDS = 3  # of a list, the likeliest first
LEAST = 0.05  # the probability below which a piece is not followed
MOST_PIECES = 6
CONTINUES = "\u2027"  # what the label of a piece that goes on inside a word begins with


def whole_words(
    model: str,
    text: str,
    then: tuple[int, ...],
    firsts: Sequence[tuple[int, float]],
    most: int = MOST_WORDS,
) -> dict[int, Whole]:
    """The words that the likeliest next tokens begin, by the token, each gone on with the likeliest
    piece until the word ends; none for a token that is a whole word.

    then: what was written after the text. firsts: tokens with their probabilities, the likeliest
    first, of which `most` are followed. Kept by its cause.
    """
    if models.facts(model)["kind"] != "decoder" or not models.offers(model).writes:
        return {}
    followed = tuple((id, own) for id, own in firsts[:most] if own >= LEAST)
    labels = models.labels(model, [id for id, _ in followed])
    followed = tuple(
        first for first, label in zip(followed, labels) if label[-1:].isalnum() and label.strip()
    )
    if not followed:
        return {}
    loaded = models.handle(model)

    def read() -> dict[int, Whole]:
        try:
            with turn():
                writing = loaded.generate(beginning(text), then)
                n, made = len(writing.ids), {}
                for id, own in followed:
                    while len(writing.ids) > n:
                        writing.back()
                    made[id] = _whole(loaded, writing, id, own)
        except ValueError:  # no room for a token more
            return {}
        return {id: each for id, each in made.items() if len(each.pieces) > 1}

    ids = tuple(id for id, _ in followed)
    return cache.get(("whole", model, loaded.card.fingerprint, text, then, ids), read)


def _whole(loaded: Model, writing: TextGenerator, id: int, own: float) -> Whole:
    """The word that a token begins; its pieces are added to the writing."""
    pieces, cut = loaded.labels([id]), False
    writing.add(id)
    while not writing.is_full:
        likely = softmax(writing.logits)
        best = int(likely.argmax())
        (label,) = loaded.labels([best])
        if not (label.startswith(CONTINUES) and label[1:].isalpha()):
            break
        if cut := len(pieces) == MOST_PIECES:
            break
        pieces.append(label)
        own *= float(likely[best])
        writing.add(best)
    word = pieces[0] + "".join(piece.removeprefix(CONTINUES) for piece in pieces[1:])
    return Whole(word + "…" * cut, tuple(pieces), own, cut)
