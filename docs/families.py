"""How far what is recorded lies from what transformers' own eager code computes, by family:
`python -m docs.families` measures all of them, and writes docs/families.json and docs/families.md.

Each family is a tiny model with random weights, gains and biases of `tests/tiny.py`, saved and
opened as a folder from anywhere is. `python -m docs.families bert llama` prints some and writes
nothing."""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers

from models import registry
from models.model import Model
from models.pretrained.weight_conversion import CONVERSIONS, SUPPORTED_FAMILIES
from models.recording import Recording, Stream
from models.version import VERSION

sys.path.append(str(Path(__file__).parent.parent / "tests"))
import tiny
from in_own_code import SECOND, TEXT, oracle

DATA, PAGE = (Path(__file__).with_name(f"families.{ending}") for ending in ("json", "md"))
WAYS = {"hub:": "own code", "ours:": "Headlight's classes"}
KINDS = ("attention", "hidden states", "logits")
ENTERS = ("embed", "embed+pos", "embed.normed")

HEAD = """# Families

Largest difference between what Headlight records of a model and what transformers' own eager code
computes of the same tokens, over every weight of every head, every vector between two layers and
every logit, in 32 bits. A model is tiny and random, with random gains and biases too
(`tests/tiny.py`), so a sum that leaves one out is seen. Rounding alone comes to some 1e-6 in
numbers of this size; `tests/tolerances.py` says what a test allows.

"Own code": the model's class in transformers, with what is heard by hooks. "Headlight's classes":
the same weights in Headlight's own code, where it has the family.

"""
FOOT = """
Measured with {versions}. Numbers change in their last digits with another processor.

`python -m docs.families` measures all of them and writes this page and `families.json` anew;
`python -m docs.families bert llama` prints some. `tests/test_families.py` measures two of them in
every run of the tests, and `make families` all.
"""


def errors(family: str, folder: Path) -> dict[str, dict[str, float]]:
    """By way and kind, the largest error of a family's model in a folder."""
    ways = [way for way in WAYS if way == "hub:" or family in CONVERSIONS]
    return {WAYS[way]: of_way(registry.load(f"{way}{folder}"), folder) for way in ways}


def of_way(model: Model, folder: Path) -> dict[str, float]:
    """The largest error of each kind of a loaded model."""
    target = SECOND if model.card.kind == "encoder-decoder" else None
    recording = model.record(TEXT, (), target)
    _, true = oracle(folder, recording)
    last = recording.streams[-1]
    logits = np.stack([model.logits(recording, last.name, at) for at in range(len(last.ids))])
    pairs: dict[str, Iterable[tuple[np.ndarray, torch.Tensor]]] = {
        "attention": _patterns(recording, true),
        "hidden states": _states(recording, true),
        "logits": [(logits, true.logits[0])],
    }
    return {
        kind: max(float(np.abs(got - expected.numpy()).max()) for got, expected in pairs[kind])
        for kind in KINDS
    }


def _patterns(recording: Recording, true: Any) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
    for attention in recording.attention:
        place, _, own = attention.name.partition(" ")
        name = "cross_attentions" if place == "cross" else f"{place}_attentions"
        name = name if own or place == "cross" else "attentions"
        yield attention.pattern, torch.cat(true[name])


def _states(recording: Recording, true: Any) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
    for stream in recording.streams:
        one = len(recording.streams) == 1
        states = true["hidden_states" if one else f"{stream.name}_hidden_states"]
        for site, state in zip(sites_between(stream, len(states) - 1), states, strict=True):
            yield stream.at(site), state[0]


def sites_between(stream: Stream, n_layer: int) -> list[str]:
    """The sites of a stream that transformers calls its hidden states."""
    sites = [[each for each in ENTERS if each in stream.sites][-1]]
    for layer in range(n_layer):
        normed = f"{layer}.ffn.normed"
        sites.append(normed if normed in stream.sites else f"{layer}.ffn.sum")
    return [*sites[:-1], "final.normed"] if "final.normed" in stream.sites else sites


def measured(families: Iterable[str]) -> dict[str, dict[str, dict[str, float]]]:
    """The errors of several families by `model_type`."""
    made = {}
    with tempfile.TemporaryDirectory() as root:
        for family in families:
            (folder := Path(root) / family).mkdir()
            made[family] = errors(family, tiny.build(family, folder))
    return made


def versions() -> dict[str, str]:
    """Versions of the software that the numbers depend on."""
    return {
        "Headlight": VERSION,
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
        "torch": torch.__version__,
        "Python": platform.python_version(),
    }


def document(data: dict[str, Any]) -> str:
    """The page of what was measured."""
    columns = [f"{way}: {kind}" for way in WAYS.values() for kind in KINDS]
    lines = [f"| family | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    names = {each.model_type: each.name for each in SUPPORTED_FAMILIES}
    for family, ways in data["families"].items():
        cells = [
            f"{ways[way][kind]:.1g}" if way in ways else ""
            for way in WAYS.values()
            for kind in KINDS
        ]
        lines.append(f"| {names[family]} | {' | '.join(cells)} |")
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    return HEAD + "\n".join(lines) + "\n" + FOOT.format(versions=versions)


def main(families: list[str]) -> None:
    """Measure and write all, or print some."""
    every = [each.model_type for each in SUPPORTED_FAMILIES]
    if unknown := [each for each in families if each not in every]:
        sys.exit(f"{', '.join(unknown)} is none of {', '.join(every)}")
    data = {"versions": versions(), "families": measured(families or every)}
    if families:
        print(json.dumps(data, indent=2))
        return
    DATA.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
    PAGE.write_text(document(data), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
