"""Any Hugging Face model of text, in its own code, as a source of Recordings.

`handle.load` fetches a model by its name on the hub or from a folder, and tries it on a short text
to find its capabilities (`probing.py`). `record` runs it and makes the same Recording as for our
own models: streams, attentions, and q, k, v and scores wherever the model lets its attention be
computed by a function from outside (`hooks.py`), which most families do.

Edits that change attention alone, or the text, work here; those that change the architecture need
Headlight's own classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from models.capabilities import Capabilities
from models.edit_ops import mask_tokens, shuffle_tokens
from models.edit_validation import check_places
from models.edits import Edit, HideToken, ShuffleTokens, WithoutScale
from models.generation import expect_room
from models.own_model import clean
from models.pretrained import hf_attribution, hf_model
from models.pretrained.hf_attribution import attribute, centres, gradients
from models.pretrained.hf_model import (
    HFGeneration,
    HFModel,
    attentions_of,
    expect_finite,
    expect_readout,
    stream_of,
    target_of,
)
from models.pretrained.hf_model import beams as search_of
from models.pretrained.hooks import SUPPORTED_EDITS, ForwardPass, active_pass
from models.pretrained.hub import first_line
from models.pretrained.probing import embedding_matrix
from models.readouts import logit_lens
from models.readouts.logit_lens import lens_of, states
from models.recording import Recording
from models.results import Beam, Lens, SeededSampling

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


@torch.inference_mode()
def record(
    handle: HFModel,
    text: str,
    edits: tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """One forward pass over the text, recorded, as `models.own_model.record` does it.

    For a model that reads one text and writes another, `target` is what its decoder reads, as a
    text or as bare token ids; None stands for the model's own answer, the likeliest token each
    time. Raises ValueError for an edit that cannot be honoured on a model in its own code, and
    NotFinite where an edit makes numbers overflow.
    """
    edits = tuple(edits)
    _check(handle, edits)
    text = clean(text)
    has_decoder = handle.start is not None
    if target is not None and not has_decoder:
        raise ValueError(
            f"{handle.card.name} reads one text alone, so there is no target to give it"
        )
    masks = handle.card.kind == "encoder"
    tokens, dropped = handle.tokenizer.tokens(text, handle.card.n_positions, masks)
    tokens = shuffle_tokens(tokens, edits)
    if handle.tokenizer.mask is not None:
        tokens = mask_tokens(
            tokens, edits, handle.tokenizer.mask, handle.tokenizer.label(handle.tokenizer.mask)
        )
    inputs = {"input_ids": torch.tensor([tokens.ids])}
    stream_tokens, target_text, target_dropped = [tokens], "", 0
    if has_decoder:
        decoded, target_text, target_dropped = target_of(handle, tokens, edits, target)
        inputs["decoder_input_ids"] = torch.tensor([decoded.ids])
        stream_tokens.append(decoded)
    trace = ForwardPass(handle.plan.attentions, handle.plan.n_layer, edits)
    try:
        with handle.lock, active_pass(trace):
            output = handle.model(
                **inputs,
                use_cache=False,
                **({} if handle.plan.opens else {"output_attentions": True}),
            )
    except (RuntimeError, IndexError) as error:  # a limit that its configuration does not name
        raise ValueError(
            f"{handle.card.name} does not run on {len(tokens.ids)} tokens "
            f"({first_line(error)}); shorten the text"
        ) from error
    streams = tuple(
        stream_of(plan, trace, each) for plan, each in zip(handle.plan.streams, stream_tokens)
    )
    expect_finite(trace, streams)
    return Recording(
        handle.card,
        text,
        edits,
        streams,
        attentions_of(handle.plan, trace, output, streams),
        dropped,
        target_text,
        target_dropped,
    )


@torch.inference_mode()
def logits(handle: HFModel, recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores (id) over the vocabulary at one token of a stream, by its own readout.
    Raises ValueError where it has none there."""
    expect_readout(handle, stream)
    last = torch.tensor(recording.stream(stream).resid[-1, token])
    return hf_model.readout(handle, last[None].to(embedding_matrix(handle.model).dtype))[0].numpy()


@torch.inference_mode()
def lens(handle: HFModel, recording: Recording, stream: str, top: int = 10) -> Lens:
    """The logit lens on every state of a stream: the model's last LayerNorm, where it has one, and
    its own readout, as if the state were the last.

    Raises ValueError for a stream that the readout does not read.
    """
    expect_readout(handle, stream)
    target_stream, norm = recording.stream(stream), handle.plan.streams[-1].final_norm
    sites = states(target_stream)

    def logits_at(site: str) -> Tensor:
        vectors = torch.tensor(target_stream.at(site)).to(embedding_matrix(handle.model).dtype)
        return hf_model.readout(
            handle, vectors if norm is None or site == "final.normed" else norm(vectors)
        )

    return lens_of(stream, sites, logits_at, top)


def capabilities(handle: HFModel) -> Capabilities:
    """The capabilities of a loaded model, as the survey found them."""
    plan = handle.plan
    hides = handle.tokenizer.mask is not None and not plan.causal
    always = (ShuffleTokens, HideToken) if hides else (ShuffleTokens,)
    return Capabilities(
        kind=handle.card.kind,
        attention=tuple(plan.n_layer),
        opens=plan.opens,
        scale=plan.scale,
        biased=plan.biased,
        sites={each.name: tuple(site for site, _ in each.sites) for each in plan.streams},
        law=all(stream.law for stream in plan.streams),
        norm=plan.streams[0].norm,
        positions=plan.positions,
        logits=plan.streams[-1].name if plan.lm_head_input is not None else "",
        edits=(*always, *(SUPPORTED_EDITS if plan.opens else ())),
        weights=False,
        no_parts=hf_attribution.missing(handle),
        no_readout=hf_model.no_readout(handle),
        mask=handle.tokenizer.mask_name if handle.card.kind == "encoder" else "",
        writes=plan.lm_head_input is not None and handle.card.kind != "encoder",
        rms=not centres(plan.streams[-1].final_norm),
    )


def nearest(handle: HFModel, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words whose embeddings come nearest to vectors (row, d_model), by cosine."""
    return logit_lens.nearest(embedding_matrix(handle.model), vectors, top)


def generate(handle: HFModel, text: str, then: tuple[int, ...] = ()) -> HFGeneration:
    """A text in the making, as `Model.generate`, by the model's own code."""
    card = handle.card
    if card.kind == "encoder":
        raise ValueError(f"{card.name} fills masked words and does not write")
    expect_readout(handle, handle.plan.streams[-1].name)
    tokens, dropped = handle.tokenizer.tokens(clean(text), card.n_positions)
    if handle.start is not None:
        return HFGeneration(handle, [handle.start, *then], list(tokens.ids))
    expect_room(card, len(tokens.ids) + len(then), dropped)
    return HFGeneration(handle, [*tokens.ids, *then])


def beams(handle: HFModel, text: str, how: int | SeededSampling) -> Iterator[tuple[Beam, ...]]:
    """Beam search for the translation of a text, as `Model.beams`, by the model's own code."""
    if handle.start is None:
        raise ValueError(f"{handle.card.name} writes no translation")
    expect_readout(handle, handle.plan.streams[-1].name)
    tokens, _ = handle.tokenizer.tokens(clean(text), handle.card.n_positions)
    return search_of(handle, list(tokens.ids), how)


def _check(handle: HFModel, edits: tuple[Edit, ...]) -> None:
    card, supported = handle.card, capabilities(handle).edits
    check_places(edits, card, handle.plan.n_layer)
    for edit in edits:
        if isinstance(edit, HideToken) and HideToken not in supported:
            raise ValueError(
                f"{card.name} fills no masked words, so no token can be hidden from it"
            )
        if not isinstance(edit, supported):
            raise ValueError(
                f"“{edit}”: this edit needs the model to run in Headlight's own classes"
            )
        if isinstance(edit, WithoutScale) and handle.plan.scale == 1.0:
            raise ValueError(
                f"{card.name} multiplies q · k by nothing, so there is no scale to take away"
            )
