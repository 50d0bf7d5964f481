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
from typing import Any
from zlib import crc32

import numpy as np

from explorer.analysis import words
from explorer.analysis.findings import (
    Finding,
    WordLevelAttention,
    attention_between_words,
    sublayer_measures,
    text_mask,
    word_maxima,
)
from explorer.analysis.word_classes import is_word
from explorer.analysis.words import Groups
from models.edits import WithoutScale, to_line
from models.recording import Recording, Stream

# What a question is: one measured fact about a recording, and other numbers of the same recording
# beside it that are not it.

LOOKS, BACK, HEAD, SCALE, TURNED, RECEIVED = "looks", "back", "head", "scale", "turned", "received"
WEIGHT, SPREAD, NEXT, AHEAD, SHARPENED = "weight", "spread", "next", "ahead", "sharpened"
WROTE, NEAREST = "wrote", "nearest"
# The kinds, in the order in which one of each is asked, and by how much the right answer leads the
# next at least, in the unit of its kind: a weight or a share of attention, words, degrees, a
# cosine, a probability. Of numbers: how far any two are apart.
MIN_MARGIN = {
    LOOKS: 0.1,
    BACK: 0.15,
    SCALE: 0.08,
    TURNED: 2.0,
    HEAD: 0.1,
    NEXT: 0.05,
    RECEIVED: 0.03,
    WEIGHT: 0.08,
    NEAREST: 0.03,
    SPREAD: 0.3,
    SHARPENED: 0.08,
    WROTE: 0.01,
    AHEAD: 0.15,
}
FEWEST_ANSWERS, MOST_ANSWERS = 3, 4  # answers


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

    kind: one of MIN_MARGIN. choices: in order, the right one first until they are shuffled; right:
    its index. margin: its lead. attention, layer, head: the question's head, "" and -1 where it is
    about none. words: the words in question. token: that word's. site: a sub-layer's. value: a
    number in the question. interest: the rank of questions of a kind. page and address: the tab and
    the choices that show the answer."""

    kind: str
    choices: tuple[AnswerOption, ...] = ()
    right: int = 0
    margin: float = 0.0
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
    page: str = "heads"
    address: tuple[tuple[str, str], ...] = ()

    @property
    def answer(self) -> AnswerOption:
        """The right one."""
        return self.choices[self.right]


def most_question(ranked: list[AnswerOption], about: Question) -> Iterator[Question]:
    """The question which of some has most, from all that could be shown, the most first; nothing
    where the first does not lead by enough, or there are too few."""
    choices = tuple(ranked[:MOST_ANSWERS])
    if len(choices) < FEWEST_ANSWERS:
        return
    margin = choices[0].value - choices[1].value
    names = {each.name.casefold() for each in choices}
    if margin >= MIN_MARGIN[about.kind] and len(names) == len(choices):
        yield replace(about, choices=choices, margin=margin)


def number_question(
    answer: float, others: list[float], draw: int, about: Question
) -> Iterator[Question]:
    """The question how much something is, among other numbers of the same kind. `draw` says how
    many of these are to be smaller, so that neither the largest nor the smallest is right more
    often; where there are not so many, the question interests less."""
    spaced: list[float] = []
    for number in sorted(others, key=lambda each: abs(each - answer)):
        if all(abs(number - each) >= MIN_MARGIN[about.kind] for each in (answer, *spaced)):
            spaced.append(number)
    low, high = (
        [each for each in spaced if each < answer],
        [each for each in spaced if each > answer],
    )
    n_wanted = draw % MOST_ANSWERS
    n_below = min(len(low), max(n_wanted, MOST_ANSWERS - 1 - len(high)))
    distractors = [*low[:n_below], *high[: MOST_ANSWERS - 1 - n_below]]
    if len(distractors) < FEWEST_ANSWERS - 1:
        return
    fits = n_below == n_wanted and len(distractors) == MOST_ANSWERS - 1
    yield replace(
        about,
        choices=(AnswerOption(answer), *map(AnswerOption, distractors)),
        margin=min(abs(number - answer) for number in distractors),
        interest=about.interest - (not fits),
    )


# Questions about heads: what a word looks at, which head does something, and what the scale does.

FEWEST_KEYS = 4  # words that a row may look at, for a question about it
WEIGHT_RANGE = (0.15, 0.9)  # weights that are asked for: neither nothing nor all
MOST_PAIRS = 40  # pairs of words that are looked at closely
HABIT_SHARE = 0.5  # a head that gives so much to one place by habit is asked for by that


def head_questions(word_attention: WordLevelAttention, all_words: bool) -> Iterator[Question]:
    """Questions about an attention between words, none about special tokens. `all_words`: a
    repeated word has its number, else there are no questions about it."""
    attention_questions = AttentionQuestions(word_attention, all_words)
    yield from attention_questions.looks()
    yield from attention_questions.largest_weights()
    yield from attention_questions.received()
    yield from attention_questions.spread()
    if word_attention.attention.query == word_attention.attention.key:
        yield from attention_questions.beside()
    if word_attention.attention.opens:
        yield from attention_questions.scales()


class AttentionQuestions:
    """An attention between words, and which of them can be asked about: those of letters, figures
    or signs that the text holds once, so that an answer names one place."""

    def __init__(self, word_attention: WordLevelAttention, all_words: bool) -> None:
        self.seen, self.w = word_attention, word_attention.weights.astype(np.float64)
        self.layers, self.heads = self.w.shape[:2]
        self.row_names, rows = answer_names(word_attention.rows.labels, all_words)
        self.key_names, keys = answer_names(word_attention.keys.labels, all_words)
        self.rows = np.flatnonzero(rows & word_attention.text_masks[0])
        self.keys = np.flatnonzero(keys & word_attention.text_masks[1])
        # How many of the other numbers are smaller than the right one: drawn from the text.
        self.turn = crc32(
            "\0".join((*self.row_names, word_attention.attention.name)).encode("utf-8", "replace")
        )

    def about(
        self, kind: str, layer: int, head: int, row: int = -1, column: int = -1, **more: Any
    ) -> Question:
        """A question about a head, and the words of a row and a column where they are named, still
        without answers."""
        name = self.seen.attention.name
        token = -1 if row < 0 else int(self.seen.rows.starts[row])
        key = -1 if column < 0 else int(self.seen.keys.starts[column])
        words = (self.row_names[row],) * (row >= 0) + (self.key_names[column],) * (column >= 0)
        address = {
            "attention": name,
            "layer": str(layer),
            "head": str(head),
            "token": "" if row < 0 else str(token),
            "source": "",
        }
        return Question(
            kind,
            attention=name,
            layer=layer,
            head=head,
            words=words,
            token=token,
            key=key,
            address=tuple(address.items()),
            **more,
        )

    def word(self, column: int, value: float) -> AnswerOption:
        """A word as an answer."""
        return AnswerOption(
            float(value), self.key_names[column], int(self.seen.keys.starts[column])
        )

    def columns(self, row: int) -> np.ndarray:
        """The words that a row may look at, without itself."""
        is_self = self.seen.attention.query == self.seen.attention.key
        return self.keys[self.seen.allowed[row, self.keys] & ~(is_self & (self.keys == row))]

    def looks(self) -> Iterator[Question]:
        """Questions on the word that a word attends to most, in a head."""
        for row in self.rows.tolist():
            columns = self.columns(row)
            if len(columns) < FEWEST_KEYS:
                continue
            for layer, head in np.ndindex(self.layers, self.heads):
                weights = self.w[layer, head, row]
                best = int(weights.argmax())
                # Of all that it may look at, special tokens and repeated words among them.
                lead = weights[best] - np.delete(weights, best).max()
                if best not in columns or lead < MIN_MARGIN[LOOKS]:
                    continue
                ranked = sorted(columns, key=lambda each: -weights[each])
                far = min(abs(best - row), 6) / 6
                about = self.about(LOOKS, layer, head, row, interest=float(lead) * (0.3 + far))
                yield from most_question([self.word(each, weights[each]) for each in ranked], about)

    def largest_weights(self) -> Iterator[Question]:
        """Questions on the largest weight between two words: which head gives it, and how much."""
        pairs = [
            (row, column) for row in self.rows.tolist() for column in self.columns(row).tolist()
        ]
        if not pairs or self.layers * self.heads < FEWEST_ANSWERS:
            return
        rows, columns = np.array(pairs).T
        weights = self.w[:, :, rows, columns].reshape(-1, len(pairs))
        top = np.sort(weights, axis=0)[-2:]
        lead = top[1] - top[0]
        for at in np.argsort(-lead, kind="stable")[:MOST_PAIRS]:
            ranked = np.argsort(-weights[:, at], kind="stable")
            heads = [self.head(index, weights[index, at]) for index in ranked]
            if heads[0].value >= 2 * MIN_MARGIN[HEAD]:
                place = heads[0].layer, heads[0].head, *pairs[at]
                yield from most_question(heads, self.about(HEAD, *place, interest=float(lead[at])))
        heads_at, pairs_at = np.nonzero((weights >= WEIGHT_RANGE[0]) & (weights <= WEIGHT_RANGE[1]))
        draws = [_pseudo_random(int(h), *map(int, pairs[p])) for h, p in zip(heads_at, pairs_at)]
        for index in np.argsort(draws, kind="stable")[:MOST_PAIRS]:
            number, at = int(heads_at[index]), int(pairs_at[index])
            place = *divmod(number, self.heads), *pairs[at]
            about = self.about(WEIGHT, *place, interest=1 - draws[index] / 2**32)
            others = [float(each) for each in np.delete(weights[:, at], number)]
            yield from number_question(float(weights[number, at]), others, self.turn, about)

    def head(self, number: int, value: float) -> AnswerOption:
        """A head, by its number over all layers, as an answer."""
        layer, head = divmod(int(number), self.heads)
        return AnswerOption(float(value), layer=layer, head=head)

    def received(self) -> Iterator[Question]:
        """Questions on the word that receives most attention, over all rows of a head."""
        if len(self.keys) < FEWEST_KEYS:
            return
        text_columns = np.flatnonzero(self.seen.text_masks[1])
        for layer, head in np.ndindex(self.layers, self.heads):
            mean = np.average(self.w[layer, head], axis=0, weights=self.seen.rows.sizes)
            ranked = sorted(self.keys.tolist(), key=lambda each: -mean[each])
            # A repeated word that gets more would be the true answer.
            if mean[text_columns].max() > mean[ranked[0]]:
                continue
            about = self.about(RECEIVED, layer, head, interest=float(mean[ranked[0]]))
            yield from most_question([self.word(each, mean[each]) for each in ranked], about)

    def spread(self) -> Iterator[Question]:
        """Questions on the word with the widest attention, by the exponential of its mean row's
        entropy."""
        is_self = self.seen.attention.query == self.seen.attention.key
        rows = [row for row in self.rows.tolist() if not is_self or len(self.columns(row)) >= 1]
        if len(rows) < FEWEST_KEYS:
            return
        pattern = self.seen.attention.pattern.astype(np.float64)
        rows_of = self.seen.rows
        shares = np.add.reduceat(pattern, rows_of.starts, axis=2) / rows_of.sizes[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = -np.where(shares > 0, shares * np.log(shares), 0).sum(axis=3)
        for layer, head in np.ndindex(self.layers, self.heads):
            perplexity = np.exp(entropy[layer, head])
            ranked = sorted(rows, key=lambda each: -perplexity[each])
            text_rows = np.flatnonzero(self.seen.text_masks[0])
            if perplexity[text_rows].max() > perplexity[ranked[0]]:
                continue
            labels, starts = self.row_names, self.seen.rows.starts
            choices = [
                AnswerOption(float(perplexity[each]), labels[each], int(starts[each]))
                for each in ranked
            ]
            interest = 1.0 - 1.0 / float(perplexity[ranked[0]])
            about = self.about(SPREAD, layer, head, ranked[0], interest=interest)
            yield from most_question(choices, replace(about, words=()))

    def beside(self) -> Iterator[Question]:
        """Questions on previous-token and next-token heads."""
        attention = self.seen.attention
        n = attention.pattern.shape[2]
        special = np.zeros(n, bool)
        for group, is_special in zip(
            np.split(np.arange(n), self.seen.keys.starts[1:]), self.seen.keys.special
        ):
            special[group] = is_special
        reachable = attention.reachable
        for kind, step in ((BACK, -1), (AHEAD, 1)):
            rows = [
                at
                for at in range(max(0, -step), n - max(0, step))
                if not special[at] and not special[at + step] and reachable[at, at + step]
            ]
            if len(rows) < FEWEST_KEYS:
                continue
            positions = np.array(rows)
            share = attention.pattern[:, :, positions, positions + step].mean(
                axis=-1, dtype=np.float64
            )
            order = [divmod(int(each), self.heads) for each in np.argsort(-share, axis=None)]
            for right in order:
                if share[right] < HABIT_SHARE:
                    break
                others = [at for at in order if share[right] - share[at] >= MIN_MARGIN[kind]]
                # Not the plainest of the others, but some of all sizes.
                distractors = (
                    [
                        others[at]
                        for at in np.linspace(0, len(others) - 1, MOST_ANSWERS - 1).astype(int)
                    ]
                    if len(others) >= MOST_ANSWERS
                    else others
                )
                ranked = [
                    AnswerOption(float(share[at]), layer=at[0], head=at[1])
                    for at in (right, *distractors)
                ]
                about = self.about(kind, *right, interest=float(share[right]))
                yield from most_question(ranked, about)

    def scales(self) -> Iterator[Question]:
        """Questions on a word's largest weight without the scale, and on the head that changes
        most."""
        attention = self.seen.attention
        for row in self.rows.tolist():
            if self.seen.rows.sizes[row] > 1 or len(self.columns(row)) < FEWEST_KEYS:
                continue
            token = int(self.seen.rows.starts[row])
            scaled = attention.pattern[:, :, token].astype(np.float64)
            unscaled = unscaled_softmax(
                attention.scores[:, :, token], attention.scale, attention.allowed[:, token]
            )
            largest, change = unscaled.max(axis=2), np.abs(unscaled - scaled).sum(axis=2) / 2
            for layer in range(self.layers):
                if attention.scale[layer] >= 1:
                    continue
                order = [int(each) for each in np.argsort(-change[layer])]
                ranked = [AnswerOption(float(change[layer, h]), layer=layer, head=h) for h in order]
                about = self.about(SHARPENED, layer, order[0], row, interest=ranked[0].value)
                about = without_scale(about)
                yield from most_question(ranked, about)
            others_at = np.arange(largest.size)
            for number in others_at[
                (change.ravel() >= WEIGHT_RANGE[0]) & (attention.scale < 1).repeat(self.heads)
            ]:
                layer, head = divmod(int(number), self.heads)
                interest = 1 - _pseudo_random(int(number), row, 0) / 2**32
                now = float(scaled[layer, head].max())
                about = self.about(SCALE, layer, head, row, value=now, interest=interest)
                about = without_scale(about)
                others = [float(each) for each in np.delete(largest.ravel(), number)]
                value = float(largest[layer, head])
                yield from number_question(value, others, self.turn >> 4, about)


def without_scale(about: Question) -> Question:
    """The question with its answer on Edit the model, without the scale in its layer alone: what
    the layer reads stays the same."""
    edits = ("edits", to_line((WithoutScale(about.layer),)))
    return replace(about, page="edit", address=(*about.address, edits))


def _pseudo_random(*numbers: int) -> int:
    """A number below 2**32 that looks drawn and is the same each time."""
    state = 0x9E3779B9
    for number in numbers:
        state = ((state ^ number) * 0x85EBCA6B + 0xC2B2AE35) % 2**32
        state ^= state >> 15
    return state


def unscaled_softmax(scores: np.ndarray, scale: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The softmax of a row's q . k as they are. scores (layer, head, key), scale (layer), allowed
    (layer, key)."""
    z = np.where(allowed[:, None], scores.astype(np.float64) / scale[:, None, None], -np.inf)
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def answer_names(labels: tuple[str, ...], all_words: bool) -> tuple[tuple[str, ...], np.ndarray]:
    """The names of words among answers, and a mask of those that can be answers. Words that occur
    once, or all of them; repeated ones have their number, as "the (2)"."""
    folded = [label.casefold() for label in labels]
    counts = Counter(folded)
    unique = np.array([counts[label] == 1 for label in folded], bool)
    if not all_words:
        return labels, unique
    numbers = [folded[: at + 1].count(label) for at, label in enumerate(folded)]
    names = (
        label if one else f"{label} ({number})"
        for label, one, number in zip(labels, unique, numbers)
    )
    return tuple(names), np.ones(len(labels), bool)


# Questions about the residual stream and what is read off it: which word a sub-layer turns, into
# which attention writes most, which ends nearest to another, and what the model says next.


def stream_questions(stream: Stream, grouped: Groups, all_words: bool) -> Iterator[Question]:
    """Questions about the words of a stream; a word of several tokens is what is largest of them.
    `all_words` as in `head_questions`."""
    names, single = answer_names(grouped.labels, all_words)
    text_words = np.flatnonzero(text_mask(grouped))
    unique_words = np.array([at for at in text_words if single[at]], int)
    grouped = replace(grouped, labels=names)
    if len(unique_words) < FEWEST_KEYS or len(stream.sites) < 3:
        return
    kinds = ((TURNED, "Rotation angle"), (WROTE, "Share"))
    for (kind, choice), (sublayers, values) in zip(kinds, sublayer_measures(stream)):
        for sublayer, by_word in zip(sublayers, word_maxima(values, grouped)):
            if (
                not np.isfinite(by_word).all()
                or by_word[text_words].max() > by_word[unique_words].max()
            ):
                continue
            about = Question(
                kind,
                site=sublayer.site,
                stream=stream.name,
                page="residual",
                address=(("flow", "Writes"), ("write", choice), ("stream", stream.name)),
            )
            for question in _word_questions(by_word, unique_words, grouped, about):
                token = ("token", str(question.answer.token))
                yield replace(question, address=(*question.address, token))
    yield from _nearest_questions(stream, grouped, text_words, unique_words)


def _word_questions(
    values: np.ndarray, word_indices: np.ndarray, grouped: Groups, about: Question
) -> Iterator[Question]:
    """The question which of some words has the largest value."""
    choices = [
        AnswerOption(float(values[at]), grouped.labels[at], int(grouped.starts[at]))
        for at in sorted(word_indices, key=lambda each: -values[each])
    ]
    lead = (choices[0].value - choices[1].value) / max(abs(choices[0].value), 1e-9)
    yield from most_question(choices, replace(about, interest=lead))


def _nearest_questions(
    stream: Stream, grouped: Groups, text_words: np.ndarray, unique_words: np.ndarray
) -> Iterator[Question]:
    """Questions which word's last vector is most similar to another's. Words of one token."""
    candidates = np.array([at for at in unique_words if grouped.sizes[at] == 1], int)
    one_token_words = np.array([at for at in text_words if grouped.sizes[at] == 1], int)
    if len(candidates) < FEWEST_KEYS + 1:
        return
    last = stream.resid[-1].astype(np.float64)
    unit = last / np.maximum(np.linalg.norm(last, axis=1, keepdims=True), 1e-12)
    starts = np.array(grouped.starts)
    cosines = unit[starts] @ unit[starts].T
    for row in candidates:
        others = candidates[candidates != row]
        best = others[cosines[row, others].argmax()]
        if cosines[row, one_token_words[one_token_words != row]].max() > cosines[row, best]:
            continue
        token = int(starts[row])
        about = Question(
            NEAREST,
            words=(grouped.labels[row],),
            token=token,
            site=stream.sites[-1],
            stream=stream.name,
            page="embeddings",
            address=(("stream", stream.name), ("token", str(token))),
        )
        for question in _word_questions(cosines[row], others, grouped, about):
            yield replace(question, interest=question.margin)


def next_token_question(
    predictions: Sequence[tuple[str, float]], stream: Stream
) -> Iterator[Question]:
    """A question on the likeliest next token. `predictions`: the likeliest tokens after the last
    one, with their probabilities, the likeliest first."""
    choices = [AnswerOption(float(p), word.strip()) for word, p in predictions if is_word(word)]
    # Where something else than a word is likeliest, no word is the answer.
    if not predictions or not choices or choices[0].word != predictions[0][0].strip():
        return
    token = len(stream.tokens) - 1
    about = Question(
        NEXT,
        token=token,
        stream=stream.name,
        interest=1.0,
        page="word",
        address=(("token", str(token)),),
    )
    yield from most_question(choices, about)


N_QUESTIONS = 10
ONCE_KINDS = {BACK, AHEAD, NEXT}  # asked of a whole attention or text: once
FINDING_BONUS = 2.0  # what a question is worth more whose answer is a finding


def questions(
    recording: Recording,
    findings: Sequence[Finding] = (),
    after: str = "",
    predictions: Sequence[tuple[str, float]] = (),
) -> tuple[Question, ...]:
    """Up to N_QUESTIONS questions on a recording, of as many kinds as it has.

    findings: those of the recording, the strongest first, which the page shows and so is not in
    question; the others come first. after: the token after a target, for its last row. predictions:
    the likeliest next tokens with their probabilities, of a model that writes."""
    # The first of them is a headline: it is no question any more.
    links = {(one.attention, one.at, one.query) for one in findings[1:] if one.head >= 0}
    headline = {(one.attention, one.at, one.query) for one in findings[:1]}
    chosen: list[Question] = []
    for all_words in (False, True):  # repeated words are asked about only where it must be
        if len(chosen) < N_QUESTIONS:
            candidates = _candidates(recording, after, predictions, all_words)
            new_questions = (
                one
                for one in candidates
                if (one.attention, (one.layer, one.head), one.token) not in headline
            )
            chosen = _select_questions(new_questions, links)
    return tuple(_shuffled(one, recording, at) for at, one in enumerate(chosen))


def _select_questions(
    candidates: Iterator[Question], links: set[tuple[str, tuple[int, int], int]]
) -> list[Question]:
    """N_QUESTIONS of all questions, kind by kind, the most interesting of each first."""
    by_kind: dict[str, list[Question]] = {kind: [] for kind in MIN_MARGIN}
    for question in candidates:
        is_finding = (question.attention, (question.layer, question.head), question.token) in links
        interest = question.interest + (
            FINDING_BONUS if is_finding and question.kind in (LOOKS, HEAD, WEIGHT) else 0
        )
        by_kind[question.kind].append(replace(question, interest=interest))
    for kind in MIN_MARGIN:
        by_kind[kind].sort(key=lambda question: -question.interest)
    chosen: list[Question] = []
    while len(chosen) < N_QUESTIONS and any(by_kind.values()):
        for kind in MIN_MARGIN:
            remaining = by_kind[kind] = [
                question for question in by_kind[kind] if _is_new(question, chosen)
            ]
            if remaining and len(chosen) < N_QUESTIONS:
                chosen.append(remaining.pop(0))
    return chosen


def _candidates(
    recording: Recording, after: str, predictions: Sequence[tuple[str, float]], all_words: bool
) -> Iterator[Question]:
    for attention in recording.attention:
        yield from head_questions(attention_between_words(recording, attention, after), all_words)
    for stream in recording.streams:
        text = recording.target if stream is not recording.streams[0] else recording.text
        yield from stream_questions(stream, words.words(stream, text), all_words)
    yield from next_token_question(predictions, recording.streams[-1])


def _is_new(question: Question, chosen: Sequence[Question]) -> bool:
    """True where none of the chosen asks nearly the same: not of one head and word, nor, in one
    kind, of one word, one head or one answer."""
    for other in chosen:
        same_head = question.head >= 0 and (question.attention, question.layer, question.head) == (
            other.attention,
            other.layer,
            other.head,
        )
        if same_head and question.token == other.token:
            return False
        if question.kind != other.kind:
            continue
        if question.kind in ONCE_KINDS and question.attention == other.attention:
            return False
        if same_head or (question.words and question.words[0] == other.words[0]):
            return False
        if question.answer.word and question.answer.word == other.answer.word:
            return False
        if question.site and question.site == other.site and not question.words:
            return False
    return True


def _shuffled(question: Question, recording: Recording, number: int) -> Question:
    """The question with its answers in an order that only text, model and question decide."""
    seed = "\x00".join(
        (recording.model.name, recording.text, recording.target, question.kind, str(number))
    ).encode("utf-8", "replace")
    order = sorted(
        range(len(question.choices)),
        key=lambda index: hashlib.sha256(seed + bytes([index])).digest(),
    )
    first = recording.attention[0].name if recording.attention else ""
    return replace(
        question,
        choices=tuple(question.choices[index] for index in order),
        right=order.index(question.right),
        # The first attention needs no word in an address.
        address=tuple(
            (name, "" if (name, value) == ("attention", first) else value)
            for name, value in question.address
        ),
    )
