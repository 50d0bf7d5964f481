"""A recording as an .npz file, and back."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from models.contract import edits, npz
from models.contract.argument_validation import expect_recording
from models.contract.recording import Attention, Card, Recording, Stream, stored_array

FORMAT = "headlight recording 1"
MOST_HEADER = 2**26  # bytes, 4 for a character: an edit that holds an array stands in it as text
# The kinds of numbers of each array: whole, yes and no, or with fractions.
KINDS = {
    **dict.fromkeys(("ids", "spans", "layers"), "iu"),
    **dict.fromkeys(("special", "allowed"), "b"),
    **dict.fromkeys(("resid", "scores", "pattern", "q", "k", "v", "scale", "sink"), "f"),
}
TYPES: dict[str, type] = {"str": str, "int": int}
NOT_WRITTEN = "this .npz file is not as Headlight writes a recording"
# Of any model: layers, its width, heads of all layers together, and numbers of what is measured of
# pairs of heads and of pairs of a head's dimensions.
MOST_LAYERS, MOST_WIDTH, MOST_HEADS, MOST_HEAD_PAIRS = 1000, 2**15, 2**14, 2**22
MOST_DIMENSION_PAIRS = 2**26
# Counts that no array shows: tokens left out, words, positions, parameters.
MOST_COUNT = {"n_vocab": 2**24, "n_parameters": 2**48}
MOST_OF_OTHERS = 2**31


def to_npz(recording: Recording, compressed: bool = True) -> bytes:
    """The whole recording as an .npz file: one JSON header under `header`, and each array as
    `stream.<name>.<field>` or `attention.<name>.<field>`; keys and values that heads share once.
    `from_npz` reads it back into an equal Recording. compressed: takes ten times as long."""
    expect_recording(recording)
    arrays: dict[str, Any] = {}
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": recording.version,
        "model": asdict(recording.model),
        "text": recording.text,
        "edits": [edits.to_json(edit) for edit in recording.edits],
        "dropped": recording.dropped,
        "target": recording.target,
        "target_dropped": recording.target_dropped,
        "as_ids": recording.as_ids,
    }
    for kind, parts in (("stream", recording.streams), ("attention", recording.attention)):
        header[kind] = []
        for part in parts:
            values = {}
            for member in fields(part):
                value = stored_array(getattr(part, member.name))
                if isinstance(value, np.ndarray):
                    arrays[f"{kind}.{part.name}.{member.name}"] = value
                else:
                    values[member.name] = value
            header[kind].append(values)
    file = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(file, header=np.array(json.dumps(header)), **arrays)
    return file.getvalue()


def from_npz(data: bytes, most_bytes: int | None = None) -> Recording:
    """The Recording that `to_npz` wrote. Nothing in the file is run, and what it says of itself is
    checked before it is unpacked, so that it may come from anywhere.

    most_bytes: that its arrays may take, None for no limit. Raises ValueError, one sentence, where
    the file is none or takes more, and TypeError for what is no bytes."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"a file is given as its bytes, and not as {type(data).__name__}")
    arrays = npz.read(data, most_bytes)
    written = arrays.pop("header", None)
    if written is None or written.dtype.kind != "U" or written.shape:
        raise ValueError("this .npz file is not a recording: it has no header")
    if written.nbytes > MOST_HEADER:
        raise ValueError(f"the header of this recording has {written.nbytes:,} bytes")
    try:
        header = json.loads(str(written))
        format = header.get("format")
    except (ValueError, RecursionError, AttributeError) as error:
        raise ValueError(NOT_WRITTEN) from error
    if format != FORMAT:
        raise ValueError(f"this file says format {format!r:.60}; this version reads {FORMAT!r}")
    try:
        return _recording(header, arrays)
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(NOT_WRITTEN) from error


def _recording(header: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> Recording:
    """The recording of a header and its arrays. Raises ValueError, TypeError, KeyError,
    AttributeError or OverflowError where they are none."""

    def plain(name: str, kind: type, default: Any = None) -> Any:
        return _of_type(header[name] if default is None else header.get(name, default), kind)

    card = plain("model", dict)
    types = {each.name: TYPES[str(each.type)] for each in fields(Card)}
    recording = Recording(
        model=Card(**{name: _of_type(card[name], kind) for name, kind in types.items()}),
        text=plain("text", str),
        edits=tuple(edits.from_json(edit) for edit in plain("edits", list)),
        streams=_parts("stream", Stream, plain("stream", list), arrays),
        attention=_parts("attention", Attention, plain("attention", list), arrays),
        dropped=plain("dropped", int),
        target=plain("target", str, ""),
        target_dropped=plain("target_dropped", int, 0),
        as_ids=plain("as_ids", bool, False),
        version=plain("version", str, ""),
    )
    if arrays:
        raise ValueError(f"this recording has no place for {min(arrays)!r:.60}")
    _expect_counts(recording)
    for stream, of in zip(recording.streams, (recording.text, recording.target)):
        if stream.spans.min(initial=-1) < -1 or stream.spans.max(initial=-1) > len(of):
            raise ValueError(f"{NOT_WRITTEN}: a token stands outside of the text")
    return recording


def _expect_counts(recording: Recording) -> None:
    """Raises ValueError where a count in the header is not that of the arrays, or is larger than
    that of any model. Whoever reads one may count up to it."""
    card, patterns = vars(recording.model), [each.pattern.shape for each in recording.attention]
    counts = {name: value for name, value in card.items() if isinstance(value, int)}
    counts |= {name: getattr(recording, name) for name in ("dropped", "target_dropped")}
    for name, value in counts.items():
        if not 0 <= value < MOST_COUNT.get(name, MOST_OF_OTHERS):
            raise ValueError(f"{NOT_WRITTEN}: {name} is negative or very large")
    counted = {
        "n_layer": {max((shape[0] for shape in patterns), default=0)},
        "n_head": {shape[1] for shape in patterns},
        "d_model": {each.resid.shape[-1] for each in recording.streams if each.sites},
        "d_head": {each.q.shape[-1] for each in recording.attention if each.opens},
    }
    for name, of_arrays in counted.items():
        if of_arrays and counts[name] not in of_arrays:
            raise ValueError(
                f"{NOT_WRITTEN}: {name} is {counts[name]:,}, and its arrays have {max(of_arrays):,}"
            )
    layers, heads = counts["n_layer"], sum(shape[0] * shape[1] for shape in patterns)
    if layers > MOST_LAYERS or heads > MOST_HEADS:
        raise ValueError(f"{NOT_WRITTEN}: it has {layers:,} layers and {heads:,} heads")
    if counts["d_model"] > MOST_WIDTH:
        raise ValueError(f"{NOT_WRITTEN}: d_model is {counts['d_model']:,}")
    widths = (each.shape[-1] for of in recording.attention if of.opens for each in (of.q, of.v))
    d_head = max(widths, default=0)
    head_pairs, dimension_pairs = heads * counts["n_head"], counts["n_head"] * d_head**2
    if head_pairs > MOST_HEAD_PAIRS or dimension_pairs > MOST_DIMENSION_PAIRS:
        raise ValueError(
            f"{NOT_WRITTEN}: a layer has {counts['n_head']:,} heads of {d_head:,} numbers"
        )


def _parts(
    kind: str, make: Callable[..., Any], written: list[Any], arrays: dict[str, np.ndarray]
) -> tuple[Any, ...]:
    """The streams or attentions of a header, with their arrays, which are taken out of
    `arrays`."""
    parts = []
    for values in written:
        plain = {
            name: tuple(_of_type(each, str) for each in value)
            if isinstance(value, list)
            else _of_type(value, str)
            for name, value in _of_type(values, dict).items()
        }
        prefix = f"{kind}.{plain['name']}."
        names = [each for each in arrays if each.startswith(prefix)]
        own = {each.removeprefix(prefix): arrays.pop(each) for each in names}
        for name, array in own.items():
            if array.dtype.kind not in KINDS[name]:
                raise ValueError(f"{prefix}{name} of this recording is of {array.dtype}")
        parts.append(make(**plain, **own))
    return tuple(parts)


def _of_type(value: Any, kind: type) -> Any:
    """The value. Raises TypeError where it is of another type; a bool is no int."""
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__}, and not {type(value).__name__}")
    return value
