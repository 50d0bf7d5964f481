"""Words that look at words: the links of an attention that stand above what its heads do anyway,
told of trained weights alone.

A link is a cell between two words. Its chance is the most of
    what the head gives that key in the other rows, what it gives keys at that distance in the other
    rows, since many heads look so many places back whatever stands there, what it would give that
    key with the keys of the layer's other heads, which belong to other queries,
and its lift (weight - chance) / (1 - chance). None of that knows a trained model from a random one,
whose heads can be as sharp: that is what `fit` is for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from explorer.analysis import words
from models.recording import Attention, Recording

FAR = 3  # words: nearer ones are neighbours, which heads look at by their place
LEAST_WEIGHT, LEAST_LIFT = 0.3, 0.25
LEAST_EXCESS = 0.1  # weight beyond chance: a lift from 0.97 to 1 is nothing to see
HABIT = 0.4  # a key that gets so much on average from a head's other rows is where it rests
HABIT_FIRST = 0.15  # of the first token, on which heads rest that have no special one
FAINT = 0.05  # weights under it do not count for a distance's mean
# Standard deviations by which a model's own pairs of queries and keys outdo pairs of different
# heads: random weights reach it in one of 200.
FITS = 2.6
FIT_TOKENS = 64
MOST = 60  # links of an attention that are looked at closely
NUMBERED = re.compile(r"(U\+[0-9A-F]{4,6})+")  # what cannot be seen, as labels have it


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words that readers wonder about, since what they stand for is said elsewhere. They put links in
# order; they are no part of what is said.
ASKED = _set(
    "it he she they him her them his its their who himself herself itself themselves er sie es "
    "ihn ihm ihr il elle ils elles lui leur él ella ellos lui lei egli ele ela hij zij han hon он "
    "она оно они वह वे उसने उन्होंने 它 他 她"
)
# Words that fill every text; a link to or from one says less.
FILLERS = _set(
    "a an the and or but nor so yet if as at by for from in into of off on onto out over to up "
    "with about after again before between during than then there here when where while why how "
    "what because although though until since is are was were be been being am do does did has "
    "have had will would can could shall should may might must not no i you we me us my your our "
    "it he she they him her them his its their who which that this these those didn't doesn't "
    "don't isn't aren't wasn't weren't can't couldn't won't wouldn't hasn't haven't it's i'm all "
    "any both each few more most other some such only own same too very just also neither either "
    "every"
)
CHANGES = {
    "tired": "wide",
    "wide": "tired",
    "big": "small",
    "small": "big",
    "loud": "quiet",
    "hot": "cold",
    "cold": "hot",
    "happy": "sad",
    "heavy": "light",
    "hungry": "ripe",
    "angry": "late",
}


@dataclass(frozen=True)
class Link:
    """One word that looks at another: tokens (query, key) of the largest weight between the two,
    the words' labels, the weight between the words, what chance would give, how many other heads
    show it too, and what links are ranked by."""

    layer: int
    head: int
    query: int
    key: int
    words: tuple[str, str]
    places: tuple[int, int]
    weight: float
    chance: float
    also: int
    score: float

    @property
    def lift(self) -> float:
        return (self.weight - self.chance) / (1 - self.chance)


@lru_cache(maxsize=50_000)  # of a long text each label is asked for several times
def is_word(label: str) -> bool:
    """True for a label with a letter, a digit or a symbol (an emoji) in it: not for punctuation,
    bare spaces, and signs that are named by their number because they cannot be seen."""
    if NUMBERED.fullmatch(label):
        return False
    kinds = ((unicodedata.category(letter)[0], letter) for letter in label)
    return any(kind in "LN" or (kind == "S" and letter > "\u2190") for kind, letter in kinds)


def fit(recording: Recording) -> float:
    """By how many standard deviations a head's own queries and keys go together better than those
    of two heads of its layer.

    How well they go together is the spread of q . k over the text once the means of rows and
    columns are taken out, in logarithms; the deviation is that of all ways to pair the heads of
    each layer. Where weights are random the heads may be exchanged, so that this is about normal: 0
    on average, above `FITS` in one recording of 200, whatever the weights' sizes. NaN where a model
    does not show its queries and keys or has one head a layer.
    """
    total, variance = 0.0, 0.0
    for attention in recording.attention:
        heads = attention.pattern.shape[1]
        if not attention.opens or heads < 2:
            continue
        queries = _spread(attention.q, recording.stream(attention.query).special)
        keys = _spread(np.asarray(attention.k), recording.stream(attention.key).special)
        if queries is None or keys is None:
            continue
        with np.errstate(divide="ignore"):
            together = np.log(queries @ keys.swapaxes(1, 2))
        if not np.isfinite(together).all():
            continue
        pairs = together - together.mean(axis=2, keepdims=True)
        pairs -= pairs.mean(axis=1, keepdims=True)
        total += float(np.einsum("lhh->", pairs))
        variance += float((pairs**2).sum()) / (heads - 1)
    return total / variance**0.5 if variance > 0 else float("nan")


def _spread(vectors: np.ndarray, special: np.ndarray) -> np.ndarray | None:
    """What the vectors (layer, head, token, d_head) spread over, as their summed outer products
    around the mean, (layer, head, d_head x d_head); over at most FIT_TOKENS words of the text, None
    for fewer than two."""
    places = np.flatnonzero(~special)
    if len(places) < 2:
        return None
    few = places
    if len(places) > FIT_TOKENS:
        few = places[np.unique(np.linspace(0, len(places) - 1, FIT_TOKENS).astype(int))]
    around = vectors[:, :, few].astype(np.float32)
    around = around - around.mean(axis=2, keepdims=True)
    return (around.swapaxes(2, 3) @ around).reshape(*vectors.shape[:2], -1).astype(np.float64)


def is_trained(recording: Recording) -> bool:
    """True where the heads show that they were learned: queries and keys that belong together
    (`fit`), or, of a model that does not show them, at least two heads of which most rows look at a
    neighbour."""
    found = fit(recording)
    if np.isfinite(found):
        return found >= FITS
    count = 0
    for attention in recording.attention:
        if attention.query == attention.key and attention.pattern.shape[2] > FAR:
            beside = [
                np.diagonal(attention.pattern, offset, 2, 3).mean(axis=-1) for offset in (-1, 1)
            ]
            count += int((np.maximum(*beside) > 0.5).sum())
    return count >= 2


@dataclass(frozen=True, eq=False)
class Between:
    """An attention between words: weights (layer, head, row, column), allowed (row, column), and
    which tokens the words are. only: the layer and head that the weights are of alone."""

    attention: Attention
    weights: np.ndarray
    allowed: np.ndarray
    rows: words.Groups
    keys: words.Groups
    only: tuple[int, int] | None = None

    @cached_property
    def telling(self) -> tuple[np.ndarray, np.ndarray]:
        """Which rows and which columns are words of the text: no special tokens, no punctuation."""
        rows, keys = (
            np.array(
                [not apart and is_word(label) for label, apart in zip(one.labels, one.special)]
            )
            for one in (self.rows, self.keys)
        )
        return rows, keys

    @cached_property
    def interest(self) -> tuple[np.ndarray, np.ndarray]:
        """What the words of rows and of columns weigh in the order of links."""
        return (
            np.array([_weight_of(label, True) for label in self.rows.labels]),
            np.array([_weight_of(label, False) for label in self.keys.labels]),
        )

    def tokens(self, layer: int, head: int, row: int, key: int) -> tuple[int, int]:
        """The tokens (query, key) of the largest weight between two words."""
        top, left = self.rows.starts[row], self.keys.starts[key]
        if self.rows.sizes[row] == 1 == self.keys.sizes[key]:
            return top, left
        part = self.attention.pattern[
            layer, head, top : top + self.rows.sizes[row], left : left + self.keys.sizes[key]
        ]
        query, column = np.unravel_index(part.argmax(), part.shape)
        return top + int(query), left + int(column)


def between(
    attention: Attention,
    rows: words.Groups,
    keys: words.Groups,
    only: tuple[int, int] | None = None,
) -> Between:
    """An attention, or one head of it (layer, head), between the words that `rows` and `keys` make:
    summed over a word's tokens as a key, averaged over them as a query."""
    pattern = attention.pattern if only is None else attention.pattern[only][None, None]
    weights = words.between(pattern, rows, keys)
    allowed = words.merged_allowed(attention.allowed, rows, keys)
    return Between(attention, weights, allowed, rows, keys, only)


def links(seen: Between, far: int = FAR) -> list[Link]:
    """The words that look at a word at least `far` words away, the most telling first: each pair of
    words once, in the head that shows it best; of one head alone the best."""
    weights, allowed = seen.weights, seen.allowed
    n_rows, n_keys = allowed.shape
    strong = np.flatnonzero(weights >= FAINT)
    at_head, cell = np.divmod(strong, n_rows * n_keys)
    row, key = np.divmod(cell, n_keys)
    weight = weights.ravel()[strong].astype(np.float64)
    apart = key - row
    # What the head gives at that distance, in the other rows: the weights under FAINT are left out
    # of the sum.
    distance = at_head * (n_rows + n_keys) + apart + n_rows
    given = np.bincount(
        distance, weight, minlength=weights.shape[0] * weights.shape[1] * (n_rows + n_keys)
    )
    there = np.bincount(
        ((np.arange(n_keys)[None, :] - np.arange(n_rows)[:, None]) + n_rows)[allowed],
        minlength=n_rows + n_keys,
    )
    tells = (seen.telling[0][:, None] & seen.telling[1]).ravel()
    fit_in = np.flatnonzero((weight >= LEAST_WEIGHT) & (np.abs(apart) >= far) & tells[cell])
    at_head, row, key, weight, apart, distance = (
        one[fit_in] for one in (at_head, row, key, weight, apart, distance)
    )
    layer, head = np.divmod(at_head, weights.shape[1])
    by_distance = (given[distance] - weight) / np.maximum(there[apart + n_rows] - 1, 1)
    by_key = _elsewhere(weights, allowed, (layer, head, row, key), weight)
    rests = by_key >= np.where((key == 0), HABIT_FIRST, HABIT)
    chance = np.maximum(by_key, by_distance)
    lift = (weight - chance) / np.maximum(1 - chance, 1e-9)
    interest = _interest(seen, row, key)
    score = lift * interest
    keep = np.flatnonzero(~rests & (lift >= LEAST_LIFT) & (weight - chance >= LEAST_EXCESS))
    keep = keep[np.argsort(-score[keep], kind="stable")]
    heads: dict[int, list[int]] = {}  # of each pair of words those that show it, the best first
    for at, pair in zip(keep.tolist(), (row * n_keys + key)[keep].tolist()):
        heads.setdefault(pair, []).append(at)
    best = list(heads.values())[: MOST if seen.only is None else 1]
    found = np.array([those[0] for those in best], dtype=int)
    cells = np.array((layer, head, row, key))[:, found].T
    also = np.array([len(those) - 1 for those in best], dtype=int)
    return _closely(seen, cells, chance[found], interest[found], also)


def _elsewhere(
    weights: np.ndarray, allowed: np.ndarray, cells: tuple[np.ndarray, ...], weight: np.ndarray
) -> np.ndarray:
    """What each cell's key gets from its head's other rows, on average over those that may look
    there."""
    layer, head, _, key = cells
    total = weights.sum(axis=2, dtype=np.float32)[layer, head, key]
    return (total - weight) / np.maximum(allowed.sum(axis=0)[key] - 1, 1)


def _interest(seen: Between, row: np.ndarray, key: np.ndarray) -> np.ndarray:
    """How much a reader would want to hear of a link between these words: more of a word that
    stands for another, less of one that fills every text, less of near ones."""
    rows, keys = seen.interest
    return rows[row] * keys[key] * np.where(np.abs(key - row) <= FAR, 0.85, 1.0)


def _weight_of(label: str, as_query: bool) -> float:
    word = label.casefold()
    if as_query and word in ASKED:
        return 1.25
    if word in FILLERS or (len(word) < FAR and word.isascii()):
        return 0.7 if as_query else 0.5
    return 1.0


def _closely(
    seen: Between,
    cells: np.ndarray,
    chances: np.ndarray,
    interest: np.ndarray,
    also: np.ndarray,
) -> list[Link]:
    """The links that stand above the keys of the layer's other heads too, the most telling first;
    cells (link, 4) of `seen.weights`, chances, interest and heads that agree (link)."""
    weights = seen.weights[tuple(cells.T)].astype(np.float64)
    if seen.only is not None:
        cells = cells + (*seen.only, 0, 0)
    tokens = [seen.tokens(*cell) for cell in cells.tolist()]
    chances = np.maximum(chances, _mismatched(seen, cells, tokens))
    lifts = (weights - chances) / np.maximum(1 - chances, 1e-9)
    # Heads that agree speak for it, a little.
    scores = lifts * interest * (1 + 0.03 * np.minimum(also, 3))
    order = np.argsort(-scores, kind="stable")
    found = []
    for at in order[lifts[order] >= LEAST_LIFT].tolist():
        layer, head, row, key = cells[at].tolist()
        query, token = tokens[at]
        labels = seen.rows.labels[row], seen.keys.labels[key]
        told = float(weights[at]), float(chances[at]), int(also[at])
        found.append(
            Link(layer, head, query, token, labels, (row, key), *told, score=float(scores[at]))
        )
    return found


def _mismatched(seen: Between, cells: np.ndarray, tokens: Sequence[tuple[int, int]]) -> np.ndarray:
    """What each link's query (of `tokens`) gives its word on average with the keys of the layer's
    other heads, (link); 0 where they are not known."""
    attention = seen.attention
    heads, n_keys = attention.pattern.shape[1], attention.pattern.shape[3]
    if not attention.opens or heads < 2:
        return np.zeros(len(cells))
    layer, head, _, key = cells.T
    queries, each = np.array([query for query, _ in tokens], dtype=int), np.arange(len(cells))
    products = np.empty((len(cells), heads, n_keys))  # (link, head, token)
    for one in set(layer.tolist()):
        which = np.flatnonzero(layer == one)
        asked = attention.q[one, head[which], queries[which]]
        products[which] = (attention.k[one] @ asked.T).transpose(2, 0, 1)
    scores = attention.scores[layer, head, queries].astype(np.float64)
    own = products[each, head]
    around = own - own.mean(axis=1, keepdims=True)
    length = (around**2).sum(axis=1)
    times = (around * scores).sum(axis=1) / np.where(length > 0, length, np.inf)
    shares = products
    shares *= times[:, None, None]
    if not attention.allowed.all():
        shares[np.broadcast_to(~attention.allowed[queries][:, None], shares.shape)] = -np.inf
    shares -= shares.max(axis=2, keepdims=True)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=2, keepdims=True)
    shares[each, head] = 0  # its own keys are no others
    to = shares.sum(axis=1) / (heads - 1)
    first, sizes = np.array(seen.keys.starts)[key], seen.keys.sizes[key]
    given = to[each, first]
    for at in np.flatnonzero(sizes > 1):
        given[at] = to[at, first[at] : first[at] + sizes[at]].sum()
    return given
