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


def adding_nothing(e: MeasureContext) -> MeasureContext:
    """The same with positions that are 0 where the model adds none."""
    streams = tuple(
        replace(
            s,
            sites=("embed", "pos.wrote", "embed+pos", *s.sites[1:]),
            resid=np.concatenate([s.resid[:1], 0 * s.resid[:1], s.resid]),
        )
        for s in e.recording.streams
    )
    return replace(e, recording=replace(e.recording, streams=streams))


def hearing(e: MeasureContext, change: Callable[[Recording], Recording]) -> MeasureContext:
    """The same with every further recording sent through `change`."""
    return replace(e, again=lambda *asked: change(e.again(*asked)))


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


def deeply(e: MeasureContext, on: float, off: float) -> MeasureContext:
    """The same with a deep stack of our own: what is left of the gradient at the input with
    residuals and without."""
    ways = (
        "residual on",
        "residual off",
        "residual on, no LayerNorm",
        "residual off, no LayerNorm",
    )
    norm = np.array([[kept, 1.0, 1.0, 1.0, 1.0] for kept in (on, off, on, off)])
    return replace(
        e, depth=lambda _: SimpleNamespace(ways=ways, norm=norm, layers=4, tokens=9, width=32)
    )


def same_heads(a: Attention) -> dict:
    return {"pattern": np.repeat(a.pattern[:, :1], a.pattern.shape[1], axis=1)}


def even(a: Attention) -> dict:
    return {
        "pattern": np.full_like(a.pattern, 1 / a.pattern.shape[-1]),
        "allowed": np.ones_like(a.allowed),
    }


def overdrawn(a: Attention) -> dict:
    pattern = np.zeros_like(a.pattern)
    pattern[..., 0], pattern[..., 1] = 2, -1
    return {"pattern": pattern}


def mirrored(a: Attention) -> dict:
    return {"k": a.q.copy(), "scores": a.q @ a.q.swapaxes(-1, -2) / np.sqrt(a.q.shape[-1])}


def independent(a: Attention) -> dict:
    rng = np.random.default_rng(0)
    q, k = (
        rng.standard_normal((*a.q.shape[:2], 200, a.q.shape[-1])).astype(np.float32)
        for _ in range(2)
    )
    return {
        "scores": (q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))[
            :, :, : a.q.shape[2], : a.k.shape[2]
        ],
        "q": q[:, :, : a.q.shape[2]],
        "k": k[:, :, : a.k.shape[2]],
    }


def aligned(a: Attention) -> dict:
    """Queries and keys that all lie along one direction."""
    return {
        name: np.repeat(getattr(a, name)[..., :1], a.q.shape[-1], axis=-1) for name in ("q", "k")
    }


def one_direction(_: Stream, site: str, x: np.ndarray) -> np.ndarray:
    return np.outer(1 + np.arange(len(x)), x[0]) if site == "embed+pos" else x


def standing_still(stream: Stream, site: str, x: np.ndarray) -> np.ndarray:
    return stream.at("embed+pos") * (0 if site.endswith(".wrote") else 1)


def tossed(_: Stream, site: str, x: np.ndarray) -> np.ndarray:
    return np.random.default_rng(len(site) + sum(map(ord, site))).standard_normal(x.shape)


def to_normed(how: Callable[[np.ndarray], np.ndarray]) -> Callable:
    return lambda _, site, x: how(x) if site.endswith(".normed") else x


def unit_states(e: MeasureContext) -> MeasureContext:
    return flowing(e, to_normed(lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)))


def unit_words(e: MeasureContext) -> MeasureContext:
    words = e.embeddings()
    return words_of(e, words / np.linalg.norm(words, axis=-1, keepdims=True))


def words_of(e: MeasureContext, words: np.ndarray) -> MeasureContext:
    """The same with a readout that is these words, as they stand."""
    stream = e.recording.streams[-1]
    return replace(
        e, embeddings=lambda: words, logits=lambda _, token: words @ stream.resid[-1, token]
    )


def stretched_words(e: MeasureContext) -> np.ndarray:
    return e.embeddings() * np.linspace(0.5, 20, e.recording.model.n_vocab)[:, None]


def ranked(e: MeasureContext, rank: int) -> MeasureContext:
    stream = e.recording.streams[-1]
    sites, n = ("embed+pos", "0.ffn.normed", "1.ffn.normed"), len(stream.tokens)
    return replace(
        e,
        lens=lambda *_: SimpleNamespace(
            sites=sites, rank=np.full((3, n), rank), kl=np.zeros((3, n))
        ),
    )


def saying(e: MeasureContext, ahead: int) -> MeasureContext:
    """The same with scores that are high for the token `ahead` of the one read."""
    stream = e.recording.streams[-1]
    n = e.recording.model.n_vocab

    def logits(_: str, token: int) -> np.ndarray:
        return 10.0 * np.eye(1, n, int(stream.ids[min(token + ahead, len(stream.ids) - 1)]))[0]

    return replace(e, logits=logits)


def other_keys(recording: Recording) -> Recording:
    return replace(recording, attention=tuple(replace(a, k=a.k + 1) for a in recording.attention))


def drawing(how: Callable[[int, int], np.ndarray]) -> MeasureContext:
    return replace(real("encoder"), draw=how)


E, D, T = (lambda name=name: real(name) for name in ("encoder", "decoder", "translator"))


# ---- the numbers are what they say -------------------------------------------


def value(id: str, e: MeasureContext) -> float:
    return claims.BY_ID[id].measure(e).value
