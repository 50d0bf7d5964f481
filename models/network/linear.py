"""Linear layers, multiplied by the faster of two libraries, and how their matrices lie in memory.

A product of a text's vectors with a large matrix goes to oneDNN, which torch asks by itself only
for lower precision: on AMD's AVX-512 a pass of a model of large matrices takes a tenth to a fifth
less time than by torch's own choice, the readout of two or three next tokens a third of it.
That one, Intel's MKL, is the faster one on Intel's.
Names and gradients are those of `torch.nn.Linear`."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LARGE = 400_000  # numbers of a matrix that oneDNN pays for, its code included
MIN_ROWS, MAX_ROWS = 2, 256
CPUS = Path("/proc/cpuinfo")


def is_intel_cpu() -> bool:
    """Check whether the CPU is Intel's; False where the machine does not say. By name and not by a
    trial, so that all processes of a machine choose alike: their numbers must agree to the last
    bit."""
    return CPUS.is_file() and "GenuineIntel" in CPUS.read_text()


# The operator is torch's own, for what it compiles; a build without oneDNN has none.
_onednn_linear = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
HAS_AVX512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
# With AVX2 alone torch's choice is the faster one too.
_uses_onednn = HAS_AVX512 and not is_intel_cpu()


def use_onednn(x: Tensor, weight: Tensor) -> bool:
    """True where `onednn_product` is the faster one for x (..., in) and a matrix (out, in), on a
    processor for which it pays, and where no gradient is wanted."""
    return (
        _uses_onednn
        and _onednn_linear is not None
        and weight.numel() >= LARGE
        and not torch.is_grad_enabled()
        and x.dtype == torch.float32
        and MIN_ROWS <= x.numel() // x.shape[-1] <= MAX_ROWS
    )


def pad_rows(x: Tensor) -> Tensor:
    """x (..., in) as rows (n, in), rows of zeros after them until a number is reached of which
    there are few: oneDNN keeps half a megabyte of code for every number of rows."""
    x = x.reshape(-1, x.shape[-1])
    n = x.shape[0]
    padding = -n % (4 if n <= 4 else 8 if n <= 64 else 16)
    return F.pad(x, (0, 0, 0, padding)) if padding else x


def onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b by oneDNN: x (..., in), W (out, in) -> (..., out)."""
    assert _onednn_linear is not None  # use_onednn has checked it
    output = _onednn_linear(pad_rows(x), weight, bias, "none", [], "")
    return output[: x.shape[:-1].numel()].view(*x.shape[:-1], len(weight))


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b by the faster library: x (..., in), W (out, in), b (out) -> (..., out)."""
    if use_onednn(x, weight):
        return onednn_product(x, weight, bias)
    return F.linear(x, weight, bias)


def input_major(weight: Tensor) -> Tensor:
    """A matrix (out, in) in memory order of its inputs. A matrix with more outputs than inputs is
    multiplied faster so: in 0.8 to 0.97 of the time for 16 to 256 tokens with AVX2."""
    with torch.inference_mode(False):  # whatever it is called in, the model may be trained on
        return weight.detach().T.contiguous().T


class Linear(nn.Linear):
    """x W^T + b, by the faster library."""

    def forward(self, x: Tensor) -> Tensor:
        """x (..., in) -> (..., out)."""
        return product(x, self.weight, self.bias)

    def lay_out(self) -> None:
        """Put the matrix in memory order of its inputs; the numbers stay."""
        self.weight.data = input_major(self.weight)
