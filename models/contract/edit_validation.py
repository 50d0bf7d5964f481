"""Check whether a model supports edits; a ValueError says which edit it does not, and what would
fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from models.contract.arrays import Numbers
from models.contract.edits import (
    PATH_ENDS,
    SPAN,
    Edit,
    OtherPositions,
    PathEdit,
    ShiftPositions,
    ShufflePositions,
    WithNumbers,
    last_edit,
    last_of,
)
from models.contract.recording import Card
from models.contract.spelling import there_are

if TYPE_CHECKING:
    from models.network.config import Config

MAX_EDITS = 400
# A field's values by what its type begins with; a truth value is no number.
TYPES: dict[str, tuple[Any, str]] = {
    "Span": ((Integral, str), "a number, several, or all"),
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "str": (str, "a word"),
    "Numbers": (Numbers, "numbers"),
}
MAX_DIGITS = 18  # of a whole number


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
        if isinstance(edit, PathEdit) and (error := path_error(edit, card)):
            raise ValueError(error)
        if isinstance(edit, PathEdit) and edit.to in "kv" and config.key_heads < config.n_head:
            raise ValueError(shared_keys_error(card.name))
        if error := edit.model_error(card, config, can_hide):
            raise ValueError(error)


def check_places(edits: tuple[Edit, ...], card: Card, layers: Mapping[str, int]) -> None:
    """Raises ValueError for the first edit that names a layer, head or attention which the model
    does not have, or a value out of range. layers: how many each attention has, by its label."""
    if len(edits) > MAX_EDITS:
        raise ValueError(f"{len(edits)} edits at once; {MAX_EDITS} are taken")
    for edit in edits:
        error = _type_error(edit) or _place_error(edit, card, layers) or edit.value_error()
        if not error and isinstance(edit, WithNumbers):
            error = edit.width_error(card)
        if error:
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
        if isinstance(value, str) and not SPAN.fullmatch(value):
            return (
                f"{type(edit).__name__}: {field} is a number, “2-5”, “1,4” or “all”, not {value!r}"
            )
        value = last_of(value) if isinstance(value, str) else value
        if value is not None and not 0 <= value < size:
            return f"“{edit}” names {field} {value}; {card.name} has {field}s 0 to {size - 1}"
    return ""


def path_error(edit: PathEdit, card: Card) -> str:
    """Error message for a path that is not there, "" for one that is."""
    kind, ends = type(edit).__name__, (*PATH_ENDS, *(["resid"] if edit.borrows else []))
    if edit.attention == "cross":
        return f"“{edit}”: a path leads between the heads of one text"
    if edit.to not in ends:
        return f"{kind} does not know {edit.to!r}; {there_are(edit.to, ends)}"
    last = card.n_layer if edit.to == "resid" else card.n_layer - 1
    if edit.to_layer is None or not edit.layer < edit.to_layer <= last:
        later = f"{edit.layer + 1}" + f" to {last}" * (last > edit.layer + 1)
        there = f"to_layer can be {later}" if edit.layer < last else "none comes after it"
        return f"“{edit}”: a path leads from layer {edit.layer} to a later one; {there}"
    if edit.to == "resid":
        return "" if edit.to_head is None else f"“{edit}”: a path to the stream names no head there"
    if edit.to_head is None or not 0 <= edit.to_head < card.n_head:
        return f"“{edit}” names head {edit.to_head}; {card.name} has heads 0 to {card.n_head - 1}"
    return ""


def shared_keys_error(name: str) -> str:
    """Error message for a path to keys or values that several heads of a model share."""
    return f"heads of {name} share keys and values; a path leads to queries"
