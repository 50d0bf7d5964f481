"""Questions on a recording: ten, each with one right answer by a stated margin, all answers made of
numbers of this recording, none of them a special token.

They are computed, not written: every question that has an answer is found, and ten are taken, kind
by kind, those first whose answer is a finding or leads most. The order of the answers is drawn from
text, model and question, so that the same text asks the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from explorer.analysis import words
from explorer.analysis.finding import Finding
from explorer.analysis.findings import between_words
from explorer.analysis.question import AHEAD, BACK, HEAD, KINDS, LOOKS, NEXT, WEIGHT, Question
from explorer.analysis.questions_heads import about_heads
from explorer.analysis.questions_stream import about_next, about_stream
from models.recording import Recording

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
