"""Checks that the weights of a model are finite numbers that look trained."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from torch import Tensor, nn

from models.pretrained import model_files
from models.pretrained.mapped_weights import map_weights
from models.pretrained.model_files import NotLoaded, remedy

MOST_HALF = 65504.0  # the largest number of float16


def check(model: nn.Module, folder: Path, name: str) -> None:
    """Raises NotLoaded for a folder that stores a number that is not finite, whether a pass uses it
    or not, for a model half of whose matrices hold one number throughout, and, where some are
    stored in float16, for those cut off at its largest number."""
    tensors, release_pages = map_weights(folder, name)
    for key, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.numel():
            _finite_range(key, tensor, name)
            release_pages()
    halves = "F16" in model_files.types(folder, name)
    matrices, constant = 0, []
    for key, parameter in model.named_parameters():
        if not parameter.numel():  # MobileBERT's, where two widths are equal
            continue
        lowest, highest = _finite_range(key, parameter.detach(), name)
        if halves and MOST_HALF in (-lowest, highest):
            raise NotLoaded(
                f"The weights of {name} were cut off at {MOST_HALF:,.0f}, the largest number of "
                f"float16, in {key[:80]}; choose a version in bfloat16 or float32."
            )
        if parameter.dim() > 1:
            matrices += 1
            constant += [key] if lowest == highest else []
    if constant and 2 * len(constant) >= matrices:
        raise NotLoaded(
            f"{len(constant)} of the {matrices} matrices of {name} hold one number throughout, the "
            f"first of them {constant[0][:80]}; {remedy(name)} or choose another."
        )


def _finite_range(key: str, tensor: Tensor, name: str) -> tuple[float, float]:
    """The smallest and the largest number of a tensor. Raises NotLoaded where one is not finite."""
    lowest, highest = map(float, tensor.aminmax())
    if not isfinite(highest - lowest):  # a NaN anywhere is both
        raise NotLoaded(model_files.not_finite(name, key))
    return lowest, highest
