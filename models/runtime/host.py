"""Resources that those who share a process share: turns at the processor, memory, and which models
there are.

A caller of the library has a process alone, which is `Host`. The app hands in its own, with queues
and limits, once at its start: `use`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from models.contract import cancellation
from models.contract.cancellation import NoRoom
from models.contract.edits import Edit
from models.contract.model import Model
from models.contract.recording import Recording
from models.runtime import registry

Result = TypeVar("Result")
FULL = "Long texts of others fill the memory of this server just now. Try again in a moment."
TOO_MUCH = "This takes more memory than one computation may take here. A shorter text takes less."
MAX_MODELS = 8  # loaded models that a caller of the library has at a time without holding them


class Memory:
    """Memory of one caller alone: nobody waits for it, and nobody waits for another."""

    def waiting(self) -> AbstractContextManager[None]:
        """The caller waits inside this for what another thread makes."""
        return nullcontext()

    def holds(self, size: int, value: Any = None) -> None:
        """The caller holds a large value of so many bytes."""

    def release_oldest(self) -> None:
        """Let go of the caller's oldest large value, before a new one."""

    def release(self) -> None:
        """Let go of all large values of the caller, who has made of them what it wants."""

    def may_take(self, size: int, limit: int) -> bool:
        """True where the caller may take so many bytes beside all others."""
        return True

    def wait_for(self, size: int, fits: Callable[[bool], bool]) -> None:
        """Wait until so many bytes are taken. fits: takes them where they fit; fits(True) beside
        what the cache may hold, as far as a computation may go. Raises NoRoom where it may not."""
        if not (fits(False) or fits(True)):
            raise NoRoom(TOO_MUCH)

    def working(self, size: int) -> AbstractContextManager[None]:
        """The caller computes with so many bytes inside this."""
        return nullcontext()


class Host:
    """A process with one caller: no queue, no limits, and the models that it has loaded.

    cache_bytes: of what has been computed and is kept, or is in use. work_bytes: that one
    computation may take beside, while all others wait, None for no such bound. memory: who may take
    much of it."""

    cache_bytes: int = 320 * 2**20  # room for one recording of smollm2 at 253 tokens, 262 MiB
    work_bytes: int | None = None
    memory: Memory = Memory()

    def __init__(self) -> None:
        self._models: OrderedDict[str, Model] = OrderedDict()
        self._lock = threading.Lock()

    def model(self, name: str) -> Model:
        """The loaded model of that name. Raises ValueError, saying why, for one that cannot be
        used."""
        with self._lock:
            if (model := self._models.get(name)) is not None:
                self._models.move_to_end(name)
                return model
        self.adopt(model := registry.load(name))
        return model

    def adopt(self, model: Model) -> None:
        """Keep a loaded model under its own name, in the place of one that had it."""
        with self._lock:
            self._models[model.name] = model
            self._models.move_to_end(model.name)
            while len(self._models) > MAX_MODELS:
                self._models.popitem(last=False)

    def is_loaded(self, name: str) -> bool:
        """True for a model in memory."""
        return name in self._models

    def no_room(self, name: str) -> str:
        """Reason why a model cannot be loaded now, "" where it can."""
        return ""

    def truncate(self, text: str) -> str:
        """As much of a text as is read here."""
        return text

    def slot(self) -> AbstractContextManager[None]:
        """Wait for a slot at the processor, and compute in it."""
        return nullcontext()

    def slot_released(self) -> AbstractContextManager[None]:
        """Leave the slot to others while this thread waits for another one."""
        return nullcontext()

    def in_slot(self, make: Callable[[], Result]) -> Result:
        """The result of `make`, computed in a turn."""
        with self.slot():
            return make()

    def exclusively(self, make: Callable[[], Result]) -> Result:
        """The result of `make`, which needs much memory: one at a time in the whole process."""
        return make()

    def check_cancelled(self) -> None:
        """End this computation, by an exception, where nobody waits for its result any more."""

    def record(
        self,
        model: Model,
        text: str | tuple[int, ...],
        edits: tuple[Edit, ...],
        target: str | tuple[int, ...] | None,
    ) -> Recording:
        """A recording by a model, in a turn."""
        return self.in_slot(lambda: model.record(text, edits, target))

    def reads_together(self, model: Model, text: str) -> bool:
        """True where a text is read in one pass with those of others who ask for the same model."""
        return False

    def record_together(self, model: Model, text: str) -> Recording:
        """A recording of a text, made in one pass with those of others. Raises NotImplementedError
        where `reads_together` is never true."""
        raise NotImplementedError


current = Host()


def use(host: Host) -> None:
    """Make this the host of the process."""
    global current
    current = host
    cancellation.use(host.check_cancelled)
