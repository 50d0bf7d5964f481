"""Whether the weights of a model from anywhere are numbers that somebody trained."""

from __future__ import annotations

from math import isfinite

from torch import nn

from models.pretrained.model_files import NotLoaded, remedy

MOST_HALF = 65504.0  # the largest number of float16


def check(model: nn.Module, name: str, halves: bool) -> None:
    """Raises NotLoaded for weights that are not finite, for a model half of whose matrices hold one
    number throughout, and, where some are stored in float16 (`halves`), for those cut off at its
    largest number."""
    matrices, constant = 0, []
    for key, parameter in model.named_parameters():
        lowest, highest = map(float, parameter.detach().aminmax())
        if not isfinite(highest - lowest):  # a NaN anywhere is both
            raise NotLoaded(
                f"The weights of {name} contain values that are not numbers (NaN or infinite), the "
                f"first of them in {key[:80]}; choose another model."
            )
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
