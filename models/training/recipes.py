"""What a recipe is: all that is particular to training one model of our own, and what recipes share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor

from models.config import Config
from models.tokenizer import Tokenizer
from models.transformer import Model

SEED = 1


class Recipe(Protocol):
    """How a model is trained. `shown`: the steps whose weights are shipped beside the last ones."""

    config: Config
    steps: int
    check: int
    rate: float
    warm_up: int
    shown: tuple[int, ...]

    def tokenizer(self) -> Tokenizer:
        """A new tokenizer, learned from the training text."""

    def model(self) -> Model:
        """A fresh model, drawn from torch's global generator."""

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """The batches of one epoch, always the same ones for the same epoch."""

    def loss(
        self,
        model: Model,
        batch: tuple[Tensor, ...],
        tokenizer: Tokenizer,
        generator: torch.Generator,
        epoch: int,
    ) -> Tensor:
        """Mean loss of a batch in nats."""

    def progress(self, model: Model, tokenizer: Tokenizer) -> dict[str, float | str]:
        """Quick scores on text that training never sees, for the log."""


def padded(rows: list[list[int]], pad: int) -> tuple[Tensor, Tensor]:
    """Rows of unlike length as one (batch, token) tensor, and the bool tensor that says which entries are real."""
    ids = torch.full((len(rows), max(map(len, rows))), pad)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row)
    return ids, ids != pad
