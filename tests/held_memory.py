"""The memory that a value keeps from being freed, told by walking from it to whatever it holds, and
that of a cache's values as it is counted."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch

from models.contract.model import Model
from models.contract.recording import Recording
from models.runtime.cache import Cache

EVERYONES = (types.ModuleType, type, Model, torch.nn.Module)  # there without any one value
OWNERS = (np.ndarray, torch.Tensor, memoryview, bytes)  # of what an array is a part of
SHARE = 0.01  # of a recording, for sums over its rows that it keeps when they are asked for


def expect_counted(cache: Cache) -> None:
    """Each value weighs what it holds, and only a recording holds a recording."""
    recordings = [each for each, _ in cache.entries.values() if isinstance(each, Recording)]
    recorded = set().union(*map(numbers_of, recordings))
    for key, (value, weight) in cache.entries.items():
        is_recording = isinstance(value, Recording)
        assert bytes_of(value) <= weight * (1 + SHARE * is_recording), key
        assert is_recording or not recorded & numbers_of(value).keys(), key


def numbers_of(value: object) -> dict[int, int]:
    """Bytes by the address of each array, tensor or buffer that a value holds, and of a part of one
    those of the whole."""
    return {at: size for at, size, is_text in sorted(_held(value)) if size and not is_text}


def bytes_of(value: object) -> int:
    """Bytes of all arrays, tensors, buffers and texts that a value holds."""
    return sum({at: size for at, size, _ in sorted(_held(value))}.values())


def _held(value: object) -> Iterator[tuple[int, int, bool]]:
    """Address and bytes of each piece, and whether it is a text."""
    seen: dict[int, object] = {}
    stack = [value]
    while stack:
        one = stack.pop()
        if id(one) in seen or isinstance(one, EVERYONES):
            continue
        seen[id(one)] = one
        if isinstance(one, torch.Tensor):
            storage = one.untyped_storage()
            yield storage.data_ptr(), storage.nbytes(), False
        elif isinstance(one, np.ndarray) and not isinstance(one.base, OWNERS):
            yield one.__array_interface__["data"][0], one.nbytes, False  # if not more
        elif isinstance(one, (str, bytes, bytearray)):
            yield id(one), len(one), isinstance(one, str)
        stack += _parts(one)


def _parts(one: Any) -> list[Any]:
    """What a value holds at the next step."""
    match one:
        case np.ndarray():
            return [one.base, *(one.ravel() if one.dtype == object else ())]
        case memoryview():
            return [one.obj]
        case types.FunctionType():
            cells = [each.cell_contents for each in one.__closure__ or ()]
            return [*cells, *(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
        case types.MethodType():
            return [one.__self__, one.__func__]
        case partial():
            return [one.func, one.args, one.keywords]
        case types.GeneratorType():
            return list(one.gi_frame.f_locals.values()) if one.gi_frame else []
        case Mapping():
            return [*one.keys(), *one.values()]
        case list() | tuple() | set() | frozenset() | deque():
            return list(one)
    slots = chain.from_iterable(getattr(each, "__slots__", ()) for each in type(one).__mro__)
    return [getattr(one, "__dict__", None), *(getattr(one, each, None) for each in slots)]
