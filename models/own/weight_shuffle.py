"""A model with the numbers inside each of its weight matrices in random order: the same sizes and
the same spread, and nothing learned.

What such a model shows is what the architecture and the size of its weights give by chance; what
was learned must show more.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from models.network import own_model
    from models.pretrained import hf_model

SEED = 0
CHUNK_SIZE = 2**18  # numbers that are put in their places at once


def permuted(
    model: own_model.OwnModel | hf_model.HFModel, name: str, seed: int = SEED
) -> own_model.OwnModel | hf_model.HFModel:
    """The model under another name, the numbers of each parameter of two or more axes shuffled in
    place: hand it a model that nobody else holds. Vectors (biases, the gains of LayerNorm) and
    fixed tables (the sinusoids) stay; a matrix used twice is shuffled once.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.network.parameters():
            if parameter.dim() > 1:
                parameter.copy_(_shuffled(parameter.flatten(), generator).view_as(parameter))
    fingerprint = hashlib.sha256(f"{model.card.fingerprint} permuted {seed}".encode()).hexdigest()[
        :12
    ]
    card = replace(
        model.card,
        name=name,
        fingerprint=fingerprint,
        weights=f"{model.card.weights}, the numbers inside each matrix in random order",
    )
    return replace(model, card=card)


def _shuffled(numbers: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    # An index of 64 bits for each of them at once takes twice what the numbers take.
    order = torch.randperm(len(numbers), generator=generator, dtype=torch.int32)
    result = torch.empty_like(numbers)
    for start in range(0, len(order), CHUNK_SIZE):
        result[start : start + CHUNK_SIZE] = numbers[order[start : start + CHUNK_SIZE].long()]
    return result
