"""Votes of the tested heads of two models on the same pronouns of one text.

Models split a text into other tokens. The votes of both are by the words of the first one: a word
of the second is the one that it shares characters with (`alignment`)."""

from __future__ import annotations

from typing import Literal, NamedTuple

from explorer.analysis import alignment
from explorer.analysis.coreference import Vote
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import word_groups
from models.contract.recording import Recording

Outcome = Literal["disagree", "agree", "divided_b", "divided_a", "divided"]


class SharedVote(NamedTuple):
    """The votes of two models on one pronoun, by the words of the first."""

    a: Vote
    b: Vote

    @property
    def outcome(self) -> Outcome:
        """The agreement of both votes on a noun. One that is named has two votes or more."""
        if self.a.noun is None or self.b.noun is None:
            return "divided" if self.a.noun == self.b.noun else _DIVIDED[self.b.noun is None]
        return "agree" if self.a.noun == self.b.noun else "disagree"


_DIVIDED: dict[bool, Outcome] = {True: "divided_b", False: "divided_a"}


def shared_votes(a: Recording, b: Recording) -> tuple[SharedVote, ...]:
    """The pronouns that the tested heads of both vote on: those on which they disagree come first,
    then the clearest. None of two texts that are not the same."""
    of_a, of_b = map(votes_in_text, (a, b))
    if a.text != b.text or not of_a or not of_b:
        return ()
    of_token = words_of_tokens(a, b)
    starts = word_groups(b, b.streams[0].name).starts
    by_row = {each.row: each for each in of_a}
    found = []
    for each in of_b:
        there = {each.row, *(at for one in each.ballots for at in (one.key, one.noun))}
        places = {at: of_token[starts[at]] for at in there if starts[at] in of_token}
        own = by_row.get(places.get(each.row, -1))
        if own is None or len(places) < len(there):
            continue
        ballots = tuple(
            one._replace(key=places[one.key], noun=places[one.noun]) for one in each.ballots
        )
        noun = None if each.noun is None else places[each.noun]
        found.append(SharedVote(own, each._replace(row=own.row, ballots=ballots, noun=noun)))
    clear = lambda one: (one.outcome == "disagree", min(one.a.strength, one.b.strength))
    return tuple(sorted(found, key=clear, reverse=True))


def words_of_tokens(a: Recording, b: Recording) -> dict[int, int]:
    """The place among the words of A of each token of B that is of the same text."""
    streams = a.streams[0].name, b.streams[0].name
    words = word_groups(a, streams[0]).of
    units = alignment.align(alignment.axis(a, streams[0]), alignment.axis(b, streams[1])).units
    return {token: int(words[unit.a[0]]) for unit in units for token in unit.b}


def votes_in_text(recording: Recording) -> tuple[Vote, ...]:
    """The votes in the attention within the first text."""
    first = recording.streams[0].name
    own = (each for each in recording.attention if each.query == each.key == first)
    return next((RecordingFacts(recording).votes(each.name) for each in own), ())
