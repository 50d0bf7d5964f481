"""Models in our own classes as a source: the functions of models/contract/capabilities.py's
Source."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from models.contract.capabilities import Capabilities, without_readout
from models.contract.edits import KINDS, Edit
from models.contract.results import Beam, SeededSampling
from models.network import generation, own_model
from models.network.own_model import OwnModel, record
from models.readouts import logit_lens
from models.readouts.gradients import gradients, integrated, slopes
from models.readouts.logit_lens import attribute, lens
from models.readouts.logit_lens import logits_at as logits

__all__ = [
    "attribute",
    "beams",
    "gradients",
    "integrated",
    "lens",
    "logits",
    "nearest",
    "capabilities",
    "record",
    "slopes",
    "generate",
]

# A gated FFN by its activation (Shazeer 2020).
GATES = {"silu": "SwiGLU", "gelu": "GeGLU", "gelu_tanh": "GeGLU", "relu": "ReGLU"}


def capabilities(model: OwnModel) -> Capabilities:
    """Everything, as far as the model was built with it."""
    config, kind = model.network.config, model.card.kind
    no_readout = "" if config.readout else without_readout(config.head)
    return Capabilities(
        kind=kind,
        attention=tuple(model.attentions),
        scale=model.card.d_head**-0.5 if config.scaled_scores else 1.0,
        norm=config.norm,
        positions=config.positions,
        logits=("encoder" if kind == "encoder" else "decoder") if config.readout else "",
        edits=tuple(KINDS.values()),
        scaled_embedding=config.scaled_embedding,
        embedding_width=config.embedding_width,
        widened_normed=config.embedding_width is not None and config.embedding_norm,
        linear_readout=config.readout in ("tied", "untied"),
        rms=config.rms,
        parallel=config.parallel,
        gate=GATES.get(config.activation, "gated") if config.gated else "",
        ffn_biases=config.bias_ffn,
        key_heads=config.n_key_head,
        window=config.window,
        full_layers=config.full_layers,
        untied=config.readout == "untied",
        readout_bias=model.has_readout_bias,
        no_parts=f"it {no_readout}" if no_readout else "",
        no_readout=no_readout,
        mask=model.tokenizer.mask_name if kind == "encoder" else "",
        writes=kind != "encoder" and config.readout is not None,
    )


def nearest(model: OwnModel, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words whose embeddings come nearest to vectors (row, d_model), by cosine; narrow ones
    through the matrix that widens them."""
    return logit_lens.nearest(model.word_vectors, model.word_lengths, vectors, top)


def generate(
    model: OwnModel, text: str, prefix: tuple[int, ...] = (), edits: tuple[Edit, ...] = ()
) -> generation.Generation:
    """A text in the making, as `Model.generate`."""
    if model.card.kind == "encoder":
        raise ValueError(f"{model.card.name} fills masked words and does not write")
    if model.card.kind == "encoder-decoder":
        generation.expect_room(model.card, len(prefix), 0)
        source = own_model.read_whole(model, text)
        source, of_stream = own_model.writing_under(model, text, source, edits)
        memory = own_model.memory_of(model, source, of_stream["encoder"])
        ids = [model.tokenizer.ends[0], *prefix]
        return generation.Generation(model.network, ids, memory, edits=of_stream["decoder"])
    tokens, dropped = own_model.frame(model, own_model.clean(text))
    generation.expect_room(model.card, len(tokens.ids) + len(prefix), dropped)
    tokens, of_stream = own_model.writing_under(model, text, tokens, edits)
    ids = [*tokens.ids, *prefix]
    return generation.Generation(model.network, ids, edits=of_stream["decoder"])


def beams(
    model: OwnModel, text: str, strategy: int | SeededSampling, edits: tuple[Edit, ...] = ()
) -> Iterator[tuple[Beam, ...]]:
    """Beam search for the translation of a text, as `Model.beams`."""
    if model.card.kind != "encoder-decoder":
        raise ValueError(f"{model.card.name} writes no translation")
    tokens = own_model.read_whole(model, text)
    bos, _ = model.tokenizer.ends
    eos_ids = model.tokenizer.eos_ids
    max_length = generation.max_answer_length(len(tokens.ids), model.card.n_positions)
    tokens, of_stream = own_model.writing_under(model, text, tokens, edits)
    memory = own_model.memory_of(model, tokens, of_stream["encoder"])
    copier = own_model.copier_of(model, own_model.clean(text), tokens)
    return generation.beams(
        model.network,
        [bos],
        eos_ids,
        strategy,
        max_length,
        memory,
        copier,
        of_stream["decoder"],
    )
