"""The table of positions: sinusoids and their laws, learned tables, and which of the two a model
adds.

Axis legend: position (counted from 0), pair (of dimensions 2i and 2i + 1, the paper's i). `d` is
d_model. A rotation turns the pair (sin, cos) of one position into that of another; an angle is in
radians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.logit_lens import states
from explorer.analysis.word_classes import is_word
from explorer.analysis.words import Groups
from explorer.figures.csv import Columns, long_form
from models.contract.edits import ShuffleTokens
from models.contract.recording import Attention, Recording, Stream

BASE = 10_000.0
WIDEST, LONGEST = 1024, 512
# points of a drawn wave from one position to the next, where there are at least as many as this in
# a turn
DRAWN_POINTS = 4
# A first position that is longer than the middle one by more than this factor stands out.
OUTLIER_FACTOR = 2.0
# a recorded encoding that is within this of the formula is the formula's, in single precision
FORMULA_TOLERANCE = 1e-5


# ---- the table ----


def rates(d: int) -> np.ndarray:
    """By how much the angle of each pair grows from one position to the next, 1 / 10000^(2i/d):
    (pair). Raises ValueError for an odd d."""
    if d < 2 or d % 2:
        raise ValueError(
            f"sines and cosines come in pairs, so d_model must be even and at least 2; it is {d}"
        )
    return BASE ** (-np.arange(0, d, 2) / d)


def table(n: int, d: int) -> np.ndarray:
    """The encoding of positions 0 to n - 1, (position, d): sin of pair i's angle in column 2i, cos
    in column 2i + 1."""
    angle = np.arange(n)[:, None] * rates(d)
    return np.stack((np.sin(angle), np.cos(angle)), axis=-1).reshape(n, d)


def wavelengths(d: int) -> np.ndarray:
    """After how many positions each pair is back where it was, 2 pi 10000^(2i/d): (pair)."""
    return 2 * np.pi / rates(d)


@dataclass(frozen=True)
class Wave:
    """One pair over the positions: (position) angle, sine and cosine; and the same finely, (point),
    to draw the curves through them."""

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
    return Wave(
        angle, np.sin(angle), np.cos(angle), place, np.sin(place * rate), np.cos(place * rate)
    )


# ---- products and shifts ----


@dataclass(frozen=True)
class Products:
    """p_i . p_j of all pairs of positions, gathered by distance |i - j|: (distance). `law` is the
    sum of cos(rate x distance) over the pairs of dimensions, `low` and `high` the smallest and
    largest product measured. `deviation`: the largest difference of any product to the law."""

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
    low, high = (
        np.array([diagonal.min() for diagonal in diagonals]),
        np.array([diagonal.max() for diagonal in diagonals]),
    )
    return Products(law, low, high, float(np.maximum(np.abs(low - law), np.abs(high - law)).max()))


def gram(encoding: np.ndarray, most: int) -> np.ndarray:
    """p_i . p_j of the first `most` positions, (position, position)."""
    first = encoding[:most]
    return first @ first.T


@dataclass(frozen=True)
class ByDistance:
    """p_i . p_j of all pairs of any table's positions, gathered by distance |i - j|: (distance)
    mean, low and high. `explained`: the share, 0 to 1, of the products' variance that distance
    explains; 1 for sinusoids."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    explained: float


def by_distance(table: np.ndarray) -> ByDistance:
    """The products of a table (position, d) that need follow no formula."""
    gram_matrix = table.astype(np.float64) @ table.astype(np.float64).T
    diagonals = [np.diagonal(gram_matrix, distance) for distance in range(len(gram_matrix))]
    mean = np.array([diagonal.mean() for diagonal in diagonals])
    within = sum(
        (1 + (distance > 0)) * ((diagonal - diagonal.mean()) ** 2).sum()
        for distance, diagonal in enumerate(diagonals)
    )
    total = ((gram_matrix - gram_matrix.mean()) ** 2).sum()
    return ByDistance(
        mean,
        np.array([diagonal.min() for diagonal in diagonals]),
        np.array([diagonal.max() for diagonal in diagonals]),
        float(1 - within / total) if total else 1.0,
    )


def lengths(table: np.ndarray) -> np.ndarray:
    """The length of every row of a table (position, d): (position)."""
    return np.linalg.norm(table.astype(np.float64), axis=1)


def first_stands_out(table: np.ndarray) -> float | None:
    """The length of position 0's vector over the median length of a table (position, d), where that
    is more than OUTLIER_FACTOR; else None."""
    row_lengths = lengths(table)
    middle = float(np.median(row_lengths))
    return (
        float(row_lengths[0]) / middle
        if middle and row_lengths[0] > OUTLIER_FACTOR * middle
        else None
    )


def scale_end(table: np.ndarray) -> float:
    """The end of the colour scale of a table (position, d): the 99th percentile of absolute values,
    so that a few large numbers do not make all others look alike."""
    return float(np.percentile(np.abs(table), 99)) or float(np.abs(table).max()) or 1.0


@dataclass(frozen=True)
class RotationErrors:
    """The paper's rotation by a shift tried on a table it was not made for: how far it misses the
    row that stands there, `rotated_error`, and how far the row misses it that is not turned at all,
    `unrotated_error`; means over the positions, as shares of the mean length of a row."""

    rotated_error: float
    unrotated_error: float


def rotation_errors(table: np.ndarray, shift: int) -> RotationErrors | None:
    """The rotation tried on a table (position, d). None where no position is so far on, or d is
    odd."""
    table = table.astype(np.float64)
    if not 0 < shift < len(table) or table.shape[1] % 2:
        return None
    rows, targets, mean_length = (
        table[:-shift],
        table[shift:],
        np.linalg.norm(table, axis=1).mean() or 1,
    )
    rotated_error, unrotated_error = (
        np.linalg.norm(candidate - targets, axis=1).mean() / mean_length
        for candidate in (rotate_positions(rows, shift), rows)
    )
    return RotationErrors(float(rotated_error), float(unrotated_error))


def rotation_matrix(d: int, pair: int, shift: int) -> np.ndarray:
    """The matrix (2, 2) that takes (sin, cos) of a pair at any position to the same `shift`
    positions on."""
    angle = shift * rates(d)[pair]
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def rotation_angle(d: int, pair: int, shift: int) -> tuple[float, float]:
    """The angle by which `shift` positions turn a pair, in radians and in degrees."""
    angle = float(shift * rates(d)[pair])
    return angle, float(np.degrees(angle))


def rotate_positions(encoding: np.ndarray, shift: int) -> np.ndarray:
    """Every row of a table (position, d) with each of its pairs turned as far as `shift` positions
    take it: the same shape."""
    n, d = encoding.shape
    turns = np.stack([rotation_matrix(d, pair, shift) for pair in range(d // 2)])
    return np.einsum("iab,nib->nia", turns, encoding.reshape(n, -1, 2)).reshape(n, d)


def shift_error(n: int, d: int, shift: int) -> float:
    """The largest difference, over all pairs and n positions, between the turned encoding and the
    encoding `shift` positions on."""
    encoding = table(n + shift, d)
    return float(np.abs(rotate_positions(encoding[:n], shift) - encoding[shift:]).max())


def arc_points(d: int, pair: int, place: int, shift: int) -> np.ndarray:
    """The way on the unit circle from a pair at one position to where it is `shift` on, (point, 2)
    as (sin, cos); whole turns drawn once."""
    rate = rates(d)[pair]
    angle_span = shift * rate if shift * rate < 2 * np.pi else 2 * np.pi
    angle = np.linspace(0, angle_span, 120) + place * rate
    return 0.55 * np.stack((np.sin(angle), np.cos(angle)), axis=1)


# ---- in a sentence ----


def encoding_kind(stream: Stream) -> str:
    """The kind of a stream's position encoding: "sinusoids" of the formula, "learned" for any other
    table, "merged" where they enter the stream in one vector with the words, "none" for nothing."""
    if "pos.wrote" not in stream.sites:
        return "merged" if "embed+pos" in stream.sites else "none"
    return "sinusoids" if formula_error(stream) <= FORMULA_TOLERANCE else "learned"


def formula_error(stream: Stream) -> float:
    """The largest difference between what a model adds for the positions and the formula's
    sinusoids. Up to `FORMULA_TOLERANCE` they are sinusoids; beyond it the table is another one,
    such as a learned one. Raises KeyError for a stream that adds nothing."""
    wrote = stream.at("pos.wrote").astype(np.float64)
    n, d = wrote.shape
    return float(np.abs(wrote - table(n, d)).max(initial=0)) if d % 2 == 0 else float("inf")


def self_attention(recording: Recording, stream: str) -> Attention:
    """The self-attention of a stream. Raises ValueError for a stream without one."""
    for attention in recording.attention:
        if attention.query == attention.key == stream:
            return attention
    raise ValueError(f"no attention looks from {stream!r} to itself")


# ---- as tables ----


def table_columns(values: np.ndarray) -> Columns:
    """A table (position, dimension) as named columns, a row for each number."""
    positions, dimensions = map(range, values.shape)
    return long_form({"position": positions, "dimension": dimensions}, values, "value")


def circle_columns(wave: Wave, shift: int, d: int, pair: int) -> Columns:
    """A pair at every position, and turned by `shift` positions, as named columns."""
    rotated = rotation_matrix(d, pair, shift) @ np.stack((wave.sine, wave.cosine))
    return {
        "position": np.arange(len(wave.angle)),
        "sin": wave.sine,
        "cos": wave.cosine,
        f"rotated by {shift}: sin": rotated[0],
        f"rotated by {shift}: cos": rotated[1],
    }


# What positions do to a sentence: lengths of what is added up, their part in the scores, and the
# room that words and positions share.


@dataclass(frozen=True)
class PositionSum:
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


def position_sum(stream: Stream) -> PositionSum:
    """The sum of word and position vectors of each token. Raises KeyError for a stream recorded
    without positions."""
    word, encoding, both = (
        stream.at(site).astype(np.float64) for site in ("embed", "pos.wrote", "embed+pos")
    )
    word_length, encoding_length, sum_length = (
        np.linalg.norm(vectors, axis=1) for vectors in (word, encoding, both)
    )
    return PositionSum(
        word_length,
        encoding_length,
        sum_length,
        (word * encoding).sum(axis=1) / np.maximum(word_length * encoding_length, 1e-30),
    )


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
        """The known series by offset, each with its name."""
        drawn = (("with positions", self.together), ("without", self.alone))
        return drawn if self.places is None else (*drawn, ("position × position", self.places))


def by_offset(plain: Recording, bare: Recording, stream: str, layer: int, head: int) -> ByOffset:
    """Effect of positions on q . k / sqrt(d_head) of one head, by offset. `plain` is recorded with
    positions, `bare` without, on the same tokens. Over the allowed pairs of text tokens, without
    special tokens."""
    text = ~plain.stream(stream).special
    plain_attention, bare_attention = self_attention(plain, stream), self_attention(bare, stream)
    query, key = np.nonzero(plain_attention.allowed[layer] & text[:, None] & text)
    split = layer == 0 and has_separable_positions(plain.stream(stream))
    offset, group, pairs = np.unique(key - query, return_inverse=True, return_counts=True)

    def mean(scores: np.ndarray) -> np.ndarray:
        return np.bincount(group, scores[query, key].astype(np.float64), len(offset)) / np.maximum(
            pairs, 1
        )

    position_mean = mean(position_part(plain_attention, bare_attention, head)) if split else None
    return ByOffset(
        offset,
        pairs,
        mean(plain_attention.scores[layer, head]),
        mean(bare_attention.scores[layer, head]),
        position_mean,
    )


def position_part(plain: Attention, bare: Attention, head: int) -> np.ndarray:
    """The position x position term of a head's scores in layer 0, (query, key), where its input is
    a sum (`has_separable_positions`).

    q is linear in word + position, so q with positions minus q without is the position's own part;
    so is k's."""
    q, k = (
        with_positions[0, head].astype(np.float64) - without_positions[0, head]
        for with_positions, without_positions in ((plain.q, bare.q), (plain.k, bare.k))
    )
    return q @ k.T / divisor(plain)


def has_separable_positions(stream: Stream) -> bool:
    """True where the heads of layer 0 read word + position as it is; False where a norm stands
    between, which mixes the two, or no position is added."""
    return "pos.wrote" in stream.sites and not sum_reader(stream)


def sum_reader(stream: Stream) -> str:
    """The reader of the sum of word and position: a "norm" that is part of the stream, layer 0's
    own ("read"), or "" for layer 0 without a norm."""
    return (
        "norm"
        if "embed.normed" in stream.sites
        else "read"
        if "0.attn.read" in stream.sites
        else ""
    )


def divisor(attention: Attention) -> float:
    """The divisor of the scores in layer 0: sqrt(d_head) in the paper."""
    return 1 / float(attention.scale[0])


def most_positional_head(plain: Recording, bare: Recording, stream: str) -> int:
    """The head of layer 0 whose position x position part varies most over the tokens; where there
    is no such part, the one whose scores positions change most."""
    plain_attention, bare_attention = self_attention(plain, stream), self_attention(bare, stream)
    if has_separable_positions(plain.stream(stream)):
        return int(
            np.argmax(
                [
                    position_part(plain_attention, bare_attention, head).std()
                    for head in range(plain_attention.q.shape[1])
                ]
            )
        )
    return int(
        np.argmax(
            (plain_attention.scores[0].astype(np.float64) - bare_attention.scores[0]).std(
                axis=(1, 2)
            )
        )
    )


@dataclass(frozen=True)
class Overlap:
    """Explained variance of the embeddings' first r principal directions, (r) from 0 to d_model:
    `words` of the embeddings' own variance, `places` of the encoding's variation over the
    positions. `chance` is r / d_model, the share in random directions."""

    words: np.ndarray
    places: np.ndarray
    chance: np.ndarray

    def most(self, share: float) -> int:
        """The number of directions that explain this share of the embeddings' variance."""
        return int(np.searchsorted(self.words, share))


def overlap(embeddings: np.ndarray, encoding: np.ndarray) -> Overlap:
    """Embeddings (id, d_model) and the encodings of a model's positions (position, d_model), each
    about its mean, every word counting alike."""
    d = embeddings.shape[1]
    centred = embeddings - embeddings.mean(axis=0, dtype=np.float64)
    variance, directions = np.linalg.eigh(centred.T @ centred)
    centred_encoding = encoding - encoding.mean(axis=0)
    energy = ((centred_encoding @ directions) ** 2).sum(axis=0)
    return Overlap(_shares(variance[::-1]), _shares(energy[::-1]), np.arange(d + 1) / d)


def dimensions_needed(encoding: np.ndarray, share: float) -> int:
    """The number of dimensions that explain this share of an encoding's (position, d) variance over
    its positions."""
    values = np.linalg.svd(encoding - encoding.mean(axis=0), compute_uv=False)
    return int(np.searchsorted(_shares(values**2), share))


def _shares(parts: np.ndarray) -> np.ndarray:
    total = np.concatenate(([0.0], np.maximum(parts, 0).cumsum()))
    return total / (total[-1] or 1)


# The words in other orders, and a guess at a word that keeps its place.

N_ORDERS = 5  # beside the typed one
MOST_DRAWS = 40
FEW_MOVE = 3  # tokens, of which the last word is one where no more can move


def other_orders(
    stream: Stream, of: Groups, token: int, is_causal: bool = False
) -> tuple[ShuffleTokens, ...]:
    """N_ORDERS other orders of a text, fewer where it has no more: whole words, `of` the stream,
    change places with their pieces, and the word of the `token` keeps its own, where others can
    move also the last word; is_causal: all from the token on does. None where fewer than two words
    can move."""
    special = np.asarray(stream.special, bool)
    words = [at for at, label in enumerate(of.labels) if not of.special[at] and is_word(label)]
    if not words:
        return ()
    own = int(of.of[token]) if token >= 0 else -1
    kept = {own, *range(words[-1] + 1, len(of.labels))}
    kept |= set(range(own, len(of.labels))) if is_causal else set()
    if sum(not each and at not in kept for at, each in enumerate(of.special)) > FEW_MOVE:
        kept.add(words[-1])
    listed = []
    for at in range(len(of.labels)):
        start, size = of.span(at)
        if at in kept:
            listed += [str(each) for each in range(start, start + size)]
        elif size > 1 and not special[start]:
            listed.append(f"{start}-{start + size - 1}")
    stay = ".".join(listed)
    orders: dict[tuple[int, ...], ShuffleTokens] = {}
    for seed in range(1, 1 + MOST_DRAWS):
        moved = ShuffleTokens(seed, stay)
        order = tuple(moved.order(special.tolist()).tolist())
        if order != tuple(range(len(special))) and len(orders) < N_ORDERS:
            orders.setdefault(order, moved)
    return tuple(orders.values())


def place_in(moved: ShuffleTokens, stream: Stream, token: int) -> int:
    """The place at which a token of a stream is read in another order."""
    return int(np.flatnonzero(moved.order(stream.special.tolist()) == token)[0])


def median(values: Sequence[float]) -> int:
    """The place of the median of some values, of two in the middle the larger one's."""
    return int(np.argsort(values, kind="stable")[len(values) // 2])


# Another order of the words: whether vectors know in which order the words came.


def read_part(recording: Recording) -> str:
    """The part of a recording's text that the model read: all of it, unless tokens were dropped at
    its end."""
    end = int(recording.streams[0].spans[:, 1].max(initial=0)) if recording.dropped else 0
    return recording.text[:end] if end > 0 else recording.text


def reverse_words(text: str) -> str:
    """The words of a text from last to first."""
    return " ".join(reversed(text.split()))


@dataclass(frozen=True)
class TokenMatch:
    """Matching of the tokens of two streams: `here` and `there` (match) are places, in the order of
    `here`. `unmatched_first` and `unmatched_second` are the places without a partner."""

    here: np.ndarray
    there: np.ndarray
    unmatched_first: tuple[int, ...]
    unmatched_second: tuple[int, ...]


def match_tokens(stream: Stream, other_stream: Stream, same_text: bool) -> TokenMatch:
    """Tokens matched by word. Of one text read in two orders, a token by its id and its place in
    the text; of two texts by its id alone. Equal ones are matched in order: the first "the" with
    the first."""
    unmatched_places: dict[tuple[int, ...], list[int]] = {}
    for place, name in enumerate(_names(other_stream, same_text)):
        unmatched_places.setdefault(name, []).append(place)
    pairs, unmatched = [], []
    for place, name in enumerate(_names(stream, same_text)):
        pairs.append((place, unmatched_places[name].pop(0))) if unmatched_places.get(
            name
        ) else unmatched.append(place)
    first_places, second_places = np.array(pairs, dtype=int).reshape(-1, 2).T
    return TokenMatch(
        first_places,
        second_places,
        tuple(unmatched),
        tuple(sorted(place for remaining in unmatched_places.values() for place in remaining)),
    )


def _names(stream: Stream, with_place: bool) -> list[tuple[int, ...]]:
    places = stream.spans.tolist() if with_place else [()] * len(stream.ids)
    return [(id, *place) for id, place in zip(stream.ids.tolist(), places)]


@dataclass(frozen=True)
class Agreement:
    """Agreement of the last vectors of the same words in two orders: by_token (match) the largest
    difference of any number, digits (match) and cosine (match)."""

    by_token: np.ndarray
    digits: np.ndarray
    cosine: np.ndarray

    @property
    def difference(self) -> float:
        """The largest difference at the last site; 0 where nothing is matched."""
        return float(self.by_token.max(initial=0))

    @property
    def common_digits(self) -> float:
        """To how many digits the vectors agree that agree least."""
        return float(self.digits.min(initial=np.inf))


def agreement(stream: Stream, other_stream: Stream, pairs: TokenMatch) -> Agreement:
    """The last vectors of matched tokens compared."""
    a, b = (
        each.at(states(each)[-1])[places].astype(np.float64)
        for each, places in ((stream, pairs.here), (other_stream, pairs.there))
    )
    by_token = np.abs(a - b).max(axis=1, initial=0)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return Agreement(
        by_token,
        digits(by_token, np.abs(a).max(axis=1, initial=0)),
        (a * b).sum(axis=1) / np.maximum(lengths, 1e-30),
    )


def digits(difference: np.ndarray, size: np.ndarray) -> np.ndarray:
    """To how many decimal digits numbers agree: -log10(largest difference / largest number), no
    less than 0; infinite where nothing differs."""
    difference, size = np.asarray(difference, dtype=np.float64), np.asarray(size, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.maximum(0.0, -np.log10(difference / np.where(size > 0, size, 1)))


def matched_weights(
    weights: np.ndarray, other_weights: np.ndarray, pairs: TokenMatch
) -> tuple[np.ndarray, np.ndarray, float]:
    """A head's weights (query, key) in two orders, rows and columns of the second put in the order
    of the first, and the largest difference. Only matched tokens."""
    first, second = (
        weights[np.ix_(pairs.here, pairs.here)],
        other_weights[np.ix_(pairs.there, pairs.there)],
    )
    return first, second, float(np.abs(first.astype(np.float64) - second).max(initial=0))


def largest_gap(attention: Attention, other_attention: Attention, pairs: TokenMatch) -> float:
    """The largest difference of any weight of any head in two orders, over matched tokens."""
    gaps = (
        matched_weights(a, b, pairs)[2]
        for a, b in zip(
            attention.pattern.reshape(-1, *attention.pattern.shape[2:]),
            other_attention.pattern.reshape(-1, *other_attention.pattern.shape[2:]),
        )
    )
    return max(gaps, default=0.0)


@dataclass(frozen=True)
class OrderComparison:
    """A text in two orders: the tokens of a stream as it is, `tokens`, and those `read` of the
    other text, how many of which were dropped; which token is which; and how far their vectors
    agree with positions and without."""

    tokens: tuple[str, ...]
    read: tuple[str, ...]
    dropped: int
    pairs: TokenMatch
    with_: Agreement
    without: Agreement


def compare_orders(
    record_pair: Callable[[bool], tuple[Recording, Recording]], stream: str, same_text: bool
) -> OrderComparison:
    """Comparison of two orders. `record_pair` gives both recordings, without positions for True;
    only one pair at a time is in memory."""
    recording, other_recording = record_pair(False)
    tokens, other_tokens, dropped, pairs = (
        recording.stream(stream).tokens,
        other_recording.streams[0].tokens,
        other_recording.dropped,
        match_tokens(recording.stream(stream), other_recording.stream(stream), same_text),
    )
    with_positions = agreement(recording.stream(stream), other_recording.stream(stream), pairs)
    recording, other_recording = record_pair(True)
    return OrderComparison(
        tokens,
        other_tokens,
        dropped,
        pairs,
        with_positions,
        agreement(recording.stream(stream), other_recording.stream(stream), pairs),
    )


@dataclass(frozen=True)
class MatchedWeights:
    """A head's weights in two orders, (match, match), as `matched_weights` has them; their largest
    difference `gap`, that in any of `n_heads` heads, and the largest weight."""

    here: np.ndarray
    there: np.ndarray
    gap: float
    largest: float
    n_heads: int
    top: float


def head_in_both_orders(
    attention: Attention, other_attention: Attention, layer: int, head: int, pairs: TokenMatch
) -> MatchedWeights:
    """One head in two orders."""
    weights, other_weights, gap = matched_weights(
        attention.pattern[layer, head], other_attention.pattern[layer, head], pairs
    )
    return MatchedWeights(
        weights,
        other_weights,
        gap,
        largest_gap(attention, other_attention, pairs),
        attention.pattern.shape[0] * attention.pattern.shape[1],
        float(max(weights.max(), other_weights.max())),
    )


def order_columns(comparison: OrderComparison) -> Columns:
    """The matched tokens and how far their last vectors agree, as named columns."""
    with_positions, without_positions = comparison.with_, comparison.without
    return {
        "token": [comparison.tokens[place] for place in comparison.pairs.here],
        "place": comparison.pairs.here,
        "place in the other order": comparison.pairs.there,
        "with: largest difference": with_positions.by_token,
        "with: digits": with_positions.digits,
        "with: cosine": with_positions.cosine,
        "without: largest difference": without_positions.by_token,
        "without: digits": without_positions.digits,
        "without: cosine": without_positions.cosine,
    }


def turned(vectors: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Vectors (head, token, d_head) with rotary positions: dimensions m and m + pairs turned by the
    token's place times the angle (pair) of pair m; the rest stays."""
    n = len(angles)
    angle = np.arange(vectors.shape[1])[:, None] * angles
    first, second, rest = vectors[..., :n], vectors[..., n : 2 * n], vectors[..., 2 * n :]
    cos, sin = np.cos(angle), np.sin(angle)
    parts = (first * cos - second * sin, first * sin + second * cos, rest)
    return np.concatenate(parts, axis=-1)
