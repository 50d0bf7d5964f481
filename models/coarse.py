"""Weights with fewer bits a number, for a model's earlier weights: smaller than fp16, and patterns
that a reader cannot tell apart.

Each row of a matrix is cut into runs of `RUN` numbers; a run is kept as whole numbers and one fp16
scale. The feed-forward networks' numbers take 8 bits; those that scores are made of (embeddings and
attention) take 12, because softmax makes much of a small error in a score. What is no matrix
(biases, LayerNorms) stays fp16.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

RUN = 32
# What is kept beside a matrix, by the end of its name: its scales, and the lowest 4 of 12 bits, two
# numbers in a byte.
SCALE, LOW = "#scale", "#low"
AT_8_BITS = ".feed_forward."


def coarsened(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors by name, the matrices among them as whole numbers. A matrix whose rows are not whole
    runs stays fp16."""
    kept: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if tensor.dim() != 2 or tensor.shape[1] % RUN:
            kept[name] = tensor.half().contiguous()
            continue
        most = 127 if AT_8_BITS in name else 2047
        runs = tensor.float().unflatten(1, (-1, RUN))  # (row, run, RUN)
        scale = (runs.abs().amax(-1, keepdim=True) / most).half().clamp(min=2**-24)
        whole = (runs / scale.float()).round().clamp(-most, most).to(torch.int16).flatten(1)
        if most > 127:
            low = (whole & 15).to(torch.uint8)
            kept[name + LOW] = low[:, ::2] | (low[:, 1::2] << 4)
            whole = whole >> 4
        kept[name] = whole.to(torch.int8)
        kept[name + SCALE] = scale[..., 0]
    return kept


def restored(kept: dict[str, Tensor]) -> dict[str, Tensor]:
    """What `coarsened` made, in fp32; other tensors as they are."""
    state = {}
    for name, tensor in kept.items():
        if name.endswith((SCALE, LOW)):
            continue
        if name + SCALE in kept:
            whole = tensor.float()
            if name + LOW in kept:
                low = kept[name + LOW]
                whole = whole * 16 + torch.stack((low & 15, low >> 4), -1).flatten(1).float()
            scale = kept[name + SCALE].float()[..., None]
            tensor = (whole.unflatten(1, (-1, RUN)) * scale).flatten(1)
        state[name] = tensor
    return state


def is_coarse(folder: Path) -> bool:
    """True where a model's earlier weights are kept so."""
    with safe_open(folder / "checkpoints.safetensors", framework="pt") as file:
        return any(name.endswith(SCALE) for name in file.keys())
