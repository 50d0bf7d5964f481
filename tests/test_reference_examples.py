"""The examples of the reference run as they stand there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_classifiers import classifier

import headlight
from docs import reference
from models.contract.edits import HeadEdit

EXAMPLES = re.findall(
    r"\| `((?:edits|model|panels)\.[^`]+)` \|$", reference.FILE.read_text("utf-8"), re.MULTILINE
)
CODE = re.search(
    r"## Examples\n.*?```python\n(.*?)```", reference.FILE.read_text("utf-8"), re.DOTALL
).group(1)


def names(model: str) -> dict[str, Any]:
    """What the lines before the examples name, for another model than theirs too."""
    space: dict[str, Any] = {}
    exec(CODE.replace('"decoder"', repr(model)), space)
    return space


def run(example: str, space: Mapping[str, Any]) -> object:
    """What an example gives; of an edit the recording under it."""
    card = space["model"].card
    width = card.d_model
    kind = getattr(headlight.edits, example.removeprefix("edits.").partition("(")[0], None)
    if kind is not None and issubclass(kind, HeadEdit):
        width = card.d_model // card.n_head
    made = eval(example, {**space, "vector": np.zeros(width)})
    return made if kind is None else space["model"].record(space["text"], made)


@pytest.mark.slow
def test_every_example_runs_on_the_first_model_or_on_one_of_its_kind(tmp_path: Path) -> None:
    folder = classifier(tmp_path, "DistilBert")
    spaces = [
        names(each) for each in ("decoder", "encoder", "translator", f"hub:{folder}", "smollm2")
    ]
    elsewhere = []
    for example in EXAMPLES:
        refusals = []
        for space in spaces:
            try:
                assert run(example, space) is not None or "rotary" in example or "table" in example
                break
            except ValueError as why:
                refusals.append(str(why))
        assert len(refusals) < len(spaces), (example, refusals)
        elsewhere += [example] * bool(refusals)
    assert len(EXAMPLES) == sum(
        len(list(rows([])))
        for heading, rows in reference.TABLES.items()
        if heading in ("## Edits", "### Methods of a model", "### Panels")
    )
    assert len(elsewhere) < len(EXAMPLES) / 8, elsewhere
