"""A vote of heads as a figure: the sentence, and a line from the pronoun to what each head says."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from explorer.analysis.coreference import Ballot, Vote, excerpt, nouns_of
from explorer.analysis.findings import word_groups
from explorer.analysis.words import Groups, spaced
from explorer.figures.csv import Columns
from explorer.figures.kinds import SentenceVotes, VoteLine
from explorer.text import findings as findings_text
from explorer.text.findings import quoted
from explorer.wording.templates import sentences
from models.contract.recording import Recording

WORDS = sentences("heads", "votes")


@dataclass(frozen=True)
class Side:
    """A vote by the words of the sentence that is drawn, whose heads they are and what that model
    is, "" where there is one side, and what a press on each ballot sets."""

    vote: Vote
    keys: tuple[Mapping[str, object], ...]
    name: str = ""
    about: str = ""


def name_of(ballot: Ballot) -> str:
    """A head as a figure names it."""
    return WORDS("head", layer=ballot.layer, head=ballot.head)


def vote_columns(every: Sequence[Vote], names: Sequence[str] = ()) -> Columns:
    """The ballots of votes as named columns, of several models with their names."""
    ballots = [ballot for vote in every for ballot in vote.ballots]
    models = [name for name, vote in zip(names, every) for _ in vote.ballots]
    return {
        **({"model": models} if models else {}),
        "head": [name_of(each) for each in ballots],
        "word": [each.word for each in ballots],
        "weight": [each.weight for each in ballots],
        "found": [each.n_matches for each in ballots],
        "tests": [each.n for each in ballots],
    }


def sentence_votes(
    recording: Recording,
    stream: str,
    sides: Sequence[Side],
    has_bars: bool,
    rows: Container[int] | None = None,
) -> SentenceVotes:
    """The words of a stream around a pronoun and the nouns that are said, with a line for each
    vote. sides: whose votes are on the same pronoun. has_bars: whether how often a head finds nouns
    is drawn. rows: the words that a press may ask about, all where None."""
    every = [each.vote for each in sides]
    order, row = nouns_of(every), every[0].row

    def line(side: int, ballot: Ballot, key: Mapping[str, object]) -> VoteLine:
        return VoteLine(
            word=ballot.key,
            noun=order[ballot.key],
            head=name_of(ballot),
            side=side,
            share=ballot.n_matches / ballot.n if has_bars else None,
            number=str(ballot.n_matches) if has_bars else "",
            says=": ".join(filter(None, (sides[side].name, findings_text.ballot(ballot, quoted)))),
            key=urlencode(key),
        )

    lines = [
        line(side, *pair)
        for side, each in enumerate(sides)
        for pair in zip(each.vote.ballots, each.keys)
    ]
    return replace(
        sentence_lines(recording, stream, row, lines, rows),
        bar=_bar(every[0].ballots[0]) if has_bars else "",
        sides=tuple((each.name, each.about) for each in sides if each.name),
    )


def _bar(first: Ballot) -> str:
    """Sentences on a bar, and on the name of the first head."""
    place = {"layer": first.layer, "place": first.head}
    return WORDS("bar", head=name_of(first), n=first.n, **place)


def sentence_lines(
    recording: Recording,
    stream: str,
    row: int,
    lines: Sequence[VoteLine],
    rows: Container[int] | None = None,
) -> SentenceVotes:
    """The words of a stream around one word (row) and those to which lines go from it, whose places
    are among all words. rows: as of `sentence_votes`."""
    groups = word_groups(recording, stream)
    drawn = _with_gaps(groups, (row, *(each.word for each in lines)))
    places = {at: place for place, at in enumerate(drawn)}
    gaps = spaced(recording.stream(stream), recording.text, groups)
    return SentenceVotes(
        select=("address",),
        labels=tuple(WORDS("left_out") if at is None else groups.labels[at] for at in drawn),
        spaced=tuple(at is None or gaps[at] for at in drawn),
        keys=tuple(_word_key(groups, at, rows) for at in drawn),
        pronoun=places[row],
        votes=tuple(replace(each, word=places[each.word]) for each in lines),
    )


def _with_gaps(groups: Groups, focus: Sequence[int]) -> list[int | None]:
    """The words of a text that are shown, None for some that are left out."""
    text = [at for at, special in enumerate(groups.special) if not special]
    places = excerpt([groups.labels[at] for at in text], [text.index(at) for at in focus])
    drawn: list[int | None] = []
    for before, at in zip((-1, *places), places):
        drawn += [text[at]] if at == before + 1 else [None, text[at]]
    return drawn if places[-1] == len(text) - 1 else [*drawn, None]


def _word_key(groups: Groups, at: int | None, rows: Container[int] | None) -> str:
    """The choice that a press on a word sets; none for a sign and for words that are left out."""
    if at is None or not (
        at in rows if rows is not None else any(map(str.isalnum, groups.labels[at]))
    ):
        return ""
    return urlencode({"token": groups.starts[at]})
