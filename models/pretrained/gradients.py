"""The gradient of a logit back through a Hugging Face model's own code."""

from __future__ import annotations

import torch
from torch import Tensor

from models.pretrained.handle import Handle
from models.pretrained.hooks import Pass, listening
from models.pretrained.own_readout import expect_readout
from models.pretrained.stream import StreamPlan
from models.readouts.gradients import Highway
from models.recording import Recording
from models.slices import breath

AS_IT_IS = "residual on"  # the one way that a model's own code runs


def highway(handle: Handle, recording: Recording, stream: str, token: int) -> Highway:
    """The gradient of the likeliest word's logit at a token back to every state of the stream, as
    `models.readouts.gradients.highway`, by automatic differentiation of the model's own code. It is
    taken in one way, as the model is.

    Raises ValueError for a token that is not there, for a model without a readout, and where a
    state is no part of what the logit was computed from.
    """
    output = recording.streams[-1]
    expect_readout(handle, output.name)
    n = len(recording.stream(stream).tokens)
    if not 0 <= token < n:
        raise ValueError(f"stream {stream} has tokens 0 to {n - 1}, not {token}")
    row = token if output.name == stream else 0
    inputs = {"input_ids": torch.tensor(recording.streams[0].ids)[None]}
    if handle.start is not None:
        inputs["decoder_input_ids"] = torch.tensor(output.ids)[None]
    heard = Pass(handle.plan.attentions, handle.plan.n_layer, recording.edits)
    breath()
    with torch.enable_grad(), handle.lock, listening(heard):
        scores = handle.model(**inputs, use_cache=False).logits[0, row]
        breath()
        word = int(scores.argmax())
        plan = next(each for each in handle.plan.streams if each.name == stream)
        states = _states(plan, heard)
        found = torch.autograd.grad(scores[word], list(states.values()), allow_unused=True)
    if any(each is None for each in found):
        raise ValueError(f"{handle.card.name} does not let its states be followed back")
    norm = torch.stack([each.reshape(n, -1).norm(dim=-1) for each in found])
    logit = scores[word].detach()
    return Highway(
        stream,
        output.name,
        row,
        word,
        (AS_IT_IS,),
        tuple(states),
        norm[None].numpy(),
        logit[None].numpy(),
    )


def _states(plan: StreamPlan, heard: Pass) -> dict[str, Tensor]:
    """The state before the first layer, as "embed+pos", and the one after every sub-layer that was
    heard as one tensor."""
    kept: dict[str, Tensor] = {}
    for site, source in plan.sites:
        place, _, what = site.rpartition(".")
        if len(source) != 1 or source[0][1] != 1.0 or place == "final":
            continue
        tensor = heard.places[source[0][0].key]
        if site in ("embed", "embed+pos", "embed.normed"):
            kept["embed+pos"] = tensor
        elif what in ("sum", "normed"):  # the later of the two stays
            kept[place] = tensor
    return kept
