"""A Recording's streams and attentions from what was heard on a pass of a Hugging Face model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from models.pretrained.hooks import Pass, Place
from models.pretrained.stream import StreamPlan
from models.pretrained.survey import Plan, patterns_of
from models.recording import Attention, NotFinite, Stream
from models.tokenizer import Tokens

if TYPE_CHECKING:
    from transformers.utils import ModelOutput


def stream_of(plan: StreamPlan, heard: Pass, tokens: Tokens) -> Stream:
    """One stream, each site the sum of what was heard at its places."""
    n = len(tokens.ids)
    resid = np.empty((len(plan.sites), n, plan.d_model), dtype=np.float32)
    for at, (_, source) in enumerate(plan.sites):
        first, *more = (_rows(heard, place) * factor for place, factor in source)
        torch.from_numpy(resid[at]).copy_(sum(more, first))
    return Stream(
        name=plan.name,
        tokens=tokens.labels,
        ids=np.array(tokens.ids),
        special=np.array(tokens.special),
        spans=np.array(tokens.spans).reshape(-1, 2),
        sites=tuple(site for site, _ in plan.sites),
        resid=resid,
    )


def expect_finite(heard: Pass, streams: tuple[Stream, ...]) -> None:
    """Raises NotFinite where a stream ends in numbers that are none; scores come first, since edits
    here change attention alone."""
    if all(np.isfinite(stream.resid[-1]).all() for stream in streams):
        return
    for name, heads in heard.heads.items():
        for layer, scores in enumerate(heads.arrays["scores"]):
            if not np.isfinite(scores).all():
                raise NotFinite(f"{layer}.{'cross' if name == 'cross' else 'attn'}.scores")
    raise NotFinite(
        next(
            site
            for stream in streams
            for site, vectors in zip(stream.sites, stream.resid)
            if not np.isfinite(vectors).all()
        )
    )


def _rows(heard: Pass, place: Place) -> Tensor:
    x = heard.places[place.key]
    return x[0] if x.dim() == 3 else x


def attentions_of(
    plan: Plan, heard: Pass, output: ModelOutput, streams: tuple[Stream, ...]
) -> tuple[Attention, ...]:
    """The attentions in the plan's order. output: what the model gave, for one that lets nobody
    compute its attention."""
    one = streams[0].name
    ends = {
        "self": (one, one),
        "encoder self": ("encoder", "encoder"),
        "decoder self": ("decoder", "decoder"),
        "cross": ("decoder", "encoder"),
    }
    found = []
    for name in plan.n_layer:
        query, key = ends[name]
        if plan.opens:
            heads = heard.heads[name]
            found.append(Attention(name, query, key, allowed=heads.allowed, **heads.arrays))
        else:
            pattern = torch.cat(list(patterns_of(output)[name])).numpy()
            allowed = np.ones(pattern.shape[2:], dtype=bool)
            found.append(
                Attention.closed(
                    name,
                    query,
                    key,
                    pattern,
                    np.tril(allowed) if query == key == "decoder" else allowed,
                )
            )
    return tuple(found)
