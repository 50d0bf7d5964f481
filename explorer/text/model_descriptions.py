"""The purpose of each model, its group in the menu of models, and texts that suit it, from
model_descriptions.toml beside this file."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

LACKING = "-no-"  # stands in the names of models that were trained without a part
# Headings of the menu of models.
GROUPS = {
    "real": "Real models",
    "paper": "The architectures of the paper, trained for this app",
    "small": "Small models that learned one thing",
    "yours": "Yours",
}


@cache
def _descriptions() -> dict[str, dict]:
    return tomllib.loads(Path(__file__).with_name("model_descriptions.toml").read_text("utf-8"))


def purpose(name: str) -> str:
    """The purpose of a model as the end of a sentence that begins with its name; "" for an unknown
    one. `name` may be a checkpoint, `model@step`."""
    base, _, step = name.partition("@")
    whole, lacking, part = base.partition(LACKING)
    if lacking and whole in _descriptions():
        return f"was trained without {part}"
    description = _descriptions().get(base, {}).get("purpose", "")
    return f"after {int(step):,} steps" if step.isdecimal() else description


def group(name: str) -> str:
    """The group of a model in the menu, one of GROUPS; "yours" for one that a reader opened."""
    base = name.partition("@")[0].partition(LACKING)[0]
    return _descriptions().get(base, {}).get("group", "yours")


def language(name: str) -> str:
    """The code of the language that a model has read alone; "" where none is known."""
    return _descriptions().get(name.partition("@")[0], {}).get("language", "")


def examples(name: str) -> dict[str, str]:
    """Texts that suit a model, each under a short name; none where the app's own do."""
    return _descriptions().get(name.partition("@")[0].partition(LACKING)[0], {}).get("examples", {})
