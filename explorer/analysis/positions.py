"""Word order: the table of sinusoids and its laws, what it adds to a sentence, and whether vectors know in which order the words came.

Axis legend: position (counted from 0), pair (of dimensions 2i and 2i + 1, the paper's i), token, query, key, site. `d` is d_model.
A rotation turns the pair (sin, cos) of one position into that of another; an angle is in radians.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.recording import Attention, Recording, Stream

BASE = 10_000.0
WIDEST, LONGEST = 1024, 512
DRAWN_POINTS = 4  # points of a drawn wave from one position to the next, where there are at least as many as this in a turn
SAME = 1e-5  # a recorded encoding that is within this of the formula is the formula's, in single precision


# ---- the table ------------------------------------------------------------------------------------------------------------


def rates(d: int) -> np.ndarray:
    """By how much the angle of each pair grows from one position to the next, 1 / 10000^(2i/d): (pair). Raises ValueError for an odd d."""
    if d < 2 or d % 2:
        raise ValueError(f"sines and cosines come in pairs, so d_model must be even and at least 2; it is {d}")
    return BASE ** (-np.arange(0, d, 2) / d)


def table(n: int, d: int) -> np.ndarray:
    """The encoding of positions 0 to n - 1, (position, d): sin of pair i's angle in column 2i, cos in column 2i + 1."""
    angle = np.arange(n)[:, None] * rates(d)
    return np.stack((np.sin(angle), np.cos(angle)), axis=-1).reshape(n, d)


def wavelengths(d: int) -> np.ndarray:
    """After how many positions each pair is back where it was, 2 pi 10000^(2i/d): (pair)."""
    return 2 * np.pi / rates(d)


@dataclass(frozen=True)
class Wave:
    """One pair over the positions: (position) angle, sine and cosine; and the same finely, (point), to draw the curves through them."""

    angle: np.ndarray
    sine: np.ndarray
    cosine: np.ndarray
    place: np.ndarray
    fine_sine: np.ndarray
    fine_cosine: np.ndarray


def wave(n: int, d: int, pair: int) -> Wave:
    """Pair `pair` of an encoding over n positions."""
    rate = rates(d)[pair]
    angle, place = np.arange(n) * rate, np.linspace(0, n - 1, (n - 1) * DRAWN_POINTS + 1)
    return Wave(angle, np.sin(angle), np.cos(angle), place, np.sin(place * rate), np.cos(place * rate))


# ---- products and shifts --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Products:
    """p_i . p_j of all pairs of positions, gathered by distance |i - j|: (distance). `law` is the sum of cos(rate x distance) over the pairs of
    dimensions, `low` and `high` the smallest and largest product measured. `deviation`: the largest difference of any product to the law."""

    law: np.ndarray
    low: np.ndarray
    high: np.ndarray
    deviation: float


def products(encoding: np.ndarray) -> Products:
    """The products of a table of sinusoids (position, d)."""
    n, d = encoding.shape
    gram = encoding @ encoding.T
    law = np.cos(np.arange(n)[:, None] * rates(d)).sum(axis=1)
    diagonals = [np.diagonal(gram, distance) for distance in range(n)]
    low, high = np.array([each.min() for each in diagonals]), np.array([each.max() for each in diagonals])
    return Products(law, low, high, float(np.maximum(np.abs(low - law), np.abs(high - law)).max()))


def gram(encoding: np.ndarray, most: int) -> np.ndarray:
    """p_i . p_j of the first `most` positions, (position, position)."""
    first = encoding[:most]
    return first @ first.T


def turn(d: int, pair: int, shift: int) -> np.ndarray:
    """The matrix (2, 2) that takes (sin, cos) of a pair at any position to the same `shift` positions on."""
    angle = shift * rates(d)[pair]
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def turned_by(d: int, pair: int, shift: int) -> tuple[float, float]:
    """The angle by which `shift` positions turn a pair, in radians and in degrees."""
    angle = float(shift * rates(d)[pair])
    return angle, float(np.degrees(angle))


def shifted(encoding: np.ndarray, shift: int) -> np.ndarray:
    """Every row of a table (position, d) with each of its pairs turned as far as `shift` positions take it: the same shape."""
    n, d = encoding.shape
    turns = np.stack([turn(d, pair, shift) for pair in range(d // 2)])
    return np.einsum("iab,nib->nia", turns, encoding.reshape(n, -1, 2)).reshape(n, d)


def shift_error(n: int, d: int, shift: int) -> float:
    """The largest difference, over all pairs and n positions, between the turned encoding and the encoding `shift` positions on."""
    ahead = table(n + shift, d)
    return float(np.abs(shifted(ahead[:n], shift) - ahead[shift:]).max())


def drawn_arc(d: int, pair: int, place: int, shift: int) -> np.ndarray:
    """The way on the unit circle from a pair at one position to where it is `shift` on, (point, 2) as (sin, cos); whole turns drawn once."""
    rate = rates(d)[pair]
    turned = shift * rate if shift * rate < 2 * np.pi else 2 * np.pi
    angle = np.linspace(0, turned, 120) + place * rate
    return 0.55 * np.stack((np.sin(angle), np.cos(angle)), axis=1)


# ---- in a sentence --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Added:
    """The sum that enters the first layer, (token): lengths of the word's vector (sqrt(d_model) x embedding), of the encoding and of their sum,
    and the cosine between word and encoding."""

    word: np.ndarray
    encoding: np.ndarray
    both: np.ndarray
    cosine: np.ndarray

    @property
    def ends(self) -> tuple[int, int]:
        """The tokens with the shortest and with the longest word vector."""
        return int(self.word.argmin()), int(self.word.argmax())


def added(stream: Stream) -> Added:
    """What the encoding adds to each token of a stream. Raises KeyError for a stream recorded without positions."""
    word, encoding, both = (stream.at(site).astype(np.float64) for site in ("embed", "pos.wrote", "embed+pos"))
    lengths = [np.linalg.norm(each, axis=1) for each in (word, encoding, both)]
    return Added(*lengths, (word * encoding).sum(axis=1) / np.maximum(lengths[0] * lengths[1], 1e-30))


def off_formula(stream: Stream) -> float:
    """The largest difference between what a model adds for the positions and the formula's sinusoids. Up to `SAME` they are sinusoids;
    beyond it the table is another one, such as a learned one."""
    wrote = stream.at("pos.wrote").astype(np.float64)
    n, d = wrote.shape
    return float(np.abs(wrote - table(n, d)).max(initial=0)) if d % 2 == 0 else float("inf")


@dataclass(frozen=True)
class ByOffset:
    """A head's scores gathered by offset, key minus query: (offset). `pairs` is how many pairs of tokens have that offset. `together` and `alone`:
    mean score with positions and without; `places`: mean of what position x position gives to it, None above the first layer."""

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
        """By how much the means vary over the offsets (standard deviation), with positions and without."""
        return float(self.together.std()), float(self.alone.std())


def attention_of(recording: Recording, stream: str) -> Attention:
    """The self-attention of a stream. Raises ValueError for a stream without one."""
    for attention in recording.attention:
        if attention.query == attention.key == stream:
            return attention
    raise ValueError(f"no attention looks from {stream!r} to itself")


def by_offset(plain: Recording, bare: Recording, stream: str, layer: int, head: int) -> ByOffset:
    """What positions do to q . k / sqrt(d_head) of one head: `plain` recorded with them, `bare` without, on the same tokens. Over the allowed
    pairs of text tokens; special tokens are left out."""
    text = ~plain.stream(stream).special
    with_, without = attention_of(plain, stream), attention_of(bare, stream)
    query, key = np.nonzero(with_.allowed & text[:, None] & text)
    offset, group, pairs = np.unique(key - query, return_inverse=True, return_counts=True)

    def mean(scores: np.ndarray) -> np.ndarray:
        return np.bincount(group, scores[query, key].astype(np.float64), len(offset)) / np.maximum(pairs, 1)

    places = mean(places_part(with_, without, head)) if layer == 0 else None
    return ByOffset(offset, pairs, mean(with_.scores[layer, head]), mean(without.scores[layer, head]), places)


def places_part(plain: Attention, bare: Attention, head: int) -> np.ndarray:
    """What position x position gives to the scores of a head in layer 0, (query, key).

    There the input is word + position and q is linear in it, so q with positions minus q without is the position's own part; so is k's.
    """
    q, k = (with_[0, head].astype(np.float64) - without[0, head] for with_, without in ((plain.q, bare.q), (plain.k, bare.k)))
    return q @ k.T / np.sqrt(q.shape[1])


def most_positional(plain: Recording, bare: Recording, stream: str) -> int:
    """The head of layer 0 whose position x position part varies most over the tokens."""
    with_, without = attention_of(plain, stream), attention_of(bare, stream)
    return int(np.argmax([places_part(with_, without, head).std() for head in range(with_.q.shape[1])]))


# ---- another order --------------------------------------------------------------------------------------------------------


def turned_round(text: str) -> str:
    """The words of a text from last to first."""
    return " ".join(reversed(text.split()))


@dataclass(frozen=True)
class Matched:
    """Which token of one stream is which of another: `here` and `there` (match) are places, in the order of `here`. `alone_here` and
    `alone_there` are the places that have no partner."""

    here: np.ndarray
    there: np.ndarray
    alone_here: tuple[int, ...]
    alone_there: tuple[int, ...]


def matched(one: Stream, other: Stream, same_text: bool) -> Matched:
    """Tokens matched by word. Of one text read in two orders, a token by its id and its place in the text; of two texts by its id alone. Equal
    ones are matched in order: the first "the" with the first."""
    waiting: dict[tuple[int, ...], list[int]] = {}
    for place, name in enumerate(_names(other, same_text)):
        waiting.setdefault(name, []).append(place)
    pairs, alone = [], []
    for place, name in enumerate(_names(one, same_text)):
        pairs.append((place, waiting[name].pop(0))) if waiting.get(name) else alone.append(place)
    here, there = np.array(pairs, dtype=int).reshape(-1, 2).T
    return Matched(here, there, tuple(alone), tuple(sorted(place for left in waiting.values() for place in left)))


def _names(stream: Stream, with_place: bool) -> list[tuple[int, ...]]:
    places = stream.spans.tolist() if with_place else [()] * len(stream.ids)
    return [(id, *place) for id, place in zip(stream.ids.tolist(), places)]


def states(stream: Stream) -> tuple[str, ...]:
    """The sites where a stream has a state: all but those that say what was added."""
    return tuple(site for site in stream.sites if not site.endswith(".wrote"))


@dataclass(frozen=True)
class Agreement:
    """How far the vectors of the same words agree in two orders.

    site: names; by_site (site) the largest difference of any number of any matched token there, and size_by_site (site) the largest number.
    Of the last site: by_token (match) the largest difference, digits (match) and cosine (match).
    """

    site: tuple[str, ...]
    by_site: np.ndarray
    size_by_site: np.ndarray
    by_token: np.ndarray
    digits: np.ndarray
    cosine: np.ndarray

    def along(self, sites: Sequence[str]) -> np.ndarray:
        """`by_site` in the order of other sites, NaN for one that is not there."""
        return np.array([self.by_site[self.site.index(site)] if site in self.site else np.nan for site in sites])

    def to_draw(self, sites: Sequence[str]) -> np.ndarray:
        """The same, but NaN for a difference of 0 too, which no log scale has."""
        found = self.along(sites)
        return np.where(found > 0, found, np.nan)

    @property
    def difference(self) -> float:
        """The largest difference at the last site; 0 where nothing is matched."""
        return float(self.by_token.max(initial=0))

    @property
    def common_digits(self) -> float:
        """To how many digits the vectors agree that agree least."""
        return float(self.digits.min(initial=np.inf))


def agreement(one: Stream, other: Stream, pairs: Matched) -> Agreement:
    """The vectors of matched tokens compared at every state. Both streams have the same sites, but for those of the positions."""
    sites = tuple(site for site in states(one) if site in other.sites)
    gaps, sizes, a, b = [], [], np.zeros((0, 1)), np.zeros((0, 1))
    for site in sites:
        a, b = one.at(site)[pairs.here].astype(np.float64), other.at(site)[pairs.there].astype(np.float64)
        gaps.append(np.abs(a - b).max(initial=0))
        sizes.append(np.abs(a).max(initial=0))
    by_token = np.abs(a - b).max(axis=1, initial=0)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return Agreement(sites, np.array(gaps), np.array(sizes), by_token, digits(by_token, np.abs(a).max(axis=1, initial=0)), (a * b).sum(axis=1) / np.maximum(lengths, 1e-30))


def digits(difference: np.ndarray, size: np.ndarray) -> np.ndarray:
    """To how many decimal digits numbers agree: -log10(largest difference / largest number), no less than 0; infinite where nothing differs."""
    difference, size = np.asarray(difference, dtype=np.float64), np.asarray(size, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.maximum(0.0, -np.log10(difference / np.where(size > 0, size, 1)))


def maps(one: np.ndarray, other: np.ndarray, pairs: Matched) -> tuple[np.ndarray, np.ndarray, float]:
    """A head's weights (query, key) in two orders, rows and columns of the second put in the order of the first, and the largest difference.
    Only matched tokens."""
    here, there = one[np.ix_(pairs.here, pairs.here)], other[np.ix_(pairs.there, pairs.there)]
    return here, there, float(np.abs(here.astype(np.float64) - there).max(initial=0))


def largest_gap(one: Attention, other: Attention, pairs: Matched) -> float:
    """The largest difference of any weight of any head in two orders, over matched tokens."""
    gaps = (maps(a, b, pairs)[2] for a, b in zip(one.pattern.reshape(-1, *one.allowed.shape), other.pattern.reshape(-1, *other.allowed.shape)))
    return max(gaps, default=0.0)


# ---- adding or concatenating ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overlap:
    """How much of one thing lies in the first r principal directions of the embeddings, (r) from 0 to d_model: `words` of the embeddings' own
    variance, `places` of the encoding's variation over the positions. `chance` is r / d_model, the share in directions taken at random."""

    words: np.ndarray
    places: np.ndarray
    chance: np.ndarray

    def most(self, share: float) -> int:
        """How many directions hold this share of the embeddings' variance."""
        return int(np.searchsorted(self.words, share))


def overlap(embeddings: np.ndarray, encoding: np.ndarray) -> Overlap:
    """Embeddings (id, d_model) and the encodings of a model's positions (position, d_model), each about its mean, every word counting alike."""
    d = embeddings.shape[1]
    around = embeddings - embeddings.mean(axis=0, dtype=np.float64)
    variance, directions = np.linalg.eigh(around.T @ around)
    varied = encoding - encoding.mean(axis=0)
    energy = ((varied @ directions) ** 2).sum(axis=0)
    return Overlap(_shares(variance[::-1]), _shares(energy[::-1]), np.arange(d + 1) / d)


def room_needed(encoding: np.ndarray, share: float) -> int:
    """How many dimensions hold this share of an encoding's (position, d) variation over its positions."""
    values = np.linalg.svd(encoding - encoding.mean(axis=0), compute_uv=False)
    return int(np.searchsorted(_shares(values**2), share))


def _shares(parts: np.ndarray) -> np.ndarray:
    total = np.concatenate(([0.0], np.maximum(parts, 0).cumsum()))
    return total / (total[-1] or 1)


# ---- as tables ------------------------------------------------------------------------------------------------------------


def table_columns(values: np.ndarray, name: str = "dimension") -> dict[str, Sequence]:
    """A table (position, column) as named columns; `name` is what they are called, before their number."""
    return {"position": np.arange(len(values)), **{f"{name} {at}": column for at, column in enumerate(values.T)}}


def wave_columns(of: Wave) -> dict[str, Sequence]:
    """A pair over the positions as named columns."""
    return {"position": np.arange(len(of.angle)), "angle": of.angle, "sin": of.sine, "cos": of.cosine}


def product_columns(of: Products) -> dict[str, Sequence]:
    """The products by distance as named columns."""
    return {"distance": np.arange(len(of.law)), "sum of cosines": of.law, "smallest p·p": of.low, "largest p·p": of.high}


def circle_columns(of: Wave, shift: int, d: int, pair: int) -> dict[str, Sequence]:
    """A pair at every position, and turned by `shift` positions, as named columns."""
    turned = turn(d, pair, shift) @ np.stack((of.sine, of.cosine))
    return {"position": np.arange(len(of.angle)), "sin": of.sine, "cos": of.cosine, f"turned by {shift}: sin": turned[0], f"turned by {shift}: cos": turned[1]}


def added_columns(of: Added, tokens: Sequence[str]) -> dict[str, Sequence]:
    """The sum that enters the first layer as named columns."""
    return {"position": np.arange(len(tokens)), "token": list(tokens), "√d × embedding": of.word, "encoding": of.encoding, "sum": of.both, "cosine": of.cosine}


def offset_columns(of: ByOffset) -> dict[str, Sequence]:
    """Scores by offset as named columns."""
    columns = {"key − query": of.offset, "pairs": of.pairs, "with positions": of.together, "without": of.alone}
    return columns if of.places is None else columns | {"position × position": of.places}


def order_columns(one: Stream, pairs: Matched, with_: Agreement, without: Agreement) -> dict[str, Sequence]:
    """The matched tokens and how far their last vectors agree, as named columns."""
    return {
        "token": [one.tokens[place] for place in pairs.here],
        "place": pairs.here,
        "place in the other order": pairs.there,
        "with: largest difference": with_.by_token,
        "with: digits": with_.digits,
        "with: cosine": with_.cosine,
        "without: largest difference": without.by_token,
        "without: digits": without.digits,
        "without: cosine": without.cosine,
    }


def word_columns(one: Stream, pairs: Matched, with_: Agreement, without: Agreement) -> dict[str, Sequence]:
    """The matched tokens in short: where they moved, and to how many digits their last vectors agree, as named columns."""
    return {
        "token": [one.tokens[place] for place in pairs.here],
        "place": [f"{here} → {there}" for here, there in zip(pairs.here, pairs.there)],
        "digits, without": [_short(each) for each in without.digits],
        "digits, with": [_short(each) for each in with_.digits],
        "cosine, with": with_.cosine,
    }


def _short(digits: float) -> str:
    return "every one" if np.isinf(digits) else f"{digits:.1f}"


def site_columns(with_: Agreement, without: Agreement) -> dict[str, Sequence]:
    """The largest difference at every site as named columns."""
    return {"site": list(with_.site), "with: largest difference": with_.by_site, "with: largest number": with_.size_by_site, "without: largest difference": without.along(with_.site)}


def map_columns(here: np.ndarray, there: np.ndarray, tokens: Sequence[str]) -> dict[str, Sequence]:
    """Both orders' weights, a row for each pair of tokens, as named columns."""
    n = len(tokens)
    query, key = np.divmod(np.arange(n * n), max(n, 1))
    return {
        "query": [f"{at} {tokens[at]}" for at in query],
        "key": [f"{at} {tokens[at]}" for at in key],
        "this order": here.ravel(),
        "the other order": there.ravel(),
    }


def overlap_columns(of: Overlap) -> dict[str, Sequence]:
    """Shares by number of directions as named columns."""
    return {"directions": np.arange(len(of.words)), "embeddings": of.words, "encoding": of.places, "chance": of.chance}


def to_csv(columns: dict[str, Sequence], about: Sequence[str]) -> str:
    """Named columns as CSV: `about` in lines that begin with #, a header, then the rows, numbers in full."""
    file = io.StringIO()
    for line in about:
        file.write("# " + " ".join(line.split()) + "\n")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    plain = [each.tolist() if isinstance(each, np.ndarray) else each for each in columns.values()]
    writer.writerows([repr(cell) if isinstance(cell, float) else cell for cell in row] for row in zip(*plain))
    return file.getvalue()
