"""What a pronoun stands for by a vote of the heads that find nouns in test sentences.

The loudest head of a text is not the one that is right most often. So the heads that were tested
vote (`coreference`): the best-tested ones, each for the noun that the pronoun gives most of its row
in it. The noun that is named has the largest sum of weights in the two best of them; where fewer
than two name it, or both of the others name another one, none is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from explorer.analysis.coreference import CoreferenceHeads
from explorer.analysis.word_classes import without_possessive

TESTS_FILE = Path(__file__).with_name("votes.json")
VOTERS = 3  # heads that vote, of those that were tested
SUMMED = 2  # the best-tested of them, whose weights are added


class Ballot(NamedTuple):
    """What one head says: the word that the pronoun gives most, as its place among the words and
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
        """Whether two heads or more say one noun, and none is named: another is heaviest."""
        said = [each.noun for each in self.ballots]
        return self.noun is None and max(map(said.count, said)) >= SUMMED

    @property
    def strength(self) -> tuple[int, float]:
        """How clear it is beside other votes: the number of votes, and the weights of these."""
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
    pronouns may stand for (row, column), `coreference.candidates`. labels: of the columns, which
    are told without a possessive ending."""
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
    said = [ballot.noun for each in vote_of for ballot in each.ballots]
    named = [each.noun for each in vote_of if each.noun is not None]
    order = sorted(
        {*said}, key=lambda noun: (noun not in named[:1], -said.count(noun), said.index(noun))
    )
    return {key: order.index(noun) for key, noun in noun_at.items()}


# ---- the words around it -------------------------------------------------------------------------

MOST_WORDS = 40  # of a text that is shown whole, and of what is shown of a longer one
ENDS = {*".!?…。！？؟।"}  # of sentences


def excerpt(labels: Sequence[str], keep: Sequence[int], most: int = MOST_WORDS) -> list[int]:
    """The places of the words of a text that are shown: all of a short one, else the sentences of
    the words to `keep`, and of long ones the words nearest to these."""
    n, last = len(labels), -1
    if n <= most:
        return list(range(n))
    sentence = []  # of each word
    for label in labels:
        sentence.append(last + 1)
        last += label in ENDS
    there = {sentence[at] for at in keep}
    places = [at for at in range(n) if sentence[at] in there]
    far = lambda at: (min(abs(at - each) for each in keep), at)
    return sorted(sorted(places, key=far)[:most])


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


def tested(fingerprint: str, n_votes: int) -> Test | None:
    """How often so many votes of a model are right; None where that was not measured. `python -m
    benchmarks.names --votes` measures it."""
    return _tests().get(fingerprint, {}).get(n_votes)
