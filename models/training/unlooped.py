"""The decoder's recipe from shipped weights on: more text, and a price on what it says again.

A small model that always takes the likeliest word soon goes round: what it has said twice it says
for ever. From time to time it therefore writes on from the beginnings of its rows, and pays for
each token that ends a run of tokens which stood there before (Welleck et al., 2020, unlikelihood
training on its own writing). Text that is given twice is no such case: there nothing is paid, so
that induction stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from models import own
from models.own import Handle
from models.tokenizer import Tokenizer
from models.training import next_word
from models.training.recipes import SEED, Moment
from models.transformer import Decoder, Stored

FIRST_EPOCH = len(next_word.CURRICULUM) + 2  # long rows, other draws than those of the first steps
EVERY = 4  # steps; in one of so many the model's own writing is looked at
WRITERS, LONGEST = 24, 64  # rows that are written on, and tokens that are written
SHORTEST_START, LONGEST_START = 4, 16  # tokens of a row that are given
RUN = 4  # tokens that make up a run; the last one of a run met before is paid for
LEAST = 1e-4  # of 1 - p, so that the price of a sure word is bounded


class Onward(next_word.NextWord):
    """The recipe of the shipped decoder's later steps."""

    steps, rate, warm_up = 4_000, 7e-4, 200
    shown = (0,)

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.config = own.load("decoder").model.config

    def tokenizer(self) -> Tokenizer:
        return own.load("decoder").tokenizer

    def model(self) -> Decoder:
        begun: Handle = own.load("decoder")
        model = Decoder(begun.model.config)
        model.load_state_dict(begun.model.state_dict())
        return model

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        epoch += FIRST_EPOCH
        return next_word.batches(self.corpus, tokenizer, Random(SEED + epoch), epoch)

    def loss(self, model: Decoder, batch: tuple[Tensor, ...], at: Moment) -> Tensor:
        later = Moment(at.tokenizer, at.generator, at.epoch + FIRST_EPOCH)
        loss = super().loss(model, batch, later)
        if torch.randint(EVERY, (), generator=at.generator):
            return loss
        return loss + price(model, batch[0], at.tokenizer, at.generator)


def price(
    model: Decoder, ids: Tensor, tokenizer: Tokenizer, generator: torch.Generator
) -> Tensor:
    """What the model pays for saying again what stands there already, in nats: the mean of
    -log(1 - p) over the tokens that end a run met before, where it writes on from the beginnings
    of the rows `ids` (batch, token) by the likeliest token. 0 where it never does."""
    size = int(torch.randint(SHORTEST_START, LONGEST_START + 1, (), generator=generator))
    starts = ids[:, : size + 1]
    new = [row for row in starts[:WRITERS] if not any(again(row.tolist(), 2))]
    if not new or starts.shape[1] <= size:
        return torch.zeros(())
    written = write_on(model, torch.stack(new), list(tokenizer.special), LONGEST)
    paid = torch.tensor([again(row, RUN) for row in written.tolist()])[:, size + 1 :]
    if not paid.any():
        return torch.zeros(())
    logits = model.logits(model(written[:, :-1])[:, size:][paid])
    said = written[:, size + 1 :][paid]
    p = logits.float().softmax(-1).gather(-1, said[:, None])[:, 0]
    return -(1 - p).clamp_min(LEAST).log().mean()


def again(row: Sequence[int], n: int) -> list[bool]:
    """For each token whether it ends a run of `n` tokens that stands further left too."""
    met: set[tuple[int, ...]] = set()
    found = []
    for end in range(1, len(row) + 1):
        run = tuple(row[max(0, end - n) : end])
        found.append(len(run) == n and run in met)
        met.add(run)
    return found


@torch.no_grad()
def write_on(model: Decoder, starts: Tensor, never: list[int], n: int) -> Tensor:
    """Rows (batch, token) and `n` tokens more, the likeliest each time, none of `never`."""
    stored, rows = Stored(), starts
    for _ in range(n):
        given = rows if rows is starts else rows[:, -1:]
        logits = model.logits(model(given, stored=stored)[:, -1])
        logits[:, never] = float("-inf")
        rows = torch.cat((rows, logits.argmax(-1, keepdim=True)), dim=1)
    return rows
