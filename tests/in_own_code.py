"""Hugging Face models in their own code, beside what transformers itself says of them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import transformers

from models.contract import edits
from models.contract.recording import Recording
from models.pretrained import hf_source
from models.pretrained.hf_model import HFModel

TEXT = "The cat sat on the café's mat, unlocked"


SECOND = "the old dog ran"


# Without a past, beside which some decoders see what comes after.
ALL = {"output_attentions": True, "output_hidden_states": True, "use_cache": False}


def recorded(model: HFModel, *changes: edits.Edit) -> Recording:
    return hf_source.record(model, TEXT, changes, SECOND if model.start is not None else None)


def oracle(folder: Path, recording: Recording) -> tuple[torch.nn.Module, object]:
    """The model as transformers itself loads it, with its own eager attention, and what it says of
    the very same tokens."""
    kind = getattr(
        transformers, json.loads((folder / "config.json").read_text())["architectures"][0]
    )
    model = kind.from_pretrained(folder, attn_implementation="eager").eval()
    inputs = {"input_ids": torch.tensor(recording.streams[0].ids)[None]}
    if len(recording.streams) == 2:
        inputs["decoder_input_ids"] = torch.tensor(recording.streams[1].ids)[None]
    with torch.no_grad():
        return model, model(**inputs, **ALL)


PROJECTIONS = {
    "bert": ("bert.encoder.layer.0.attention.output.dense", "self", "0.attn.wrote"),
    "distilbert": ("distilbert.transformer.layer.0.attention.out_lin", "self", "0.attn.wrote"),
    "albert": (
        "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.dense",
        "self",
        "0.attn.wrote",
    ),
    "opt": ("model.decoder.layers.0.self_attn.out_proj", "self", "0.attn.wrote"),
    "llama": ("model.layers.0.self_attn.o_proj", "self", "0.attn.wrote"),
    "qwen2": ("model.layers.0.self_attn.o_proj", "self", "0.attn.wrote"),
    "t5": ("decoder.block.0.layer.1.EncDecAttention.o", "cross", "0.cross.wrote"),
    "bart": ("model.decoder.layers.0.encoder_attn.out_proj", "cross", "0.cross.wrote"),
    "marian": ("model.encoder.layers.0.self_attn.out_proj", "encoder self", "0.attn.wrote"),
}
