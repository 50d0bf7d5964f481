"""The shelf: whatever has been computed, by its cause (model, weights' fingerprint, text, edits), bounded by bytes."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from explorer.memory.models import handle
from explorer.memory.settings import settings
from models.recording import Recording

SHELF_BYTES = settings().shelf_bytes


class Shelf:
    """Computed things by key, the least used ones dropped when together they weigh more than `limit` bytes. Safe for threads.

    One thing is made at a time, because short passes are fastest one by one; whoever finds what they want waits for nobody.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.looking, self.making = threading.Lock(), threading.RLock()

    def get(self, key: Hashable, make: Callable[[], Any], weigh: Callable[[Any], int]) -> Any:
        """What lies under `key`, made now if it does not."""
        if (found := self._find(key)) is None:
            with self.making:
                if (found := self._find(key)) is None:
                    found = (make(),)
                    self._put(key, found[0], weigh(found[0]))
        return found[0]

    def _find(self, key: Hashable) -> tuple[Any, ...] | None:
        with self.looking:
            if key in self.held:
                self.held.move_to_end(key)
            return self.held.get(key)

    def _put(self, key: Hashable, value: Any, weight: int) -> None:
        with self.looking:
            self.held[key] = (value, weight)
            while (
                len(self.held) > 1 and sum(weight for _, weight in self.held.values()) > self.limit
            ):
                others = list(self.held)[:-1]
                # To drop what is light would make no room, and it may have been long in the making.
                self.held.pop(
                    next((key for key in others if self.held[key][1] > self.limit / 100), others[0])
                )


_shelf = Shelf(SHELF_BYTES)


def get(key: Hashable, make: Callable[[], Any], weigh: Callable[[Any], int]) -> Any:
    """What lies on the app's one shelf under `key`, made now if it does not."""
    return _shelf.get(key, make, weigh)


def derived(
    recording: Recording,
    what: Hashable,
    make: Callable[[], Any],
    weigh: Callable[[Any], int] = lambda value: 100_000,
) -> Any:
    """Something computed from a recording, kept under `what` beside it."""
    return get(("derived", *cause_of(recording), what), make, weigh)


def kept(
    model: str,
    what: Hashable,
    make: Callable[[], Any],
    weigh: Callable[[Any], int] = lambda value: 100_000,
) -> Any:
    """Something computed from several recordings of a model, kept under `what`, which names them, so that it needs none of them again."""
    return get(("kept", model, handle(model).card.fingerprint, what), make, weigh)


def of_model(recording: Recording, what: tuple[Hashable, ...], make: Callable[[Any], Any]) -> Any:
    """Something of the recording's model alone, kept whatever the text."""
    loaded = handle(recording.model.name)
    return get(
        ("of model", recording.model.name, recording.model.fingerprint, *what),
        lambda: make(loaded),
        lambda _: 2_000_000,
    )


def name_of(recording: Recording, *what: Hashable) -> str:
    """A short name for a picture: equal causes, equal name. Whoever waits for a picture in the browser waits for this name."""
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


def bytes_of(recording: Recording) -> int:
    """What a recording takes in memory."""
    parts = (*recording.streams, *recording.attention)
    return 4 * len(recording.text) + sum(
        getattr(value, "nbytes", 0) for part in parts for value in vars(part).values()
    )
