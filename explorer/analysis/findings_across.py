"""Findings between two texts: words that cross, a word said by two, a word left out, and the word
that looks most plainly at another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from explorer.analysis.finding import ALIGNED, CROSSED, LEFT_OUT, SAID_BY_TWO, Finding
from explorer.analysis.findings_links import FILLERS, Between

CLEAR = 0.4  # a weight from which a word looks at another plainly
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
        """What the head's other rows give that choice on average, (head, row of `rows`)."""
        total = self.weights.sum(axis=1)[:, self.choice]
        return (total - self.given) / (len(self.rows) - 1)

    @property
    def beside(self) -> np.ndarray:
        """Whether a row and the next are neighbours that both have a choice, (row of `rows` but the
        last)."""
        return (np.diff(self.rows) == 1) & (self.choice[:-1] >= 0) & (self.choice[1:] >= 0)

    def plain(self, column: int) -> bool:
        """True for a word that does not fill every text."""
        label = self.seen.keys.labels[column]
        return label.casefold() not in FILLERS and len(label) > 2

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
    says = np.array([1 if read.plain(a) and read.plain(b) else 0.5 for a, b in pairwise(choice)])
    worth = np.where(crosses & (smaller >= CLEAR), (smaller - larger) * says, 0)
    head, row = (int(one) for one in np.unravel_index(worth.argmax(), worth.shape))
    if worth[head, row] <= 0:
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
            score=0.3 + float(worth[head, row]),
            words=(*_said(read, row, 2), *(read.seen.keys.labels[one] for one in columns)),
            also=int((worth[:, row] > 0).sum()) - 1,
        )
    ]


def _said(read: Agreed, row: int, number: int) -> tuple[str, ...]:
    return tuple(read.seen.rows.labels[read.rows[row + one]] for one in range(number))


def _doubled(read: Agreed) -> list[Finding]:
    """The clearest pair of neighbouring target words that look at one source word."""
    smaller = np.minimum(read.given[:, :-1], read.given[:, 1:])
    same = read.beside & (read.choice[1:] == read.choice[:-1])
    worth = np.where(same & (smaller >= CLEAR), smaller, 0)
    if not worth.any():
        return []
    head, row = (int(one) for one in np.unravel_index(worth.argmax(), worth.shape))
    column = int(read.choice[row])
    others = np.delete(read.weights[head][:, column], [row, row + 1])
    return [
        read.finding(
            SAID_BY_TWO,
            head,
            row,
            (column,),
            value=float(smaller[head, row]),
            chance=float(others.mean()) if len(others) else 0.0,
            score=0.45 * float(smaller[head, row]),
            words=(*_said(read, row, 2), read.seen.keys.labels[column]),
            also=int((worth[:, row] > 0).sum()) - 1,
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
    return [
        read.finding(
            LEFT_OUT,
            int(head),
            int(row),
            (column,),
            value=float(most[at]),
            chance=middle,
            score=0.4,
            words=(read.seen.keys.labels[column],),
        )
    ]


def _aligned(read: Agreed) -> list[Finding]:
    """The word that looks most plainly at a word of the source."""
    says = np.array([column >= 0 and (1 if read.plain(column) else 0.5) for column in read.choice])
    worth = (read.given - read.elsewhere) * says * (read.given >= CLEAR)
    head, row = (int(one) for one in np.unravel_index(worth.argmax(), worth.shape))
    if worth[head, row] <= 0:
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
            score=0.55 * float(worth[head, row]),
            words=(*_said(read, row, 1), read.seen.keys.labels[column]),
            also=int((worth[:, row] > 0).sum()) - 1,
        )
    ]
