"""Any Hugging Face model of text, in its own code, as a source of Recordings.

`handle.load` fetches a model by its name on the hub or from a folder, and tries it on a short text:
what it shows of itself is what it offers (`survey.py`). `record` runs it and takes down the same
Recording as our own models give: streams, attentions, and q, k, v and scores wherever the model
lets its attention be computed by a function from outside (`hooks.py`), which most families do.

Edits that change attention alone, or the text, work here; those that change the architecture need
Headlight's own classes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from models.checks import check_places
from models.edits import Edit, HideToken, ShuffleTokens, WithoutScale
from models.generation import expect_room
from models.offers import Offers
from models.own import clean
from models.prediction import Beam, Drawn, Lens
from models.pretrained import own_readout, parts
from models.pretrained.from_files import first_line
from models.pretrained.gradients import highway
from models.pretrained.handle import Handle
from models.pretrained.heard import attentions_of, expect_finite, stream_of
from models.pretrained.held import centres
from models.pretrained.hooks import HONOURED, Pass, listening
from models.pretrained.own_readout import expect_readout
from models.pretrained.parts import attribute
from models.pretrained.survey import words_of
from models.pretrained.target import target_of
from models.pretrained.writing import Writing
from models.pretrained.writing import beams as search_of
from models.readouts import readout
from models.readouts.readout import lens_of, states
from models.recording import Recording
from models.token_edits import hidden, shuffled

__all__ = [
    "attribute",
    "beams",
    "highway",
    "lens",
    "logits",
    "nearest",
    "offers",
    "record",
    "writing",
]


@torch.inference_mode()
def record(
    handle: Handle,
    text: str,
    edits: tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """One forward pass over the text, recorded, as `models.own.record` does it.

    For a model that reads one text and writes another, `target` is what its decoder reads, as a
    text or as bare token ids; None stands for the model's own answer, the likeliest token each
    time. Raises ValueError for an edit that cannot be honoured on a model in its own code, and
    NotFinite where an edit makes numbers overflow.
    """
    edits = tuple(edits)
    _check(handle, edits)
    text = clean(text)
    two = handle.start is not None
    if target is not None and not two:
        raise ValueError(
            f"{handle.card.name} reads one text alone, so there is no target to give it"
        )
    masks = handle.card.kind == "encoder"
    tokens, dropped = handle.tokenizer.tokens(text, handle.card.n_positions, masks)
    tokens = shuffled(tokens, edits)
    if handle.tokenizer.mask is not None:
        tokens = hidden(
            tokens, edits, handle.tokenizer.mask, handle.tokenizer.label(handle.tokenizer.mask)
        )
    inputs = {"input_ids": torch.tensor([tokens.ids])}
    read, spelled, target_dropped = [tokens], "", 0
    if two:
        decoded, spelled, target_dropped = target_of(handle, tokens, edits, target)
        inputs["decoder_input_ids"] = torch.tensor([decoded.ids])
        read.append(decoded)
    heard = Pass(handle.plan.attentions, handle.plan.n_layer, edits)
    try:
        with handle.lock, listening(heard):
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
    streams = tuple(stream_of(plan, heard, each) for plan, each in zip(handle.plan.streams, read))
    expect_finite(heard, streams)
    return Recording(
        handle.card,
        text,
        edits,
        streams,
        attentions_of(handle.plan, heard, output, streams),
        dropped,
        spelled,
        target_dropped,
    )


@torch.inference_mode()
def logits(handle: Handle, recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores (id) over the vocabulary at one token of a stream, by its own readout.
    Raises ValueError where it has none there."""
    expect_readout(handle, stream)
    last = torch.tensor(recording.stream(stream).resid[-1, token])
    return own_readout.readout(handle, last[None].to(words_of(handle.model).dtype))[0].numpy()


@torch.inference_mode()
def lens(handle: Handle, recording: Recording, stream: str, top: int = 10) -> Lens:
    """The logit lens on every state of a stream: the model's last LayerNorm, where it has one, and
    its own readout, as if the state were the last.

    Raises ValueError for a stream that the readout does not read.
    """
    expect_readout(handle, stream)
    of, norm = recording.stream(stream), handle.plan.streams[-1].final_norm
    sites = states(of)

    def said(site: str) -> Tensor:
        vectors = torch.tensor(of.at(site)).to(words_of(handle.model).dtype)
        return own_readout.readout(
            handle, vectors if norm is None or site == "final.normed" else norm(vectors)
        )

    return lens_of(stream, sites, said, top)


def offers(handle: Handle) -> Offers:
    """What a loaded model shows, as the survey found it."""
    plan = handle.plan
    hides = handle.tokenizer.mask is not None and not plan.causal
    always = (ShuffleTokens, HideToken) if hides else (ShuffleTokens,)
    return Offers(
        kind=handle.card.kind,
        attention=tuple(plan.n_layer),
        opens=plan.opens,
        scale=plan.scale,
        biased=plan.biased,
        sites={each.name: tuple(site for site, _ in each.sites) for each in plan.streams},
        law=all(stream.law for stream in plan.streams),
        norm=plan.streams[0].norm,
        positions=plan.positions,
        logits=plan.streams[-1].name if plan.door is not None else "",
        edits=(*always, *(HONOURED if plan.opens else ())),
        weights=False,
        no_parts=parts.missing(handle),
        no_readout=own_readout.no_readout(handle),
        mask=handle.tokenizer.mask_name if handle.card.kind == "encoder" else "",
        writes=plan.door is not None and handle.card.kind != "encoder",
        rms=not centres(plan.streams[-1].final_norm),
    )


def nearest(handle: Handle, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words whose embeddings come nearest to vectors (row, d_model), by cosine."""
    return readout.nearest(words_of(handle.model), vectors, top)


def writing(handle: Handle, text: str, then: tuple[int, ...] = ()) -> Writing:
    """A text in the making, as `library.writing`, by the model's own code."""
    card = handle.card
    if card.kind == "encoder":
        raise ValueError(f"{card.name} fills masked words and does not write")
    expect_readout(handle, handle.plan.streams[-1].name)
    tokens, dropped = handle.tokenizer.tokens(clean(text), card.n_positions)
    if handle.start is not None:
        return Writing(handle, [handle.start, *then], list(tokens.ids))
    expect_room(card, len(tokens.ids) + len(then), dropped)
    return Writing(handle, [*tokens.ids, *then])


def beams(handle: Handle, text: str, how: int | Drawn) -> Iterator[tuple[Beam, ...]]:
    """Beam search for the translation of a text, as `library.beams`, by the model's own code."""
    if handle.start is None:
        raise ValueError(f"{handle.card.name} writes no translation")
    expect_readout(handle, handle.plan.streams[-1].name)
    tokens, _ = handle.tokenizer.tokens(clean(text), handle.card.n_positions)
    return search_of(handle, list(tokens.ids), how)


def _check(handle: Handle, edits: tuple[Edit, ...]) -> None:
    card, honoured = handle.card, offers(handle).edits
    check_places(edits, card, handle.plan.n_layer)
    for edit in edits:
        if isinstance(edit, HideToken) and HideToken not in honoured:
            raise ValueError(
                f"{card.name} fills no masked words, so no token can be hidden from it"
            )
        if not isinstance(edit, honoured):
            raise ValueError(
                f"“{edit}”: this edit needs the model to run in Headlight's own classes"
            )
        if isinstance(edit, WithoutScale) and handle.plan.scale == 1.0:
            raise ValueError(
                f"{card.name} multiplies q · k by nothing, so there is no scale to take away"
            )
