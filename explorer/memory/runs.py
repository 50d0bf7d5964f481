"""Readers' runs of the script, one after another in the order of asking.

The interpreter runs one thread at a time. Thirty runs begun at once hand it to and fro hundreds of
times each: all of them end late, and they cost a third more. One by one each ends soon. A run that
takes longer than a moment goes on beside the others, so that nobody waits for it. What is made
ahead of a run goes before it.

A thread that waits for the interpreter asks for it after `TURN`. Python's own 5 ms are long for
one whose numbers are made in many short pieces: it waits anew after each.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

LATELY = 1.0  # seconds
MOMENT = 0.25  # seconds that a run has to itself; an ordinary one takes a third of that
AHEAD = 0.08  # seconds that a run waits for what is made ahead of runs, whosever it is
OWN_AHEAD = 0.6  # seconds that it waits for what is made ahead of it of its own text
TURN = 0.0005  # seconds


class Line:
    """A queue of runs, of which one has its `moment`, once it has waited for what is made ahead of
    it, `ahead` at most (seconds)."""

    def __init__(self, moment: float = MOMENT, ahead: float = AHEAD) -> None:
        self._moment, self._longest_ahead = moment, ahead
        self._lock = threading.Lock()
        self._ahead: list[Hashable] = []
        self._one_less = threading.Condition(self._lock)
        self._waiting: deque[threading.Condition] = deque()
        self._first: object | None = None
        self._since = 0.0
        self._begun: deque[float] = deque(maxlen=64)  # when runs began, the last ones

    @contextmanager
    def run(self) -> Iterator[None]:
        """A run of one's own, after those that asked before have ended or had their moment."""
        ticket = threading.Condition(self._lock)
        with self._lock:
            self._waiting.append(ticket)
            while self._waiting[0] is not ticket or self._left() > 0:
                ticket.wait(self._left() if self._waiting[0] is ticket else None)
            self._waiting.popleft()
            self._first, self._since = ticket, time.monotonic()
            self._one_less.wait_for(lambda: not self._ahead, self._longest_ahead)
            self._begun.append(self._since)
            self._wake()
        try:
            yield
        finally:
            with self._lock:
                if self._first is ticket:
                    self._first = None
                    self._wake()

    @contextmanager
    def before(self, what: Hashable = None) -> Iterator[None]:
        """Something that a run to come will need is made, known as `what`: the run waits for it."""
        with self._lock:
            self._ahead.append(what)
        try:
            yield
        finally:
            with self._lock:
                self._ahead.remove(what)
                self._one_less.notify_all()

    def ahead(self) -> int:
        """How much is being made ahead of runs."""
        return len(self._ahead)

    def wait_for(self, what: Hashable, seconds: float = OWN_AHEAD) -> None:
        """Let what is made ahead of this run be made, in so many seconds: both at once take longer
        than one after the other."""
        with self._lock:
            self._one_less.wait_for(lambda: what not in self._ahead, seconds)

    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def begun_lately(self) -> int:
        """How many runs have begun within a second."""
        since = time.monotonic() - LATELY
        with self._lock:
            return sum(each > since for each in self._begun)

    def _left(self) -> float:
        """Seconds until the next may run, whether or not the one that runs has ended."""
        if self._first is None:
            return 0.0
        return self._since + self._moment - time.monotonic()

    def _wake(self) -> None:
        if self._waiting:
            self._waiting[0].notify()


def begin() -> None:
    """Let threads take turns more often, once in a process."""
    sys.setswitchinterval(TURN)


line = Line()
