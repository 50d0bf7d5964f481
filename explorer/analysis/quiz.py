"""Questions on a recording: ten, each with one right answer by a stated margin, all answers made of
numbers of this recording, none of them a special token.

They are computed, not written: every question that has an answer is found, and ten are taken, kind
by kind, those first whose answer is a finding or leads most. The order of the answers is drawn from
text, model and question, so that the same text asks the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict
from zlib import crc32

import numpy as np

from explorer.analysis import residual, words
from explorer.analysis.findings import Between, Finding, between_words
from explorer.analysis.word_classes import is_word
from explorer.analysis.words import Groups
from models.recording import Recording, Stream

# What a question is: one measured fact about a recording, and other numbers of the same recording
# beside it that are not it.

# The kinds, in the order in which one of each is asked.
LOOKS, BACK, HEAD, SCALE, TURNED, RECEIVED = "looks", "back", "head", "scale", "turned", "received"
WEIGHT, SPREAD, NEXT, AHEAD, SHARPENED = "weight", "spread", "next", "ahead", "sharpened"
WROTE, NEAREST = "wrote", "nearest"
KINDS = (
    LOOKS,
    BACK,
    SCALE,
    TURNED,
    HEAD,
    NEXT,
    RECEIVED,
    WEIGHT,
    NEAREST,
    SPREAD,
    SHARPENED,
    WROTE,
    AHEAD,
)
# By how much the right answer leads the next at least, in the unit of its kind: a weight or a share
# of attention, words, degrees, a cosine, a probability. Of numbers: how far any two are apart.
LEAST = {
    LOOKS: 0.1,
    HEAD: 0.1,
    WEIGHT: 0.08,
    BACK: 0.15,
    AHEAD: 0.15,
    RECEIVED: 0.03,
    SPREAD: 0.3,
    SCALE: 0.08,
    SHARPENED: 0.08,
    TURNED: 2.0,
    WROTE: 0.01,
    NEAREST: 0.03,
    NEXT: 0.05,
}
FEWEST, MOST = 3, 4  # answers


@dataclass(frozen=True)
class AnswerOption:
    """One answer: a word with its token, a head, or a number; and what was measured of it."""

    value: float
    word: str = ""
    token: int = -1
    head: int = -1
    layer: int = -1

    @property
    def name(self) -> str:
        """As it stands among the answers."""
        if self.word:
            return self.word
        return f"Layer {self.layer}, head {self.head}" if self.head >= 0 else f"{self.value:.2f}"


@dataclass(frozen=True)
class Question:
    """One question about one recording.

    kind: one of KINDS. choices: in the order in which they are shown; right: which is right.
    margin: by how much it leads, see LEAST. attention, layer, head: where it is seen, "" and -1
    where it is no head's. words: what is asked about. token: that word's. site: a sub-layer's.
    value: a number that is said with the question. interest: what questions of a kind are ranked
    by. page and address: where the answer is seen.
    """

    kind: str
    choices: tuple[AnswerOption, ...]
    right: int
    margin: float
    attention: str = ""
    layer: int = -1
    head: int = -1
    words: tuple[str, ...] = ()
    token: int = -1
    key: int = -1
    site: str = ""
    stream: str = ""
    value: float = 0.0
    interest: float = 0.0
    page: str = "attention"
    address: tuple[tuple[str, str], ...] = ()

    @property
    def answer(self) -> AnswerOption:
        """The right one."""
        return self.choices[self.right]


class About(TypedDict, total=False):
    """What a `Question` says besides its answers: fields of it, by name."""

    attention: str
    layer: int
    head: int
    words: tuple[str, ...]
    token: int
    key: int
    site: str
    stream: str
    value: float
    interest: float
    page: str
    address: tuple[tuple[str, str], ...]


def of_most(ranked: list[AnswerOption], kind: str, about: About) -> Question | None:
    """The question which of some has most, from all that could be shown, the most first; None where
    the first does not lead by enough, or there are too few."""
    if len(ranked) < FEWEST or ranked[0].value - ranked[1].value < LEAST[kind]:
        return None
    if len({one.name.casefold() for one in ranked[:MOST]}) < len(ranked[:MOST]):
        return None
    return Question(kind, tuple(ranked[:MOST]), 0, ranked[0].value - ranked[1].value, **about)


def of_numbers(
    right: float, others: list[float], turn: int, kind: str, about: About
) -> Question | None:
    """The question how much something is, among other numbers of the same kind. `turn` says how
    many of these are to be smaller, so that neither the largest nor the smallest is right more
    often; where there are not so many, the question interests less."""
    apart: list[float] = []
    for one in sorted(others, key=lambda each: abs(each - right)):
        if all(abs(one - each) >= LEAST[kind] for each in (right, *apart)):
            apart.append(one)
    low, high = [each for each in apart if each < right], [each for each in apart if each > right]
    wanted = turn % MOST
    below = min(len(low), max(wanted, MOST - 1 - len(high)))
    chosen = [*low[:below], *high[: MOST - 1 - below]]
    if len(chosen) < FEWEST - 1:
        return None
    margin = min(abs(one - right) for one in chosen)
    choices = (AnswerOption(right), *map(AnswerOption, chosen))
    made = Question(kind, choices, 0, margin, **about)
    fits = below == wanted and len(chosen) == MOST - 1
    return made if fits else replace(made, interest=made.interest - 1)


# Questions about heads: what a word looks at, which head does something, and what the scale does.

ROOM = 4  # words that a row may look at, for a question about it
RANGE = (0.15, 0.9)  # weights that are asked for: neither nothing nor all
TRIED = 40  # pairs of words that are looked at closely
RESTS = 0.5  # a head that gives so much to one place by habit is asked for by that


def about_heads(seen: Between, all_words: bool) -> Iterator[Question]:
    """Questions about an attention between words, none about special tokens. `all_words`: a word
    that the text repeats is told by its number, else it is not asked about."""
    asked = WordAttention(seen, all_words)
    yield from asked.looks()
    yield from asked.given()
    yield from asked.received()
    yield from asked.spread()
    if seen.attention.query == seen.attention.key:
        yield from asked.beside()
    if seen.attention.opens:
        yield from asked.scales()


class WordAttention:
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

    def word(self, column: int, value: float) -> AnswerOption:
        """A word as an answer."""
        return AnswerOption(
            float(value), self.key_names[column], int(self.seen.keys.starts[column])
        )

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
                if best not in columns or lead < LEAST[LOOKS]:
                    continue
                ranked = sorted(columns, key=lambda each: -weights[each])
                far = min(abs(best - row), 6) / 6
                yield from some(
                    of_most(
                        [self.word(each, weights[each]) for each in ranked],
                        LOOKS,
                        self.at(layer, head, row)
                        | {"words": self.words(row), "interest": float(lead) * (0.3 + far)},
                    )
                )

    def given(self) -> Iterator[Question]:
        """Which head gives a word most of another's attention, and how much does a head give?"""
        pairs = [
            (row, column) for row in self.rows.tolist() for column in self.columns(row).tolist()
        ]
        if not pairs or self.layers * self.heads < FEWEST:
            return
        rows, columns = np.array(pairs).T
        weights = self.w[:, :, rows, columns].reshape(-1, len(pairs))
        top = np.sort(weights, axis=0)[-2:]
        lead = top[1] - top[0]
        for at in np.argsort(-lead, kind="stable")[:TRIED]:
            ranked = np.argsort(-weights[:, at], kind="stable")
            heads = [self.head(each, weights[each, at]) for each in ranked]
            if heads[0].value >= 2 * LEAST[HEAD]:
                about = self.about(pairs[at], int(ranked[0]))
                yield from some(of_most(heads, HEAD, about | {"interest": float(lead[at])}))
        heads_at, pairs_at = np.nonzero((weights >= RANGE[0]) & (weights <= RANGE[1]))
        mixed = [_drawn(int(h), *map(int, pairs[p])) for h, p in zip(heads_at, pairs_at)]
        for each in np.argsort(mixed, kind="stable")[:TRIED]:
            head, at = int(heads_at[each]), int(pairs_at[each])
            about = self.about(pairs[at], head) | {"interest": 1 - mixed[each] / 2**32}
            others = [float(one) for one in np.delete(weights[:, at], head)]
            value = float(weights[head, at])
            yield from some(of_numbers(value, others, self.turn, WEIGHT, about))

    def head(self, number: int, value: float) -> AnswerOption:
        """A head, by its number over all layers, as an answer."""
        return AnswerOption(
            float(value), layer=int(number) // self.heads, head=int(number) % self.heads
        )

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
                    RECEIVED,
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
                AnswerOption(float(over[each]), labels[each], int(starts[each])) for each in ranked
            ]
            interest = 1.0 - 1.0 / float(over[ranked[0]])
            about = self.at(layer, head, ranked[0]) | {"interest": interest}
            yield from some(of_most(choices, SPREAD, about))

    def beside(self) -> Iterator[Question]:
        """Which of these heads looks one token back, and which one ahead?"""
        attention = self.seen.attention
        n = attention.pattern.shape[2]
        special = np.zeros(n, bool)
        for group, apart in zip(
            np.split(np.arange(n), self.seen.keys.starts[1:]), self.seen.keys.special
        ):
            special[group] = apart
        for kind, step in ((BACK, -1), (AHEAD, 1)):
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
                rest = [at for at in order if share[right] - share[at] >= LEAST[kind]]
                # Not the plainest of the others, but some of all sizes.
                few = (
                    [rest[at] for at in np.linspace(0, len(rest) - 1, MOST - 1).astype(int)]
                    if len(rest) >= MOST
                    else rest
                )
                ranked = [
                    AnswerOption(float(share[at]), layer=at[0], head=at[1]) for at in (right, *few)
                ]
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
                ranked = [AnswerOption(float(moved[layer, h]), layer=layer, head=h) for h in order]
                about = self.at(layer, order[0], row)
                about |= {"words": self.words(row), "interest": ranked[0].value}
                yield from some(of_most(ranked, SHARPENED, about))
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
                yield from some(of_numbers(value, others, self.turn >> 4, SCALE, about))


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


# Questions about the residual stream and what is read off it: which word a sub-layer turns, into
# which attention writes most, which ends nearest to another, and what the model says next.


def about_stream(stream: Stream, grouped: Groups, all_words: bool) -> Iterator[Question]:
    """Questions about the words of a stream; a word of several tokens is what is largest of them.
    `all_words` as in `about_heads`."""
    names, single = named(grouped.labels, all_words)
    plain = np.flatnonzero(
        [not apart and is_word(label) for label, apart in zip(grouped.labels, grouped.special)]
    )
    places = np.array([at for at in plain if single[at]], int)
    grouped = replace(grouped, labels=names)
    if len(places) < ROOM or len(stream.sites) < 3:
        return
    for one in residual.sublayers(stream):
        if one.layer < 0:
            continue
        before, wrote = stream.at(one.before), stream.at(one.wrote)
        measured = [(TURNED, "Turned", residual.degrees(before, stream.at(one.after)))]
        if one.place == "attn":
            measured.append((WROTE, "Share", residual.share(before, wrote)))
        for kind, shown, values in measured:
            by_word = np.maximum.reduceat(values, grouped.starts)
            if not np.isfinite(by_word).all() or by_word[plain].max() > by_word[places].max():
                continue
            address = (("flow", "Writes"), ("write", shown), ("stream", stream.name))
            yield from some(
                _words(kind, by_word, places, grouped, one.site, stream.name, "residual", address)
            )
    yield from _nearest(stream, grouped, plain, places)


def _words(
    kind: str,
    values: np.ndarray,
    places: np.ndarray,
    grouped: Groups,
    site: str,
    stream: str,
    page: str,
    address: tuple[tuple[str, str], ...],
) -> Question | None:
    ranked = sorted(places, key=lambda each: -values[each])
    choices = [
        AnswerOption(float(values[at]), grouped.labels[at], int(grouped.starts[at]))
        for at in ranked
    ]
    lead = (choices[0].value - choices[1].value) / max(abs(choices[0].value), 1e-9)
    token = str(choices[0].token)
    return of_most(
        choices,
        kind,
        {
            "site": site,
            "stream": stream,
            "interest": lead,
            "page": page,
            "address": (*address, ("token", token)),
        },
    )


def _nearest(
    stream: Stream, grouped: Groups, plain: np.ndarray, places: np.ndarray
) -> Iterator[Question]:
    """Whose last vector points most the way of another's? Words of one token."""
    single = np.array([at for at in places if grouped.sizes[at] == 1], int)
    every = np.array([at for at in plain if grouped.sizes[at] == 1], int)
    if len(single) < ROOM + 1:
        return
    last = stream.resid[-1].astype(np.float64)
    unit = last / np.maximum(np.linalg.norm(last, axis=1, keepdims=True), 1e-12)
    starts = np.array(grouped.starts)
    cosines = unit[starts] @ unit[starts].T
    for row in single:
        others = single[single != row]
        best = others[cosines[row, others].argmax()]
        if cosines[row, every[every != row]].max() > cosines[row, best]:
            continue
        made = _words(
            NEAREST,
            cosines[row],
            others,
            grouped,
            stream.sites[-1],
            stream.name,
            "embeddings",
            (("stream", stream.name),),
        )
        if made is not None:
            token = int(starts[row])
            address = (("stream", stream.name), ("token", str(token)))
            words = (grouped.labels[row],)
            yield replace(made, words=words, token=token, address=address, interest=made.margin)


def about_next(said: Sequence[tuple[str, float]], stream: Stream) -> Iterator[Question]:
    """What is likeliest next? `said`: the likeliest tokens after the last one, with their
    probabilities, the likeliest first."""
    choices = [AnswerOption(float(p), word.strip()) for word, p in said if is_word(word)]
    # Where something else than a word is likeliest, no word is the answer.
    if not said or not choices or choices[0].word != said[0][0].strip():
        return
    token = len(stream.tokens) - 1
    yield from some(
        of_most(
            choices,
            NEXT,
            {
                "token": token,
                "stream": stream.name,
                "interest": 1.0,
                "page": "predictions",
                "address": (("token", str(token)),),
            },
        )
    )


TEN = 10
WHOLE = {BACK, AHEAD, NEXT}  # asked of a whole attention or text: once
FOUND = 2.0  # what a question is worth more whose answer is a finding


def questions(
    recording: Recording,
    findings: Sequence[Finding] = (),
    after: str = "",
    said: Sequence[tuple[str, float]] = (),
    most: int = TEN,
) -> tuple[Question, ...]:
    """Up to `most` questions on a recording, of as many kinds as it has.

    findings: those of the recording, the strongest first, which is told and not asked; the others
    are asked about first. after: what follows a target, for
    its last row. said: the likeliest next tokens with their probabilities, of a model that writes.
    """
    # The first of them is a headline: it is no question any more.
    links = {(one.attention, one.at, one.query) for one in findings[1:] if one.head >= 0}
    said_already = {(one.attention, one.at, one.query) for one in findings[:1]}
    chosen: list[Question] = []
    for all_words in (False, True):  # repeated words are asked about only where it must be
        if len(chosen) < most:
            every = _all(recording, after, said, all_words)
            fresh = (
                one
                for one in every
                if (one.attention, (one.layer, one.head), one.token) not in said_already
            )
            chosen = _taken(fresh, links, most)
    return tuple(_shuffled(one, recording, at) for at, one in enumerate(chosen))


def _taken(
    every: Iterator[Question], links: set[tuple[str, tuple[int, int], int]], most: int
) -> list[Question]:
    """So many of all questions, kind by kind, the most interesting of each first."""
    by_kind: dict[str, list[Question]] = {kind: [] for kind in KINDS}
    for one in every:
        found = (one.attention, (one.layer, one.head), one.token) in links
        worth = one.interest + (FOUND if found and one.kind in (LOOKS, HEAD, WEIGHT) else 0)
        by_kind[one.kind].append(replace(one, interest=worth))
    for kind in KINDS:
        by_kind[kind].sort(key=lambda one: -one.interest)
    chosen: list[Question] = []
    while len(chosen) < most and any(by_kind.values()):
        for kind in KINDS:
            left = by_kind[kind] = [one for one in by_kind[kind] if _new(one, chosen)]
            if left and len(chosen) < most:
                chosen.append(left.pop(0))
    return chosen


def _all(
    recording: Recording, after: str, said: Sequence[tuple[str, float]], all_words: bool
) -> Iterator[Question]:
    for attention in recording.attention:
        yield from about_heads(between_words(recording, attention, after), all_words)
    for stream in recording.streams:
        text = recording.target if stream is not recording.streams[0] else recording.text
        yield from about_stream(stream, words.words(stream, text), all_words)
    yield from about_next(said, recording.streams[-1])


def _new(one: Question, chosen: Sequence[Question]) -> bool:
    """True where none of the chosen asks nearly the same: not of one head and word, nor, in one
    kind, of one word, one head or one answer."""
    for each in chosen:
        same_head = one.head >= 0 and (one.attention, one.layer, one.head) == (
            each.attention,
            each.layer,
            each.head,
        )
        if same_head and one.token == each.token:
            return False
        if one.kind != each.kind:
            continue
        if one.kind in WHOLE and one.attention == each.attention:
            return False
        if same_head or (one.words and one.words[0] == each.words[0]):
            return False
        if one.answer.word and one.answer.word == each.answer.word:
            return False
        if one.site and one.site == each.site and not one.words:
            return False
    return True


def _shuffled(one: Question, recording: Recording, at: int) -> Question:
    """The question with its answers in an order that only text, model and question decide."""
    seed = "\x00".join(
        (recording.model.name, recording.text, recording.target, one.kind, str(at))
    ).encode("utf-8", "replace")
    order = sorted(
        range(len(one.choices)),
        key=lambda each: hashlib.sha256(seed + bytes([each])).digest(),
    )
    first = recording.attention[0].name if recording.attention else ""
    return replace(
        one,
        choices=tuple(one.choices[each] for each in order),
        right=order.index(one.right),
        # The first attention needs no word in an address.
        address=tuple(
            (name, "" if (name, value) == ("attention", first) else value)
            for name, value in one.address
        ),
    )
