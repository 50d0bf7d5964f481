"""Token embeddings and positions, the start of the stream (sections 3.4 and 3.5 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt

import numpy as np
import torch
from torch import Tensor, nn

from models.contract.edits import (
    Edit,
    OtherPositions,
    ShiftPositions,
    ShufflePositions,
    WithoutNorm,
    WithoutPositions,
    applies,
    last_edit,
)
from models.network.config import Config
from models.network.layers import Tape, apply_norm, hook_point, norm_of
from models.network.linear import Linear


def sinusoids(n_positions: int, d_model: int) -> Tensor:
    """Positional encoding, shape (n_positions, d_model), section 3.5 of the paper.

    PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same angle.
    """
    position = torch.arange(n_positions, dtype=torch.float64)[:, None]
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position * torch.exp(-log(10000.0) * pair / d_model)  # (position, d_model/2)
    table = torch.zeros(n_positions, d_model, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table.float()


def position_ids(n: int, start: Tensor | int | None, edits: tuple[Edit, ...]) -> Tensor:
    """The position that each of n tokens is given, counted from 0, or from `start`: (token), with a
    `start` of (batch, 1) for each text its own."""
    positions = torch.arange(n)
    if (shuffle_edit := last_edit(edits, ShufflePositions)) is not None:
        positions = torch.tensor(np.random.default_rng(shuffle_edit.seed).permutation(n))
    if (shift_edit := last_edit(edits, ShiftPositions)) is not None:
        positions = positions + shift_edit.by
    return positions if start is None else start + positions


class Embedding(nn.Module):
    """Token embedding x sqrt(d_model) + position, sections 3.4 and 3.5.

    Where words are of another width than the stream (`Config.embedding_width`), one matrix makes
    it of their normed sum, and only what it makes is a state of the stream."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.d_embedding
        self.token = nn.Embedding(config.n_vocab, width)
        self.scale = sqrt(config.d_model) if config.scaled_embedding else 1.0
        self.segment = nn.Parameter(torch.zeros(width)) if config.segment else None
        if config.positions == "learned":
            self.position = nn.Parameter(torch.randn(config.n_positions, width) * width**-0.5)
        else:
            table = (
                sinusoids(config.n_positions, width) if config.positions == "sinusoids" else None
            )
            self.register_buffer("position", table, persistent=False)  # (position, d_model)
        self.norm = norm_of(config, width) if config.embedding_norm else None
        self.widen = None if config.embedding_width is None else Linear(width, config.d_model)

    def forward(
        self, ids: Tensor, start: Tensor | None, tape: Tape, edits: tuple[Edit, ...]
    ) -> Tensor:
        """ids (batch, token) -> (batch, token, d_model). `start`, (batch, 1) or (1), shifts the
        positions, 0 where None."""

        def state(site: str, x: Tensor) -> Tensor:
            return hook_point(site, x, tape, edits)

        if self.widen is None:
            return self._summed(ids, start, edits, state)
        return state("embed+pos", self.widen(self._summed(ids, start, edits, lambda _, x: x)))

    def _summed(
        self,
        ids: Tensor,
        start: Tensor | None,
        edits: tuple[Edit, ...],
        state: Callable[[str, Tensor], Tensor],
    ) -> Tensor:
        """Words and positions, normed where the model norms them, (batch, token, width)."""
        x = state("embed", self._rows(self.token(ids)))
        position = self.positions(ids.shape[1], start, edits)
        if position is not None:
            x = state("embed+pos", x + state("pos.wrote", position))
        if self.norm is not None and not applies(edits, WithoutNorm):
            x = state("embed.normed", apply_norm(self.norm, x, edits))
        return x

    def words(self, rows: Tensor) -> Tensor:
        """Rows (..., width) of the embedding matrix as the stream begins with them, (..., d_model).
        Of narrow ones that is without the norm between."""
        rows = self._rows(rows)
        return rows if self.widen is None else self.widen(rows)

    def _rows(self, rows: Tensor) -> Tensor:
        rows = rows * self.scale if self.scale != 1.0 else rows
        return rows if self.segment is None else rows + self.segment

    def positions(self, n: int, start: Tensor | None, edits: tuple[Edit, ...]) -> Tensor | None:
        """Position vectors of n tokens, (token, d_model) or (batch, token, d_model); None for
        none."""
        position_edit = last_edit(edits, OtherPositions)
        if (
            applies(edits, WithoutPositions)
            or (position_edit is not None and position_edit.to in ("rotary", "distance"))
            or (position_edit is None and self.position is None)
        ):
            return None
        table = self.position if position_edit is None else self._substitute_table(position_edit.to)
        if start is None and not edits:
            rows = table[:n]  # a view, which in inference mode would ask for gradients
            return rows if torch.is_grad_enabled() else rows.detach()
        return table[position_ids(n, start, edits)]

    def _substitute_table(self, kind: str) -> Tensor:
        """Another table of the same size and mean length as the model's own; where it has none, of
        the paper's length."""
        n, d = self.position.shape if self.position is not None else (512, self.token.embedding_dim)
        length = self.position.norm(dim=-1).mean() if self.position is not None else sqrt(d / 2)
        table = (
            sinusoids(n, d)
            if kind == "sinusoids"
            else torch.randn(n, d, generator=torch.Generator().manual_seed(0), device="cpu")
        ).to(self.token.weight.device)
        return table * (length / table.norm(dim=-1).mean())
