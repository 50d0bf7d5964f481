"""Linear layers, multiplied by the faster of two libraries, and how their matrices lie in memory.

A product of a text's vectors with a large matrix goes to oneDNN, which torch asks by itself only
for lower precision: on AMD's AVX-512 a tenth to a quarter faster than torch's own choice, and with
the activation in the same step. Torch's own choice, Intel's MKL, is the faster one on Intel's.
Names and gradients are those of `torch.nn.Linear`."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.config import ACTIVATIONS

LARGE = 400_000  # numbers of a matrix that oneDNN pays for, its code included
MIN_ROWS, MAX_ROWS = 4, 256
CPUS = Path("/proc/cpuinfo")
# What oneDNN calls an activation, and how it is to compute it. Its relu makes 0 of what is no
# number, and would hide an overflow: that one is torch's.
FUSED_ACTIVATIONS = {
    "gelu": ("gelu", "none"),
    "gelu_tanh": ("gelu", "tanh"),
    "silu": ("swish", ""),
}


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
    """True where `onednn_product` is the faster one for x (..., in) and a matrix (out, in) of
    `input_major`, on a processor for which it pays, and where no gradient is wanted."""
    return (
        _uses_onednn
        and _onednn_linear is not None
        and weight.numel() >= LARGE
        and weight.stride(0) == 1
        and not torch.is_grad_enabled()
        and x.dtype == torch.float32
        and MIN_ROWS <= x.numel() // x.shape[-1] <= MAX_ROWS
    )


def pad_rows(x: Tensor) -> Tensor:
    """x (..., in) as rows (n, in), rows of zeros after them until a number is reached of which
    there are few: oneDNN keeps half a megabyte of code for every number of rows."""
    x = x.reshape(-1, x.shape[-1])
    n = x.shape[0]
    padding = -n % (8 if n <= 64 else 16)
    return F.pad(x, (0, 0, 0, padding)) if padding else x


def onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str = "") -> Tensor:
    """activation(x W^T + b) by oneDNN: x (..., in), W (out, in) -> (..., out)."""
    assert _onednn_linear is not None  # use_onednn has checked it
    name, algorithm = (
        FUSED_ACTIVATIONS[activation] if activation not in ("", "relu") else ("none", "")
    )
    output = _onednn_linear(pad_rows(x), weight, bias, name, [], algorithm)
    output = output[: x.shape[:-1].numel()].view(*x.shape[:-1], len(weight))
    return output.relu_() if activation == "relu" else output


def linear_into(x: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor | None) -> Tensor:
    """x W^T + b by torch: x (..., in), W (out, in) -> (..., out), written to `out` where it is
    given."""
    if out is None:
        return F.linear(x, weight, bias)
    rows, flat = x.flatten(0, -2), out.view(-1, out.shape[-1])
    if bias is None:
        torch.mm(rows, weight.T, out=flat)
    else:
        torch.addmm(bias, rows, weight.T, out=flat)
    return out


def input_major(weight: Tensor) -> Tensor:
    """A matrix (out, in) in memory order of its inputs. A matrix with more outputs than inputs is
    multiplied faster so: in 0.8 to 0.97 of the time for 16 to 256 tokens with AVX2."""
    with torch.inference_mode(False):  # whatever it is called in, the model may be trained on
        return weight.detach().T.contiguous().T


class Linear(nn.Linear):
    """activation(x W^T + b), by the faster library."""

    def forward(self, x: Tensor, activation: str = "", out: Tensor | None = None) -> Tensor:
        """x (..., in) -> (..., out). activation: a name of `ACTIVATIONS`, "" for none. out: memory
        that torch's product without an activation is written to."""
        if use_onednn(x, self.weight):
            return onednn_product(x, self.weight, self.bias, activation)
        output = linear_into(x, self.weight, self.bias, out)
        return ACTIVATIONS[activation](output) if activation else output

    def lay_out(self) -> None:
        """Put the matrix in memory order of its inputs; the numbers stay."""
        self.weight.data = input_major(self.weight)


class StackedLinear:
    """Linear layers that read the same vectors: one product in place of several.

    Their matrices are laid one below the other in memory by `lay_out`; the layers stay what they
    are, as views of it, with their names and their gradients."""

    def __init__(self, *layers: Linear) -> None:
        self.layers = layers
        self.weight: Tensor | None = None  # (sum of out, in)
        self.bias: Tensor | None = None  # (sum of out)

    def lay_out(self) -> None:
        """Put the matrices and biases side by side, in memory order of their inputs."""
        sizes = [layer.out_features for layer in self.layers]
        with torch.inference_mode(False):  # whatever it is called in, the model may be trained on
            self.weight = input_major(torch.cat([each.weight.detach() for each in self.layers]))
            for layer, view in zip(self.layers, self.weight.split(sizes)):
                layer.weight.data = view
            biases = [each.bias.detach() for each in self.layers if each.bias is not None]
            self.bias = torch.cat(biases) if biases else None
            if self.bias is not None:
                for layer, view in zip(self.layers, self.bias.split(sizes)):
                    layer.bias.data = view

    def is_ready(self) -> bool:
        """True where the one product may stand for the several: no gradient is wanted, and the
        matrices still share their memory."""
        return (
            self.weight is not None
            and not torch.is_grad_enabled()
            and self.weight.data_ptr() == self.layers[0].weight.data_ptr()
        )

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """x (..., in) -> the outputs of all layers side by side, (..., sum of out), written to
        `out` where it is given."""
        assert self.weight is not None  # is_ready has checked it
        if use_onednn(x, self.weight):
            output = onednn_product(x, self.weight, self.bias)
            return output if out is None else out.copy_(output)
        return linear_into(x, self.weight, self.bias, out)
