"""Keys and values that several heads share: held once, read as if every head had its own."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np


class Shared(np.lib.mixins.NDArrayOperatorsMixin):
    """An array (layer, head, key, d_head) in which heads that stand together are alike, `held` once
    for each group of them, (layer, key head, key, d_head).

    One head of it is a view. Whatever else is asked for is put together when it is asked for, as an
    array of its own that is not kept. Nothing can be written into it.
    """

    def __init__(self, held: np.ndarray, n_head: int) -> None:
        self.held, self.n_head = held, n_head

    @property
    def each(self) -> int:
        """How many heads share one's keys."""
        return self.n_head // self.held.shape[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """As if every head had its own."""
        layers, _, keys, width = self.held.shape
        return layers, self.n_head, keys, width

    @property
    def ndim(self) -> int:
        """Four axes."""
        return self.held.ndim

    @property
    def dtype(self) -> np.dtype:
        """Of its numbers."""
        return self.held.dtype

    @property
    def size(self) -> int:
        """How many numbers are read, more than are held."""
        return self.held.size * self.each

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[layer] for layer in range(len(self)))

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, Integral):
            return _frozen(np.repeat(self.held[int(at)], self.each, axis=0))
        if isinstance(at, tuple) and len(at) > 1 and isinstance(at[1], Integral):
            layers, head, *rest = at
            if isinstance(layers, (Integral, slice)) and -self.n_head <= head < self.n_head:
                return self.held[(layers, int(head) % self.n_head // self.each, *rest)]
        return _frozen(np.asarray(self)[at])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("keys that heads share are put together, which takes a copy")
        whole = np.repeat(self.held, self.each, axis=1)
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, **named: Any) -> Any:
        whole = (np.asarray(each) if isinstance(each, Shared) else each for each in given)
        return getattr(ufunc, method)(*whole, **named)

    def __getattr__(self, name: str) -> Any:
        # All else that an array has; but not its bytes, of which most are not held.
        if name.startswith("_") or name in ("held", "n_head", "nbytes", "base", "flags", "data"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


def once(array: np.ndarray | Shared, n_head: int) -> np.ndarray | Shared:
    """Keys or values as they are read by so many heads: those of fewer key heads as Shared, where
    each stands for as many heads as every other; all else as it is."""
    if isinstance(array, Shared) or array.ndim != 4 or array.shape[1] in (0, n_head):
        return array
    return array if n_head % array.shape[1] else Shared(array, n_head)


def held(value: Any) -> Any:
    """What is held of an array, which may be Shared; anything else as it is."""
    return value.held if isinstance(value, Shared) else value


def _frozen(found: Any) -> Any:
    if isinstance(found, np.ndarray):
        found.flags.writeable = False
    return found
