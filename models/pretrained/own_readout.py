"""How a Hugging Face model reads words off a vector: by its own code, and where that is so, as a
matrix, or as a matrix after a transform."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from models.config import ACTIVATIONS
from models.offers import without_readout
from models.pretrained.described import head_of
from models.pretrained.handle import Handle
from models.pretrained.hooks import Pass, listening
from models.pretrained.overheard import Moment, everything, same
from models.readouts.bend import Bend, Linear, bend_at

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


def no_readout(handle: Handle) -> str:
    """Why a model predicts no words, as the predicate of a sentence, "" where it does."""
    if handle.plan.door is not None:
        return ""
    if handle.model.get_output_embeddings() is not None:
        return "has a readout that cannot be run on its last vector alone"
    return without_readout(head_of(handle.model.config.architectures))


def expect_readout(handle: Handle, stream: str) -> None:
    """Raises ValueError for a model without a readout, and for a stream that it does not read."""
    if handle.plan.door is None:
        raise ValueError(f"{handle.card.name} {no_readout(handle)}, so it predicts no words")
    if stream != handle.plan.streams[-1].name:
        raise ValueError(
            f"{handle.card.name} reads words off its {handle.plan.streams[-1].name} alone"
        )


@dataclass(frozen=True, eq=False)
class Transform:
    """What stands between a BERT's last vector and its words: norm(activation(dense x))."""

    dense: nn.Linear
    activation: Linear
    norm: nn.LayerNorm

    def at(self, last: Tensor) -> Bend:
        """The transform at a last vector (d_model, float64)."""
        return bend_at(self.dense, self.activation, self.norm, last)


@dataclass(frozen=True, eq=False)
class Readout:
    """logits = scale x `weight` (id, width) @ vector + `offset` (id), of the last vector or of what
    a `transform` makes of it."""

    weight: Tensor
    scale: float
    offset: Tensor
    transform: Transform | None = None

    def direction(self, id: int, against: int | None = None) -> tuple[Tensor, float]:
        """What a vector is multiplied with for a word's logit, (d_model), and what is added;
        `against` another word, the difference."""
        weight, offset = self.weight[id].double() * self.scale, float(self.offset[id])
        if against is None:
            return weight, offset
        other = self.weight[against].double() * self.scale
        return weight - other, offset - float(self.offset[against])


_found: WeakKeyDictionary[Handle, Readout | None] = WeakKeyDictionary()


@torch.inference_mode()
def readout_of(handle: Handle) -> Readout | None:
    """The model's readout as a matrix, after a transform such as BERT's where there is one; None
    where it is another: tried on random vectors, and found once for a handle. What bends otherwise
    (a bound on the logits) is found out."""
    if handle not in _found:
        _found[handle] = _tried(handle)
    return _found[handle]


def _tried(handle: Handle) -> Readout | None:
    module = handle.model.get_output_embeddings() if handle.plan.door is not None else None
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2 or len(weight) != handle.card.n_vocab:
        return None
    drawn = torch.randn(3, handle.card.d_model, generator=torch.Generator().manual_seed(0))
    drawn = drawn.to(weight.dtype) * torch.tensor([[1.0], [8.0], [0.0]], dtype=weight.dtype)
    plain = _fitted(weight, drawn, readout(handle, drawn), None)
    return plain or _bent(handle, weight, drawn)


def _fitted(
    weight: Tensor, read: Tensor, said: Tensor, transform: Transform | None
) -> Readout | None:
    """The readout that said these logits (row, id) of these vectors (row, width), where it is a
    matrix times a number and something added."""
    if weight.shape[1] != read.shape[1]:
        return None
    plain, bare = (read[:2] - read[2]) @ weight.T, said[:2] - said[2]
    scale = float((bare * plain).sum() / (plain * plain).sum())
    offset = said[2] - scale * (read[2] @ weight.T)
    if not same(read @ weight.T * scale + offset, said):
        return None
    return Readout(weight.detach(), scale, offset, transform)


def _bent(handle: Handle, weight: Tensor, drawn: Tensor) -> Readout | None:
    """A transform's readout: a dense layer that read these vectors (row, d_model), and a LayerNorm
    that read one of the known activations of what it gave, and gave what the words are said of."""
    said: list[Tensor] = []
    log = everything(handle.model, lambda: said.append(readout(handle, drawn)))
    moments = [each for each in log if isinstance(each, Moment)]
    values = [each.value.flatten(0, -2) for each in moments if each.value.dim() > 1]
    moments = [each for each in moments if each.value.dim() > 1]
    reads = {each.place.module: value for each, value in zip(moments, values) if _is_in(each)}
    gives = {each.place.module: value for each, value in zip(moments, values) if not _is_in(each)}
    for dense, before in reads.items():
        if not isinstance(dense, nn.Linear) or not same(before, drawn):
            continue
        for norm, bent in reads.items():
            if not isinstance(norm, nn.LayerNorm) or norm.weight is None or norm.bias is None:
                continue
            for activation in ACTIVATIONS.values():
                if same(activation(gives[dense]), bent):
                    found = Transform(dense, activation, norm)
                    return _fitted(weight, gives[norm], said[0], found)
    return None


def _is_in(moment: Moment) -> bool:
    return moment.place.side == "in"
