"""Base class of recipes, with the settings for training one model of our own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from time import perf_counter
from typing import Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.network.attention import MultiHeadAttention
from models.network.config import Config
from models.network.transformer import FeedForward, Transformer
from models.tokens.tokenizer import Tokenizer

SEED = 1
Kind = TypeVar("Kind", bound=Transformer)
Scores = dict[str, float | str]
TRIAL_SECONDS = 0.1  # seconds that trying out one kind of number may take


@dataclass(frozen=True)
class TrainingState:
    """State of a training: its tokenizer, its random generator and its epoch."""

    tokenizer: Tokenizer
    generator: torch.Generator
    epoch: int


class Recipe(Protocol[Kind]):
    """Recipe for training a model. `checkpoint_steps`: the steps whose weights are shipped beside
    the last ones. `in_half`: whether steps may be computed in bfloat16 where the processor helps;
    weights and scores stay in fp32."""

    config: Config
    steps: int
    check: int
    rate: float
    warm_up: int
    checkpoint_steps: tuple[int, ...]
    in_half: bool

    def tokenizer(self) -> Tokenizer:
        """A new tokenizer, learned from the training text."""

    def model(self) -> Kind:
        """A fresh model, drawn from torch's global generator."""

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """The batches of one epoch, always the same ones for the same epoch."""

    def loss(self, model: Kind, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        """Mean loss of a batch in nats."""

    def progress(self, model: Kind, tokenizer: Tokenizer) -> Scores:
        """Quick scores on text that training never sees, for the log."""


def padded(rows: list[list[int]], pad: int) -> tuple[Tensor, Tensor]:
    """Rows of unlike length as one (batch, token) tensor, and the bool tensor that says which
    entries are real."""
    ids = torch.full((len(rows), max(map(len, rows))), pad)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row)
    return ids, ids != pad


def packed(
    sentences: list[list[int]],
    rng: Random,
    longest: int,
    alone: Callable[[list[int]], list[int] | None] = lambda _: None,
) -> Iterator[list[int]]:
    """Rows of whole sentences, of many lengths from one sentence to a full row. alone: the row that
    a sentence makes by itself, None for one that stands among others."""
    row: list[int] = []
    room = 0
    for sentence in sentences:
        if row and len(row) + len(sentence) > room:
            yield row
            row = []
        if not row:
            room = rng.choice((1, longest // 2, longest, longest))
        if own_row := alone(sentence):
            yield own_row
        else:
            row = (row + sentence)[:longest]
    if row:
        yield row


def random_starts(
    ids: Tensor, n_positions: int, share: float, generator: torch.Generator
) -> Tensor:
    """The first position of each row (batch, 1): of a share of the rows a random one, so that all
    positions are trained, else 0. ids (batch, token)."""
    batch, n = ids.shape
    anywhere = torch.randint(0, n_positions - n + 1, (batch, 1), generator=generator)
    return anywhere * (torch.rand(batch, 1, generator=generator) < share)


def with_dropout(model: Transformer, share: float) -> None:
    """Let a model's sub-layers drop a share of what they write while it is in training mode
    (section 5.4 of the paper). The model's own
    code knows no dropout: it falls away with the run."""

    def apply_dropout(module: nn.Module, inputs: tuple, output: Tensor) -> Tensor:
        return F.dropout(output, share, module.training)

    for module in model.modules():
        if isinstance(module, (MultiHeadAttention, FeedForward)):
            module.register_forward_hook(apply_dropout)


@cache
def half_helps() -> bool:
    """True where this processor multiplies bfloat16 matrices much faster than fp32 ones, tried out
    once a process, in a moment."""

    def seconds(kind: torch.dtype) -> float:
        a, b = torch.ones(512, 256, dtype=kind), torch.ones(256, 1024, dtype=kind)
        a @ b
        best, deadline = math.inf, perf_counter() + TRIAL_SECONDS
        for _ in range(48):
            start = perf_counter()
            a @ b
            best = min(best, perf_counter() - start)
            # without instructions for it one product can take 500 times as long: one says enough
            if perf_counter() > deadline:
                break
        return best

    return seconds(torch.float32) > 1.5 * seconds(torch.bfloat16)
