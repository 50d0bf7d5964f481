"""Tapes: what listens to a forward pass and keeps what passes by."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from models.recording import Stream
from models.tokenizer import Tokens

TENSORS_OF_A_HEAD = ("scores", "pattern", "q", "k", "v")


class Seen:
    """The tape that keeps what a Recording needs: the stream's sites in order, and the tensors of the heads.

    A tensor of the heads is copied at once into the one array of all layers, so that the pass itself can use its memory again; a list
    to be stacked afterwards made a recording of 512 tokens cost 1.75 times the bare pass.
    """

    def __init__(self, n_layer: int) -> None:
        self.n_layer = n_layer
        self.sites: dict[str, Tensor] = {}
        self.heads: dict[str, dict[str, np.ndarray]] = {}

    def __call__(self, name: str, tensor: Tensor) -> None:
        sublayer, _, what = name.rpartition(".")
        if what == "z":
            return
        if what not in TENSORS_OF_A_HEAD:
            self.sites[name] = tensor if tensor.dim() == 2 else tensor[0]
            return
        layer, _, attention = sublayer.partition(".")
        kept = self.heads.setdefault(attention, {})
        if what not in kept:
            kept[what] = np.empty((self.n_layer, *tensor.shape[1:]), dtype=np.float32)
        torch.from_numpy(kept[what][int(layer)]).copy_(tensor[0])

    def first_bad(self) -> str | None:
        """The first place of the stream where a number is not finite, a layer's scores before what it wrote; None where all are."""
        for name, vectors in self.sites.items():
            sublayer, _, what = name.rpartition(".")
            layer, _, attention = sublayer.partition(".")
            if what == "wrote" and attention in self.heads and not np.isfinite(self.heads[attention]["scores"][int(layer)]).all():
                return f"{sublayer}.scores"
            if not vectors.isfinite().all():
                return name
        return None

    def stream(self, name: str, tokens: Tokens) -> Stream:
        """What passed by as a Stream; resid (site, token, d_model)."""
        return Stream(
            name=name,
            tokens=tokens.labels,
            ids=np.array(tokens.ids),
            special=np.array(tokens.special),
            spans=np.array(tokens.spans).reshape(-1, 2),
            sites=tuple(self.sites),
            resid=torch.stack(list(self.sites.values())).numpy(),
        )


class Kept:
    """The tape that keeps the tensors of some names: sites (token, d_model), and heads' outputs "0.attn.z" (head, token, d_head).

    `wanted`: the names, or None for all sites and all z.
    """

    def __init__(self, wanted: set[str] | None = None) -> None:
        self.wanted = wanted
        self.held: dict[str, Tensor] = {}

    def __call__(self, name: str, tensor: Tensor) -> None:
        if name in self.wanted if self.wanted is not None else name.rpartition(".")[2] not in TENSORS_OF_A_HEAD:
            self.held[name] = tensor if tensor.dim() == 2 else tensor[0]
