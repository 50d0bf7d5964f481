"""Request for an HTML file: a recording, the model that made it, and what is chosen of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.attention import Axes, axes
from models import edits
from models.example_texts import DEFAULT_TEXT
from models.recording import Attention, Recording

if TYPE_CHECKING:
    from models.model import Model

DEFAULT_MODEL = "encoder"


@dataclass(frozen=True, eq=False)
class ExportRequest:
    """A recording, its model loaded, and the choices of a page by the names that they have in its
    address.

    target: what a reader typed for a decoder to read, None for the model's own words.
    """

    recording: Recording
    model: Model
    choices: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None

    def one_of(self, name: str, options: tuple[str, ...]) -> str:
        """A choice that is one of these words; the first where nothing is chosen. Raises ValueError
        for another word."""
        value = self.choices.get(name) or options[0]
        if value not in options:
            raise ValueError(f"{name} is {value!r}; it can be {', '.join(map(repr, options))}")
        return value

    def whole(self, name: str, below: int) -> int | None:
        """A choice as a whole number; None where nothing is chosen. Raises ValueError for one that
        is not from 0 to below - 1."""
        value = str(self.choices.get(name, ""))
        if not value:
            return None
        if not (value.isdecimal() and len(value) < 6 and int(value) < below):
            raise ValueError(f"{name} is {value!r}; it can be a whole number from 0 to {below - 1}")
        return int(value)

    def attention(self) -> Attention:
        """The attention that is chosen, the first one where none is. Raises ValueError for one that
        is not there."""
        return attention_of(self.recording, self.choices.get("attention", ""))

    def axes(self, attention: Attention) -> Axes:
        """Labels of rows and columns; between two texts the last row has that of the predicted next
        token."""
        if attention.query == attention.key:
            return axes(self.recording, attention)
        return axes(self.recording, attention, self.following(attention.query))

    def following(self, stream: str) -> str:
        """The model's most likely token after the last one of a stream."""
        last = len(self.recording.stream(stream).tokens) - 1
        return self.labels([int(np.argmax(self.model.logits(self.recording, stream, last)))])[0]

    def labels(self, ids: Iterable[int]) -> list[str]:
        """Tokens of the vocabulary as a person reads them."""
        return self.model.labels(ids)

    def address(self, **chosen: object) -> dict[str, str]:
        """The query of the address that shows the same in Headlight."""
        recording = self.recording
        wanted = {name: str(value) for name, value in {**self.choices, **chosen}.items()}
        if recording.text != DEFAULT_TEXT:
            wanted["text"] = recording.text
        if recording.model.name != DEFAULT_MODEL:
            wanted["model"] = recording.model.name
        if recording.edits:
            wanted["edits"] = edits.to_line(recording.edits)
        if self.target is not None:
            wanted["target"] = self.target
        return {name: value for name, value in wanted.items() if value}


def attention_of(recording: Recording, name: str) -> Attention:
    """An attention by its name, "" for the first. Raises ValueError where there is none."""
    names = [each.name for each in recording.attention]
    if name and name not in names:
        raise ValueError(f"no attention is called {name!r}; there are {', '.join(names)}")
    return recording.attention[names.index(name) if name else 0]
