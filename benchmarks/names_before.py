"""The names that version 0.3 gave to heads, kept to say which of them the rule of today loses."""

from __future__ import annotations

import numpy as np

from models import token_relations
from models.recording import Attention, Recording

NAMED, BROAD, FEWEST_TOKENS = 0.4, 0.85, 5
NAMES = ("previous", "next", "self", "first", "separator", "special", "same word", "induction")
REPEATED = ("same word", "induction")
# What says nothing of its own where it is the very same cells as one of these.
SAID_BY = {"special": ("first",), "separator": ("special",)}


def names(recording: Recording, attention: Attention) -> list[str]:
    """What each head of an attention within one text was called, layer by layer."""
    stream, allowed = recording.stream(attention.key), attention.allowed
    if min(allowed.shape) < FEWEST_TOKENS:
        return ["text too short"] * int(np.prod(attention.pattern.shape[:2]))
    masks = {}
    for name, mask in token_relations.text_relations(stream.tokens, stream.special).items():
        mask = mask & allowed
        mask = mask & (mask.sum(axis=1) < allowed.sum(axis=1))[:, None]
        if name in NAMES and mask.any():
            masks[name] = mask
    masks = {
        name: mask
        for name, mask in masks.items()
        if not any(np.array_equal(mask, masks.get(other)) for other in SAID_BY.get(name, ()))
    }
    lifts = {name: _lift(attention, mask, name) for name, mask in masks.items()}
    even = token_relations.entropy(attention.pattern, allowed)
    return [
        _name({name: lift[at] for name, lift in lifts.items()}, even[at])
        for at in np.ndindex(even.shape)
    ]


def _lift(attention: Attention, mask: np.ndarray, name: str) -> np.ndarray:
    """The lift of a relation, (layer, head); NaN where too few rows show it."""
    rows = mask.any(axis=1)
    chance = mask[rows].sum(axis=1) / attention.allowed[rows].sum(axis=1)
    mass = token_relations.mass(attention.pattern, mask)
    shown = (mass - chance >= NAMED * (1 - chance)).sum(axis=-1)
    enough = (shown >= (2 if name in REPEATED else 4)) & (2 * shown > len(chance))
    lift = (mass.mean(axis=-1) - chance.mean()) / (1 - chance.mean())
    return np.where(enough & (lift >= NAMED), lift, np.nan)


def _name(lifts: dict[str, float], even: float) -> str:
    fit = {name: lift for name, lift in lifts.items() if not np.isnan(lift)}
    if fit:
        return max(fit, key=lambda name: (name != "special", fit[name]))
    return "diffuse" if even >= BROAD else "no clear pattern"
