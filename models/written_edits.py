"""Edits as they are written: as JSON in a recording's file, as one line in an address, and in
words.

A line has a word an edit, `Kind:value:value`; equal edits of a block of heads are one word,
`UniformHead:0-3:0-7:self`.
"""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from typing import get_type_hints
from urllib.parse import quote, unquote

from models.edits import KINDS, Edit, MeanHead, OfHead, UniformHead, ZeroHead

RANGE = re.compile(r"(\d{1,4})-(\d{1,4})")


MOST_HEADS = 4096  # in one word of an address


HEAD_EDITS = (ZeroHead, MeanHead, UniformHead)


def to_json(edit: Edit) -> dict:
    """An edit as plain data: its class name under `kind`, then its fields."""
    return {"kind": type(edit).__name__, **asdict(edit)}


def from_json(written: dict) -> Edit:
    """The edit that `to_json` described. Raises ValueError for a kind that does not exist."""
    rest = dict(written)
    name = rest.pop("kind", None)
    if name not in KINDS:
        raise ValueError(f"no edit is called {name!r}; there are {', '.join(KINDS)}")
    try:
        return KINDS[name](**rest)
    except TypeError as error:
        raise ValueError(f"{name} cannot be made from {sorted(rest)}") from error


def to_line(edits: tuple[Edit, ...]) -> str:
    """Edits in one line for an address: "ZeroHead:2:5:self,WithoutScale:"; an empty field is None,
    signs in words are escaped.

    Heads that stand side by side are one word: "UniformHead:0-3:0-7:self" is heads 0 to 7 of layers
    0 to 3.
    """
    return ",".join(
        ":".join([type(edit).__name__, *(_written(value) for value in values.values())])
        for edit, values in (
            (block[0], asdict(block[0]) | _ranges(block)) for block in blocks(edits)
        )
    )


def blocks(edits: tuple[Edit, ...]) -> list[tuple[Edit, ...]]:
    """Edits in their order, those together that do the same to heads side by side: all heads from
    one to another, layer by layer."""
    found, at = [], 0
    while at < len(edits):
        length = _length_of_block(edits[at:])
        found.append(edits[at : at + length])
        at += length
    return found


def in_words(edits: tuple[Edit, ...]) -> str:
    """Edits as a caption says them, heads side by side together; "" for none."""
    said = []
    for block in blocks(edits):
        words = str(block[0])
        first, last = block[0], block[-1]
        if len(block) > 1 and isinstance(first, OfHead) and isinstance(last, OfHead):
            heads = (
                f"heads {first.head} to {last.head}"
                if first.head < last.head
                else f"heads {first.head}"
            )
            where = (
                f"layer {first.layer}"
                if first.layer == last.layer
                else f"layers {first.layer} to {last.layer}"
            )
            words = words.replace(
                f"head {first.head} of layer {first.layer}", f"each of {heads} of {where}", 1
            )
        said.append(words)
    return ", ".join(said)


def _length_of_block(edits: tuple[Edit, ...]) -> int:
    """How many edits from the first on are one block of heads."""
    first = edits[0]
    if not isinstance(first, OfHead):
        return 1

    def at(place: int) -> tuple[int, int] | None:
        edit = edits[place] if place < len(edits) else None
        if isinstance(edit, type(first)) and edit.attention == first.attention:
            return edit.layer, edit.head
        return None

    wide = 1
    while at(wide) == (first.layer, first.head + wide):
        wide += 1
    length = wide
    while all(
        at(length + n) == (first.layer + length // wide, first.head + n) for n in range(wide)
    ):
        length += wide
    return length


def _ranges(block: tuple[Edit, ...]) -> dict[str, str]:
    """The fields of a block that are ranges."""
    return {
        name: f"{getattr(block[0], name)}-{getattr(block[-1], name)}"
        for name in ("layer", "head")
        if len(block) > 1 and getattr(block[0], name) != getattr(block[-1], name)
    }


def _written(value: object) -> str:
    return "" if value is None else quote(str(value), safe="")


def from_line(line: str) -> tuple[Edit, ...]:
    """The edits that `to_line` wrote. Raises ValueError, saying what is wrong, for a line that is
    none."""
    return tuple(edit for word in line.split(",") for edit in _from_block(word)) if line else ()


def _from_block(word: str) -> list[Edit]:
    """The edits of one word; a range of layers or heads stands for each of them."""
    name, *values = word.split(":")
    if not (name in KINDS and issubclass(KINDS[name], HEAD_EDITS)) or not any(
        RANGE.fullmatch(value) for value in values[:2]
    ):
        return [_from_word(word)]
    ends = [RANGE.fullmatch(value) for value in values[:2]]
    layers, heads = (
        range(int(end[1]), int(end[2]) + 1) if end else [value] for end, value in zip(ends, values)
    )
    if not 0 < len(layers) * len(heads) <= MOST_HEADS:
        raise ValueError(f"{name} cannot be read from {word!r}")
    return [
        _from_word(":".join([name, str(layer), str(head), *values[2:]]))
        for layer in layers
        for head in heads
    ]


def _from_word(word: str) -> Edit:
    name, *values = word.split(":")
    if name not in KINDS:
        raise ValueError(f"no edit is called {name!r}; there are {', '.join(KINDS)}")
    kind = KINDS[name]
    named = fields(kind)
    if len(values) > len(named):
        raise ValueError(f"{name} has {len(named)} fields, not {len(values)}")
    hints = get_type_hints(kind)
    try:
        return kind(
            **{
                field.name: _value(value, str(hints[field.name]))
                for field, value in zip(named, values)
            }
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read from {word!r}") from error


def _value(written: str, hint: str) -> int | float | str | None:
    if not written and "None" in hint:
        return None
    written = unquote(written)  # the plus of 1e+20 is a sign that is escaped
    return int(written) if "int" in hint else float(written) if "float" in hint else written
