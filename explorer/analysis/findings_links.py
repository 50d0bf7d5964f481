"""Words that attend to words: the links of an attention, told of trained weights alone.

A link is a cell between two words. What it is held against is the largest weight that any other
row of the same head gives the same word: a link is told where its weight lies beyond that, and
ranked by how far. Not told are a pair that the head's own named pattern predicts, a pair at a
distance at which the head gives as much in its other rows, and two halves of one word. Links from a
pronoun to a noun come first, then links between words of content, last those with a word that fills
every text (`vocabulary`). None of that knows a trained model from a random one, whose heads can be
as sharp: that is what `fit` is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from explorer.analysis import heads as naming
from explorer.analysis import vocabulary, words
from explorer.analysis.vocabulary import is_word as is_word
from models.recording import Attention, Recording

FAR = 3  # words: nearer ones are neighbours, which heads attend to by their place
LEAST_WEIGHT = 0.3
LEAST_EXCESS = 0.1  # weight beyond the largest other row: from 0.97 to 1 is nothing to see
MOST_ELSEWHERE = 0.5  # a word to which another row gives so much is no link of this one
# A lift over what the head gives at that distance in its other rows.
LEAST_LIFT = 0.25
# Standard deviations by which a model's own pairs of queries and keys outdo pairs of different
# heads: random weights reach it in one of 200.
FITS = 2.6
FIT_TOKENS = 64
MOST = 24  # links of an attention
HYPHENS = frozenset("-\u2010\u2011")
# The order of links: from a pronoun to a noun, between words of content, other links of pronouns
# and of words of which nothing is known, and those with a filler.
PRONOUN_TO_NOUN, BETWEEN_CONTENT, UNSURE, FILLER = range(4)
WORTH = (20.0, 16.0, 4.0, 0.0)  # by these; further apart than what else a score is made of
# By the classes of the row's word and of the column's.
ORDER = np.array(
    [
        [BETWEEN_CONTENT, UNSURE, UNSURE, FILLER],
        [PRONOUN_TO_NOUN, UNSURE, UNSURE, FILLER],
        [UNSURE, UNSURE, UNSURE, FILLER],
        [FILLER, FILLER, FILLER, FILLER],
    ]
)
# In a head without a habit of place; between words that are not neighbours; from a pronoun, in a
# head that finds a pronoun's noun in other sentences too.
AWAKE, APART, MEASURED = 2.0, 1.0, 1.0

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
    """One word that attends to another: tokens (query, key) of the largest weight between the two,
    the words' labels and places, the weight between the words, chance: the largest weight that
    another row of the head gives the key, how many other heads show it too, and what links are
    ranked by."""

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
    def excess(self) -> float:
        """How much more this row gives the key than any other row of the head."""
        return self.weight - self.chance


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
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes of the words of rows and of columns, as `vocabulary.classes` has them."""
        rows, keys = (np.array(vocabulary.classes(one.labels)) for one in (self.rows, self.keys))
        return rows, keys

    @cached_property
    def nouns(self) -> np.ndarray:
        """Which columns are likely nouns, (column) bool."""
        return np.array(vocabulary.nouns(self.keys.labels))

    def order(self, row: np.ndarray | int, key: np.ndarray | int) -> np.ndarray:
        """The order of links between words of rows and of columns. A noun that follows close upon a
        pronoun (*his hands*) is not what that stands for."""
        rows, keys = self.classes
        order = ORDER[rows[row], keys[key]]
        stands_for = self.nouns[key] & ((key < row) | (np.abs(key - row) >= FAR))
        return np.where((order == PRONOUN_TO_NOUN) & ~stands_for, UNSURE, order)

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


def links(seen: Between, names: np.ndarray, far: int = 1, habits: Sequence[str] = ()) -> list[Link]:
    """The words that attend to a word at least `far` words away, the most telling first: each pair
    of words once, in the head that shows it best; of one head alone the best.

    names (layer, head): what the heads are called, so that no pair is told that a name predicts;
    links of heads with one of the names `habits` stand behind others of their order.
    """
    at_head, row, key = _largest_rows(seen)
    layer, head = np.divmod(at_head, seen.weights.shape[1])
    keep = (
        seen.telling[0][row]
        & seen.telling[1][key]
        & (np.abs(key - row) >= far)
        & ~_halves(seen, row, key)
    )
    keep &= ~_predicted(seen, names[layer, head], row, key)
    cells = np.array((layer, head, row, key))[:, keep]
    weight, other = _beside_others(seen, cells)
    keep = (weight - other >= LEAST_EXCESS) & (other < MOST_ELSEWHERE)
    (layer, head, row, key), weight, other = cells[:, keep], weight[keep], other[keep]
    order, of_head = seen.order(row, key), names[layer, head]
    stands_for = order == PRONOUN_TO_NOUN
    score = np.array(WORTH)[order] + AWAKE * ~np.isin(of_head, list(habits)) + weight - other
    score += APART * (stands_for | (np.abs(key - row) >= FAR))
    score += MEASURED * (stands_for & (of_head == naming.PRONOUN))
    return _best(seen, cells[:, keep].T, weight, other, score)


def _largest_rows(seen: Between) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each head and each word the row that gives it most, as numbers of heads, rows and columns:
    no other can lie beyond the others. Weights under LEAST_WEIGHT are left out."""
    n_rows, n_keys = seen.allowed.shape
    strong = np.flatnonzero(seen.weights >= LEAST_WEIGHT)
    strong = strong[np.argsort(-seen.weights.ravel()[strong], kind="stable")]
    at_head, cell = np.divmod(strong, n_rows * n_keys)
    _, first = np.unique(at_head * n_keys + cell % n_keys, return_index=True)
    return at_head[first], cell[first] // n_keys, cell[first] % n_keys


def _beside_others(seen: Between, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weights at cells (4, cell), and the largest that another row gives the same word in the
    same head."""
    layer, head, row, key = cells
    columns = seen.weights[layer, head, :, key].astype(np.float64)
    each = np.arange(len(row))
    weight = columns[each, row]
    columns[each, row] = 0
    return weight, columns.max(axis=1, initial=0)


def _halves(seen: Between, row: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Which pairs are the two halves of a word with a hyphen, (pair) bool."""
    hyphen = np.array([label in HYPHENS for label in seen.keys.labels])
    between = np.minimum(np.minimum(row, key) + 1, len(hyphen) - 1)
    within = seen.attention.query == seen.attention.key
    return within & (np.abs(row - key) == 2) & hyphen[between]


def _predicted(seen: Between, names: np.ndarray, row: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Which pairs a head's name predicts, (pair) bool; names (pair)."""
    _, code = np.unique([label.casefold() for label in seen.keys.labels], return_inverse=True)
    if len(seen.rows.labels) != len(code):
        return np.zeros(len(names), bool)
    holds = {
        "previous": key == row - 1,
        "next": key == row + 1,
        "same word": code[key] == code[row],
        "induction": (key > 0) & (code[key - 1] == code[row]),
        "sink": key == 0,
    }
    return np.any([(names == name) & where for name, where in holds.items()], axis=0)


def _best(
    seen: Between, cells: np.ndarray, weight: np.ndarray, other: np.ndarray, score: np.ndarray
) -> list[Link]:
    """The links at cells (link, 4) of `seen.weights`, each pair of words in the head that shows it
    best, at most MOST of them; of one head alone the best of all."""
    heads: dict[tuple[int, int], list[int]] = {}  # of each pair those that show it, the best first
    for at in np.argsort(-score, kind="stable").tolist():
        heads.setdefault((int(cells[at, 2]), int(cells[at, 3])), []).append(at)
    found: list[Link] = []
    for those in heads.values():
        beyond = [at for at in those if _beyond_distance(seen, *cells[at].tolist())]
        if not beyond:
            continue
        at = beyond[0]
        layer, head, row, key = cells[at].tolist()
        if seen.only is not None:
            layer, head = seen.only
        query, token = seen.tokens(layer, head, row, key)
        labels = seen.rows.labels[row], seen.keys.labels[key]
        told = float(weight[at]), float(other[at]), len(beyond) - 1
        found.append(
            Link(layer, head, query, token, labels, (row, key), *told, score=float(score[at]))
        )
        if len(found) == (MOST if seen.only is None else 1):
            break
    return found


def _beyond_distance(seen: Between, layer: int, head: int, row: int, key: int) -> bool:
    """True for a cell that stands beyond what its head gives at that distance in its other rows."""
    if seen.attention.query != seen.attention.key:
        return True
    along = np.diagonal(seen.weights[layer, head], key - row)
    may = int(np.count_nonzero(np.diagonal(seen.allowed, key - row)))
    weight = float(seen.weights[layer, head, row, key])
    chance = (float(along.sum()) - weight) / max(1, may - 1)
    return weight - chance >= LEAST_LIFT * (1 - chance)
