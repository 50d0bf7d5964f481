"""A model's prediction at one place: probabilities over the vocabulary, what temperature, top-k and
top-p make of them, and the draw.

Axis legend: `id` runs over the vocabulary, `rank` counts words from the likeliest, from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from explorer.figures.csv import Columns, long_form
from explorer.figures.formatting import tenths
from explorer.wording.templates import sentences
from models.contract.recording import CONTINUES, Stream
from models.contract.results import Sampling, WholeWord, mask_pattern, probabilities, softmax

MOST_ROWS = 10


def first_piece(word: WholeWord, plain: Callable[[str], str] = str) -> str:
    """A token that begins a word of several, and the word: "N… (Nepali)". plain: writes each."""
    first = plain(word.pieces[0])
    return sentences("predictions", "word")("begins", first=first, word=plain(word.word))


def of_whole(word: WholeWord) -> str:
    """The probability of all of a word of several tokens, as it is written."""
    return "at most " * word.cut + tenths(word.own)


def as_whole(word: WholeWord | None, plain: Callable[[str], str] = str) -> str:
    """A sentence on a word of several tokens and the probability of all of it, "" for none, to
    stand behind one that names it by its first token."""
    if word is None:
        return ""
    return sentences("predictions", "word")("as_whole", word=plain(word.word), p=of_whole(word))


def without_mark(label: str, after_special: bool) -> str:
    """A token's label; after a special token it continues no word, and has no mark for that."""
    return label.removeprefix(CONTINUES) if after_special else label


# ---- one distribution ----


@dataclass(frozen=True, eq=False)
class Distribution:
    """A model's prediction at one place.

    logits (id); own (id), their softmax, and drawn (id), what the next word is drawn from; both sum
    to 1. order (rank): ids, the likeliest first. kept (id), True for a word that may be drawn."""

    logits: np.ndarray
    sampling: Sampling
    own: np.ndarray
    drawn: np.ndarray
    order: np.ndarray

    @property
    def is_candidate(self) -> np.ndarray:
        return self.drawn > 0

    def rank(self, id: int) -> int:
        """Number of likelier words; of two alike, the one with the lower id comes first."""
        return int(np.flatnonzero(self.order == id)[0])


def distribution(logits: np.ndarray, sampling: Sampling = Sampling()) -> Distribution:
    """The distribution that scores (id) make, and what is drawn from it."""
    order = np.argsort(-logits, kind="stable")
    model_probabilities = softmax(logits)
    unmodified = sampling == Sampling()
    return Distribution(
        logits,
        sampling,
        model_probabilities,
        model_probabilities if unmodified else probabilities(logits, sampling, order),
        order,
    )


def entropy(p: np.ndarray) -> float:
    """-sum p ln p, in nats. p (id) sums to 1."""
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


@dataclass(frozen=True)
class Word:
    """One word of a distribution: what it is, how many are likelier, and its two probabilities.
    is_candidate: True where it may be drawn."""

    id: int
    rank: int
    own: float
    drawn: float
    is_candidate: bool


def top_words(
    distribution: Distribution, extra_ids: Sequence[int] = (), most: int = MOST_ROWS
) -> tuple[Word, ...]:
    """The likeliest words, `most` of them, and where they are further down the ids `extra_ids`."""
    first = min(most, len(distribution.order))
    ranks = (
        *range(first),
        *sorted({distribution.rank(id) for id in extra_ids} - set(range(first))),
    )
    ids = distribution.order[list(ranks)].tolist()
    return tuple(
        Word(
            id,
            rank,
            float(distribution.own[id]),
            float(distribution.drawn[id]),
            bool(distribution.drawn[id] > 0),
        )
        for rank, id in zip(ranks, ids)
    )


@dataclass(frozen=True)
class RemainingWords:
    """All words beside those of a list, together: their number, and their probabilities' sums."""

    n: int
    own: float
    drawn: float


def remaining_words(distribution: Distribution, words: Sequence[Word]) -> RemainingWords:
    """The other words of a distribution, summed."""
    rest_ids = np.delete(distribution.order, [word.rank for word in words])
    return RemainingWords(
        len(rest_ids),
        float(distribution.own[rest_ids].sum()),
        float(distribution.drawn[rest_ids].sum()),
    )


# ---- how its numbers are made ----


@dataclass(frozen=True)
class ProbabilitySteps:
    """Steps by which one word's probability comes about: divided = score / temperature; tempered =
    e^divided / e^log_total, where log_total is the logarithm of the sum of e^(score / temperature)
    over the vocabulary; n_candidates words hold candidate_sum of that; drawn = tempered /
    candidate_sum."""

    divided: float
    log_total: float
    tempered: float
    n_candidates: int
    candidate_sum: float
    drawn: float


def probability_steps(distribution: Distribution, id: int) -> ProbabilitySteps:
    """The arithmetic of one kept word. Raises ValueError for temperature 0, which divides by
    nothing and takes the likeliest."""
    temperature = distribution.sampling.temperature
    if temperature == 0:
        raise ValueError("at temperature 0 nothing is divided: the likeliest word is taken")
    z = distribution.logits.astype(np.float64) / temperature
    peak = z.max()
    log_total = float(peak + np.log(np.exp(z - peak).sum()))
    tempered = np.exp(z - log_total)
    return ProbabilitySteps(
        float(z[id]),
        log_total,
        float(tempered[id]),
        int(distribution.is_candidate.sum()),
        float(tempered[distribution.is_candidate].sum()),
        float(distribution.drawn[id]),
    )


def bits(nats: float) -> float:
    """The same amount in bits."""
    return nats / log(2)


def perplexity(nats: float) -> float:
    """Among how many equally likely words somebody with this entropy would be as unsure: e to it,
    the perplexity of one place."""
    return float(np.exp(nats))


# ---- the draw ----


@dataclass(frozen=True)
class Draw:
    """The next word and how it was drawn: `number`, at random from 0 to 1, falls into the word's
    share of the line on which all kept words lie one after another, the likeliest first: from
    `start` to `end`. For temperature 0, where nothing is drawn, `number` is None."""

    id: int
    number: float | None
    start: float
    end: float


def draw(distribution: Distribution, seed: int, place: int) -> Draw:
    """The next word. The random number depends on the seed and on the place (how many tokens stand
    before) alone: the same seed and text always give the same words, and a step taken back and done
    again gives the same word."""
    if distribution.sampling.temperature == 0:
        return Draw(int(distribution.order[0]), None, 0.0, 1.0)
    number = float(np.random.default_rng((seed, place)).random())
    ends = np.cumsum(distribution.drawn[distribution.order])
    last = int(np.flatnonzero(distribution.is_candidate[distribution.order])[-1])
    # Rounding may leave the end of the line just under 1.
    rank = min(int(np.searchsorted(ends, number, side="right")), last)
    return Draw(
        int(distribution.order[rank]),
        number,
        float(ends[rank - 1]) if rank else 0.0,
        float(ends[rank]),
    )


# ---- the words of a sentence ----


def typed_masks(stream: Stream, mask: str) -> tuple[int, ...]:
    """The places where a reader typed the mask token; mask: what it is called, "" for none."""
    return tuple(
        at
        for at, (token, special) in enumerate(zip(stream.tokens, stream.special))
        if mask and token == mask and not special
    )


def first_mask(text: str) -> str:
    """The first mask token in a text as it is typed, "" for none."""
    match = mask_pattern().search(text)
    return match.group() if match else ""


def default_masked_word(stream: Stream, mask: str = "") -> int | None:
    """The word to begin with: the first typed `mask`, else the last word that is a single token and
    is written in letters, else the last token of the text; None for none."""
    if typed := typed_masks(stream, mask):
        return typed[0]
    places = np.flatnonzero(~stream.special)
    words = [
        at
        for at in map(int, places)
        if stream.tokens[at].isalpha()
        and len(stream.tokens[at]) > 1
        and not is_piece(stream.tokens, at)
    ]
    return int(words[-1] if words else places[-1]) if len(places) else None


def is_piece(tokens: Sequence[str], place: int) -> bool:
    """True for a token that is only a part of a word, so that the other parts tell of it."""
    return (
        tokens[place].startswith(CONTINUES)
        or place + 1 < len(tokens)
        and tokens[place + 1].startswith(CONTINUES)
    )


# ---- as tables ----


def columns(distribution: Distribution, labels: Sequence[str]) -> Columns:
    """The whole distribution as named columns, the likeliest first. labels (id)."""
    return {
        "rank": np.arange(1, len(distribution.order) + 1),
        "token": [labels[id] for id in distribution.order],
        "id": distribution.order,
        "logit": distribution.logits[distribution.order],
        "probability": distribution.own[distribution.order],
        "drawn from": distribution.drawn[distribution.order],
    }


def attention_columns(rows: np.ndarray, tokens: Sequence[str]) -> Columns:
    """One token's attention as named columns, a row for each head and token. rows (layer, head,
    key)."""
    layers, heads, _ = map(range, rows.shape)
    labels = [f"{place} {token}" for place, token in enumerate(tokens)]
    return long_form({"layer": layers, "head": heads, "token": labels}, rows, "weight")
