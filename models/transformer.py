"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017), in the paper's order and with its names.

Axis legend, used in every comment below:
    batch    texts side by side            head     0 .. n_head-1
    query    the position that looks       d_model  width of the residual stream
    key      the position looked at        d_head   d_model / n_head, the paper's d_k = d_v
    token    a position of one stream      d_ff     inner width of the feed-forward network

Queries and keys may belong to different streams: `MultiHeadAttention` takes the two apart, so self-attention is the case
where both are the same tensor, and cross-attention needs no other class.

Observation is an argument. Every forward pass takes a `tape`, called as `tape(name, tensor)` at each named place; the
default does nothing, and nothing is ever stored on a module. Edits are arguments too (`models/edits.py`), so two people
who share a model never see each other's changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt

import torch
from torch import Tensor, nn

from models.edits import Edit, ZeroHead, WithoutNorm, WithoutPositions, WithoutResidual, WithoutScale, applies

Tape = Callable[[str, Tensor], None]


def no_tape(name: str, tensor: Tensor) -> None:
    """The tape that records nothing."""


@dataclass(frozen=True)
class Config:
    """Sizes of a model. `n_positions` is the longest text it takes, in tokens."""

    n_vocab: int
    d_model: int
    n_layer: int
    n_head: int
    d_ff: int
    n_positions: int

    def __post_init__(self) -> None:
        if self.d_model % self.n_head:
            raise ValueError(f"d_model {self.d_model} is not a multiple of n_head {self.n_head}")

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_head


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


class Embedding(nn.Module):
    """Token embedding x sqrt(d_model) + sinusoidal position, sections 3.4 and 3.5."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.token = nn.Embedding(config.n_vocab, config.d_model)
        self.scale = sqrt(config.d_model)
        self.register_buffer("position", sinusoids(config.n_positions, config.d_model), persistent=False)

    def forward(self, ids: Tensor, start: Tensor | None, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
        """ids (batch, token) -> (batch, token, d_model). `start` (batch, 1) shifts the positions, 0 where None."""
        embedded = self.token(ids) * self.scale
        tape("embed", embedded)
        if applies(edits, WithoutPositions):
            return embedded
        n = ids.shape[1]
        position = self.position[:n] if start is None else self.position[start + torch.arange(n)]
        tape("pos.wrote", position)
        x = embedded + position
        tape("embed+pos", x)
        return x


class MultiHeadAttention(nn.Module):
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head)) V, in n_head heads at once, section 3.2."""

    def __init__(self, config: Config, name: str, layer: int) -> None:
        super().__init__()
        self.name, self.layer = name, layer
        self.n_head, self.d_head = config.n_head, config.d_head
        self.w_q = nn.Linear(config.d_model, config.d_model)
        self.w_k = nn.Linear(config.d_model, config.d_model)
        self.w_v = nn.Linear(config.d_model, config.d_model)
        self.w_o = nn.Linear(config.d_model, config.d_model)

    def split(self, x: Tensor) -> Tensor:
        """(batch, token, d_model) -> (batch, head, token, d_head)."""
        return x.unflatten(-1, (self.n_head, self.d_head)).transpose(1, 2)

    def forward(
        self,
        x_query: Tensor,
        x_key: Tensor,
        allowed: Tensor | None = None,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
    ) -> Tensor:
        """What the heads write for each query: (batch, query, d_model).

        x_query (batch, query, d_model), x_key (batch, key, d_model); `allowed`, bool, broadcastable to
        (batch, head, query, key), True where attending is permitted; None permits everything.
        """
        q = self.split(self.w_q(x_query))  # (batch, head, query, d_head)
        k = self.split(self.w_k(x_key))  # (batch, head, key, d_head)
        v = self.split(self.w_v(x_key))  # (batch, head, key, d_head)
        scores = q @ k.transpose(-2, -1)  # (batch, head, query, key)
        if not applies(edits, WithoutScale, self.layer):
            scores = scores / sqrt(self.d_head)  # eq. 1
        masked = scores if allowed is None else scores.masked_fill(~allowed, float("-inf"))
        pattern = masked.softmax(dim=-1)  # (batch, head, query, key), rows sum to 1
        z = pattern @ v  # (batch, head, query, d_head)
        for edit in edits:
            if isinstance(edit, ZeroHead) and edit.layer == self.layer:
                z = z.index_fill(1, torch.tensor([edit.head]), 0.0)
        wrote = self.w_o(z.transpose(1, 2).flatten(-2))  # concat, then W_O
        for name, tensor in (("q", q), ("k", k), ("v", v), ("scores", scores), ("pattern", pattern)):
            tape(f"{self.name}.{name}", tensor)
        return wrote


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at every position, section 3.3."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(self.w_1(x).relu())  # (batch, token, d_model)


class AddAndNorm(nn.Module):
    """LayerNorm(x + Sublayer(x)): the residual connection and post-LN of section 3.1."""

    def __init__(self, config: Config, name: str, layer: int) -> None:
        super().__init__()
        self.name, self.layer = name, layer
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, x: Tensor, wrote: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
        tape(f"{self.name}.wrote", wrote)
        x = wrote if applies(edits, WithoutResidual, self.layer) else x + wrote
        tape(f"{self.name}.sum", x)
        if applies(edits, WithoutNorm, self.layer):
            return x
        x = self.norm(x)
        tape(f"{self.name}.normed", x)
        return x


class EncoderLayer(nn.Module):
    """Self-attention, add & norm, feed-forward, add & norm: one of the N identical layers of section 3.1."""

    def __init__(self, config: Config, layer: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config, f"{layer}.attn", layer)
        self.attention_out = AddAndNorm(config, f"{layer}.attn", layer)
        self.feed_forward = FeedForward(config)
        self.feed_forward_out = AddAndNorm(config, f"{layer}.ffn", layer)

    def forward(
        self, x: Tensor, allowed: Tensor | None = None, tape: Tape = no_tape, edits: tuple[Edit, ...] = ()
    ) -> Tensor:
        x = self.attention_out(x, self.attention(x, x, allowed, tape, edits), tape, edits)
        return self.feed_forward_out(x, self.feed_forward(x), tape, edits)


class Encoder(nn.Module):
    """Embedding, a stack of N layers, and the readout that fills masked words (weights tied to the embedding, 3.4)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.layers = nn.ModuleList(EncoderLayer(config, layer) for layer in range(config.n_layer))
        self.readout_bias = nn.Parameter(torch.zeros(config.n_vocab))
        self.apply(initialise)

    def forward(
        self,
        ids: Tensor,
        allowed: Tensor | None = None,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
        start: Tensor | None = None,
    ) -> Tensor:
        """ids (batch, token) -> the last layer's vectors (batch, token, d_model)."""
        x = self.embedding(ids, start, tape, edits)
        for layer in self.layers:
            x = layer(x, allowed, tape, edits)
        return x

    def logits(self, x: Tensor) -> Tensor:
        """Vectors (..., d_model) -> scores over the vocabulary (..., n_vocab)."""
        return x @ self.embedding.token.weight.T + self.readout_bias


def initialise(module: nn.Module) -> None:
    """Xavier-uniform matrices, zero biases, embeddings N(0, 1/d_model), so that sqrt(d_model) x embedding has variance 1."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
