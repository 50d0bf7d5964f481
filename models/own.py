"""Models of our own: weights from disk, a forward pass on a text, and the Recording of it.

A model's folder under `models/weights` holds `model.safetensors` (fp16), `tokenizer.json` and `card.json`, whose `config` gives the sizes
and whose other entries (data, recipe, scores, limits) are for people.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from safetensors.torch import load as load_safetensors
from torch import Tensor

from models import shipped
from models.edits import Edit
from models.recording import Attention, Card, Recording, Stream
from models.tokenizer import Tokenizer
from models.transformer import Config, Encoder

TENSORS_OF_A_HEAD = ("scores", "pattern", "q", "k", "v")


@dataclass(frozen=True)
class Handle:
    """A loaded model, ready to record. It is shared by everyone and never changes."""

    card: Card
    tokenizer: Tokenizer
    model: Encoder


def load(name: str) -> Handle:
    """The shipped model of that name, in fp32 on the CPU. Raises ValueError for a name that is not shipped."""
    folder = shipped.folder(name)
    stored = (folder / "model.safetensors").read_bytes()
    model = Encoder(Config(**shipped.card(name)["config"]))
    model.load_state_dict({key: tensor.float() for key, tensor in load_safetensors(stored).items()})
    return handle_of(model.eval(), Tokenizer.load(folder / "tokenizer.json"), name, hashlib.sha256(stored).hexdigest()[:12])


def handle_of(model: Encoder, tokenizer: Tokenizer, name: str, fingerprint: str, weights: str = "fp16, computed in fp32") -> Handle:
    """A handle around a model in memory, as training and tests have it."""
    config = model.config
    card = Card(
        name=name,
        kind="encoder",
        n_layer=config.n_layer,
        n_head=config.n_head,
        d_model=config.d_model,
        d_head=config.d_head,
        n_vocab=config.n_vocab,
        n_positions=config.n_positions,
        n_parameters=sum(parameter.numel() for parameter in model.parameters()),
        fingerprint=fingerprint,
        weights=weights,
    )
    return Handle(card, tokenizer, model)


@torch.inference_mode()
def record(handle: Handle, text: str, edits: tuple[Edit, ...] = ()) -> Recording:
    """One forward pass over the text, recorded. A text over the model's length is cut at its end; `dropped` says by how much.

    Raises ValueError for an edit that names a layer or head the model does not have.
    """
    _check(edits, handle.card)
    text = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is no text; it becomes "?"
    tokens, dropped = handle.tokenizer.tokens(text, handle.card.n_positions)
    tape = Seen(handle.card.n_layer)
    handle.model(torch.tensor([tokens.ids]), tape=tape, edits=edits)
    stream = Stream(
        name="encoder",
        tokens=tokens.labels,
        ids=np.array(tokens.ids),
        special=np.array(tokens.special),
        spans=np.array(tokens.spans).reshape(-1, 2),
        sites=tuple(tape.sites),
        resid=tape.resid(),
    )
    n = len(tokens.ids)
    attention = Attention(name="self", query="encoder", key="encoder", allowed=np.ones((n, n), dtype=bool), **tape.heads)
    return Recording(handle.card, text, tuple(edits), (stream,), (attention,), dropped)


class Seen:
    """The tape that keeps what passes by: the stream's sites in order, and the tensors of the heads.

    A tensor of the heads is copied at once into the one array of all layers, so that the pass itself can use its memory again; a list
    to be stacked afterwards made a recording of 512 tokens cost 1.75 times the bare pass.
    """

    def __init__(self, n_layer: int) -> None:
        self.n_layer = n_layer
        self.sites: dict[str, Tensor] = {}
        self.heads: dict[str, np.ndarray] = {}

    def __call__(self, name: str, tensor: Tensor) -> None:
        sublayer, _, what = name.rpartition(".")
        if what not in TENSORS_OF_A_HEAD:
            self.sites[name] = tensor if tensor.dim() == 2 else tensor[0]
            return
        if what not in self.heads:
            self.heads[what] = np.empty((self.n_layer, *tensor.shape[1:]), dtype=np.float32)
        torch.from_numpy(self.heads[what][int(sublayer.partition(".")[0])]).copy_(tensor[0])

    def resid(self) -> np.ndarray:
        """All sites, (site, token, d_model)."""
        return torch.stack(list(self.sites.values())).numpy()


def _check(edits: tuple[Edit, ...], card: Card) -> None:
    for edit in edits:
        for field, size in (("layer", card.n_layer), ("head", card.n_head)):
            value = getattr(edit, field, None)
            if value is not None and not 0 <= value < size:
                raise ValueError(f"{edit} names {field} {value}; {card.name} has {field}s 0 to {size - 1}")
