"""Every type of model that the installed transformers knows: whether it opens, what it shows, and
how far what is recorded lies from what transformers' own eager code computes.
`python -m docs.families` tries all of them, and writes docs/families.json and docs/families.md.

Each is a tiny model with random weights, gains and biases, saved and opened as a folder from
anywhere is: those that our classes run by `tests/tiny.py`, all others by `tests/tiny_types.py`.
`python -m docs.families bert llama` prints some and writes nothing."""

from __future__ import annotations

import json
import platform
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from models.contract.model import Model
from models.contract.recording import Recording, Stream
from models.pretrained import hf_model, hub, model_files
from models.pretrained.model_files import NotLoaded
from models.pretrained.weight_conversion import CONVERSIONS
from models.runtime import registry
from models.version import VERSION

sys.path.append(str(Path(__file__).parent.parent / "tests"))
import tiny
import tiny_types
from in_own_code import SECOND, TEXT, oracle

DATA, PAGE = (Path(__file__).with_name(f"families.{ending}") for ending in ("json", "md"))
OWN_CODE, OUR_CLASSES = "own code", "Headlight's classes"
KINDS = ("attention", "hidden states", "logits")
ENTERS = ("embed", "embed+pos", "embed.normed")
SHOWS = ("attention", "q, k, v", "residual stream", "norms", "positions", "predicts")
ATTENTION = {"encoder": "self", "decoder": "self, causal", "encoder-decoder": "self, causal, cross"}
NAME = "NAME"  # in the sentences of refusals

HEAD = """# Families

Each of the {all} types of model that transformers {version} knows was tried with a tiny random
model. Its gains and biases are random too, so a sum that leaves one out is seen. {shows} open. Of
each stands here what it shows, and the largest difference between what Headlight records of it and
what transformers' own eager code computes of the same tokens: over every weight of every head,
every vector between two layers that is recorded, and every logit, in 32 bits. Rounding alone comes
to some 1e-6 in numbers of this size; `tests/tolerances.py` says what a test allows. "Our classes"
is the largest of the three where Headlight's own classes run the same weights.

"""
NOT_OPENED = """
## What does not open

{refused} types are refused, each in the sentence that is read by who opens such a model.

"""
UNTRIED = """
## What was not tried

Of these {untried} the code does not run with small sizes by itself, so nothing is known of them.

"""
FOOT = """
Measured with {versions}. Numbers change in their last digits with another processor.

`python -m docs.families` tries all of them and writes this page and `families.json` anew;
`python -m docs.families bert llama` prints some. `tests/test_families.py` tries several in every
run of the tests, and `make families` all.
"""


def errors(model: Model, folder: Path) -> dict[str, float]:
    """The largest error of each kind of a loaded model."""
    target = SECOND if model.card.kind == "encoder-decoder" else None
    recording = model.record(TEXT, (), target)
    network, true = oracle(folder, recording)
    kinds = getattr(network.config, "layer_types", None) or ()
    last = recording.streams[-1]
    pairs: dict[str, Iterable[tuple[np.ndarray, torch.Tensor]]] = {
        "attention": _patterns(recording, true),
        "hidden states": _states(recording, true, kinds),
    }
    if model.capabilities.logits:
        pairs["logits"] = [(model.logits(recording, last.name), true.logits[0])]
    return {
        kind: max(float(np.abs(got - expected.numpy()).max()) for got, expected in of)
        for kind, of in pairs.items()
    }


def _patterns(recording: Recording, true: Any) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
    for attention in recording.attention:
        place, _, own = attention.name.partition(" ")
        name = "cross_attentions" if place == "cross" else f"{place}_attentions"
        name = name if own or place == "cross" else "attentions"
        given = [each for each in true[name] if each is not None]
        for pattern, expected in zip(attention.pattern, given, strict=True):
            yield pattern, expected[0, ..., : pattern.shape[-1]]  # without a learned sink


def _states(
    recording: Recording, true: Any, kinds: Sequence[str]
) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
    for stream in recording.streams:
        one = len(recording.streams) == 1
        states = true["hidden_states" if one else f"{stream.name}_hidden_states"]
        for site, at in states_of(recording, stream, len(states) - 1, kinds):
            yield stream.at(site), states[at][0]


def states_of(
    recording: Recording, stream: Stream, n_layer: int, kinds: Sequence[str]
) -> Iterator[tuple[str, int]]:
    """The sites of a stream that transformers calls hidden states, and the place of each there: of
    a hybrid those of the layers that have attention. kinds: of its layers, where an FFN may be one
    of its own."""
    yield [each for each in ENTERS if each in stream.sites][-1], 0
    normed = "final.normed" in stream.sites
    numbers = next(each.layers for each in recording.attention if each.query == stream.name)
    for at, layer in enumerate(numbers if len(numbers) else range(n_layer)):
        end = int(layer) + 1 + (kinds[layer + 1 : layer + 2] in (["mlp"], ["moe"]))
        if end < n_layer or not normed:
            site = f"{at}.ffn.normed"
            yield site if site in stream.sites else f"{at}.ffn.sum", end
    if normed:
        yield "final.normed", n_layer


def shown(model: Model) -> dict[str, str]:
    """The abilities of a loaded model, by column of the table."""
    offers = model.capabilities
    words = "next word" if model.card.kind != "encoder" else "hidden word"
    return {
        "attention": ATTENTION[offers.kind],
        "q, k, v": "yes" if offers.opens else "patterns alone",
        "residual stream": "every sub-layer" if offers.law else "after each layer",
        "norms": offers.norm or "",
        "positions": offers.positions or "none",
        "predicts": words if offers.logits else "",
    }


def tried(model_type: str, folder: Path) -> dict[str, Any]:
    """The trial of a type: `shows` and its errors by way, or `refused`, a sentence, or `untried`,
    why there is no tiny model of it."""
    try:
        expect_taken(tiny_types.config_of(model_type), folder)
        build = tiny.build if model_type in tiny.MODELS else tiny_types.save
        build(model_type, folder)
        model = hf_model.load(str(folder), name=NAME)
    except NotLoaded as error:
        if model_files.remedy(NAME) in str(error):  # it blames the files, which were made here
            return {"untried": hub.first_line(error.__cause__ or error)}
        return {"refused": str(error)}
    except Exception as error:  # a family's code, with sizes from here
        try:
            expect_taken(CONFIG_MAPPING[model_type](), folder)
        except NotLoaded as other:
            return {"refused": str(other)}
        except Exception:  # it has no configuration by itself
            pass
        return {"untried": hub.first_line(error)}
    found = {"shows": shown(model), OWN_CODE: errors(model, folder)}
    if model_type in CONVERSIONS:
        found[OUR_CLASSES] = errors(registry.load(f"ours:{folder}"), folder)
    return found


def expect_taken(config: transformers.PreTrainedConfig, folder: Path) -> None:
    """Write a configuration into a folder. Raises NotLoaded where no model of it is taken."""
    config.save_pretrained(folder)
    hub.check_config(model_files.read_config(folder, NAME), NAME)


def measured(types: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The trials of several types, by `model_type`."""
    made = {}
    with tempfile.TemporaryDirectory() as root, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at, model_type in enumerate(types):
            (folder := Path(root) / str(at)).mkdir()
            made[model_type] = tried(model_type, folder)
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
    """The page of what was found."""
    families = data["families"]
    by_kind = {
        kind: {name: each for name, each in families.items() if kind in each}
        for kind in ("shows", "refused", "untried")
    }
    counts = {kind: len(each) for kind, each in by_kind.items()}
    columns = ["type", *SHOWS, *(f"{kind}, difference" for kind in KINDS), "our classes"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [_row(name, each) for name, each in by_kind["shows"].items()]
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    head = HEAD.format(all=len(families), version=data["versions"]["transformers"], **counts)
    refused = NOT_OPENED.format(**counts) + _listed(by_kind["refused"], "refused")
    untried = UNTRIED.format(**counts) + _listed(by_kind["untried"], "untried")
    return head + "\n".join(lines) + "\n" + refused + untried + FOOT.format(versions=versions)


def _row(name: str, found: dict[str, Any]) -> str:
    own, ours = found[OWN_CODE], found.get(OUR_CLASSES)
    cells = [f"`{name}`", *(found["shows"][each] for each in SHOWS)]
    cells += [f"{own[kind]:.1g}" if kind in own else "" for kind in KINDS]
    return f"| {' | '.join([*cells, f'{max(ours.values()):.1g}' if ours else ''])} |"


def _listed(families: dict[str, dict[str, str]], kind: str) -> str:
    """Types by what is said of them, those of the rarest sentence first."""
    names: dict[str, list[str]] = {}
    for name, each in families.items():
        said = each[kind].replace(f"({name})", "(its type)").replace(f"'{name}'", "its own")
        names.setdefault(said, []).append(f"`{name}`")
    listed = sorted(names.items(), key=lambda each: len(each[1]))
    return "".join(f"- {', '.join(of)}: {said}\n" for said, of in listed)


def main(types: list[str]) -> None:
    """Try and write all, or print some."""
    if unknown := [each for each in types if each not in CONFIG_MAPPING]:
        sys.exit(f"transformers {transformers.__version__} knows no {', '.join(unknown)}")
    data = {"versions": versions(), "families": measured(types or sorted(CONFIG_MAPPING))}
    if types:
        print(json.dumps(data, indent=2))
        return
    DATA.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
    PAGE.write_text(document(data), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
