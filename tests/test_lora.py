"""A LoRA adapter beside the weights of a model: what runs is W + scale x B A, in both ways of
running it; what is no plain LoRA is refused by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
import transformers
from in_own_code import TEXT
from safetensors.torch import load_file, save_file
from tolerances import PASSED

from models.pretrained.model_files import NotLoaded
from models.runtime import registry

pytestmark = [pytest.mark.slow, pytest.mark.parity]
RANK = 2
LAYERS = {
    "llama": ("self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"),
    "gpt2": ("attn.c_attn", "attn.c_proj"),  # stored (in, out), the second square
    "bert": ("attention.self.query",),
}
SETTINGS: list[tuple[str, dict, float]] = [
    ("llama", {"lora_alpha": 6}, 3.0),
    ("gpt2", {"lora_alpha": 5, "fan_in_fan_out": True}, 2.5),
    ("gpt2", {"lora_alpha": 2, "use_rslora": True}, 2 / RANK**0.5),
    ("bert", {"lora_alpha": 1, "alpha_pattern": {"attention.self.query": 4}}, 2.0),
]


def with_adapter(folder: Path, family: str, **settings: object) -> dict[str, torch.Tensor]:
    """Put an adapter as peft saves it into a folder; what each layer's matrix (out, in) gains
    before it is scaled, by the name of its weight."""
    model = transformers.AutoModelForCausalLM if family != "bert" else transformers.BertForMaskedLM
    gained, tensors = {}, {}
    torch.manual_seed(7)
    for name, module in model.from_pretrained(folder).named_modules():
        if name.endswith(LAYERS[family]):
            shape = tuple(module.weight.shape)
            n_out, n_in = shape[::-1] if family == "gpt2" else shape
            a, b = torch.randn(RANK, n_in) / 4, torch.randn(n_out, RANK) / 4
            gained[f"{name}.weight"] = b @ a
            tensors[f"base_model.model.{name}.lora_A.weight"] = a
            tensors[f"base_model.model.{name}.lora_B.weight"] = b
    save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 1, **settings}
    (folder / "adapter_config.json").write_text(json.dumps(config), "utf-8")
    return gained


@pytest.mark.parametrize(("family", "settings", "scale"), SETTINGS)
def test_the_merged_model_runs_in_both_ways(
    family: str, settings: dict, scale: float, tiny_folder: Callable, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_folder(family), tmp_path / "model")
    plain = registry.load(f"ours:{folder}").card
    gained = with_adapter(folder, family, **settings)
    kind = json.loads((folder / "config.json").read_text())["architectures"][0]
    theirs = getattr(transformers, kind).from_pretrained(tiny_folder(family)).eval()
    with torch.no_grad():
        for name, added in gained.items():
            theirs.get_parameter(name).add_(scale * (added.T if family == "gpt2" else added))
    for way in ("ours:", "hub:"):
        model = registry.load(f"{way}{folder}")
        recording = model.record(TEXT)
        with torch.no_grad():
            logits = theirs(torch.tensor(recording.streams[0].ids)[None]).logits[0, -1].numpy()
        last = len(recording.streams[0].tokens) - 1
        found = model.logits(recording, recording.streams[0].name, last)
        np.testing.assert_allclose(found, logits, atol=PASSED)
        assert "with its LoRA adapter merged" in model.card.weights
        assert model.card.fingerprint != plain.fingerprint
    assert registry.trial_load(str(folder))[0] == f"ours:{folder}"


OTHER: dict[str, tuple[dict, str]] = {
    "another kind": ({"peft_type": "IA3"}, "is of the type IA3, and plain LoRA alone is merged"),
    "DoRA": ({"use_dora": True}, "is DoRA (use_dora), and plain LoRA"),
    "PiSSA": ({"init_lora_weights": "pissa_niter_4"}, "begun with pissa_niter_4, which changes"),
    "no number": ({"lora_alpha": "4"}, "says lora_alpha is no number"),
    "yes": ({"lora_alpha": True}, "says lora_alpha is no number"),
    "nothing": ({"lora_alpha": None}, "says lora_alpha is no number"),
    "no end": ({"lora_alpha": float("inf")}, "says lora_alpha is not between"),
    "NaN": ({"lora_alpha": float("nan")}, "says lora_alpha is not between"),
    "400 digits": ({"lora_alpha": 10**400}, "says lora_alpha is not between"),
    "400 digits below 0": ({"lora_alpha": -(10**400)}, "says lora_alpha is not between"),
    "1e38": ({"lora_alpha": 1e38}, "says lora_alpha is not between -1,000,000 and 1,000,000"),
    "400 digits of one layer": (
        {"alpha_pattern": {"q_proj": 10**400}},
        "says lora_alpha is not between",
    ),
    "a list of one layer": ({"alpha_pattern": {"q_proj": [1]}}, "says lora_alpha is no number"),
    "a pattern": ({"alpha_pattern": {"layers.[0-9]+.self_attn": 4}}, "by patterns of names"),
}
BEFORE = "base_model.model.model.layers.0.self_attn."
# Tensors that take the place of others, None for one that is taken away.
ODD: dict[str, tuple[dict[str, torch.Tensor | None], str]] = {
    "a half": ({f"{BEFORE}q_proj.lora_B.weight": None}, "half of a pair"),
    "a whole layer": ({"base_model.model.lm_head.weight": torch.ones(2, 2)}, "more than pairs"),
    "another model's": (
        {
            f"{BEFORE}z.lora_A.weight": torch.ones(2, 2),
            f"{BEFORE}z.lora_B.weight": torch.ones(2, 2),
        },
        "layers.0.self_attn.z.weight, which the weights lack",
    ),
    "another size": ({f"{BEFORE}q_proj.lora_B.weight": torch.ones(8, 2)}, "does not fit"),
    "no number": ({f"{BEFORE}q_proj.lora_A.weight": torch.full((2, 32), torch.nan)}, "NaN"),
    "beyond 32 bits": (
        {
            f"{BEFORE}q_proj.lora_A.weight": torch.full((2, 32), 1e30),
            f"{BEFORE}q_proj.lora_B.weight": torch.full((32, 2), 1e30),
        },
        "NaN or infinite",
    ),
    "a product of 4 TB": (
        {
            f"{BEFORE}q_proj.lora_A.weight": torch.ones(1, 10**6),
            f"{BEFORE}q_proj.lora_B.weight": torch.ones(10**6, 1),
        },
        "does not fit",
    ),
}


@pytest.mark.parametrize("kind", [*OTHER, *(f"tensors: {each}" for each in ODD)])
def test_what_is_no_plain_lora_is_refused_by_name(
    kind: str, tiny_folder: Callable, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_folder("llama"), tmp_path / "model")
    settings, says = OTHER.get(kind, ({}, ""))
    with_adapter(folder, "llama", **settings)
    if not says:
        changes, says = ODD[kind.removeprefix("tensors: ")]
        tensors: dict = load_file(folder / "adapter_model.safetensors") | changes
        kept = {name: each for name, each in tensors.items() if each is not None}
        save_file(kept, folder / "adapter_model.safetensors", {"format": "pt"})
    for way in ("ours:", "hub:"):
        with pytest.raises(NotLoaded) as refused:
            registry.load(f"{way}{folder}")
        assert says in str(refused.value) and str(refused.value).endswith(".")


def test_an_adapter_without_safetensors_is_not_passed_over(
    tiny_folder: Callable, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_folder("llama"), tmp_path / "model")
    with_adapter(folder, "llama")
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(NotLoaded, match="adapter_config.json in .* and no adapter_model.safetens"):
        registry.load(f"ours:{folder}")
    (folder / "adapter_config.json").unlink()
    assert registry.load(f"ours:{folder}").card.n_vocab == tiny.N_VOCAB
