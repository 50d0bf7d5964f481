"""The shelf: whatever has been computed, by its cause (model, weights' fingerprint, text, edits),
bounded by bytes."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np

from explorer.memory import collector
from explorer.memory.models import handle
from explorer.memory.settings import settings
from explorer.memory.turns import LOOK, aside, still_wanted
from models import pieces
from models.recording import Recording

SHELF_BYTES = settings().shelf_bytes
PLAIN = frozenset((int, float, bool, type(None)))
EACH = 16  # bytes an object takes at least, beside its arrays and texts


class Making:
    """Something that is being made: others who want it wait for whoever makes it."""

    def __init__(self) -> None:
        self.owner, self.ended = threading.get_ident(), threading.Event()
        self.made: tuple[Any, ...] = ()


class Shelf:
    """Computed things by key, the least used ones dropped when together they weigh more than
    `limit` bytes. Safe for threads.

    Each is made once, whoever asks; who wants one thing never waits for the making of another. What
    is heavy and was dropped while somebody works with it counts as long as it lives, and whoever
    asks for it gets that one: the bound is one of all that was handed out.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._heavy: OrderedDict[Hashable, None] = OrderedDict()  # keys, of what makes room
        self._dropped: dict[Hashable, tuple[weakref.ref[Any], int]] = {}  # heavy, and maybe alive
        self.total = 0  # bytes of all that is held
        self.looking = threading.Lock()
        self.making: dict[Hashable, Making] = {}

    def get(
        self, key: Hashable, make: Callable[[], Any], weigh: Callable[[Any], int] | None = None
    ) -> Any:
        """What lies under `key`, made now if it does not. It weighs `weigh(it)` bytes, by itself
        what its arrays and texts take."""
        while True:
            with self.looking:
                if key in self.held:
                    self.held.move_to_end(key)
                    if key in self._heavy:
                        self._heavy.move_to_end(key)
                    return self.held[key][0]
                if (alive := self._still_alive(key)) is not None:
                    return alive
                making = self.making.get(key)
                mine = Making()
                if making is None:
                    self.making[key] = mine
            if making is None:
                return self._make(key, mine, make, weigh)
            if making.owner == threading.get_ident():
                return make()  # asked for within its own making
            with aside():
                while not making.ended.wait(LOOK):
                    still_wanted()
            if making.made:
                return making.made[0]  # else whoever made it was stopped: the next one makes it

    def _make(
        self,
        key: Hashable,
        making: Making,
        make: Callable[[], Any],
        weigh: Callable[[Any], int] | None,
    ) -> Any:
        try:
            value = make()
            # A bare array is weighed at once, whatever is said of it.
            least = weight_of(value) if isinstance(value, np.ndarray) else 0
            self._put(key, value, max(least, weigh(value)) if weigh else weight_of(value))
            making.made = (value,)
            return value
        finally:
            with self.looking:
                self.making.pop(key, None)
            making.ended.set()

    def weight(self) -> int:
        """What all of it weighs, in bytes."""
        with self.looking:
            return self.total

    def let_go(self) -> None:
        """Keep only what is light and was asked for last, a twentieth of the bound at most: for
        when nobody is there to ask again."""
        with self.looking:
            for key, (_, weight) in list(self.held.items()):
                if weight > self.limit / 100 or self.total > self.limit / 20:
                    self._drop(key)

    def make_room(self, coming: int) -> bool:
        """Drop what is heavy, the least used first, until so many bytes more have room: before they
        are taken, not after. True where there was not enough."""
        with self.looking:
            scarce = self.total + self._elsewhere() + coming > self.limit
            while self._heavy and self.total + self._elsewhere() + coming > self.limit:
                self._drop(next(iter(self._heavy)))
        return scarce

    def _put(self, key: Hashable, value: Any, weight: int) -> None:
        with self.looking:
            self._lay(key, value, weight)

    def _lay(self, key: Hashable, value: Any, weight: int) -> None:
        self._drop(key)
        self._dropped.pop(key, None)
        self.total += weight
        self.held[key] = (value, weight)
        if weight > self.limit / 100:
            self._heavy[key] = None
        while len(self.held) > 1 and self.total > self.limit:
            # To drop what is light would make no room, and it may have been long in the making.
            heaviest = next(iter(self._heavy), key)
            self._drop(next(iter(self.held)) if heaviest == key else heaviest)
        while self.total + self._elsewhere() > self.limit:
            heaviest = next(iter(self._heavy), key)
            if heaviest == key:
                return
            self._drop(heaviest)

    def _still_alive(self, key: Hashable) -> Any:
        """What was dropped under `key` and is still held by somebody, laid back; else None."""
        found, weight = self._dropped.get(key, (lambda: None, 0))
        if (value := found()) is not None:
            self._lay(key, value, weight)
        return value

    def _elsewhere(self) -> int:
        """Bytes of what was dropped and is still held by somebody."""
        self._dropped = {key: one for key, one in self._dropped.items() if one[0]() is not None}
        return sum(weight for _, weight in self._dropped.values())

    def _drop(self, key: Hashable) -> None:
        value, weight = self.held.pop(key, (None, 0))
        self.total -= weight
        if key in self._heavy:
            del self._heavy[key]
            with suppress(TypeError):  # bytes and the like: whoever holds them has done so alone
                self._dropped[key] = weakref.ref(value), weight


def weight_of(value: Any) -> int:
    """The bytes that a value keeps in memory: its arrays, each counted once and a view as the whole
    array below it, texts, and a little for every object."""
    seen: set[int] = set()
    total, left = 0, [value]
    while left:
        one = left.pop()
        if type(one) in PLAIN:
            total += EACH
            continue
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            if isinstance(one.base, np.ndarray):
                left.append(one.base)
            else:
                total += one.nbytes
        elif isinstance(one, (str, bytes, bytearray)):
            total += len(one)
        elif isinstance(one, (list, tuple, set, frozenset)):
            left += one
        elif isinstance(one, Mapping):  # after the others, since it takes longest to ask
            left += [*one.keys(), *one.values()]
        elif hasattr(one, "nbytes"):
            total += int(one.nbytes)
        elif hasattr(one, "__dict__") and not isinstance(one, (type, ModuleType)):
            left += vars(one).values()
        total += EACH
    return total


_shelf = Shelf(SHELF_BYTES)
collector.when_alone.append(lambda: _shelf.let_go())
collector.when_alone.append(pieces.let_go)
collector.remembered += [lambda: _shelf.total, pieces.kept]
pieces.before_lending.append(lambda coming: _shelf.make_room(coming))


def get(key: Hashable, make: Callable[[], Any], weigh: Callable[[Any], int] | None = None) -> Any:
    """What lies on the app's one shelf under `key`, made now if it does not."""
    return _shelf.get(key, make, weigh)


def derived(
    recording: Recording,
    what: Hashable,
    make: Callable[[], Any],
    weigh: Callable[[Any], int] | None = None,
) -> Any:
    """Something computed from a recording, kept under `what` beside it."""
    return get(("derived", *cause_of(recording), what), make, weigh)


def is_derived(recording: Recording, what: Hashable) -> bool:
    """True where `derived` has something already."""
    return ("derived", *cause_of(recording), what) in _shelf.held


def kept(
    model: str,
    what: Hashable,
    make: Callable[[], Any],
    weigh: Callable[[Any], int] | None = None,
) -> Any:
    """Something computed from several recordings of a model, kept under `what`, which names them,
    so that it needs none of them again."""
    return get(("kept", model, handle(model).card.fingerprint, what), make, weigh)


def of_model(recording: Recording, what: tuple[Hashable, ...], make: Callable[[Any], Any]) -> Any:
    """Something of the recording's model alone, kept whatever the text."""
    loaded = handle(recording.model.name)
    return get(
        ("of model", recording.model.name, recording.model.fingerprint, *what),
        lambda: make(loaded),
    )


def name_of(recording: Recording, *what: Hashable) -> str:
    """A short name for a picture: equal causes, equal name. Whoever waits for a picture in the
    browser waits for this name."""
    cause = (*cause_of(recording), what)
    return hashlib.sha256(repr(cause).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def cause_of(recording: Recording) -> tuple[Hashable, ...]:
    """What made a recording: equal causes, equal numbers."""
    # The ids too: what a translator said may be split otherwise than the same text typed for it.
    return (
        recording.model.name,
        recording.model.fingerprint,
        recording.text,
        recording.target,
        recording.edits,
        recording.streams[-1].ids.tobytes(),
    )
