"""What a lens is compared with: the model's own full pass."""

from __future__ import annotations

import torch

from explorer.analysis import logit_lens
from models.own_model import OwnModel
from models.recording import Recording
from models.results import Lens
from models.transformer import EncoderDecoder


@torch.inference_mode()
def full_pass(handle: OwnModel, recording: Recording) -> torch.Tensor:
    """Logits (token, id) of a bare pass of the model, with no tape and no recording in between."""
    model, stream = handle.model, logit_lens.read_stream(recording)
    ids = torch.tensor(stream.ids)[None]
    if isinstance(model, EncoderDecoder):
        memory = model.encode(
            torch.tensor(recording.stream("encoder").ids)[None], edits=recording.edits
        )
        return model.logits(model.decode(ids, memory, edits=recording.edits)[0])
    return model.logits(model(ids, edits=recording.edits)[0])


def lens_of(handle: OwnModel, recording: Recording, top: int = 10) -> Lens:
    return handle.lens(recording, logit_lens.read_stream(recording).name, top)
