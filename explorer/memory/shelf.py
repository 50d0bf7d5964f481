"""The shelf: whatever has been computed, by its cause (model, weights' fingerprint, text, edits),
bounded by bytes."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
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

    Each is made once, whoever asks; who wants one thing never waits for the making of another.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._heavy: OrderedDict[Hashable, None] = OrderedDict()  # keys, of what makes room
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

    def _put(self, key: Hashable, value: Any, weight: int) -> None:
        with self.looking:
            self._drop(key)
            self.total += weight
            self.held[key] = (value, weight)
            if weight > self.limit / 100:
                self._heavy[key] = None
            while len(self.held) > 1 and self.total > self.limit:
                # To drop what is light would make no room, and it may have been long in the making.
                heaviest = next(iter(self._heavy), key)
                self._drop(next(iter(self.held)) if heaviest == key else heaviest)

    def _drop(self, key: Hashable) -> None:
        self._heavy.pop(key, None)
        self.total -= self.held.pop(key, (None, 0))[1]


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
        elif isinstance(one, Mapping):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            left += one
        elif hasattr(one, "nbytes"):
            total += int(one.nbytes)
        elif hasattr(one, "__dict__") and not isinstance(one, (type, ModuleType)):
            left += vars(one).values()
        total += EACH
    return total


_shelf = Shelf(SHELF_BYTES)
collector.when_alone.append(lambda: _shelf.let_go())
collector.when_alone.append(pieces.let_go)


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
