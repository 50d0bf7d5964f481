"""The gallery: finds of the models that come with the app, read from gallery.toml, each with its
address, its sentence and the measure by which it passes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explorer.analysis import gallery
from explorer.analysis.gallery import FindMeasure
from explorer.figures.formatting import fill
from explorer.text import places


@dataclass(frozen=True)
class Find:
    """Something worth seeing: its title, the template of its sentence, the model and the text, the
    tab and the choices that show it.

    measure: a function of `analysis/gallery.py`, `of` what it is told beside the run, and `least`
    the value from which on the find passes. numbers: what was measured, for the card, which makes
    no pass; picture: how they are drawn, as `card_pictures.js` calls it."""

    id: str
    title: str
    says: str
    model: str
    text: str
    tab: str
    choices: Mapping[str, str]
    measure: str
    of: Mapping[str, Any]
    least: float
    picture: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The path and query that show it."""
        return places.address(self.tab, {"text": self.text, "model": self.model, **self.choices})

    @property
    def sentence(self) -> str:
        """Its sentence, with the numbers of the card."""
        return fill(self.says, self.numbers)

    def drawn(self) -> dict[str, Any]:
        """Its picture."""
        return drawn(self.picture, self.numbers)

    def measured(self) -> FindMeasure:
        """The measure now. It reads the text in the model."""
        return gallery.measured(self.measure, self.model, self.text, self.of)


def drawn(picture: str, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The picture of a card, as `card_pictures.js` takes it, with the numbers of a measure."""
    if picture == "bars":
        return {"kind": "bars", "bars": _bars(numbers)}
    names = {"arcs": ("words", "arcs"), "links": ("above", "below", "links")}
    own = names.get(picture, ("cells",))
    return {"kind": picture, **{name: numbers[name] for name in own}}


def _bars(numbers: Mapping[str, Any]) -> list[list[Any]]:
    """Words with what they had before and have after; steps of a training with what each has."""
    if "step" in numbers:
        steps = (f"step {numbers['step']}", numbers["before"]), ("end", numbers["after"])
        return [list(each) for each in steps]
    if "first" in numbers:
        return [
            [numbers[name], numbers[f"{name}_before"], numbers[f"{name}_after"]]
            for name in ("first", "second")
        ]
    return [[numbers["word"], numbers["before"], numbers["after"]]]


def _of_file() -> tuple[Find, ...]:
    with (Path(__file__).parent / "gallery.toml").open("rb") as file:
        return tuple(Find(**each) for each in tomllib.load(file)["find"])


FINDS = _of_file()


def finds() -> Iterator[tuple[str, str, bool, str]]:
    """Each find as it is measured now: its title, its address, whether it passes, and its sentence
    with the numbers of now."""
    for find in FINDS:
        now = find.measured()
        passes = now.value >= find.least
        yield find.title, find.address, passes, fill(find.says, now.numbers) if passes else ""
