"""A LoRA adapter in a model's folder: for some of its matrices two small ones, whose product is
added to them (Hu et al., 2021). It is merged when the weights are read, W + scale x B A, as peft
does, so that what runs is the model that was trained. What else peft knows is refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor

from models.pretrained import model_files
from models.pretrained.model_files import ADAPTER, NotLoaded, remedy
from models.pretrained.model_files import ADAPTER_WEIGHTS as WEIGHTS

MOST_ALPHA = 1_000_000  # a thousand times what anyone trains with
PLAIN = re.compile(r"[\w.]+")  # a layer's name, which peft reads as a regular expression
BEFORE = "base_model.model."  # every name in an adapter's file begins so
# Settings of peft under which an adapter is more than W + scale x B A, and what each makes of it.
OTHERWISE = {
    "use_dora": "DoRA",
    "use_qalora": "QALoRA",
    "use_bdlora": "block-diagonal LoRA",
    "alora_invocation_tokens": "activated LoRA",
    "lora_bias": "LoRA with biases",
    "layer_replication": "LoRA with replicated layers",
    "target_parameters": "LoRA of parameters that are no layers",
    "trainable_token_indices": "LoRA with trained tokens",
    "arrow_config": "Arrow",
    "megatron_config": "LoRA of Megatron",
}
STORED_IN_OUT = ("gpt2", "openai-gpt")  # families whose layers are transformers' Conv1D
# Ways to begin that change the model's own weights too, by the start of their name.
CHANGED_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")


class Update(NamedTuple):
    """Matrix that is added to the matrix `target`, (out, in): scale x b (out, r) @ a (r, in)."""

    target: str
    a: Tensor
    b: Tensor
    scale: float

    def merged(self, weight: Tensor, name: str, turned: bool) -> Tensor:
        """A weight with what is added, float32; `turned`: it is stored (in, out). Raises NotLoaded
        where it is of another size."""
        shape = (len(self.b), self.a.shape[1])  # the product of two long matrices may be large
        if tuple(weight.shape) != (shape[::-1] if turned else shape):
            raise NotLoaded(
                f"The LoRA adapter of {name} does not fit {self.target[:80]}; {remedy(name)}."
            )
        added = self.scale * (self.b.float() @ self.a.float())
        return weight.float() + (added.T if turned else added)


def files(folder: Path) -> list[Path]:
    """The adapter's files in a folder, none where it has no adapter."""
    return [folder / ADAPTER, folder / WEIGHTS] if (folder / ADAPTER).is_file() else []


def note(folder: Path) -> str:
    """Note on a card of the weights of a folder with an adapter; "" without one."""
    return ", with its LoRA adapter merged" if files(folder) else ""


def check(folder: Path, name: str) -> None:
    """Raises NotLoaded where a folder's adapter cannot be merged."""
    if not files(folder):
        return
    check_kind(model_files.read_object(folder / ADAPTER, name, "no adapter"), name)
    if not (folder / WEIGHTS).is_file():
        raise NotLoaded(
            f"There is an {ADAPTER} in {name} and no {WEIGHTS}; {remedy(name)}, or remove the "
            f"{ADAPTER} to see the model without it."
        )
    model_files.check_types(list(model_files.header_of(folder / WEIGHTS, name)), name)
    stored = {key for key, _, _ in model_files.headers(folder, name)}
    for update in updates(folder, name):
        if find(update.target, stored) is None:
            raise NotLoaded(_refusal(f"for {update.target[:80]}, which the weights lack", name))


def check_kind(config: dict, name: str) -> None:
    """Raises NotLoaded where an adapter's configuration is of another kind than plain LoRA."""
    kind = config.get("peft_type")
    if kind != "LORA":
        raise NotLoaded(_refusal(f"of the type {str(kind)[:30]}", name))
    for key, what in OTHERWISE.items():
        if config.get(key):
            raise NotLoaded(_refusal(f"{what} ({key})", name))
    begun = config.get("init_lora_weights")
    if isinstance(begun, str) and begun.lower().startswith(CHANGED_BASE):
        raise NotLoaded(_refusal(f"begun with {begun[:30]}, which changes the weights too", name))


def _refusal(what: str, name: str) -> str:
    is_here = model_files.is_folder(model_files.bare(name))
    advice = f"remove its {ADAPTER} to see the model without it" if is_here else "choose another"
    return f"The adapter of {name} is {what}, and plain LoRA alone is merged here; {advice}."


def updates(folder: Path, name: str) -> Iterator[Update]:
    """Updates of an adapter, a matrix at a time; nothing for a folder without one. Raises NotLoaded
    for what is no pair of matrices."""
    if not files(folder):
        return
    config = model_files.read_object(folder / ADAPTER, name, "no adapter")
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        keys = sorted(file.keys())
        for key in keys:
            place, _, part = key.removeprefix(BEFORE).rpartition(".lora_")
            if part not in ("A.weight", "B.weight") or not place:
                raise NotLoaded(_refusal(f"more than pairs of matrices ({key[:80]})", name))
            if part == "B.weight":
                continue
            if (other := key.removesuffix("A.weight") + "B.weight") not in keys:
                raise NotLoaded(_refusal(f"half of a pair ({key[:80]})", name))
            a, b = file.get_tensor(key), file.get_tensor(other)
            if a.dim() != 2 or b.dim() != 2 or len(a) != b.shape[1] or not len(a):
                raise NotLoaded(_refusal(f"no pair of matrices ({key[:80]})", name))
            if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
                raise NotLoaded(model_files.not_finite(name, key))
            yield Update(f"{place}.weight", a, b, _scale(config, place, len(a), name))


def _scale(config: dict, place: str, rank: int, name: str) -> float:
    """alpha / r, or alpha / sqrt(r) for rank-stabilised LoRA; alpha by layer where it differs."""
    by_layer = config.get("alpha_pattern") or {}
    if not isinstance(by_layer, dict) or not all(map(PLAIN.fullmatch, by_layer)):
        raise NotLoaded(_refusal("LoRA with alpha by patterns of names (alpha_pattern)", name))
    alpha = config.get("lora_alpha", 8)
    alpha = next((each for key, each in by_layer.items() if f".{place}".endswith(f".{key}")), alpha)
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)):
        raise NotLoaded(f"The {ADAPTER} of {name} says lora_alpha is no number; {remedy(name)}.")
    if not -MOST_ALPHA <= alpha <= MOST_ALPHA:  # compared as it is: no float may hold it
        raise NotLoaded(
            f"The {ADAPTER} of {name} says lora_alpha is not between {-MOST_ALPHA:,} and "
            f"{MOST_ALPHA:,}; {remedy(name)}."
        )
    return alpha / (sqrt(rank) if config.get("use_rslora") else rank)


def find(target: str, keys: set[str]) -> str | None:
    """The name among `keys` of the matrix that an adapter calls `target`; one of the two may have a
    prefix more. None where there is none, or several."""
    if target in keys:
        return target
    matches = [key for key in keys if target.endswith(f".{key}") or key.endswith(f".{target}")]
    return matches[0] if len(matches) == 1 else None
