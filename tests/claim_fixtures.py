"""Evidence for claims: of real texts, and made so that a claim must hold or must fail."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import count
from types import SimpleNamespace

import numpy as np
from conftest import read_once

from explorer.analysis.measure import MeasureContext
from explorer.text import claims
from models.contract.edits import from_line
from models.contract.recording import Attention, Stream
from models.network.own_model import OwnModel
from models.own.weight_shuffle import permuted
from models.runtime import registry
from models.runtime.caching import CachedModel
from models.runtime.run import Run

SERIAL = count()
TEXT = "The animal didn't cross the street because it was too tired."


def material(
    model: OwnModel,
    text: str,
    base: str = "",
    permuted: Callable[[tuple[int, ...] | None], MeasureContext] | None = None,
    target: tuple[int, ...] | None = None,
) -> MeasureContext:
    """Evidence of a loaded model; `base`: edits that every pass runs under; `permuted`: of the
    permuted model, on the same target."""
    if model.card.name not in registry.names():  # others of the tests have this name too
        model = replace(model, card=replace(model.card, fingerprint=f"{next(SERIAL)}"))
    edits = from_line(base)
    recording = model.record(text, edits, target)
    run = Run(model.card.name, text, edits, target)
    e = MeasureContext(recording, run, CachedModel(model))
    return e.replaced(
        strongest_finding=lambda: None,
        permuted=permuted and (lambda: permuted(e.own_target)),
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


def shuffled(model: OwnModel, text: str, seed: int = 0) -> MeasureContext:
    """The evidence of a model of the tests, with that of its own weights permuted beside it."""
    other = permuted(replace(model, network=deepcopy(model.network)), "permuted", seed)
    return material(model, text, permuted=lambda ids: material(other, text, target=ids))


# ---- doctored evidence -------------------------------------------------------


def attending(e: MeasureContext, change: Callable[[Attention], dict]) -> MeasureContext:
    """The same with some arrays of every attention replaced."""
    attention = tuple(replace(each, **change(each)) for each in e.recording.attention)
    return e.replaced(recording=replace(e.recording, attention=attention))


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
    return e.replaced(recording=replace(e.recording, streams=streams))


def adding(e: MeasureContext, how: Callable[[np.ndarray], np.ndarray]) -> MeasureContext:
    """The same with another encoding of the positions."""
    return flowing(e, lambda _, site, x: how(x) if site == "pos.wrote" else x)


def feeling(e: MeasureContext, norm: Callable[[int, int], float]) -> MeasureContext:
    """The same with gradients of our own: norm(place of the site, distance from the token
    asked)."""
    n = len(e.recording.streams[-1].tokens)

    def gradients(stream: str, token: int) -> SimpleNamespace:
        sites = ("embed+pos", "0.attn", "0.ffn")
        one = [[norm(site, abs(at - token)) for at in range(n)] for site in range(len(sites))]
        return SimpleNamespace(
            sites=sites,
            norm=np.array(one, dtype=float),
        )

    return e.replaced(gradients=gradients)


E, D, T = (lambda name=name: real(name) for name in ("encoder", "decoder", "translator"))


# ---- the numbers are what they say -------------------------------------------


def value(id: str, e: MeasureContext) -> float:
    return claims.BY_ID[id].measure(e).value
