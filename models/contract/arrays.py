"""Arrays of any framework as numpy arrays, and arrays that are written as text.

An edit is frozen data that stands in cache keys, files and addresses, so that what it holds of an
array is its text."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NoBase64
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np

WRITTEN = ("f4", "f8")  # the types of numbers that are written as text
MAX_AXES = 2


def as_array(value: Any) -> np.ndarray:
    """A numpy array of what an array of any framework holds (numpy, torch, jax, cupy, lists),
    wherever it lies; halves of 16 bits and less as float32. Raises TypeError for what is no array
    of numbers."""
    if hasattr(value, "detach"):  # torch
        value = _of_torch(value)
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        value = value.get() if hasattr(value, "get") else np.from_dlpack(value)  # cupy: get()
    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of other lengths
        raise TypeError("an array of numbers, and not lists of different lengths") from error
    if array.dtype.kind == "V" or str(array.dtype) in ("bfloat16", "float16"):
        array = array.astype(np.float32)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"an array of numbers, and not {type(value).__name__} of {array.dtype}")
    return array


def _of_torch(tensor: Any) -> np.ndarray:
    try:
        tensor = tensor.detach().to_dense().cpu()
        is_short = str(tensor.dtype).startswith(("torch.bfloat16", "torch.float16", "torch.float8"))
        return (tensor.float() if is_short else tensor).numpy()
    except (NotImplementedError, RuntimeError, TypeError) as error:
        raise TypeError(
            f"an array of numbers, and not a tensor on {tensor.device} of {tensor.dtype}"
        ) from error


class Numbers(str):
    """An array of one or two axes as text, "f4-3x256-...": its type, its shape and its bytes in
    base64. Made of an array of any framework, or of such a text; equal where every number is.

    Raises ValueError for numbers that are not finite, for another number of axes, and for a text
    that is none; TypeError for what is no array."""

    array: np.ndarray

    def __new__(cls, values: Any) -> Numbers:
        if isinstance(values, Numbers):
            return values
        array = _read(values) if isinstance(values, str) else _floats(as_array(values))
        if not 1 <= array.ndim <= MAX_AXES or not array.size:
            raise ValueError(
                f"numbers of an edit have the shape (width) or (token, width), not {array.shape}"
            )
        if not np.isfinite(array).all():
            raise ValueError("numbers of an edit are finite; some of these are not")
        shape = "x".join(map(str, array.shape))
        code = urlsafe_b64encode(array.tobytes()).decode().rstrip("=")
        text = super().__new__(cls, f"{array.dtype.str[1:]}-{shape}-{code}")
        text.array = array
        array.flags.writeable = False
        return text

    def like(self, x: Any) -> Any:
        """The numbers as x, an array or a tensor, has its own."""
        return getattr(x, "new_tensor", np.asarray)(self.array)

    @property
    def digest(self) -> str:
        """Eight digits that name the numbers."""
        return blake2b(self.encode(), digest_size=4).hexdigest()


def _floats(array: np.ndarray) -> np.ndarray:
    kind = np.dtype("<f8") if array.dtype == np.float64 else np.dtype("<f4")
    return np.array(array, dtype=kind, order="C")


def _read(text: str) -> np.ndarray:
    """The array that a text says. Raises ValueError."""
    kind, _, rest = text.partition("-")
    size, _, code = rest.partition("-")
    lengths = size.split("x")
    if kind not in WRITTEN or not all(each.isdecimal() and len(each) < 10 for each in lengths):
        raise ValueError(f"{text[:20]!r} is no text of numbers")
    shape = tuple(map(int, lengths))
    try:
        data = urlsafe_b64decode(code + "=" * (-len(code) % 4))
    except (NoBase64, ValueError) as error:
        raise ValueError(f"{text[:20]!r} is no text of numbers") from error
    if len(data) != prod(shape) * int(kind[1]):
        raise ValueError(
            f"{text[:20]!r} has {len(data)} bytes of numbers, another size than it says"
        )
    return np.frombuffer(data, dtype=f"<{kind}").reshape(shape).copy()
