"""Offers: what is known to change a model's answer on this text, each measured before it is made.

A head or a word is offered to be taken out where the answer turns without it: the word that led
loses at least `opening.LEAST_LOSS`, and another leads. What a head writes is offered to be copied
from the changed text where the answer turns with that. A change of words is offered where the vote
on the pronoun (`votes`) moves to another noun, and another model where its heads name another noun.
Of each kind the one that changes most. Where nothing passes there is no offer.

What is tried is bounded, by number and by work (MAX_WORK), so that all of it takes a second or two
of one core at most; where it would take more, no more is tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from explorer.analysis import changes, opening, predictions, word_classes, words
from explorer.analysis.coreference import Vote
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.shared_votes import SharedVote, shared_votes
from explorer.analysis.word_classes import is_word
from models.contract.cancellation import TimeLimit, expect_wanted
from models.contract.edits import Edit, HideToken, PatchHead, ZeroHead, to_line
from models.contract.recording import Recording
from models.contract.results import largest, softmax
from models.runtime.caching import in_slot, kept, loaded
from models.runtime.run import Run, run_of

# The kinds.
HEAD, WORD, PATCH, CHANGE = "head", "word", "patch", "change"
MODELS, BOTH, THIRD = "models", "both", "third"
SWAPPED = {"he": "she", "she": "he"}  # pronouns that are tried for each other
LEAST_VOTES = 2  # for a noun
MAX_HEADS, MAX_WORDS = 8, 12  # that are tried, by their direct contribution to the answer
MAX_WORK = 4e10  # parameters times tokens read, for one text
N_WORDS = 3  # whose probabilities an offer tells


class Guess(NamedTuple):
    """A word at a place, and its probability before and after."""

    word: str
    before: float
    after: float


class Said(NamedTuple):
    """The vote of the tested heads on a pronoun, the best-tested head first: the nouns, and the one
    that is named."""

    nouns: tuple[str, ...]
    noun: str

    @property
    def n_votes(self) -> int:
        """The number of heads that say the noun that is named."""
        return self.nouns.count(self.noun)


@dataclass(frozen=True)
class Offer:
    """A change of an answer: its kind, the words of an address that show it, and what was measured
    before and after.

    address: choices by their names: `edits`, `text` or `model`, with `token`, the token of the
    first stream that the answer is about. word: that token's word, the pronoun of a vote or the
    word that is to be guessed, "" for the next word at the end of a text. Of a head its attention,
    layer and number, and `reads`, the word that it gives most there, "" for none; of words that are
    taken out or changed what they are, and `new` what stands in their place; of models their names.
    guesses: the likeliest words before and after, for a head and a word; the first led before and
    the second leads now. votes: before and after, for a change and for models."""

    kind: str
    address: tuple[tuple[str, str], ...]
    word: str = ""
    attention: str = ""
    layer: int = -1
    head: int = -1
    reads: str = ""
    old: str = ""
    new: str = ""
    guesses: tuple[Guess, ...] = ()
    votes: tuple[Said, ...] = ()

    @property
    def loss(self) -> float:
        """The probability that the word that led loses; 0 for an offer that is about a vote."""
        return self.guesses[0].before - self.guesses[0].after if self.guesses else 0.0


def offers(run: Run, others: Iterable[str] = ()) -> tuple[Offer, ...]:
    """The offers of a run without edits: to compare with one of the `others`, models by their
    names, which are loaded where they are not, to change words, to take a head out, and to take a
    word out. At most one of each kind."""
    recording = run.recording()
    beside = (compare(recording, other) for other in others if other != recording.model.name)
    first = next((each for each in beside if each is not None), None)
    return (*((first,) if first else ()), *own_offers(recording))


@kept
def own_offers(recording: Recording) -> tuple[Offer, ...]:
    """The offers of a recording that need no other model; none of one under edits."""
    if recording.edits:
        return ()
    n_tokens = sum(len(each.tokens) for each in recording.streams)
    work = PassBudget(MAX_WORK / max(1, recording.model.n_parameters * n_tokens))
    made: list[Offer | None] = [change(recording, work)]
    if work.take(1) and (answer := answer_of(recording)) is not None:
        made += [head_out(answer, work), word_out(answer, work)]
    return tuple(filter(None, made))


@dataclass
class PassBudget:
    """The passes over a text that may still be made."""

    passes: float

    def take(self, n: int) -> int:
        """Take up to n passes more, and say how many."""
        taken = min(n, int(self.passes))
        self.passes -= taken
        return taken


# ---- what a model answers ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Answer:
    """The word that a model gives at one place.

    recording: the pass that it is read from, in which the word is hidden where the model fills in
    words; token: the token that it is read at. place: the token that the answer is about, that
    behind the text for the next word at its end; word: its word, "" there. id: the word that leads,
    name: that word as a person reads it, of several tokens the first and the whole; p (id): all
    probabilities."""

    recording: Recording
    token: int
    place: int
    id: int
    p: np.ndarray
    word: str
    name: str

    @property
    def stream(self) -> str:
        """The name of the stream that it is read from."""
        return self.recording.streams[-1].name

    def without(self, *edits: Edit) -> np.ndarray | None:
        """The probabilities (id) under more edits; None where a model cannot follow them."""
        expect_wanted()
        before = self.recording
        model = loaded(before)
        try:
            made = model.record_once(run_of(before).text_or_ids, (*before.edits, *edits))
            return probabilities(made, self.token)
        except TimeLimit:
            raise
        except ValueError:
            return None


def probabilities(recording: Recording, token: int) -> np.ndarray:
    """The probabilities (id) of the words at a token of the last stream."""
    model, stream = loaded(recording).uncached, recording.streams[-1].name
    return softmax(in_slot(lambda: model.logits(recording, stream, token)))  # not kept


def answer_of(recording: Recording) -> Answer | None:
    """The answer that offers are about.

    Of a model that fills in words the word that the vote is on, or that a text opens on, hidden; of
    one that writes the next word at the end, or, where the text ends a sentence, that word after
    those before it. None where the model predicts no words or reads two texts, and where a word of
    the text does not lead at its place."""
    model, stream = loaded(recording), recording.streams[0]
    if len(recording.streams) > 1 or not model.capabilities.logits or any(stream.roles):
        return None
    place = travelling_word(recording)
    try:
        if recording.model.kind == "encoder":
            if place is None or HideToken not in model.capabilities.edits:
                return None
            hidden = run_of(recording).under((HideToken(place),)).recording()
            return _answer_at(recording, hidden, place, place)
        last = len(stream.tokens) - 1
        if stream.tokens[last][-1:] not in word_classes.CLAUSE_ENDS:
            return _answer_at(recording, recording, last, last + 1)
        if place is None or place < 1:
            return None
        return _answer_at(recording, recording, place - 1, place)
    except TimeLimit:
        raise
    except ValueError:
        return None


def travelling_word(recording: Recording) -> int | None:
    """The token of the first stream whose word the vote is on, or else that a text opens on; None
    for a word of several tokens."""
    grouped = words.words(recording.streams[0], recording.text)
    vote = first_vote(recording)
    if vote is None:
        place = opening.masked_word(recording) if recording.model.kind == "encoder" else None
    else:
        place = grouped.starts[vote.row]
    return None if place is None or grouped.sizes[grouped.of[place]] > 1 else place


def _answer_at(plain: Recording, read: Recording, token: int, place: int) -> Answer | None:
    """The answer of a place where a pass is read at a token; None where the word that stands there
    does not lead."""
    p, ids = probabilities(read, token), plain.streams[0].ids
    best = int(p.argmax())
    name = _plain_label(read, best)
    if place < len(ids):
        return Answer(read, token, place, best, p, name, name) if ids[place] == best else None
    whole = loaded(read).predicted_words(read, [(best, float(p[best]))], 1, token)
    name = predictions.first_piece(whole[best]) if best in whole else name
    return Answer(read, token, place, best, p, "", name)


def _plain_label(recording: Recording, id: int) -> str:
    (label,) = loaded(recording).labels([id])
    return predictions.without_mark(label, after_special=True)


Heads = list[tuple[str, int, int]]

# ---- take out ------------------------------------------------------------------------------------


def head_out(answer: Answer, work: PassBudget) -> Offer | None:
    """The head without which the answer turns and loses most, of the MAX_HEADS that bring most of
    it; None where none does."""
    heads, _ = contributions(answer)
    return _head_out(answer, heads[: work.take(len(heads))])


@kept
def of_head(recording: Recording, attention: str, layer: int, head: int) -> tuple[Offer, ...]:
    """The offers beside one head, two at most: to take it out where the answer turns without it, to
    copy from the changed text what it writes there where the answer turns with that, and the change
    of words that moves the vote."""
    if recording.edits:
        return ()
    answer, at = answer_of(recording), (attention, layer, head)
    changed = next((each for each in own_offers(recording) if each.kind == CHANGE), None)
    if answer is None:
        return (changed,) if changed else ()
    copied = _patched(answer, at, changed) if changed else None
    return tuple(filter(None, (_head_out(answer, [at]), copied, changed)))[:2]


def _patched(answer: Answer, at: tuple[str, int, int], changed: Offer) -> Offer | None:
    """The head with what it writes in the changed text, where both have their words at the same
    places and the answer turns; None where it does not."""
    name, layer, head = at
    text = dict(changed.address)["text"]
    model, own = loaded(answer.recording), answer.recording.streams[0]
    edit = PatchHead(text, layer, head, name)
    is_alike = len(model.record(text).streams[0].tokens) == len(own.tokens)
    turned = _turning(answer, [(edit,)]) if is_alike else None
    if turned is None:
        return None
    return Offer(
        PATCH,
        _address(answer, (edit,)),
        answer.word,
        name,
        layer,
        head,
        old=changed.old,
        new=changed.new,
        guesses=turned[1],
    )


def _head_out(answer: Answer, heads: Heads) -> Offer | None:
    """The head, of these, without which the answer turns and loses most; None where none does."""
    turned = _turning(answer, [(ZeroHead(layer, head, name),) for name, layer, head in heads])
    if turned is None:
        return None
    at, guesses = turned
    name, layer, head = heads[at]
    return Offer(
        HEAD,
        _address(answer, (ZeroHead(layer, head, name),)),
        answer.word,
        name,
        layer,
        head,
        _read_by(answer, heads[at]),
        guesses=guesses,
    )


def word_out(answer: Answer, work: PassBudget) -> Offer | None:
    """The word without which the answer turns and loses most, of the MAX_WORDS that bring most of
    it, and of these one of content where there is one; None where none does."""
    _, places = contributions(answer)
    places = places[: work.take(len(places))]
    asked = [words.hidden_word(answer.recording, place) for place in places]
    labels = [_word_at(answer.recording, place) for place in places]
    telling = [each == word_classes.CONTENT for each in map(_class_of, labels)]
    turned = _turning(answer, asked, telling)
    if turned is None:
        return None
    at, guesses = turned
    return Offer(WORD, _address(answer, asked[at]), answer.word, old=labels[at], guesses=guesses)


def contributions(answer: Answer) -> tuple[Heads, list[int]]:
    """The heads (attention, layer, head) and the words, as their first tokens, that bring most of
    the answer's logit over that of the word behind it, the most first. Words that a model's own
    code does not show are those nearest to the place."""
    recording, model = answer.recording, loaded(answer.recording)
    against = int(largest(answer.p, 2)[1])
    of_answer = (recording, answer.stream, answer.token, answer.id, against)
    grouped = words.words(recording.streams[0], recording.text)
    try:
        sources = model.head_sources(*of_answer)
        by_head = {name: of.sum(axis=-1) for name, of in sources.items()}
        by_key = np.sum([np.nan_to_num(of).sum(axis=(0, 1)) for of in sources.values()], axis=0)
    except TimeLimit:
        raise
    except ValueError:
        by_head = _head_parts(answer, against)
        by_key = -np.abs(np.arange(len(recording.streams[0].tokens)) - answer.token).astype(float)
    ranked = sorted(
        (-float(value), (name, int(layer), int(head)))
        for name, of in by_head.items()
        for (layer, head), value in np.ndenumerate(np.nan_to_num(of))
    )
    heads = [at for value, at in ranked[:MAX_HEADS] if value < 0]
    return heads, _words_tried(answer, grouped, by_key)


def _head_parts(answer: Answer, against: int) -> dict[str, np.ndarray]:
    """The part of the answer that each head brings, by attention (layer, head); none where a
    model's code does not show it."""
    recording = answer.recording
    made = {each.name: np.zeros(each.pattern.shape[:2]) for each in recording.attention}
    try:
        parts = loaded(recording).attribute(
            recording, answer.stream, answer.token, answer.id, against
        )
    except TimeLimit:
        raise
    except ValueError:
        return {}
    for part in parts.parts:
        if part.kind == "head":
            made[part.attention][part.layer, part.head] = part.value
    return made


def _words_tried(answer: Answer, grouped: words.Groups, by_key: np.ndarray) -> list[int]:
    """The first tokens of the words that are tried: all but the one that is guessed, that the
    answer may read, those that bring most first; and for a next word not the last, which it is read
    at."""
    n_readable = len(grouped.labels) if answer.recording.model.kind == "encoder" else None
    brought = np.add.reduceat(by_key, grouped.starts)
    of_place = {int(grouped.of[at]) for at in (answer.token, answer.place) if at < grouped.n}
    tried = [
        at
        for at, label in enumerate(grouped.labels)
        if at not in of_place
        and not grouped.special[at]
        and is_word(label)
        and (n_readable is not None or grouped.starts[at] < answer.token)
    ]
    tried.sort(key=lambda at: -float(brought[at]))
    return [grouped.starts[at] for at in tried[:MAX_WORDS]]


def _turning(
    answer: Answer, tried: Sequence[tuple[Edit, ...]], telling: Sequence[bool] = ()
) -> tuple[int, tuple[Guess, ...]] | None:
    """The one of some edits that turns the answer and takes most of it away, of those that are
    `telling` where one of these does, and the words before and after; None where none does."""
    best: tuple[tuple[bool, float], int, np.ndarray] | None = None
    for at, edits in enumerate(tried):
        after = answer.without(*edits)
        if after is None or not opening.turned(answer.p, after):
            continue
        loss = float(answer.p[answer.id] - after[answer.id])
        rank = bool(telling and telling[at]), loss
        if best is None or rank > best[0]:
            best = rank, at, after
    return None if best is None else (best[1], _guesses(answer, best[2]))


def _guesses(answer: Answer, after: np.ndarray) -> tuple[Guess, ...]:
    """The word that led, the one that leads now, and the likeliest others."""
    ids = [answer.id, int(after.argmax())]
    ids += [int(id) for id in largest(np.maximum(answer.p, after), N_WORDS) if int(id) not in ids]
    return tuple(
        Guess(
            answer.name if id == answer.id else _plain_label(answer.recording, id),
            float(answer.p[id]),
            float(after[id]),
        )
        for id in ids[:N_WORDS]
    )


def _address(answer: Answer, edits: tuple[Edit, ...]) -> tuple[tuple[str, str], ...]:
    token = answer.place if answer.word and answer.token == answer.place else answer.token
    return ("edits", to_line(edits)), ("token", str(token))


def _class_of(label: str) -> int:
    return word_classes.classes([label])[0]


def _word_at(recording: Recording, token: int) -> str:
    grouped = words.words(recording.streams[0], recording.text)
    return grouped.labels[int(grouped.of[token])]


def _read_by(answer: Answer, at: tuple[str, int, int]) -> str:
    """The word that a head gives most of its row where the answer is read; "" where that is none,
    or the place itself."""
    name, layer, head = at
    recording = answer.recording
    of = RecordingFacts(recording).attention(name)
    grouped = words.words(recording.streams[0], recording.text)
    row = np.add.reduceat(of.pattern[layer, head, answer.token], grouped.starts)
    key = int(row.argmax())
    is_there = not grouped.special[key] and is_word(grouped.labels[key])
    return grouped.labels[key] if is_there and key != grouped.of[answer.token] else ""


# ---- votes ---------------------------------------------------------------------------------------


def first_vote(recording: Recording) -> Vote | None:
    """The clearest vote on a pronoun of a text that a model reads alone; None where there is
    none."""
    of = recording.attention[0]
    if of.query != of.key:
        return None
    return next(iter(RecordingFacts(recording).votes(of.name)), None)


def change(recording: Recording, work: PassBudget) -> Offer | None:
    """The change of words by which most tested heads come to say another noun of the pronoun, at
    least LEAST_VOTES of them; None where there is none."""
    vote = first_vote(recording)
    if vote is None or not _stands_for_one(vote) or recording.as_ids:
        return None
    grouped = words.words(recording.streams[0], recording.text)
    before = _vote_outcome(vote, grouped.labels)
    tried = changes.of_vote(recording, vote)
    found: list[tuple[int, changes.Change, Said]] = []
    for each in tried:
        expect_wanted()
        if not work.take(1):
            break
        made = loaded(recording).record(each.text)
        again = _vote_in(made, vote.row)
        if again is None or not _stands_for_one(again):
            continue
        now = _vote_outcome(again, words.words(made.streams[0], made.text).labels)
        if now.noun.casefold() != before.noun.casefold():
            found.append((again.n_votes, each, now))
        if found and found[-1][0] == len(vote.ballots):
            break
    if not found:
        return None
    _, best, now = max(found, key=lambda each: each[0])  # of several the first
    return Offer(
        CHANGE,
        (("text", best.text),),
        grouped.labels[vote.row],
        old=best.old,
        new=best.new,
        votes=(before, now),
    )


def _stands_for_one(vote: Vote) -> bool:
    """True where LEAST_VOTES heads or more name a noun that comes before the pronoun: one that
    comes after it (*She ate the apple*) is seldom what it stands for."""
    return vote.noun is not None and vote.noun < vote.row and vote.n_votes >= LEAST_VOTES


def _vote_in(recording: Recording, row: int) -> Vote | None:
    of = recording.attention[0]
    return next(
        (each for each in RecordingFacts(recording).votes(of.name) if each.row == row), None
    )


def _vote_outcome(vote: Vote, labels: Sequence[str]) -> Said:
    noun = "" if vote.noun is None else word_classes.without_possessive(labels[vote.noun])
    return Said(tuple(each.word for each in vote.ballots), noun)


@kept
def compare(recording: Recording, other: str) -> Offer | None:
    """Another model whose tested heads name another noun of the same pronoun, both with LEAST_VOTES
    or more; None where they do not."""
    if recording.edits or recording.as_ids:
        return None
    try:
        second = loaded(other).record(recording.text)
    except TimeLimit:
        raise
    except ValueError:
        return None
    own, found = first_vote(recording), shared_votes(recording, second)
    own_row = (each for each in found if own is not None and each.a.row == own.row)
    first = next(own_row, None)
    if first is None or first.outcome != "disagree":
        return None
    labels = words.words(recording.streams[0], recording.text).labels
    said, now = (_vote_outcome(each, labels) for each in first)
    return Offer(
        MODELS,
        (("model", other),),
        labels[first.a.row],
        old=recording.model.name,
        new=other,
        votes=(said, now),
    )


def between(run: Run, other: str, on: SharedVote, third: Iterable[str]) -> tuple[Offer, ...]:
    """The offers beside the votes of two models on a pronoun: other words with which both name a
    noun, and not the two of now; and one of the `third` models whose heads name a noun too."""
    a = run.recording()
    if a.edits or a.as_ids:
        return ()
    return tuple(filter(None, (_both(a, other, on), _third(a, other, on, third))))


def _both(a: Recording, other: str, on: SharedVote) -> Offer | None:
    """The other pronoun, or other words, with which two models name other nouns than now."""
    labels = words.words(a.streams[0], a.text).labels
    start, word = changes.begins(a, on.a), labels[on.a.row]
    tried = list(changes.of_vote(a, on.a))
    if new := SWAPPED.get(word):
        text = a.text[:start] + new + a.text[start + len(word) :]
        tried.insert(0, changes.Change(word, new, text))
    for each in tried:
        expect_wanted()
        try:
            made, second = (loaded(name).record(each.text) for name in (a.model.name, other))
        except TimeLimit:
            raise
        except ValueError:
            continue
        found = (one for one in shared_votes(made, second) if one.a.row == on.a.row)
        again = next(found, None)
        is_told = again is not None and again.outcome in ("agree", "disagree")
        if again is None or not is_told or (again.a.noun, again.b.noun) == (on.a.noun, on.b.noun):
            continue
        now = words.words(made.streams[0], made.text).labels
        outcomes = tuple(_vote_outcome(one, now) for one in again)
        models = (("text", each.text), ("model", other))
        return Offer(BOTH, models, now[on.a.row], old=each.old, new=each.new, votes=outcomes)
    return None


def _third(a: Recording, other: str, on: SharedVote, third: Iterable[str]) -> Offer | None:
    """Another model whose tested heads name a noun of the same pronoun."""
    for name in third:
        if name in (a.model.name, other):
            continue
        try:
            found = shared_votes(a, loaded(name).record(a.text))
        except TimeLimit:
            raise
        except ValueError:
            continue
        also = next((each.b for each in found if each.a.row == on.a.row), None)
        if also is not None and also.noun is not None and also.n_votes >= LEAST_VOTES:
            labels = words.words(a.streams[0], a.text).labels
            outcomes = (_vote_outcome(also, labels),)
            return Offer(THIRD, (("model", name),), labels[on.a.row], new=name, votes=outcomes)
    return None
