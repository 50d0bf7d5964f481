"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017), in the paper's order and with its names.

Axis legend, used in every comment below:
    batch    texts side by side            head     0 .. n_head-1
    query    the position that looks       d_model  width of the residual stream
    key      the position looked at        d_head   d_model / n_head, the paper's d_k = d_v
    token    a position of one stream      d_ff     inner width of the feed-forward network

Queries and keys may belong to different streams: `MultiHeadAttention` takes the two apart, so self-attention is the case
where both are the same tensor, and cross-attention needs no other class.

The paper's three arrangements are built from the same layers: `Encoder` (every token sees every token), `Decoder` (a causal mask, and no
second stream) and `EncoderDecoder` (a decoder that also looks at what the encoder made of another text).

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
        """ids (batch, token) -> (batch, token, d_model). `start`, (batch, 1) or (1), shifts the positions, 0 where None."""
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


class Stored:
    """The KV cache: keys and values of the positions a decoder has read, so that the next step computes only its own.

    It belongs to one text (or one batch of them), is passed along as an argument, and grows with every pass. `kept` maps an attention's
    place, such as "0.attn", to its k and v, each (batch, head, key, d_head). Cross-attention's keys never change and are made once.
    """

    def __init__(self, kept: dict[str, tuple[Tensor, Tensor]] | None = None) -> None:
        self.kept = {} if kept is None else kept

    def keys_and_values(self, attention: MultiHeadAttention, x_key: Tensor) -> tuple[Tensor, Tensor]:
        """k and v of every position read so far, those of x_key (batch, token, d_model) now among them."""
        before = self.kept.get(attention.name)
        if before is not None and attention.cross:
            return before
        k, v = attention.keys_and_values(x_key)
        if before is not None:
            k, v = torch.cat((before[0], k), dim=2), torch.cat((before[1], v), dim=2)
        self.kept[attention.name] = k, v
        return k, v

    @property
    def n(self) -> int:
        """How many positions of the decoder's own text are stored."""
        return next((k.shape[2] for name, (k, _) in self.kept.items() if is_own(name)), 0)

    @property
    def nbytes(self) -> int:
        """Memory of all stored keys and values, in bytes."""
        return sum(tensor.nbytes for pair in self.kept.values() for tensor in pair)

    def first(self, n: int) -> Stored:
        """The cache as it was after the first `n` positions."""
        return Stored({name: (k[:, :, :n], v[:, :, :n]) if is_own(name) else (k, v) for name, (k, v) in self.kept.items()})

    def rows(self, which: Tensor) -> Stored:
        """The cache of a batch put together from the rows `which` (beams)."""
        return Stored({name: (k[which], v[which]) for name, (k, v) in self.kept.items()})


def is_own(name: str) -> bool:
    """True for an attention of the decoder to its own text, False for one to the encoder's."""
    return name.endswith(".attn")


class MultiHeadAttention(nn.Module):
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head)) V, in n_head heads at once, section 3.2.

    `name` is its place on the tape, `label` the name its Recording and its edits know it by, `cross` whether its keys are another stream's.
    """

    def __init__(self, config: Config, name: str, layer: int, label: str = "self", cross: bool = False) -> None:
        super().__init__()
        self.name, self.layer, self.label, self.cross = name, layer, label, cross
        self.n_head, self.d_head = config.n_head, config.d_head
        self.w_q = nn.Linear(config.d_model, config.d_model)
        self.w_k = nn.Linear(config.d_model, config.d_model)
        self.w_v = nn.Linear(config.d_model, config.d_model)
        self.w_o = nn.Linear(config.d_model, config.d_model)

    def split(self, x: Tensor) -> Tensor:
        """(batch, token, d_model) -> (batch, head, token, d_head)."""
        return x.unflatten(-1, (self.n_head, self.d_head)).transpose(1, 2)

    def keys_and_values(self, x_key: Tensor) -> tuple[Tensor, Tensor]:
        """k and v, each (batch, head, key, d_head), of x_key (batch, key, d_model)."""
        return self.split(self.w_k(x_key)), self.split(self.w_v(x_key))

    def forward(
        self,
        x_query: Tensor,
        x_key: Tensor,
        allowed: Tensor | None = None,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
        stored: Stored | None = None,
    ) -> Tensor:
        """What the heads write for each query: (batch, query, d_model).

        x_query (batch, query, d_model), x_key (batch, key, d_model); `allowed`, bool, broadcastable to
        (batch, head, query, key), True where attending is permitted; None permits everything. With `stored`, the keys are those of
        earlier passes and x_key's after them.
        """
        q = self.split(self.w_q(x_query))  # (batch, head, query, d_head)
        k, v = self.keys_and_values(x_key) if stored is None else stored.keys_and_values(self, x_key)
        scores = q @ k.transpose(-2, -1)  # (batch, head, query, key)
        if not applies(edits, WithoutScale, self.layer):
            scores = scores / sqrt(self.d_head)  # eq. 1
        masked = scores if allowed is None else scores.masked_fill(~allowed, float("-inf"))
        pattern = masked.softmax(dim=-1)  # (batch, head, query, key), rows sum to 1
        z = pattern @ v  # (batch, head, query, d_head)
        for edit in edits:
            if isinstance(edit, ZeroHead) and (edit.attention, edit.layer) == (self.label, self.layer):
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


class Layer(nn.Module):
    """Self-attention, then in a decoder of two streams attention to the `memory`, then the feed-forward network; each with add & norm.

    One of the N identical layers of section 3.1: without `cross` an encoder's (and, under a causal mask, one of a decoder without a
    second stream), with it a decoder's. `label` names its attentions, see MultiHeadAttention.
    """

    def __init__(self, config: Config, layer: int, label: str = "self", cross: bool = False) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config, f"{layer}.attn", layer, label)
        self.attention_out = AddAndNorm(config, f"{layer}.attn", layer)
        if cross:
            self.cross = MultiHeadAttention(config, f"{layer}.cross", layer, "cross", cross=True)
            self.cross_out = AddAndNorm(config, f"{layer}.cross", layer)
        self.feed_forward = FeedForward(config)
        self.feed_forward_out = AddAndNorm(config, f"{layer}.ffn", layer)

    def forward(
        self,
        x: Tensor,
        allowed: Tensor | None = None,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
        memory: Tensor | None = None,
        memory_allowed: Tensor | None = None,
        stored: Stored | None = None,
    ) -> Tensor:
        """x (batch, token, d_model) -> the same shape. `memory` (batch, key, d_model): the encoder's last vectors, for a layer with `cross`."""
        x = self.attention_out(x, self.attention(x, x, allowed, tape, edits, stored), tape, edits)
        if memory is not None:
            x = self.cross_out(x, self.cross(x, memory, memory_allowed, tape, edits, stored), tape, edits)
        return self.feed_forward_out(x, self.feed_forward(x), tape, edits)


class Model(nn.Module):
    """What all three arrangements share: one embedding, tied to the readout (section 3.4)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.readout_bias = nn.Parameter(torch.zeros(config.n_vocab))

    def logits(self, x: Tensor) -> Tensor:
        """Vectors (..., d_model) -> scores over the vocabulary (..., n_vocab)."""
        return x @ self.embedding.token.weight.T + self.readout_bias

    def attentions(self) -> dict[str, list[MultiHeadAttention]]:
        """Every attention by its label, its layers in order."""
        found: dict[str, list[MultiHeadAttention]] = {}
        for module in self.modules():
            if isinstance(module, MultiHeadAttention):
                found.setdefault(module.label, []).append(module)
        return found


class Encoder(Model):
    """Embedding, a stack of N layers, and the readout that fills masked words."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList(Layer(config, layer) for layer in range(config.n_layer))
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


class Decoder(Model):
    """Embedding, a stack of N layers under a causal mask, and the readout that says the next token."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList(Layer(config, layer) for layer in range(config.n_layer))
        self.apply(initialise)

    def forward(self, ids: Tensor, tape: Tape = no_tape, edits: tuple[Edit, ...] = (), stored: Stored | None = None, start: Tensor | None = None) -> Tensor:
        """ids (batch, token) -> the last layer's vectors (batch, token, d_model); a token's vector knows nothing of later ones.

        With `stored`, ids follow the positions stored there. `start` (batch, 1) shifts the positions, for training. Texts of unlike
        length are padded on the right: nothing sees the padding.
        """
        past = 0 if stored is None else stored.n
        x = self.embedding(ids, torch.tensor([past]) if past else start, tape, edits)
        allowed = causal(past, ids.shape[1])
        for layer in self.layers:
            x = layer(x, allowed, tape, edits, stored=stored)
        return x


class EncoderDecoder(Model):
    """The whole architecture of figure 1: an encoder reads one text, a decoder writes another and looks at both."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.encoder = nn.ModuleList(Layer(config, layer, "encoder self") for layer in range(config.n_layer))
        self.decoder = nn.ModuleList(Layer(config, layer, "decoder self", cross=True) for layer in range(config.n_layer))
        self.apply(initialise)

    def encode(self, ids: Tensor, allowed: Tensor | None = None, tape: Tape = no_tape, edits: tuple[Edit, ...] = ()) -> Tensor:
        """Source ids (batch, key) -> the memory, (batch, key, d_model). `allowed`, broadcastable to (batch, head, key, key)."""
        x = self.embedding(ids, None, tape, edits)
        for layer in self.encoder:
            x = layer(x, allowed, tape, edits)
        return x

    def decode(
        self,
        ids: Tensor,
        memory: Tensor,
        memory_allowed: Tensor | None = None,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
        stored: Stored | None = None,
    ) -> Tensor:
        """Target ids (batch, token) and the memory (batch, key, d_model) -> vectors (batch, token, d_model), each saying the token after.

        The target begins with [BOS], so that the vector of a token says the one that follows: outputs are offset by one (section 3.1).
        `memory_allowed`, broadcastable to (batch, head, token, key), is False for padding of the source. `stored` as in Decoder.
        """
        past = 0 if stored is None else stored.n
        x = self.embedding(ids, torch.tensor([past]) if past else None, tape, edits)
        allowed = causal(past, ids.shape[1])
        for layer in self.decoder:
            x = layer(x, allowed, tape, edits, memory, memory_allowed, stored)
        return x


def causal(past: int, n: int) -> Tensor:
    """Which of past + n positions each of the last n may attend to: itself and those before, (n, past + n) bool (section 3.2.3)."""
    return torch.ones(n, past + n, dtype=torch.bool).tril(past)


def initialise(module: nn.Module) -> None:
    """Xavier-uniform matrices, zero biases, embeddings N(0, 1/d_model), so that sqrt(d_model) x embedding has variance 1."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
