"""A model's own numbers as numpy arrays, under the names that a Recording gives their places."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from models.own import Handle
from models.transformer import AddAndNorm, EncoderDecoder, Layer

Norm = tuple[np.ndarray, np.ndarray, float]


def norms(handle: Handle, stream: str) -> dict[str, Norm]:
    """Every LayerNorm of a stream by its place, such as "0.attn", "embed" or "final": gain
    (d_model), bias (d_model) and eps.

    Raises ValueError for no such stream.
    """
    layers = layers_of(handle, stream)
    last = getattr(
        handle.model,
        "memory_norm"
        if stream == "encoder" and isinstance(handle.model, EncoderDecoder)
        else "last_norm",
    )
    found = (
        {"embed": handle.model.embedding.norm}
        | {
            each.name: each.norm
            for layer in layers
            for each in layer.modules()
            if isinstance(each, AddAndNorm)
        }
        | {"final": last.norm}
    )
    return {
        name: (_numbers(norm.weight), _numbers(norm.bias), float(norm.eps))
        for name, norm in found.items()
        if norm is not None
    }


def outputs(handle: Handle) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """W_O of every attention by its label: cut by head, (layer, head, d_head, d_model), and its
    bias (layer, d_model)."""
    made = {}
    for label, attentions in handle.model.attentions().items():
        slices = [
            _numbers(each.w_o.weight.T).reshape(each.n_head, each.d_head, -1) for each in attentions
        ]
        made[label] = np.stack(slices), np.stack([_numbers(each.w_o.bias) for each in attentions])
    return made


def layers_of(handle: Handle, stream: str) -> list[Layer]:
    """A stream's layers in order. Raises ValueError for no such stream."""
    stacks: dict[str, nn.ModuleList] = (
        {"encoder": handle.model.encoder, "decoder": handle.model.decoder}
        if isinstance(handle.model, EncoderDecoder)
        else {handle.card.kind: handle.model.layers}
    )
    if stream not in stacks:
        raise ValueError(f"{handle.card.name} has no stream {stream!r}; it has {', '.join(stacks)}")
    return list(stacks[stream])


def _numbers(tensor: Tensor) -> np.ndarray:
    return np.array(tensor.detach().numpy())
