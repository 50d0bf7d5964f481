"""Other words for the clause of a pronoun, with which it may stand for another noun: opposites of
its words, and the pronoun of the other noun with something that is said of such a noun.

They are candidates. Whether a model follows one is measured (`offers`, `opening`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from explorer.analysis import word_classes, words
from explorer.analysis.coreference import Vote
from models.contract.recording import Recording

FILE = Path(__file__).with_suffix(".toml")
MOST = 6  # candidates of a text
MOST_OPPOSITES = 2
SUBJECTS = ("it", "he", "she", "they")
CLAUSE = re.compile(r"(?P<subject>\w+) (?P<rest>[^.,;:!?]+)")


class Change(NamedTuple):
    """Words of a text, the words in their place, and the whole text with these."""

    old: str
    new: str
    text: str


@cache
def tables() -> dict[str, dict[str, Any]]:
    """The lists of the file by name, words in one text as a set of them."""
    lists = tomllib.loads(FILE.read_text("utf-8"))
    for name in ("nouns", "clause"):
        lists[name] = {key: frozenset(text.split()) for key, text in lists[name].items()}
    return lists


def opposites() -> dict[str, str]:
    """Words by those that they are tried in the place of."""
    return tables()["opposites"]


def pronouns_of(noun: str) -> tuple[tuple[str, str], ...]:
    """The pronouns that may stand for a noun, each with the kind of noun that it is: "person",
    "animal" or "thing"."""
    lists, word = tables()["nouns"], noun.casefold()
    stem = word.removesuffix("s")
    kinds = {name: stem in words or word in words for name, words in lists.items()}
    is_person = kinds["he"] or kinds["she"] or kinds["persons"]
    is_name = noun[:1].isupper() and not is_person and not kinds["animals"]
    kind = "person" if is_person or is_name else "animal" if kinds["animals"] else "thing"
    if kinds["plurals"] or (word.endswith("s") and not word.endswith("ss") and not is_name):
        return (("they", "person" if word in ("children", "men", "people", "women") else kind),)
    if kind != "person":
        return (("it", kind),)
    return tuple((each, kind) for each in ("he", "she") if kinds[each]) or (
        ("he", kind),
        ("she", kind),
    )


def of_vote(recording: Recording, vote: Vote) -> tuple[Change, ...]:
    """The `candidates` of the pronoun of a vote."""
    labels = words.words(recording.streams[0], recording.text).labels
    return candidates(recording.text, begins(recording, vote), _other_nouns(vote, labels))


def begins(recording: Recording, vote: Vote) -> int:
    """The letter of the text at which the pronoun of a vote begins."""
    stream = recording.streams[0]
    return first_letter(recording, words.words(stream, recording.text).starts[vote.row])


def first_letter(recording: Recording, token: int) -> int:
    """The letter of the text at which the word of a token of the first stream begins, behind the
    space that may belong to the token."""
    start = int(recording.streams[0].spans[token][0])
    return start + len(recording.text[start:]) - len(recording.text[start:].lstrip())


def _other_nouns(vote: Vote, labels: Sequence[str]) -> list[str]:
    """The nouns before a pronoun that it might stand for beside the one that is named: those that a
    head names first, then the nearest."""
    named = [each.noun for each in vote.ballots if each.noun != vote.noun]
    is_noun = word_classes.nouns(labels)
    before = [labels[at] for at in reversed(range(vote.row)) if is_noun[at]]
    others = dict.fromkeys((*(labels[at] for at in named if at < vote.row), *before))
    noun = "" if vote.noun is None else labels[vote.noun].casefold()
    return [each for each in others if each.casefold() != noun]


def candidates(text: str, start: int, others: Sequence[str]) -> tuple[Change, ...]:
    """Changes of the clause of the pronoun that begins at a place of a text, at most MOST: first
    opposites of its words, then what may be said of each of the `others`, nouns that it might stand
    for. None where no such pronoun begins a clause there."""
    return tuple(islice(dict.fromkeys(_candidates(text, start, others)), MOST))


def _candidates(text: str, start: int, others: Sequence[str]) -> Iterator[Change]:
    clause = CLAUSE.match(text, start)
    if clause is None or clause["subject"] not in SUBJECTS:
        return
    opposite = (
        (word, opposites()[word[0]])
        for word in re.finditer(r"\w+", text[clause.end("subject") :])
        if word[0] in opposites()
    )
    for word, new in islice(opposite, MOST_OPPOSITES):
        at = clause.end("subject") + word.start()
        yield Change(word[0], new, text[:at] + new + text[at + len(word[0]) :])
    lists = tables()
    before = re.findall(r"\w+", text[:start])[-1:]
    if not before or before[0] not in lists["clause"]["after"]:
        return
    verb, *rest = clause["rest"].split()
    is_present = verb in lists["clause"]["present"]
    kept = [each for each in rest[:1] if verb in lists["clause"]["verbs"]]
    adverbs = [each for each in kept if each in lists["clause"]["kept"]]
    for pronoun, predicate in _predicates(others):
        many = pronoun == "they"
        be = ("are" if many else "is") if is_present else ("were" if many else "was")
        new = " ".join((pronoun, be, *adverbs, predicate))
        if new != clause[0]:
            yield Change(clause[0], new, text[:start] + new + text[clause.end() :])


def _predicates(others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pronouns of the other nouns with what is said of them: of each noun the first, then of each
    the next."""
    predicates = [
        (pronoun, predicate, rank)
        for noun in others
        for pronoun, kind in pronouns_of(noun)
        for rank, predicate in enumerate(tables()["predicates"][kind])
    ]
    yield from (
        (pronoun, predicate) for pronoun, predicate, _ in sorted(predicates, key=lambda x: x[2])
    )
