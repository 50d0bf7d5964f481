"""Findings in words, read from findings.toml: a headline that is one short sentence, and a longer
one with the evidence and the chance level.

They state measurements and nothing of grammar: a word attends to another, it does not stand for it.
In Markdown, words of the text escaped; `quoted` gives the same for a place without Markdown."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Callable
from functools import cache
from math import isfinite
from pathlib import Path

from explorer.analysis import findings
from explorer.analysis.coreference import Ballot, tested_votes
from explorer.analysis.findings import Finding
from explorer.analysis.head_naming import SINK_RATIO, UNNAMED, Head
from explorer.figures.formatting import (
    fill,
    hundredths,
    plural,
    shortened,
    whole_percent,
    word_in_sentence,
)
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences

Mark = Callable[[str], str]
LONGEST = 24  # characters of a word that are said
DOES, WORDS = sentences("findings", "does"), sentences("findings", "parts")
FEW = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def marked(word: str) -> str:
    """A word of the text in a sentence of Markdown: slanted, as it was typed."""
    short = _short(word)
    return f"*{literal(short)}*" if word_in_sentence(short) == short else quoted(literal(short))


def quoted(word: str) -> str:
    """A word of the text in a sentence without marks."""
    return f"“{_short(word)}”"


def _short(word: str) -> str:
    return shortened(" ".join(word.split()) or "␣", LONGEST)


@cache
def templates() -> dict[str, dict[str, str]]:
    """Each kind's `headline` and `evidence`."""
    kinds = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return kinds | dict.fromkeys((findings.NEAR_LINK, findings.ALIGNED), kinds[findings.LINK])


def headline(one: Finding, mark: Mark = marked) -> str:
    """A finding in one short sentence."""
    return fill(templates()[one.kind]["headline"], _slots(one, mark))


def evidence(one: Finding, mark: Mark = marked) -> str:
    """A finding with its evidence: the number, and its baseline. One or two sentences."""
    return fill(templates()[one.kind]["evidence"], _slots(one, mark)).rstrip()


def statement(one: Finding, mark: Mark = marked) -> str:
    """A finding in one short sentence without its head, which is named below it."""
    sentence = headline(one, mark).removeprefix(f"{where(one)}: ")
    begins = one.kind in (findings.CHAT, findings.INDUCTION)  # with no word of the text
    return sentence[:1].upper() + sentence[1:] if begins else sentence


COLOURS = ("primary", "blue", "green")  # of the nouns of a vote, as its picture has them


def coloured(one: Finding) -> str:
    """A finding as `statement`, the nouns of a vote in the colours of its picture."""
    nouns = one.words[1:] if one.ballots else ()

    def mark(word: str) -> str:
        colour = dict(zip(nouns, COLOURS)).get(word)
        return f":{colour}[{marked(word)}]" if colour else marked(word)

    return statement(one, mark)


def _slots(one: Finding, mark: Mark) -> dict[str, object]:
    """The slots of a finding's sentences."""
    words, counts = tuple(mark(word) for word in one.words), dict(one.counts)
    name = one.words[0] if one.words else ""
    nouns = [each.noun for each in one.ballots]
    many = (FEW[one.also] if 0 < one.also < len(FEW) else str(one.also)).capitalize()
    return {
        **vars(one),
        **counts,
        "words": words,
        "name": name,
        "where": where(one),
        "contest": contest(one, mark),
        "part": WORDS(one.site if one.site == "head" else "ffn", layer=one.layer, head=one.head),
        "also": WORDS("one_more" if one.also == 1 else "more", n=many) if one.also > 0 else "",
        "does": DOES(f"{name}_one", sink="") if one.kind == findings.REGULARITY else "",
        "crowd": crowd(one, mark) if one.kind == findings.CROWD else "",
        "site": site(one.site),
        "all_heads": all_heads(len(one.ballots)),
        "n_votes": one.n_votes,
        "n_heads": len(one.ballots),
        "n_most": max(map(nouns.count, nouns), default=0),
        "heaviest": mark(one.other[0]),
        "ballots": " ".join(ballot(each, mark) for each in one.ballots),
        "repeats": plural(counts.get("rows", 0), "repeated word"),
        "state": int(one.value) + 1 if one.kind == findings.SETTLED else 0,
        "others": one.chance + 1,
        "piece": WORDS("piece", piece=words[1]) if len(words) > 1 else "",
        "sink": str(SINK_RATIO),
    }


def all_heads(n: int) -> str:
    """So many heads that were tested, which are all."""
    return WORDS("both_heads") if n == 2 else WORDS("all_heads", n=FEW[n])


def right(fingerprint: str, n_votes: int, n: int) -> str:
    """The share of test sentences in which so many of the n heads of a model that vote are right
    where they say the same noun, and of all of them; "" where that was not measured."""
    some, every = (tested_votes(fingerprint, votes) for votes in (n_votes, n))
    if not some:
        return ""
    all_of = WORDS("both_agree") if n == 2 else WORDS("all_agree", n=FEW[n])
    of_some = all_of if n_votes == n else WORDS("most_agree", votes=FEW[n_votes], n=FEW[n])
    more = WORDS("right_of_all", heads=all_of, **every._asdict()) if every and n_votes < n else ""
    return WORDS("right", heads=of_some, more=more, **some._asdict())


def unread(language: str) -> str:
    """That a model has read one language alone, beside what its heads say of a text that holds
    another; "" where `language` is."""
    return WORDS("unread", name=language) if language else ""


def ballot(one: Ballot, mark: Mark = marked) -> str:
    """A line on the noun of a head's vote, and in how many test sentences it finds the noun."""
    return WORDS(
        "ballot", **one._asdict() | {"word": mark(one.word), "weight": hundredths(one.weight)}
    )


def where(one: Finding) -> str:
    """The head a finding is seen in."""
    return WORDS("head", layer=one.layer, head=one.head)


def contest(one: Finding, mark: Mark = marked) -> str:
    """The word that comes second in the row of a link, with its weight; "" where none comes
    near."""
    word, weight = one.other
    return WORDS("contest", word=mark(word), weight=hundredths(weight)) if word else ""


def named(head: Head) -> str:
    """A head by its pattern on this text, as a headline."""
    if head.name in UNNAMED:
        return WORDS("unnamed")
    name = head.name[0].upper() + head.name[1:]
    return f"{name} ({hundredths(head.score)})" if isfinite(head.score) else name


def row(query: str, key: str, weight: float) -> str:
    """The key that gets most of one token's attention, as a headline, by what `token` calls the
    two."""
    sentence = WORDS("row", query=query, key=key, share=whole_percent(weight))
    return sentence[:1].upper() + sentence[1:] if query.startswith(WORDS("the")) else sentence


def token(label: str, special: bool, end: int = 0) -> str:
    """A token in a sentence: a word as it was typed, and what is no word by what it is, "the full
    stop" or "the end token [SEP]". end: 1 for the first token of its text, -1 for the last."""
    if special:
        return WORDS({1: "start", -1: "end"}.get(end, "special"), token=literal(label))
    if len(label) == 1 and unicodedata.category(label).startswith("P"):
        return WORDS("the") + unicodedata.name(label, label).lower()
    return marked(label)


def crowd(one: Finding, mark: Mark = marked) -> str:
    """The names of the heads of an attention: "22 of 32 heads are sinks on [CLS] or [SEP]; two
    attend to the previous token, one attends to the next token"."""
    special = " or ".join(literal(token) if mark is marked else token for token in one.words[:2])
    parts = []
    for at, (name, number) in enumerate(sorted(one.counts, key=lambda each: -each[1])):
        many = str(number) if at == 0 or number >= len(FEW) else FEW[number]
        does = DOES(f"{name}_one" if number == 1 else name, sink=special or WORDS("first_token"))
        parts.append(WORDS("first" if at == 0 else "further", many=many, heads=one.of, does=does))
    sentence = "; ".join((parts[0], ", ".join(parts[1:]))) if len(parts) > 1 else parts[0]
    return sentence.replace(WORDS("one_of_one"), WORDS("the_one"))


def site(name: str) -> str:
    """A site of the residual stream in words: "1.attn.normed" is "layer 1’s attention"."""
    number, _, rest = name.partition(".")
    if not number.isdecimal():
        return {"embed": "the embedding", "embed+pos": "the embedding"}.get(name, "the last layer")
    place = {"attn": "attention", "cross": "cross-attention", "ffn": "feed-forward network"}
    return f"layer {number}’s {place.get(rest.partition('.')[0], 'end')}"
