"""Evidence for claims: of real texts, and made so that a claim must hold or must fail."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
from conftest import read_once

from explorer.analysis.measure import MeasureContext
from explorer.text import claims
from models import registry
from models.edits import from_line
from models.own_model import OwnModel
from models.recording import Attention, Recording, Stream
from models.weight_shuffle import permuted

TEXT = "The animal didn't cross the street because it was too tired."


def material(
    handle: OwnModel,
    text: str,
    base: str = "",
    chance: Callable[[tuple[int, ...] | None], MeasureContext] | None = None,
    target: tuple[int, ...] | None = None,
) -> MeasureContext:
    """Evidence straight from the library; `base`: edits that every pass runs under; `chance`: of
    the permuted model, on the same target."""
    two = handle.card.kind == "encoder-decoder"
    recording = handle.record(text, from_line(base), target)
    ids = tuple(map(int, recording.streams[-1].ids[1:])) if two else None

    @cache  # as the app's shelf keeps what is asked twice
    def again(edits: str, other: str, target: tuple[int, ...] | None) -> Recording:
        own = ids if target is None and not other else target
        return handle.record(
            other or text,
            from_line(",".join(filter(None, (base, edits)))),
            own if two else None,
        )

    def stepwise(rows: int) -> list[np.ndarray]:
        writing = handle.generate(text if two else "")
        scores = [writing.logits]
        for id in recording.streams[-1].ids[1:rows]:
            writing.add(int(id))
            scores.append(writing.logits)
        return scores

    return MeasureContext(
        recording,
        again,
        lambda stream: handle.norms(stream),
        lambda: handle.outputs(),
        lambda *where: handle.jacobian(recording, *where),
        lambda *where: handle.gradients(recording, *where),
        handle.lens,
        lambda *where: handle.logits(recording, *where),
        lambda: handle.embeddings(),
        stepwise,
        first=lambda: None,
        labels=handle.labels,
        ffn=lambda *where: handle.ffn_activations(recording, *where),
        nearest=lambda *_: (np.zeros(0, int), np.zeros(0)),
        predicted_words=lambda *_: {},
        offers=handle.capabilities,
        scale=None,
        norm="LayerNorm",
        depth=cache(lambda stream: registry.depth(recording.stream(stream).resid[0])),
        chance=chance and (lambda: chance(ids)),
    )


@cache
def on_text(model: str, text: str, base: str = "") -> MeasureContext:
    """A shipped model's evidence, with that of the same model permuted beside it."""
    return material(
        read_once(model),
        text,
        base,
        lambda ids: material(read_once(model + registry.PERMUTED_SUFFIX), text, base, target=ids),
    )


def real(model: str, base: str = "") -> MeasureContext:
    return on_text(model, TEXT, base)


def shuffled(handle: OwnModel, text: str, seed: int = 0) -> MeasureContext:
    """The evidence of a model of the tests, with that of its own weights permuted beside it."""
    other = permuted(replace(handle, model=deepcopy(handle.model)), "permuted", seed)
    return material(handle, text, chance=lambda ids: material(other, text, target=ids))


# ---- doctored evidence -------------------------------------------------------


def attending(e: MeasureContext, change: Callable[[Attention], dict]) -> MeasureContext:
    """The same with some arrays of every attention replaced."""
    attention = tuple(replace(each, **change(each)) for each in e.recording.attention)
    return replace(e, recording=replace(e.recording, attention=attention))


def flowing(
    e: MeasureContext, change: Callable[[Stream, str, np.ndarray], np.ndarray]
) -> MeasureContext:
    """The same with every site's vectors (token, d_model) sent through `change`."""
    streams = tuple(
        replace(
            s,
            resid=np.stack([change(s, site, s.at(site).copy()) for site in s.sites]).astype(
                np.float32
            ),
        )
        for s in e.recording.streams
    )
    return replace(e, recording=replace(e.recording, streams=streams))


def adding(e: MeasureContext, how: Callable[[np.ndarray], np.ndarray]) -> MeasureContext:
    """The same with another encoding of the positions."""
    return flowing(e, lambda _, site, x: how(x) if site == "pos.wrote" else x)


def feeling(e: MeasureContext, norm: Callable[[int, int], float]) -> MeasureContext:
    """The same with gradients of our own: norm(place of the site, distance from the token
    asked)."""
    n = len(e.recording.streams[-1].tokens)

    def highway(stream: str, token: int) -> SimpleNamespace:
        sites = ("embed+pos", "0.attn", "0.ffn")
        one = [[norm(site, abs(at - token)) for at in range(n)] for site in range(len(sites))]
        return SimpleNamespace(
            ways=("residual on", "residual off"),
            sites=sites,
            norm=np.array([one, one], dtype=float),
        )

    return replace(e, highway=highway)


E, D, T = (lambda name=name: real(name) for name in ("encoder", "decoder", "translator"))


# ---- the numbers are what they say -------------------------------------------


def value(id: str, e: MeasureContext) -> float:
    return claims.BY_ID[id].measure(e).value
