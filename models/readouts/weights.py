"""A model's own numbers as numpy arrays, under the names that a Recording gives their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.contract.edits import Edit, SideBySide, applies
from models.contract.recording import Stream
from models.contract.results import Norm, Rotary
from models.network import layers as layers_network
from models.network.own_model import OwnModel
from models.network.transformer import AddAndNorm, Decoder, Encoder, EncoderDecoder, LastNorm, Layer


def norms(model: OwnModel, stream: str, edits: tuple[Edit, ...] = ()) -> dict[str, Norm]:
    """Every LayerNorm of a stream by its place, such as "0.attn", "embed" or "final": gain
    (d_model), bias (d_model), eps, and whether it subtracts the mean (an RMSNorm, the model's own
    or by an edit, does not, and has no bias of its own).

    Raises ValueError for no such stream.
    """
    layers = layers_of(model, stream)
    last_norm: Any = last_norm_of(model, stream)
    embedding = model.network.embedding
    norm_modules: dict[str, tuple[layers_network.Norm | None, int | None]] = (
        # That of narrow embeddings is none of the stream's.
        {"embed": (embedding.norm if embedding.widen is None else None, None)}
        | {
            module.name: (module.norm, module.layer)
            for layer in layers
            for module in layer.modules()
            if isinstance(module, AddAndNorm)
        }
        | {"final": (last_norm.norm, None)}
    )
    return {
        name: (
            _numbers(norm.weight),
            _or_zeros(norm.bias, len(norm.weight)),
            float(norm.eps),
            not layers_network.is_rms(norm, edits, layer),
        )
        for name, (norm, layer) in norm_modules.items()
        if norm is not None
    }


def last_norm_of(model: OwnModel, stream: str) -> LastNorm:
    """The norm at the end of a stream's stack."""
    network = model.network
    is_memory = stream == "encoder" and isinstance(network, EncoderDecoder)
    last_norm = network.memory_norm if is_memory else network.last_norm
    assert isinstance(last_norm, LastNorm)
    return last_norm


def outputs(model: OwnModel) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """W_O of every attention by its label: cut by head, (layer, head, d_head, d_model), and its
    bias (layer, d_model)."""
    matrices = {}
    for label, attentions in model.attentions.items():
        slices = [
            _numbers(each.w_o.weight.T).reshape(each.n_head, each.d_head, -1) for each in attentions
        ]
        biases = [_or_zeros(each.w_o.bias, len(each.w_o.weight)) for each in attentions]
        matrices[label] = np.stack(slices), np.stack(biases)
    return matrices


def projections(
    model: OwnModel, attention: str, layer: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """W_Q, W_K and W_V of an attention, see `Model.projections`."""
    of = model.attentions[attention][layer]
    changed = of.q_norm is not None or of.rotation_angles(()) is not None
    names = {"v": of.w_v} if changed else {"q": of.w_q, "k": of.w_k, "v": of.w_v}
    return {name: _matrix(each) for name, each in names.items()}


def rotary(model: OwnModel, attention: str, layer: int) -> Rotary | None:
    """The rotary positions of an attention, see `Model.rotary`."""
    of, config = model.attentions[attention][layer], model.network.config
    if of.q_norm is not None or of.rotation_angles(()) is None:
        return None
    how = config.rotary_base, config.rotary_share, config.rotary_scaling
    angles = layers_network.rotary_frequencies(of.d_head, *how).double().numpy()
    return Rotary(_matrix(of.w_q), _matrix(of.w_k), angles)


def _matrix(linear: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
    """The matrix of a linear map of rows, and its bias."""
    return _numbers(linear.weight.T), _or_zeros(linear.bias, len(linear.weight))


def layers_of(model: OwnModel, stream: str) -> list[Layer]:
    """A stream's layers in order. Raises ValueError for no such stream."""
    network = model.network
    stacks: dict[str, nn.ModuleList] = {}
    if isinstance(network, EncoderDecoder):
        stacks = {"encoder": network.encoder, "decoder": network.decoder}
    elif isinstance(network, (Encoder, Decoder)):
        stacks = {model.card.kind: network.layers}
    if stream not in stacks:
        raise ValueError(f"{model.card.name} has no stream {stream!r}; it has {', '.join(stacks)}")
    return [layer for layer in stacks[stream] if isinstance(layer, Layer)]


def input_site(layer: Layer, stream: Stream, sublayer: str, edits: tuple[Edit, ...]) -> str:
    """The site that is the input of a sub-layer ("attn", "cross", "ffn") of a layer, before its
    LayerNorm: the state before it, or where the FFN runs in parallel with attention, the one before
    both."""
    is_parallel = layer.parallel or applies(edits, SideBySide, layer.layer)
    first_sublayer = "attn" if sublayer == "ffn" and is_parallel else sublayer
    output_site = f"{layer.layer}.{first_sublayer}.wrote"
    return next(state for state, site, _ in stream.writes() if site == output_site)


def _or_zeros(bias: Tensor | None, n: int) -> np.ndarray:
    return np.zeros(n, dtype=np.float32) if bias is None else _numbers(bias)


def _numbers(tensor: Tensor) -> np.ndarray:
    return np.array(tensor.detach().numpy())


@torch.inference_mode()
def embeddings(model: OwnModel, ids: np.ndarray | None = None) -> np.ndarray:
    """Every word's embedding as the stream begins with it, times sqrt(d_model), or those of some
    ids: (id, d_model)."""
    embedding = model.network.embedding
    rows = embedding.token.weight
    return embedding.words(rows if ids is None else rows[torch.tensor(ids)]).numpy()
