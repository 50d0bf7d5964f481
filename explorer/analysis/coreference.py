"""Heads that attend from a pronoun to the noun it stands for, over a list of sentences.

One text says little: its pronoun may attend to its noun by luck, or because every word does. So a
model is measured over the sentences of `pronouns.txt`, in which [noun] and {pronoun} are marked. A
head finds the noun of a sentence where, of all words but itself, the pronoun gives that one most.
By chance it would do so as often as the sentence's other words do in the same head. It is named for
it where it finds the noun in more than half of the sentences, luck would find as many in fewer than
MAX_P_VALUE of cases among all heads of the attention, and the noun's mean weight from the pronoun
stands LEAST_LIFT above that from the other words.

The loudest head of a text is not the one that is right most often. So what a pronoun stands for is
said by a vote of the best-tested heads, each for the noun that the pronoun gives most of its row in
it. The noun that is named has the largest sum of weights in the two best of them; where fewer than
two name it, or both of the others name another one, none is.

What was measured of the models that come with Headlight stands by the weights' fingerprint:
`coreference.json` has the heads, which `python -m benchmarks.names --pronouns` measures, and
`votes.json` how often their votes are right (`--votes`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from explorer.analysis import word_classes, words
from explorer.analysis.poisson_binomial import tail_probabilities
from explorer.analysis.word_classes import is_word, without_possessive
from models.contract.recording import Attention, Recording

SENTENCES = Path(__file__).with_name("pronouns.txt")
MEASUREMENTS_FILE = Path(__file__).with_name("coreference.json")
LEAST_LIFT = 0.25
MAX_P_VALUE = 0.02
LEAST_CHANCE = 0.02  # of a sentence: no head is so sure to miss
MAX_MODELS = 256  # models
# Words: a noun nearer behind a pronoun belongs to it (*his hands*) and is not what it stands for.
LEAST_BEHIND = 3
TESTS_FILE = Path(__file__).with_name("votes.json")
VOTERS = 3  # heads that vote, of those that were tested
SUMMED = 2  # the best-tested of them, whose weights are added


def candidates(rows: Sequence[str], keys: Sequence[str]) -> np.ndarray:
    """Mask of the likely nouns that a pronoun may stand for, (row, key) bool, by the words of a
    text that attend and those that are attended to."""
    pronouns = np.array(word_classes.classes(rows)) == word_classes.PRONOUN
    before = np.arange(len(keys)) - np.arange(len(rows))[:, None]
    places = (before < 0) | (before >= LEAST_BEHIND)
    return pronouns[:, None] & np.array(word_classes.nouns(keys), bool) & places


class MarkedSentence(NamedTuple):
    """A sentence with a pronoun and the noun it stands for."""

    noun: str
    pronoun: str


class CoreferenceHead(NamedTuple):
    """A head that finds a pronoun's noun: in n_matches of n sentences; score: the mean weight that
    the pronoun gives it, chance: the mean weight that the other words give it; p_value: how often
    luck would find as many."""

    score: float
    chance: float
    n: int
    n_matches: int
    p_value: float


class SentenceScores(NamedTuple):
    """One sentence: the weight from pronoun to noun, whether it is the row's largest, the mean
    weight from the other words and the share of these whose largest it is, each (layer, head)."""

    weight: np.ndarray
    is_largest: np.ndarray
    other: np.ndarray
    chance: np.ndarray


CoreferenceHeads = Mapping[tuple[int, int], CoreferenceHead]


@cache
def sentences(file: Path = SENTENCES) -> Mapping[str, MarkedSentence]:
    """The sentences of a file, by their text."""
    sentences_by_text = {}
    for line in file.read_text("utf-8").splitlines():
        noun, pronoun = (re.search(mark, line) for mark in (r"\[(.+?)\]", r"\{(.+?)\}"))
        if noun and pronoun:
            text = re.sub(r"[\[\]{}]", "", line)
            sentences_by_text[text] = MarkedSentence(noun[1], pronoun[1])
    return sentences_by_text


def measure_sentence(recording: Recording, file: Path = SENTENCES) -> dict[str, SentenceScores]:
    """A sentence of a file as a model reads it: every attention within it, by name. Raises
    ValueError where its tokens do not show the two words."""
    sentence = sentences(file)[recording.text]
    return {
        attention.name: _score_sentence(recording, attention, sentence)
        for attention in recording.attention
        if attention.query == attention.key == recording.streams[0].name
    }


def _score_sentence(
    recording: Recording, attention: Attention, sentence: MarkedSentence
) -> SentenceScores:
    stream = recording.stream(attention.key)
    grouped = words.words(stream, recording.text)
    labels = [label.casefold() for label in grouped.labels]
    noun, pronoun = (labels.index(one.casefold()) for one in (sentence.noun, sentence.pronoun))
    weights = words.weights_between(attention.pattern, grouped, grouped)
    allowed = words.merge_allowed(attention.reachable, grouped, grouped)
    word_mask = ~np.array(grouped.special) & np.array([is_word(label) for label in labels])
    candidates = np.where(word_mask & ~np.eye(len(labels), dtype=bool), weights, -1)
    attends_to_noun = candidates.argmax(axis=-1) == noun
    other_words = word_mask & allowed[:, noun]
    other_words[[noun, pronoun]] = False
    rows = np.flatnonzero(other_words)
    return SentenceScores(
        weights[:, :, pronoun, noun].astype(np.float64),
        attends_to_noun[:, :, pronoun],
        weights[:, :, rows, noun].astype(np.float64).mean(axis=-1),
        attends_to_noun[:, :, rows].mean(axis=-1),
    )


def coreference_heads(
    reads: Iterable[dict[str, SentenceScores] | str],
) -> dict[str, CoreferenceHeads]:
    """The heads that find a pronoun's noun, by attention, from the `SentenceScores` of each
    sentence; a sentence that could not be read is left out."""
    scored = [one for one in reads if not isinstance(one, str)]
    names = scored[0] if scored else ()
    return {name: _heads([one[name] for one in scored]) for name in names}


def _heads(reads: list[SentenceScores]) -> CoreferenceHeads:
    weight, matches, other, chance = (np.array(each) for each in zip(*reads))
    n, (n_layer, n_head) = len(reads), weight.shape[1:]
    n_matches = matches.sum(axis=0)
    score, other_mean = weight.mean(axis=0), other.mean(axis=0)
    lift = (score - other_mean) / np.maximum(1 - other_mean, 1e-9)
    named_heads = {}
    for layer, head in zip(*np.nonzero((2 * n_matches > n) & (lift >= LEAST_LIFT))):
        p_values = tail_probabilities(np.clip(chance[:, layer, head], LEAST_CHANCE, 1))
        p_value = float(p_values[n_matches[layer, head]]) * n_layer * n_head
        if p_value < MAX_P_VALUE:
            named_heads[int(layer), int(head)] = CoreferenceHead(
                float(score[layer, head]),
                float(other_mean[layer, head]),
                n,
                int(n_matches[layer, head]),
                p_value,
            )
    return named_heads


@cache
def _measurements() -> dict[str, dict[str, CoreferenceHeads]]:
    """Measurements by fingerprint and attention: of the models that come with Headlight, and
    others that this process has measured."""
    stored = json.loads(MEASUREMENTS_FILE.read_text("utf-8")) if MEASUREMENTS_FILE.exists() else {}
    return {
        fingerprint: {
            name: {(layer, head): _head_from_json(*rest) for layer, head, *rest in rows}
            for name, rows in by_attention.items()
        }
        for fingerprint, by_attention in stored.items()
    }


def _head_from_json(
    score: float, chance: float, n: float, n_matches: float, p_value: float
) -> CoreferenceHead:
    return CoreferenceHead(score, chance, int(n), int(n_matches), p_value)


def remember(fingerprint: str, heads_by_attention: dict[str, CoreferenceHeads]) -> None:
    """Keep what was measured of a model for the names of its heads in this process."""
    cached = _measurements()
    if len(cached) < MAX_MODELS:
        cached[fingerprint] = heads_by_attention


def is_measured(fingerprint: str) -> bool:
    """True for a model that was measured."""
    return fingerprint in _measurements()


def is_tested(recording: Recording) -> bool:
    """True where it is known which heads of a recording find nouns: not under edits."""
    return not recording.edits and is_measured(recording.model.fingerprint)


def measured_heads(recording: Recording, attention: Attention) -> CoreferenceHeads:
    """The heads of an attention that find a pronoun's noun; none where it was not measured, as of a
    model under edits."""
    if recording.edits:
        return {}
    return _measurements().get(recording.model.fingerprint, {}).get(attention.name, {})


def to_json(heads_by_model: Mapping[str, Mapping[str, CoreferenceHeads]]) -> str:
    """Measurements of models, by fingerprint and attention, as MEASUREMENTS_FILE holds them."""
    lines = []
    for fingerprint, by_attention in heads_by_model.items():
        rows = {
            name: [
                [*layer_head, *(float(f"{number:.6g}") for number in coreference_head)]
                for layer_head, coreference_head in attention_heads.items()
            ]
            for name, attention_heads in by_attention.items()
        }
        lines.append(f" {json.dumps(fingerprint)}: {json.dumps(rows)}")
    return "{\n" + ",\n".join(lines) + "\n}"


# ---- what the tested heads say -------------------------------------------------------------------


class Ballot(NamedTuple):
    """The vote of one head: the word that the pronoun gives most, as its place among the words and
    its label, with that weight; and in how many of n test sentences the head finds the noun. noun:
    the place of the word's first mention, by which it is the same noun wherever it stands."""

    layer: int
    head: int
    key: int
    word: str
    weight: float
    n_matches: int
    n: int
    noun: int


class Vote(NamedTuple):
    """The vote on a pronoun: its place among the words, what each head says, the best-tested one
    first, and the noun that is named, None where they are divided. heaviest: the label of the noun
    with the largest sum of weights in the two best-tested heads."""

    row: int
    ballots: tuple[Ballot, ...]
    noun: int | None
    heaviest: str

    @property
    def n_votes(self) -> int:
        """The number of heads that say the noun that is named, 0 where none is."""
        return sum(each.noun == self.noun for each in self.ballots)

    @property
    def is_outvoted(self) -> bool:
        """True where two heads or more vote for one noun, and another is heaviest."""
        nouns = [each.noun for each in self.ballots]
        return self.noun is None and max(map(nouns.count, nouns)) >= SUMMED

    @property
    def strength(self) -> tuple[int, float]:
        """The clearness beside other votes: the number of votes, and the weights of these."""
        return self.n_votes, sum(each.weight for each in self.ballots if each.noun == self.noun)


def voters(tested: CoreferenceHeads) -> list[tuple[int, int]]:
    """The heads (layer, head) that vote, the best-tested one first; none where fewer than two find
    nouns."""
    best = sorted(tested, key=lambda at: -tested[at].n_matches)[:VOTERS]
    return best if len(best) >= SUMMED else []


def votes(
    weights: Mapping[tuple[int, int], np.ndarray],
    nouns: np.ndarray,
    labels: Sequence[str],
    tested: CoreferenceHeads,
) -> list[Vote]:
    """The votes on the pronouns of a text that a noun stands before, the clearest first; none where
    fewer than two heads find nouns in test sentences.

    weights: of each head that votes, between words (row, column). nouns: mask of those that the
    pronouns may stand for (row, column), `candidates`. labels: of the columns, which are told
    without a possessive ending."""
    best, found = voters(tested), []
    labels = [without_possessive(label) for label in labels]
    if not best:
        return []
    first: dict[str, int] = {}
    mentioned = np.array(
        [first.setdefault(label.casefold(), at) for at, label in enumerate(labels)]
    )
    for row in np.flatnonzero(np.tril(nouns, -1).any(axis=1)).tolist():
        given = [np.where(nouns[row], weights[at][row], -1) for at in best]
        ballots = tuple(
            Ballot(
                *at,
                key,
                labels[key],
                float(of[key]),
                tested[at].n_matches,
                tested[at].n,
                int(mentioned[key]),
            )
            for at, of in zip(best, given)
            for key in [int(of.argmax())]
        )
        summed = np.zeros(len(labels))
        np.add.at(summed, mentioned[nouns[row]], np.sum(given[:SUMMED], axis=0)[nouns[row]])
        heaviest = labels[int(summed.argmax())]
        found.append(Vote(row, ballots, _elected(summed, ballots), heaviest))
    return sorted(found, key=lambda each: each.strength, reverse=True)


def _elected(summed: np.ndarray, ballots: tuple[Ballot, ...]) -> int | None:
    """The noun of the largest sum; None where fewer than two heads say it, or as many another."""
    noun = int(summed.argmax())
    others = [each.noun for each in ballots if each.noun != noun]
    n_noun = len(ballots) - len(others)
    most = max(map(others.count, others), default=0)
    return noun if n_noun >= SUMMED and n_noun > most else None


def nouns_of(vote_of: Sequence[Vote]) -> dict[int, int]:
    """The words that some heads say, by their places, each with the order of its noun: 0 for the
    one that is named, or else that most say, of as many the one of the best-tested head."""
    noun_at = {ballot.key: ballot.noun for each in vote_of for ballot in each.ballots}
    nouns = [ballot.noun for each in vote_of for ballot in each.ballots]
    named = [each.noun for each in vote_of if each.noun is not None]
    order = sorted(
        {*nouns}, key=lambda noun: (noun not in named[:1], -nouns.count(noun), nouns.index(noun))
    )
    return {key: order.index(noun) for key, noun in noun_at.items()}


# ---- the words around it -------------------------------------------------------------------------

MOST_WORDS = 40  # of a text that is shown whole, and of what is shown of a longer one
ENDS = {*".!?…。！？؟।"}  # of sentences


def excerpt(labels: Sequence[str], keep: Sequence[int]) -> list[int]:
    """The places of the words of a text that are shown: all of a short one, else the sentences of
    the words to `keep`, and of long ones the words nearest to these."""
    n, last = len(labels), -1
    if n <= MOST_WORDS:
        return list(range(n))
    sentence = []  # of each word
    for label in labels:
        sentence.append(last + 1)
        last += label in ENDS
    there = {sentence[at] for at in keep}
    places = [at for at in range(n) if sentence[at] in there]
    far = lambda at: (min(abs(at - each) for each in keep), at)
    return sorted(sorted(places, key=far)[:MOST_WORDS])


# ---- how often it is right -----------------------------------------------------------------------


class Test(NamedTuple):
    """In how many of n sentences, none of which heads were chosen by, so many heads that said the
    same named the right noun."""

    right: int
    n: int


@cache
def _tests() -> Mapping[str, Mapping[int, Test]]:
    stored = json.loads(TESTS_FILE.read_text("utf-8"))
    return {
        fingerprint: {int(votes): Test(*counts) for votes, counts in by_votes.items()}
        for fingerprint, by_votes in stored.items()
    }


def tested_votes(fingerprint: str, n_votes: int) -> Test | None:
    """The share of votes of a model, so many together, that are right; None where that was not
    measured. `python -m benchmarks.names --votes` measures it."""
    return _tests().get(fingerprint, {}).get(n_votes)
