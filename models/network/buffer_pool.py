"""Pool of large buffers that passes left and that nothing references any more.

The system allocates fresh memory page by page as it is first touched. For the 95 MB of a recording
of 512 tokens this can take four times as long as the pass itself, on a virtual machine whose host
has to find each page."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from math import prod
from time import monotonic

import numpy as np

MIN_BUFFER_BYTES, MAX_POOL_BYTES = 2**20, 2**27  # bytes of a piece that is kept, and of all of them
SCARCE_POOL_BYTES = 2**25  # bytes of all that are kept where room is scarce
# While a deep model reads long texts: 262 MiB are a recording of smollm2 at 253 tokens.
LARGE_POOL_BYTES, LARGE_FOR = 320 * 2**20, 60.0  # bytes of all, and seconds after the last of them
READY_BYTES = 2**24  # bytes of a piece for which another is made ready, for the next long text
READY_AFTER = 1.0  # seconds
PAGE_BYTES, ITEM_BYTES = 4096, 4  # bytes of a page, and of a number
SIZE_STEPS = 8  # sizes between one and its double, so that what texts of like length leave fits


class PooledBuffer:
    """The first `n` numbers of memory that is lent: it comes back when the last array that lies in
    it is gone."""

    def __init__(self, memory: np.ndarray, n: int) -> None:
        self.__array_interface__ = memory[:n].__array_interface__
        self.memory = memory  # all of which is counted
        weakref.finalize(self, _release, memory).atexit = False


_free_buffers: deque[np.ndarray] = deque()
_scarce = False  # whether something had to go for the last one that was lent
_large_until = 0.0  # the moment until which a large piece is kept
_pending_sizes: list[int] = []  # sizes that are being made room for, in numbers
# What makes room for so many bytes of fresh memory, and says whether something had to go for it.
before_lending: list[Callable[[int], bool]] = []


def acquire(n: int) -> np.ndarray:
    """`n` float32 numbers; in them stands whatever stood there before. Room for them is made first:
    what goes may leave its memory, and where room is scarce little is kept beside."""
    global _scarce, _large_until
    step = 2 ** max(n.bit_length() - SIZE_STEPS.bit_length(), 0)
    size = -(-n // step) * step
    if n * ITEM_BYTES >= MIN_BUFFER_BYTES:
        _pending_sizes.append(size)
        try:
            _scarce = make_room(n * ITEM_BYTES)
        finally:
            _pending_sizes.remove(size)
    memory = _take_free(size)
    if MAX_POOL_BYTES < size * ITEM_BYTES <= LARGE_POOL_BYTES:
        _large_until = monotonic() + LARGE_FOR
    _trim(SCARCE_POOL_BYTES if _scarce else _most_bytes())
    if memory is not None:
        return np.asarray(PooledBuffer(memory, n))
    if not MIN_BUFFER_BYTES <= size * ITEM_BYTES <= LARGE_POOL_BYTES:
        return np.empty(n, dtype=np.float32)
    memory = np.empty(size, dtype=np.float32)
    if READY_BYTES <= memory.nbytes <= MAX_POOL_BYTES and not _scarce:
        timer = threading.Timer(READY_AFTER, preallocate, [size])
        timer.daemon = True
        timer.start()
    return np.asarray(PooledBuffer(memory, n))


def make_room(size: int) -> bool:
    """Make room for so many bytes that are to come; True where something had to go."""
    return any([make(size) for make in before_lending])


def _take_free(size: int) -> np.ndarray | None:
    """A piece of `size` numbers that is kept, for whoever asks first."""
    for _ in range(len(_free_buffers)):
        try:
            memory = _free_buffers.popleft()
        except IndexError:  # another thread took it
            return None
        if len(memory) == size:
            return memory
        _free_buffers.append(memory)
    return None


def preallocate(size: int) -> None:
    """Keep a piece of `size` numbers that was touched, unless one is kept already or room has
    become scarce."""
    if not _scarce and all(len(memory) != size for memory in tuple(_free_buffers)):
        memory = np.empty(size, dtype=np.float32)
        memory[:: PAGE_BYTES // ITEM_BYTES] = 0  # others go on meanwhile
        _release(memory)


def array(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array to be filled, in lent memory where its numbers are float32."""
    n = prod(shape)
    return acquire(n).reshape(shape) if dtype == np.float32 else np.empty(shape, dtype)


def clear() -> None:
    """Hand what is kept back to the system."""
    _free_buffers.clear()


def shrink() -> None:
    """Keep little, since memory is scarce."""
    _trim(SCARCE_POOL_BYTES)


def pooled_bytes() -> int:
    """The size in bytes of the free buffers that the pool keeps for reuse."""
    return sum(memory.nbytes for memory in tuple(_free_buffers))


def _release(memory: np.ndarray) -> None:
    # No lock: this may be called wherever an array dies, inside `lend` too.
    _free_buffers.append(memory)
    is_scarce = _scarce and len(memory) not in _pending_sizes
    _trim(SCARCE_POOL_BYTES if is_scarce else _most_bytes())


def _most_bytes() -> int:
    """Bytes of all pieces that are kept where room is not scarce."""
    return LARGE_POOL_BYTES if monotonic() < _large_until else MAX_POOL_BYTES


def _trim(size: int) -> None:
    while pooled_bytes() > size:
        try:
            _free_buffers.popleft()
        except IndexError:
            break
