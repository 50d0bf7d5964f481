"""The inside of a feed-forward network at one token: its hidden units before and after the
activation, and what each writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.edits import PatchSite, WithoutFeedForward, applies
from models.own import Handle
from models.readouts.parameters import layers_of, looks_at
from models.recording import Recording
from models.since import GatedFeedForward
from models.transformer import FeedForward


@dataclass(frozen=True, eq=False)
class Inside:
    """FFN(x) = act(x W_1 + b_1) W_2 + b_2 at one token: before, after (d_ff) the activation; writes
    (d_ff, d_model), a unit's activation times its row of W_2; bias (d_model). The sum of `writes`
    and `bias` is what the FFN wrote. Of a gated one `before` is the gate, and `after` what comes of
    it times the unit."""

    before: np.ndarray
    after: np.ndarray
    writes: np.ndarray
    bias: np.ndarray


@torch.inference_mode()
def inside(handle: Handle, recording: Recording, stream: str, layer: int, token: int) -> Inside:
    """The hidden units of a layer's FFN at a token. Raises ValueError for a stream, a layer or a
    token that is not there, and where an edit took the FFN away or put in what another wrote."""
    network, read = reads(handle, recording, stream, layer, token)
    before, after = network.before(read[token]), network.hidden(read[token])
    writes = after[:, None] * network.w_2.weight.T
    bias = bias_of(network)
    return Inside(*(each.numpy().copy() for each in (before, after, writes, bias)))


def reads(
    handle: Handle, recording: Recording, stream: str, layer: int, token: int
) -> tuple[FeedForward | GatedFeedForward, Tensor]:
    """The FFN of a layer and what it reads at every token, (token, d_model). Raises as `inside`."""
    of, layers = recording.stream(stream), layers_of(handle, stream)
    if not 0 <= layer < len(layers) or not 0 <= token < len(of.tokens):
        raise ValueError(
            f"stream {stream} has no layer {layer} or no token {token}; it has layers 0 to "
            f"{len(layers) - 1} and tokens 0 to {len(of.tokens) - 1}"
        )
    if applies(recording.edits, WithoutFeedForward, layer):
        raise ValueError(f"the FFN of layer {layer} was taken away")
    first = recording.streams[0].name
    for edit in recording.edits:
        if (
            isinstance(edit, PatchSite)
            and (edit.stream or first, edit.site) == (stream, f"{layer}.ffn.wrote")
            and edit.token in (None, token)
        ):
            raise ValueError(f"what the FFN of layer {layer} wrote was put in from another text")
    site = f"{layer}.ffn.read"
    if site not in of.sites:
        site = looks_at(layers[layer], of, "ffn", recording.edits)
    x = torch.tensor(of.at(site)).to(handle.model.embedding.token.weight.dtype)
    return layers[layer].feed_forward, x


def bias_of(network: FeedForward | GatedFeedForward) -> Tensor:
    """What an FFN adds whatever its units do, (d_model)."""
    bias = network.w_2.bias
    return torch.zeros(network.w_2.out_features) if bias is None else bias.detach()
