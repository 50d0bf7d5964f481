"""The transform between a BERT's last vector and its words (a dense layer, an activation, a
LayerNorm), taken as a linear map at one token, and how far that holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.config import ACTIVATIONS
from models.own import Handle

Linear = Callable[[Tensor], Tensor]
# A part of a logit: its kind, layer, head and attention, as in `Part`.
Key = tuple[str, int, int, str]
BIAS: Key = ("bias", -1, -1, "")
REST: Key = ("transform", -1, -1, "")


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

    def through(self, held: dict[Key, Tensor]) -> dict[Key, Tensor]:
        """What parts of the last vector come to after the transform, with what its own biases add
        and what the slope leaves."""
        slopes = self.slope(torch.stack(list(held.values())))
        bent = dict(zip(held, slopes.unbind()))
        return bent | {BIAS: bent.get(BIAS, 0) + self.bias, REST: self.rest}

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
    return bend_at(dense, ACTIVATIONS[handle.model.config.activation], norm, last)


def bend_at(dense: nn.Linear, activation: Linear, norm: nn.LayerNorm, last: Tensor) -> Bend:
    """norm(activation(dense(x))) at x = `last` (d_model, float64); the dense layer may give vectors
    of another width."""
    weight, gain, shift = dense.weight.double(), norm.weight.double(), norm.bias.double()
    bias = dense.bias.double() if dense.bias is not None else weight.new_zeros(len(weight))
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
