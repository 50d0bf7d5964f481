"""Scaled dot-product attention in many heads, section 3.2 of the paper, and the keys and values it
stores.

Axes as in models/transformer.py. Queries and keys may belong to different streams:
`MultiHeadAttention` takes the two apart, so self-attention is the case where both are the same
tensor, and cross-attention needs no other class.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn

from models.config import Config
from models.edit_ops import AttentionAddress, divisor, evened, silenced
from models.edits import (
    Edit,
    OtherPositions,
    SharedKeys,
    Window,
    WithMask,
    WithoutMask,
    WithoutPositions,
    applies,
    last,
)
from models.embedding import places_of
from models.layers import (
    RMSNorm,
    Tape,
    for_every_head,
    hook_point,
    made_up,
    no_tape,
    output_buffer,
    pays,
    pooled,
    product,
    turned,
    turns,
    within,
    written,
)


def causal(past: int, n: int, window: int | None = None) -> Tensor:
    """Which of past + n positions each of the last n may attend to: itself and those before, (n,
    past + n) bool (section 3.2.3); with a `window`, so many of them, itself the last."""
    return within(torch.ones(n, past + n, dtype=torch.bool).tril(past), window)


def looking(
    past: int, n: int, masked: bool, edits: tuple[Edit, ...], window: int | None = None
) -> Tensor:
    """What the last n of past + n tokens may look at in their own text under edits, (n, past + n)
    bool. masked: whether the model has a causal mask; `window`: of which width."""
    if applies(edits, WithoutMask if masked else WithMask):
        masked = not masked
    if (other := last(edits, Window)) is not None:
        window = other.size
    elif not masked:
        window = None
    if masked:
        return causal(past, n, window)
    return within(torch.ones(n, past + n, dtype=torch.bool), window)


def narrowed(allowed: Tensor | None, n: int, edits: tuple[Edit, ...]) -> Tensor | None:
    """What an encoder's n tokens may look at: `allowed`, None for all, and under edits fewer."""
    if not any(isinstance(edit, (WithMask, Window)) for edit in edits):
        return allowed
    seen = looking(0, n, False, edits)
    return seen if allowed is None else allowed & seen


def scaled_products(q: Tensor, k: Tensor, divisor: float, out: Tensor | None) -> Tensor:
    """q k^T / divisor, (batch, head, query, key), the division within the product. `out`: where it
    is wanted, if not just anywhere."""
    scores = torch.baddbmm(
        q.new_empty(1, 1, 1),
        q.flatten(0, 1),
        k.flatten(0, 1).transpose(-2, -1),
        beta=0,
        alpha=1 / divisor,
        out=None if out is None else out.flatten(0, 1),
    )
    return scores.view(*q.shape[:-1], -1) if out is None else out


def by_inputs(weight: Tensor) -> Tensor:
    """A matrix (out, in) whose numbers of one input lie together. One that is wider than what it
    reads is multiplied faster so: in 0.8 to 0.97 of the time for 16 to 256 tokens with AVX2."""
    with torch.inference_mode(False):  # whatever it is called in, the model may be trained on
        return weight.detach().T.contiguous().T


def penalty(n_head: int, n_query: int, n_key: int) -> Tensor:
    """ALiBi (Press et al. 2022): what a score loses, distance x 2^(-8 (head + 1) / n_head), shape
    (head, query, key). Queries are the last."""
    slope = 2.0 ** (-8.0 * torch.arange(1, n_head + 1) / n_head)
    distance = (torch.arange(n_key - n_query, n_key)[:, None] - torch.arange(n_key)).abs()
    return slope[:, None, None] * distance


class Stored:
    """The KV cache: keys and values of the positions a decoder has read, so that the next step
    computes only its own.

    It belongs to one text (or one batch of them), is passed along as an argument, and grows with
    every pass. `kept` maps an attention's place, such as "0.attn", to its k and v, each (batch,
    key head, key, d_head). Cross-attention's keys never change and are made once.
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

    def past(self, name: str) -> int:
        """At which position the next token of an attention stands."""
        return self.kept[name][0].shape[2] if name in self.kept else 0

    @property
    def n(self) -> int:
        """How many positions of the decoder's own text are stored."""
        return next((k.shape[2] for name, (k, _) in self.kept.items() if is_own(name)), 0)

    @property
    def nbytes(self) -> int:
        """Memory of all stored keys and values, in bytes."""
        return sum(tensor.nbytes for pair in self.kept.values() for tensor in pair)

    @property
    def n_head(self) -> int:
        """How many heads' keys a layer stores; 0 where nothing is."""
        return next((k.shape[1] for k, _ in self.kept.values()), 0)

    @property
    def d_head(self) -> int:
        """How wide a key is; 0 where nothing is stored."""
        return next((k.shape[-1] for k, _ in self.kept.values()), 0)

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

    `name` is its place on the tape, `label` the name its Recording and its edits know it by,
    `cross` whether its keys are another stream's.
    """

    def __init__(
        self, config: Config, name: str, layer: int, label: str = "self", cross: bool = False
    ) -> None:
        super().__init__()
        self.name, self.layer, self.label, self.cross = name, layer, label, cross
        self.place = AttentionAddress(label, layer)
        self.n_head, self.n_key_head = config.n_head, config.key_heads
        self.d_head, self.config = config.d_head, config
        self.scale = sqrt(config.d_head) if config.scaled_scores else 1.0
        wide, keys = self.n_head * self.d_head, self.n_key_head * self.d_head
        self.w_q = nn.Linear(config.d_model, wide, bias=config.bias_qkv)
        self.w_k = nn.Linear(config.d_model, keys, bias=config.bias_qkv)
        self.w_v = nn.Linear(config.d_model, keys, bias=config.bias_qkv)
        self.w_o = nn.Linear(wide, config.d_model, bias=config.bias_o)
        self.q_norm = RMSNorm(config.d_head, config.eps) if config.key_norm else None
        self.k_norm = RMSNorm(config.d_head, config.eps) if config.key_norm else None
        self.fused: tuple[Tensor, ...] | None = None

    def split(self, x: Tensor) -> Tensor:
        """(batch, token, heads x d_head) -> (batch, head, token, d_head)."""
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)

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

        x_query (batch, query, d_model), x_key (batch, key, d_model); `allowed`, bool, broadcastable
        to (batch, head, query, key), True where attending is permitted; None permits everything.
        With `stored`, the keys are those of earlier passes and x_key's after them.
        """
        q, k, v = self.queries_keys_values(x_query, x_key, edits, stored, tape)
        shape = (*q.shape[:-1], k.shape[-2])
        scores = scaled_products(
            q,
            for_every_head(k, self.n_head),
            divisor(edits, self.layer, self.scale),
            output_buffer(tape, f"{self.name}.scores", shape),
        )  # (batch, head, query, key), eq. 1
        if (
            not self.cross
            and (other := last(edits, OtherPositions)) is not None
            and other.to == "distance"
        ):
            scores = scores - penalty(self.n_head, *scores.shape[-2:])
        masked = scores if allowed is None else scores.masked_fill(~allowed, float("-inf"))
        pattern = torch.softmax(
            masked, dim=-1, out=output_buffer(tape, f"{self.name}.pattern", shape)
        )
        pattern = evened(pattern, allowed, edits, self.place)  # rows sum to 1
        z = silenced(pattern @ for_every_head(v, self.n_head), edits, self.place)
        z = hook_point(f"{self.name}.z", z, tape, edits)  # (batch, head, query, d_head)
        place = output_buffer(tape, f"{self.name}.wrote", tuple(x_query.shape))
        wrote = written(self.w_o, z.transpose(1, 2).flatten(-2), place)  # concat, then W_O
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
        """q (batch, head, query, d_head), k and v (batch, key head, key, d_head). Cross-attention's
        keys never change: stored ones are not made again."""
        if x_query is x_key and self.is_fused():
            shares = any(isinstance(edit, SharedKeys) for edit in edits)
            q, k, v = self.in_one_product(x_query, no_tape if shares else tape)
        else:
            q = self.split(self.w_q(x_query))
            if stored is not None and self.cross and self.name in stored.kept:
                return q, *stored.kept[self.name]
            k, v = self.split(self.w_k(x_key)), self.split(self.w_v(x_key))
        k, v = pooled(k, edits), pooled(v, edits)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if (by := self.turns_by(edits)) is not None:
            past = 0 if stored is None else stored.past(self.name)
            places = places_of(q.shape[-2], past, edits)
            q, k = (turned(each, by[0][places], by[1][places]) for each in (q, k))
        return q, *((k, v) if stored is None else stored.with_new(self.name, k, v))

    def turns_by(self, edits: tuple[Edit, ...]) -> tuple[Tensor, Tensor] | None:
        """cos and sin by which q and k are turned, (place, pair) each, None where nothing turns
        them: rotary positions, the model's own or by an edit."""
        other, own = last(edits, OtherPositions), self.config.positions == "rotary"
        if self.cross or (other is not None and other.to != "rotary"):
            return None
        if other is None and (not own or applies(edits, WithoutPositions)):
            return None
        n, of = self.config.n_positions, self.config
        if own:
            return turns(n, self.d_head, of.rotary_base, of.rotary_share, of.rotary_scaling)
        return turns(n, self.d_head, 10000.0, 1.0, None)

    def fuse(self) -> None:
        """Lay W_Q, W_K and W_V side by side in memory, so that self-attention makes q, k and v in
        one product. They stay three: views of it."""
        linears = (self.w_q, self.w_k, self.w_v)
        parts = ("weight", "bias") if self.config.bias_qkv else ("weight",)
        sizes = [len(each.weight) for each in linears]
        with torch.inference_mode(False):  # whatever it is called in, the model may be trained on
            self.fused = tuple(
                torch.cat([getattr(each, part).detach() for each in linears]) for part in parts
            )
            self.fused = (by_inputs(self.fused[0]), *self.fused[1:])
            for part, whole in zip(parts, self.fused):
                for each, own in zip(linears, whole.split(sizes)):
                    getattr(each, part).data = own

    def in_one_product(self, x: Tensor, tape: Tape) -> tuple[Tensor, Tensor, Tensor]:
        """q (batch, head, token, d_head), k and v (batch, key head, token, d_head) of x (batch,
        token, d_model)."""
        heads = [self.n_head, self.n_key_head, self.n_key_head]
        whole = None
        if self.n_key_head == self.n_head:
            whole = output_buffer(
                tape, f"{self.name}.qkv", (*x.shape[:-1], 3, self.n_head, self.d_head)
            )
        whole = x.new_empty(*x.shape[:-1], sum(heads), self.d_head) if whole is None else whole
        assert self.fused is not None  # is_fused was asked
        weight, *bias = self.fused
        whole = whole.view(*x.shape[:-1], sum(heads), self.d_head)
        out = whole.view(-1, len(weight))
        if pays(x, weight):
            out.copy_(product(made_up(x), weight, bias[0] if bias else None)[: len(out)])
        elif bias:
            torch.addmm(bias[0], x.flatten(0, 1), weight.T, out=out)
        else:
            torch.mm(x.flatten(0, 1), weight.T, out=out)
        q, k, v = whole.transpose(1, 2).split(heads, dim=1)
        return q, k, v

    def is_fused(self) -> bool:
        """True where the one product may stand for the three: no gradient is wanted, and they still
        share their memory."""
        return (
            self.fused is not None
            and not torch.is_grad_enabled()
            and self.fused[0].data_ptr() == self.w_q.weight.data_ptr()
        )
