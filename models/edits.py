"""Edits: frozen descriptions of what a forward pass is asked to do differently.

An edit is data, never a hook. It travels with the call, `record(handle, text, edits)`, and comes back inside the Recording,
so a caption can always state it and a shared model is never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Edit:
    """What every edit is: plain numbers, comparable, and named by its class."""


@dataclass(frozen=True)
class ZeroHead(Edit):
    """The head's output z is 0 before W_O: the head writes nothing (W_O's bias stays). `attention` as the Recording names it."""

    layer: int
    head: int
    attention: str = "self"


@dataclass(frozen=True)
class WithoutScale(Edit):
    """Scores are q . k, not divided by sqrt(d_head). `layer` None: in every layer."""

    layer: int | None = None


@dataclass(frozen=True)
class WithoutPositions(Edit):
    """Nothing is added to the embeddings."""


@dataclass(frozen=True)
class WithoutResidual(Edit):
    """A sub-layer's output replaces the stream instead of being added to it. `layer` None: in every layer."""

    layer: int | None = None


@dataclass(frozen=True)
class WithoutNorm(Edit):
    """LayerNorm is left out. `layer` None: in every layer."""

    layer: int | None = None


@dataclass(frozen=True)
class HideToken(Edit):
    """The token at place `token` (special tokens counted in) is replaced by [MASK]. For models that fill masked words."""

    token: int


@dataclass(frozen=True)
class ShuffleTokens(Edit):
    """The text's tokens are read in another order, drawn by `seed` (0 or more); special tokens keep their places.

    Two tokens or more never stay as they were: where the draw would leave them so, all move on by one.
    It comes before every other edit: a HideToken names a place in the new order. A translator's source is shuffled, its target is not.
    """

    seed: int

    def order(self, special: Sequence[bool]) -> np.ndarray:
        """Which token (by its place in the text) is read at each place, (token). `special` (token): True for one that stays."""
        places = np.arange(len(special))
        moving = places[~np.asarray(special, dtype=bool)]
        drawn = np.random.default_rng(self.seed).permutation(moving)
        places[moving] = np.roll(moving, 1) if np.array_equal(drawn, moving) else drawn
        return places


KINDS: dict[str, type[Edit]] = {
    kind.__name__: kind for kind in (ZeroHead, WithoutScale, WithoutPositions, WithoutResidual, WithoutNorm, HideToken, ShuffleTokens)
}


def applies(edits: tuple[Edit, ...], kind: type[Edit], layer: int | None = None) -> bool:
    """True if `edits` holds one of this kind for this layer (or for all layers)."""
    return any(isinstance(edit, kind) and getattr(edit, "layer", None) in (None, layer) for edit in edits)


def to_json(edit: Edit) -> dict:
    """An edit as plain data: its class name under `kind`, then its fields."""
    return {"kind": type(edit).__name__, **asdict(edit)}


def from_json(fields: dict) -> Edit:
    """The edit that `to_json` described. Raises ValueError for a kind that does not exist."""
    rest = dict(fields)
    name = rest.pop("kind", None)
    if name not in KINDS:
        raise ValueError(f"no edit is called {name!r}; there are {', '.join(KINDS)}")
    return KINDS[name](**rest)
