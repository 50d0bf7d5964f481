"""The purpose of each model, and texts that suit it, from models.toml beside this file."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

LACKING = "-no-"  # stands in the names of models that were trained without a part


@cache
def _descriptions() -> dict[str, dict]:
    return tomllib.loads(Path(__file__).with_name("model_descriptions.toml").read_text("utf-8"))


def purpose(name: str) -> str:
    """The purpose of a model, in a few words; "" for an unknown one. `name` may be a checkpoint,
    `model@step`."""
    base, _, step = name.partition("@")
    whole, lacking, part = base.partition(LACKING)
    if lacking and whole in _descriptions():
        return f"{whole}, trained without {part}"
    description = _descriptions().get(base, {}).get("purpose", "")
    return f"after {int(step):,} steps" if step.isdecimal() else description


def examples(name: str) -> dict[str, str]:
    """Texts that suit a model, each under a short name; none where the app's own do."""
    return _descriptions().get(name.partition("@")[0].partition(LACKING)[0], {}).get("examples", {})
