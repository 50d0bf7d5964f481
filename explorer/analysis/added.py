"""What positions do to a sentence: lengths of what is added up, their part in the scores, and the
room that words and positions share.

Axis legend: token, query, key as in `models/recording.py`; offset: key minus query, in tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.csv import Columns
from explorer.analysis.positions import attention_of
from models.recording import Attention, Recording, Stream


@dataclass(frozen=True)
class Added:
    """Word + position, (token): lengths of the word's vector as the stream begins with it, of the
    position's and of their sum, and the cosine between word and position."""

    word: np.ndarray
    encoding: np.ndarray
    both: np.ndarray
    cosine: np.ndarray

    @property
    def ends(self) -> tuple[int, int]:
        """The tokens with the shortest and with the longest word vector."""
        return int(self.word.argmin()), int(self.word.argmax())


def added(stream: Stream) -> Added:
    """What positions add to each token of a stream. Raises KeyError for a stream recorded without
    positions."""
    word, encoding, both = (
        stream.at(site).astype(np.float64) for site in ("embed", "pos.wrote", "embed+pos")
    )
    long, far, sum_ = (np.linalg.norm(each, axis=1) for each in (word, encoding, both))
    return Added(long, far, sum_, (word * encoding).sum(axis=1) / np.maximum(long * far, 1e-30))


@dataclass(frozen=True)
class ByOffset:
    """A head's scores gathered by offset, key minus query: (offset). `pairs` is how many pairs of
    tokens have that offset. `together` and `alone`: mean score with positions and without;
    `places`: mean of what position x position gives to it, None above the first layer."""

    offset: np.ndarray
    pairs: np.ndarray
    together: np.ndarray
    alone: np.ndarray
    places: np.ndarray | None

    @property
    def best(self) -> int:
        """The offset with the highest mean score, with positions."""
        return int(self.offset[self.together.argmax()])

    @property
    def spread(self) -> tuple[float, float]:
        """By how much the means vary over the offsets (standard deviation), with positions and
        without."""
        return float(self.together.std()), float(self.alone.std())

    @property
    def lines(self) -> tuple[tuple[str, np.ndarray], ...]:
        """What is known by offset, each under its name."""
        drawn = (("with positions", self.together), ("without", self.alone))
        return drawn if self.places is None else (*drawn, ("position × position", self.places))


def by_offset(plain: Recording, bare: Recording, stream: str, layer: int, head: int) -> ByOffset:
    """What positions do to q . k / sqrt(d_head) of one head: `plain` recorded with them, `bare`
    without, on the same tokens. Over the allowed pairs of text tokens; special tokens are left
    out."""
    text = ~plain.stream(stream).special
    with_, without = attention_of(plain, stream), attention_of(bare, stream)
    query, key = np.nonzero(with_.allowed & text[:, None] & text)
    split = layer == 0 and splits(plain.stream(stream))
    offset, group, pairs = np.unique(key - query, return_inverse=True, return_counts=True)

    def mean(scores: np.ndarray) -> np.ndarray:
        return np.bincount(group, scores[query, key].astype(np.float64), len(offset)) / np.maximum(
            pairs, 1
        )

    places = mean(places_part(with_, without, head)) if split else None
    return ByOffset(
        offset, pairs, mean(with_.scores[layer, head]), mean(without.scores[layer, head]), places
    )


def places_part(plain: Attention, bare: Attention, head: int) -> np.ndarray:
    """What position x position gives to the scores of a head in layer 0, (query, key), where its
    input is a sum (`splits`).

    q is linear in word + position, so q with positions minus q without is the position's own part;
    so is k's."""
    q, k = (
        with_[0, head].astype(np.float64) - without[0, head]
        for with_, without in ((plain.q, bare.q), (plain.k, bare.k))
    )
    return q @ k.T / divisor(plain)


def splits(stream: Stream) -> bool:
    """True where the heads of layer 0 read word + position as it is; False where a norm stands
    between, which mixes the two, or no position is added."""
    return "pos.wrote" in stream.sites and not follows(stream)


def follows(stream: Stream) -> str:
    """What reads the sum of word and position: a "norm" that is part of the stream, layer 0's own
    ("read"), or "" for layer 0 as it is."""
    return (
        "norm"
        if "embed.normed" in stream.sites
        else "read"
        if "0.attn.read" in stream.sites
        else ""
    )


def divisor(attention: Attention) -> float:
    """What the scores of layer 0 are divided by: sqrt(d_head) in the paper."""
    return 1 / float(attention.scale[0])


def most_positional(plain: Recording, bare: Recording, stream: str) -> int:
    """The head of layer 0 whose position x position part varies most over the tokens; where there
    is no such part, the one whose scores positions change most."""
    with_, without = attention_of(plain, stream), attention_of(bare, stream)
    if splits(plain.stream(stream)):
        return int(
            np.argmax([places_part(with_, without, head).std() for head in range(with_.q.shape[1])])
        )
    return int(np.argmax((with_.scores[0].astype(np.float64) - without.scores[0]).std(axis=(1, 2))))


@dataclass(frozen=True)
class Overlap:
    """How much of one thing lies in the first r principal directions of the embeddings, (r) from 0
    to d_model: `words` of the embeddings' own variance, `places` of the encoding's variation over
    the positions. `chance` is r / d_model, the share in directions taken at random."""

    words: np.ndarray
    places: np.ndarray
    chance: np.ndarray

    def most(self, share: float) -> int:
        """How many directions hold this share of the embeddings' variance."""
        return int(np.searchsorted(self.words, share))


def overlap(embeddings: np.ndarray, encoding: np.ndarray) -> Overlap:
    """Embeddings (id, d_model) and the encodings of a model's positions (position, d_model), each
    about its mean, every word counting alike."""
    d = embeddings.shape[1]
    around = embeddings - embeddings.mean(axis=0, dtype=np.float64)
    variance, directions = np.linalg.eigh(around.T @ around)
    varied = encoding - encoding.mean(axis=0)
    energy = ((varied @ directions) ** 2).sum(axis=0)
    return Overlap(_shares(variance[::-1]), _shares(energy[::-1]), np.arange(d + 1) / d)


def room_needed(encoding: np.ndarray, share: float) -> int:
    """How many dimensions hold this share of an encoding's (position, d) variation over its
    positions."""
    values = np.linalg.svd(encoding - encoding.mean(axis=0), compute_uv=False)
    return int(np.searchsorted(_shares(values**2), share))


def _shares(parts: np.ndarray) -> np.ndarray:
    total = np.concatenate(([0.0], np.maximum(parts, 0).cumsum()))
    return total / (total[-1] or 1)


def added_columns(of: Added, tokens: Sequence[str], word: str = "√d × embedding") -> Columns:
    """Word + position as named columns; `word` is what the word's vector is called."""
    return {
        "position": np.arange(len(tokens)),
        "token": list(tokens),
        word: of.word,
        "encoding": of.encoding,
        "sum": of.both,
        "cosine": of.cosine,
    }


def offset_columns(of: ByOffset) -> Columns:
    """Scores by offset as named columns."""
    return {"key − query": of.offset, "pairs": of.pairs} | dict(of.lines)


def overlap_columns(of: Overlap) -> Columns:
    """Shares by number of directions as named columns."""
    return {
        "directions": np.arange(len(of.words)),
        "embeddings": of.words,
        "encoding": of.places,
        "chance": of.chance,
    }
