"""Sentences as templates with named slots, one TOML file a concept in
explorer/wording/sentences."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("sentences")


class Sentences:
    """The sentences of one panel. `sentences("finding", query="it")` fills the slots of one;
    `lines("details", ...)` those of a list."""

    def __init__(self, templates: dict[str, str | list[str]]) -> None:
        self._templates = templates

    def __call__(self, name: str, /, **slots: object) -> str:
        """A sentence. Raises KeyError for a name or a slot that is not there."""
        template = self._templates[name]
        if not isinstance(template, str):
            raise KeyError(f"{name} is a list of sentences")
        return template.format_map(slots)

    def lines(self, name: str, /, **slots: object) -> tuple[str, ...]:
        """A list of sentences. Raises KeyError for a name or a slot that is not there."""
        return tuple(template.format_map(slots) for template in self._templates[name])


@cache
def sentences(concept: str, panel: str) -> Sentences:
    """The sentences of a panel. Raises FileNotFoundError or KeyError for one without any."""
    return Sentences(all_of(concept)[panel])


def named(concept: str, part: str) -> dict[str, str]:
    """Sentences without slots by their names, in the order of the file."""
    return {name: text for name, text in all_of(concept)[part].items() if isinstance(text, str)}


@cache
def all_of(concept: str) -> dict[str, dict[str, str | list[str]]]:
    """Every sentence of a concept, by panel."""
    return tomllib.loads((FOLDER / f"{concept}.toml").read_text("utf-8"))
