"""What the hidden units of a feed-forward network add to a logit, what each of them says of all
other words, and at which tokens it fires."""

from __future__ import annotations

import torch
from torch import Tensor

from models.own import Handle
from models.prediction import Neurons
from models.readouts.bend import bend
from models.readouts.inside import bias_of, reads
from models.readouts.readout import expect_a_sum, followed, word_direction
from models.recording import Recording
from models.slices import breath

MOST = 24  # neurons of which it is told what they say and when they fire
WORDS = 6  # each way


@torch.inference_mode()
def neurons(
    handle: Handle,
    recording: Recording,
    stream: str,
    layer: int,
    token: int,
    id: int,
    against: int | None = None,
) -> Neurons:
    """The neurons of a layer's FFN by what they add to a word's logit at a token, or to the
    difference of two.

    A neuron writes its activation times its row of W_2, and a LayerNorm whose sigma is held is
    linear: so the FFN's part of the logit is the sum of theirs and its bias's (direct logit
    attribution one step further in; Geva et al. 2022, "Transformer Feed-Forward Layers Build
    Predictions by Promoting Concepts in the Vocabulary Space"). Raises ValueError as `attribute`
    and `inside` do, and for an FFN of which nothing reaches the readout.
    """
    asked = (token, id, *([] if against is None else [against]))
    expect_a_sum(handle, recording, stream, asked)
    network, read = reads(handle, recording, stream, layer, token)
    way = followed(handle, recording, stream, token)
    if layer not in way.after:
        raise ValueError(
            f"nothing that the FFN of layer {layer} wrote reaches the readout: a later layer "
            "replaces the stream"
        )
    breath()
    direction, _ = word_direction(handle, id, against)
    arrived = way.from_ffn(layer, torch.eye(len(direction), dtype=torch.float64))
    bent = bend(handle, torch.tensor(recording.stream(stream).resid[-1, token]).double())
    arrived = arrived if bent is None else bent.slope(arrived)
    towards = arrived @ direction  # what a vector written here is multiplied with, (d_model)
    hidden = network.hidden(read).double()  # (token, unit)
    rows = network.w_2.weight.T.double()  # (unit, d_model)
    adds = hidden[token] * (rows @ towards)
    strongest = adds.abs().argsort(descending=True, stable=True)[:MOST]
    wrote = torch.tensor(recording.stream(stream).at(f"{layer}.ffn.wrote")[token]).double()
    says = (hidden[token, strongest, None] * rows[strongest]) @ arrived
    return Neurons(
        layer,
        token,
        id,
        against,
        float(wrote @ towards),
        float(bias_of(network).double() @ towards),
        hidden[token].numpy(),
        adds.numpy(),
        (hidden[token].abs() * rows.norm(dim=-1)).numpy(),
        strongest.numpy(),
        hidden[:, strongest].T.contiguous().numpy(),
        *_said(handle, says.float()),
    )


def _said(handle: Handle, vectors: Tensor) -> tuple:
    """Of vectors (row, d_model) at the readout the words they raise most and by how much, and those
    they lower most: four arrays (row, word)."""
    words, found = handle.model.readout_matrix, []
    for some in vectors.split(8):
        breath()
        logits = some @ words.T  # (row, id)
        most = min(WORDS, logits.shape[-1])
        up, down = logits.topk(most), logits.topk(most, largest=False)
        found.append((up.indices, up.values, down.indices, down.values))
    return tuple(torch.cat(each).numpy() for each in zip(*found))
