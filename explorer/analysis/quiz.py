"""Ten questions on a recording, each with one right answer by a stated margin, made of numbers of
this recording and of passes with a part, a word or a place another; none is about a special token.

They are computed, not written: every question that has an answer is found, and ten are taken, kind
by kind, in an order that the text decides, those first whose answer is a finding or leads most.
Most are questions of reasons. The letters of the right answers are dealt, as many of each as there
can be, in an order that text and model decide, so that the same text asks the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from explorer.analysis import quiz_reading, quiz_reasons, word_classes
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import Finding, attention_between_words, word_groups
from explorer.analysis.measure import MeasureContext
from explorer.analysis.quiz_question import (
    AHEAD,
    BACK,
    CHANGED,
    LOOKS,
    MASKED,
    MIN_MARGIN,
    MOST_ANSWERS,
    NEXT,
    NORM,
    RECEIVED,
    RESIDUAL,
    Question,
)
from models.contract.recording import Recording

N_QUESTIONS = 10
OF_SENTENCE = (NEXT, MASKED, CHANGED, LOOKS)  # kinds that are asked wherever a text has them
OF_EVERY_TEXT = (RESIDUAL, NORM)  # kinds that are asked of every text alike
PREVIOUS = {"previous", "previous-causal"}  # forms that ask of a head of the previous token
CLEAR = 0.2  # by how much a pronoun's noun leads
FINDING_BONUS = 2.0  # what a question is worth more whose answer is a finding


def questions(
    context: MeasureContext,
    findings: Sequence[Finding] = (),
    after: str = "",
    likeliest: Sequence[tuple[str, float]] = (),
) -> tuple[Question, ...]:
    """Up to N_QUESTIONS questions on a recording, of as many kinds as it has.

    findings: those of the recording, the strongest first, which the page shows and so is not in
    question; the others come first. after: the token after a target, for its last row. likeliest:
    the likeliest next words with their probabilities, of a model that writes."""
    recording = context.recording
    # The first of them is a headline: it is no question any more.
    links = {(one.attention, one.at, one.query) for one in findings[1:] if one.head >= 0}
    headline = {(one.attention, one.at, one.query) for one in findings[:1]}
    reasons = list(quiz_reasons.reasons(context, likeliest))
    chosen: list[Question] = []
    # Repeated words are asked about only where it must be.
    for all_words in (False, True):
        if len(chosen) < N_QUESTIONS:
            read_off = (
                one
                for one in _read_off(recording, after, all_words)
                if (one.attention, (one.layer, one.head), one.token) not in headline
            )
            chosen = _select_questions([*reasons, *read_off], links, recording)
    return _dealt(chosen, recording)


def _drawn_for(kind: str, recording: Recording) -> int:
    """A number that a text draws for a kind."""
    name = f"{kind}\0{recording.text}".encode("utf-8", "replace")
    return int.from_bytes(hashlib.sha256(name).digest()[:4])


def guesses(
    context: MeasureContext, of_heads: bool, first: tuple[str, int, int] | None = None
) -> tuple[Question, ...]:
    """Up to N_QUESTIONS guesses, in the order of the text: which word the model predicts at each
    word, or which word each of several heads chooses. first: the attention, the layer and the head
    whose own come first, None for none."""
    recording = context.recording
    is_own = lambda one: (one.attention, one.layer, one.head) == first
    if of_heads:
        candidates = [one for one in _read_off(recording, "", True) if one.kind == LOOKS]
        candidates.sort(key=lambda one: -one.interest)
        chosen = [one for one in candidates if is_own(one)][:N_QUESTIONS]
        for one in candidates:
            if len(chosen) < N_QUESTIONS and _is_new(one, chosen):
                chosen.append(one)
    else:
        chosen = list(quiz_reasons.predicted_words(context))
        chosen = sorted(chosen, key=lambda one: -one.interest)[:N_QUESTIONS]
    return _dealt(sorted(chosen, key=lambda one: (not is_own(one), one.token)), recording)


def _read_off(recording: Recording, after: str, all_words: bool) -> Iterator[Question]:
    for attention in recording.attention:
        yield from quiz_reading.head_questions(
            attention_between_words(recording, attention, after), all_words
        )


def _select_questions(
    candidates: Sequence[Question],
    links: set[tuple[str, tuple[int, int], int]],
    recording: Recording,
) -> list[Question]:
    """N_QUESTIONS of all questions, kind by kind, the most interesting of each first. Of what a
    pronoun attends to in its own text, those alone that can be reasoned."""
    by_kind: dict[str, list[Question]] = {kind: [] for kind in MIN_MARGIN}
    for question in candidates:
        is_finding = (question.attention, (question.layer, question.head), question.token) in links
        bonus = FINDING_BONUS if is_finding and question.kind == LOOKS else 0
        by_kind[question.kind].append(replace(question, interest=question.interest + bonus))
    for kind in MIN_MARGIN:
        by_kind[kind].sort(key=lambda question: -question.interest)
    looks = by_kind[LOOKS]
    of_pronouns = _pronouns(recording)
    later = [one for one in looks if (one.attention, one.token) not in of_pronouns]
    by_kind[LOOKS] = [
        quiz_reading.what_follows(one)
        for one in looks
        if _can_be_reasoned(one, of_pronouns) and _is_agreed(one, recording)
    ]
    order = _order(recording)
    chosen = _kind_by_kind({kind: by_kind[kind] for kind in order}, [])
    return _kind_by_kind({LOOKS: later}, chosen)


def _order(recording: Recording) -> list[str]:
    """The kinds in the order in which one of each is asked: first those whose answer is of this
    sentence alone, then reasons, as the text decides, since it has more of them than are asked,
    and last what is read off. Of two texts of three come late those that have one answer always."""

    def rank(kind: str) -> tuple[int, int]:
        if kind in OF_SENTENCE:
            return 0, OF_SENTENCE.index(kind)
        if kind == RECEIVED:
            return 3, 0
        drawn = _drawn_for(kind, recording)
        return (2 if kind in OF_EVERY_TEXT and drawn % 3 else 1), drawn

    return sorted(MIN_MARGIN, key=rank)


def _pronouns(recording: Recording) -> Mapping[tuple[str, int], set[int]]:
    """The likely nouns before each pronoun, by an attention of one text and the pronoun's token:
    the tokens at which their words begin. The word right before it is none of them, since a head
    may attend to it by its place alone."""
    before: dict[tuple[str, int], set[int]] = {}
    for attention in recording.attention:
        if attention.query != attention.key:
            continue
        groups = word_groups(recording, attention.query)
        starts, is_noun = groups.starts, word_classes.nouns(groups.labels)
        for at, kind in enumerate(word_classes.classes(groups.labels)):
            if kind == word_classes.PRONOUN:
                nouns = {int(starts[each]) for each in range(at - 1) if is_noun[each]}
                before[attention.name, int(starts[at])] = nouns
    return before


def _can_be_reasoned(one: Question, of_pronouns: Mapping[tuple[str, int], set[int]]) -> bool:
    """True for a pronoun that clearly attends to a noun before it; what another word attends to in
    a head can only be looked up."""
    nouns = of_pronouns.get((one.attention, one.token), set())
    return one.answer.token in nouns and one.margin >= CLEAR


def _is_agreed(one: Question, recording: Recording) -> bool:
    """True for a pronoun whose noun all tested heads say."""
    facts = RecordingFacts(recording)
    vote, key = facts.vote_on(one.attention, one.token), facts.attention(one.attention).key
    if vote is None or vote.noun is None or vote.n_votes < len(vote.ballots):
        return False
    return int(word_groups(recording, key).of[one.answer.token]) == vote.noun


def _kind_by_kind(by_kind: dict[str, list[Question]], chosen: list[Question]) -> list[Question]:
    """The chosen questions and, up to N_QUESTIONS, one of each kind after the other."""
    chosen = [*chosen]
    while len(chosen) < N_QUESTIONS and any(by_kind.values()):
        for kind in by_kind:
            remaining = by_kind[kind] = [
                question for question in by_kind[kind] if _is_new(question, chosen)
            ]
            if remaining and len(chosen) < N_QUESTIONS:
                chosen.append(remaining.pop(0))
    return chosen


def _tells(one: Question, other: Question) -> bool:
    """True where the sentence of one question tells the answer of the other: which rule a head
    has."""
    same = (one.attention, one.layer, one.head) == (other.attention, other.layer, other.head)
    return same and "rule" in (forms := {one.form, other.form}) and len(forms & PREVIOUS) == 1


def _is_new(question: Question, chosen: Sequence[Question]) -> bool:
    """True where none of the chosen asks nearly the same: of reasons, of one kind; of what is read
    off, of one head and word, or in one kind of one word, one head or one answer."""
    for other in chosen:
        same_kind = question.kind == other.kind
        if same_kind and question.is_reason or _tells(question, other):
            return False
        if {question.kind, other.kind} == {BACK, AHEAD} or question.exchanges and other.exchanges:
            return False
        if question.is_reason or other.is_reason:
            continue
        same_head = (question.attention, question.layer, question.head) == (
            other.attention,
            other.layer,
            other.head,
        )
        if same_head and (same_kind or question.token == other.token):
            return False
        same_word = bool(question.words) and question.words[:1] == other.words[:1]
        if same_kind and (same_word or question.answer.name == other.answer.name):
            return False
    return True


def _dealt(chosen: Sequence[Question], recording: Recording) -> tuple[Question, ...]:
    """The questions with their answers in an order that only text, model and question decide, and
    each letter right as often as any other, as far as there are so many answers."""
    name = "\0".join((recording.model.name, recording.text, recording.target))
    seed = name.encode("utf-8", "replace")

    def drawn(*numbers: int) -> bytes:
        return hashlib.sha256(seed + bytes(numbers)).digest()

    counts = [0] * MOST_ANSWERS
    letters: dict[int, int] = {}
    # Those with fewer answers first: they have less to choose from.
    for at in sorted(range(len(chosen)), key=lambda at: (len(chosen[at].choices), drawn(at))):
        free = range(len(chosen[at].choices))
        letters[at] = min(free, key=lambda letter: (counts[letter], drawn(at, letter)))
        counts[letters[at]] += 1
    return tuple(
        _with_order(
            one,
            letters[at],
            sorted(range(1, len(one.choices)), key=lambda k: drawn(at, k, 1)),
            recording,
        )
        for at, one in enumerate(chosen)
    )


def _with_order(
    question: Question, right: int, others: list[int], recording: Recording
) -> Question:
    """The question with its right answer, the first, at a place among the others."""
    order = [*others[:right], 0, *others[right:]]
    first = recording.attention[0].name if recording.attention else ""
    attention = () if question.attention in ("", first) else (("attention", question.attention),)
    return replace(
        question,
        choices=tuple(question.choices[index] for index in order),
        right=right,
        # The first attention needs no word in an address.
        address=(*(pair for pair in question.address if pair[0] != "attention"), *attention),
    )
