"""A loaded model in other numbers: 64 bits, where a difference must not be rounding."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch

from models.model import Model
from models.model_names import MINE_PREFIX
from models.own_model import OwnModel

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def in_dtype(model: Model, dtype: Any) -> Model:
    """The model computing in "float32" or "float64" (or torch's own), under the name
    "mine:NAME-float64"; its weights are copied, and its recordings of our classes are of that kind.

    Raises ValueError for 16 bits, in which the sums of a stream cannot be followed, and for a model
    that does not run here."""
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"a model computes in {' or '.join(DTYPES)} here, not in {name}")
    called = model.name if name == "float32" else f"{MINE_PREFIX}{model.name}-{name}"
    if isinstance(model, OwnModel):
        if model.model.embedding.token.weight.dtype == DTYPES[name]:
            return model
        card = replace(
            model.card,
            name=called,
            fingerprint=f"{model.card.fingerprint}-{name[-2:]}",
            weights=f"{model.card.weights.partition(',')[0]}, computed in {name}",
        )
        return replace(model, card=card, model=copy.deepcopy(model.model).to(DTYPES[name]))
    if hasattr(model, "plan"):
        return _in_its_own_code(model, called, name)
    raise ValueError(f"{model.name} does not run here, so its numbers stay what they are")


def _in_its_own_code(model: Any, called: str, name: str) -> Model:
    """A Hugging Face model in its own code, in other numbers."""
    from models.pretrained import hf_model

    if next(model.model.parameters()).dtype == DTYPES[name]:
        return model
    own = copy.deepcopy(model.model).to(DTYPES[name])
    own.set_attn_implementation("eager")
    fingerprint = f"{model.card.fingerprint}-{name[-2:]}"
    made = hf_model.handle_of(own, model.tokenizer, called, fingerprint, name)
    return replace(made, chat=model.chat, languages=model.languages, start=model.start)
