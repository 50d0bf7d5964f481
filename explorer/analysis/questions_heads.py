"""Questions about heads: what a word looks at, which head does something, and what the scale
does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from zlib import crc32

import numpy as np

from explorer.analysis import question as kinds
from explorer.analysis.findings_links import Between
from explorer.analysis.question import About, Choice, Question, of_most, of_numbers

ROOM = 4  # words that a row may look at, for a question about it
RANGE = (0.15, 0.9)  # weights that are asked for: neither nothing nor all
TRIED = 40  # pairs of words that are looked at closely
RESTS = 0.5  # a head that gives so much to one place by habit is asked for by that


def about_heads(seen: Between, all_words: bool) -> Iterator[Question]:
    """Questions about an attention between words, none about special tokens. `all_words`: a word
    that the text repeats is told by its number, else it is not asked about."""
    asked = Asked(seen, all_words)
    yield from asked.looks()
    yield from asked.given()
    yield from asked.received()
    yield from asked.spread()
    if seen.attention.query == seen.attention.key:
        yield from asked.beside()
    if seen.attention.opens:
        yield from asked.scales()


class Asked:
    """An attention between words, and which of them can be asked about: those of letters, figures
    or signs that the text holds once, so that an answer names one place."""

    def __init__(self, seen: Between, all_words: bool) -> None:
        self.seen, self.w = seen, seen.weights.astype(np.float64)
        self.layers, self.heads = self.w.shape[:2]
        self.row_names, rows = named(seen.rows.labels, all_words)
        self.key_names, keys = named(seen.keys.labels, all_words)
        self.rows = np.flatnonzero(rows & seen.telling[0])
        self.keys = np.flatnonzero(keys & seen.telling[1])
        # How many of the other numbers are smaller than the right one: drawn from the text.
        self.turn = crc32(
            "\0".join((*self.row_names, seen.attention.name)).encode("utf-8", "replace")
        )

    def at(self, layer: int, head: int, row: int | None = None) -> About:
        """Where a question about a head is seen."""
        name = self.seen.attention.name
        token = -1 if row is None else int(self.seen.rows.starts[row])
        held = "" if row is None else str(token)
        places = (("layer", str(layer)), ("head", str(head)), ("token", held), ("source", ""))
        return {
            "attention": name,
            "layer": layer,
            "head": head,
            "token": token,
            "address": (("attention", name), *places),
        }

    def word(self, column: int, value: float) -> Choice:
        """A word as an answer."""
        return Choice(float(value), self.key_names[column], int(self.seen.keys.starts[column]))

    def words(self, row: int, *columns: int) -> tuple[str, ...]:
        """A row's word, and those of columns."""
        return (self.row_names[row], *(self.key_names[each] for each in columns))

    def columns(self, row: int) -> np.ndarray:
        """The words that a row may look at, without itself."""
        own = self.seen.attention.query == self.seen.attention.key
        return self.keys[self.seen.allowed[row, self.keys] & ~(own & (self.keys == row))]

    def looks(self) -> Iterator[Question]:
        """Which word does a word look at most, in a head?"""
        for row in self.rows.tolist():
            columns = self.columns(row)
            if len(columns) < ROOM:
                continue
            for layer, head in np.ndindex(self.layers, self.heads):
                weights = self.w[layer, head, row]
                best = int(weights.argmax())
                # Of all that it may look at, special tokens and repeated words among them.
                lead = weights[best] - np.delete(weights, best).max()
                if best not in columns or lead < kinds.LEAST[kinds.LOOKS]:
                    continue
                ranked = sorted(columns, key=lambda each: -weights[each])
                far = min(abs(best - row), 6) / 6
                yield from some(
                    of_most(
                        [self.word(each, weights[each]) for each in ranked],
                        kinds.LOOKS,
                        self.at(layer, head, row)
                        | {"words": self.words(row), "interest": float(lead) * (0.3 + far)},
                    )
                )

    def given(self) -> Iterator[Question]:
        """Which head gives a word most of another's attention, and how much does a head give?"""
        pairs = [
            (row, column) for row in self.rows.tolist() for column in self.columns(row).tolist()
        ]
        if not pairs or self.layers * self.heads < kinds.FEWEST:
            return
        rows, columns = np.array(pairs).T
        weights = self.w[:, :, rows, columns].reshape(-1, len(pairs))
        top = np.sort(weights, axis=0)[-2:]
        lead = top[1] - top[0]
        for at in np.argsort(-lead, kind="stable")[:TRIED]:
            ranked = np.argsort(-weights[:, at], kind="stable")
            heads = [self.head(each, weights[each, at]) for each in ranked]
            if heads[0].value >= 2 * kinds.LEAST[kinds.HEAD]:
                about = self.about(pairs[at], int(ranked[0]))
                yield from some(of_most(heads, kinds.HEAD, about | {"interest": float(lead[at])}))
        heads_at, pairs_at = np.nonzero((weights >= RANGE[0]) & (weights <= RANGE[1]))
        mixed = [_drawn(int(h), *map(int, pairs[p])) for h, p in zip(heads_at, pairs_at)]
        for each in np.argsort(mixed, kind="stable")[:TRIED]:
            head, at = int(heads_at[each]), int(pairs_at[each])
            about = self.about(pairs[at], head) | {"interest": 1 - mixed[each] / 2**32}
            others = [float(one) for one in np.delete(weights[:, at], head)]
            value = float(weights[head, at])
            yield from some(of_numbers(value, others, self.turn, kinds.WEIGHT, about))

    def head(self, number: int, value: float) -> Choice:
        """A head, by its number over all layers, as an answer."""
        return Choice(float(value), layer=int(number) // self.heads, head=int(number) % self.heads)

    def about(self, pair: tuple[int, int], number: int) -> About:
        """Where a question about a head and two words is seen."""
        row, column = pair
        key = int(self.seen.keys.starts[column])
        layer, head = divmod(number, self.heads)
        return self.at(layer, head, row) | {"words": self.words(row, column), "key": key}

    def received(self) -> Iterator[Question]:
        """Which word of the text is looked at most, over all rows of a head?"""
        if len(self.keys) < ROOM:
            return
        plain = np.flatnonzero(self.seen.telling[1])
        for layer, head in np.ndindex(self.layers, self.heads):
            mean = np.average(self.w[layer, head], axis=0, weights=self.seen.rows.sizes)
            ranked = sorted(self.keys.tolist(), key=lambda each: -mean[each])
            # A repeated word that gets more would be the true answer.
            if mean[plain].max() > mean[ranked[0]]:
                continue
            yield from some(
                of_most(
                    [self.word(each, mean[each]) for each in ranked],
                    kinds.RECEIVED,
                    self.at(layer, head) | {"interest": float(mean[ranked[0]])},
                )
            )

    def spread(self) -> Iterator[Question]:
        """Which word spreads its attention over most tokens? The exponential of the entropy of its
        tokens' mean row."""
        own = self.seen.attention.query == self.seen.attention.key
        rows = [row for row in self.rows.tolist() if not own or len(self.columns(row)) >= 1]
        if len(rows) < ROOM:
            return
        pattern = self.seen.attention.pattern.astype(np.float64)
        rows_of = self.seen.rows
        shares = np.add.reduceat(pattern, rows_of.starts, axis=2) / rows_of.sizes[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = -np.where(shares > 0, shares * np.log(shares), 0).sum(axis=3)
        for layer, head in np.ndindex(self.layers, self.heads):
            over = np.exp(entropy[layer, head])
            ranked = sorted(rows, key=lambda each: -over[each])
            plain = np.flatnonzero(self.seen.telling[0])
            if over[plain].max() > over[ranked[0]]:
                continue
            labels, starts = self.row_names, self.seen.rows.starts
            choices = [
                Choice(float(over[each]), labels[each], int(starts[each])) for each in ranked
            ]
            interest = 1.0 - 1.0 / float(over[ranked[0]])
            about = self.at(layer, head, ranked[0]) | {"interest": interest}
            yield from some(of_most(choices, kinds.SPREAD, about))

    def beside(self) -> Iterator[Question]:
        """Which of these heads looks one token back, and which one ahead?"""
        attention = self.seen.attention
        n = attention.pattern.shape[2]
        special = np.zeros(n, bool)
        for group, apart in zip(
            np.split(np.arange(n), self.seen.keys.starts[1:]), self.seen.keys.special
        ):
            special[group] = apart
        for kind, step in ((kinds.BACK, -1), (kinds.AHEAD, 1)):
            rows = [
                at
                for at in range(max(0, -step), n - max(0, step))
                if not special[at] and not special[at + step] and attention.allowed[at, at + step]
            ]
            if len(rows) < ROOM:
                continue
            there = np.array(rows)
            share = attention.pattern[:, :, there, there + step].mean(axis=-1, dtype=np.float64)
            order = [divmod(int(each), self.heads) for each in np.argsort(-share, axis=None)]
            for right in order:
                if share[right] < RESTS:
                    break
                rest = [at for at in order if share[right] - share[at] >= kinds.LEAST[kind]]
                # Not the plainest of the others, but some of all sizes.
                few = (
                    [rest[at] for at in np.linspace(0, len(rest) - 1, kinds.MOST - 1).astype(int)]
                    if len(rest) >= kinds.MOST
                    else rest
                )
                ranked = [Choice(float(share[at]), layer=at[0], head=at[1]) for at in (right, *few)]
                about = self.at(*right) | {"interest": float(share[right])}
                yield from some(of_most(ranked, kind, about))

    def scales(self) -> Iterator[Question]:
        """What does a word's largest weight become without the scale, and which head changes
        most?"""
        attention = self.seen.attention
        for row in self.rows.tolist():
            if self.seen.rows.sizes[row] > 1 or len(self.columns(row)) < ROOM:
                continue
            token = int(self.seen.rows.starts[row])
            now = attention.pattern[:, :, token].astype(np.float64)
            bare = without_scale(
                attention.scores[:, :, token], attention.scale, attention.allowed[token]
            )
            largest, moved = bare.max(axis=2), np.abs(bare - now).sum(axis=2) / 2
            for layer in range(self.layers):
                if attention.scale[layer] >= 1:
                    continue
                order = [int(each) for each in np.argsort(-moved[layer])]
                ranked = [Choice(float(moved[layer, h]), layer=layer, head=h) for h in order]
                about = self.at(layer, order[0], row)
                about |= {"words": self.words(row), "interest": ranked[0].value}
                yield from some(of_most(ranked, kinds.SHARPENED, about))
            others_at = np.arange(largest.size)
            for number in others_at[
                (moved.ravel() >= RANGE[0]) & (attention.scale < 1).repeat(self.heads)
            ]:
                layer, head = divmod(int(number), self.heads)
                value, mixed = float(largest[layer, head]), _drawn(int(number), row, 0)
                about = self.at(layer, head, row)
                about |= {"words": self.words(row), "value": float(now[layer, head].max())}
                about["interest"] = 1 - mixed / 2**32
                others = [float(each) for each in np.delete(largest.ravel(), number)]
                yield from some(of_numbers(value, others, self.turn >> 4, kinds.SCALE, about))


def _drawn(*numbers: int) -> int:
    """A number below 2**32 that looks drawn and is the same each time."""
    mixed = 0x9E3779B9
    for each in numbers:
        mixed = ((mixed ^ each) * 0x85EBCA6B + 0xC2B2AE35) % 2**32
        mixed ^= mixed >> 15
    return mixed


def without_scale(scores: np.ndarray, scale: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The softmax of a row's q . k as they are. scores (layer, head, key), scale (layer), allowed
    (key)."""
    z = np.where(allowed, scores.astype(np.float64) / scale[:, None, None], -np.inf)
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def named(labels: tuple[str, ...], all_words: bool) -> tuple[tuple[str, ...], np.ndarray]:
    """What words are called among answers, and which of them can be: those that stand once, or all
    of them, those that are repeated with their number, as "the (2)"."""
    plain = [label.casefold() for label in labels]
    counts = Counter(plain)
    single = np.array([counts[label] == 1 for label in plain], bool)
    if not all_words:
        return labels, single
    numbers = [plain[: at + 1].count(label) for at, label in enumerate(plain)]
    names = (
        label if one else f"{label} ({number})"
        for label, one, number in zip(labels, single, numbers)
    )
    return tuple(names), np.ones(len(labels), bool)


def some(made: Question | None) -> Iterator[Question]:
    """The question, where there is one."""
    if made is not None:
        yield made
