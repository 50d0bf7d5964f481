"""A cache of computed values, bounded by bytes: each is computed once for all who ask for it."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from gc import get_referents
from sys import getsizeof
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from models.contract.cancellation import NoRoom, expect_wanted
from models.contract.model import Model
from models.contract.recording import Recording
from models.network import buffer_pool
from models.runtime import host

LEAVES = frozenset((int, float, bool, type(None), str, bytes))  # that hold nothing else
LARGE_BYTES = 2**24  # bytes; who wants less waits for nothing
MODEST_BYTES = 2**26  # bytes of a computation that waits where there is no room at all
POLL_INTERVAL = 0.1  # seconds between two looks at whether a result is still wanted


class PendingEntry:
    """A value that is being computed: others who request it wait for that computation."""

    def __init__(self) -> None:
        self.owner, self.ended = threading.get_ident(), threading.Event()
        self.made: tuple[Any, ...] = ()
        self.reserved = 0  # bytes taken for it


def _hold_for_run(value: Any, weight: int) -> None:
    if weight >= LARGE_BYTES:
        host.current.memory.holds(weight, value)


class EvictedRef:
    """A heavy value that the cache has dropped: it may be referenced elsewhere, or a part of a
    recording, which keeps the memory of the whole."""

    def __init__(self, value: Any, weight: int) -> None:
        self.value, self.weight = weakref.ref(value), weight
        self._memory = [(weakref.ref(each), each.nbytes) for each in _memory_of(value)]

    def alive(self) -> int:
        """Bytes of it that are still referenced."""
        if self.value() is not None:
            return self.weight
        return sum(size for memory, size in self._memory if memory() is not None)


def _memory_of(value: Any) -> Iterable[np.ndarray]:
    """The arrays in which those of a recording lie; of all else nothing."""
    parts = (*value.streams, *value.attention) if isinstance(value, Recording) else ()
    arrays = [array for part in parts for array in vars(part).values()]
    owners = [
        array.base if isinstance(array.base, np.ndarray) else array
        for array in arrays
        if isinstance(array, np.ndarray)
    ]
    return {id(array): array for array in owners}.values()


class Cache:
    """Computed values by key; the least recently used are dropped when all together weigh more than
    `limit` bytes. Thread-safe.

    Each value is computed once for all who request it; no request waits for the computation of
    another key. A heavy value that was dropped while it is still referenced counts as long as it
    lives, and a new request returns it: the limit is one on all values in use, and on what is taken
    for those that are being made.

    beyond: bytes that one computation may take beside the limit, while all others wait; None for no
    such bound. So never more than `limit + beyond` bytes are taken."""

    def __init__(self, limit: int, beyond: int | None = None) -> None:
        self.limit, self.beyond = limit, beyond
        self.entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._heavy: OrderedDict[Hashable, None] = OrderedDict()  # keys, of what makes room
        self._evicted: dict[Hashable, EvictedRef] = {}  # heavy, and maybe alive
        self.total = 0  # bytes of all that is held
        self._working: dict[int, int] = {}  # bytes taken for computations, by thread
        self.lock, self.take_lock = threading.Lock(), threading.Lock()
        self.pending: dict[Hashable, PendingEntry] = {}

    def get(
        self,
        key: Hashable,
        make: Callable[[], Any],
        keep: bool = True,
    ) -> Any:
        """The value under `key`, made now where it is missing. keep: False for a value that is
        dropped at once where it is heavy."""
        expect_wanted()
        while True:
            with self.lock:
                if key in self.entries:
                    self.entries.move_to_end(key)
                    if key in self._heavy:
                        self._heavy.move_to_end(key)
                        _hold_for_run(*self.entries[key])
                    return self.entries[key][0]
                if (revived := self._revive(key)) is not None:
                    return revived
                pending = self.pending.get(key)
                entry = PendingEntry()
                if pending is None:
                    self.pending[key] = entry
            if pending is None:
                return self._make(key, entry, make, keep)
            if pending.owner == threading.get_ident():
                return make()  # asked for within its own making
            with host.current.slot_released(), host.current.memory.waiting():
                while not pending.ended.wait(POLL_INTERVAL):
                    host.current.check_cancelled()
            if pending.made:
                return pending.made[0]  # else whoever made it was stopped: the next one makes it

    def peek(self, key: Hashable) -> Any:
        """The value under `key`, None where it is missing; nothing is made or waited for."""
        with self.lock:
            if key in self.entries:
                self.entries.move_to_end(key)
            return self.entries.get(key, (None, 0))[0]

    def _make(
        self,
        key: Hashable,
        entry: PendingEntry,
        make: Callable[[], Any],
        keep: bool,
    ) -> Any:
        try:
            value = make()
            weight = weight_of(value)
            with self.lock:
                entry.reserved = 0
                self._insert(key, value, weight)
                if not keep and key in self._heavy:
                    self._drop(key)
            _hold_for_run(value, weight)
            entry.made = (value,)
            return value
        finally:
            with self.lock:
                self.pending.pop(key, None)
            entry.ended.set()

    def weigh_again(self, key: Hashable, value: Any) -> None:
        """Keep a value that has grown since it was made, at what it weighs now."""
        weight = weight_of(value)
        with self.lock:
            self._insert(key, value, weight)

    def weight(self) -> int:
        """The weight of all cached values in bytes."""
        with self.lock:
            return self.total

    def evict_all(self) -> None:
        """Keep only light, recently used values, at most a twentieth of the limit: for a server
        without readers."""
        with self.lock:
            for key, (_, weight) in list(self.entries.items()):
                if weight > self.limit / 100 or self.total > self.limit / 20:
                    self._drop(key)

    def make_room(self, size: int) -> bool:
        """Drop heavy values, the least recently used first, until so many bytes fit: before they
        are allocated, not after. True where there was not enough room."""
        with self.lock:
            scarce = not self._has_room(size + buffer_pool.pooled_bytes())
            self._drop_for(size)
        return scarce

    def fits(self, size: int) -> bool:
        """True where so many bytes fit, once heavy values are dropped."""
        with self.lock:
            self._drop_for(size)
            return self._has_room(size)

    def take(self, size: int) -> bool:
        """Reserve so many bytes for this thread's computation: drop heavy values, and where that is
        not enough, end the runs that reference them. True where anything was dropped. Raises NoRoom
        where there cannot be so many."""
        scarce = self.make_room(size)
        if size >= LARGE_BYTES:
            self.expect(size)
            host.current.memory.release_oldest()
            self._wait_for(size, lambda: self._begin(size))
        return scarce

    @contextmanager
    def working(self, size: int) -> Iterator[None]:
        """Compute with so many bytes, beside what is kept of it: they are taken at the beginning
        and free at the end. Within another such computation of the thread only what is more than
        its bytes. Raises NoRoom as `take`, before anything is computed."""
        thread = threading.get_ident()
        before = self._working.get(thread, 0)
        if size < LARGE_BYTES or size <= before:
            yield
            return

        def begin() -> None:
            with self.lock:
                self._working[thread] = size

        self.expect(size)
        if not self._begin_beside(size - before, begin):
            if self.make_room(size - before):
                buffer_pool.shrink()
            self._wait_for(size - before, begin, beyond=size < MODEST_BYTES)
        try:
            with host.current.memory.working(size):
                yield
        finally:
            with self.lock:
                self._working[thread] = before
                if not before:
                    del self._working[thread]

    def _begin_beside(self, size: int, begin: Callable[[], None]) -> bool:
        """Begin what takes so many bytes where these fit beside all that is kept."""
        with self.take_lock:
            with self.lock:
                taken = self.total + self._outside_bytes() + size
            if fits := self.beyond is not None and taken <= self.limit + self.beyond:
                begin()
            return fits

    def expect(self, size: int) -> None:
        """Raises NoRoom for more bytes than one computation may take, however few others take."""
        if self.beyond is not None and size > (most := self.limit + self.beyond):
            raise NoRoom(
                f"This takes {_size_text(size)} of memory, and one computation may take "
                f"{_size_text(most)} here. A shorter text takes less."
            )

    def _wait_for(self, size: int, begin: Callable[[], None], beyond: bool = False) -> None:
        """Begin what takes so many bytes as soon as it may. beyond: as if nobody were before it."""

        def fits(beyond: bool) -> bool:
            with self.take_lock:
                if beyond:
                    may = self._fits_beyond(size)
                else:
                    may = self.fits(size) and host.current.memory.may_take(size, self.limit)
                if may:
                    begin()
                return may

        if not (fits(False) or beyond and fits(True)):
            with host.current.slot_released():
                host.current.memory.wait_for(size, fits)

    def _fits_beyond(self, size: int) -> bool:
        with self.lock:
            self._drop_for(size)
            taken = self.total + self._outside_bytes() + size
        return self.beyond is None or taken <= self.limit + self.beyond

    def _begin(self, size: int) -> None:
        host.current.memory.holds(size)
        thread = threading.get_ident()
        with self.lock:
            mine = (each for each in reversed(self.pending.values()) if each.owner == thread)
            if (entry := next(mine, None)) is not None:
                entry.reserved += size

    def _insert(self, key: Hashable, value: Any, weight: int) -> None:
        self._drop(key)
        self._evicted.pop(key, None)
        self.total += weight
        self.entries[key] = (value, weight)
        if weight > self.limit / 100:
            self._heavy[key] = None
        while len(self.entries) > 1 and self.total > self.limit:
            # To drop what is light would make no room, and it may have been long in the making.
            oldest_heavy = next(iter(self._heavy), key)
            self._drop(next(iter(self.entries)) if oldest_heavy == key else oldest_heavy)
        # What computations take may lie beyond the limit, and drops nothing that is kept.
        most = self.limit + min(sum(self._working.values()), self.beyond or 0)
        while self.total + self._outside_bytes() > most:
            oldest_heavy = next(iter(self._heavy), key)
            if oldest_heavy == key:
                return
            self._drop(oldest_heavy)

    def _revive(self, key: Hashable) -> Any:
        """Restore a value that was dropped under `key` but is still referenced elsewhere; else
        None."""
        evicted = self._evicted.get(key)
        value = evicted and evicted.value()
        if evicted and value is not None:
            self._insert(key, value, evicted.weight)
            _hold_for_run(value, evicted.weight)
        return value

    def _outside_bytes(self) -> int:
        """Bytes of dropped values that are still referenced, and of those being computed."""
        alive = {key: ref.alive() for key, ref in self._evicted.items()}
        self._evicted = {key: ref for key, ref in self._evicted.items() if alive[key]}
        reserved = sum(each.reserved for each in self.pending.values())
        return sum(alive.values()) + reserved + sum(self._working.values())

    def _has_room(self, size: int) -> bool:
        return self.total + self._outside_bytes() + size <= self.limit

    def _drop_for(self, size: int) -> None:
        while self._heavy and not self._has_room(size):
            self._drop(next(iter(self._heavy)))

    def _drop(self, key: Hashable) -> None:
        value, weight = self.entries.pop(key, (None, 0))
        self.total -= weight
        if key in self._heavy:
            del self._heavy[key]
            with suppress(TypeError):  # bytes and the like: whoever holds them has done so alone
                self._evicted[key] = EvictedRef(value, weight)


def _size_text(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"


def weight_of(value: Any) -> int:
    """The bytes that a value keeps in memory, each object counted once: its arrays, of a part of an
    array the whole that it lies in, texts, what its functions close over, and all objects between.
    Classes, modules and loaded models are everyone's."""
    total, visited, found = 0, set[int](), [value]
    kinds: dict[type, str] = {}
    while found:
        new = dict(zip(map(id, found), found))
        for each in visited.intersection(new):
            del new[each]
        visited.update(new)
        found, others = [], []
        for one in new.values():
            kind = kinds.get(type(one)) or kinds.setdefault(type(one), _kind_of(type(one)))
            if kind == "leaf":
                total += getsizeof(one)
            elif kind == "other":
                others.append(one)
            elif kind == "array":
                total += getsizeof(one)
                found += (one.base, *(one.flat if one.dtype.hasobject else ()))
            elif kind == "function":
                found += (one.__closure__, one.__defaults__)
            elif kind == "tensor":
                storage = one.untyped_storage()
                if storage.data_ptr() not in visited:
                    visited.add(storage.data_ptr())
                    total += storage.nbytes()
        total += sum(map(getsizeof, others))
        found += get_referents(*others)
    return total


def _kind_of(of: type) -> str:
    """The kind of object that a class makes, by which `weight_of` counts it; "shared" for what is
    everyone's."""
    if of in LEAVES:
        return "leaf"
    if issubclass(of, np.ndarray):
        return "array"
    if issubclass(of, FunctionType):
        return "function"
    if hasattr(of, "untyped_storage"):
        return "tensor"
    is_shared = issubclass(of, (type, ModuleType, Model)) or hasattr(of, "named_parameters")
    return "shared" if is_shared else "other"
