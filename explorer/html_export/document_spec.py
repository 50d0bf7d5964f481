"""Content of a standalone HTML file: views with their data, and lines of text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.components import codec

Line = tuple[str, str]  # the name of an element and its text


@dataclass(frozen=True, eq=False)
class View:
    """A component, and what its payload function made. column: 0 left, 1 right, 2 below both."""

    component: str
    data: bytes
    column: int = 0


@dataclass(frozen=True)
class TextLines:
    """Lines of text, each with the name of its element, such as ("h2", "Layer 1, head 5")."""

    lines: Sequence[Line]
    column: int = 0


Part = View | TextLines


@dataclass(frozen=True, eq=False)
class DocumentSpec:
    """A whole file: its title, its caption in lines, and its parts in the order they stand in.
    query: the address of the same in Headlight."""

    title: str
    caption: Sequence[str]
    parts: Sequence[Part]
    query: Mapping[str, str] = field(default_factory=dict)


def packed(sheet: DocumentSpec) -> bytes:
    """All parts in one message of `codec`: equal blocks of numbers, of whatever view, are in it
    once."""
    pool: dict[bytes, str] = {}
    blocks: dict[str, np.ndarray] = {}

    def placed(array: np.ndarray) -> str:
        key = hashlib.sha256(array.dtype.str.encode() + array.tobytes()).digest()
        if key not in pool:
            pool[key] = str(len(pool))
            blocks[pool[key]] = array
        return pool[key]

    parts = []
    for part in sheet.parts:
        plain: dict[str, object] = {"component": "", "column": part.column}
        if isinstance(part, View):
            header, arrays = codec.decode(part.data)
            places = {name: placed(array) for name, array in arrays.items()}
            plain |= {"kind": "view", "component": part.component, "data": [header, places]}
        else:
            plain |= {"kind": "words", "lines": part.lines}
        parts.append(plain)
    return codec.encode({"parts": parts}, blocks)
