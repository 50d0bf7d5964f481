"""Which models come with the project, and where they lie. Knows folders and cards, and needs no torch."""

from __future__ import annotations

import json
from pathlib import Path

WEIGHTS = Path(__file__).parent / "weights"
# In the order people are offered them; any other model comes after these.
FIRST = ("encoder", "decoder", "translator", "induction", "copy", "reverse", "grammar", "grammar-masked")


def names() -> tuple[str, ...]:
    """The models whose weights are shipped."""
    found = {card.parent.name for card in WEIGHTS.glob("*/card.json")}
    return (*(name for name in FIRST if name in found), *sorted(found - {*FIRST}))


def folder(name: str) -> Path:
    """Where a shipped model lies. Raises ValueError for a name that is not shipped."""
    if name not in names():
        raise ValueError(f"no model is called {name!r}; there are {', '.join(names())}")
    return WEIGHTS / name


def card(name: str) -> dict:
    """A shipped model's card: sizes under `config`, and data, recipe, scores and limits for people."""
    return json.loads((folder(name) / "card.json").read_text("utf-8"))


def checkpoints(name: str) -> tuple[str, ...]:
    """The earlier weights shipped of a model, as names that `load` knows, "induction@400", earliest first."""
    return tuple(f"{name}@{step}" for step in card(name).get("checkpoints", ()))


def write_card(name: str, card: dict) -> None:
    """Write a model's card as JSON that a person can read."""
    (WEIGHTS / name / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", "utf-8")
