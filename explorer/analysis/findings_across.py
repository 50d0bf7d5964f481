"""Findings between two texts: words that cross, a word said by two, a word left out, and the word
that looks most plainly at another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from explorer.analysis import vocabulary
from explorer.analysis.finding import ALIGNED, CROSSED, LEFT_OUT, SAID_BY_TWO, Finding
from explorer.analysis.findings_links import (
    BETWEEN_CONTENT,
    FILLER,
    LEAST_EXCESS,
    MOST_ELSEWHERE,
    WORTH,
    Between,
)

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
    filler = read.seen.classes[1][column] == vocabulary.FILLER
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
