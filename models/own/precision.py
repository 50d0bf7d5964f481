"""A loaded model in other numbers, 64 bits, where a difference must not be rounding; and on another
device."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch

from models.contract.model import Model
from models.model_names import MINE_PREFIX
from models.network.devices import device_of, running_on
from models.network.own_model import OwnModel

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def computing(model: Model, dtype: Any, device: Any = "cpu") -> Model:
    """The model computing in "float32" or "float64" (or torch's own) on a device, under the name
    "mine:NAME-float64", "mine:NAME-cuda:1"; its weights are copied, and its recordings of our
    classes are of that kind.

    Raises ValueError for 16 bits, in which the sums of a stream cannot be followed, for a device
    that is not there, and for a model that does not run here."""
    name, place = str(dtype).removeprefix("torch."), device_of(device)
    if name not in DTYPES:
        raise ValueError(f"a model computes in {' or '.join(DTYPES)} here, not in {name}")
    if not isinstance(model, OwnModel) and not hasattr(model, "plan"):
        raise ValueError(f"{model.name} does not run here, so its numbers stay what they are")
    own: Any = model
    first = next(own.network.parameters())
    if first.dtype == DTYPES[name] and first.device == place:
        return model
    changes = [name] * (first.dtype != DTYPES[name]) + [str(place)] * (place.type != "cpu")
    called = "-".join([f"{MINE_PREFIX}{model.name}", *changes])
    mark = f"{model.card.fingerprint}-{'-'.join(changes)}"
    network = copy.deepcopy(own.network).to(place, DTYPES[name])
    if isinstance(model, OwnModel):
        stored = model.card.weights.partition(",")[0]
        at = "" if place.type == "cpu" else f" on {place}"
        card = replace(
            model.card, name=called, fingerprint=mark, weights=f"{stored}, computed in {name}{at}"
        )
        return replace(model, card=card, network=network)
    return _in_its_own_code(model, network, called, mark, " on ".join([name, *changes[1:]]))


def _in_its_own_code(model: Any, network: Any, called: str, mark: str, weights: str) -> Model:
    """A Hugging Face model in its own code, as `model` but with this network."""
    from models.pretrained import hf_model

    network.set_attn_implementation("eager")
    with running_on(next(network.parameters()).device):
        converted = hf_model.from_network(network, model.tokenizer, called, mark, weights)
    return replace(converted, chat=model.chat, languages=model.languages, start=model.start)
