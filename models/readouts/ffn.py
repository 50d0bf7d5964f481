"""The inside of a feed-forward network at one token: its hidden units before and after the
activation, and what each writes."""

from __future__ import annotations

import torch
from torch import Tensor

from models.contract.cancellation import checkpoint
from models.contract.edits import WithoutFeedForward, applies, edited, edits_at, of_stream
from models.contract.recording import Recording
from models.contract.results import FFNActivations, Neurons
from models.network.layers import GatedFeedForward
from models.network.own_model import OwnModel
from models.network.transformer import FeedForward
from models.readouts.logit_lens import (
    expect_linear,
    norms_after_ffn,
    stream_operations,
    transform_at,
    word_direction,
)
from models.readouts.weights import input_site, layers_of


@torch.inference_mode()
def ffn_activations(
    model: OwnModel, recording: Recording, stream: str, layer: int, token: int
) -> FFNActivations:
    """The hidden units of a layer's FFN at a token. Raises ValueError for a stream, a layer or a
    token that is not there, and where an edit took the FFN away or put in what another wrote."""
    network, inputs = ffn_input(model, recording, stream, layer, token)
    preactivations = network.before(inputs)[token]
    by_token = hidden_units(recording, stream, layer, network, inputs)
    parts = preactivations, by_token[token], network.w_2.weight, ffn_bias(network), by_token
    before, after, w_2, bias, hidden = (each.numpy().copy() for each in parts)
    return FFNActivations(before, after, w_2.T, bias, hidden)


def ffn_input(
    model: OwnModel, recording: Recording, stream: str, layer: int, token: int
) -> tuple[FeedForward | GatedFeedForward, Tensor]:
    """The FFN of a layer and what it reads at every token, (token, d_model). Raises as `inside`."""
    residual, layers = recording.stream(stream), layers_of(model, stream)
    if not 0 <= layer < len(layers) or not 0 <= token < len(residual.tokens):
        raise ValueError(
            f"stream {stream} has no layer {layer} or no token {token}; it has layers 0 to "
            f"{len(layers) - 1} and tokens 0 to {len(residual.tokens) - 1}"
        )
    if applies(recording.edits, WithoutFeedForward, layer):
        raise ValueError(f"the FFN of layer {layer} was taken away")
    edits = of_stream(recording.edits, stream, first=stream == recording.streams[0].name)
    for edit in edits_at(edits, f"{layer}.ffn.wrote"):
        if getattr(edit, "token", None) in (None, token):
            raise ValueError(f"what the FFN of layer {layer} wrote was put in by an edit")
    site = f"{layer}.ffn.read"
    if site not in residual.sites:
        site = input_site(layers[layer], residual, "ffn", recording.edits)
    x = torch.tensor(residual.at(site)).to(model.network.embedding.token.weight.dtype)
    return layers[layer].feed_forward, x


def hidden_units(
    recording: Recording,
    stream: str,
    layer: int,
    network: FeedForward | GatedFeedForward,
    inputs: Tensor,
) -> Tensor:
    """The hidden units of a layer's FFN at every token, (token, d_ff), those that edits set at
    their values."""
    edits = of_stream(recording.edits, stream, first=stream == recording.streams[0].name)
    return edited(network.hidden(inputs), edits, f"{layer}.ffn.hidden")


def ffn_bias(network: FeedForward | GatedFeedForward) -> Tensor:
    """The constant output (d_model) of an FFN, which does not depend on its units."""
    bias = network.w_2.bias
    return torch.zeros(network.w_2.out_features) if bias is None else bias.detach()


# What the hidden units of a feed-forward network add to a logit, what each of them says of all
# other words, and at which tokens it fires.

MAX_NEURONS = 24  # of which it is told, by itself, what they say and when they fire
TOP_WORDS = 6  # each way


@torch.inference_mode()
def neurons(
    model: OwnModel,
    recording: Recording,
    stream: str,
    layer: int,
    token: int,
    id: int,
    against: int | None = None,
    n: int = MAX_NEURONS,
) -> Neurons:
    """The neurons of a layer's FFN by their contribution to a word's logit at a token, or to the
    difference of two; of the `n` strongest it is told when they fire and what they say.

    A neuron writes its activation times its row of W_2, and a LayerNorm with fixed sigma is linear:
    so the FFN's part of the logit is the sum of theirs and its bias's (direct logit attribution one
    step further in; Geva et al. 2022, "Transformer Feed-Forward Layers Build Predictions by
    Promoting Concepts in the Vocabulary Space"). Raises ValueError as `attribute` and `inside` do,
    and for an FFN whose output does not reach the readout."""
    indices = (token, id, *([] if against is None else [against]))
    expect_linear(model, recording, stream, indices)
    network, inputs = ffn_input(model, recording, stream, layer, token)
    norms = norms_after_ffn(stream_operations(model, recording, stream, token), layer)
    checkpoint()
    direction, _ = word_direction(model, id, against)
    at_readout = torch.eye(model.card.d_model, dtype=torch.float64)
    for norm in norms:
        at_readout = norm(at_readout)
    linearization = transform_at(
        model, torch.tensor(recording.stream(stream).resid[-1, token]).double()
    )
    at_readout = at_readout if linearization is None else linearization.slope(at_readout)
    projection = at_readout @ direction  # what a vector written here is multiplied with, (d_model)
    hidden = hidden_units(recording, stream, layer, network, inputs).double()  # (token, unit)
    rows = network.w_2.weight.T.double()  # (unit, d_model)
    adds = hidden[token] * (rows @ projection)
    strongest = adds.abs().argsort(descending=True, stable=True)[:n]
    ffn_output = torch.tensor(recording.stream(stream).at(f"{layer}.ffn.wrote")[token]).double()
    neuron_outputs = (hidden[token, strongest, None] * rows[strongest]) @ at_readout
    return Neurons(
        layer,
        token,
        id,
        against,
        float(ffn_output @ projection),
        float(ffn_bias(network).double() @ projection),
        hidden[token].numpy().copy(),  # else all of them stay
        adds.numpy(),
        (hidden[token].abs() * rows.norm(dim=-1)).numpy(),
        strongest.numpy(),
        hidden[:, strongest].T.contiguous().numpy(),
        *_top_words(model, neuron_outputs.to(network.w_2.weight.dtype)),
    )


def _top_words(model: OwnModel, vectors: Tensor) -> tuple:
    """Of vectors (row, d_model) at the readout the words they raise most and by how much, and those
    they lower most: four arrays (row, word)."""
    matrix, blocks = model.network.readout_matrix, []
    for block in vectors.split(8):
        checkpoint()
        logits = block @ matrix.T  # (row, id)
        n_top = min(TOP_WORDS, logits.shape[-1])
        up, down = logits.topk(n_top), logits.topk(n_top, largest=False)
        blocks.append((up.indices, up.values, down.indices, down.values))
    return tuple(torch.cat(each).numpy() for each in zip(*blocks))
