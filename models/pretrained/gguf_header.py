"""The head of a `.gguf` file: how many tensors it holds, of which types and where.

It is read before anything else is done with a file, which may come from anywhere and be of any
size: a piece at a time, bounded, and without the package that reads the rest. Raises NotLoaded, one
sentence, for a file whose tensors do not lie side by side within it."""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path
from typing import BinaryIO, NamedTuple

from models.pretrained import model_files
from models.pretrained.model_files import NotLoaded

MOST_TENSORS = 100_000
MOST_DIMENSIONS = 4
MOST_PADDING = 1 << 20  # bytes behind the last tensor
ALIGNMENT_KEY, USUAL_ALIGNMENT = "general.alignment", 32
# The types that are read, by the format's numbers: how many numbers a block has, in how many bytes.
TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    30: ("BF16", 1, 2),
    8: ("Q8_0", 32, 34),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
}
GAIN_TYPES = ("F32", "F16", "BF16")  # of gains and biases, which no model quantises
# Values of metadata: formats of numbers by the format's own numbers; and of texts and lists.
NUMBERS = dict(enumerate("B b H h I i f ?".split())) | {10: "Q", 11: "q", 12: "d"}
TEXT, LIST = 8, 9


class TensorInfo(NamedTuple):
    """One tensor: its shape, the name of its type, and the bytes [begin, end) that it takes of the
    file's data."""

    name: str
    shape: tuple[int, ...]
    type: str
    begin: int
    end: int


class _Broken(Exception):
    """The head is not one."""


def check(file: Path, name: str) -> tuple[TensorInfo, ...]:
    """The tensors of a file. Raises NotLoaded, which calls the model `name`, for a file that is
    none, and for tensors that lie outside of it, on each other or in no known type."""
    size = file.stat().st_size
    try:
        with file.open("rb") as stream:
            tensors, begin = _read(stream, name)
    except (_Broken, struct.error, UnicodeDecodeError, OverflowError) as error:
        raise NotLoaded(
            f"{name} is no GGUF file, or it is cut short or broken; check the file."
        ) from error
    end = 0
    for tensor in sorted(tensors, key=lambda each: (each.begin, each.end)):
        if begin + tensor.end > size:
            raise NotLoaded(
                f"The tensor {tensor.name[:60]} of {name} lies beyond the end of the file; take a "
                "whole copy of the model."
            )
        if tensor.begin < end:
            raise NotLoaded(
                f"The tensor {tensor.name[:60]} of {name} lies on top of another; choose another "
                "file."
            )
        end = tensor.end
    if size > begin + end + MOST_PADDING:
        raise NotLoaded(
            f"{name} has {size - begin - end:,} bytes behind its last tensor, which no GGUF file "
            "has; choose another file."
        )
    return tensors


def _read(stream: BinaryIO, name: str) -> tuple[tuple[TensorInfo, ...], int]:
    """The tensors of a head, and where the data begins."""
    if stream.read(4) != b"GGUF" or _number(stream, "I") not in (2, 3):
        raise _Broken
    n_tensors, n_values = _number(stream, "Q"), _number(stream, "Q")
    if n_tensors > MOST_TENSORS or n_values > MOST_TENSORS:
        raise _Broken
    alignment = USUAL_ALIGNMENT
    for _ in range(n_values):
        key, kind = _text(stream), _number(stream, "I")
        if key == ALIGNMENT_KEY and NUMBERS.get(kind, "f") not in "fd":
            alignment = _number(stream, NUMBERS[kind])
        else:
            _skip(stream, kind)
    if not 0 < alignment <= MOST_PADDING:
        raise _Broken
    tensors = tuple(_tensor(stream, name) for _ in range(n_tensors))
    if any(tensor.begin % alignment for tensor in tensors):
        raise _Broken
    return tensors, -(-stream.tell() // alignment) * alignment


def _tensor(stream: BinaryIO, name: str) -> TensorInfo:
    called, n_dimensions = _text(stream), _number(stream, "I")
    if not 0 < n_dimensions <= MOST_DIMENSIONS:
        raise _Broken
    shape = tuple(_number(stream, "Q") for _ in range(n_dimensions))
    kind, begin = _number(stream, "I"), _number(stream, "Q")
    if kind not in TYPES:
        raise NotLoaded(
            f"{name} stores {called[:60]} in the type {kind} of the format, which is not read "
            f"here; choose one of {', '.join(each for each, *_ in TYPES.values())}."
        )
    type_name, block, n_bytes = TYPES[kind]
    if len(shape) == 1 and type_name not in GAIN_TYPES:
        raise NotLoaded(
            f"{name} stores {called[:60]}, a gain or a bias, as {type_name}, and these are floats "
            "in every model; choose another file."
        )
    if shape[0] % block or not prod(shape):
        raise _Broken
    return TensorInfo(called, shape, type_name, begin, begin + prod(shape) // block * n_bytes)


def _number(stream: BinaryIO, kind: str) -> int:
    data = stream.read(struct.calcsize("<" + kind))
    return struct.unpack("<" + kind, data)[0]


def _text(stream: BinaryIO) -> str:
    return stream.read(_length(stream)).decode("utf-8", "replace")


def _length(stream: BinaryIO) -> int:
    """A length that the head may still have."""
    length = _number(stream, "Q")
    if stream.tell() + length > model_files.MOST_VOCABULARY:
        raise _Broken
    return length


def _skip(stream: BinaryIO, kind: int) -> None:
    """Pass over a value of metadata."""
    if kind in NUMBERS:
        _number(stream, NUMBERS[kind])
    elif kind == TEXT:
        stream.read(_length(stream))
    elif kind == LIST:
        inner, n = _number(stream, "I"), _length(stream)
        if inner in NUMBERS:
            stream.seek(n * struct.calcsize("<" + NUMBERS[inner]), 1)
        elif inner == TEXT:
            for _ in range(n):
                stream.read(_length(stream))
        else:
            raise _Broken
        if stream.tell() > model_files.MOST_VOCABULARY:
            raise _Broken
    else:
        raise _Broken
