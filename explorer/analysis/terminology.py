"""What the parts of a model are called where it departs from the paper: its norms, and the formula
of its feed-forward network. The one place that says so; sentences and pages ask here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.edits import (
    KINDS,
    NORMS,
    Edit,
    MoveNorm,
    OtherNorm,
    OtherPositions,
    ScaledBy,
    ShiftPositions,
    ShufflePositions,
    SideBySide,
    WithoutFeedForward,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    applies,
    last,
)
from models.recording import Recording

# What edits set, switch by switch and layer by layer, and the edits that set it.

Edits = tuple[Edit, ...]
POSITIONS = (WithoutPositions, ShufflePositions, ShiftPositions, OtherPositions)
# What a card says a model was trained without, as the switch that takes it away.
TAKEN: dict[str, Edits] = {
    "scale": (WithoutScale(),),
    "positions": (WithoutPositions(),),
    "residual": (WithoutResidual(),),
    "norm": (WithoutNorm(),),
}


def in_order(edits: Edits) -> Edits:
    """Edits in one order, so that equal sets of edits are one run."""
    order = list(KINDS.values())
    return tuple(sorted(edits, key=lambda edit: (order.index(type(edit)), repr(edit))))


def without(edits: Edits, *kinds: type) -> Edits:
    """The edits that are of none of these kinds."""
    return tuple(edit for edit in edits if not isinstance(edit, kinds))


@dataclass(frozen=True)
class ByLayer:
    """A switch that each layer has for itself. kinds: of its edits; value: what edits set it to in
    a layer; edits: those that set it to a value, in a layer or, with None, in all."""

    kinds: tuple[type[Edit], ...]
    value: Callable[[Edits, int], Any]
    edits: Callable[[Any, int | None], Edits]

    def values(self, edits: Edits, layers: int) -> list:
        """What it is set to, (layer)."""
        return [self.value(edits, layer) for layer in range(layers)]

    def put(self, edits: Edits, layers: int, only: int | None, value: object) -> Edits:
        """The edits with it set to a value, in the layer `only` or, with None, in all: one edit
        where all layers are alike, else one for each that differs from the model."""
        values = self.values(edits, layers)
        values = [value if only in (None, layer) else old for layer, old in enumerate(values)]
        rest = without(edits, *self.kinds)
        if all(each == values[0] for each in values):
            return (*rest, *self.edits(values[0], None))
        made = (edit for layer, each in enumerate(values) for edit in self.edits(each, layer))
        return (*rest, *made)


def _divisor(edits: Edits, layer: int) -> float | None:
    other = last(edits, ScaledBy, layer)
    if other is not None:
        return other.divisor
    return 1.0 if applies(edits, WithoutScale, layer) else None


def _divided(value: float | None, layer: int | None) -> Edits:
    if value is None:
        return ()
    return (WithoutScale(layer),) if value == 1 else (ScaledBy(value, layer),)


# By what scores are divided in the place of the root of d_head; None where they are not.
SCALE = ByLayer((WithoutScale, ScaledBy), _divisor, _divided)
# Whether there is a feed-forward network.
FFN = ByLayer(
    (WithoutFeedForward,),
    lambda edits, layer: not applies(edits, WithoutFeedForward, layer),
    lambda on, layer: () if on else (WithoutFeedForward(layer),),
)


# Whether the feed-forward network reads what attention reads, in a model that has it after.
BESIDE = ByLayer(
    (SideBySide,),
    lambda edits, layer: applies(edits, SideBySide, layer),
    lambda on, layer: (SideBySide(layer),) if on else (),
)


def kind_of_norm(own: str) -> ByLayer:
    """Which norm there is, "layer" or "rms", in a model that has `own`."""

    def value(edits: Edits, layer: int) -> str:
        other = last(edits, OtherNorm, layer)
        return own if other is None else other.to

    return ByLayer(
        (OtherNorm,),
        value,
        lambda to, layer: () if to == own else (OtherNorm(to, layer),),
    )


def norm_label(own: str) -> ByLayer:
    """Where LayerNorm stands, "post", "pre" or "none", in a model that has it at `own`."""

    def value(edits: Edits, layer: int) -> str:
        moved = last(edits, MoveNorm, layer)
        if applies(edits, WithoutNorm, layer):
            return "none"
        return own if moved is None else moved.to

    def made(value: str, layer: int | None) -> Edits:
        if value == own:
            return ()
        return (WithoutNorm(layer),) if value == "none" else (MoveNorm(value, layer),)

    return ByLayer((WithoutNorm, MoveNorm), value, made)


def residual(places: Sequence[str]) -> ByLayer:
    """Which of a model's sub-layers keep their residual connection, in the order of `places`."""

    def made(kept: Sequence[str], layer: int | None) -> Edits:
        if not kept:
            return (WithoutResidual(layer),)
        return tuple(WithoutResidual(layer, place) for place in places if place not in kept)

    return ByLayer(
        (WithoutResidual,),
        lambda edits, layer: [
            place for place in places if not applies(edits, WithoutResidual, layer, place)
        ],
        made,
    )


def positions(edits: Edits) -> tuple[str, int]:
    """What positions are set to ("own" where as they are), and the seed of a shuffle or the places
    of a shift."""
    used = next((edit for edit in reversed(edits) if isinstance(edit, POSITIONS)), None)
    if isinstance(used, ShufflePositions):
        return "shuffled", used.seed
    if isinstance(used, ShiftPositions):
        return "shifted", used.by
    if isinstance(used, OtherPositions):
        return used.to, 0
    return ("own" if used is None else "none"), 0


def put_positions(edits: Edits, to: str, by: int) -> Edits:
    """The edits with positions set to what `positions` tells."""
    made = {
        "own": (),
        "none": (WithoutPositions(),),
        "shuffled": (ShufflePositions(by),),
        "shifted": (ShiftPositions(by or 1),),
    }
    return (*without(edits, *POSITIONS), *made.get(to, (OtherPositions(to),)))


EITHER = "norm"  # where both kinds are there, or none is known


def norm(centred: Iterable[bool]) -> str:
    """What norms are called, of which each subtracts the mean or does not: LayerNorm or RMSNorm."""
    kinds = {NORMS["layer" if each else "rms"] for each in centred}
    return kinds.pop() if len(kinds) == 1 else EITHER


def norm_of(recording: Recording, rms: bool) -> str:
    """The same for the layers of a recording, by what its model has (`rms`: RMSNorm) and by the
    edits in force."""
    kind = kind_of_norm("rms" if rms else "layer")
    return norm(each == "layer" for each in kind.values(recording.edits, recording.model.n_layer))


def other_norm(name: str) -> str:
    """The one of the two that it is not."""
    return next(each for each in NORMS.values() if each != name)


def with_article(name: str) -> str:
    """A norm with its article: "a LayerNorm", "an RMSNorm"."""
    return f"{'an' if name.startswith('R') else 'a'} {name}"


def windowed(allowed: np.ndarray) -> bool:
    """True where a mask (query, key) also hides tokens that stand before the query: a window."""
    square = len(allowed) == allowed.shape[1]
    return square and bool((np.tril(np.ones_like(allowed)) & ~allowed).any())


def sees_ahead(allowed: np.ndarray) -> bool:
    """True where a mask (query, key) of one text lets some token look at a later one."""
    return bool(np.triu(allowed, 1).any())


def reach(allowed: np.ndarray) -> int:
    """How many places away, at most, a mask (query, key) lets a token look."""
    rows, keys = np.nonzero(allowed)
    return int(abs(rows - keys).max(initial=0))


def hidden(allowed: np.ndarray) -> str:
    """Why a cell of a mask (query, key) is not allowed, "" where all are."""
    if allowed.all():
        return ""
    if sees_ahead(allowed):
        return f"not allowed: more than {reach(allowed)} places away"
    return "not allowed: a later token" + (", or before the window" if windowed(allowed) else "")


def units(gate: str, biases: bool) -> str:
    """How the activation of unit i of an FFN is made of x; gate: what a gated one is called, or
    ""."""
    plain = "x W₁ + b₁" if biases else "x W₁"
    if not gate:
        return f"act({plain})ᵢ"
    return f"act(x W_gate{' + b' if biases else ''})ᵢ · ({plain})ᵢ"


def ffn(gate: str, biases: bool) -> str:
    """The formula of an FFN; gate: what a gated one is called, or ""."""
    first = "W₁ h + b₁" if biases else "W₁ h"
    last = " + b₂" if biases else ""
    if not gate:
        return f"FFN(h) = W₂ σ({first}){last}"
    gated = "W_gate h + b" if biases else "W_gate h"
    return f"FFN(h) = W₂ (σ({gated}) ⊙ ({first})){last}"
