"""A LayerNorm of any kind, in a model's own code, held at the spread it has on one vector."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from models.pretrained.overheard import same

Linear = Callable[[Tensor], Tensor]


def held_still(norm: nn.Module, total: Tensor) -> tuple[Linear, Tensor] | None:
    """What a norm does to `total` (d_model, float64) as a linear map of vectors (..., d_model), and
    the bias it adds; None where it is no norm of a kind that is known.

    LayerNorm centres and RMSNorm does not, and a gain may be stored as it is or less 1: which it is
    here is measured, since norm(x) = gain (x - centre(x)) / sigma + bias and norm(-x) has the same
    bias.
    """
    gain = getattr(norm, "weight", None)
    if not isinstance(gain, Tensor) or gain.shape != total.shape:
        return None
    kind = gain.dtype
    there, back = (norm(sign * total.to(kind)[None])[0].double() for sign in (1, -1))
    bias, went = (there + back) / 2, (there - back) / 2
    for centres in (True, False):
        for one in (0.0, 1.0):
            scaled = (gain.double() + one) * _centred(total, centres)
            sigma = scaled.norm() / went.norm()
            if torch.isfinite(sigma) and same(scaled / sigma, went):
                return _map(gain.double() + one, centres, sigma), bias
    return None


def _map(gain: Tensor, centres: bool, sigma: Tensor) -> Linear:
    return lambda rows: gain * _centred(rows, centres) / sigma


def _centred(rows: Tensor, centres: bool) -> Tensor:
    return rows - rows.mean(-1, keepdim=True) if centres else rows


@torch.inference_mode()
def centres(norm: nn.Module | None) -> bool:
    """True for a norm that subtracts the mean: a number added to every component changes nothing.
    Where there is none, True."""
    weight = getattr(norm, "weight", None)
    if norm is None or not isinstance(weight, Tensor):
        return True
    x = torch.linspace(-1, 2, len(weight), dtype=weight.dtype)[None]
    return same(norm(x + 1), norm(x))
