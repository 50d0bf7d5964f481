"""Weights with fewer bits a number, for a model's earlier weights: smaller than fp16, and patterns
that a reader cannot tell apart.

Each row of a matrix is cut into runs of `RUN` numbers; a run is kept as whole numbers of 8, 10 or
12 bits and one fp16 scale. Softmax makes much of a small error in a score, and the less so the
flatter the scores are, as early in training: each of the weights takes as few bits as its patterns
allow. What is no matrix (biases, LayerNorms) stays fp16.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

RUN = 32
# What is kept beside a matrix, by the end of its name: its scales, and the lowest bits of 10 or 12,
# four or two numbers in a byte.
SCALE, LOW = "#scale", "#low"
OF_FEED_FORWARD = ".feed_forward."
# Bits of what scores are made of (embeddings and attention) and of the feed-forward networks,
# from the smallest on.
BITS = ((8, 8), (10, 8), (10, 10), (12, 8), (12, 10), (12, 12))
State = dict[str, Tensor]


def as_coarse_as(state: State, holds: Callable[[State], bool]) -> State:
    """The tensors as coarse as `holds` allows, which is asked with what would come back."""
    for bits in BITS:
        kept = coarsened(state, bits)
        if holds(restored(kept)):
            return kept
    return {name: tensor.half().contiguous() for name, tensor in state.items()}


def coarsened(state: State, bits: tuple[int, int]) -> State:
    """Tensors by name, the matrices among them as whole numbers of so many `bits`, one of BITS. A
    matrix whose rows are not whole runs stays fp16."""
    kept: State = {}
    for name, tensor in state.items():
        if tensor.dim() != 2 or tensor.shape[1] % RUN:
            kept[name] = tensor.half().contiguous()
            continue
        low = bits[OF_FEED_FORWARD in name] - 8
        most = 2 ** (7 + low) - 1
        runs = tensor.float().unflatten(1, (-1, RUN))  # (row, run, RUN)
        scale = (runs.abs().amax(-1, keepdim=True) / most).half().float().clamp(min=2**-24)
        whole = (runs / scale).round().clamp(-most, most).to(torch.int16).flatten(1)
        if low:
            each = 8 // low  # numbers whose lowest bits stand in one byte
            lowest = (whole & (2**low - 1)).unflatten(1, (-1, each))
            kept[name + LOW] = (lowest << (low * torch.arange(each))).sum(-1).to(torch.uint8)
        kept[name] = (whole >> low).to(torch.int8)
        kept[name + SCALE] = scale[..., 0].half()
    return kept


def restored(kept: State) -> State:
    """What `coarsened` made, in fp32; other tensors as they are."""
    state: State = {}
    for name, tensor in kept.items():
        if name.endswith((SCALE, LOW)):
            continue
        if name + SCALE in kept:
            whole = tensor.float()
            if name + LOW in kept:
                packed = kept[name + LOW].int()
                each = tensor.shape[1] // packed.shape[1]
                low = 8 // each
                lowest = packed[..., None] >> (low * torch.arange(each)) & (2**low - 1)
                whole = whole * 2**low + lowest.flatten(1)
            scale = kept[name + SCALE].float()[..., None]
            tensor = (whole.unflatten(1, (-1, RUN)) * scale).flatten(1)
        state[name] = tensor
    return state


def is_coarse(folder: Path) -> bool:
    """True where a model's earlier weights are kept so."""
    with safe_open(folder / "checkpoints.safetensors", framework="pt") as file:
        return any(name.endswith(SCALE) for name in file.keys())
