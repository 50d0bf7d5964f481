"""The decoder's recipes from shipped weights on: more text, and then a price on going round.

A small model that always takes the likeliest word soon goes round: what it has said twice it says
for ever. Beside its text it therefore writes on from the beginnings of rows, and pays for each
word and mark in a run of tokens that stood there before (Welleck et al., 2020, unlikelihood
training on its own writing). A text that is given twice costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from models import own_model
from models.attention import KVCache
from models.tokenizer import Tokenizer
from models.training import next_word
from models.training.corpus import Library, read_library
from models.training.training_config import TrainingState
from models.transformer import Decoder

FIRST_EPOCH = len(next_word.CURRICULUM) + 2  # long rows; not the draws of the first generation
WRITERS, LONGEST = 24, 64  # rows that are written on, and tokens that are written
SHORTEST_START, LONGEST_START = 4, 16  # tokens of a row that are given
RUN = 4  # tokens that make up a run
MIN_COMPLEMENT = 1e-4  # of 1 - p: a surer word costs no more, and has nothing to learn from it


class ContinuedDecoder(next_word.NextWord):
    """The recipe of the shipped decoder's later steps. What came of them is the mean of both
    weights (Izmailov et al., 2018)."""

    steps, rate, warm_up = 5_500, 7e-4, 200
    shown: tuple[int, ...] = (0,)

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.config = own_model.load("decoder").model.config

    def tokenizer(self) -> Tokenizer:
        return own_model.load("decoder").tokenizer

    def model(self) -> Decoder:
        base = own_model.load("decoder").model
        model = Decoder(base.config)
        model.load_state_dict(base.state_dict())
        return model

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return super().batches(tokenizer, epoch + FIRST_EPOCH)

    def loss(self, model: Decoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        return super().loss(model, batch, replace(at, epoch=at.epoch + FIRST_EPOCH))


class Unlooped(ContinuedDecoder):
    """The recipe of its last steps: in half of them the price is paid too. Fewer books, so that
    everyday sentences are not forgotten over them."""

    steps, rate, warm_up = 700, 1.5e-4, 50
    shown = ()
    share, books = 0.5, 3

    @cached_property
    def corpus(self) -> Library:
        library = read_library(self.data, next_word.MEN, next_word.WOMEN)
        return replace(library, books=library.books[:: self.books])

    def loss(self, model: Decoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        loss = super().loss(model, batch, at)
        if torch.rand((), generator=at.generator) >= self.share:
            return loss
        return loss + repetition_penalty(model, batch[0], at.tokenizer, at.generator)


def repetition_penalty(
    model: Decoder, ids: Tensor, tokenizer: Tokenizer, generator: torch.Generator
) -> Tensor:
    """What the model pays for saying again what stands there already, in nats a token that it
    writes: -log(1 - p) of each word or mark in a run met before, where it writes on from the
    beginnings of the rows `ids` (batch, token), always by the likeliest token. The rest of a word
    is no choice: priced too, "don't" became "don yet"."""
    size = int(torch.randint(SHORTEST_START, LONGEST_START + 1, (), generator=generator)) + 1
    row_indices = torch.randperm(len(ids), generator=generator)[:WRITERS]
    starts = [
        row
        for row in ids[row_indices, :size]
        if tokenizer.padding not in row and not any(repeated_tokens(row.tolist(), 2))
    ]
    if not starts or ids.shape[1] < size:
        return torch.zeros(())
    generated = continuations(model, torch.stack(starts), list(tokenizer.special), LONGEST)
    penalties = [
        [
            is_again and is_choice(token, tokenizer)
            for is_again, token in zip(repeated_tokens(row, RUN), row)
        ]
        for row in generated.tolist()
    ]
    is_penalized = torch.tensor(penalties)[:, size:]
    logits = model.logits(model(generated[:, :-1])[:, size - 1 :][is_penalized])
    generated_ids = generated[:, size:][is_penalized]
    p = logits.float().softmax(-1).gather(-1, generated_ids[:, None])
    return -(1 - p).clamp_min(MIN_COMPLEMENT).log().sum() / is_penalized.numel()


def repeated_tokens(row: Sequence[int], n: int) -> list[bool]:
    """For each token whether it is part of a run of `n` tokens that stands further left too."""
    seen_runs: set[tuple[int, ...]] = set()
    flags = [False] * len(row)
    for start in range(len(row) - n + 1):
        run = tuple(row[start : start + n])
        if run in seen_runs:
            flags[start : start + n] = [True] * n
        seen_runs.add(run)
    return flags


def is_choice(token: int, tokenizer: Tokenizer) -> bool:
    """True for a token that begins a word or is a mark, False for one that goes on with a word."""
    piece = tokenizer.bpe.id_to_token(token) or ""
    return piece.startswith(tokenizer.starts) or not (piece[:1].isalpha() or piece[:1] == "'")


@torch.no_grad()
def continuations(model: Decoder, starts: Tensor, excluded: list[int], n: int) -> Tensor:
    """Rows (batch, token) and `n` tokens more, the likeliest each time, none of `never`."""
    stored, rows = KVCache(), starts
    for _ in range(n):
        inputs = rows if rows is starts else rows[:, -1:]
        logits = model.logits(model(inputs, stored=stored)[:, -1])
        logits[:, excluded] = float("-inf")
        rows = torch.cat((rows, logits.argmax(-1, keepdim=True)), dim=1)
    return rows
