"""The encoder's recipe from shipped weights on: the same function, its heads in another order, goes
on learning from more text and under a price on sinks.

The price is paid from head `masked.FIRST_PAYING_HEAD` of each layer on, so that heads which rest
most on special tokens and final marks come first, where resting is free. Two heads of layer 0 that
did little else begin anew, as the last ones, alike in W_Q and W_K.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from models import own
from models.attention import MultiHeadAttention
from models.own import Handle, record
from models.tokenizer import Tokenizer
from models.training import gates, masked
from models.transformer import Encoder

FIRST_EPOCH = len(masked.CURRICULUM) - 1  # long rows from the start: its heads are there already


class Onward(masked.Masked):
    """The recipe of the shipped encoder's later steps."""

    steps, rate, warm_up = 4_400, 8e-4, 200
    shown = ()

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.config = self.begun.model.config

    @cached_property
    def begun(self) -> Handle:
        return own.load("encoder")

    def tokenizer(self) -> Tokenizer:
        return self.begun.tokenizer

    def model(self) -> Encoder:
        fresh, model = Encoder(self.config), Encoder(self.config)
        masked.look_alike(fresh, masked.HEADS_OF_LIKES)
        model.load_state_dict(self.begun.model.state_dict())
        share = resting(self.begun, gates.ordinary(self.held_out.sentences))
        free, new = masked.FIRST_PAYING_HEAD, len(masked.HEADS_OF_LIKES)
        for attention, rests in zip(model.attentions()["self"], share):
            order = np.argsort(-rests).tolist()
            if attention.layer == 0:
                order = order[:free] + order[free + new :] + order[free : free + new]
            reorder(attention, order)
        first, begins = (each.attentions()["self"][0] for each in (model, fresh))
        renew(first, begins, masked.HEADS_OF_LIKES)
        return model

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return super().batches(tokenizer, epoch + FIRST_EPOCH)

    def _start(self, ids: Tensor, generator: torch.Generator, epoch: int) -> Tensor | None:
        return super()._start(ids, generator, epoch + FIRST_EPOCH)


def resting(handle: Handle, texts: Sequence[str]) -> np.ndarray:
    """What each head gives to the first token and the last two, which are special tokens and a
    final mark, on average over rows and texts, (layer, head)."""
    shares = []
    for text in texts:
        mean = record(handle, text).attention[0].pattern.mean(axis=2)  # (layer, head, key)
        shares.append(mean[..., [0, -2, -1]].sum(-1))
    return np.mean(shares, axis=0)


@torch.no_grad()
def reorder(attention: MultiHeadAttention, order: Sequence[int]) -> None:
    """Let head i be what head order[i] was. What the sub-layer computes stays the same."""
    taken = torch.arange(attention.n_head * attention.d_head).unflatten(0, (-1, attention.d_head))
    taken = taken[list(order)].flatten()
    for linear in (attention.w_q, attention.w_k, attention.w_v):
        linear.weight.copy_(linear.weight[taken])
        if linear.bias is not None:
            linear.bias.copy_(linear.bias[taken])
    attention.w_o.weight.copy_(attention.w_o.weight[:, taken])


@torch.no_grad()
def renew(attention: MultiHeadAttention, fresh: MultiHeadAttention, heads: Sequence[int]) -> None:
    """Let these heads begin with the weights that they have in `fresh`."""
    for head in heads:
        rows = slice(head * attention.d_head, (head + 1) * attention.d_head)
        for one, new in (
            (attention.w_q, fresh.w_q),
            (attention.w_k, fresh.w_k),
            (attention.w_v, fresh.w_v),
        ):
            one.weight[rows] = new.weight[rows]
            if one.bias is not None:
                one.bias[rows] = new.bias[rows]
        attention.w_o.weight[:, rows] = fresh.w_o.weight[:, rows]
