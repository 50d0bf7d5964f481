"""Check whether a model supports edits; a ValueError says which edit it does not, and what would
fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real

from models.arrays import Numbers
from models.config import Config
from models.edits import (
    NORM_PLACES,
    NORMS,
    PATH_ENDS,
    POSITIONS,
    SUBLAYERS,
    AddToHead,
    AddToSite,
    CutPath,
    Edit,
    HideToken,
    MoveNorm,
    OtherNorm,
    OtherPositions,
    ScaledBy,
    ScaleHead,
    ScaleSite,
    SetHead,
    SetNeuron,
    SetSite,
    SharedKeys,
    ShiftPositions,
    ShufflePositions,
    ShuffleTokens,
    SideBySide,
    Window,
    WithMask,
    WithoutMask,
    WithoutResidual,
    groups_of,
    last_edit,
)
from models.recording import Card

MAX_EDITS = 400
# A field's values by what its type begins with; a truth value is no number.
TYPES: dict[str, tuple[type, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "str": (str, "a word"),
    "Numbers": (Numbers, "numbers"),
}
MAX_DIGITS = 18  # of a whole number
# Divisors whose own and inverse value 32 bits hold.
LEAST, MOST = 3e-39, 3e38


def check(
    edits: tuple[Edit, ...], card: Card, config: Config, attentions: tuple[str, ...], can_hide: bool
) -> None:
    """Raises ValueError for the first edit that a model in our own classes cannot follow.

    attentions: the model's attentions by label; can_hide: whether it fills masked words.
    """
    check_places(edits, card, dict.fromkeys(attentions, card.n_layer))
    has_positions = config.positions is not None or last_edit(edits, OtherPositions) is not None
    for edit in edits:
        if isinstance(edit, (ShufflePositions, ShiftPositions)) and not has_positions:
            raise ValueError(f"“{edit}”: {card.name} adds no positions that could be moved")
        if isinstance(edit, CutPath) and (error := path_error(edit, card)):
            raise ValueError(error)
        if isinstance(edit, CutPath) and edit.to != "q" and config.key_heads < config.n_head:
            raise ValueError(shared_keys_error(card.name))
        if isinstance(edit, SetNeuron) and not 0 <= edit.neuron < config.d_ff:
            raise ValueError(f"“{edit}”: a layer of {card.name} has neurons 0 to {config.d_ff - 1}")
        if error := _architecture_error(edit, card, config, can_hide):
            raise ValueError(error)


def check_places(edits: tuple[Edit, ...], card: Card, layers: Mapping[str, int]) -> None:
    """Raises ValueError for the first edit that names a layer, head or attention which the model
    does not have, or a value out of range. layers: how many each attention has, by its label."""
    if len(edits) > MAX_EDITS:
        raise ValueError(f"{len(edits)} edits at once; {MAX_EDITS} are taken")
    for edit in edits:
        error = _type_error(edit) or _place_error(edit, card, layers) or _value_error(edit)
        if error := error or _numbers_error(edit, card):
            raise ValueError(error)


def check_length(edits: tuple[Edit, ...], n: int, card: Card) -> None:
    """Raises ValueError where positions are shifted past the last one the model has, for a text of
    n tokens."""
    for edit in edits:
        if isinstance(edit, ShiftPositions) and n + edit.by > card.n_positions:
            raise ValueError(
                f"“{edit}”: {n} tokens would reach position {n + edit.by}; {card.name} has "
                f"{card.n_positions}"
            )


def _type_error(edit: Edit) -> str:
    """Error message for a field of the wrong type, "" where all are right. Edits from a file or an
    address can hold anything."""
    for field in fields(edit):
        value, hint = getattr(edit, field.name), str(field.type)
        if value is None and "None" in hint:
            continue
        kind, type_name = TYPES[hint.partition(" ")[0]]
        if not isinstance(value, kind) or isinstance(value, bool):
            text = f"{value!r:.40}"
            return f"{type(edit).__name__}: {field.name} must be {type_name}, not {text}"
        if isinstance(value, Integral) and abs(int(value)) >= 10**MAX_DIGITS:
            return f"{type(edit).__name__}: {field.name} has more than {MAX_DIGITS} digits"
    return ""


def _place_error(edit: Edit, card: Card, layers: Mapping[str, int]) -> str:
    attention = getattr(edit, "attention", None)
    if attention is not None and attention not in layers:
        return f"“{edit}” names attention {attention!r}; {card.name} has {', '.join(layers)}"
    n_layer = card.n_layer if attention is None else layers[attention]
    for field, size in (("layer", n_layer), ("head", card.n_head)):
        value = getattr(edit, field, None)
        if value is not None and not 0 <= value < size:
            return f"“{edit}” names {field} {value}; {card.name} has {field}s 0 to {size - 1}"
    return ""


def _value_error(edit: Edit) -> str:
    if isinstance(edit, (ShuffleTokens, ShufflePositions)) and edit.seed < 0:
        return f"{edit} has a negative seed; seeds count from 0"
    if isinstance(edit, ShiftPositions) and edit.by < 0:
        return f"“{edit}”: positions can only be shifted onwards, by 0 or more"
    if isinstance(edit, Window) and edit.size < 1:
        return f"“{edit}”: a token sees at least itself, so a window has 1 token or more"
    if isinstance(edit, ScaledBy) and not edit.divisor > 0:
        return f"“{edit}”: the divisor must be a number above 0"
    if isinstance(edit, ScaledBy) and not LEAST <= edit.divisor <= MOST:
        return f"“{edit}”: the divisor must lie between {LEAST:g} and {MOST:g}, as 32 bits hold it"
    for kind, field, options in (
        (OtherPositions, "to", POSITIONS),
        (MoveNorm, "to", NORM_PLACES),
        (OtherNorm, "to", tuple(NORMS)),
        (WithoutResidual, "sublayer", (*SUBLAYERS, None)),
    ):
        if isinstance(edit, kind) and getattr(edit, field) not in options:
            return (
                f"{type(edit).__name__} does not know {getattr(edit, field)!r}; there are "
                f"{', '.join(filter(None, options))}"
            )
    return ""


def path_error(edit: CutPath, card: Card) -> str:
    """Error message for a path that is not there, "" for one that is."""
    if edit.attention == "cross":
        return f"“{edit}”: a path leads between the heads of one text"
    if not edit.layer < edit.to_layer < card.n_layer:
        return f"“{edit}”: the path leads to a layer from {edit.layer + 1} to {card.n_layer - 1}"
    if not 0 <= edit.to_head < card.n_head:
        return f"“{edit}” names head {edit.to_head}; {card.name} has heads 0 to {card.n_head - 1}"
    if edit.to not in PATH_ENDS:
        return f"CutPath does not know {edit.to!r}; there are {', '.join(PATH_ENDS)}"
    return ""


def shared_keys_error(name: str) -> str:
    """Error message for a path to keys or values that several heads of a model share."""
    return f"heads of {name} share keys and values; a path leads to queries"


def _numbers_error(edit: Edit, card: Card) -> str:
    """Error message for numbers of another width than what they are put into, and for one that is
    none, "" where all are right."""
    if isinstance(edit, (ScaleSite, ScaleHead, SetNeuron)):
        number = edit.value if isinstance(edit, SetNeuron) else edit.factor
        return "" if abs(number) <= MOST else f"“{edit}”: the number must be finite in 32 bits"
    if not isinstance(edit, (SetSite, AddToSite, SetHead, AddToHead)):
        return ""
    of_head = isinstance(edit, (SetHead, AddToHead))
    width = card.d_head if of_head else card.d_model
    if edit.values.array.shape[-1] == width:
        return ""
    shape = "x".join(map(str, edit.values.array.shape))
    where = "a head" if of_head else "a site"
    return f"“{edit}” has the shape {shape}; {where} of {card.name} has {width} numbers a token"


def _architecture_error(edit: Edit, card: Card, config: Config, can_hide: bool) -> str:
    if isinstance(edit, HideToken) and not can_hide:
        return f"{card.name} fills no masked words, so no token can be hidden from it"
    if isinstance(edit, WithoutMask) and card.kind == "encoder":
        return f"{card.name} is an encoder and has no causal mask to take away"
    if isinstance(edit, WithMask) and card.kind == "decoder":
        return f"{card.name} is a decoder and has its causal mask already"
    if (
        isinstance(edit, WithoutResidual)
        and edit.sublayer == "cross"
        and card.kind != "encoder-decoder"
    ):
        return f"{card.name} has no cross-attention"
    if isinstance(edit, MoveNorm) and config.norm is None:
        return f"{card.name} was trained without LayerNorm and has none to move"
    if isinstance(edit, OtherNorm) and config.norm is None:
        return f"{card.name} was trained without LayerNorm and has none to replace"
    if isinstance(edit, OtherNorm) and config.rms == (edit.to == "rms"):
        return f"{card.name} has {NORMS[edit.to]} already"
    if isinstance(edit, SideBySide) and config.parallel:
        return f"attention and feed-forward of {card.name} stand side by side already"
    if isinstance(edit, SharedKeys):
        return _group_error(edit, card, config)
    return ""


def _group_error(edit: SharedKeys, card: Card, config: Config) -> str:
    """Error message where a model's heads cannot share keys in that many groups, "" where they
    can."""
    heads = config.n_head
    if config.key_heads < heads:
        return (
            f"{heads} heads of {card.name} share {config.key_heads} heads’ keys and values already"
        )
    if edit.groups in (counts := groups_of(heads)):
        return ""
    return (
        f"“{edit}”: the {heads} heads of {card.name} can be put in {', '.join(map(str, counts))} "
        "groups of one size"
    )
