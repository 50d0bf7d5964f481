"""The inside of a feed-forward network at one token: its hidden units before and after the
activation, and what each writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from models.edits import WithoutFeedForward, applies
from models.own import Handle
from models.readouts.parameters import layers_of
from models.recording import Recording


@dataclass(frozen=True, eq=False)
class Inside:
    """FFN(x) = act(x W_1 + b_1) W_2 + b_2 at one token: before, after (d_ff) the activation; writes
    (d_ff, d_model), a unit's activation times its row of W_2; bias (d_model). The sum of `writes`
    and `bias` is what the FFN wrote."""

    before: np.ndarray
    after: np.ndarray
    writes: np.ndarray
    bias: np.ndarray


@torch.inference_mode()
def inside(handle: Handle, recording: Recording, stream: str, layer: int, token: int) -> Inside:
    """The hidden units of a layer's FFN at a token. Raises ValueError for a stream, a layer or a
    token that is not there, and where an edit took the FFN away."""
    of, layers = recording.stream(stream), layers_of(handle, stream)
    if not 0 <= layer < len(layers) or not 0 <= token < len(of.tokens):
        raise ValueError(f"stream {stream} has no layer {layer} or no token {token}")
    if applies(recording.edits, WithoutFeedForward, layer):
        raise ValueError(f"the FFN of layer {layer} was taken away")
    site = f"{layer}.ffn.read"
    if site not in of.sites:
        site = next(state for state, wrote, _ in of.writes() if wrote == f"{layer}.ffn.wrote")
    network = layers[layer].feed_forward
    before = network.w_1(torch.tensor(of.at(site)[token]))
    after = network.activation(before)
    writes = after[:, None] * network.w_2.weight.T
    return Inside(
        *(each.numpy().copy() for each in (before, after, writes, network.w_2.bias.detach()))
    )
