"""What is worth a look in a recording: ranked statements about it, each with its evidence, what
chance gives, and the address that shows it.

Links between words are told where the heads show that they were learned
(`findings_links.is_trained`); of random weights only what is true of any recording is told: where
heads rest, which word turned most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorer.analysis import attention as axes_of
from explorer.analysis import findings_heads as crowds
from explorer.analysis import findings_links as tied
from explorer.analysis import heads as naming
from explorer.analysis import vocabulary, words
from explorer.analysis.finding import INDUCTION, LINK, LINKS, NEAR_LINK, Finding
from explorer.analysis.findings_across import across
from explorer.analysis.findings_stream import Answer, answered, turned
from models.recording import Attention, Recording

MOST_LINKS = 12
# Names of heads with a habit of place: what else they show stands behind other links of its order.
# Heads whose near links are told where they have no far one.
NEAR_TOO = (naming.NO_PATTERN, naming.TOO_SHORT, naming.PRONOUN)
HABITS = (naming.SINK, "self", "previous", "next")


def findings(
    recording: Recording,
    after: str = "",
    answer: Answer | None = None,
    heads: Mapping[str, Sequence[naming.Head]] | None = None,
    trained: bool | None = None,
) -> tuple[Finding, ...]:
    """Everything told about a recording, the most telling first: words that look at words before
    all else.

    after: what the model would produce after its target, in a recording of two texts, for the name
    of the last row. answer: what is known of what the model says; without it nothing is told of
    that. heads: what `heads.describe` made of each attention by its name, where it is at hand.
    trained: what `findings_links.is_trained` says, where that is known.
    """
    found: list[Finding] = []
    if trained is None:
        trained = tied.is_trained(recording)
    for attention in recording.attention:
        named = heads[attention.name] if heads else naming.describe(recording, attention)
        every: list[Finding | None] = [crowds.crowd(named, recording, attention)]
        every.append(crowds.regularity(named, attention))
        if not found:
            every.append(crowds.too_short(named, recording))
        found += [one for one in every if one is not None]
        if trained:
            found += _links(between_words(recording, attention, after), named)
    for stream in recording.streams:
        grouped = words.words(stream, _text(recording, stream.name))
        found += turned(stream, grouped)
    if answer is not None:
        found += answered(recording.stream(answer.lens.stream), answer)
    ranked = sorted(found, key=lambda one: -one.score)
    return tuple(_addressed(recording, one) for one in ranked)


def worth(found: Sequence[Finding], most: int = 5) -> tuple[Finding, ...]:
    """The strongest finding and others beside it: no two of the same head, no two with the same
    word and kind, at most two far links in a row of `most`, so that each leads elsewhere."""
    chosen: list[Finding] = []
    for one in found:
        if len(chosen) == most:
            break
        heads = {(each.attention, each.at) for each in chosen if each.head >= 0}
        said = {(each.kind, each.words[:1]) for each in chosen}
        alike = sum(each.kind == one.kind for each in chosen)
        if (
            (one.head >= 0 and (one.attention, one.at) in heads)
            or (one.kind, one.words[:1]) in said
            or alike >= (2 if one.kind in LINKS else 1)
        ):
            continue
        chosen.append(one)
    return tuple(chosen)


def strongest_link(
    recording: Recording, attention: Attention, head: naming.Head
) -> tied.Link | None:
    """The word that attends most tellingly to a far word in a head of a model that has learned, or,
    where the head has no name, at a near one; None where there is none, and of cross-attention."""
    if attention.query != attention.key:
        return None
    at = (head.layer, head.head)
    seen = between_words(recording, attention, "", at)
    far = 1 if head.name in NEAR_TOO else tied.FAR
    found = tied.links(seen, np.array([[head.name]]), far)
    return found[0] if found else None


def _links(seen: tied.Between, named: Sequence[naming.Head]) -> list[Finding]:
    """What ties words to words in an attention, whose heads are `named`."""
    if seen.attention.query != seen.attention.key:
        return across(seen)
    found = crowds.repeated(seen)
    repeats = any(one.kind == INDUCTION for one in found)
    names = np.array([one.name for one in named]).reshape(seen.weights.shape[:2])
    linked = _fresh(seen, tied.links(seen, names, habits=HABITS), repeats)
    found = [
        _with(one, score=one.score - tied.AWAKE) if names[one.at] in HABITS else one
        for one in found
    ]
    return [*found, *(_told(seen, link) for link in linked[:MOST_LINKS])]


def _told(seen: tied.Between, link: tied.Link) -> Finding:
    """A link as a finding."""
    return Finding(
        LINK if abs(link.places[0] - link.places[1]) >= tied.FAR else NEAR_LINK,
        link.weight,
        link.chance,
        link.score,
        seen.attention.name,
        link.layer,
        link.head,
        seen.weights.shape[0] * seen.weights.shape[1],
        link.query,
        (link.key,),
        link.words,
        link.also,
        retype=_retype(seen, link),
    )


def _fresh(seen: tied.Between, linked: list[tied.Link], repeats: bool) -> list[tied.Link]:
    """The links that a repetition does not say already: none between a word and itself, and, where
    a head `repeats`, none to what followed the word before."""
    said = [label.casefold() for label in seen.keys.labels]
    return [
        link
        for link in linked
        if said[link.places[1]] != said[link.places[0]]
        and not (repeats and said[link.places[1] - 1] == said[link.places[0]])
    ]


def _with(one: Finding, **other: Any) -> Finding:
    """The finding with some fields another: as `dataclasses.replace`, in a third of its time."""
    return Finding(**vars(one) | other)


def between_words(
    recording: Recording,
    attention: Attention,
    after: str,
    only: tuple[int, int] | None = None,
) -> tied.Between:
    """An attention, or one head of it, between the words of its texts. `after`: what follows a
    target, for its last row."""
    rows, keys = (
        words.words(recording.stream(name), _text(recording, name))
        for name in (attention.query, attention.key)
    )
    if attention.query != attention.key:
        said = axes_of.axes(recording, attention, after).said or ()
        rows = words.produced(rows, *said[-1])
    return tied.between(attention, rows, keys, only)


def _text(recording: Recording, stream: str) -> str:
    return (
        recording.target if stream == "decoder" and len(recording.streams) > 1 else recording.text
    )


def _retype(seen: tied.Between, link: tied.Link) -> tuple[str, str]:
    """A later word of the text whose opposite might send the link elsewhere."""
    row = link.places[0]
    if seen.classes[0][row] != vocabulary.PRONOUN:
        return "", ""
    for label in seen.keys.labels[row + 1 :]:
        if label in tied.CHANGES:
            return label, tied.CHANGES[label]
    return "", ""


def _addressed(recording: Recording, one: Finding) -> Finding:
    """The finding with the choices that show it, "" for those that say nothing."""
    if one.page != "attention":
        return one
    first = recording.attention[0].name
    name = "" if one.attention == first else one.attention
    query = "" if one.query < 0 else str(one.query)
    layer, head = one.shown or one.at
    return _with(
        one,
        address=(
            ("attention", name),
            ("layer", str(layer)),
            ("head", str(head)),
            ("token", query),
            ("source", ""),
        ),
    )
