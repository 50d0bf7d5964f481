"""What a lens is compared with: the model's own full pass."""

from __future__ import annotations

import torch

from explorer.analysis import logit_lens
from models.contract.recording import Recording
from models.contract.results import Lens
from models.network.own_model import OwnModel
from models.network.transformer import EncoderDecoder


@torch.inference_mode()
def full_pass(model: OwnModel, recording: Recording) -> torch.Tensor:
    """Logits (token, id) of a bare pass of the model, with no tape and no recording in between."""
    network, stream = model.network, logit_lens.read_stream(recording)
    ids = torch.tensor(stream.ids)[None]
    if isinstance(network, EncoderDecoder):
        memory = network.encode(
            torch.tensor(recording.stream("encoder").ids)[None], edits=recording.edits
        )
        return network.logits(network.decode(ids, memory, edits=recording.edits)[0])
    return network.logits(network(ids, edits=recording.edits)[0])


def lens_of(model: OwnModel, recording: Recording, top: int = 10) -> Lens:
    return model.lens(recording, logit_lens.read_stream(recording).name, top)
