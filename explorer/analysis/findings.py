"""What is worth a look in a recording: ranked statements about it, each with its evidence, what
chance gives, and the address that shows it.

Links between words are told where the heads show that they were learned
(`findings_links.is_trained`); of random weights only what is true of any recording is told: where
heads rest, which word turned most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from explorer.analysis import head_naming, residual, word_classes, words
from explorer.analysis.attention import axes
from explorer.analysis.head_naming import NAMED
from explorer.analysis.word_classes import is_word
from explorer.analysis.words import Groups
from models import token_relations
from models.recording import Attention, Recording, Stream
from models.results import Attribution, Lens
from models.token_relations import AT_ONCE

# What a finding is: one statement about one recording, with its evidence, its chance and the
# address that shows it.

# The kinds. LINKS are those that tie words to words; they are told of trained weights alone, see
# `findings_links.fit`.
LINK, NEAR_LINK, INDUCTION, SAME_WORD = "link", "near link", "induction", "same word"
CROSSED, ALIGNED, SAID_BY_TWO, LEFT_OUT = "crossed", "aligned", "said by two", "left out"
CROWD, SETTLED, PUSHED, TURNED, MOVED = "crowd", "settled", "pushed", "turned", "moved"
REGULARITY, SHORT = "regularity", "short"
LINKS = (LINK, NEAR_LINK, INDUCTION, SAME_WORD, CROSSED, ALIGNED, SAID_BY_TWO, LEFT_OUT)


@dataclass(frozen=True)
class Finding:
    """One statement about one recording.

    kind: one of those above. value: the number that is stated, in the unit of its kind (a weight,
    degrees, a count of heads, a layer, a logit), and chance: what it is held against, which of
    links is the largest weight that another row of the head gives the same key. score: what
    findings are ranked by, no more than an order. attention, layer, head:
    where it is seen, "" and -1 where it is no head's; `of` how many heads there are. query: a token
    of the rows' stream and keys: tokens of the columns'; words: what these are called, the query's
    first, subwords merged into words. also: how many other heads show it too. site: a name of the
    residual stream, or the kind of a part that pushed. counts: parts of a sum, (name, number).
    shown: the head (layer, head) whose picture is the evidence, where that is another than the one
    a page would open on. retype: a word of the text, and another that would test the finding. page
    and address: where it is seen, by a page's file and the choices of the address bar as (name,
    value).
    """

    kind: str
    value: float
    chance: float
    score: float
    attention: str = ""
    layer: int = -1
    head: int = -1
    of: int = 0
    query: int = -1
    keys: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    also: int = 0
    site: str = ""
    counts: tuple[tuple[str, int], ...] = ()
    shown: tuple[int, ...] = ()
    retype: tuple[str, str] = ("", "")
    page: str = "attention"
    address: tuple[tuple[str, str], ...] = ()

    @property
    def at(self) -> tuple[int, int]:
        """(layer, head)."""
        return self.layer, self.head


# Words that attend to words: the links of an attention, told of trained weights alone.

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
        """The classes of the words of rows and of columns, as `word_classes.classes` has them."""
        rows, keys = (np.array(word_classes.classes(one.labels)) for one in (self.rows, self.keys))
        return rows, keys

    @cached_property
    def nouns(self) -> np.ndarray:
        """Which columns are likely nouns, (column) bool."""
        return np.array(word_classes.nouns(self.keys.labels))

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
    score += MEASURED * (stands_for & (of_head == head_naming.PRONOUN))
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


# Findings between two texts: words that cross, a word said by two, a word left out, and the word
# that looks most plainly at another.

CLEAR = 0.4  # a weight from which a word looks at another plainly
# Beside what their words and weights are worth: two words that cross say more than one that is
# plain, which says more than two for one. A word left out stands behind links between words of
# content.
CROSSES, ALIGNS, DOUBLES = 3.3, 2.0, 1.0
LEAVES_OUT = 14.0
LEFT = 0.15  # a source word of which no row of any head takes more is left out


def across(seen: Between) -> list[Finding]:
    """What an attention from a target to its source shows.

    Rows are the words that are produced. Of the layers the one is read whose heads agree most on
    where each row looks, since in others many heads still look at what the word before came from;
    of its heads the one that shows the thing best. crossed: two neighbouring words of the target
    that look at two neighbouring words of the source in the other order; value the smaller weight,
    chance what the head gives those keys in its other rows, the larger of the two. said by two: two
    neighbours that look at one word. left out: a word of the source that no row looks at, value the
    most that any gives it, chance the same of the middle one of its words.
    """
    rows, keys = (np.flatnonzero(one) for one in seen.telling)
    if len(rows) < 2 or len(keys) < 2:
        return []
    layer = int(seen.weights.mean(axis=1).max(axis=2).mean(axis=1).argmax())
    read = Agreed(seen, layer, rows, keys)
    return [*_crossed(read), *_doubled(read), *_left_out(read), *_aligned(read)]


@dataclass(frozen=True, eq=False)
class Agreed:
    """One layer of a cross-attention: the rows and the columns that are words, and what its heads
    say of them."""

    seen: Between
    layer: int
    rows: np.ndarray
    keys: np.ndarray

    @cached_property
    def weights(self) -> np.ndarray:
        """(head, row of `rows`, column), in float64."""
        return self.seen.weights[self.layer][:, self.rows].astype(np.float64)

    @cached_property
    def choice(self) -> np.ndarray:
        """The column that the heads' mean puts first, (row of `rows`); -1 where that is no word of
        the text."""
        first = self.weights.mean(axis=0).argmax(axis=1)
        return np.where(np.isin(first, self.keys), first, -1)

    @cached_property
    def given(self) -> np.ndarray:
        """What each head's rows give their choice, (head, row of `rows`), 0 where there is none."""
        rows = np.arange(len(self.rows))
        return self.weights[:, rows, self.choice] * (self.choice >= 0)

    @cached_property
    def elsewhere(self) -> np.ndarray:
        """The largest weight that another row of the head gives that choice, (head, row of
        `rows`)."""
        return self.others([(at,) for at in range(len(self.rows))])

    def others(self, rows: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The largest weight that a row beside some of `rows` gives the choice of the first of
        them, (head, those rows)."""
        made = np.empty((len(self.weights), len(rows)))
        for at, some in enumerate(rows):
            column = self.seen.weights[self.layer][:, :, self.choice[some[0]]]
            made[:, at] = np.delete(column, self.rows[list(some)], axis=1).max(axis=1, initial=0)
        return made

    def order(self, pairs: Iterable[tuple[int, int]]) -> float:
        """What findings of these pairs (row of `rows`, column) are worth before their weights are
        looked at. A pronoun of a translation stands for no word of the source."""
        each = [int(self.seen.order(self.rows[row], column)) for row, column in pairs]
        return WORTH[max(BETWEEN_CONTENT, *each)]

    @property
    def beside(self) -> np.ndarray:
        """Whether a row and the next are neighbours that both have a choice, (row of `rows` but the
        last)."""
        return (np.diff(self.rows) == 1) & (self.choice[:-1] >= 0) & (self.choice[1:] >= 0)

    def finding(self, kind: str, head: int, row: int, columns: tuple[int, ...], **rest) -> Finding:
        """A finding at a row of `rows` and some columns."""
        cells = [
            self.seen.tokens(self.layer, head, int(self.rows[row]), column) for column in columns
        ]
        return Finding(
            kind,
            attention=self.seen.attention.name,
            layer=self.layer,
            head=head,
            of=self.seen.weights.shape[0] * self.seen.weights.shape[1],
            query=cells[0][0],
            keys=tuple(key for _, key in cells),
            **rest,
        )


def _crossed(read: Agreed) -> list[Finding]:
    """The clearest two words that cross."""
    choice = read.choice
    crosses = read.beside & (choice[1:] == choice[:-1] - 1)
    if not crosses.any():
        return []
    smaller = np.minimum(read.given[:, :-1], read.given[:, 1:])
    larger = np.maximum(read.elsewhere[:, :-1], read.elsewhere[:, 1:])
    order = [
        read.order(((row, int(choice[row])), (row + 1, int(choice[row + 1]))))
        for row in range(len(choice) - 1)
    ]
    worth = np.where(crosses & _tells(smaller, larger), order + smaller - larger, -1)
    head, row = (int(one) for one in np.unravel_index(worth.argmax(), worth.shape))
    if worth[head, row] < 0:
        return []
    columns = int(choice[row]), int(choice[row + 1])
    return [
        read.finding(
            CROSSED,
            head,
            row,
            columns,
            value=float(smaller[head, row]),
            chance=float(larger[head, row]),
            score=CROSSES + float(worth[head, row]),
            words=(*_said(read, row, 2), *(read.seen.keys.labels[one] for one in columns)),
            also=int((worth[:, row] >= 0).sum()) - 1,
        )
    ]


def _tells(weight: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where a weight is plain and lies beyond that of another row."""
    return (weight >= CLEAR) & (weight - other >= LEAST_EXCESS) & (other < MOST_ELSEWHERE)


def _said(read: Agreed, row: int, number: int) -> tuple[str, ...]:
    return tuple(read.seen.rows.labels[read.rows[row + one]] for one in range(number))


def _doubled(read: Agreed) -> list[Finding]:
    """The clearest pair of neighbouring target words that look at one source word."""
    smaller = np.minimum(read.given[:, :-1], read.given[:, 1:])
    same = read.beside & (read.choice[1:] == read.choice[:-1])
    if not same.any():
        return []
    others = read.others([(row, row + 1) for row in range(len(read.rows) - 1)])
    order = [
        read.order(((row, int(read.choice[row])), (row + 1, int(read.choice[row]))))
        for row in range(len(read.rows) - 1)
    ]
    worth = np.where(same & _tells(smaller, others), order + smaller - others, -1)
    head, row = (int(one) for one in np.unravel_index(worth.argmax(), worth.shape))
    if worth[head, row] < 0:
        return []
    column = int(read.choice[row])
    return [
        read.finding(
            SAID_BY_TWO,
            head,
            row,
            (column,),
            value=float(smaller[head, row]),
            chance=float(others[head, row]),
            score=DOUBLES + float(worth[head, row]),
            words=(*_said(read, row, 2), read.seen.keys.labels[column]),
            also=int((worth[:, row] >= 0).sum()) - 1,
        )
    ]


def _left_out(read: Agreed) -> list[Finding]:
    """The source word at which no row of any head of the layer looks, where the others are looked
    at."""
    # All rows count, those that produce punctuation too.
    most = read.seen.weights[read.layer].max(axis=(0, 1))[read.keys].astype(np.float64)
    at, middle = int(most.argmin()), float(np.median(most))
    if most[at] >= LEFT or middle < CLEAR:
        return []
    column = int(read.keys[at])
    head, row = np.unravel_index(read.weights[:, :, column].argmax(), read.weights.shape[:2])
    filler = read.seen.classes[1][column] == word_classes.FILLER
    return [
        read.finding(
            LEFT_OUT,
            int(head),
            int(row),
            (column,),
            value=float(most[at]),
            chance=middle,
            score=WORTH[FILLER] if filler else LEAVES_OUT,
            words=(read.seen.keys.labels[column],),
        )
    ]


def _aligned(read: Agreed) -> list[Finding]:
    """The word that looks most plainly at a word of the source."""
    order = [
        read.order(((row, column),)) if column >= 0 else 0.0
        for row, column in enumerate(read.choice.tolist())
    ]
    tells = _tells(read.given, read.elsewhere)
    worth = np.where(tells, order + read.given - read.elsewhere, -1)
    head, row = (int(one) for one in np.unravel_index(worth.argmax(), worth.shape))
    if worth[head, row] < 0:
        return []
    column = int(read.choice[row])
    return [
        read.finding(
            ALIGNED,
            head,
            row,
            (column,),
            value=float(read.given[head, row]),
            chance=float(read.elsewhere[head, row]),
            score=ALIGNS + float(worth[head, row]),
            words=(*_said(read, row, 1), read.seen.keys.labels[column]),
            also=int((worth[:, row] >= 0).sum()) - 1,
        )
    ]


# What the heads of an attention do taken together: the crowd, and the head that finds what was
# said before.

MANY = 5  # repeated words that make a repetition sure
REGULAR = 10.0  # a habit of place stands behind links of nouns and other words of content
BY_PLACE = ("previous", "next", "self", "diagonal", "anti-diagonal")
SETTLED_BY_PLACE = (head_naming.SINK, *BY_PLACE)


def crowd(
    named: Sequence[head_naming.Head], recording: Recording, attention: Attention
) -> Finding | None:
    """How many heads have which name. The head a page opens on is one without a habit, else one of
    the rarest; the one that shows the crowd is of those that are most. None where no head has a
    name."""
    counts = Counter(one.name for one in named if one.name in SETTLED_BY_PLACE)
    if not counts:
        return None
    common = counts.most_common(1)[0][0]
    free = [one for one in named if one.name not in counts]
    rarest = min(counts, key=lambda name: (name == head_naming.SINK, counts[name]))
    first = next(iter(free), None) or next(one for one in named if one.name == rarest)
    shown = next(one for one in named if one.name == common)
    keys = recording.stream(attention.key)
    special = tuple(dict.fromkeys(keys.tokens[at] for at in np.flatnonzero(keys.special)))
    first_token = () if keys.special[:1].any() else ("the first token",)
    return Finding(
        CROWD,
        float(sum(counts.values())),
        0.0,
        0.3 + 0.1 * counts[common] / len(named),
        attention.name,
        first.layer,
        first.head,
        len(named),
        words=first_token + special,
        counts=tuple(counts.most_common()),
        shown=(shown.layer, shown.head),
    )


def too_short(named: Sequence[head_naming.Head], recording: Recording) -> Finding | None:
    """That a text has too few tokens for names, value how many it has; None for one that has enough
    and for one without words."""
    stream = recording.streams[0]
    if named[0].name != head_naming.TOO_SHORT or stream.special.all():
        return None
    attention = recording.attention[0].name
    n, least = len(stream.tokens), head_naming.FEWEST_TOKENS
    return Finding(SHORT, float(n), float(least), 0.1, attention, 0, 0, len(named))


def regularity(named: Sequence[head_naming.Head], attention: Attention) -> Finding | None:
    """The head that follows its name furthest beyond an even row: a habit of place, not a sink and
    no repetition, which is told of itself. That a token attends to itself is told where there is
    nothing else. value and chance: the score and chance of its name."""
    by_place = [one for one in named if one.name in BY_PLACE]

    def rank(one: head_naming.Head) -> tuple[bool, float]:
        return one.name != "self", head_naming.lift(one.score, one.chance)

    best = max(by_place, key=rank, default=None)
    if best is None:
        return None
    return Finding(
        REGULARITY,
        best.score,
        best.chance,
        REGULAR + head_naming.lift(best.score, best.chance),
        attention.name,
        best.layer,
        best.head,
        len(named),
        words=(best.name,),
        also=sum(one.name == best.name for one in by_place) - 1,
        counts=(("shown", best.n_shown), ("rows", best.n_queries)),
    )


def repeated(seen: Between) -> list[Finding]:
    """The heads that find what was said before: one where a word looks at what followed it the
    first time, one where it looks at itself elsewhere.

    Between words, so that pieces of different words are no repetition. value and chance as
    `head_naming.Relation` has score and chance, over the words that can show it, whose number is
    counts.
    """
    attention, labels = seen.attention, seen.keys.labels
    masks = token_relations.repeats(labels, seen.keys.special)
    found = []
    of_rows, of_keys = (
        (one == word_classes.CONTENT) | (one == word_classes.UNSURE) for one in seen.classes
    )
    for kind in (INDUCTION, SAME_WORD):
        mask = masks[kind] & seen.allowed
        rows = np.flatnonzero(mask.any(axis=1))
        if len(rows) < 2:
            continue
        chance = float((mask[rows].sum(axis=1) / seen.allowed[rows].sum(axis=1)).mean())
        mass = token_relations.mass(seen.weights, mask)
        score = mass.mean(axis=-1)
        layer, head = (int(one) for one in np.unravel_index(score.argmax(), score.shape))
        value = float(score[layer, head])
        lift = (value - chance) / max(1 - chance, 1e-9)
        # One lucky row would not do: more than half of them show it.
        if lift < NAMED or 2 * int((mass[layer, head] > NAMED).sum()) <= len(rows):
            continue
        row, key = np.unravel_index(
            (np.where(mask, seen.weights[layer, head], -1) + (of_rows[:, None] & of_keys)).argmax(),
            mask.shape,
        )
        query, token = seen.tokens(layer, head, int(row), int(key))
        # Few repeats are soon told: words that fill every text are repeated in any.
        plain = int(of_rows[rows].sum())
        much = min(1.0, plain / MANY)
        found.append(
            Finding(
                kind,
                value,
                chance,
                WORTH[BETWEEN_CONTENT if much else FILLER]
                + AWAKE
                + APART
                + lift * (0.4 + much) * (1 if kind == INDUCTION else 0.9),
                attention.name,
                layer,
                head,
                attention.pattern.shape[0] * attention.pattern.shape[1],
                query,
                (token,),
                (labels[row], labels[key]),
                int((score > NAMED).sum()) - 1,
                counts=(("rows", len(rows)),),
            )
        )
    return found


# Findings of the residual stream and of what is read off it: the word that turned most, the one
# that attention moved most, where an answer was settled and what pushed it.

# Share of attention beyond the other words' from which it is plain to see.
PLAIN = 0.05


@dataclass(frozen=True, eq=False)
class StreamPrediction:
    """What a model answers at a token of a stream, where there is a readout: the lens, the token,
    what it says there in words, and, where it was taken apart, that word's logit."""

    lens: Lens
    token: int
    said: str
    taken_apart: Attribution | None = None


def turned(stream: Stream, grouped: Groups) -> list[Finding]:
    """The word that one sub-layer turned most beyond the other words there, and the word into which
    attention wrote most, layer by layer.

    turned: value in degrees, the largest over the word's tokens; chance: the mean of the other
    words. moved: value the share of attention in what stood there after it, |wrote| / (|wrote| +
    |before|), on average over the layers; chance: the other words', beyond which it lies by
    PLAIN. Both say something from three words on.
    """
    telling = np.flatnonzero(
        [not apart and is_word(label) for label, apart in zip(grouped.labels, grouped.special)]
    )
    if len(telling) < 3 or len(stream.sites) < 3:
        return []
    places = [one for one in residual.sublayers(stream) if one.layer >= 0]
    found = []
    turns = _of_all(residual.degrees, stream, [(one.before, one.after) for one in places])
    angles = _by_word(turns, grouped).take(telling, axis=1)
    moves = [(one.before, one.wrote) for one in places if one.place == "attn"]
    shares = _by_word(_of_all(residual.share, stream, moves), grouped).take(telling, axis=1)
    if len(angles) and np.isfinite(angles).all():
        found.append(_turned(angles, turns, places, stream, grouped, telling))
    if len(shares) and np.isfinite(shares).all():
        mean = np.mean(shares, axis=0)
        at = int(mean.argmax())
        others = float(np.delete(mean, at).mean())
        if mean[at] - others < PLAIN:
            return found
        word = int(telling[at])
        token = grouped.starts[word]
        found.append(
            Finding(
                MOVED,
                float(mean[at]),
                others,
                0.2 + min(0.2, float(mean[at]) - others),
                query=token,
                words=(grouped.labels[word],),
                page="residual",
                address=(
                    ("flow", "Writes"),
                    ("write", "Share"),
                    ("stream", stream.name),
                    ("token", str(token)),
                ),
            )
        )
    return found


def _of_all(
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray],
    stream: Stream,
    pairs: Sequence[tuple[str, str]],
) -> np.ndarray:
    """A measure of the vectors at two sites, for each pair of these and each token, (pair, token);
    of a short text for several pairs at once."""
    sites = {site: at for at, site in enumerate(stream.sites)}
    made = np.empty((len(pairs), len(stream.tokens)), stream.resid.dtype)
    step = max(1, AT_ONCE // max(1, stream.resid[0].size))
    for at in range(0, len(pairs), step):
        one, other = ([sites[each] for each in both] for both in zip(*pairs[at : at + step]))
        made[at : at + step] = measure(stream.resid[one], stream.resid[other])
    return made


def _turned(
    angles: np.ndarray,
    turns: np.ndarray,
    places: list[residual.SubLayer],
    stream: Stream,
    grouped: Groups,
    telling: np.ndarray,
) -> Finding:
    """The largest of angles (sub-layer, word) beyond the mean of the other words there. turns: the
    same of all tokens, (sub-layer, token)."""
    n = angles.shape[1]
    others = (angles.sum(axis=1, keepdims=True) - angles) / (n - 1)
    at, word = np.unravel_index((angles - others).argmax(), angles.shape)
    of = grouped.of == telling[word]
    token = int(np.where(of, turns[at], -1.0).argmax())
    return Finding(
        TURNED,
        float(angles[at, word]),
        float(others[at, word]),
        0.22 + min(0.2, float((angles - others)[at, word]) / 200),
        query=token,
        words=(grouped.labels[telling[word]],),
        site=places[at].site,
        page="residual",
        address=(
            ("flow", "Writes"),
            ("write", "Turned"),
            ("stream", stream.name),
            ("token", str(token)),
        ),
    )


def _by_word(values: np.ndarray, grouped: Groups) -> np.ndarray:
    """The largest of a word's tokens, (..., word)."""
    return np.maximum.reduceat(values, grouped.starts, axis=-1)


def answered(stream: Stream, answer: StreamPrediction) -> list[Finding]:
    """From which site on the model's own answer stays first, and what pushed it most.

    settled: value the number of the site, chance that of the text's other tokens on average.
    pushed: value what the head or the feed-forward network added to the logit (against another
    word's, where it was so taken apart), chance the mean size of all heads' and networks' parts.
    """
    lens, token = answer.lens, answer.token
    first = _settled(lens.rank)
    others = np.delete(first, token)
    found = []
    at = int(first[token])
    if at < len(lens.sites):
        found.append(
            Finding(
                SETTLED,
                float(at),
                float(others.mean()) if len(others) else float(len(lens.sites) - 1),
                0.35,
                query=token,
                words=(answer.said,),
                site=lens.sites[at],
                counts=(("sites", len(lens.sites)),),
                page="predictions",
                address=(("token", str(token)),),
            )
        )
    if answer.taken_apart is not None:
        found += _pushed(answer, answer.taken_apart)
    return found


def _settled(rank: np.ndarray) -> np.ndarray:
    """The first site from which on the final answer stays first, (token); rank (site, token)."""
    wrong = rank[::-1] > 0
    return len(rank) - np.where(wrong.any(axis=0), wrong.argmax(axis=0), len(rank))


def _pushed(answer: StreamPrediction, apart: Attribution) -> list[Finding]:
    parts = [part for part in apart.parts if part.kind in ("head", "ffn")]
    if len(parts) < 2:
        return []
    best = max(parts, key=lambda part: part.value)
    typical = float(np.mean([abs(part.value) for part in parts]))
    if best.value <= 2 * typical:
        return []
    is_head = best.kind == "head"
    return [
        Finding(
            PUSHED,
            best.value,
            typical,
            0.42,
            best.attention if is_head else "",
            best.layer,
            best.head if is_head else -1,
            query=answer.token,
            words=(answer.said,),
            site=best.kind,
            page="predictions",
            address=(("token", str(answer.token)),),
        )
    ]


MOST_LINKS = 12
# Names of heads with a habit of place: what else they show stands behind other links of its order.
# Heads whose near links are told where they have no far one.
NEAR_TOO = (head_naming.NO_PATTERN, head_naming.TOO_SHORT, head_naming.PRONOUN)
HABITS = (head_naming.SINK, "self", "previous", "next")


def findings(
    recording: Recording,
    after: str = "",
    answer: StreamPrediction | None = None,
    heads: Mapping[str, Sequence[head_naming.Head]] | None = None,
    trained: bool | None = None,
) -> tuple[Finding, ...]:
    """Everything told about a recording, the most telling first: words that look at words before
    all else.

    after: what the model would produce after its target, in a recording of two texts, for the name
    of the last row. answer: what is known of what the model says; without it nothing is told of
    that. heads: what `head_naming.describe` made of each attention by its name, where it is at
    hand. trained: what `findings.is_trained` says, where that is known.
    """
    found: list[Finding] = []
    if trained is None:
        trained = is_trained(recording)
    for attention in recording.attention:
        named = heads[attention.name] if heads else head_naming.describe(recording, attention)
        every: list[Finding | None] = [crowd(named, recording, attention)]
        every.append(regularity(named, attention))
        if not found:
            every.append(too_short(named, recording))
        found += [one for one in every if one is not None]
        if trained:
            found += _links(between_words(recording, attention, after), named)
    for stream in recording.streams:
        grouped = words.words(stream, _text(recording, stream.name))
        found += turned(stream, grouped)
    if answer is not None:
        found += answered(recording.stream(answer.lens.stream), answer)
    ranked = sorted(found, key=lambda one: -one.score)
    return tuple(_addressed(recording, one) for one in ranked)


def worth(found: Sequence[Finding], most: int = 5) -> tuple[Finding, ...]:
    """The strongest finding and others beside it: no two of the same head, no two with the same
    word and kind, at most two far links in a row of `most`, so that each leads elsewhere."""
    chosen: list[Finding] = []
    for one in found:
        if len(chosen) == most:
            break
        heads = {(each.attention, each.at) for each in chosen if each.head >= 0}
        said = {(each.kind, each.words[:1]) for each in chosen}
        alike = sum(each.kind == one.kind for each in chosen)
        if (
            (one.head >= 0 and (one.attention, one.at) in heads)
            or (one.kind, one.words[:1]) in said
            or alike >= (2 if one.kind in LINKS else 1)
        ):
            continue
        chosen.append(one)
    return tuple(chosen)


def strongest_link(
    recording: Recording, attention: Attention, head: head_naming.Head
) -> Link | None:
    """The word that attends most tellingly to a far word in a head of a model that has learned, or,
    where the head has no name, at a near one; None where there is none, and of cross-attention."""
    if attention.query != attention.key:
        return None
    at = (head.layer, head.head)
    seen = between_words(recording, attention, "", at)
    far = 1 if head.name in NEAR_TOO else FAR
    found = links(seen, np.array([[head.name]]), far)
    return found[0] if found else None


def _links(seen: Between, named: Sequence[head_naming.Head]) -> list[Finding]:
    """What ties words to words in an attention, whose heads are `named`."""
    if seen.attention.query != seen.attention.key:
        return across(seen)
    found = repeated(seen)
    repeats = any(one.kind == INDUCTION for one in found)
    names = np.array([one.name for one in named]).reshape(seen.weights.shape[:2])
    linked = _fresh(seen, links(seen, names, habits=HABITS), repeats)
    found = [
        _with(one, score=one.score - AWAKE) if names[one.at] in HABITS else one for one in found
    ]
    return [*found, *(_told(seen, link) for link in linked[:MOST_LINKS])]


def _told(seen: Between, link: Link) -> Finding:
    """A link as a finding."""
    return Finding(
        LINK if abs(link.places[0] - link.places[1]) >= FAR else NEAR_LINK,
        link.weight,
        link.chance,
        link.score,
        seen.attention.name,
        link.layer,
        link.head,
        seen.weights.shape[0] * seen.weights.shape[1],
        link.query,
        (link.key,),
        link.words,
        link.also,
        retype=_retype(seen, link),
    )


def _fresh(seen: Between, linked: list[Link], repeats: bool) -> list[Link]:
    """The links that a repetition does not say already: none between a word and itself, and, where
    a head `repeats`, none to what followed the word before."""
    said = [label.casefold() for label in seen.keys.labels]
    return [
        link
        for link in linked
        if said[link.places[1]] != said[link.places[0]]
        and not (repeats and said[link.places[1] - 1] == said[link.places[0]])
    ]


def _with(one: Finding, **other: Any) -> Finding:
    """The finding with some fields another: as `dataclasses.replace`, in a third of its time."""
    return Finding(**vars(one) | other)


def between_words(
    recording: Recording,
    attention: Attention,
    after: str,
    only: tuple[int, int] | None = None,
) -> Between:
    """An attention, or one head of it, between the words of its texts. `after`: what follows a
    target, for its last row."""
    rows, keys = (
        words.words(recording.stream(name), _text(recording, name))
        for name in (attention.query, attention.key)
    )
    if attention.query != attention.key:
        said = axes(recording, attention, after).said or ()
        rows = words.produced(rows, *said[-1])
    return between(attention, rows, keys, only)


def _text(recording: Recording, stream: str) -> str:
    return (
        recording.target if stream == "decoder" and len(recording.streams) > 1 else recording.text
    )


def _retype(seen: Between, link: Link) -> tuple[str, str]:
    """A later word of the text whose opposite might send the link elsewhere."""
    row = link.places[0]
    if seen.classes[0][row] != word_classes.PRONOUN:
        return "", ""
    for label in seen.keys.labels[row + 1 :]:
        if label in CHANGES:
            return label, CHANGES[label]
    return "", ""


def _addressed(recording: Recording, one: Finding) -> Finding:
    """The finding with the choices that show it, "" for those that say nothing."""
    if one.page != "attention":
        return one
    first = recording.attention[0].name
    name = "" if one.attention == first else one.attention
    query = "" if one.query < 0 else str(one.query)
    layer, head = one.shown or one.at
    return _with(
        one,
        address=(
            ("attention", name),
            ("layer", str(layer)),
            ("head", str(head)),
            ("token", query),
            ("source", ""),
        ),
    )
