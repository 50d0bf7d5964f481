"""Which tokens of two texts are the same.

Two axes of tokens (of two attentions' rows, or columns) are brought onto common *units*. Where both
texts are the same, a unit is the smallest group of tokens that begins and ends at the same
characters in both. Where the texts differ, characters of the words that both have, in the same
order, count as the same. Special tokens before the text are one role, those after it another. What
is in no unit is *outside*."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from models.recording import Attention, Recording

WORD = re.compile(r"\w+|[^\w\s]")
CHARACTERS = "characters"
WORDS = "words"


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
    """Units in the order of A's text, and the places that are in none. rule: CHARACTERS or
    WORDS."""

    units: tuple[Unit, ...]
    outside_a: tuple[int, ...]
    outside_b: tuple[int, ...]
    rule: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The units' names."""
        return tuple(unit.label for unit in self.units)

    @property
    def n_text(self) -> int:
        """How many units are text."""
        return sum(not unit.special for unit in self.units)


def text_of(recording: Recording, stream: str) -> str:
    """The text that a stream's spans count characters of."""
    return (
        recording.target
        if len(recording.streams) > 1 and stream == recording.streams[-1].name
        else recording.text
    )


def axis(recording: Recording, stream: str) -> Axis:
    """The tokens of a stream."""
    found = recording.stream(stream)
    return Axis(text_of(recording, stream), found.tokens, found.spans)


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
    marks = [_positions(a), _positions(b)]
    if not same:
        shared_a, shared_b = _shared_words(a.text, b.text)
        marks = [
            [_moved(each, shared) for each in side]
            for side, shared in zip(marks, (shared_a, shared_b))
        ]
    groups = _groups(*marks)
    units = [Unit(_label(a, b, ours, theirs), ours, theirs) for ours, theirs in groups]
    for role in ("first", "last"):
        ours, theirs = _role(a, role), _role(b, role)
        if ours and theirs:
            names = dict.fromkeys((a.labels[ours[0]], b.labels[theirs[0]]))
            units.insert(
                0 if role == "first" else len(units), Unit(" / ".join(names), ours, theirs, True)
            )
    used_a, used_b = ({at for unit in units for at in getattr(unit, side)} for side in "ab")
    return Alignment(
        tuple(units),
        tuple(at for at in range(len(a.labels)) if at not in used_a),
        tuple(at for at in range(len(b.labels)) if at not in used_b),
        CHARACTERS if same else WORDS,
    )


def _positions(side: Axis) -> list[set[int] | None]:
    """For each token the characters it stands for, white space left out unless it is nothing else;
    None for one that stands nowhere.

    A token of no width, such as a mark for the text's beginning, goes with the character before
    which it stands."""
    found: list[set[int] | None] = []
    for start, end in side.spans.tolist():
        if start < 0:
            found.append(None)
            continue
        here = range(start, end) or range(start, min(start + 1, len(side.text)))
        found.append({at for at in here if not side.text[at].isspace()} or set(here))
    return found


def _moved(positions: set[int] | None, shared: dict[int, int]) -> set[int] | None:
    """Characters by their number among the shared ones; one that is not shared keeps a number of
    its own, below 0, and so meets no other."""
    return None if positions is None else {shared.get(at, -1) for at in positions}


def _shared_words(one: str, other: str) -> tuple[dict[int, int], dict[int, int]]:
    """The characters of the words that two texts have in the same order, case aside, each by one
    number that is the same in both."""
    first, second = (
        [
            (match.group().casefold(), match.end() - match.start(), match.start())
            for match in WORD.finditer(text)
        ]
        for text in (one, other)
    )
    blocks = SequenceMatcher(
        None, [word[:2] for word in first], [word[:2] for word in second], autojunk=False
    ).get_matching_blocks()
    ours: dict[int, int] = {}
    theirs: dict[int, int] = {}
    for block in blocks:
        for (_, length, start), (_, _, other_start) in zip(
            first[block.a : block.a + block.size], second[block.b : block.b + block.size]
        ):
            for step in range(length):
                theirs[other_start + step] = ours[start + step] = len(ours)
    return ours, theirs


def own_words(one: str, other: str) -> tuple[str, str]:
    """The words of each of two texts that the other has not in the same order."""
    ours, theirs = _shared_words(one, other)
    return _rest(one, ours), _rest(other, theirs)


def _rest(text: str, shared: dict[int, int]) -> str:
    return " ".join(word.group() for word in WORD.finditer(text) if word.start() not in shared)


def _groups(
    a: list[set[int] | None], b: list[set[int] | None]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Tokens of both sides that share characters, directly or through others, as groups in the
    order of their first character.

    Left out are groups of one side alone, and groups in which a token has a character of no shared
    word, or one after the other side's end."""
    limit = min(max((max(each) for each in side if each), default=-1) for side in (a, b))
    tokens = []
    for side, places in enumerate((a, b)):
        for at, each in enumerate(places):
            if each and (shared := [one for one in each if one >= 0]):
                whole = len(shared) == len(each) and max(shared) <= limit
                tokens.append((min(shared), max(shared), side, at, whole))
    groups: list[tuple[tuple[list[int], list[int]], list[bool]]] = []
    reach = -1
    for start, end, side, at, whole in sorted(tokens):
        if start > reach:
            groups.append((([], []), []))
        reach = max(reach, end)
        groups[-1][0][side].append(at)
        groups[-1][1].append(whole)
    return [
        (tuple(sorted(ours)), tuple(sorted(theirs)))
        for (ours, theirs), whole in groups
        if ours and theirs and all(whole)
    ]


def _label(a: Axis, b: Axis, ours: tuple[int, ...], theirs: tuple[int, ...]) -> str:
    if len(ours) == 1:
        return a.labels[ours[0]]
    if len(theirs) == 1 and b.labels[theirs[0]].removeprefix("→ ") in a.text:
        return b.labels[theirs[0]]
    start, end = min(a.spans[at, 0] for at in ours), max(a.spans[at, 1] for at in ours)
    written = a.text[start:end].strip()
    return ("→ " if a.labels[ours[0]].startswith("→ ") else "") + (written or a.labels[ours[0]])


def _role(side: Axis, role: str) -> tuple[int, ...]:
    """The special tokens before ("first") or after ("last") the text; where there is no text, the
    first token and the last."""
    nowhere = side.spans[:, 0] < 0
    n = len(nowhere)
    text = np.flatnonzero(~nowhere)
    if len(text):
        return tuple(range(text[0])) if role == "first" else tuple(range(text[-1] + 1, n))
    if n == 1:
        opens = side.labels[0] in ("[CLS]", "[BOS]", "<s>")
        return (0,) if opens == (role == "first") else ()
    return (0,) if role == "first" else (n - 1,) if n else ()


def averaged(array: np.ndarray, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """The mean over each group of places along the last axis but one."""
    order = np.array([at for group in groups for at in group], dtype=int)
    sizes = np.array([len(group) for group in groups])
    picked = array[..., order, :]
    if len(order) == len(groups):
        return picked
    summed = np.add.reduceat(picked, np.cumsum([0, *sizes])[:-1], axis=-2)
    return summed / sizes[:, None].astype(array.dtype)


def numbered(labels: Sequence[str]) -> list[str]:
    """Labels with their numbers before them, so that equal ones stay apart."""
    return [f"{at} {label}" for at, label in enumerate(labels)]


def unit_columns(alignment: Alignment, a: Axis, b: Axis) -> dict[str, list]:
    """Which tokens are laid beside which, as named columns; what is in no unit comes last."""
    spelled = lambda side, places: "  ".join(f"{side.labels[at]} ({at})" for at in places)
    rows = [(unit.label, spelled(a, unit.a), spelled(b, unit.b)) for unit in alignment.units]
    rows += [("not aligned", spelled(a, (at,)), "") for at in alignment.outside_a] + [
        ("not aligned", "", spelled(b, (at,))) for at in alignment.outside_b
    ]
    return {
        "unit": [row[0] for row in rows],
        "tokens of A": [row[1] for row in rows],
        "tokens of B": [row[2] for row in rows],
    }
