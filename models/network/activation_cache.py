"""Tapes: what listens to a forward pass and keeps what passes by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
import torch
from torch import Tensor

from models.contract.recording import Stream
from models.network import buffer_pool
from models.network.config import Config
from models.tokens.tokenizer import Tokens

HEAD_TENSORS = ("scores", "pattern", "q", "k", "v")
# At most: before the first layer and after the last, and of each sub-layer.
BOUNDARY_SITES, SITES_PER_SUBLAYER = 5, 3


@cache
def _parse_head_site(name: str) -> tuple[str, int, str] | None:
    """Of "0.attn.scores" the attention, the layer and which tensor of its heads it is; None for a
    site of the stream."""
    sublayer, _, tensor_name = name.rpartition(".")
    if tensor_name not in HEAD_TENSORS:
        return None
    layer, _, attention = sublayer.partition(".")
    return attention, int(layer), tensor_name


def _layer_views(array: np.ndarray) -> tuple[Tensor, ...]:
    """An array (layer or site, batch, ...) as tensors (batch, ...)."""
    return torch.from_numpy(array).unbind()


def n_sites(n_layer: int, sublayers: int) -> int:
    """The largest number of residual stream sites of `n_layer` layers with 2 or 3 sub-layers
    each."""
    return BOUNDARY_SITES + SITES_PER_SUBLAYER * sublayers * n_layer


def recorded_shapes(config: Config, n: int, n_source: int) -> list[tuple[int, ...]]:
    """The shapes of what a pass leaves on the tape, at most."""
    layers, heads, d_head = config.n_layer, config.n_head, config.d_head
    key_heads = config.key_heads
    shapes = [
        (n_sites(layers, 3 if n_source else 2), n, config.d_model),
        (layers, n, heads + 2 * key_heads, d_head),
        (2, layers, heads, n, n),
    ]
    if n_source:
        shapes += [
            (layers, n * heads + 2 * n_source * key_heads, d_head),
            (2, layers, heads, n, n_source),
        ]
    return shapes


class Recorder:
    """Tape that stores the tensors of a Recording: the stream's sites in order, and those of the
    heads.

    Shared keys and values are stored once for all their heads.

    Scores and patterns are computed in their final place, in one array of all layers; all else is
    copied into one array at once, so that the pass can reuse its memory. A list to be stacked
    afterwards made a recording of 512 tokens cost 1.75 times the bare pass.

    All arrays are slices of one block of memory, which the system allocates in large pages, or
    which an earlier recording left: fresh small ones took an eighth of a pass over 128 tokens. `n`:
    the pass's tokens; `n_source`: those of the other text that a decoder attends to; `batch`: the
    number of texts, which `text` tells apart; `dtype`: of the model's numbers."""

    def __init__(
        self,
        config: Config,
        n: int,
        n_source: int = 0,
        batch: int = 1,
        dtype: np.dtype | type = np.float32,
    ) -> None:
        self.n_layer = config.n_layer
        self.max_sites = n_sites(config.n_layer, 3 if n_source else 2)
        shapes = recorded_shapes(config, n, n_source)
        self.dtype = np.dtype(dtype)
        n_numbers = batch * sum(map(prod, shapes)) if self.dtype == np.float32 else 0
        self.memory = buffer_pool.acquire(n_numbers)
        self.used = 0
        self.sites: list[str] = []
        # (site, batch, token, d_model), with room for more sites than there will be
        self.resid = np.empty((0, 0, 0, 0), dtype=self.dtype)
        self.heads: dict[str, dict[str, np.ndarray]] = {}
        # Where each site and each tensor of each layer lies, (batch, ...): cut once for all.
        self.site_buffers: tuple[Tensor, ...] = ()
        self.head_buffers: dict[tuple[str, str], tuple[Tensor, ...]] = {}

    def __call__(self, name: str, tensor: Tensor) -> None:
        if name.endswith(".z"):
            return
        head_site = _parse_head_site(name)
        buffer = self._buffer(head_site, tensor.shape)
        if buffer is not tensor and buffer.data_ptr() != tensor.data_ptr():
            buffer.copy_(tensor)
        if head_site is None:
            self.sites.append(name)

    def room(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The buffer for a tensor of heads, (batch, head, ...)."""
        return self._buffer(_parse_head_site(name), shape)

    def _buffer(self, head_site: tuple[str, int, str] | None, shape: tuple[int, ...]) -> Tensor:
        if head_site is None:
            if not self.site_buffers:
                self.resid = self._array(self.max_sites, *shape)
                self.site_buffers = _layer_views(self.resid)
            return self.site_buffers[len(self.sites)]
        attention, layer, tensor_name = head_site
        buffers = self.head_buffers.get((attention, tensor_name))
        if buffers is None:
            buffers = self._make_room(attention, tensor_name, shape)
        return buffers[layer]

    def _make_room(self, attention: str, kind: str, shape: tuple[int, ...]) -> tuple[Tensor, ...]:
        """Room for a tensor of an attention's heads in all layers."""
        array, arrays = self._array(self.n_layer, *shape), self.heads.setdefault(attention, {})
        arrays[kind] = array
        self.head_buffers[attention, kind] = buffers = _layer_views(array)
        return buffers

    def _array(self, *shape: int) -> np.ndarray:
        """A new array, of the one piece as long as there is room in it."""
        size = prod(shape)
        if self.used + size > len(self.memory):
            return np.empty(shape, dtype=self.dtype)
        self.used += size
        return self.memory[self.used - size : self.used].reshape(shape)

    def text(self, row: int = 0, n: int | None = None) -> TextRecord:
        """The arrays of one text of the batch, of its first `n` tokens, as views."""
        heads = {
            attention: {
                name: array[:, row, :, :n, :n]
                if name in ("scores", "pattern")
                else array[:, row, :, :n]
                for name, array in arrays.items()
            }
            for attention, arrays in self.heads.items()
        }
        return TextRecord(tuple(self.sites), self.resid[: len(self.sites), row, :n], heads)


@dataclass(frozen=True)
class TextRecord:
    """Tensors that a tape has recorded of one text: resid (site, token, d_model), and by an
    attention and the kind of tensor (layer, head, ...)."""

    sites: tuple[str, ...]
    resid: np.ndarray
    heads: dict[str, dict[str, np.ndarray]]

    def copy(self) -> TextRecord:
        """The same in memory of its own, so that no other text's memory is kept for it."""
        heads = {
            attention: {name: array.copy() for name, array in arrays.items()}
            for attention, arrays in self.heads.items()
        }
        return TextRecord(self.sites, self.resid.copy(), heads)

    def first_non_finite(self) -> str | None:
        """The first place of the stream where a number is not finite, a layer's scores before what
        it wrote; None where all are."""
        for name, vectors in zip(self.sites, self.resid):
            sublayer, _, kind = name.rpartition(".")
            layer, _, attention = sublayer.partition(".")
            if (
                kind == "wrote"
                and attention in self.heads
                and not np.isfinite(self.heads[attention]["scores"][int(layer)]).all()
            ):
                return f"{sublayer}.scores"
            if not np.isfinite(vectors).all():
                return name
        return None

    def is_finite(self) -> bool:
        """True where the pass ended in numbers."""
        return bool(np.isfinite(self.resid[-1]).all())

    def stream(self, name: str, tokens: Tokens) -> Stream:
        """The recorded sites as a Stream; resid (site, token, d_model)."""
        return Stream(
            name=name,
            tokens=tokens.labels,
            ids=np.array(tokens.ids),
            special=np.array(tokens.special),
            spans=np.array(tokens.spans).reshape(-1, 2),
            sites=self.sites,
            resid=self.resid,
            roles=tokens.roles,
        )


class ActivationStore:
    """The tape that keeps the tensors of some names: sites (token, d_model), and heads' outputs
    "0.attn.z" (head, token, d_head).

    `wanted`: the names, or None for all sites and all z.
    """

    def __init__(self, names: set[str] | None = None) -> None:
        self.wanted = names
        self.tensors: dict[str, Tensor] = {}

    def __call__(self, name: str, tensor: Tensor) -> None:
        if (
            name in self.wanted
            if self.wanted is not None
            else name.rpartition(".")[2] not in HEAD_TENSORS
        ):
            self.tensors[name] = tensor if tensor.dim() == 2 else tensor[0]
