"""The transform between a BERT's last vector and its words (a dense layer, an activation, a
LayerNorm), taken as a linear map at one token, and how far that holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from models.config import ACTIVATIONS
from models.own import Handle

Linear = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Bend:
    """The transform at one token. slope: vectors (..., d_model) before it -> after it, the
    activation by its derivative there and LayerNorm by its sigma there. bias (d_model): what its
    own biases come to; rest (d_model): what the slope leaves of what it gives. whole: the transform
    itself, as it is."""

    slope: Linear
    bias: Tensor
    rest: Tensor
    whole: Linear

    def explained(self, last: Tensor, parts: Tensor, direction: Tensor) -> float:
        """How much of what happens the slope tells: each part (part, d_model) is taken from the
        last vector in turn and the whole transform run; 1 - sum (change - slope's)^2 / sum
        change^2 of the logit along `direction`."""
        change = (self.whole(last) - self.whole(last - parts)) @ direction
        left = change - self.slope(parts) @ direction
        total = float((change**2).sum())
        return 1.0 - float((left**2).sum()) / total if total else 1.0


def bend(handle: Handle, last: Tensor) -> Bend | None:
    """The transform of a model at a last vector (d_model, float64), None where it has none."""
    dense, norm = handle.model.transform, handle.model.transform_norm
    if dense is None or norm is None:
        return None
    activation = ACTIVATIONS[handle.model.config.activation]
    weight, bias = dense.weight.double(), dense.bias.double()
    gain, shift = norm.weight.double(), norm.bias.double()
    before = weight @ last + bias
    steep, after = _slope(activation, before), activation(before)
    sigma = (after.var(unbiased=False) + norm.eps).sqrt()

    def still(rows: Tensor) -> Tensor:
        return (rows - rows.mean(-1, keepdim=True)) / sigma * gain

    def whole(rows: Tensor) -> Tensor:
        return F.layer_norm(activation(rows @ weight.T + bias), gain.shape, gain, shift, norm.eps)

    return Bend(
        lambda rows: still(steep * (rows @ weight.T)),
        still(steep * bias) + shift,
        still(after - steep * before),
        whole,
    )


def _slope(activation: Linear, x: Tensor) -> Tensor:
    """The derivative of an activation at every component of x."""
    with torch.inference_mode(False), torch.enable_grad():
        x = x.clone().requires_grad_()
        (found,) = torch.autograd.grad(activation(x).sum(), x)
    return found
