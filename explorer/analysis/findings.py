"""Findings: ranked statements about a recording, with evidence, chance level and address.

Links between words are listed where the heads are trained (`is_trained`). For random weights only
findings that hold for any recording are listed: sinks, and the word whose vector turned most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from explorer.analysis import (
    coreference,
    head_naming,
    logit_lens,
    residual,
    word_classes,
    words,
)
from explorer.analysis.attention import axes, groups
from explorer.analysis.coreference import Ballot, Vote
from explorer.analysis.head_naming import MIN_LIFT
from explorer.analysis.word_classes import HYPHENS, is_word
from explorer.analysis.words import Groups
from models.contract import token_relations
from models.contract.cancellation import expect_wanted
from models.contract.recording import Attention, Recording, Stream, stored_array
from models.contract.results import Attribution, Lens
from models.contract.token_relations import CHUNK_SIZE
from models.tokens import chat

# What a finding is: one statement about one recording, with its evidence, its chance and the
# address that shows it.

# The kinds. LINKS are those between words; they are listed for trained weights alone, see
# `qk_fit`.
LINK, NEAR_LINK, ABOVE_MEAN = "link", "near link", "link above the mean"
INDUCTION = "induction"
CROSSED, ALIGNED, DOUBLE = "crossed", "aligned", "said by two"
CROWD, SETTLED, PUSHED, TURNED, MOVED = "crowd", "settled", "pushed", "turned", "moved"
REGULARITY, SHORT, CHAT, FOREIGN = "regularity", "short", "chat", "foreign"
ALL_SAY, MOST_SAY = "said by all heads", "said by most heads"
DIVIDED, OUTVOTED = "heads divided", "most heads outweighed"
NO_NOUN = (DIVIDED, OUTVOTED)  # of votes that name none
VOTES = (ALL_SAY, MOST_SAY, *NO_NOUN)  # of the tested heads on what a pronoun stands for
PAIRS = (LINK, NEAR_LINK, ABOVE_MEAN)  # one word that attends to another in one text
LINKS = (*PAIRS, INDUCTION, CROSSED, ALIGNED, DOUBLE)


@dataclass(frozen=True)
class Finding:
    """One statement about one recording.

    kind: one of those above. value: the number that is stated, in the unit of its kind (a weight,
    degrees, a count of heads, a layer, a logit), and chance: its baseline, for links the largest
    weight that another row of the head gives the same key, for those above the mean the mean
    weight that the other words give it. score: the rank order of findings.
    attention, layer, head: its head, "" and -1 where it is no head's; `of` the number of heads.
    query: a token of the rows' stream and keys: tokens of the columns'; words: their labels, the
    query's first, subwords merged into words; of a predicted word the word, and its first piece
    where it has several. also: the number of other heads that show it too. site: a name of the
    residual stream, or the kind of the part with the largest contribution. counts: parts of a sum,
    (name, number). example_head: the head (layer, head) whose picture is the evidence, where that
    is another than the one a page would open on. page and address: a tab and the choices of the
    address bar as (name, value). other: of a link the word that gets most of the row after the key,
    and its weight, where that is at least CONTEST of the link's; ("", 0) where none does; of a vote
    the noun whose weights are the largest, though most heads say another.
    stands_for: true for a link from a pronoun to a noun that it may stand for, and for a vote on
    one. ballots: of a vote what each head says, and tested: how often so many heads are right, None
    where that was not measured. A vote is seen in the best-tested head that says the noun, and of
    one that is divided in the best-tested head.
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
    example_head: tuple[int, ...] = ()
    page: str = "heads"
    address: tuple[tuple[str, str], ...] = ()
    other: tuple[str, float] = ("", 0.0)
    stands_for: bool = False
    ballots: tuple[Ballot, ...] = ()

    @property
    def at(self) -> tuple[int, int]:
        """(layer, head)."""
        return self.layer, self.head

    @property
    def shown_in(self) -> tuple[tuple[int, int], ...]:
        """The heads (layer, head) whose picture shows it, the clearest first."""
        if self.ballots:
            return tuple((each.layer, each.head) for each in self.ballots)
        return ((self.example_head[0], self.example_head[1]) if self.example_head else self.at,)

    @property
    def n_votes(self) -> int:
        """The number of heads that say the noun of a vote, 0 where they are divided."""
        noun = {(each.layer, each.head): each.noun for each in self.ballots}.get(self.at)
        return 0 if self.kind in NO_NOUN else sum(each.noun == noun for each in self.ballots)

    @property
    def above_mean(self) -> bool:
        """True where `chance` is the mean of the other words, and not the largest other row."""
        return self.kind == ABOVE_MEAN


# Words that attend to words: the links of an attention, told of trained weights alone.

FAR = 3  # words: nearer ones are neighbours, which heads attend to by their place
LEAST_WEIGHT = 0.3
LEAST_EXCESS = 0.1  # weight beyond the largest other row: from 0.97 to 1 is nothing to see
MOST_ELSEWHERE = 0.5  # a word to which another row gives so much is no link of this one alone
# A lift over what the head gives at that distance in its other rows, and over what the other words
# give the same word.
LEAST_LIFT = coreference.LEAST_LIFT
CONTEST = 1 / 3  # of a link's weight: a word that gets so much of its row is named beside it
# Standard deviations by which a model's own pairs of queries and keys outdo pairs of different
# heads: random weights reach it in one of 200.
MIN_FIT = 2.6
FIT_TOKENS = 64
MOST = 24  # links of an attention
# The order of links: from a pronoun to a noun, between words of content, other links of pronouns
# and of words of which nothing is known, and those with a filler.
PRONOUN_TO_NOUN, BETWEEN_CONTENT, UNSURE, FILLER = range(4)
# By these; further apart than what else a score is made of. Habits of place, which are the same in
# any text (REGULARITY_SCORE), stand before links with a filler alone.
ORDER_SCORES = (40.0, 22.0, 11.5, 0.0)
# Less for a link that other words of its head show too. It stands between those of its order and
# the next.
SHARED_PENALTY = 5.5
# Less for a link from a pronoun of the second text: those of the text that is read come first.
SECOND_TEXT_PENALTY = 8.0
# Less for a link from a pronoun that its head shows at that distance in other rows too; other links
# of that kind are none.
PLACE_PENALTY = 2.0
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
# head that finds a pronoun's noun in test sentences too, and from one that stands alone (*she*,
# and not *her* keys).
NO_HABIT_BONUS, DISTANCE_BONUS, TESTED_BONUS, ALONE_BONUS = 2.0, 1.0, 1.0, 0.5


@dataclass(frozen=True)
class Link:
    """One word that attends to another: tokens (query, key) of the largest weight between the two,
    the words' labels and places, the weight between the words, chance: the largest weight that
    another row of the head gives the key, or, where `above_mean`, the mean weight that the other
    words give it, how many other heads show it too, and what links are ranked by."""

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
    above_mean: bool = False


def qk_fit(recording: Recording) -> float:
    """By how many standard deviations a head's own queries and keys go together better than those
    of two heads of its layer.

    How well they go together is the spread of q . k over the text once the means of rows and
    columns are taken out, in logarithms; the deviation is that of all ways to pair the heads of
    each layer. Where weights are random the heads may be exchanged, so that this is about normal: 0
    on average, above `MIN_FIT` in one recording of 200, whatever the weights' sizes. NaN where a
    model does not show its queries and keys or has one head a layer.
    """
    total, variance = 0.0, 0.0
    for attention in recording.attention:
        heads = attention.pattern.shape[1]
        if not attention.opens or heads < 2:
            continue
        of_layers = [
            _paired(q, k, heads // attention.key_heads)
            for q, k in zip(
                _spread(attention.q, recording.stream(attention.query).special),
                _spread(stored_array(attention.k), recording.stream(attention.key).special),
            )
        ]
        if None in of_layers:
            continue
        total += sum(own for own, _ in filter(None, of_layers))
        variance += sum(square for _, square in filter(None, of_layers)) / (heads - 1)
    return total / variance**0.5 if variance > 0 else float("nan")


def _paired(queries: np.ndarray, keys: np.ndarray, each: int) -> tuple[float, float] | None:
    """Of a layer's scatter matrices, of queries (head, d_head x d_head) and of keys that so many
    heads share: the sum over heads of how well its own pair goes together beside others, and the
    sum of squares over all pairs. None where one has no logarithm."""
    with np.errstate(divide="ignore", invalid="ignore"):
        products = np.log((queries @ keys.T).astype(np.float64)).repeat(each, axis=1)
    if not np.isfinite(products).all():
        return None
    pairs = products - products.mean(axis=1, keepdims=True)
    pairs -= pairs.mean(axis=0)
    return float(np.trace(pairs)), float((pairs**2).sum())


def _spread(vectors: np.ndarray, special: np.ndarray) -> Iterator[np.ndarray]:
    """The scatter matrix of vectors (layer, head, token, d_head): summed outer products around the
    mean, (head, d_head x d_head), a layer at a time. Over at most FIT_TOKENS words of the text,
    nothing for fewer than two."""
    places = np.flatnonzero(~special)
    if len(places) < 2:
        return
    sampled = places
    if len(places) > FIT_TOKENS:
        sampled = places[np.unique(np.linspace(0, len(places) - 1, FIT_TOKENS).astype(int))]
    for of_layer in vectors:
        expect_wanted()
        centred = of_layer[:, sampled].astype(np.float32)
        centred = centred - centred.mean(axis=1, keepdims=True)
        yield (centred.swapaxes(1, 2) @ centred).reshape(len(of_layer), -1)


def is_trained(recording: Recording) -> bool:
    """True where the heads show that they were learned: queries and keys that belong together
    (`qk_fit`), or, of a model that does not show them, at least two heads of which most rows look
    at a neighbour."""
    deviation = qk_fit(recording)
    if np.isfinite(deviation):
        return deviation >= MIN_FIT
    count = 0
    for attention in recording.attention:
        if attention.query == attention.key and attention.pattern.shape[2] > FAR:
            neighbour_means = [
                np.diagonal(attention.pattern, offset, 2, 3).mean(axis=-1) for offset in (-1, 1)
            ]
            count += int((np.maximum(*neighbour_means) > 0.5).sum())
    return count >= 2


@dataclass(frozen=True, eq=False)
class WordLevelAttention:
    """An attention between words: weights (layer, head, row, column), allowed (row, column), and
    which tokens the words are. only: the layer and head that the weights are of alone."""

    attention: Attention
    weights: np.ndarray
    allowed: np.ndarray
    rows: words.Groups
    keys: words.Groups
    only: tuple[int, int] | None = None

    def allowed_in(self, layer: int) -> np.ndarray:
        """The words (row, column) that are allowed in one layer; `allowed`, in any."""
        return words.merge_allowed(self.attention.allowed[layer], self.rows, self.keys)

    @cached_property
    def spellings(self) -> np.ndarray:
        """The words of the columns without their capitals, (column)."""
        return np.array([label.casefold() for label in self.keys.labels])

    @cached_property
    def text_masks(self) -> tuple[np.ndarray, np.ndarray]:
        """Masks of the rows and of the columns that are words of the text."""
        return text_mask(self.rows), text_mask(self.keys)

    @cached_property
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes of the words of rows and of columns, as `word_classes.classes` has them."""
        rows, keys = (np.array(word_classes.classes(one.labels)) for one in (self.rows, self.keys))
        return rows, keys

    @cached_property
    def stands_for(self) -> np.ndarray:
        """Mask of the nouns that pronouns may stand for, (row, column) bool."""
        return coreference.candidates(self.rows.labels, self.keys.labels)

    @cached_property
    def alone(self) -> np.ndarray:
        """Mask of the rows that are no possessives before a noun, (row) bool."""
        return ~np.array(word_classes.determiners(self.rows.labels))

    @cached_property
    def mean_of_words(self) -> tuple[np.ndarray, np.ndarray]:
        """The sum of what the words of the text give each column but that of their own, (layer,
        head, column), and how many words may attend to it, (column)."""
        is_text = self.text_masks[0]
        n = np.count_nonzero(self.allowed[is_text], axis=0)
        return is_text.astype(self.weights.dtype) @ self.weights, n

    def order(self, row: np.ndarray | int, key: np.ndarray | int) -> np.ndarray:
        """The order of links between words of rows and of columns. Not every noun is one that a
        pronoun stands for (`coreference.candidates`)."""
        rows, keys = self.classes
        order = ORDER[rows[row], keys[key]]
        return np.where((order == PRONOUN_TO_NOUN) & ~self.stands_for[row, key], UNSURE, order)

    def tokens(self, layer: int, head: int, row: int, key: int) -> tuple[int, int]:
        """The tokens (query, key) of the largest weight between two words."""
        pattern = self.attention.pattern[layer, head]
        return words.strongest_tokens(pattern, self.rows, self.keys, row, key)


def word_level_attention(
    attention: Attention,
    rows: words.Groups,
    keys: words.Groups,
    only: tuple[int, int] | None = None,
) -> WordLevelAttention:
    """An attention, or one head of it (layer, head), between the words that `rows` and `keys` make:
    summed over a word's tokens as a key, averaged over them as a query."""
    pattern = attention.pattern if only is None else attention.pattern[only][None, None]
    weights = words.weights_between(pattern, rows, keys)
    allowed = words.merge_allowed(
        attention.reachable if only is None else attention.allowed[only[0]], rows, keys
    )
    return WordLevelAttention(attention, weights, allowed, rows, keys, only)


def find_links(
    word_attention: WordLevelAttention, names: np.ndarray, far: int = 1, habits: Sequence[str] = ()
) -> list[Link]:
    """Links between words at least `far` words apart, the clearest first: each pair of words once,
    in its clearest head; of one head only its best.

    A link stands above what every other row gives the key. One from a pronoun to a noun, and one
    between words of content that other words show too, stand above the mean of these, by which
    heads are tested on sentences (`coreference`). names (layer, head): the heads' names, so that a
    pair that a name predicts is left out; links of heads with one of the names `habits` come after
    others of their order."""
    strong, largest = _strong_cells(word_attention)
    layer, head, row, key = strong
    text_rows, text_keys = word_attention.text_masks
    keep = (
        text_rows[row]
        & text_keys[key]
        & (np.abs(key - row) >= far)
        & ~_hyphen_halves(word_attention, row, key)
    )
    keep &= ~_predicted_by_name(word_attention, names[layer, head], row, key)
    cells, largest = strong[:, keep], largest[keep]
    order = word_attention.order(*cells[2:])
    weight, competitor = _with_competitor(word_attention, cells, largest)
    mean = _mean_of_others(word_attention, cells, weight)
    alone = (weight - competitor >= LEAST_EXCESS) & (competitor < MOST_ELSEWHERE)
    above_mean = weight - mean >= LEAST_LIFT * (1 - mean)
    stands_for = order == PRONOUN_TO_NOUN
    keep = np.where(
        stands_for, above_mean, alone | (above_mean & (order == BETWEEN_CONTENT))
    ).astype(bool)
    keep &= weight > _uniform(word_attention, cells)
    by_place = np.zeros(len(weight), bool)
    for at in np.flatnonzero(keep & stands_for):
        by_place[at] = not _beyond_distance(word_attention, *cells[:, at].tolist())
    by_mean = stands_for | ~alone
    chance = np.where(by_mean, mean, competitor)
    layer, head, row, key = cells
    head_names = names[layer, head]
    score = (
        np.array(ORDER_SCORES)[order]
        - SHARED_PENALTY * (by_mean & ~stands_for)
        + NO_HABIT_BONUS * ~np.isin(head_names, list(habits))
        + DISTANCE_BONUS * (stands_for | (np.abs(key - row) >= FAR))
        + stands_for * (TESTED_BONUS * (head_names == head_naming.PRONOUN))
        + stands_for * (ALONE_BONUS * word_attention.alone[row])
        - PLACE_PENALTY * by_place
        + weight
        - chance
    )
    return _best_links(
        word_attention, cells[:, keep].T, weight[keep], chance[keep], score[keep], by_mean[keep]
    )


def _strong_cells(word_attention: WordLevelAttention) -> tuple[np.ndarray, np.ndarray]:
    """The cells (4, cell) of at least LEAST_WEIGHT, and which of them are the most that any row of
    the head gives the column, (cell) bool: no other can lie beyond the others."""
    n_heads, (n_rows, n_keys) = word_attention.weights.shape[1], word_attention.allowed.shape
    strong = np.flatnonzero(word_attention.weights >= LEAST_WEIGHT)
    strong = strong[np.argsort(-word_attention.weights.ravel()[strong], kind="stable")]
    at_head, cell = np.divmod(strong, n_rows * n_keys)
    row, key = np.divmod(cell, n_keys)
    largest = np.zeros(len(strong), bool)
    largest[np.unique(at_head * n_keys + key, return_index=True)[1]] = True
    return np.array((*np.divmod(at_head, n_heads), row, key)), largest


def _with_competitor(
    word_attention: WordLevelAttention, cells: np.ndarray, largest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The weights at cells (4, cell), and the largest that another row gives the same word in the
    same head, 1 where the cell is not the `largest` of its column."""
    weight = word_attention.weights[tuple(cells)].astype(np.float64)
    competitor = np.ones(len(weight))
    layer, head, row, key = cells[:, largest]
    columns = word_attention.weights[layer, head, :, key].astype(np.float64)
    columns[np.arange(len(row)), row] = 0
    competitor[largest] = columns.max(axis=1, initial=0)
    return weight, competitor


def _mean_of_others(
    word_attention: WordLevelAttention, cells: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """The mean weight that the other words of the text give the key, of those that may attend to
    it, at cells (4, cell); 1 where there is no other."""
    layer, head, row, key = cells
    total, n_words = word_attention.mean_of_words
    itself = word_attention.weights[layer, head, key, key].astype(np.float64)
    n = n_words[key] - 1 - word_attention.allowed[key, key]
    others = total[layer, head, key].astype(np.float64) - weight - itself
    return np.where(n > 0, others / np.maximum(n, 1), 1.0)


def _uniform(word_attention: WordLevelAttention, cells: np.ndarray) -> np.ndarray:
    """The weights that uniform attention would give between words, at cells (4, cell)."""
    attention, (layer, _, row, key) = word_attention.attention, cells
    if word_attention.only is not None:
        layer = np.full_like(layer, word_attention.only[0])
    result, layers = np.empty(len(row)), np.arange(len(attention.allowed))
    for at, mask in attention.masks:
        here = np.isin(layer, layers[at])
        uniform = words.uniform_weights(mask, word_attention.rows, word_attention.keys)
        result[here] = uniform[row[here], key[here]]
    return result


def _hyphen_halves(
    word_attention: WordLevelAttention, row: np.ndarray, key: np.ndarray
) -> np.ndarray:
    """Mask of the pairs that are the two halves of a hyphenated word, (pair) bool."""
    hyphen = np.array([label in HYPHENS for label in word_attention.keys.labels])
    middle = np.minimum(np.minimum(row, key) + 1, len(hyphen) - 1)
    is_self = word_attention.attention.query == word_attention.attention.key
    return is_self & (np.abs(row - key) == 2) & hyphen[middle]


def _predicted_by_name(
    word_attention: WordLevelAttention, names: np.ndarray, row: np.ndarray, key: np.ndarray
) -> np.ndarray:
    """Mask of the pairs that a head's name predicts, (pair) bool; names (pair)."""
    _, code = np.unique(word_attention.spellings, return_inverse=True)
    if len(word_attention.rows.labels) != len(code):
        return np.zeros(len(names), bool)
    relations = {
        "previous": key == row - 1,
        "next": key == row + 1,
        "same word": code[key] == code[row],
        "induction": (key > 0) & (code[key - 1] == code[row]),
        "sink": key == 0,
    }
    return np.any([(names == name) & pairs for name, pairs in relations.items()], axis=0)


def _best_links(
    word_attention: WordLevelAttention,
    cells: np.ndarray,
    weight: np.ndarray,
    chance: np.ndarray,
    score: np.ndarray,
    above_mean: np.ndarray,
) -> list[Link]:
    """The links at cells (link, 4) of `seen.weights`, each pair of words in the head that shows it
    best, at most MOST of them; of one head alone the best of all."""
    by_pair: dict[
        tuple[int, int], list[int]
    ] = {}  # of each pair those that show it, the best first
    for at in np.argsort(-score, kind="stable").tolist():
        by_pair.setdefault((int(cells[at, 2]), int(cells[at, 3])), []).append(at)
    best: list[Link] = []
    for ranked in by_pair.values():
        row, key = cells[ranked[0], 2:].tolist()
        significant = [
            at
            for at in ranked
            if word_attention.stands_for[row, key]
            or _beyond_distance(word_attention, *cells[at].tolist())
        ]
        if not significant:
            continue
        at = significant[0]
        layer, head, row, key = cells[at].tolist()
        if word_attention.only is not None:
            layer, head = word_attention.only
        query, token = word_attention.tokens(layer, head, row, key)
        labels = word_attention.rows.labels[row], word_attention.keys.labels[key]
        values = float(weight[at]), float(chance[at]), len(significant) - 1, float(score[at])
        best.append(
            Link(*(layer, head, query, token, labels, (row, key)), *values, bool(above_mean[at]))
        )
        if len(best) == (MOST if word_attention.only is None else 1):
            break
    return best


def _beyond_distance(
    word_attention: WordLevelAttention, layer: int, head: int, row: int, key: int
) -> bool:
    """True for a cell that stands beyond what its head gives at that distance in its other rows."""
    if word_attention.attention.query != word_attention.attention.key:
        return True
    diagonal = np.diagonal(word_attention.weights[layer, head], key - row)
    n_allowed = int(np.count_nonzero(np.diagonal(word_attention.allowed, key - row)))
    weight = float(word_attention.weights[layer, head, row, key])
    chance = (float(diagonal.sum()) - weight) / max(1, n_allowed - 1)
    return weight - chance >= LEAST_LIFT * (1 - chance)


# Findings between two texts: words that cross, a word said by two, and the word that looks most
# plainly at another.

CLEAR_WEIGHT = 0.4  # a weight from which a word looks at another plainly
# Beside what their words and weights are worth: two words that cross say more than one that is
# plain, which says more than two for one.
CROSSING_SCORE, ALIGNMENT_SCORE, DOUBLE_SCORE = 3.3, 2.0, 1.0


def alignment_findings(word_attention: WordLevelAttention) -> list[Finding]:
    """Findings about the alignment of a target with its source.

    Rows are the words that are produced. The layer is used whose heads agree most on each row's
    largest weight, since in others many heads still attend to the source of the word before; of its
    heads the one with the clearest case. crossed: two neighbouring words of the target that attend
    to two neighbouring words of the source in the other order; value the smaller weight, chance the
    larger weight of the head on those keys in its other rows. said by two: two neighbours that
    attend to one word."""
    rows, keys = (np.flatnonzero(one) for one in word_attention.text_masks)
    if len(rows) < 2 or len(keys) < 2:
        return []
    layer = int(word_attention.weights.mean(axis=1).max(axis=2).mean(axis=1).argmax())
    aligned = AlignedLayer(word_attention, layer, rows, keys)
    return [*_crossing(aligned), *_double(aligned), *_alignment(aligned)]


@dataclass(frozen=True, eq=False)
class AlignedLayer:
    """One layer of a cross-attention: the rows and the columns that are words, and what its heads
    say of them."""

    seen: WordLevelAttention
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
    def uniform(self) -> np.ndarray:
        """The weight of uniform attention on each choice, (row of `rows`)."""
        allowed = self.seen.attention.allowed[self.layer]
        even = words.uniform_weights(allowed, self.seen.rows, self.seen.keys)
        return even[self.rows, self.choice]

    @cached_property
    def choice_weights(self) -> np.ndarray:
        """The weight of each head's rows on their choice, (head, row of `rows`), 0 where there is
        none."""
        rows = np.arange(len(self.rows))
        return self.weights[:, rows, self.choice] * (self.choice >= 0)

    @cached_property
    def largest_other(self) -> np.ndarray:
        """The largest weight that another row of the head gives that choice, (head, row of
        `rows`)."""
        return self.others([(at,) for at in range(len(self.rows))])

    def others(self, rows: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The largest weight that a row beside some of `rows` gives the choice of the first of
        them, (head, those rows)."""
        result = np.empty((len(self.weights), len(rows)))
        for at, excluded in enumerate(rows):
            column = self.seen.weights[self.layer][:, :, self.choice[excluded[0]]]
            result[:, at] = np.delete(column, self.rows[list(excluded)], axis=1).max(
                axis=1, initial=0
            )
        return result

    def order(self, pairs: Iterable[tuple[int, int]]) -> float:
        """The priority of findings about these pairs (row of `rows`, column), before their weights.
        A pronoun of a translation stands for no word of the source."""
        orders = [int(self.seen.order(self.rows[row], column)) for row, column in pairs]
        return ORDER_SCORES[max(BETWEEN_CONTENT, *orders)]

    @property
    def beside(self) -> np.ndarray:
        """Mask of rows that have a choice, as has their right neighbour, (row of `rows` but the
        last)."""
        return (np.diff(self.rows) == 1) & (self.choice[:-1] >= 0) & (self.choice[1:] >= 0)

    def finding(
        self, kind: str, head: int, row: int, columns: tuple[int, ...], **fields
    ) -> Finding:
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
            **fields,
        )


def _crossing(aligned: AlignedLayer) -> list[Finding]:
    """The clearest two words that cross."""
    choice = aligned.choice
    return _clearest(
        aligned,
        CROSSED,
        CROSSING_SCORE,
        aligned.beside & (choice[1:] == choice[:-1] - 1),
        np.minimum(aligned.choice_weights[:, :-1], aligned.choice_weights[:, 1:]),
        np.maximum(aligned.largest_other[:, :-1], aligned.largest_other[:, 1:]),
        [((row, row), (row + 1, row + 1)) for row in range(len(choice) - 1)],
    )


def _double(aligned: AlignedLayer) -> list[Finding]:
    """The clearest pair of neighbouring target words that look at one source word."""
    rows = range(len(aligned.rows) - 1)
    return _clearest(
        aligned,
        DOUBLE,
        DOUBLE_SCORE,
        aligned.beside & (aligned.choice[1:] == aligned.choice[:-1]),
        np.minimum(aligned.choice_weights[:, :-1], aligned.choice_weights[:, 1:]),
        aligned.others([(row, row + 1) for row in rows]),
        [((row, row), (row + 1, row)) for row in rows],
    )


def _alignment(aligned: AlignedLayer) -> list[Finding]:
    """The word that looks most plainly at a word of the source."""
    return _clearest(
        aligned,
        ALIGNED,
        ALIGNMENT_SCORE,
        aligned.choice >= 0,
        aligned.choice_weights,
        aligned.largest_other,
        [((row, row),) for row in range(len(aligned.rows))],
    )


def _clearest(
    aligned: AlignedLayer,
    kind: str,
    bonus: float,
    possible: np.ndarray,
    weight: np.ndarray,
    competitor: np.ndarray,
    pairs: Sequence[tuple[tuple[int, int], ...]],
) -> list[Finding]:
    """The clearest of the `possible` (row), by its weight and the largest of another row, (head,
    row). pairs: of each the rows that attend, each with the row whose choice it attends to."""
    if not possible.any():
        return []
    order = [aligned.order((row, int(aligned.choice[at])) for row, at in each) for each in pairs]
    uniform = np.array([max(aligned.uniform[at] for _, at in each) for each in pairs])
    clear = possible & _is_clear(weight, competitor) & (weight > uniform)
    worth = np.where(clear, order + weight - competitor, -1)
    head, row = (int(at) for at in np.unravel_index(worth.argmax(), worth.shape))
    if worth[head, row] < 0:
        return []
    columns = tuple(dict.fromkeys(int(aligned.choice[at]) for _, at in pairs[row]))
    return [
        aligned.finding(
            kind,
            head,
            row,
            columns,
            value=float(weight[head, row]),
            chance=float(competitor[head, row]),
            score=bonus + float(worth[head, row]),
            words=(
                *(aligned.seen.rows.labels[aligned.rows[at]] for at, _ in pairs[row]),
                *(aligned.seen.keys.labels[column] for column in columns),
            ),
            also=int((worth[:, row] >= 0).sum()) - 1,
        )
    ]


def _is_clear(weight: np.ndarray, competitor: np.ndarray) -> np.ndarray:
    """Mask of weights that are large and well above that of another row."""
    return (
        (weight >= CLEAR_WEIGHT)
        & (weight - competitor >= LEAST_EXCESS)
        & (competitor < MOST_ELSEWHERE)
    )


# What the heads of an attention do taken together: the crowd, and the head that finds what was
# said before.

SURE_REPEATS = 5  # repeated words that make a repetition sure
REGULARITY_SCORE = 10.0  # a habit of place stands behind links of nouns and other words of content
BY_PLACE = ("previous", "next", "self", "diagonal", "anti-diagonal")
SETTLED_BY_PLACE = (head_naming.SINK, *BY_PLACE)


def crowd(
    heads: Sequence[head_naming.Head], recording: Recording, attention: Attention
) -> Finding | None:
    """The number of heads with each name. The page opens on a head without a name, else on one of
    the rarest; the example is one of the most frequent. None where no head has a name."""
    counts = Counter(head.name for head in heads if head.name in SETTLED_BY_PLACE)
    if not counts:
        return None
    common = counts.most_common(1)[0][0]
    unnamed = [head for head in heads if head.name not in counts]
    rarest = min(counts, key=lambda name: (name == head_naming.SINK, counts[name]))
    opening_head = next(iter(unnamed), None) or next(head for head in heads if head.name == rarest)
    example_head = next(head for head in heads if head.name == common)
    keys = recording.stream(attention.key)
    special = tuple(dict.fromkeys(keys.tokens[at] for at in np.flatnonzero(keys.special)))
    first_token = () if keys.special[:1].any() else ("the first token",)
    return Finding(
        CROWD,
        float(sum(counts.values())),
        0.0,
        0.3 + 0.1 * counts[common] / len(heads),
        attention.name,
        opening_head.layer,
        opening_head.head,
        len(heads),
        words=first_token + special,
        counts=tuple(counts.most_common()),
        example_head=(example_head.layer, example_head.head),
    )


def too_short(heads: Sequence[head_naming.Head], recording: Recording) -> Finding | None:
    """That a text has too few tokens for names, value how many it has; None for one that has enough
    and for one without words."""
    stream = recording.streams[0]
    if heads[0].name != head_naming.TOO_SHORT or stream.special.all():
        return None
    attention = recording.attention[0].name
    n, least = len(stream.tokens), head_naming.FEWEST_TOKENS
    return Finding(SHORT, float(n), float(least), 0.1, attention, 0, 0, len(heads))


FOREIGN_SCORE = 50.0  # before every link


def foreign(heads: Sequence[head_naming.Head], attention: Attention, language: str) -> Finding:
    """That a text is in another language than the `language` that its model has read. The head is
    one without a name, or the first."""
    opening_head = next((head for head in heads if head.name == head_naming.NO_PATTERN), heads[0])
    return Finding(
        FOREIGN,
        0.0,
        0.0,
        FOREIGN_SCORE,
        attention.name,
        opening_head.layer,
        opening_head.head,
        len(heads),
        words=(language,),
    )


def regularity(heads: Sequence[head_naming.Head], attention: Attention) -> Finding | None:
    """The head that follows its name furthest beyond a uniform row: a pattern of position, not a
    sink or a repetition, which has findings of its own. Attention to itself counts only where there
    is nothing else. value and chance: the score and chance of its name."""
    by_place = [head for head in heads if head.name in BY_PLACE]

    def rank(head: head_naming.Head) -> tuple[bool, float]:
        return head.name != "self", head_naming.lift(head.score, head.chance)

    best = max(by_place, key=rank, default=None)
    if best is None:
        return None
    return Finding(
        REGULARITY,
        best.score,
        best.chance,
        REGULARITY_SCORE + head_naming.lift(best.score, best.chance),
        attention.name,
        best.layer,
        best.head,
        len(heads),
        words=(best.name,),
        also=sum(head.name == best.name for head in by_place) - 1,
        counts=(("matches", best.n_matches), ("rows", best.n_queries)),
    )


CHAT_PARTS = ("the question", "the role names", "the chat template")
CHAT_SCORE = 21.0  # behind links from a pronoun to a noun, before those of unsure words


def chat_findings(recording: Recording, attention: Attention) -> list[Finding]:
    """Of a chat, the head that most attends, where the model's answer begins, to the question (the
    last message of the user), to the names of the roles, and to the rest of the template. value:
    its weight on all tokens of that part; chance: of an even row; also: how many other heads give
    the part at least half. [] for a recording that is no chat."""
    stream = recording.stream(attention.key)
    if not stream.roles:
        return []
    parts = chat.parts_of(stream.tokens, stream.roles)
    row = attention.pattern[:, :, -1].astype(np.float64)  # (layer, head, key)
    result = []
    for name in CHAT_PARTS:
        keys = np.flatnonzero(np.array(parts) == name)
        weights = row[..., keys].sum(axis=-1)
        layer, head = map(int, np.unravel_index(weights.argmax(), weights.shape))
        value = float(weights[layer, head])
        seen = attention.allowed[layer, -1]
        chance = int(seen[keys].sum()) / int(seen.sum())
        if len(keys) and value >= LEAST_WEIGHT and value - chance >= LEAST_LIFT:
            result.append(
                Finding(
                    CHAT,
                    value,
                    chance,
                    CHAT_SCORE - CHAT_PARTS.index(name) + value - chance,
                    attention.name,
                    layer,
                    head,
                    weights.size,
                    query=len(stream.tokens) - 1,
                    keys=(int(keys[row[layer, head, keys].argmax()]),),
                    words=(name,),
                    also=int((weights >= MOST_ELSEWHERE).sum()) - (value >= MOST_ELSEWHERE),
                )
            )
    return result


def repetition_findings(word_attention: WordLevelAttention) -> list[Finding]:
    """The head that detects repetition best: an induction head.

    Between words, so that pieces of different words are no repetition. value and chance are
    `head_naming.Relation`'s score and chance, over the words that can show it, whose number is
    counts."""
    attention, labels = word_attention.attention, word_attention.keys.labels
    relation = token_relations.repetition_relations(labels, word_attention.keys.special)[INDUCTION]
    content_rows, content_keys = (
        (one == word_classes.CONTENT) | (one == word_classes.UNSURE)
        for one in word_attention.classes
    )
    mask = relation & word_attention.allowed
    rows = np.flatnonzero(mask.any(axis=1))
    if len(rows) < 2:
        return []
    mass = token_relations.mass(word_attention.weights, mask)
    score = mass.mean(axis=-1)
    score[0] = 0  # as head_naming has it, no head of layer 0 is an induction head
    layer, head = (int(one) for one in np.unravel_index(score.argmax(), score.shape))
    value = float(score[layer, head])
    allowed = word_attention.allowed_in(layer)[rows]
    shares = (relation[rows] & allowed).sum(axis=1) / allowed.sum(axis=1)
    chance = float(shares.mean())
    lift = (value - chance) / max(1 - chance, 1e-9)
    # One lucky row would not do: more than half of them show it.
    if lift < MIN_LIFT or 2 * int((mass[layer, head] > MIN_LIFT).sum()) <= len(rows):
        return []
    row, key = np.unravel_index(
        (
            np.where(mask, word_attention.weights[layer, head], -1)
            + (content_rows[:, None] & content_keys)
        ).argmax(),
        mask.shape,
    )
    query, token = word_attention.tokens(layer, head, int(row), int(key))
    # Few repeats are soon told: words that fill every text are repeated in any.
    n_content = int(content_rows[rows].sum())
    certainty = min(1.0, n_content / SURE_REPEATS)
    return [
        Finding(
            INDUCTION,
            value,
            chance,
            ORDER_SCORES[BETWEEN_CONTENT if certainty else FILLER]
            + NO_HABIT_BONUS
            + DISTANCE_BONUS
            + lift * (0.4 + certainty),
            attention.name,
            layer,
            head,
            attention.pattern.shape[0] * attention.pattern.shape[1],
            query,
            (token,),
            (labels[row], labels[key]),
            int((score > MIN_LIFT).sum()) - 1,
            counts=(("rows", len(rows)),),
        )
    ]


# Findings of the residual stream and of what is read off it: the word that turned most, the one
# that attention moved most, where an answer was settled and what pushed it.

# Share of attention beyond the other words' from which it is plain to see.
MIN_EXCESS_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class StreamPrediction:
    """A model's prediction at a token of a stream that has a readout. lens: where it was computed;
    attribution: of the word's logit, where it was decomposed. words: the predicted word, and its
    first piece where it has several, to which all numbers belong."""

    lens: Lens | None
    token: int
    words: tuple[str, ...]
    attribution: Attribution | None = None


def stream_findings(stream: Stream, grouped: Groups) -> list[Finding]:
    """The word that one sub-layer turned most beyond the other words there, and the word into which
    attention wrote most, layer by layer.

    turned: value in degrees, the largest over the word's tokens; chance: the mean of the other
    words. moved: value the share of attention in what stood there after it, |wrote| / (|wrote| +
    |before|), on average over the layers; chance: the other words', beyond which it lies by
    PLAIN. Both say something from three words on.
    """
    text_words = np.flatnonzero(text_mask(grouped))
    if len(text_words) < 3 or len(stream.sites) < 3:
        return []
    result = []
    (sublayers, turns), (_, shares) = sublayer_measures(stream)
    angles, shares = (
        word_maxima(each, grouped).take(text_words, axis=1) for each in (turns, shares)
    )
    if len(angles) and np.isfinite(angles).all():
        result.append(_largest_turn(angles, turns, sublayers, stream, grouped, text_words))
    if len(shares) and np.isfinite(shares).all():
        mean = np.mean(shares, axis=0)
        at = int(mean.argmax())
        others = float(np.delete(mean, at).mean())
        if mean[at] - others < MIN_EXCESS_SHARE:
            return result
        word = int(text_words[at])
        token = grouped.starts[word]
        result.append(
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
    return result


def text_mask(grouped: Groups) -> np.ndarray:
    """Mask of the words of a text: no special tokens or punctuation, (word) bool."""
    pairs = zip(grouped.labels, grouped.special)
    return np.array([not is_special and is_word(label) for label, is_special in pairs], bool)


def sublayer_measures(
    stream: Stream,
) -> tuple[tuple[list[residual.SubLayer], np.ndarray], tuple[list[residual.SubLayer], np.ndarray]]:
    """By how many degrees what each sub-layer adds turns each token's vector, and the share of each
    attention in the sum: the sub-layers, and (sub-layer, token)."""
    every = [sublayer for sublayer in residual.sublayers(stream) if sublayer.layer >= 0]
    attention = [sublayer for sublayer in every if sublayer.place == "attn"]
    summed = [(sublayer.before, sublayer.total) for sublayer in every]
    wrote = [(sublayer.before, sublayer.wrote) for sublayer in attention]
    return (every, _measure_pairs(residual.degrees, stream, summed)), (
        attention,
        _measure_pairs(residual.write_share, stream, wrote),
    )


def _measure_pairs(
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray],
    stream: Stream,
    pairs: Sequence[tuple[str, str]],
) -> np.ndarray:
    """A measure of the vectors at two sites, for each pair of these and each token, (pair, token);
    of a short text for several pairs at once."""
    sites = {site: at for at, site in enumerate(stream.sites)}
    result = np.empty((len(pairs), len(stream.tokens)), stream.resid.dtype)
    step = max(1, CHUNK_SIZE // max(1, stream.resid[0].size))
    for at in range(0, len(pairs), step):
        expect_wanted()
        first_sites, second_sites = (
            [sites[each] for each in both] for both in zip(*pairs[at : at + step])
        )
        result[at : at + step] = measure(stream.resid[first_sites], stream.resid[second_sites])
    return result


def _largest_turn(
    angles: np.ndarray,
    turns: np.ndarray,
    sublayers: list[residual.SubLayer],
    stream: Stream,
    grouped: Groups,
    text_words: np.ndarray,
) -> Finding:
    """The largest of angles (sub-layer, word) beyond the mean of the other words there. turns: the
    same of all tokens, (sub-layer, token)."""
    n = angles.shape[1]
    others = (angles.sum(axis=1, keepdims=True) - angles) / (n - 1)
    at, word = np.unravel_index((angles - others).argmax(), angles.shape)
    in_word = grouped.of == text_words[word]
    token = int(np.where(in_word, turns[at], -1.0).argmax())
    return Finding(
        TURNED,
        float(angles[at, word]),
        float(others[at, word]),
        0.22 + min(0.2, float((angles - others)[at, word]) / 200),
        query=token,
        words=(grouped.labels[text_words[word]],),
        site=sublayers[at].site,
        page="residual",
        address=(
            ("flow", "Writes"),
            ("write", "Rotation angle"),
            ("stream", stream.name),
            ("token", str(token)),
        ),
    )


def word_maxima(values: np.ndarray, grouped: Groups) -> np.ndarray:
    """The largest of a word's tokens, (..., word)."""
    return np.maximum.reduceat(values, grouped.starts, axis=-1)


MAX_ANSWER_SCORE = 0.42  # of findings about the prediction


def answer_findings(answer: StreamPrediction) -> list[Finding]:
    """From which site on the model's own answer stays first, and what pushed it most.

    settled: value the number of the site, chance that of the text's other tokens on average.
    pushed: value what the head or the feed-forward network added to the logit (against another
    word's, where it was so taken apart), chance the mean size of all heads' and networks' parts.
    """
    result = [] if answer.lens is None else _settled(answer, answer.lens)
    if answer.attribution is not None:
        result += _largest_push(answer, answer.attribution)
    return result


def _settled(answer: StreamPrediction, lens: Lens) -> list[Finding]:
    settled_sites = logit_lens.settled_sites(lens.rank)
    others = np.delete(settled_sites, answer.token)
    at = int(settled_sites[answer.token])
    if at == len(lens.sites):
        return []
    return [
        Finding(
            SETTLED,
            float(at),
            float(others.mean()) if len(others) else float(len(lens.sites) - 1),
            0.35,
            query=answer.token,
            words=answer.words,
            site=lens.sites[at],
            counts=(("sites", len(lens.sites)),),
            page="lens",
            address=(("token", str(answer.token)),),
        )
    ]


def _largest_push(answer: StreamPrediction, attribution: Attribution) -> list[Finding]:
    parts = [part for part in attribution.parts if part.kind in ("head", "ffn")]
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
            MAX_ANSWER_SCORE,
            best.attention if is_head else "",
            best.layer,
            best.head if is_head else -1,
            query=answer.token,
            words=answer.words,
            site=best.kind,
            page="attribution",
            address=(("token", str(answer.token)),),
        )
    ]


# What a pronoun stands for, by the vote of the heads that find nouns in test sentences.

VOTE_SCORES = {ALL_SAY: 70.0, MOST_SAY: 65.0, DIVIDED: 60.0, OUTVOTED: 60.0}  # before every link


def pronoun_votes(recording: Recording, attention: Attention) -> tuple[Vote, ...]:
    """The votes of an attention's tested heads on the pronouns of a text, the clearest first; none
    where fewer than two heads find nouns in test sentences."""
    tested = coreference.measured_heads(recording, attention)
    sides = groups(recording, attention, axes(recording, attention))
    heads = {at: word_level_attention(attention, *sides, at) for at in coreference.voters(tested)}
    if not heads:
        return ()
    first = next(iter(heads.values()))
    weights = {at: head.weights[0, 0] for at, head in heads.items()}
    return tuple(coreference.votes(weights, first.stands_for, first.keys.labels, tested))


def vote_finding(recording: Recording, attention: Attention, vote: Vote) -> Finding:
    """A vote as a finding. value: the weight in the head it is seen in; chance: what uniform
    attention would give."""
    rows, keys = groups(recording, attention, axes(recording, attention))
    is_divided = vote.noun is None
    seen = next(each for each in vote.ballots if is_divided or each.noun == vote.noun)
    kind = ALL_SAY if vote.n_votes == len(vote.ballots) else MOST_SAY
    if is_divided:
        kind = OUTVOTED if vote.is_outvoted else DIVIDED
    order = coreference.nouns_of([vote])
    words_by_place = {
        order[each.key]: each.word for each in reversed(vote.ballots)
    }  # by the first of them
    pattern = attention.pattern[seen.layer, seen.head]
    query, key = words.strongest_tokens(pattern, rows, keys, vote.row, seen.key)
    allowed = attention.allowed[seen.layer]
    n_votes, sum_of_weights = vote.strength
    return Finding(
        kind,
        seen.weight,
        words.uniform_weight(allowed, rows, keys, vote.row, seen.key),
        VOTE_SCORES[kind] + sum_of_weights / max(1, n_votes),
        attention.name,
        seen.layer,
        seen.head,
        attention.pattern.shape[0] * attention.pattern.shape[1],
        query,
        (key,),
        (rows.labels[vote.row], *(words_by_place[at] for at in sorted(words_by_place))),
        other=(vote.heaviest, 0.0) if vote.is_outvoted else ("", 0.0),
        stands_for=True,
        ballots=vote.ballots,
    )


MOST_LINKS = 12
# Names of heads with a habit of place: what else they show stands behind other links of its order.
# Heads whose near links are told where they have no far one.
NEAR_LINK_NAMES = (head_naming.NO_PATTERN, head_naming.TOO_SHORT, head_naming.PRONOUN)
HABITS = (head_naming.SINK, "self", "previous", "next")


def findings(
    recording: Recording,
    after: str = "",
    heads: Mapping[str, Sequence[head_naming.Head]] | None = None,
    trained: bool | None = None,
    language: str = "",
    votes: Mapping[str, Sequence[Vote]] | None = None,
) -> tuple[Finding, ...]:
    """All findings about a recording but those on its prediction (`answer_findings`), the clearest
    first, with links between words before all others.

    after: the token after the target, in a recording of two texts, for the name of the last row.
    heads: the results of
    `head_naming.describe` by attention, where they are computed already. trained: the result of
    `findings.is_trained`, where it is known. language: what the model has read, where the text is
    in another one, so that no link between words is told. votes: the results of `pronoun_votes` by
    attention, where they are computed already."""
    result: list[Finding] = []
    if trained is None:
        trained = is_trained(recording)
    for attention in recording.attention:
        named_heads = heads[attention.name] if heads else head_naming.describe(recording, attention)
        candidates: list[Finding | None] = [crowd(named_heads, recording, attention)]
        if language and not result:
            candidates.append(foreign(named_heads, attention, language))
        candidates.append(regularity(named_heads, attention))
        if not result:
            candidates.append(too_short(named_heads, recording))
        result += [one for one in candidates if one is not None]
        if trained and not language:
            result += [
                vote_finding(recording, attention, vote)
                for vote in (
                    votes[attention.name] if votes else pronoun_votes(recording, attention)
                )
            ]
            result += chat_findings(recording, attention)
            links = _links(attention_between_words(recording, attention, after), named_heads)
            is_second_text = attention.query != recording.streams[0].name
            result += [
                _replace(one, score=one.score - SECOND_TEXT_PENALTY)
                if one.stands_for and is_second_text
                else one
                for one in links
            ]
    for stream in recording.streams:
        result += stream_findings(stream, word_groups(recording, stream.name))
    ranked = sorted(result, key=lambda one: -one.score)
    return tuple(_with_address(recording, one) for one in ranked)


MAX_LISTED = 5  # findings that a page lists


def select_findings(ranked: Sequence[Finding]) -> tuple[Finding, ...]:
    """The strongest finding and others beside it: no two of the same head, no two with the same
    word and kind, at most two far links in a row of MAX_LISTED, so that each leads elsewhere; and
    where heads vote on a pronoun no link of a head alone to what it may stand for."""
    chosen: list[Finding] = []
    for finding in ranked:
        if len(chosen) == MAX_LISTED:
            break
        heads = {(other.attention, other.at) for other in chosen if other.head >= 0}
        topics = {(other.kind, other.words[:1]) for other in chosen}
        voted = {(other.attention, other.query) for other in chosen if other.ballots}
        n_alike = sum(other.kind == finding.kind for other in chosen)
        if (
            (finding.head >= 0 and (finding.attention, finding.at) in heads)
            or (finding.kind, finding.words[:1]) in topics
            or (finding.stands_for and (finding.attention, finding.query) in voted)
            or n_alike >= (2 if finding.kind in (*LINKS, CHAT) else 1)
        ):
            continue
        chosen.append(finding)
    return tuple(chosen)


def strongest_link(
    recording: Recording, attention: Attention, head: head_naming.Head
) -> Link | None:
    """The word that attends most tellingly to a far word in a head of a model that has learned, or,
    where the head has no name, at a near one; None where there is none, and of cross-attention."""
    if attention.query != attention.key:
        return None
    layer_head = (head.layer, head.head)
    word_attention = attention_between_words(recording, attention, "", layer_head)
    far = 1 if head.name in NEAR_LINK_NAMES else FAR
    matches = find_links(word_attention, np.array([[head.name]]), far)
    return matches[0] if matches else None


def _links(word_attention: WordLevelAttention, heads: Sequence[head_naming.Head]) -> list[Finding]:
    """Findings about links between words in an attention, by its `heads`."""
    if word_attention.attention.query != word_attention.attention.key:
        return alignment_findings(word_attention)
    repetitions = repetition_findings(word_attention)
    names = np.array([one.name for one in heads]).reshape(word_attention.weights.shape[:2])
    new_links = _novel_links(
        word_attention, find_links(word_attention, names, habits=HABITS), bool(repetitions)
    )
    repetitions = [
        _replace(one, score=one.score - NO_HABIT_BONUS) if names[one.at] in HABITS else one
        for one in repetitions
    ]
    return [*repetitions, *(_link_finding(word_attention, link) for link in new_links[:MOST_LINKS])]


def _link_finding(word_attention: WordLevelAttention, link: Link) -> Finding:
    """A link as a finding."""
    row, key = link.places
    near = NEAR_LINK if abs(row - key) < FAR else LINK
    return Finding(
        ABOVE_MEAN if link.above_mean else near,
        link.weight,
        link.chance,
        link.score,
        word_attention.attention.name,
        link.layer,
        link.head,
        word_attention.weights.shape[0] * word_attention.weights.shape[1],
        link.query,
        (link.key,),
        link.words,
        other=_contest(word_attention, link),
        stands_for=bool(word_attention.stands_for[row, key]),
        also=link.also,
    )


def _contest(word_attention: WordLevelAttention, link: Link) -> tuple[str, float]:
    """The word that gets most of a link's row after the key, of those that would make a link of its
    order, and its weight; ("", 0) where that is under CONTEST of the link's."""
    row, key = link.places
    labels = word_attention.spellings
    weights = word_attention.weights[link.layer, link.head, row]
    order = word_attention.order(row, np.arange(len(labels)))
    possible = word_attention.text_masks[1] & (order <= min(order[key], BETWEEN_CONTENT))
    possible &= (labels != labels[key]) & (labels != labels[row])
    other = int(np.where(possible, weights, 0).argmax())
    if not possible[other] or weights[other] < CONTEST * link.weight:
        return "", 0.0
    return word_attention.keys.labels[other], float(weights[other])


def _novel_links(
    word_attention: WordLevelAttention, candidates: list[Link], repeats: bool
) -> list[Link]:
    """The links that a repetition does not say already: none between a word and itself, and, where
    a head `repeats`, none to what followed the word before."""
    folded = [label.casefold() for label in word_attention.keys.labels]
    return [
        link
        for link in candidates
        if folded[link.places[1]] != folded[link.places[0]]
        and not (repeats and folded[link.places[1] - 1] == folded[link.places[0]])
    ]


def _replace(finding: Finding, **fields: Any) -> Finding:
    """The finding with some fields another: as `dataclasses.replace`, in a third of its time."""
    return Finding(**vars(finding) | fields)


def attention_between_words(
    recording: Recording,
    attention: Attention,
    after: str,
    only: tuple[int, int] | None = None,
) -> WordLevelAttention:
    """An attention, or one head of it, between the words of its texts. `after`: what follows a
    target, for its last row."""
    rows, keys = groups(recording, attention, axes(recording, attention, after))
    return word_level_attention(attention, rows, keys, only)


def word_groups(recording: Recording, stream: str) -> words.Groups:
    """The words of a stream."""
    return words.words(recording.stream(stream), _text(recording, stream))


def _text(recording: Recording, stream: str) -> str:
    return (
        recording.target if stream == "decoder" and len(recording.streams) > 1 else recording.text
    )


def _with_address(recording: Recording, finding: Finding) -> Finding:
    """The finding with the choices that show it, "" for those that say nothing."""
    if finding.page != "heads":
        return finding
    first = recording.attention[0].name
    name = "" if finding.attention == first else finding.attention
    query = "" if finding.query < 0 else str(finding.query)
    layer, head = finding.example_head or finding.at
    return _replace(
        finding,
        address=(
            ("attention", name),
            ("layer", str(layer)),
            ("head", str(head)),
            ("token", query),
            ("source", ""),
        ),
    )
