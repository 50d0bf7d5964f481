"""Models in our own classes as a source: the functions of models/capabilities.py's Source."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from models import generation, own_model
from models.capabilities import Capabilities, without_readout
from models.edits import KINDS
from models.own_model import OwnModel, record
from models.readouts import logit_lens
from models.readouts.gradients import gradients
from models.readouts.logit_lens import attribute, lens
from models.readouts.logit_lens import logits_at as logits
from models.results import Beam, SeededSampling

__all__ = [
    "attribute",
    "beams",
    "gradients",
    "lens",
    "logits",
    "nearest",
    "capabilities",
    "record",
    "generate",
]

# A gated FFN by its activation (Shazeer 2020).
GATES = {"silu": "SwiGLU", "gelu": "GeGLU", "gelu_tanh": "GeGLU", "relu": "ReGLU"}


def capabilities(handle: OwnModel) -> Capabilities:
    """Everything, as far as the model was built with it."""
    config, kind = handle.model.config, handle.card.kind
    no_readout = "" if config.readout else without_readout(config.head)
    return Capabilities(
        kind=kind,
        attention=tuple(handle.attentions),
        scale=handle.card.d_head**-0.5 if config.scaled_scores else 1.0,
        norm=config.norm,
        positions=config.positions,
        logits=("encoder" if kind == "encoder" else "decoder") if config.readout else "",
        edits=tuple(KINDS.values()),
        scaled_embedding=config.scaled_embedding,
        linear_readout=config.readout in ("tied", "untied"),
        rms=config.rms,
        parallel=config.parallel,
        gate=GATES.get(config.activation, "gated") if config.gated else "",
        ffn_biases=config.bias_ffn,
        key_heads=config.n_key_head,
        window=config.window,
        full_layers=config.full_layers,
        untied=config.readout == "untied",
        readout_bias=handle.has_readout_bias,
        no_parts=f"it {no_readout}" if no_readout else "",
        no_readout=no_readout,
        mask=handle.tokenizer.mask_name if kind == "encoder" else "",
        writes=kind != "encoder" and config.readout is not None,
    )


def nearest(handle: OwnModel, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words whose embeddings come nearest to vectors (row, d_model), by cosine."""
    return logit_lens.nearest(handle.model.embedding.token.weight, vectors, top)


def generate(handle: OwnModel, text: str, prefix: tuple[int, ...] = ()) -> generation.Generation:
    """A text in the making, as `Model.generate`."""
    if handle.card.kind == "encoder":
        raise ValueError(f"{handle.card.name} fills masked words and does not write")
    tokens, dropped = own_model.frame(handle, own_model.clean(text))
    if handle.card.kind == "encoder-decoder":
        return generation.Generation(
            handle.model, [handle.tokenizer.ends[0], *prefix], own_model.memory_of(handle, tokens)
        )
    generation.expect_room(handle.card, len(tokens.ids) + len(prefix), dropped)
    return generation.Generation(handle.model, [*tokens.ids, *prefix])


def beams(
    handle: OwnModel, text: str, strategy: int | SeededSampling
) -> Iterator[tuple[Beam, ...]]:
    """Beam search for the translation of a text, as `Model.beams`."""
    if handle.card.kind != "encoder-decoder":
        raise ValueError(f"{handle.card.name} writes no translation")
    tokens, _ = own_model.frame(handle, own_model.clean(text))
    bos, _ = handle.tokenizer.ends
    eos_ids = handle.tokenizer.eos_ids
    max_length = generation.max_answer_length(len(tokens.ids), handle.card.n_positions)
    memory = own_model.memory_of(handle, tokens)
    copier = own_model.copier_of(handle, own_model.clean(text), tokens)
    return generation.beams(handle.model, [bos], eos_ids, strategy, max_length, memory, copier)
