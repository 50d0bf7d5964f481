"""Content of a standalone HTML file: views with their data, words and choices, and the state that
ties them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.components import codec

Line = tuple[str, str]  # the name of an element and its text
State = Mapping[str, object]
FIRST = ""  # the key of a part that depends on nothing
SECOND_BYTES = 500_000  # of a file, for the second bytes of all weights: the larger ones are exact


@dataclass(frozen=True, eq=False)
class View:
    """A component: `data` is what its payload function made, for each value of the state's names in
    `by`, joined with spaces.

    sets: names of the state that stand in the component's header in the place of what its data
    says. place: the class of the element that it draws into, its own name where "". column: 0 left,
    1 right, 2 below both.
    """

    component: str
    data: Mapping[str, bytes]
    by: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    column: int = 0
    place: str = ""


@dataclass(frozen=True)
class TextLines:
    """Lines of text for each value of the names in `by`, each with the name of its element, such as
    ("h2", "Layer 1, head 5")."""

    lines: Mapping[str, Sequence[Line]]
    by: tuple[str, ...] = ()
    column: int = 0


@dataclass(frozen=True)
class ButtonRow:
    """Buttons, each with a label, a second line or "", and what it sets in the state. listed: one
    below the other."""

    label: str
    options: Sequence[tuple[str, str, State]]
    listed: bool = False
    column: int = 0


Part = View | TextLines | ButtonRow


@dataclass(frozen=True, eq=False)
class DocumentSpec:
    """A whole file: its title, its caption in lines, its parts in the order they stand in, what the
    state is at first, and what the file is called. path and query: the address of the same in
    Headlight."""

    title: str
    caption: Sequence[str]
    parts: Sequence[Part]
    state: State
    file: str
    path: str = ""
    query: Mapping[str, str] = field(default_factory=dict)


def packed(sheet: DocumentSpec) -> bytes:
    """All parts in one message of `wire`: equal blocks of numbers, of whatever view, are in it
    once."""
    pool: dict[bytes, str] = {}
    blocks: dict[str, np.ndarray] = {}

    def placed(array: np.ndarray) -> str:
        key = hashlib.sha256(array.dtype.str.encode() + array.tobytes()).digest()
        if key not in pool:
            pool[key] = str(len(pool))
            blocks[pool[key]] = array
        return pool[key]

    def unpacked(data: bytes) -> list:
        header, arrays = codec.decode(data)
        return [header, {name: placed(array) for name, array in arrays.items()}]

    parts = []
    for part in sheet.parts:
        told: dict[str, object] = {"by": [], "sets": [], "component": "", "column": part.column}
        if isinstance(part, View):
            told |= {"kind": "view", "component": part.component, "by": part.by, "sets": part.sets}
            told |= {"place": part.place or part.component}
            told |= {"data": {key: unpacked(each) for key, each in part.data.items()}}
        elif isinstance(part, TextLines):
            told |= {"kind": "words", "by": part.by, "lines": dict(part.lines)}
        else:
            told |= {"kind": "choice", "label": part.label, "listed": part.listed}
            told |= {"options": part.options}
        parts.append(told)
    return codec.encode({"parts": parts, "state": dict(sheet.state)}, blocks)
