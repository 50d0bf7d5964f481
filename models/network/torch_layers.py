"""torch's own `nn.TransformerEncoder`, its layer and `nn.MultiheadAttention` as models of ours.

They compute what the paper's layers do, so that their weights run in our classes: every panel,
every edit and every readout is theirs too. The numbers are those of torch in 32 bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.network.config import Config
from models.network.transformer import Decoder, Encoder, Transformer

N_POSITIONS = 1024  # the longest text of a model without a table of positions
Encodable = nn.TransformerEncoder | nn.TransformerEncoderLayer | nn.MultiheadAttention


def converted(
    module: Encodable,
    n_vocab: int,
    embedding: nn.Embedding | Tensor | None,
    positions: nn.Embedding | Tensor | None,
    readout: nn.Linear | None,
    causal: bool,
) -> Transformer:
    """A module of torch's as a model of ours, see `models.inputs.wrap.wrap`. Raises ValueError for
    what our classes do not compute."""
    layers = _layers(module)
    _expect_alike(layers)
    first = layers[0] if layers else None
    of: Any = module if first is None else first.self_attn
    d_model, table = of.embed_dim, _matrix(positions)
    last_norm = getattr(module, "norm", None) if isinstance(module, nn.TransformerEncoder) else None
    config = Config(
        n_vocab=n_vocab,
        d_model=d_model,
        n_layer=max(1, len(layers)),
        n_head=of.num_heads,
        d_ff=1 if first is None else first.linear1.out_features,
        n_positions=N_POSITIONS if table is None else len(table),
        norm=None if first is None else "pre" if first.norm_first else "post",
        last_norm=last_norm is not None,
        positions=None if table is None else "learned",
        activation="relu" if first is None else _activation(first),
        eps=1e-5 if first is None else first.norm1.eps,
        scaled_embedding=False,
        readout=None if readout is None else "untied",
        bias_qkv=of.in_proj_bias is not None,
        bias_o=of.out_proj.bias is not None,
        bias_ffn=first is not None and first.linear1.bias is not None,
    )
    model: Transformer = Decoder(config) if causal else Encoder(config)
    state = dict(_state(layers, of if first is None else None))
    rows = _matrix(embedding)
    state["embedding.token.weight"] = torch.zeros(n_vocab, d_model) if rows is None else rows
    if table is not None:
        state["embedding.position"] = table
    if last_norm is not None:
        state |= _norm_state("last_norm.norm", last_norm)
    if readout is not None:
        state["unembedding.weight"] = readout.weight
        bias = readout.bias
        state["readout_bias"] = torch.zeros(n_vocab) if bias is None else bias
    shapes = {name: tuple(each.shape) for name, each in model.state_dict().items()}
    for name, tensor in state.items():
        if tuple(tensor.shape) != shapes[name]:
            raise ValueError(
                f"{name} has the shape {tuple(tensor.shape)}; here it must be {shapes[name]}"
            )
    model.load_state_dict({name: each.detach().float().cpu() for name, each in state.items()})
    if last_norm is not None and isinstance(model.last_norm.norm, nn.LayerNorm):
        model.last_norm.norm.eps = last_norm.eps
    return model.eval()


def _layers(module: Encodable) -> list[Any]:
    """The layers of a module; none of a bare attention. Raises ValueError for no layers."""
    if isinstance(module, nn.MultiheadAttention):
        _expect_plain(module)
        return []
    layers = list(module.layers) if isinstance(module, nn.TransformerEncoder) else [module]
    if not layers or not all(isinstance(each, nn.TransformerEncoderLayer) for each in layers):
        raise ValueError("the layers of the encoder must be nn.TransformerEncoderLayer")
    for each in layers:
        assert isinstance(each, nn.TransformerEncoderLayer)
        _expect_plain(each.self_attn)
    return layers


def _expect_plain(attention: nn.MultiheadAttention) -> None:
    """Raises ValueError for an attention that is not the paper's."""
    if attention.in_proj_weight is None:
        raise ValueError("keys and values of another width than queries (kdim, vdim) are not read")
    if attention.bias_k is not None or attention.add_zero_attn:
        raise ValueError("an added key (add_bias_kv, add_zero_attn) is not read")


def _expect_alike(layers: list[Any]) -> None:
    """Raises ValueError where layers differ in size or kind."""
    kinds = {
        (each.norm_first, each.norm1.eps, each.self_attn.num_heads, each.linear1.out_features)
        for each in layers
    }
    if len(kinds) > 1:
        raise ValueError("the layers of the encoder differ; they must be alike")


def _activation(layer: nn.TransformerEncoderLayer) -> str:
    """The name of a layer's activation. Raises ValueError for another one than ReLU and GELU."""
    activation: Any = layer.activation
    if activation is F.relu or isinstance(activation, nn.ReLU):
        return "relu"
    if activation is F.gelu:
        return "gelu"
    if isinstance(activation, nn.GELU):
        return "gelu" if activation.approximate == "none" else "gelu_tanh"
    if activation is F.silu or isinstance(activation, nn.SiLU):
        return "silu"
    raise ValueError(f"the activation {activation!r} is none of relu, gelu and silu")


def _state(
    layers: list[Any], attention: nn.MultiheadAttention | None
) -> Iterator[tuple[str, Tensor]]:
    """Our weights by name. A bare attention is followed by a feed-forward network that writes
    nothing."""
    if attention is not None:
        yield from _attention("layers.0.attention", attention)
        d_model = attention.embed_dim
        yield "layers.0.feed_forward.w_1.weight", torch.zeros(1, d_model)
        yield "layers.0.feed_forward.w_2.weight", torch.zeros(d_model, 1)
    for at, layer in enumerate(layers):
        name = f"layers.{at}"
        yield from _attention(f"{name}.attention", layer.self_attn)
        for ours, linear in (("w_1", layer.linear1), ("w_2", layer.linear2)):
            yield f"{name}.feed_forward.{ours}.weight", linear.weight
            if linear.bias is not None:
                yield f"{name}.feed_forward.{ours}.bias", linear.bias
        yield from _norm_state(f"{name}.attention_out.norm", layer.norm1).items()
        yield from _norm_state(f"{name}.feed_forward_out.norm", layer.norm2).items()


def _attention(name: str, attention: nn.MultiheadAttention) -> Iterator[tuple[str, Tensor]]:
    for ours, weight in zip(("w_q", "w_k", "w_v"), attention.in_proj_weight.chunk(3)):
        yield f"{name}.{ours}.weight", weight
    if attention.in_proj_bias is not None:
        for ours, bias in zip(("w_q", "w_k", "w_v"), attention.in_proj_bias.chunk(3)):
            yield f"{name}.{ours}.bias", bias
    yield f"{name}.w_o.weight", attention.out_proj.weight
    if attention.out_proj.bias is not None:
        yield f"{name}.w_o.bias", attention.out_proj.bias


def _norm_state(name: str, norm: nn.Module) -> dict[str, Tensor]:
    """The gain and the bias of a LayerNorm. Raises ValueError for another norm."""
    if not isinstance(norm, nn.LayerNorm) or norm.weight is None:
        raise ValueError(f"the norm {norm!r} is no nn.LayerNorm with a gain")
    bias = torch.zeros_like(norm.weight) if norm.bias is None else norm.bias
    return {f"{name}.weight": norm.weight, f"{name}.bias": bias}


def _matrix(table: nn.Embedding | nn.Parameter | Tensor | None) -> Tensor | None:
    """A table as a matrix (row, d_model). Raises ValueError for another shape."""
    matrix = table.weight if isinstance(table, nn.Embedding) else table
    if matrix is None:
        return None
    matrix = torch.as_tensor(matrix)
    matrix = matrix[0] if matrix.dim() == 3 and len(matrix) == 1 else matrix
    if matrix.dim() != 2:
        raise ValueError(f"a table has the shape (row, d_model), not {tuple(matrix.shape)}")
    return matrix
