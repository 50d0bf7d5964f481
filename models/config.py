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
    once at the end, or None, nowhere.
    positions: "sinusoids" (the paper), "learned", or None. scaled_embedding: times sqrt(d_model),
    section 3.4. embedding_norm: a LayerNorm before the first layer. segment: one more vector, the
    same for every token, added to the embeddings (BERT's token type 0).
    readout: "tied" to the embedding, "transform" for a dense layer, activation and LayerNorm before
    that (BERT), or None. scaled_scores and residual are False only where a model was trained
    without them.
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
                    f"{field} is {getattr(self, field)!r}; it may be "
                    f"{', '.join(map(repr, options))}"
                )

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_head
