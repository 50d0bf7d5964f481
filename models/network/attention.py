"""Scaled dot-product attention in many heads, section 3.2 of the paper, and the keys and values it
stores.

Axes as in models/network/transformer.py. Queries and keys may belong to different streams:
`MultiHeadAttention` takes the two apart, so self-attention is the case where both are the same
tensor, and cross-attention needs no other class.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import torch
from torch import Tensor, nn

from models.contract.edits import (
    Edit,
    OtherPositions,
    Window,
    WithMask,
    WithoutMask,
    WithoutPositions,
    applies,
    edited,
    last_edit,
    place_of,
)
from models.network.config import Config
from models.network.edit_ops import cut_edges, score_divisor, without_hidden_words
from models.network.embedding import position_ids
from models.network.layers import (
    Path,
    RMSNorm,
    Tape,
    apply_rotary,
    apply_window,
    hook_point,
    less,
    no_tape,
    output_buffer,
    pool_key_heads,
    rotary_angles,
)
from models.network.linear import Linear


def causal_mask(past: int, n: int, window: int | None = None) -> Tensor:
    """Causal mask (n, past + n), bool: each of the last n positions attends to itself and those
    before it (section 3.2.3). With a `window`, to that many positions, itself the last."""
    return apply_window(torch.ones(n, past + n, dtype=torch.bool).tril(past), window)


def self_attention_mask(
    past: int, n: int, masked: bool, edits: tuple[Edit, ...], window: int | None = None
) -> Tensor:
    """Mask (n, past + n), bool, of self-attention under edits, for the last n of past + n tokens.
    masked: whether the model has a causal mask; window: its width in tokens."""
    if applies(edits, WithoutMask if masked else WithMask):
        masked = not masked
    if (window_edit := last_edit(edits, Window)) is not None:
        window = window_edit.size
    elif not masked:
        window = None
    if masked:
        return causal_mask(past, n, window)
    return apply_window(torch.ones(n, past + n, dtype=torch.bool), window)


def self_attention_masks(
    past: int, n: int, masked: bool, edits: tuple[Edit, ...], windows: Sequence[int | None]
) -> list[Tensor]:
    """The mask of each layer by its window, one tensor for layers that share it."""
    masks = {size: self_attention_mask(past, n, masked, edits, size) for size in {*windows}}
    return [masks[size] for size in windows]


def encoder_mask(allowed: Tensor | None, n: int, edits: tuple[Edit, ...]) -> Tensor | None:
    """An encoder's mask under edits; `allowed` is the mask without them. None permits
    everything."""
    if not any(isinstance(edit, (WithMask, Window)) for edit in edits):
        return allowed
    mask = self_attention_mask(0, n, False, edits)
    return mask if allowed is None else allowed & mask


def scaled_products(q: Tensor, k: Tensor, divisor: float, out: Tensor | None) -> Tensor:
    """q k^T / divisor, (batch, head, query, key), the division within the product; k (batch, key
    head, key, d_head). `out`: where it is wanted, if not just anywhere."""
    keys = k.flatten(0, 1).transpose(-2, -1)
    scores = torch.baddbmm(
        q.new_empty(1, 1, 1),
        by_key_head(q, k),
        keys,
        beta=0,
        alpha=1 / divisor,
        out=None if out is None else out.view(len(keys), -1, keys.shape[-1]),
    )
    return scores.view(*q.shape[:-1], -1) if out is None else out


def by_key_head(x: Tensor, k: Tensor) -> Tensor:
    """x (batch, head, query, ...) as one matrix for each key head of k (batch, key head, key,
    d_head), (batch x key head, heads of its group x query, ...): heads that share keys are
    multiplied by them at once."""
    return x.reshape(k.shape[0] * k.shape[1], -1, x.shape[-1])


def alibi_penalty(n_head: int, n_query: int, n_key: int) -> Tensor:
    """ALiBi (Press et al. 2022): what a score loses, distance x 2^(-8 (head + 1) / n_head), shape
    (head, query, key). Queries are the last."""
    slope = 2.0 ** (-8.0 * torch.arange(1, n_head + 1) / n_head)
    distance = (torch.arange(n_key - n_query, n_key)[:, None] - torch.arange(n_key)).abs()
    return slope[:, None, None] * distance


class KVCache:
    """The KV cache: keys and values of the positions a decoder has read, so that the next step
    computes only its own.

    It belongs to one text (or one batch of them), is passed along as an argument, and grows with
    every pass. `kept` maps an attention's place, such as "0.attn", to its k and v, each (batch,
    key head, key, d_head). Cross-attention's keys never change and are made once.
    """

    def __init__(self, entries: dict[str, tuple[Tensor, Tensor]] | None = None) -> None:
        self.entries = {} if entries is None else entries

    def update(self, name: str, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """k and v of every position read so far, the new ones now among them."""
        if name in self.entries:
            k, v = (
                torch.cat((self.entries[name][0], k), dim=2),
                torch.cat((self.entries[name][1], v), dim=2),
            )
        self.entries[name] = k, v
        return k, v

    def past(self, name: str) -> int:
        """At which position the next token of an attention stands."""
        return self.entries[name][0].shape[2] if name in self.entries else 0

    @property
    def n(self) -> int:
        """The number of stored positions of the decoder's own text."""
        return next(
            (k.shape[2] for name, (k, _) in self.entries.items() if is_self_attention(name)), 0
        )

    @property
    def nbytes(self) -> int:
        """Memory of all stored keys and values, in bytes."""
        return sum(tensor.nbytes for pair in self.entries.values() for tensor in pair)

    @property
    def n_head(self) -> int:
        """The number of key/value heads stored for a layer; 0 where nothing is stored."""
        return next((k.shape[1] for k, _ in self.entries.values()), 0)

    @property
    def d_head(self) -> int:
        """The width of a stored key; 0 where nothing is stored."""
        return next((k.shape[-1] for k, _ in self.entries.values()), 0)

    def shared(self, n: int) -> KVCache:
        """The cache of one text for `n` continuations of it, without a copy."""
        return KVCache(
            {
                name: (k.expand(n, -1, -1, -1), v.expand(n, -1, -1, -1))
                for name, (k, v) in self.entries.items()
            }
        )

    def first(self, n: int) -> KVCache:
        """The cache as it was after the first `n` positions."""
        return KVCache(
            {
                name: (k[:, :, :n], v[:, :, :n]) if is_self_attention(name) else (k, v)
                for name, (k, v) in self.entries.items()
            }
        )

    def rows(self, row_ids: Tensor | Sequence[int]) -> KVCache:
        """The cache of a batch put together from the rows `row_ids` (beams)."""
        row_ids = torch.as_tensor(row_ids)
        return KVCache({name: (k[row_ids], v[row_ids]) for name, (k, v) in self.entries.items()})


def is_self_attention(name: str) -> bool:
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
        self.place = {kind: place_of(label, layer, kind) for kind in ("mask", "pattern", "z")}
        self.n_head, self.n_key_head = config.n_head, config.key_heads
        self.d_head, self.config = config.d_head, config
        self.scale = sqrt(config.d_head) if config.scaled_scores else 1.0
        query_width, key_width = self.n_head * self.d_head, self.n_key_head * self.d_head
        self.w_q = Linear(config.d_model, query_width, bias=config.bias_qkv)
        self.w_k = Linear(config.d_model, key_width, bias=config.bias_qkv)
        self.w_v = Linear(config.d_model, key_width, bias=config.bias_qkv)
        self.w_o = Linear(query_width, config.d_model, bias=config.bias_o)
        self.q_norm = RMSNorm(config.d_head, config.eps) if config.key_norm else None
        self.k_norm = RMSNorm(config.d_head, config.eps) if config.key_norm else None

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
        stored: KVCache | None = None,
    ) -> Tensor:
        """Attention output (batch, query, d_model) of all heads.

        x_query (batch, query, d_model), x_key (batch, key, d_model); `allowed`, bool, broadcastable
        to (batch, head, query, key), True where attending is permitted; None permits everything.
        With `stored`, the keys are those of earlier passes and x_key's after them."""
        q, k, v = self.queries_keys_values(x_query, x_key, edits, stored)
        for path in edits:
            if isinstance(path, Path) and path.inputs is not None and self._ends(path):
                q, k, v = self._at_the_end(path, (q, k, v), edits)
        shape = (*q.shape[:-1], k.shape[-2])
        scores = scaled_products(
            q,
            k,
            score_divisor(edits, self.layer, self.scale),
            output_buffer(tape, f"{self.name}.scores", shape, q.device),
        )  # (batch, head, query, key), eq. 1
        if (
            not self.cross
            and (position_edit := last_edit(edits, OtherPositions)) is not None
            and position_edit.to == "distance"
        ):
            scores = scores - alibi_penalty(self.n_head, *scores.shape[-2:])
        if edits:
            allowed = without_hidden_words(allowed, shape, edits, self.label)
            allowed = cut_edges(allowed, scores, edits, self.place["mask"])
        masked_scores = scores if allowed is None else scores.masked_fill(~allowed, float("-inf"))
        pattern = torch.softmax(
            masked_scores, dim=-1, out=output_buffer(tape, f"{self.name}.pattern", shape, q.device)
        )
        keys = None if allowed is None or not edits else allowed.expand(shape)
        pattern = edited(pattern, edits, self.place["pattern"], allowed=keys)  # rows sum to 1
        z = torch.bmm(by_key_head(pattern, v), v.flatten(0, 1)).view(q.shape)
        z = edited(z, edits, self.place["z"])
        z = hook_point(f"{self.name}.z", z, tape, edits)  # (batch, head, query, d_head)
        for path in edits:
            if isinstance(path, Path) and path.attention == self.label:
                for (layer, head), lent in path.heads.items():
                    if layer == self.layer:
                        at = slice(head * self.d_head, (head + 1) * self.d_head)
                        written = less(z[:, head], lent) @ self.w_o.weight[:, at].T
                        path.written = written if path.written is None else path.written + written
        z = z.transpose(1, 2).flatten(-2)  # concat: (batch, query, heads x d_head)
        output = self.w_o(z)
        for name, tensor in (
            ("q", q),
            ("k", k),
            ("v", v),
            ("scores", scores),
            ("pattern", pattern),
        ):
            tape(f"{self.name}.{name}", tensor)
        return output

    def _ends(self, path: Path) -> bool:
        """True where a path that is cut leads to a head of this attention."""
        return (path.attention, path.to_layer) == (self.label, self.layer)

    def _at_the_end(
        self, path: Path, projected: tuple[Tensor, Tensor, Tensor], edits: tuple[Edit, ...]
    ) -> tuple[Tensor, ...]:
        """q, k and v, those of the head at the end of a path made of what it reads without it."""
        assert path.inputs is not None and path.to_head is not None
        at = path.to_head
        other = self.queries_keys_values(path.inputs, path.inputs, edits, None)
        return tuple(
            tensor
            if name != path.to
            else torch.cat(
                (
                    tensor[:, :at],
                    without[:, at : at + 1],
                    tensor[:, at + 1 :],
                ),
                dim=1,
            )
            for name, tensor, without in zip("qkv", projected, other)
        )

    def queries_keys_values(
        self,
        x_query: Tensor,
        x_key: Tensor,
        edits: tuple[Edit, ...],
        stored: KVCache | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """q (batch, head, query, d_head), k and v (batch, key head, key, d_head). Cross-attention's
        keys never change: stored ones are not made again."""
        q = self.split(self.w_q(x_query))
        if stored is not None and self.cross and self.name in stored.entries:
            return q, *stored.entries[self.name]
        k, v = self.split(self.w_k(x_key)), self.split(self.w_v(x_key))
        k, v = pool_key_heads(k, edits), pool_key_heads(v, edits)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if (rotation := self.rotation_angles(edits)) is not None:
            past = 0 if stored is None else stored.past(self.name)
            n = q.shape[-2]
            positions = position_ids(n, past, edits) if edits else slice(past, past + n)
            cos, sin = (each.to(q.device)[positions] for each in rotation)
            q, k = (apply_rotary(each, cos, sin) for each in (q, k))
        return q, *((k, v) if stored is None else stored.update(self.name, k, v))

    def rotation_angles(self, edits: tuple[Edit, ...]) -> tuple[Tensor, Tensor] | None:
        """cos and sin by which q and k are turned, (place, dimension) each, None where nothing
        turns them: rotary positions, the model's own or by an edit."""
        position_edit, is_rotary = (
            last_edit(edits, OtherPositions),
            self.config.positions == "rotary",
        )
        if self.cross or (position_edit is not None and position_edit.to != "rotary"):
            return None
        if position_edit is None and (not is_rotary or applies(edits, WithoutPositions)):
            return None
        n, config = self.config.n_positions, self.config
        if is_rotary:
            return rotary_angles(
                n, self.d_head, config.rotary_base, config.rotary_share, config.rotary_scaling
            )
        return rotary_angles(n, self.d_head, 10000.0, 1.0, None)
