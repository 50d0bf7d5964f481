"""Terms and formulas for the parts of a model that differ from the paper: norms, feed-forward
networks and masks, for all sentences and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.wording.templates import sentences
from models.contract.edits import (
    KINDS,
    NORMS,
    Ablation,
    Edit,
    MoveNorm,
    OtherNorm,
    OtherPositions,
    ScaledBy,
    SetSite,
    ShiftPositions,
    ShufflePositions,
    SideBySide,
    WithoutFeedForward,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    applies,
    last_edit,
)
from models.contract.recording import Recording

MASK = sentences("terminology", "mask")

# What edits set, switch by switch and layer by layer, and the edits that set it.

Edits = tuple[Edit, ...]
# The ways to ablate a head.
ABLATIONS: dict[str, type[Ablation]] = {
    kind.word: kind for kind in KINDS.values() if issubclass(kind, Ablation) and kind.word
}
POSITIONS = (WithoutPositions, ShufflePositions, ShiftPositions, OtherPositions)
# What a card says a model was trained without, as the switch that takes it away.
ABLATION_EDITS: dict[str, Edits] = {
    "scale": (WithoutScale(),),
    "positions": (WithoutPositions(),),
    "residual": (WithoutResidual(),),
    "norm": (WithoutNorm(),),
}


def sorted_edits(edits: Edits) -> Edits:
    """Edits in one order, so that equal sets of edits are one run. Those with numbers keep theirs:
    what is added before it is scaled is another edit."""
    order = list(KINDS.values())

    def place(edit: Edit) -> tuple[int, str]:
        if edit.has_numbers:
            return order.index(SetSite), ""
        return order.index(type(edit)), repr(edit)

    return tuple(sorted(edits, key=place))


def edits_without(edits: Edits, *kinds: type) -> Edits:
    """The edits that are of none of these kinds."""
    return tuple(edit for edit in edits if not isinstance(edit, kinds))


@dataclass(frozen=True)
class LayerSwitch:
    """A switch that each layer has for itself. kinds: of its edits; value: what edits set it to in
    a layer; edits: those that set it to a value, in a layer or, with None, in all."""

    kinds: tuple[type[Edit], ...]
    value: Callable[[Edits, int], Any]
    edits: Callable[[Any, int | None], Edits]

    def values(self, edits: Edits, layers: int) -> list:
        """The setting of each layer, (layer)."""
        return [self.value(edits, layer) for layer in range(layers)]

    def put(self, edits: Edits, layers: int, only_layer: int | None, value: object) -> Edits:
        """The edits with it set to a value, in the layer `only_layer` or, with None, in all: one
        edit where all layers are alike, else one for each that differs from the model."""
        values = self.values(edits, layers)
        values = [value if only_layer in (None, layer) else old for layer, old in enumerate(values)]
        rest = edits_without(edits, *self.kinds)
        if all(setting == values[0] for setting in values):
            return (*rest, *self.edits(values[0], None))
        layer_edits = (
            edit for layer, setting in enumerate(values) for edit in self.edits(setting, layer)
        )
        return (*rest, *layer_edits)


def _divisor(edits: Edits, layer: int) -> float | None:
    edit = last_edit(edits, ScaledBy, layer)
    if edit is not None:
        return edit.divisor
    return 1.0 if applies(edits, WithoutScale, layer) else None


def _divisor_edits(value: float | None, layer: int | None) -> Edits:
    if value is None:
        return ()
    return (WithoutScale(layer),) if value == 1 else (ScaledBy(value, layer),)


# By what scores are divided in the place of the root of d_head; None where they are not.
SCALE = LayerSwitch((WithoutScale, ScaledBy), _divisor, _divisor_edits)
# Whether there is a feed-forward network.
FFN = LayerSwitch(
    (WithoutFeedForward,),
    lambda edits, layer: not applies(edits, WithoutFeedForward, layer),
    lambda on, layer: () if on else (WithoutFeedForward(layer),),
)


# Whether the feed-forward network reads what attention reads, in a model that has it after.
PARALLEL_FFN = LayerSwitch(
    (SideBySide,),
    lambda edits, layer: applies(edits, SideBySide, layer),
    lambda on, layer: (SideBySide(layer),) if on else (),
)


def norm_kind_switch(model_norm: str) -> LayerSwitch:
    """The switch of the kind of norm, "layer" or "rms", in a model that has `model_norm`."""

    def value(edits: Edits, layer: int) -> str:
        edit = last_edit(edits, OtherNorm, layer)
        return model_norm if edit is None else edit.to

    return LayerSwitch(
        (OtherNorm,),
        value,
        lambda to, layer: () if to == model_norm else (OtherNorm(to, layer),),
    )


def norm_place_switch(model_place: str) -> LayerSwitch:
    """The switch of LayerNorm's place, "post", "pre" or "none", in a model that has it at
    `model_place`."""

    def value(edits: Edits, layer: int) -> str:
        move_edit = last_edit(edits, MoveNorm, layer)
        if applies(edits, WithoutNorm, layer):
            return "none"
        return model_place if move_edit is None else move_edit.to

    def edits_for(value: str, layer: int | None) -> Edits:
        if value == model_place:
            return ()
        return (WithoutNorm(layer),) if value == "none" else (MoveNorm(value, layer),)

    return LayerSwitch((WithoutNorm, MoveNorm), value, edits_for)


def residual_switch(places: Sequence[str]) -> LayerSwitch:
    """The switch of residual connections by sub-layer, in the order of `places`."""

    def edits_for(residual_places: Sequence[str], layer: int | None) -> Edits:
        if not residual_places:
            return (WithoutResidual(layer),)
        return tuple(
            WithoutResidual(layer, place) for place in places if place not in residual_places
        )

    return LayerSwitch(
        (WithoutResidual,),
        lambda edits, layer: [
            place for place in places if not applies(edits, WithoutResidual, layer, place)
        ],
        edits_for,
    )


def set_positions(edits: Edits, to: str, by: int) -> Edits:
    """The edits with other positions: "none", "shuffled" with the seed `by`, "shifted" `by` places,
    or one of `models.contract.edits.POSITIONS`."""
    edits_by_setting = {
        "own": (),
        "none": (WithoutPositions(),),
        "shuffled": (ShufflePositions(by),),
        "shifted": (ShiftPositions(by or 1),),
    }
    return (*edits_without(edits, *POSITIONS), *edits_by_setting.get(to, (OtherPositions(to),)))


EITHER_NORM = "norm"  # where both kinds are there, or none is known


def norm_name(centred: Iterable[bool]) -> str:
    """The name of norms, LayerNorm or RMSNorm, by whether each subtracts the mean."""
    kinds = {NORMS["layer" if each else "rms"] for each in centred}
    return kinds.pop() if len(kinds) == 1 else EITHER_NORM


def recording_norm_name(recording: Recording, rms: bool) -> str:
    """The same for the layers of a recording, by what its model has (`rms`: RMSNorm) and by the
    edits in force."""
    kind = norm_kind_switch("rms" if rms else "layer")
    return norm_name(
        each == "layer" for each in kind.values(recording.edits, recording.model.n_layer)
    )


def with_article(name: str) -> str:
    """A norm with its article: "a LayerNorm", "an RMSNorm"."""
    return f"{'an' if name.startswith('R') else 'a'} {name}"


def taken_out(allowed: np.ndarray) -> np.ndarray:
    """Mask of the keys of a mask (query, key) that nobody else may attend to, in which they differ
    from other keys: words that a HideWord takes out."""
    if allowed.shape[0] != allowed.shape[1]:
        unread = ~allowed.any(axis=0)
        sees_rest = bool(allowed[:, ~unread].all())  # else a mask hides later words
        return unread & np.array(sees_rest)
    alone = allowed.sum(axis=0) == np.diagonal(allowed)
    if not sees_ahead(allowed):
        alone[-1:] = False  # nobody comes after it
    others = alone if sees_ahead(allowed) else alone[:-1]
    return alone & ~others.all()


def of_words_in(allowed: np.ndarray) -> np.ndarray:
    """A mask (query, key) without the words that are taken out: what it permits between the
    others."""
    left = ~taken_out(allowed)
    return allowed[:, left] if allowed.shape[0] != allowed.shape[1] else allowed[left][:, left]


def windowed(allowed: np.ndarray) -> bool:
    """True where a mask (query, key) also hides tokens that stand before the query: a window."""
    left = of_words_in(allowed)
    square = left.shape[0] == left.shape[1]
    return square and bool((np.tril(np.ones_like(left)) & ~left).any())


def sees_ahead(allowed: np.ndarray) -> bool:
    """True where a mask (query, key) of one text lets some token look at a later one."""
    return bool(np.triu(allowed, 1).any())


def sees_all(allowed: np.ndarray) -> bool:
    """True where a mask (query, key) permits everything but to read words that are taken out."""
    return bool(of_words_in(allowed).all())


def window_reach(allowed: np.ndarray) -> int:
    """The largest distance in tokens that a mask (query, key) permits."""
    rows, keys = np.nonzero(allowed)
    return int(abs(rows - keys).max(initial=0))


def mask_reason(allowed: np.ndarray) -> str:
    """The reason why a cell of a mask (query, key) is not allowed, "" where all are."""
    if allowed.all():
        return ""
    if sees_all(allowed):
        return MASK("out")
    if sees_ahead(allowed):
        reason = MASK("far", n=window_reach(allowed))
    else:
        reason = MASK("later") + (MASK("or_before") if windowed(allowed) else "")
    return reason + (MASK("or_out") if taken_out(allowed).any() else "")


def unit_formula(gate: str, biases: bool) -> str:
    """The formula of an FFN unit's activation from x; gate: the name of a gated one, or ""."""
    linear = "x W₁ + b₁" if biases else "x W₁"
    if not gate:
        return f"act({linear})ᵢ"
    return f"act(x W_gate{' + b' if biases else ''})ᵢ · ({linear})ᵢ"
