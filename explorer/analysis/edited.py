"""What edits change of an attention's laws: what scores are divided by, what is taken from them,
and what heads hand on."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from models.edits import (
    Edit,
    MeanHead,
    OfHead,
    OtherPositions,
    PatchHead,
    PatchSite,
    ScaledBy,
    WithoutScale,
    ZeroHead,
)
from models.recording import Attention, Recording, Stream

E = TypeVar("E", bound=Edit)
H = TypeVar("H", OfHead, PatchHead)
L = TypeVar("L", ScaledBy, WithoutScale)


def of_kind(recording: Recording, kind: type[E]) -> list[E]:
    """The edits of a kind, in order."""
    return [edit for edit in recording.edits if isinstance(edit, kind)]


def of_layer(recording: Recording, kind: type[L], layer: int) -> L | None:
    """The last edit of a kind for a layer, or for all of them."""
    found = [each for each in of_kind(recording, kind) if each.layer in (None, layer)]
    return found[-1] if found else None


def of_head(recording: Recording, kind: type[H], attention: str, at: tuple[int, int]) -> H | None:
    """The last edit of a kind for a head, at (layer, head)."""
    found = [
        each
        for each in of_kind(recording, kind)
        if (each.attention, each.layer, each.head) == (attention, *at)
    ]
    return found[-1] if found else None


def silent(recording: Recording, attention: str) -> list[tuple[int, int]]:
    """The (layer, head) that were kept from writing."""
    return [
        (each.layer, each.head)
        for each in of_kind(recording, ZeroHead)
        if each.attention == attention
    ]


def divisor(recording: Recording, attention: Attention, layer: int) -> tuple[float, Edit | None]:
    """What scores are divided by, and the edit that says so, if any."""
    if (edit := of_layer(recording, ScaledBy, layer)) is not None:
        return float(edit.divisor), edit
    if (plain := of_layer(recording, WithoutScale, layer)) is not None:
        return 1.0, plain
    return 1 / float(attention.scale[layer]), None


def penalty(recording: Recording, attention: Attention, head: int) -> np.ndarray:
    """What scores lose by distance (ALiBi), (query, key): 0 but where an edit puts that in the
    place of positions."""
    rows, keys = attention.allowed.shape
    other = of_kind(recording, OtherPositions)
    if attention.query != attention.key or not other or other[-1].to != "distance":
        return np.zeros((rows, keys))
    apart = np.abs(np.arange(rows)[:, None] - np.arange(keys))
    return 2.0 ** (-8.0 * (head + 1) / attention.pattern.shape[1]) * apart


def z(recording: Recording, attention: Attention, layer: int, head: int) -> np.ndarray:
    """What a head takes of the values, (query, d_head), as it goes into W_O."""
    at = layer, head
    made = attention.pattern[at].astype(np.float64) @ attention.v[at].astype(np.float64)
    if of_head(recording, ZeroHead, attention.name, at):
        return np.zeros_like(made)
    if of_head(recording, MeanHead, attention.name, at):
        return np.broadcast_to(made.mean(axis=0), made.shape)
    return made


def site_of(attention: Attention, layer: int) -> str:
    """The site of its stream at which an attention writes."""
    return f"{layer}.{'attn' if attention.query == attention.key else 'cross'}.wrote"


def wrote(recording: Recording, attention: Attention, layer: int) -> np.ndarray | None:
    """What an attention wrote into its stream, (query, d_model), as recorded; None where the model
    does not show it, and where an edit put something else there."""
    stream, site = recording.stream(attention.query), site_of(attention, layer)
    if site not in stream.sites or patched(recording, stream, site):
        return None
    return stream.at(site).astype(np.float64)


def patched(recording: Recording, stream: Stream, site: str) -> list[PatchSite]:
    """The edits that put other numbers at a site."""
    first = recording.streams[0].name
    return [
        each
        for each in of_kind(recording, PatchSite)
        if each.site == site and (each.stream or first) == stream.name
    ]
