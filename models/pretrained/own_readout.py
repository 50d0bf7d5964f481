"""How a Hugging Face model reads words off a vector: by its own code, and where that is linear, as
a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from models.pretrained.handle import Handle
from models.pretrained.hooks import Pass, listening
from models.pretrained.overheard import same

# Rows of logits are computed so many bytes at a time.
BYTES_OF_LOGITS = 256 << 20


def readout(handle: Handle, vectors: Tensor) -> Tensor:
    """Vectors (row, d_model) through the model's own readout: (row, id). The stack runs on one
    token, and these take the place of its answer."""
    one = torch.tensor([[0 if getattr(handle.model.config, "pad_token_id", None) != 0 else 1]])
    inputs = {"input_ids": one, **({"decoder_input_ids": one} if handle.start is not None else {})}
    rows = max(1, BYTES_OF_LOGITS // (4 * handle.card.n_vocab))
    said = []
    for part in vectors.split(rows):
        with handle.lock, listening(Pass(keeps=False, answer=part[None])):
            said.append(handle.model(**inputs, use_cache=False).logits[0])
    return torch.cat(said)


def expect_readout(handle: Handle, stream: str) -> None:
    """Raises ValueError for a model without a readout, and for a stream that it does not read."""
    if handle.plan.door is None:
        raise ValueError(
            f"{handle.card.name} was saved without a readout over the vocabulary, so it says "
            "no words"
        )
    if stream != handle.plan.streams[-1].name:
        raise ValueError(
            f"{handle.card.name} reads words off its {handle.plan.streams[-1].name} alone"
        )


@dataclass(frozen=True, eq=False)
class LinearReadout:
    """logits = scale x `weight` (id, d_model) @ vector + `offset` (id)."""

    weight: Tensor
    scale: float
    offset: Tensor

    def direction(self, id: int, against: int | None = None) -> tuple[Tensor, float]:
        """What a vector is multiplied with for a word's logit, (d_model), and what is added;
        `against` another word, the difference."""
        weight, offset = self.weight[id].double() * self.scale, float(self.offset[id])
        if against is None:
            return weight, offset
        other = self.weight[against].double() * self.scale
        return weight - other, offset - float(self.offset[against])


_found: WeakKeyDictionary[Handle, LinearReadout | None] = WeakKeyDictionary()


@torch.inference_mode()
def linear_readout(handle: Handle) -> LinearReadout | None:
    """The model's readout as a matrix, None where it is none: tried on random vectors, and found
    once for a handle. What bends (BERT's transform, a bound on the logits) is found out."""
    if handle not in _found:
        _found[handle] = _tried(handle)
    return _found[handle]


def _tried(handle: Handle) -> LinearReadout | None:
    module = handle.model.get_output_embeddings() if handle.plan.door is not None else None
    weight = getattr(module, "weight", None)
    shape = (handle.card.n_vocab, handle.card.d_model)
    if not isinstance(weight, Tensor) or tuple(weight.shape) != shape:
        return None
    drawn = torch.randn(3, shape[1], generator=torch.Generator().manual_seed(0))
    drawn = drawn.to(weight.dtype) * torch.tensor([[1.0], [8.0], [0.0]], dtype=weight.dtype)
    said = readout(handle, drawn)
    offset, plain = said[2], drawn[:2] @ weight.T
    bare = said[:2] - offset
    scale = float((bare * plain).sum() / (plain * plain).sum())
    if not same(plain * scale, bare):
        return None
    return LinearReadout(weight.detach(), scale, offset)
