"""One fair queue for everything that keeps torch busy: short passes in the order of asking, long
computations slice by slice.

Passes are fastest one by one. A long computation gives its place away between two slices
(`models.slices`): it waits behind the short ones, so that no reader's sentence waits for more than
one slice of another's. It ends there when its reader has gone, has asked for something else, or has
used up what one computation may take.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.memory.settings import settings
from models.slices import breathing

LOOK = 0.1  # seconds between two looks at whether the reader is still there
# So many short passes may go before a long computation that waits; then it has a slice, however
# many there are.
PATIENCE = 8


class TooLong(ValueError):
    """A computation has taken more time than this server gives to one."""


class Unwanted(BaseException):
    """Nobody is there any more for whom this is worked out. No Exception: what is measured tells a
    reader of those, and goes on."""


_look: ContextVar[Callable[[], None] | None] = ContextVar("look", default=None)


@contextmanager
def looked_after(look: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """What is worked out inside, in no reader's run, calls `look` now and then, which raises
    Unwanted where it is to end. Given is what was called outside."""
    outside = _look.get() or (lambda: None)
    before = _look.set(look)
    try:
        yield outside
    finally:
        _look.reset(before)


def still_wanted() -> None:
    """Raises what ends a run, where its reader has gone or asked for another, or those for whom
    this is worked out have gone."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is not None:
        run.yield_check()
    elif (look := _look.get()) is not None:
        look()


class Turns:
    """A queue of threads of which one has the turn. `seconds`: how long a computation in slices may
    work in all."""

    def __init__(self, seconds: Callable[[], float], wanted: Callable[[], None] = still_wanted):
        self._seconds, self._wanted = seconds, wanted
        self._moved = threading.Condition()
        self._short: deque[object] = deque()
        self._long: deque[object] = deque()
        self._has: object | None = None
        self._owner: int | None = None
        self._passed = 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The turn, after those who asked before. Inside it a long computation breathes. A turn
        within a turn is the same one.

        Raises TooLong out of a computation that has used up its seconds.
        """
        if self._owner == threading.get_ident():
            yield
            return
        ticket, worked = object(), _Stopwatch()
        self._take(ticket, self._short)
        worked.go()
        try:
            with breathing(lambda: self._breathe(ticket, worked), self.aside):
                yield
        finally:
            self._give(ticket)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Whoever has the turn gives it away for as long as it waits for another thread, which may
        need the turn for what it makes."""
        ticket = self._has if self._owner == threading.get_ident() else None
        if ticket is None:
            yield
            return
        self._give(ticket)
        try:
            yield
        finally:
            self._take(ticket, self._long)

    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._short) + len(self._long)

    def _breathe(self, ticket: object, worked: _Stopwatch) -> None:
        self._wanted()
        worked.stop()
        if worked.seconds > self._seconds():
            raise TooLong(
                f"This takes more than the {self._seconds():g} seconds that one computation may "
                "have here. A shorter text takes less."
            )
        if self._short or self._long:
            self._give(ticket)
            self._take(ticket, self._long)
        worked.go()

    def _take(self, ticket: object, line: deque[object]) -> None:
        with self._moved:
            line.append(ticket)
            try:
                while not self._is_next(ticket):
                    self._moved.wait(LOOK)
                    self._wanted()
            except BaseException:  # a reader who has gone is told by one: whatever it is goes on
                line.remove(ticket)
                self._moved.notify_all()
                raise
            line.popleft()
            self._passed = 0 if line is self._long else self._passed + bool(self._long)
            self._has, self._owner = ticket, threading.get_ident()

    def _is_next(self, ticket: object) -> bool:
        if self._has is not None:
            return False
        long_is_due = self._long and (not self._short or self._passed >= PATIENCE)
        return (self._long if long_is_due else self._short)[0] is ticket

    def _give(self, ticket: object) -> None:
        with self._moved:
            if self._has is ticket:
                self._has = self._owner = None
                self._moved.notify_all()


class _Stopwatch:
    """Seconds of work, without those of waiting."""

    def __init__(self) -> None:
        self.seconds, self._since = 0.0, 0.0

    def go(self) -> None:
        self._since = time.monotonic()

    def stop(self) -> None:
        self.seconds += time.monotonic() - self._since


turns = Turns(lambda: settings().max_seconds)
turn, aside = turns.turn, turns.aside
