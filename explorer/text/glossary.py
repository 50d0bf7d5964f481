"""The words of the field in plain English, from `glossary.toml`, ready for help texts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType

TERMS = Path(__file__).with_name("glossary.toml")
MOST = 4  # terms explained at one place: more is a page to read


@dataclass(frozen=True)
class Term:
    """A term, what it means in at most two sentences, other spellings of it, and related terms."""

    name: str
    means: str
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()


_READ = tomllib.loads(TERMS.read_text("utf-8"))
_QUOTED = re.compile(r"“(?!\[\w+\]”)[^”]*”")
EVERYDAY: tuple[str, ...] = tuple(_READ.pop("everyday"))


@cache
def terms() -> Mapping[str, Term]:
    """All terms by name, in the order of the file."""
    return MappingProxyType(
        {
            name: Term(
                name, entry["means"], tuple(entry.get("also", ())), tuple(entry.get("see", ()))
            )
            for name, entry in _READ.items()
        }
    )


def term(word: str) -> Term | None:
    """The term that goes by this name or spelling, capitals aside; None for a word that is not
    explained."""
    return _spellings().get(word.strip().casefold())


def meaning(*words: str) -> str:
    """The meanings of terms, for `help=`: a line each as Markdown. Raises KeyError for a word that
    is no term."""
    lines = []
    for word in words:
        one = term(word)
        if one is None:
            raise KeyError(word)
        lines.append(f"**{_plain(one.name)}**: {_plain(one.means)}")
    return "  \n".join(lines)


@lru_cache(maxsize=512)
def used(text: str, most: int = MOST) -> tuple[str, ...]:
    """The terms that a text uses, in its order, each once and at most so many: whole words, the
    longest spelling first, capitals aside. What stands in quotation marks is a reader's own, but
    for special tokens."""
    terms: dict[str, None] = {}
    own = _QUOTED.sub("", text.replace("\\", "").replace("*", ""))
    for match in _finder().finditer(own.casefold()):
        terms.setdefault(_spellings()[match[0]].name)
    return tuple(terms)[:most]


def explained(text: str, *more: str) -> str | None:
    """The meanings of the terms in a text, after those of `more`, for `help=`; None where it has
    none."""
    words = tuple(dict.fromkeys((*more, *used(text))))
    return meaning(*words) if words else None


def terms_in(text: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """All terms that a text uses, each with its meaning, as plain words, and the spellings that
    are it wherever they stand, without capitals."""
    used_terms = (terms()[name] for name in used(text, most=len(terms())))
    return tuple((one.name, one.means, _spelled(one)) for one in used_terms)


def _spelled(one: Term) -> tuple[str, ...]:
    spellings = (each.casefold() for each in (one.name, *one.also))
    return tuple(each for each in spellings if len(each) > 1 and each not in EVERYDAY)


@cache
def _finder() -> re.Pattern[str]:
    """Every spelling of two letters or more that is the term wherever it stands, in a text without
    capitals. By first letters: at most places none is looked for."""
    spellings = (each for one in terms().values() for each in _spelled(one))
    begun: dict[str, list[str]] = {}
    for each in sorted(spellings, key=len, reverse=True):
        begun.setdefault(each[0], []).append(re.escape(each[1:]))
    ways = "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in begun.items())
    return re.compile(rf"(?<!\w)(?:{ways})(?!\w)")


@cache
def _spellings() -> Mapping[str, Term]:
    return {
        spelling.casefold(): one for one in terms().values() for spelling in (one.name, *one.also)
    }


def _plain(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "[]_*" else letter for letter in text)
