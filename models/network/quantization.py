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
FEED_FORWARD_MARK = ".feed_forward."
# Bits of what scores are made of (embeddings and attention) and of the feed-forward networks,
# from the smallest on.
BITS = ((8, 8), (10, 8), (10, 10), (12, 8), (12, 10), (12, 12))
State = dict[str, Tensor]


def coarsest(state: State, accepts: Callable[[State], bool]) -> State:
    """The tensors as coarse as `holds` allows, which is asked with what would come back."""
    for bits in BITS:
        quantized = quantize(state, bits)
        if accepts(dequantize(quantized)):
            return quantized
    return {name: tensor.half().contiguous() for name, tensor in state.items()}


def quantize(state: State, bits: tuple[int, int]) -> State:
    """Tensors by name, the matrices among them as whole numbers of so many `bits`, one of BITS. A
    matrix whose rows are not whole runs stays fp16."""
    quantized: State = {}
    for name, tensor in state.items():
        if tensor.dim() != 2 or tensor.shape[1] % RUN:
            quantized[name] = tensor.half().contiguous()
            continue
        low_bits = bits[FEED_FORWARD_MARK in name] - 8
        limit = 2 ** (7 + low_bits) - 1
        runs = tensor.float().unflatten(1, (-1, RUN))  # (row, run, RUN)
        scale = (runs.abs().amax(-1, keepdim=True) / limit).half().float().clamp(min=2**-24)
        integers = (runs / scale).round().clamp(-limit, limit).to(torch.int16).flatten(1)
        if low_bits:
            per_byte = 8 // low_bits  # numbers whose lowest bits stand in one byte
            remainders = (integers & (2**low_bits - 1)).unflatten(1, (-1, per_byte))
            quantized[name + LOW] = (
                (remainders << (low_bits * torch.arange(per_byte))).sum(-1).to(torch.uint8)
            )
        quantized[name] = (integers >> low_bits).to(torch.int8)
        quantized[name + SCALE] = scale[..., 0].half()
    return quantized


def dequantize(quantized: State) -> State:
    """Tensors of `quantized` in fp32; those that were not quantized as they are."""
    state: State = {}
    for name, tensor in quantized.items():
        if name.endswith((SCALE, LOW)):
            continue
        if name + SCALE in quantized:
            integers = tensor.float()
            if name + LOW in quantized:
                packed = quantized[name + LOW].int()
                per_byte = tensor.shape[1] // packed.shape[1]
                low_bits = 8 // per_byte
                remainders = packed[..., None] >> (low_bits * torch.arange(per_byte)) & (
                    2**low_bits - 1
                )
                integers = integers * 2**low_bits + remainders.flatten(1)
            scale = quantized[name + SCALE].float()[..., None]
            tensor = (integers.unflatten(1, (-1, RUN)) * scale).flatten(1)
        state[name] = tensor
    return state


def is_quantized(folder: Path) -> bool:
    """True where a model's earlier weights are kept so."""
    with safe_open(folder / "checkpoints.safetensors", framework="pt") as file:
        return any(name.endswith(SCALE) for name in file.keys())
