"""The encoder's recipe from shipped weights on: they go on learning, from more text and under a
price on sinks.

In each layer the heads that rest most on special tokens and final marks may go on to: they pay
nothing. Of layer 0 the two that rest most among the others begin anew, alike in W_Q and W_K. Every
other head keeps its number, so that an address shows the head that it showed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from models import own_model
from models.attention import MultiHeadAttention
from models.own_model import OwnModel, record
from models.tokenizer import Tokenizer
from models.training import masked, quality_checks
from models.transformer import Encoder


class ContinuedEncoder(masked.Masked):
    """The recipe of the shipped encoder's later steps."""

    steps, rate, warm_up = 4_200, 8e-4, 200
    shown: tuple[int, ...] = ()
    first_epoch = len(masked.CURRICULUM) - 1  # long rows from the start: its heads are there

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.config = self.base_model.model.config

    @cached_property
    def base_model(self) -> OwnModel:
        return own_model.load("encoder")

    @cached_property
    def rest_ranking(self) -> list[list[int]]:
        """The heads of each layer, those that rest most first."""
        share = rest_share(self.base_model, quality_checks.ordinary_texts(self.held_out.sentences))
        return np.argsort(-share, axis=1).tolist()

    @cached_property
    def paying(self) -> list[list[int]]:
        return [heads[masked.FIRST_PAYING_HEAD :] for heads in self.rest_ranking]

    def tokenizer(self) -> Tokenizer:
        return self.base_model.tokenizer

    def model(self) -> Encoder:
        model = Encoder(self.config)
        model.load_state_dict(self.base_model.model.state_dict())
        self.begin(model)
        return model

    def begin(self, model: Encoder) -> None:
        """Let some heads begin anew."""
        fresh = Encoder(self.config)
        masked.tie_query_key(fresh, masked.TIED_HEADS)
        attention, fresh_attention = (each.attentions()["self"][0] for each in (model, fresh))
        reset_heads(attention, fresh_attention, dict(zip(self.paying[0], masked.TIED_HEADS)))

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return super().batches(tokenizer, epoch + self.first_epoch)

    def _start(self, ids: Tensor, generator: torch.Generator, epoch: int) -> Tensor | None:
        return super()._start(ids, generator, epoch + self.first_epoch)


class EncoderContinuation(ContinuedEncoder):
    """The recipe of its last steps: from the shipped encoder on, at a lower rate, with rows as long
    as it reads. What is shipped then is the mean of both weights (Izmailov et al., 2018)."""

    steps, rate = 7_000, 3e-4
    shown = (0,)
    diet = masked.Diet(n_pronouns=25_000, echo_share=0.1, long_rows=512)
    first_epoch = 20  # other draws than those that it has met

    def begin(self, model: Encoder) -> None:
        """Every head goes on as it is."""


def rest_share(handle: OwnModel, texts: Sequence[str]) -> np.ndarray:
    """What each head gives to the first token and the last two, which are special tokens and a
    final mark, on average over rows and texts, (layer, head)."""
    shares = []
    for text in texts:
        mean = record(handle, text).attention[0].pattern.mean(axis=2)  # (layer, head, key)
        shares.append(mean[..., [0, -2, -1]].sum(-1))
    return np.mean(shares, axis=0)


@torch.no_grad()
def reset_heads(
    attention: MultiHeadAttention, fresh: MultiHeadAttention, heads: dict[int, int]
) -> None:
    """Let heads begin with the weights that others have in `fresh`: new number by old one."""
    d = attention.d_head
    for old, new in heads.items():
        rows, fresh_rows = slice(old * d, (old + 1) * d), slice(new * d, (new + 1) * d)
        for matrix, fresh_matrix in (
            (attention.w_q, fresh.w_q),
            (attention.w_k, fresh.w_k),
            (attention.w_v, fresh.w_v),
        ):
            matrix.weight[rows] = fresh_matrix.weight[fresh_rows]
            if matrix.bias is not None:
                matrix.bias[rows] = fresh_matrix.bias[fresh_rows]
        attention.w_o.weight[:, rows] = fresh.w_o.weight[:, fresh_rows]
