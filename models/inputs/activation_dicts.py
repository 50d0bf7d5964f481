"""Recordings of activations that another library has kept: a dict of TransformerLens' hook names,
or of module paths as nnsight's cache and plain forward hooks have them.

The sites' law is checked here: what a part wrote and the state before it must add up to the state
after it, or the cache is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from models.contract.arrays import as_array
from models.contract.recording import Attention, Recording
from models.inputs import handed_out
from models.inputs.array_model import bare_stream, recording_of, rows_of_one

# TransformerLens' names of the sites of a layer, in order, and ours.
LAYER_SITES = {
    "hook_attn_out": "attn.wrote",
    "hook_resid_mid": "attn.sum",
    "hook_mlp_out": "ffn.wrote",
    "hook_resid_post": "ffn.sum",
}
LAYER = re.compile(r"(?:^|\.)(?:h|layers?|blocks?|block)\.(\d+)(?:\.(.+))?$")
ATTENTION = re.compile(r"(?:^|\.)(?:self_)?attn$|attention$")
SUM_TOLERANCE = 1e-3  # of a sum of three arrays, of the largest number


def from_cache(
    cache: Mapping[str, Any], tokens: Sequence[Any], *, batch: int = 0, name: str = "cache"
) -> Recording:
    """A recording of a decoder's or an encoder's activations, for every panel that they are enough
    for.

    cache: arrays of any framework, with an axis of the batch or without one, by TransformerLens'
    hook names (`blocks.0.attn.hook_pattern`), or by paths of modules (`transformer.h.0.attn`), each
    with what the module gave, or an object whose `output` that is. tokens: what each is called.
    batch: the text of it.

    Raises ValueError where no pattern is there, for arrays of other shapes, for rows that do not
    sum to 1, for numbers that are not finite, and for states that do not add up.
    """
    if not hasattr(cache, "keys"):
        raise TypeError(
            f"a cache is a dict of arrays by their names, and no {type(cache).__name__}"
        )
    arrays = {str(key): getattr(cache[key], "output", cache[key]) for key in cache.keys()}
    if "logits" in arrays or "attentions" in arrays:
        raise ValueError("this is what a model returned and no cache; give it to headlight.view")
    if any("hook_" in key for key in arrays):
        read = _Hooks({key: value for key, value in arrays.items() if "hook_" in key}, batch)
    else:
        read = _Hooks(_as_hooks(arrays), batch)
    labels = handed_out.labels_of(tokens)
    layers = read.layers()
    weights = [read.need(each, "attn.hook_pattern", 3) for each in layers]
    if len({each.shape for each in weights}) > 1:
        raise ValueError(f"the layers have other shapes: {[each.shape for each in weights]}")
    pattern, n = np.stack(weights), len(labels)
    handed_out.expect_shape(pattern, n)
    handed_out.expect_no_padding(pattern, labels)
    pattern = rows_of_one(pattern)
    causal = n > 1 and not np.triu(pattern, 1).any()
    stream = "decoder" if causal else "encoder"
    allowed = np.tril(np.ones((n, n), bool)) if causal else np.ones((n, n), bool)
    sites, vectors = _sites(read, layers)
    resid = None if not sites else np.stack(vectors).astype(np.float32)
    return recording_of(
        _attention(read, layers, pattern, allowed, stream),
        bare_stream(stream, labels, tuple(sites), resid),
        name,
    )


class _Hooks:
    """Arrays of one text by TransformerLens' hook names."""

    def __init__(self, arrays: Mapping[str, Any], batch: int) -> None:
        self.arrays, self.batch = arrays, batch

    def get(self, key: str, axes: int) -> np.ndarray | None:
        """An array without the axis of the batch, None where it is not there."""
        if key not in self.arrays:
            return None
        array = as_array(self.arrays[key])
        if array.ndim == axes + 1:
            if not -len(array) <= self.batch < len(array):
                raise ValueError(f"{key} has texts 0 to {len(array) - 1}, and no text {self.batch}")
            array = array[self.batch]
        if array.ndim != axes:
            raise ValueError(f"{key} has {array.ndim} axes; it has {axes}, and one of the batch")
        if (
            not key.endswith("hook_attn_scores") and not np.isfinite(array).all()
        ):  # those are masked
            raise ValueError(f"{key} has numbers that are not finite")
        return array

    def of_layer(self, layer: int, key: str, axes: int) -> np.ndarray | None:
        """An array of a layer, None where it is not there."""
        return self.get(f"blocks.{layer}.{key}", axes)

    def need(self, layer: int, key: str, axes: int) -> np.ndarray:
        """An array of a layer. Raises ValueError where it is not there."""
        array = self.of_layer(layer, key, axes)
        if array is None:
            why = f"; {handed_out.NOT_RETURNED}" if key == "attn.hook_pattern" else ""
            raise ValueError(f"there is no {key} of layer {layer}{why}")
        return array

    def layers(self) -> list[int]:
        """The numbers of all layers that are there. Raises ValueError for none, and for gaps."""
        numbers = {
            int(match[1]) for key in self.arrays if (match := re.match(r"blocks\.(\d+)\.", key))
        }
        if not numbers or sorted(numbers) != list(range(len(numbers))):
            raise ValueError(f"layers count from 0 without a gap; there are {sorted(numbers)}")
        return sorted(numbers)


def _sites(read: _Hooks, layers: Iterable[int]) -> tuple[list[str], list[np.ndarray]]:
    """The sites that are there, and their vectors (token, d_model). Raises ValueError where they do
    not add up."""
    by_name: dict[str, np.ndarray | None] = {
        "embed": read.get("hook_embed", 2),
        "pos.wrote": read.get("hook_pos_embed", 2),
        "embed+pos": read.of_layer(0, "hook_resid_pre", 2),
    }
    if by_name["pos.wrote"] is None or by_name["embed"] is None:  # one site, and no sum
        first = by_name["embed"] if by_name["embed+pos"] is None else by_name["embed+pos"]
        by_name = {"embed+pos": first}
    elif by_name["embed+pos"] is None:
        by_name["embed+pos"] = by_name["embed"] + by_name["pos.wrote"]
    for layer in layers:
        of_layer = {site: read.of_layer(layer, key, 2) for key, site in LAYER_SITES.items()}
        if of_layer["attn.sum"] is None or of_layer["attn.wrote"] is None:
            of_layer = {"ffn.sum": of_layer["ffn.sum"]}
        elif of_layer["ffn.wrote"] is None or of_layer["ffn.sum"] is None:
            of_layer = {site: of_layer[site] for site in ("attn.wrote", "attn.sum")}
        by_name |= {f"{layer}.{site}": array for site, array in of_layer.items()}
    there = {site: array for site, array in by_name.items() if array is not None}
    state, names = None, [*there]
    for at, (site, array) in enumerate(there.items()):
        if site.endswith(".wrote") and state is not None:
            total = there[names[at + 1]]
            off = float(np.abs(state + array - total).max(initial=0.0))
            if not off <= SUM_TOLERANCE * max(1.0, float(np.abs(total).max(initial=0.0))):
                raise ValueError(
                    f"{site} and the state before it do not add up to {names[at + 1]}: off by "
                    f"{off:.3g}"
                )
        elif not site.endswith(".wrote"):
            state = array
    return names, list(there.values())


def _attention(
    read: _Hooks, layers: Sequence[int], pattern: np.ndarray, allowed: np.ndarray, stream: str
) -> Attention:
    """The attention, with q, k, v and scores where all layers have them."""
    arrays: dict[str, np.ndarray] = {}
    for ours, names in (
        ("q", ("hook_rot_q", "hook_q")),
        ("k", ("hook_rot_k", "hook_k")),
        ("v", ("hook_v",)),
        ("scores", ("hook_attn_scores",)),
    ):
        attentions = [
            next(
                (
                    array
                    for each in names
                    if (array := read.of_layer(layer, f"attn.{each}", 3)) is not None
                ),
                None,
            )
            for layer in layers
        ]
        stacked = [each for each in attentions if each is not None]
        if len(stacked) < len(layers):
            return Attention.closed("self", stream, stream, pattern, allowed)
        arrays[ours] = np.stack(stacked).astype(np.float32)
    for each in ("q", "k", "v"):  # (layer, token, head, d_head) there
        arrays[each] = np.ascontiguousarray(arrays[each].transpose(0, 2, 1, 3))
    # Its scores are those after the mask; before it they are q . k times the scale.
    keys = np.repeat(arrays["k"], arrays["q"].shape[1] // arrays["k"].shape[1], axis=1)
    products = np.einsum("lhqd,lhkd->lhqk", arrays["q"], keys)
    seen = np.broadcast_to(allowed, products.shape)
    scale = np.einsum(
        "lhqk,lhqk->l", np.where(seen, products, 0), np.where(seen, arrays["scores"], 0)
    )
    scale = scale / np.einsum("lhqk->l", np.where(seen, products**2, 0)).clip(1e-30)
    filled = np.where(seen, arrays["scores"], products * scale[:, None, None, None])
    return Attention(
        "self",
        stream,
        stream,
        filled.astype(np.float32),
        pattern,
        allowed,
        arrays["q"],
        arrays["k"],
        arrays["v"],
        scale=scale,
    )


def _as_hooks(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs of modules, by TransformerLens' hook names: the weights among what an attention gave,
    the vectors of an attention, a feed-forward network, a layer and an embedding."""
    hooks: dict[str, Any] = {}
    for path, value in arrays.items():
        tensors = [each for each in _flat(value) if hasattr(each, "shape")]
        vectors = next((each for each in tensors if len(each.shape) in (2, 3)), None)
        match = LAYER.search(path)
        if match is None:
            if path.rpartition(".")[2] in ("drop", "embed_tokens") and vectors is not None:
                hooks["blocks.0.hook_resid_pre"] = vectors
            continue
        block, inner = f"blocks.{match[1]}", match[2] or ""
        if not inner and vectors is not None:
            hooks[f"{block}.hook_resid_post"] = vectors
        elif ATTENTION.search(inner):
            weights = next((each for each in tensors if len(each.shape) == 4), None)
            if weights is not None:
                hooks[f"{block}.attn.hook_pattern"] = weights
    return hooks


def _flat(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    return list(value) if isinstance(value, (tuple, list)) else [value]
