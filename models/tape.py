"""Tapes: what listens to a forward pass and keeps what passes by."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from models.recording import Stream
from models.tokenizer import Tokens

TENSORS_OF_A_HEAD = ("scores", "pattern", "q", "k", "v", "qkv")
FEW_SITES, SITES_OF_A_LAYER = (
    5,
    9,
)  # at most: before the first layer and after the last, and with three sub-layers


class Seen:
    """The tape that keeps what a Recording needs: the stream's sites in order, and the tensors of
    the heads.

    Scores and patterns are computed where they are to lie, in one array of all layers; all else is
    copied into one array at once, so that the pass can use its memory again. A list to be stacked
    afterwards made a recording of 512 tokens cost 1.75 times the bare pass.
    """

    def __init__(self, n_layer: int) -> None:
        self.n_layer = n_layer
        self.sites: list[str] = []
        self.resid = np.empty(
            (0, 0, 0), dtype=np.float32
        )  # (site, token, d_model), with room for more sites than there will be
        self.heads: dict[str, dict[str, np.ndarray]] = {}
        self.together: dict[str, np.ndarray] = {}

    def __call__(self, name: str, tensor: Tensor) -> None:
        if name.endswith(".z"):
            return
        here = self.room(name, tuple(tensor.shape))
        if here.data_ptr() != tensor.data_ptr():
            here.copy_(tensor)
        if here.dim() < 4:
            self.sites.append(name)

    def room(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Where a tensor is to lie: one of the heads, of shape (1, head, ...), or the next site's,
        ([1,] token, d_model)."""
        sublayer, _, what = name.rpartition(".")
        if what not in TENSORS_OF_A_HEAD:
            if not self.sites:
                self.resid = np.empty(
                    (FEW_SITES + SITES_OF_A_LAYER * self.n_layer, *shape[-2:]), dtype=np.float32
                )
            return torch.from_numpy(self.resid[len(self.sites)]).view(shape)
        layer, _, attention = sublayer.partition(".")
        kept = self.heads.setdefault(attention, {})
        if (
            what == "qkv" and attention not in self.together
        ):  # (1, token, 3, head, d_head): one array, and q, k and v views of it
            self.together[attention] = np.empty((self.n_layer, *shape[1:]), dtype=np.float32)
            kept |= {
                each: self.together[attention][:, :, at].transpose(0, 2, 1, 3)
                for at, each in enumerate("qkv")
            }
        if what == "qkv":
            return torch.from_numpy(self.together[attention][int(layer)])[None]
        if what not in kept:
            kept[what] = np.empty((self.n_layer, *shape[1:]), dtype=np.float32)
        return torch.from_numpy(kept[what][int(layer)])[None]

    def first_bad(self) -> str | None:
        """The first place of the stream where a number is not finite, a layer's scores before what
        it wrote; None where all are."""
        for name, vectors in zip(self.sites, self.resid):
            sublayer, _, what = name.rpartition(".")
            layer, _, attention = sublayer.partition(".")
            if (
                what == "wrote"
                and attention in self.heads
                and not np.isfinite(self.heads[attention]["scores"][int(layer)]).all()
            ):
                return f"{sublayer}.scores"
            if not np.isfinite(vectors).all():
                return name
        return None

    def is_finite(self) -> bool:
        """True where the pass ended in numbers."""
        return bool(np.isfinite(self.resid[len(self.sites) - 1]).all())

    def stream(self, name: str, tokens: Tokens) -> Stream:
        """What passed by as a Stream; resid (site, token, d_model)."""
        return Stream(
            name=name,
            tokens=tokens.labels,
            ids=np.array(tokens.ids),
            special=np.array(tokens.special),
            spans=np.array(tokens.spans).reshape(-1, 2),
            sites=tuple(self.sites),
            resid=self.resid[: len(self.sites)],
        )


class Kept:
    """The tape that keeps the tensors of some names: sites (token, d_model), and heads' outputs
    "0.attn.z" (head, token, d_head).

    `wanted`: the names, or None for all sites and all z.
    """

    def __init__(self, wanted: set[str] | None = None) -> None:
        self.wanted = wanted
        self.held: dict[str, Tensor] = {}

    def __call__(self, name: str, tensor: Tensor) -> None:
        if (
            name in self.wanted
            if self.wanted is not None
            else name.rpartition(".")[2] not in TENSORS_OF_A_HEAD
        ):
            self.held[name] = tensor if tensor.dim() == 2 else tensor[0]
