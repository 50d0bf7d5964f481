"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017), in the paper's order and with its names.

Axis legend, used in every comment below:
    batch    texts side by side            head     0 .. n_head-1
    query    the position that looks       d_model  width of the residual stream
    key      the position looked at        d_head   d_model / n_head, the paper's d_k = d_v
    token    a position of one stream      d_ff     inner width of the feed-forward network

Queries and keys may belong to different streams: `MultiHeadAttention` takes the two apart, so self-attention is the case
where both are the same tensor, and cross-attention needs no other class.

The paper's three arrangements are built from the same layers: `Encoder` (every token sees every token), `Decoder` (a causal mask, and no
second stream) and `EncoderDecoder` (a decoder that also looks at what the encoder made of another text). What later models changed
(where LayerNorm stands, learned positions, GELU) is a choice in `Config`, made when the model is built.

Observation is an argument. Every forward pass takes a `tape`, called as `tape(name, tensor)` at each named place; the
default does nothing, and nothing is ever stored on a module. Edits are arguments too (`models/edits.py`), so two people
who share a model never see each other's changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log, sqrt

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.attention_edits import Place, divisor, evened, silenced
from models.edits import (
    Edit,
    MoveNorm,
    OtherPositions,
    ShiftPositions,
    ShufflePositions,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    applies,
    last,
)

Tape = Callable[[str, Tensor], None]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


def no_tape(name: str, tensor: Tensor) -> None:
    """The tape that records nothing."""


def room(tape: Tape, name: str, shape: tuple[int, ...]) -> Tensor | None:
    """Memory that a tape wants a tensor computed into, where it has a method `room`: what is large is then written once and not copied."""
    wanted = getattr(tape, "room", None)
    return None if wanted is None else wanted(name, shape)


@dataclass(frozen=True)
class Config:
    """Sizes of a model, and what kind of Transformer it is; as it stands, the paper's. `n_positions` is the longest text it takes, in tokens.

    norm: where LayerNorm stands, "post" after each sum (the paper), "pre" before each sub-layer and once at the end, or None, nowhere.
    positions: "sinusoids" (the paper), "learned", or None. scaled_embedding: times sqrt(d_model), section 3.4. embedding_norm: a LayerNorm
    before the first layer. segment: one more vector, the same for every token, added to the embeddings (BERT's token type 0).
    readout: "tied" to the embedding, "transform" for a dense layer, activation and LayerNorm before that (BERT), or None.
    scaled_scores and residual are False only where a model was trained without them.
    """

    n_vocab: int
    d_model: int
    n_layer: int
    n_head: int
    d_ff: int
    n_positions: int
    norm: str | None = "post"
    positions: str | None = "sinusoids"
    activation: str = "relu"
    eps: float = 1e-5
    scaled_embedding: bool = True
    embedding_norm: bool = False
    segment: bool = False
    readout: str | None = "tied"
    scaled_scores: bool = True
    residual: bool = True

    def __post_init__(self) -> None:
        if self.d_model % self.n_head:
            raise ValueError(f"d_model {self.d_model} is not a multiple of n_head {self.n_head}")
        for field, options in (
            ("norm", ("post", "pre", None)),
            ("positions", ("sinusoids", "learned", None)),
            ("activation", tuple(ACTIVATIONS)),
            ("readout", ("tied", "transform", None)),
        ):
            if getattr(self, field) not in options:
                raise ValueError(
                    f"{field} is {getattr(self, field)!r}; it may be {', '.join(map(repr, options))}"
                )

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_head


@dataclass(frozen=True, eq=False)
class Put(Edit):
    """Vectors of another run, put in at a named place: what a PatchHead or PatchSite becomes when a pass begins.

    values (token, width) replace as many tokens as there are; `head`: of that head alone; `token`: at that place alone.
    """

    name: str
    values: Tensor
    head: int | None = None
    token: int | None = None

    def into(self, x: Tensor) -> Tensor:
        """x (batch, token, width) or (batch, head, token, width), changed."""
        x = x.clone()
        here = x if self.head is None else x[:, self.head]
        n = min(here.shape[-2], len(self.values))
        if self.token is None:
            here[..., :n, :] = self.values[:n]
        elif self.token < n:
            here[..., self.token, :] = self.values[self.token]
        return x


def passed(name: str, x: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
    """What goes on from a named place: x, or what an edit puts there; the tape hears of it."""
    for edit in edits:
        if isinstance(edit, Put) and edit.name == name:
            x = edit.into(x if x.dim() > 2 else x[None])
    tape(name, x)
    return x


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
    """Token embedding x sqrt(d_model) + position, sections 3.4 and 3.5."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.token = nn.Embedding(config.n_vocab, config.d_model)
        self.scale = sqrt(config.d_model) if config.scaled_embedding else 1.0
        self.segment = nn.Parameter(torch.zeros(config.d_model)) if config.segment else None
        if config.positions == "learned":
            self.position = nn.Parameter(
                torch.randn(config.n_positions, config.d_model) * config.d_model**-0.5
            )
        else:
            table = (
                sinusoids(config.n_positions, config.d_model)
                if config.positions == "sinusoids"
                else None
            )
            self.register_buffer("position", table, persistent=False)  # (position, d_model)
        self.norm = nn.LayerNorm(config.d_model, eps=config.eps) if config.embedding_norm else None

    def forward(
        self, ids: Tensor, start: Tensor | None, tape: Tape, edits: tuple[Edit, ...]
    ) -> Tensor:
        """ids (batch, token) -> (batch, token, d_model). `start`, (batch, 1) or (1), shifts the positions, 0 where None."""
        x = passed("embed", self.words(self.token(ids)), tape, edits)
        position = self.positions(ids.shape[1], start, edits)
        if position is not None:
            x = passed("embed+pos", x + passed("pos.wrote", position, tape, edits), tape, edits)
        if self.norm is not None and not applies(edits, WithoutNorm):
            x = passed("embed.normed", self.norm(x), tape, edits)
        return x

    def words(self, rows: Tensor) -> Tensor:
        """Rows (..., d_model) of the embedding matrix as the stream begins with them."""
        rows = rows * self.scale if self.scale != 1.0 else rows
        return rows if self.segment is None else rows + self.segment

    def positions(self, n: int, start: Tensor | None, edits: tuple[Edit, ...]) -> Tensor | None:
        """What is added to n tokens, (token, d_model) or (batch, token, d_model); None for nothing."""
        other = last(edits, OtherPositions)
        if (
            applies(edits, WithoutPositions)
            or (other is not None and other.to in ("rotary", "distance"))
            or (other is None and self.position is None)
        ):
            return None
        table = self.position if other is None else self._other(other.to)
        places = torch.arange(n)
        if (shuffled := last(edits, ShufflePositions)) is not None:
            places = torch.from_numpy(np.random.default_rng(shuffled.seed).permutation(n))
        if (shifted := last(edits, ShiftPositions)) is not None:
            places = places + shifted.by
        if start is not None:
            places = start + places
        return table[places]

    def _other(self, kind: str) -> Tensor:
        """Another table of the same size and mean length as the model's own; where it has none, of the paper's length."""
        n, d = self.position.shape if self.position is not None else (512, self.token.embedding_dim)
        length = self.position.norm(dim=-1).mean() if self.position is not None else sqrt(d / 2)
        table = (
            sinusoids(n, d)
            if kind == "sinusoids"
            else torch.randn(n, d, generator=torch.Generator().manual_seed(0))
        )
        return table * (length / table.norm(dim=-1).mean())


def turned(x: Tensor, start: int) -> Tensor:
    """Rotary positions (Su et al. 2021, RoFormer, eq. 34): dimensions (i, i + d_head/2) turned by position x 10000^(-2i/d_head).

    x (batch, head, token, d_head); its first token stands at `start`. An odd last dimension stays.
    """
    half = x.shape[-1] // 2
    angle = (start + torch.arange(x.shape[-2]))[:, None] * 10000.0 ** (
        -torch.arange(half) / max(half, 1)
    )  # (token, half)
    cos, sin = angle.cos(), angle.sin()
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1)


def scaled_products(q: Tensor, k: Tensor, divisor: float, out: Tensor | None) -> Tensor:
    """q k^T / divisor, (batch, head, query, key), the division within the product. `out`: where it is wanted, if not just anywhere."""
    three = None if out is None else out.flatten(0, 1)
    scores = torch.baddbmm(
        q.new_empty(1, 1, 1),
        q.flatten(0, 1),
        k.flatten(0, 1).transpose(-2, -1),
        beta=0,
        alpha=1 / divisor,
        out=three,
    )
    return scores.unflatten(0, q.shape[:2])


def penalty(n_head: int, n_query: int, n_key: int) -> Tensor:
    """ALiBi (Press et al. 2022): what a score loses, distance x 2^(-8 (head + 1) / n_head), shape (head, query, key). Queries are the last."""
    slope = 2.0 ** (-8.0 * torch.arange(1, n_head + 1) / n_head)
    distance = (torch.arange(n_key - n_query, n_key)[:, None] - torch.arange(n_key)).abs()
    return slope[:, None, None] * distance


class Stored:
    """The KV cache: keys and values of the positions a decoder has read, so that the next step computes only its own.

    It belongs to one text (or one batch of them), is passed along as an argument, and grows with every pass. `kept` maps an attention's
    place, such as "0.attn", to its k and v, each (batch, head, key, d_head). Cross-attention's keys never change and are made once.
    """

    def __init__(self, kept: dict[str, tuple[Tensor, Tensor]] | None = None) -> None:
        self.kept = {} if kept is None else kept

    def with_new(self, name: str, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """k and v of every position read so far, the new ones now among them."""
        if name in self.kept:
            k, v = (
                torch.cat((self.kept[name][0], k), dim=2),
                torch.cat((self.kept[name][1], v), dim=2),
            )
        self.kept[name] = k, v
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
        return Stored(
            {
                name: (k[:, :, :n], v[:, :, :n]) if is_own(name) else (k, v)
                for name, (k, v) in self.kept.items()
            }
        )

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

    def __init__(
        self, config: Config, name: str, layer: int, label: str = "self", cross: bool = False
    ) -> None:
        super().__init__()
        self.name, self.layer, self.label, self.cross = name, layer, label, cross
        self.place = Place(label, layer)
        self.n_head, self.d_head = config.n_head, config.d_head
        self.scale = sqrt(config.d_head) if config.scaled_scores else 1.0
        self.w_q = nn.Linear(config.d_model, config.d_model)
        self.w_k = nn.Linear(config.d_model, config.d_model)
        self.w_v = nn.Linear(config.d_model, config.d_model)
        self.w_o = nn.Linear(config.d_model, config.d_model)
        self.fused: tuple[Tensor, ...] | None = None

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
        stored: Stored | None = None,
    ) -> Tensor:
        """What the heads write for each query: (batch, query, d_model).

        x_query (batch, query, d_model), x_key (batch, key, d_model); `allowed`, bool, broadcastable to
        (batch, head, query, key), True where attending is permitted; None permits everything. With `stored`, the keys are those of
        earlier passes and x_key's after them.
        """
        q, k, v = self.queries_keys_values(x_query, x_key, edits, stored, tape)
        shape = (*q.shape[:-1], k.shape[-2])
        scores = scaled_products(
            q,
            k,
            divisor(edits, self.layer, self.scale),
            room(tape, f"{self.name}.scores", shape),
        )  # (batch, head, query, key), eq. 1
        if (
            not self.cross
            and (other := last(edits, OtherPositions)) is not None
            and other.to == "distance"
        ):
            scores = scores - penalty(self.n_head, *scores.shape[-2:])
        masked = scores if allowed is None else scores.masked_fill(~allowed, float("-inf"))
        pattern = torch.softmax(masked, dim=-1, out=room(tape, f"{self.name}.pattern", shape))
        pattern = evened(pattern, allowed, edits, self.place)  # rows sum to 1
        z = silenced(pattern @ v, edits, self.place)  # (batch, head, query, d_head)
        z = passed(f"{self.name}.z", z, tape, edits)
        wrote = self.w_o(z.transpose(1, 2).flatten(-2))  # concat, then W_O
        for name, tensor in (
            ("q", q),
            ("k", k),
            ("v", v),
            ("scores", scores),
            ("pattern", pattern),
        ):
            tape(f"{self.name}.{name}", tensor)
        return wrote

    def queries_keys_values(
        self,
        x_query: Tensor,
        x_key: Tensor,
        edits: tuple[Edit, ...],
        stored: Stored | None,
        tape: Tape = no_tape,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """q (batch, head, query, d_head), k and v (batch, head, key, d_head). Cross-attention's keys never change: stored ones are not made again."""
        if x_query is x_key and self.is_fused():
            q, k, v = self.in_one_product(x_query, tape)
        else:
            q = self.split(self.w_q(x_query))
            if stored is not None and self.cross and self.name in stored.kept:
                return q, *stored.kept[self.name]
            k, v = self.split(self.w_k(x_key)), self.split(self.w_v(x_key))
        if (
            not self.cross
            and (other := last(edits, OtherPositions)) is not None
            and other.to == "rotary"
        ):
            past = (
                stored.kept[self.name][0].shape[2]
                if stored is not None and self.name in stored.kept
                else 0
            )
            q, k = turned(q, past), turned(k, past)
        return q, *((k, v) if stored is None else stored.with_new(self.name, k, v))

    def fuse(self) -> None:
        """Lay W_Q, W_K and W_V side by side in memory, so that self-attention makes q, k and v in one product. They stay three: views of it."""
        linears = (self.w_q, self.w_k, self.w_v)
        with torch.inference_mode(False):  # whatever it is called in, the model may be trained on
            self.fused = tuple(
                torch.cat([getattr(each, part).detach() for each in linears])
                for part in ("weight", "bias")
            )
            for part, whole in zip(("weight", "bias"), self.fused):
                for each, own in zip(linears, whole.chunk(3)):
                    getattr(each, part).data = own

    def in_one_product(self, x: Tensor, tape: Tape) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v, each (batch, head, token, d_head), of x (batch, token, d_model)."""
        shape = (*x.shape[:-1], 3, self.n_head, self.d_head)
        whole = room(tape, f"{self.name}.qkv", shape)
        whole = x.new_empty(shape) if whole is None else whole
        weight, bias = self.fused
        torch.addmm(bias, x.flatten(0, 1), weight.T, out=whole.view(-1, len(bias)))
        return whole.permute(2, 0, 3, 1, 4).unbind(0)

    def is_fused(self) -> bool:
        """True where the one product may stand for the three: no gradient is wanted, and they still share their memory."""
        return (
            self.fused is not None
            and not torch.is_grad_enabled()
            and self.fused[0].data_ptr() == self.w_q.weight.data_ptr()
        )


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at every position, section 3.3."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(self.activation(self.w_1(x)))  # (batch, token, d_model)


class AddAndNorm(nn.Module):
    """LayerNorm(x + Sublayer(x)), the residual connection and post-LN of section 3.1; or x + Sublayer(LayerNorm(x)), pre-LN."""

    def __init__(self, config: Config, name: str, layer: int) -> None:
        super().__init__()
        self.name, self.layer, self.sublayer = name, layer, name.rpartition(".")[2]
        self.place, self.residual = config.norm, config.residual
        self.norm = None if config.norm is None else nn.LayerNorm(config.d_model, eps=config.eps)

    def norm_at(self, edits: tuple[Edit, ...]) -> str | None:
        """Where LayerNorm stands: "pre", "post" or None."""
        if self.norm is None or applies(edits, WithoutNorm, self.layer):
            return None
        moved = last(edits, MoveNorm, self.layer)
        return self.place if moved is None else moved.to

    def adds(self, edits: tuple[Edit, ...]) -> bool:
        """True where the sub-layer's output is added to the stream and does not replace it."""
        return self.residual and not applies(edits, WithoutResidual, self.layer, self.sublayer)

    def read(self, x: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
        """What the sub-layer reads of the stream x (batch, token, d_model)."""
        return (
            passed(f"{self.name}.read", self.norm(x), tape, edits)
            if self.norm_at(edits) == "pre"
            else x
        )

    def forward(self, x: Tensor, wrote: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
        """The stream after the sub-layer: x and `wrote` (batch, token, d_model) -> the same shape."""
        wrote = passed(f"{self.name}.wrote", wrote, tape, edits)
        total = (
            torch.add(x, wrote, out=room(tape, f"{self.name}.sum", tuple(x.shape)))
            if self.adds(edits)
            else wrote
        )
        x = passed(f"{self.name}.sum", total, tape, edits)
        return (
            passed(f"{self.name}.normed", self.norm(x), tape, edits)
            if self.norm_at(edits) == "post"
            else x
        )


class LastNorm(nn.Module):
    """The LayerNorm at the end of a pre-LN stack. A model of another kind has none of its own."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.place, self.eps = config.norm, config.eps
        self.norm = nn.LayerNorm(config.d_model, eps=config.eps) if config.norm == "pre" else None

    def stands(self, edits: tuple[Edit, ...]) -> bool:
        """True where the stack ends in a LayerNorm."""
        moved = last(edits, MoveNorm)
        return (
            self.place is not None
            and not applies(edits, WithoutNorm)
            and (self.place if moved is None else moved.to) == "pre"
        )

    def normed(self, x: Tensor) -> Tensor:
        """x (..., d_model) through it; without gain and bias where the model has learned none."""
        return F.layer_norm(x, x.shape[-1:], eps=self.eps) if self.norm is None else self.norm(x)

    def forward(self, x: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
        return passed("final.normed", self.normed(x), tape, edits) if self.stands(edits) else x


class Layer(nn.Module):
    """Self-attention, then in a decoder of two streams attention to the `memory`, then the feed-forward network; each with add & norm.

    One of the N identical layers of section 3.1: without `cross` an encoder's (and, under a causal mask, one of a decoder without a
    second stream), with it a decoder's. `label` names its attentions, see MultiHeadAttention.
    """

    def __init__(
        self, config: Config, layer: int, label: str = "self", cross: bool = False
    ) -> None:
        super().__init__()
        self.layer = layer
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
        read = self.attention_out.read(x, tape, edits)
        x = self.attention_out(
            x, self.attention(read, read, allowed, tape, edits, stored), tape, edits
        )
        if memory is not None:
            read = self.cross_out.read(x, tape, edits)
            x = self.cross_out(
                x, self.cross(read, memory, memory_allowed, tape, edits, stored), tape, edits
            )
        read = self.feed_forward_out.read(x, tape, edits)
        wrote = (
            torch.zeros_like(x)
            if applies(edits, WithoutFeedForward, self.layer)
            else self.feed_forward(read)
        )
        return self.feed_forward_out(x, wrote, tape, edits)


class Model(nn.Module):
    """What all three arrangements share: one embedding, and a readout tied to it (section 3.4)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.last_norm = LastNorm(config)
        self.transform = (
            nn.Linear(config.d_model, config.d_model) if config.readout == "transform" else None
        )
        self.transform_norm = (
            nn.LayerNorm(config.d_model, eps=config.eps) if config.readout == "transform" else None
        )
        self.readout_bias = (
            None if config.readout is None else nn.Parameter(torch.zeros(config.n_vocab))
        )

    def logits(self, x: Tensor) -> Tensor:
        """Last vectors (..., d_model) -> scores over the vocabulary (..., n_vocab). Raises ValueError for a model without a readout."""
        if self.readout_bias is None:
            raise ValueError(
                "this model has no readout: it was trained to give vectors, and says no words"
            )
        return self.before_readout(x) @ self.embedding.token.weight.T + self.readout_bias

    def before_readout(self, x: Tensor) -> Tensor:
        """Vectors (..., d_model) as the tied matrix reads them."""
        return (
            x
            if self.transform is None
            else self.transform_norm(ACTIVATIONS[self.config.activation](self.transform(x)))
        )

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
        allowed = looking(allowed, ids.shape[1], edits)
        for layer in self.layers:
            x = layer(x, allowed, tape, edits)
        return self.last_norm(x, tape, edits)


class Decoder(Model):
    """Embedding, a stack of N layers under a causal mask, and the readout that says the next token."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList(Layer(config, layer) for layer in range(config.n_layer))
        self.apply(initialise)

    def forward(
        self,
        ids: Tensor,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
        stored: Stored | None = None,
        start: Tensor | None = None,
    ) -> Tensor:
        """ids (batch, token) -> the last layer's vectors (batch, token, d_model); a token's vector knows nothing of later ones.

        With `stored`, ids follow the positions stored there. `start` (batch, 1) shifts the positions, for training. Texts of unlike
        length are padded on the right: nothing sees the padding.
        """
        past = 0 if stored is None else stored.n
        x = self.embedding(ids, torch.tensor([past]) if past else start, tape, edits)
        allowed = None if applies(edits, WithoutMask) else causal(past, ids.shape[1])
        for layer in self.layers:
            x = layer(x, allowed, tape, edits, stored=stored)
        return self.last_norm(x, tape, edits)


class EncoderDecoder(Model):
    """The whole architecture of figure 1: an encoder reads one text, a decoder writes another and looks at both."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.encoder = nn.ModuleList(
            Layer(config, layer, "encoder self") for layer in range(config.n_layer)
        )
        self.decoder = nn.ModuleList(
            Layer(config, layer, "decoder self", cross=True) for layer in range(config.n_layer)
        )
        self.memory_norm = LastNorm(config)
        self.apply(initialise)

    def encode(
        self,
        ids: Tensor,
        allowed: Tensor | None = None,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
    ) -> Tensor:
        """Source ids (batch, key) -> the memory, (batch, key, d_model). `allowed`, broadcastable to (batch, head, key, key)."""
        x = self.embedding(ids, None, tape, edits)
        allowed = looking(allowed, ids.shape[1], edits)
        for layer in self.encoder:
            x = layer(x, allowed, tape, edits)
        return self.memory_norm(x, tape, edits)

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
        `memory_allowed`, broadcastable to (batch, head, token, key), is False for padding of the source. `stored` as in Decoder. The
        positions of a target are never shuffled: it grows as it is written.
        """
        edits = tuple(edit for edit in edits if not isinstance(edit, ShufflePositions))
        past = 0 if stored is None else stored.n
        x = self.embedding(ids, torch.tensor([past]) if past else None, tape, edits)
        allowed = None if applies(edits, WithoutMask) else causal(past, ids.shape[1])
        for layer in self.decoder:
            x = layer(x, allowed, tape, edits, memory, memory_allowed, stored)
        return self.last_norm(x, tape, edits)


def looking(allowed: Tensor | None, n: int, edits: tuple[Edit, ...]) -> Tensor | None:
    """What an encoder's n tokens may look at: `allowed`, under an edit the earlier ones alone."""
    if not applies(edits, WithMask):
        return allowed
    return causal(0, n) if allowed is None else allowed & causal(0, n)


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
