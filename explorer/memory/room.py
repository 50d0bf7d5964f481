"""Room for long texts: who may take much memory now, and who waits until another has let go.

A run of the script, or a step in the background, lets go of what it looked at when it ends. What a
text leaves behind may take a third of all there is, and several readers at once with two of them
each would take many times that. So whoever wants more than there is room for waits until those who
hold something have ended. Of those who all wait the first goes on, whatever it takes: everybody
gets there, one after the other. What is short waits for nothing.

Work in the background takes nothing while a reader waits, and one that can be done again is ended
for a reader's sake (`GaveWay`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any

from explorer.memory.turns import LOOK, looked_after, still_wanted

HELD = 2  # things that a run holds: most pages read a text twice
LONG = 2**24  # bytes; who wants less waits for nothing
LONGEST = 30.0  # seconds that anyone waits for others to end
LONGEST_BEHIND = 60.0  # seconds that work in the background waits


class GaveWay(BaseException):
    """Work in the background has ended for a reader's sake, and is to be done again later. No
    Exception: what is measured tells a reader of those, and goes on."""


@dataclass(eq=False)
class Work:
    """A run or a step. behind: it is in the background. number: its place among those who hold
    something or wait to, None for one that does neither. most: bytes of the largest thing that it
    holds; held: the last ones. asks: it waits for room; waits: for anything."""

    behind: bool
    number: int | None = None
    most: int = 0
    held: list[Any] = field(default_factory=list)
    asks: bool = False
    waits: bool = False


class Room:
    """Who holds something long, and who waits for room."""

    def __init__(self, longest: float = LONGEST, behind: float = LONGEST_BEHIND) -> None:
        self._longest = {False: longest, True: behind}
        self._moved = threading.Condition()
        self._works: dict[int, Work] = {}  # by thread
        self._numbers = count()

    @contextmanager
    def work(self, behind: bool = False) -> Iterator[None]:
        """A run or a step: what it holds of the shelf it holds to its end. One within another is
        the same."""
        me = threading.get_ident()
        if me in self._works:
            yield
            return
        self._works[me] = Work(behind)
        try:
            yield
        finally:
            with self._moved:
                self._works.pop(me).held = []  # whoever looks at all works just now holds it too
                self._moved.notify_all()

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Inside, the work of this thread ends with GaveWay as soon as a reader waits for what it
        holds."""
        work = self._works.get(threading.get_ident(), Work(True))

        def look() -> None:
            outside()
            if work.most and self._readers_ask():
                raise GaveWay

        with looked_after(look) as outside:
            yield

    def let_pass(self) -> None:
        """Wait until no reader waits for room, for as long as anyone waits at most: the work of
        this thread holds nothing."""
        if (work := self._works.get(threading.get_ident())) is not None:
            work.number, work.most = None, 0
        until = time.monotonic() + self._longest[True]
        while self._readers_ask() and time.monotonic() < until:
            self._wait()

    def holds(self, size: int, value: Any = None) -> None:
        """The work of this thread holds something long from now on, of so many bytes; a run holds
        the last ones of them itself, so that none is made twice in it."""
        if (work := self._works.get(threading.get_ident())) is not None:
            work.number = next(self._numbers) if work.number is None else work.number
            work.most = max(work.most, size)
            if value is not None and not work.behind:
                work.held = [*(each for each in work.held if each is not value), value][-HELD:]

    def lets_go(self) -> None:
        """The run of this thread takes another long thing: the first of those that it holds goes
        where there are as many as a run holds."""
        if (work := self._works.get(threading.get_ident())) is not None:
            work.held = work.held[1 - HELD :]

    def has_place(self, size: int, limit: int) -> bool:
        """True where the work of this thread may take so many bytes beside all others, each of
        which may want its largest twice: most pages read a text twice. One that holds something
        has its place, others do not overtake; the background has none while a reader waits."""
        work = self._works.get(threading.get_ident())
        if work is None or work.most:
            return work is None or not (work.behind and self._readers_ask())
        others = [each for each in tuple(self._works.values()) if each is not work]
        if any(each.asks and _order(each) < _order(work) for each in others):
            return False
        most = sum(each.most for each in others)
        return not most or 2 * (size + most) <= limit

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The work of this thread waits for what another thread makes, which may need room."""
        work = self._works.get(threading.get_ident(), Work(False))
        before, work.waits = work.waits, True
        try:
            yield
        finally:
            work.waits = before

    def wait_for(self, size: int, fits: Callable[[], bool]) -> bool:
        """Wait until so many bytes fit. False where they do not, and this thread's work goes on all
        the same: it is the first of those who all wait, or has waited long enough, or is no run and
        no step."""
        if (work := self._works.get(threading.get_ident())) is None:
            return False
        until = time.monotonic() + self._longest[work.behind]
        work.number = next(self._numbers) if work.number is None else work.number
        work.asks = True
        try:
            with self.waiting():
                while not fits():
                    if self._is_first(work) or time.monotonic() > until:
                        work.most = max(work.most, size)  # before the next one asks
                        return False
                    self._wait()
                return True
        finally:
            work.asks = False

    def _wait(self) -> None:
        with self._moved:
            self._moved.wait(LOOK)
        still_wanted()

    def _readers_ask(self) -> bool:
        return any(each.asks and not each.behind for each in tuple(self._works.values()))

    def _is_first(self, work: Work) -> bool:
        """True where all who hold something wait, and of those who ask for room this one is the
        first: readers before the background, and who holds something, since it ends with it,
        before who does not."""
        holding = [each for each in tuple(self._works.values()) if each.number is not None]
        if not all(each.waits for each in holding):
            return False
        return work is min((each for each in holding if each.asks), key=_order)


def _order(work: Work) -> tuple[bool, bool, float]:
    """Readers before the background, who holds something before who does not, then as they came."""
    return work.behind, not work.most, inf if work.number is None else work.number


room = Room()
