"""Hand-made sentence pairs with their word alignments, to measure whether cross-attention looks
where a person would.

Written for this project; none of them is training text. Each entry: English, French, and which
French word stands for which English one, as "english=french". A row of cross-attention counts as
right where its largest weight lies on a token of the English word, in the row that says the first
token of the French one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from models.own_model import OwnModel, record
from models.recording import Stream

PAIRS = (
    (
        "The black cat sleeps on the old chair.",
        "Le chat noir dort sur la vieille chaise.",
        "black=noir cat=chat sleeps=dort on=sur old=vieille chair=chaise",
    ),
    (
        "We bought a red car and a white house.",
        "Nous avons acheté une voiture rouge et une maison blanche.",
        "bought=acheté red=rouge car=voiture and=et white=blanche house=maison",
    ),
    (
        "My brother never eats green apples.",
        "Mon frère ne mange jamais de pommes vertes.",
        "My=Mon brother=frère never=jamais eats=mange green=vertes apples=pommes",
    ),
    (
        "She lost her key in the garden.",
        "Elle a perdu sa clé dans le jardin.",
        "She=Elle lost=perdu key=clé in=dans garden=jardin",
    ),
    (
        "The teacher gave us a difficult question.",
        "Le professeur nous a donné une question difficile.",
        "teacher=professeur gave=donné us=nous difficult=difficile question=question",
    ),
    (
        "I would like to drink some cold water.",
        "J'aimerais boire de l'eau froide.",
        "drink=boire cold=froide water=eau",
    ),
    (
        "His sister speaks French very well.",
        "Sa sœur parle très bien français.",
        "sister=sœur speaks=parle French=français very=très well=bien",
    ),
    (
        "Where did you find this interesting book?",
        "Où as-tu trouvé ce livre intéressant ?",
        "Where=Où find=trouvé this=ce interesting=intéressant book=livre",
    ),
    (
        "The children are playing in the street.",
        "Les enfants jouent dans la rue.",
        "children=enfants playing=jouent street=rue",
    ),
    (
        "It is raining, so we will stay at home.",
        "Il pleut, alors nous resterons à la maison.",
        "raining=pleut we=nous stay=resterons home=maison",
    ),
    (
        "He wants to buy a new bicycle tomorrow.",
        "Il veut acheter un nouveau vélo demain.",
        "wants=veut buy=acheter new=nouveau bicycle=vélo tomorrow=demain",
    ),
    (
        "Your father works in a big city.",
        "Votre père travaille dans une grande ville.",
        "father=père works=travaille big=grande city=ville",
    ),
)


@dataclass(frozen=True)
class WordAlignment:
    """The alignment of one pair of words: `right` (layer, head) bool, and `mean` (layer) for the
    mean of a layer's heads."""

    english: str
    french: str
    right: np.ndarray
    mean: np.ndarray


def word_alignments(handle: OwnModel) -> list[WordAlignment]:
    """Every hand-made pair of words, looked up in the cross-attention of the forced translation."""
    alignments = []
    for english, french, words in PAIRS:
        recording = record(handle, english, target=french)
        cross = recording.attention[-1].pattern
        for pair in words.split():
            source, target = pair.split("=")
            keys = _tokens_of(source, recording.stream("encoder"), english)
            row = (
                _tokens_of(target, recording.stream("decoder"), french)[0] - 1
            )  # the row that says it
            best = cross[:, :, row].argmax(axis=-1)
            alignments.append(
                WordAlignment(
                    source,
                    target,
                    np.isin(best, keys),
                    np.isin(cross[:, :, row].mean(axis=1).argmax(axis=-1), keys),
                )
            )
    return alignments


def accuracy(handle: OwnModel) -> dict[str, str | float]:
    """The share of word pairs that are right: by the mean of a layer's heads, for the best layer,
    and by the best single head."""
    alignments = word_alignments(handle)
    mean = np.mean([alignment.mean for alignment in alignments], axis=0)
    heads = np.mean([alignment.right for alignment in alignments], axis=0)
    layer, head = np.unravel_index(heads.argmax(), heads.shape)
    return {
        "word pairs": len(alignments),
        "alignment, mean of a layer's heads": f"{mean.max():.3f} L{mean.argmax()}",
        "alignment, best head": f"{heads.max():.3f} L{layer}H{head}",
    }


def _tokens_of(word: str, stream: Stream, text: str) -> list[int]:
    """The places of the tokens that make up a word's first occurrence as a whole word."""
    if not (match := re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)):
        raise ValueError(f"{word!r} is no word of {text!r}")
    start, end = match.span()
    return [
        at
        for at, (first, last) in enumerate(stream.spans)
        if first < end and last > start and first >= 0
    ]
