"""The words of the field in plain English, from `glossary.toml`, ready for help texts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

TERMS = Path(__file__).with_name("glossary.toml")


@dataclass(frozen=True)
class Term:
    """A term, what it means in at most two sentences, other spellings of it, and related terms."""

    name: str
    means: str
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()


@cache
def terms() -> Mapping[str, Term]:
    """All terms by name, in the order of the file."""
    read = tomllib.loads(TERMS.read_text("utf-8"))
    return MappingProxyType(
        {
            name: Term(
                name, entry["means"], tuple(entry.get("also", ())), tuple(entry.get("see", ()))
            )
            for name, entry in read.items()
        }
    )


def term(word: str) -> Term | None:
    """The term that goes by this name or spelling, capitals aside; None for a word that is not explained."""
    return _spellings().get(word.strip().casefold())


def meaning(*words: str) -> str:
    """What these words mean, for `help=`: a line each as Markdown. Raises KeyError for a word that is not explained."""
    found = []
    for word in words:
        one = term(word)
        if one is None:
            raise KeyError(word)
        found.append(f"**{_plain(one.name)}**: {_plain(one.means)}")
    return "  \n".join(found)


@cache
def _spellings() -> Mapping[str, Term]:
    return {
        spelling.casefold(): one for one in terms().values() for spelling in (one.name, *one.also)
    }


def _plain(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "[]_*" else letter for letter in text)
