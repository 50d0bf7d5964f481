"""Pairs of the same tokens of two texts.

Two axes of tokens (of two attentions' rows, or columns) are brought onto common *units*. Where both
texts are the same, a unit is the smallest group of tokens that begins and ends at the same
characters in both; pieces of a character that are the same in both are units of their own. Where
the texts differ, characters of the words that both have, in the same order, count as the same.
Special tokens before the text are one role, those after it another. What is in no unit is
*outside*."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from explorer.analysis.words import readable
from models.contract.recording import Attention, Recording

WORD = re.compile(r"\w+|[^\w\s]")
CHARACTERS = "characters"
WORDS = "words"
DIFFERING = "words that differ"


@dataclass(frozen=True, eq=False)
class Axis:
    """Tokens along one side of a matrix: what they are called, where each stands in `text` (token,
    2), -1 where nowhere, and the whole text."""

    text: str
    labels: tuple[str, ...]
    spans: np.ndarray


@dataclass(frozen=True)
class Unit:
    """Tokens of A and tokens of B (places) that are the same piece of text, or play the same role.
    special: the latter."""

    label: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    special: bool = False


@dataclass(frozen=True)
class Alignment:
    """Units in the order of A's text, and the places that are in none. rule: CHARACTERS or WORDS.
    differing: the name of all that is in no unit, of one token a side theirs."""

    units: tuple[Unit, ...]
    outside_a: tuple[int, ...]
    outside_b: tuple[int, ...]
    rule: str
    differing: str = DIFFERING

    @property
    def labels(self) -> tuple[str, ...]:
        """The units' names."""
        return tuple(unit.label for unit in self.units)

    @property
    def n_text(self) -> int:
        """The number of units that are text."""
        return sum(not unit.special for unit in self.units)


def stream_text(recording: Recording, stream: str) -> str:
    """The text that a stream's spans count characters of."""
    return (
        recording.target
        if len(recording.streams) > 1 and stream == recording.streams[-1].name
        else recording.text
    )


def axis(recording: Recording, stream: str) -> Axis:
    """The tokens of a stream."""
    token_stream = recording.stream(stream)
    return Axis(stream_text(recording, stream), token_stream.tokens, token_stream.spans)


def axes(recording: Recording, attention: Attention) -> tuple[Axis, Axis]:
    """Rows and columns of an attention. Between two streams a row stands for the token it produces,
    the one after the token it reads."""
    queries, keys = axis(recording, attention.query), axis(recording, attention.key)
    if attention.query == attention.key:
        return queries, keys
    spans = np.concatenate((queries.spans[1:], [[-1, -1]]))
    return Axis(
        queries.text, tuple(f"→ {label}" for label in (*queries.labels[1:], "what follows")), spans
    ), keys


def align(a: Axis, b: Axis) -> Alignment:
    """The units of two axes, see the top of this file."""
    same = a.text == b.text
    positions = [_positions(a), _positions(b)]
    if not same:
        shared_a, shared_b = _shared_words(a.text, b.text)
        positions = [
            [_shared_numbers(characters, shared) for characters in side]
            for side, shared in zip(positions, (shared_a, shared_b))
        ]
    units = [
        Unit(_label(a, b, places_a, places_b), places_a, places_b)
        for group in _groups(*positions)
        for places_a, places_b in _split(a, b, positions, *group)
    ]
    for role in ("first", "last"):
        places_a, places_b = _role(a, role), _role(b, role)
        if places_a and places_b:
            names = dict.fromkeys((a.labels[places_a[0]], b.labels[places_b[0]]))
            units.insert(
                0 if role == "first" else len(units),
                Unit(" / ".join(names), places_a, places_b, True),
            )
    used = ({at for unit in units for at in getattr(unit, side)} for side in "ab")
    outside_a, outside_b = (
        tuple(at for at in range(len(side.labels)) if at not in in_unit)
        for side, in_unit in zip((a, b), used)
    )
    alone = [a.labels[at] for at in outside_a] + [b.labels[at] for at in outside_b]
    is_one = max(len(outside_a), len(outside_b)) == 1
    return Alignment(
        tuple(units),
        outside_a,
        outside_b,
        CHARACTERS if same else WORDS,
        " / ".join(alone) if is_one else DIFFERING,
    )


def _positions(side: Axis) -> list[set[int] | None]:
    """For each token the characters it stands for, white space left out unless it is nothing else;
    None for one that stands nowhere.

    A token of no width, such as a mark for the text's beginning, goes with the character before
    which it stands."""
    positions: list[set[int] | None] = []
    for start, end in side.spans.tolist():
        if start < 0:
            positions.append(None)
            continue
        characters = range(start, end) or range(start, min(start + 1, len(side.text)))
        positions.append(
            {at for at in characters if not side.text[at].isspace()} or set(characters)
        )
    return positions


def _shared_numbers(positions: set[int] | None, shared: dict[int, int]) -> set[int] | None:
    """Characters by their number among the shared ones; one that is not shared keeps a number of
    its own, below 0, and so meets no other."""
    return None if positions is None else {shared.get(at, -1) for at in positions}


def _shared_words(text_a: str, text_b: str) -> tuple[dict[int, int], dict[int, int]]:
    """The characters of the words that two texts have in the same order, case aside, each by one
    number that is the same in both."""
    first, second = (
        [
            (match.group().casefold(), match.end() - match.start(), match.start())
            for match in WORD.finditer(text)
        ]
        for text in (text_a, text_b)
    )
    blocks = SequenceMatcher(
        None, [word[:2] for word in first], [word[:2] for word in second], autojunk=False
    ).get_matching_blocks()
    numbers_a: dict[int, int] = {}
    numbers_b: dict[int, int] = {}
    for block in blocks:
        for (_, length, start), (_, _, other_start) in zip(
            first[block.a : block.a + block.size], second[block.b : block.b + block.size]
        ):
            for step in range(length):
                numbers_b[other_start + step] = numbers_a[start + step] = len(numbers_a)
    return numbers_a, numbers_b


def unshared_words(text_a: str, text_b: str) -> tuple[str, str]:
    """The words of each of two texts that the other has not in the same order."""
    shared_a, shared_b = _shared_words(text_a, text_b)
    return _unshared(text_a, shared_a), _unshared(text_b, shared_b)


def _unshared(text: str, shared: dict[int, int]) -> str:
    return " ".join(word.group() for word in WORD.finditer(text) if word.start() not in shared)


def _groups(
    a: list[set[int] | None], b: list[set[int] | None]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Tokens of both sides that share characters, directly or through others, as groups in the
    order of their first character.

    Left out are groups of one side alone, and groups in which a token has a character of no shared
    word, or one after the other side's end."""
    limit = min(
        max((max(characters) for characters in side if characters), default=-1) for side in (a, b)
    )
    tokens = []
    for side, places in enumerate((a, b)):
        for at, characters in enumerate(places):
            if characters and (shared := [character for character in characters if character >= 0]):
                complete = len(shared) == len(characters) and max(shared) <= limit
                tokens.append((min(shared), max(shared), side, at, complete))
    groups: list[tuple[tuple[list[int], list[int]], list[bool]]] = []
    reach = -1
    for start, end, side, at, complete in sorted(tokens):
        if start > reach:
            groups.append((([], []), []))
        reach = max(reach, end)
        groups[-1][0][side].append(at)
        groups[-1][1].append(complete)
    return [
        (tuple(sorted(tokens_a)), tuple(sorted(tokens_b)))
        for (tokens_a, tokens_b), complete in groups
        if tokens_a and tokens_b and all(complete)
    ]


def _split(
    a: Axis,
    b: Axis,
    positions: Sequence[list[set[int] | None]],
    places_a: tuple[int, ...],
    places_b: tuple[int, ...],
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The tokens of a group one by one where both sides have the same ones, else the group."""
    pairs = list(zip(places_a, places_b))
    same = len(places_a) == len(places_b) and all(
        a.labels[one] == b.labels[other] and positions[0][one] == positions[1][other]
        for one, other in pairs
    )
    return [((one,), (other,)) for one, other in pairs] if same else [(places_a, places_b)]


def _label(a: Axis, b: Axis, tokens_a: tuple[int, ...], tokens_b: tuple[int, ...]) -> str:
    if len(tokens_a) == 1:
        return a.labels[tokens_a[0]]
    if len(tokens_b) == 1 and b.labels[tokens_b[0]].removeprefix("→ ") in a.text:
        return b.labels[tokens_b[0]]
    start, end = min(a.spans[at, 0] for at in tokens_a), max(a.spans[at, 1] for at in tokens_a)
    text = readable(a.text[start:end].strip())
    return ("→ " if a.labels[tokens_a[0]].startswith("→ ") else "") + (
        text or a.labels[tokens_a[0]]
    )


def _role(side: Axis, role: str) -> tuple[int, ...]:
    """The special tokens before ("first") or after ("last") the text; where there is no text, the
    first token and the last."""
    no_span = side.spans[:, 0] < 0
    n = len(no_span)
    text = np.flatnonzero(~no_span)
    if len(text):
        return tuple(range(text[0])) if role == "first" else tuple(range(text[-1] + 1, n))
    if n == 1:
        is_start = side.labels[0] in ("[CLS]", "[BOS]", "<s>")
        return (0,) if is_start == (role == "first") else ()
    return (0,) if role == "first" else (n - 1,) if n else ()


def group_means(array: np.ndarray, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """The mean over each group of places along the last axis but one."""
    order = np.array([at for group in groups for at in group], dtype=int)
    sizes = np.array([len(group) for group in groups])
    gathered = array[..., order, :]
    if len(order) == len(groups):
        return gathered
    sums = np.add.reduceat(gathered, np.cumsum([0, *sizes])[:-1], axis=-2)
    return sums / sizes[:, None].astype(array.dtype)


def unit_columns(alignment: Alignment, a: Axis, b: Axis) -> dict[str, list]:
    """Named columns of the units and their tokens in A and in B; tokens in no unit come last."""
    token_list = lambda side, places: "  ".join(f"{side.labels[at]} ({at})" for at in places)
    rows = [(unit.label, token_list(a, unit.a), token_list(b, unit.b)) for unit in alignment.units]
    rows += [(alignment.differing, token_list(a, (at,)), "") for at in alignment.outside_a] + [
        (alignment.differing, "", token_list(b, (at,))) for at in alignment.outside_b
    ]
    return {
        "unit": [row[0] for row in rows],
        "tokens of A": [row[1] for row in rows],
        "tokens of B": [row[2] for row in rows],
    }
