"""Products of a text's vectors with a large matrix, by oneDNN, which torch asks by itself only for
lower precision: on AMD's AVX-512 a tenth to a quarter faster than torch's own choice, and with the
activation in the same step. Torch's own choice, Intel's MKL, is the faster one on Intel's.

oneDNN keeps half a megabyte of code for each number of rows that it has met. Rows are therefore
made up to a few numbers of them.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

LARGE = 400_000  # numbers of a matrix that it pays for, its code included
FEWEST_ROWS, MOST_ROWS = 4, 256
CPUS = Path("/proc/cpuinfo")
# What oneDNN calls an activation, and how it is to compute it. Its relu makes 0 of what is no
# number, and would hide an overflow: that one is torch's.
ACTIVATIONS = {
    "gelu": ("gelu", "none"),
    "gelu_tanh": ("gelu", "tanh"),
    "silu": ("swish", ""),
}


def made_by_intel() -> bool:
    """Whether the machine says so; False where it says nothing. By name and not by a trial, so that
    all processes of a machine choose alike: their numbers are to be the same to the last bit."""
    return CPUS.is_file() and "GenuineIntel" in CPUS.read_text()


# The operator is torch's own, for what it compiles; a build without oneDNN has none.
_product = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
WIDE = torch.backends.cpu.get_cpu_capability() == "AVX512"
# With AVX2 alone torch's choice is the faster one too.
_asked = WIDE and not made_by_intel()


def pays(x: Tensor, *weights: Tensor) -> bool:
    """True where `product` is the faster one for x (..., d) and matrices whose numbers of one input
    lie together (`models.attention.by_inputs`), and where no gradient is wanted."""
    return (
        not torch.is_grad_enabled()
        and x.dtype == torch.float32
        and FEWEST_ROWS <= x.numel() // x.shape[-1] <= MOST_ROWS
        and all(suits(each) and each.stride(0) == 1 for each in weights)
    )


def suits(weight: Tensor) -> bool:
    """True for a matrix that is large enough, on a processor for which it pays."""
    return _asked and _product is not None and weight.numel() >= LARGE


def made_up(x: Tensor) -> Tensor:
    """x (..., d) as rows (n, d), rows of zeros after them until a number is reached of which there
    are few."""
    x = x.reshape(-1, x.shape[-1])
    n = x.shape[0]
    more = -n % (8 if n <= 64 else 16)
    return F.pad(x, (0, 0, 0, more)) if more else x


def product(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str = "") -> Tensor:
    """activation(x W^T + b) of rows x (n, d) and W (out, d): (n, out). activation: a name that a
    Config has, or none."""
    assert _product is not None  # `pays` was asked
    name, how = ACTIVATIONS[activation] if activation not in ("", "relu") else ("none", "")
    made = _product(x, weight, bias, name, [], how)
    return made.relu_() if activation == "relu" else made
