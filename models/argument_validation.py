"""Validation of arguments of `models.model.Model`'s methods: models, names, edits, recordings."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import replace
from typing import Any

from models.arrays import as_array
from models.edits import Edit
from models.recording import Recording, from_end
from models.results import HeadScore


def edits_of(edits: Edit | Iterable[Edit]) -> tuple[Edit, ...]:
    """Edits as a tuple; a single edit as a tuple of one. Raises TypeError for anything else."""
    if isinstance(edits, Edit):
        return (edits,)
    sequence = tuple(edits) if isinstance(edits, Iterable) and not isinstance(edits, str) else None
    invalid = [edits] if sequence is None else [each for each in sequence if not _is_edit(each)]
    if sequence is None or invalid:
        raise TypeError(
            f"edits are of headlight.edits, such as ZeroHead(0, 3); {_brief(invalid[0])} is none"
        )
    return sequence


def of_model(edits: tuple[Edit, ...], card: Any) -> tuple[Edit, ...]:
    """Edits with each layer and head counted from 0 that was counted from a model's end."""
    sizes = {"layer": card.n_layer, "head": card.n_head}
    sizes |= {f"to_{name}": size for name, size in sizes.items()}

    def resolved(edit: Edit) -> Edit:
        places = {name: getattr(edit, name, None) for name in sizes}
        return replace(
            edit,
            **{
                name: from_end(value, sizes[name])
                for name, value in places.items()
                if type(value) is int and value < 0
            },
        )

    return tuple(map(resolved, edits))


def text_or_ids(source: Any) -> str | tuple[int, ...]:
    """Input of a model: a text, or token ids, a sequence or an array of one axis. Raises TypeError
    for anything else, and ValueError for no ids."""
    if isinstance(source, str):
        return source
    try:
        ids = as_array(source)
    except (TypeError, ValueError):
        ids = None
    if ids is None or ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise TypeError(f"a text is a str, or a sequence of token ids; {_brief(source)} is neither")
    if not ids.size:
        raise ValueError("there are no token ids to read")
    return tuple(map(int, ids))


def is_batch(source: Any) -> bool:
    """True for several texts or several lists of ids, and not one of either."""
    if (
        isinstance(source, str)
        or not hasattr(source, "__len__")
        or not hasattr(source, "__getitem__")
    ):
        return False
    axes = getattr(source, "ndim", None)
    return axes > 1 if axes is not None else any(isinstance(each, (str, Sized)) for each in source)


def expect_model(model: Any) -> None:
    """Raises TypeError for what is no loaded model."""
    if not hasattr(model, "source") or not hasattr(model, "card"):
        raise TypeError(
            f"a model is a name or what headlight.load(name) returns; {_brief(model)} is neither"
        )


def expect_recording_of(model: Any, recording: Any, stream: str, token: int = 0) -> int:
    """The token's place from 0; a negative one counts from the end.

    Raises TypeError for what is no recording, and ValueError for one of other weights than the
    model's, with vectors of another width, or without this stream or token."""
    if not isinstance(recording, Recording):
        raise TypeError(
            f"a recording is what model.record(text) returns; {_brief(recording)} is none"
        )
    origin, card = recording.model, model.card
    if origin.fingerprint != card.fingerprint:
        raise ValueError(
            f"this recording is of {origin.name} (weights {origin.fingerprint}) and the model is "
            f"{card.name} (weights {card.fingerprint}); record the text with {card.name} first"
        )
    states = recording.stream(stream)
    if states.resid.shape[-1] != card.d_model:
        raise ValueError(
            f"the vectors of stream {stream} have {states.resid.shape[-1]} dimensions and those of "
            f"{card.name} have {card.d_model}"
        )
    n = len(states.tokens)
    if not -n <= token < n:
        raise ValueError(f"stream {stream} has tokens 0 to {n - 1}, not {token}")
    return from_end(token, n)


def of_attention(model: Any, recording: Any, cell: HeadScore) -> HeadScore:
    """The cell with its places counted from 0; negative ones count from the end.

    Raises as `expect_recording_of`, and ValueError for an attention that is not there."""
    streams = getattr(recording, "streams", ())
    expect_recording_of(model, recording, streams[0].name if streams else "")
    attention = next((each for each in recording.attention if each.name == cell.attention), None)
    if attention is None:
        names = ", ".join(each.name for each in recording.attention)
        raise ValueError(f"no attention is called {cell.attention!r}; there are {names}")
    layers, heads, queries, keys = attention.pattern.shape
    return HeadScore(
        cell.attention,
        from_end(cell.layer, layers),
        from_end(cell.head, heads),
        from_end(cell.query, queries),
        from_end(cell.key, keys),
        None if cell.against is None else from_end(cell.against, keys),
    )


def _is_edit(value: object) -> bool:
    return isinstance(value, Edit)


def _brief(value: object) -> str:
    text = repr(value)
    return f"{text[:60]}{'…' * (len(text) > 60)} ({type(value).__name__})"
