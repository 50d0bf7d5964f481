"""Sizes of a model and what kind of Transformer it is; as it stands, the paper's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from torch import Tensor

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


@dataclass(frozen=True)
class Config:
    """Sizes of a model, and what kind of Transformer it is; as it stands, the paper's.
    `n_positions` is the longest text it takes, in tokens.

    norm: where LayerNorm stands, "post" after each sum (the paper), "pre" before each sub-layer and
    once at the end, or None, nowhere. last_norm: whether one stands at the end, None for what is
    usual with `norm`.
    positions: "sinusoids" (the paper), "learned", "rotary", or None. scaled_embedding: times
    sqrt(d_model), section 3.4. embedding_norm: a LayerNorm before the first layer. segment: one
    more vector, the same for every token, added to the embeddings (BERT's token type 0).
    embedding_width: the width of words and positions where one matrix makes their sum as wide as
    the stream; None where they are as wide. shared_layers: all layers have the first one's weights.
    head: what was trained in the place of a readout, such as "classification head"; it is not run.
    readout: "tied" to the embedding, "transform" for a dense layer, activation and LayerNorm before
    that (BERT), "untied" for a matrix of its own, or None. scaled_scores and residual are False
    only where a model was trained without them.

    What later models changed (models/network/layers.py). rms: RMSNorm in LayerNorm's place.
    positions "rotary": q and k are turned instead, by angles of `rotary_base`, in the share
    `rotary_share` of a head's dimensions; rotary_scaling: (factor,) for positions counted finer,
    (factor, low, high, n) as Llama 3 has it. n_key_head: heads share so many heads' keys and
    values; None, each has its own. head_width: d_head where it is not d_model / n_head. key_norm: q
    and k pass a norm. gated: the FFN's units are multiplied by an activated gate. parallel: the FFN
    reads what attention reads. window: a token sees so many tokens, itself the last, but all in the
    layers `full_layers`. bias_qkv, bias_o, bias_ffn: False
    where these matrices have none.
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
    rms: bool = False
    rotary_base: float = 10000.0
    rotary_share: float = 1.0
    rotary_scaling: tuple[float, ...] | None = None
    n_key_head: int | None = None
    head_width: int | None = None
    key_norm: bool = False
    gated: bool = False
    parallel: bool = False
    window: int | None = None
    full_layers: tuple[int, ...] = ()
    bias_qkv: bool = True
    bias_o: bool = True
    bias_ffn: bool = True
    head: str = ""
    last_norm: bool | None = None
    embedding_width: int | None = None
    shared_layers: bool = False

    def __post_init__(self) -> None:
        if self.head_width is None and self.d_model % self.n_head:
            raise ValueError(f"d_model {self.d_model} is not a multiple of n_head {self.n_head}")
        if self.n_head % self.key_heads:
            raise ValueError(f"{self.n_head} heads cannot share {self.key_heads} heads' keys")
        if self.embedding_width is not None and self.readout in ("tied", "untied"):
            raise ValueError("embeddings of another width than the stream need a transform")
        for field, options in (
            ("norm", ("post", "pre", None)),
            ("positions", ("sinusoids", "learned", "rotary", None)),
            ("activation", tuple(ACTIVATIONS)),
            ("readout", ("tied", "untied", "transform", None)),
        ):
            if getattr(self, field) not in options:
                raise ValueError(
                    f"{field} is {getattr(self, field)!r}; it may be "
                    f"{', '.join(map(repr, options))}"
                )

    @property
    def d_embedding(self) -> int:
        """The width of words and positions."""
        return self.embedding_width or self.d_model

    @property
    def d_head(self) -> int:
        return self.head_width or self.d_model // self.n_head

    @property
    def ends_normed(self) -> bool:
        """True where the stack ends in a norm."""
        return self.norm == "pre" if self.last_norm is None else self.last_norm

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The window of each layer, None for all tokens before."""
        return tuple(
            None if layer in self.full_layers else self.window for layer in range(self.n_layer)
        )

    @property
    def key_heads(self) -> int:
        """The number of heads with keys and values of their own."""
        return self.n_key_head or self.n_head
