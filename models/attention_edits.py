"""What edits do inside an attention, in tensors: the same for our own classes and for models in
their own code.

Shapes: pattern (batch, head, query, key); z (batch, head, query, d_head).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from models.edits import (
    Edit,
    MeanHead,
    OfHead,
    ScaledBy,
    UniformHead,
    WithoutScale,
    ZeroHead,
    applies,
    last,
)


@dataclass(frozen=True)
class Place:
    """An attention as edits name it: by its label in a Recording and its layer."""

    attention: str
    layer: int

    def heads(self, edits: tuple[Edit, ...], kind: type[OfHead]) -> list[int]:
        """The heads of this attention that edits of one kind name, in order."""
        here = {
            edit.head
            for edit in edits
            if isinstance(edit, kind)
            and (edit.attention, edit.layer) == (self.attention, self.layer)
        }
        return sorted(here)


def divisor(edits: tuple[Edit, ...], layer: int, own: float) -> float:
    """What scores are divided by: the model's `own` number, 1 or another one by an edit."""
    if (scaled := last(edits, ScaledBy, layer)) is not None:
        return scaled.divisor
    return 1.0 if applies(edits, WithoutScale, layer) else own


def evened(
    pattern: Tensor, allowed: Tensor | None, edits: tuple[Edit, ...], place: Place
) -> Tensor:
    """The pattern with even rows over `allowed` keys in the heads that a UniformHead names."""
    heads = place.heads(edits, UniformHead)
    if not heads:
        return pattern
    ones = torch.ones_like(pattern)
    even = ones if allowed is None else ones.masked_fill(~allowed, 0.0)
    even = even / even.sum(dim=-1, keepdim=True)
    return pattern.index_copy(1, torch.tensor(heads), even[:, heads])


def silenced(z: Tensor, edits: tuple[Edit, ...], place: Place) -> Tensor:
    """z with its mean over the queries, or 0, in the heads that a MeanHead or ZeroHead names."""
    if heads := place.heads(edits, MeanHead):
        mean = z[:, heads].mean(dim=2, keepdim=True)
        z = z.index_copy(1, torch.tensor(heads), mean.expand(-1, -1, z.shape[2], -1))
    if heads := place.heads(edits, ZeroHead):
        z = z.index_fill(1, torch.tensor(heads), 0.0)
    return z
