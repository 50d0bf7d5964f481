"""One fair queue for all computations with torch: short passes in order of arrival, long
computations slice by slice.

Passes are fastest one by one. A long computation yields between two slices
(`models.contract.cancellation`): it waits behind the short ones, so that no reader's sentence waits
for more than one slice of another's. It ends there when its reader has gone or has opened something
else, or at the time limit of a computation."""

from __future__ import annotations

import gc
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any, TypeVar

from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.app.state.settings import settings
from explorer.wording.templates import sentences
from models.contract.cancellation import NoRoom, TimeLimit, interruptible
from models.runtime.cache import LARGE_BYTES as LARGE_BYTES
from models.runtime.cache import POLL_INTERVAL
from models.runtime.host import FULL, TOO_MUCH, Memory

WORDS = sentences("server", "scheduling")

# So many short passes may go before a long computation that waits; then it has a slice, however
# many there are.
PATIENCE = 8


class Cancelled(BaseException):
    """No one waits for the result any more. No Exception, so that code that reports Exceptions to
    readers does not catch it."""


_cancel_check: ContextVar[Callable[[], None] | None] = ContextVar("look", default=None)
_is_for_others: ContextVar[bool] = ContextVar("for others", default=False)


@contextmanager
def cancellable(check: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Make a computation outside of a reader's run cancellable by `check`, which raises Cancelled.

    Yields the check of the enclosing block."""
    outside = _cancel_check.get() or (lambda: None)
    token = _cancel_check.set(check)
    try:
        yield outside
    finally:
        _cancel_check.reset(token)


@contextmanager
def for_others() -> Iterator[None]:
    """Compute what others wait for too: this run's reader may leave, and it goes on."""
    token = _is_for_others.set(True)
    try:
        yield
    finally:
        _is_for_others.reset(token)


def check_cancelled() -> None:
    """End this run or computation, by an exception, where nobody waits for its result any more."""
    if _is_for_others.get():
        return
    run = get_script_run_ctx(suppress_warning=True)
    if run is not None:
        run.yield_check()
    elif (check := _cancel_check.get()) is not None:
        check()


class ComputeQueue:
    """A queue of threads of which one has the slot. `seconds`: how long a computation in slices may
    work in all."""

    def __init__(self, seconds: Callable[[], float], wanted: Callable[[], None] = check_cancelled):
        self._seconds, self._wanted = seconds, wanted
        self._moved = threading.Condition()
        self._short: deque[object] = deque()
        self._long: deque[object] = deque()
        self._holder: object | None = None
        self._owner: int | None = None
        self._short_streak = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait for the slot, after earlier requests, and compute in it. A long
        computation yields it now and then. A slot within a slot is the same one.

        Raises TimeLimit in a computation that has used up its seconds."""
        if self._owner == threading.get_ident():
            yield
            return
        ticket, stopwatch, is_heavy = object(), _Stopwatch(), _heavy_run.get()
        self._acquire(ticket, self._long if is_heavy else self._short)
        stopwatch.go()
        yield_slot = lambda: self._yield_slot(ticket, stopwatch)
        try:
            with interruptible(yield_slot, self.released, in_passes=is_heavy):
                yield
        finally:
            self._release(ticket)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the slot while this thread waits for another one, which may need it."""
        ticket = self._holder if self._owner == threading.get_ident() else None
        if ticket is None:
            yield
            return
        self._release(ticket)
        try:
            yield
        finally:
            self._acquire(ticket, self._long)

    def waiting(self) -> int:
        """The number of waiting computations."""
        return len(self._short) + len(self._long)

    def _yield_slot(self, ticket: object, stopwatch: _Stopwatch) -> None:
        self._wanted()
        stopwatch.stop()
        if stopwatch.seconds > self._seconds():
            raise TimeLimit(WORDS("too_long", seconds=self._seconds()))
        if self._short or self._long:
            self._release(ticket)
            self._acquire(ticket, self._long)
        stopwatch.go()

    def _acquire(self, ticket: object, queue: deque[object]) -> None:
        with self._moved:
            queue.append(ticket)
            try:
                while not self._is_next(ticket):
                    self._moved.wait(POLL_INTERVAL)
                    self._wanted()
            except BaseException:  # a reader who has gone is told by one: whatever it is goes on
                queue.remove(ticket)
                self._moved.notify_all()
                raise
            queue.popleft()
            self._short_streak = 0 if queue is self._long else self._short_streak + bool(self._long)
            self._holder, self._owner = ticket, threading.get_ident()

    def _is_next(self, ticket: object) -> bool:
        if self._holder is not None:
            return False
        long_is_due = self._long and (not self._short or self._short_streak >= PATIENCE)
        return (self._long if long_is_due else self._short)[0] is ticket

    def _release(self, ticket: object) -> None:
        with self._moved:
            if self._holder is ticket:
                self._holder = self._owner = None
                self._moved.notify_all()


class _Stopwatch:
    """Seconds of work, without those of waiting."""

    def __init__(self) -> None:
        self.seconds, self._since = 0.0, 0.0

    def go(self) -> None:
        self._since = time.monotonic()

    def stop(self) -> None:
        self.seconds += time.monotonic() - self._since


compute_queue = ComputeQueue(lambda: settings().max_seconds)
slot, slot_released = compute_queue.slot, compute_queue.released


@dataclass(eq=False)
class BatchItem:
    """An item that waits for its result: `result` is a tuple of one, empty until it is there."""

    group: Hashable
    item: Any
    result: tuple[Any, ...] = ()


class BatchQueue:
    """A queue of items of which several are computed at once, `most` at a time. One batch is
    computed at a time, by the thread of the item that came first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._moved = threading.Condition()
        self._waiting: list[BatchItem] = []
        self._leader: BatchItem | None = None  # the one whose thread computes

    def result(
        self, group: Hashable, item: Any, compute: Callable[[list[Any]], Sequence[Any]]
    ) -> Any:
        """The result of an item, computed together with others of its group that wait. compute: the
        results of the first items of a list, of at least one. What it raises reaches the thread
        that computes; items without a result wait for the next one."""
        mine = BatchItem(group, item)
        with self._moved:
            self._waiting.append(mine)
        try:
            with slot_released(), memory_budget.waiting():
                self._wait(mine)
            if not mine.result:
                self._compute(mine, compute)
        finally:
            with self._moved:
                if self._leader is mine:
                    self._leader = None
                self._waiting = [
                    each for each in self._waiting if each is not mine and not each.result
                ]
                self._moved.notify_all()
        return mine.result[0]

    def _wait(self, mine: BatchItem) -> None:
        """Wait until the item has its result or is the next one to be computed."""
        with self._moved:
            while not mine.result and (self._leader or self._waiting[0] is not mine):
                self._moved.wait(POLL_INTERVAL)
                check_cancelled()
            if not mine.result:
                self._leader = mine

    def _compute(self, mine: BatchItem, compute: Callable[[list[Any]], Sequence[Any]]) -> None:
        with self._moved:
            batch = [each for each in self._waiting if each.group == mine.group][: self._most]
        for each, result in zip(batch, compute([each.item for each in batch])):
            each.result = (result,)


# Room for long texts: who may take much memory now, and who waits until another has let go.

VALUES_PER_RUN = 2  # things that a run holds: most pages read a text twice
MAX_WAIT = 30.0  # seconds that anyone waits for others to end
MAX_BACKGROUND_WAIT = 60.0  # seconds that work in the background waits


class Preempted(BaseException):
    """Background work has ended for a reader's sake, to be repeated later. No Exception, so that
    code that reports Exceptions to readers does not catch it."""


@dataclass(eq=False)
class Work:
    """A run or a step that needs memory. behind: in the background. number: its place among those
    that use or wait for memory, None for one that does neither. most: bytes of its largest value;
    values: the last ones. size: bytes that it computes with. beyond: it takes what the cache may
    not hold, as one at a time does. asks: it waits for memory; waits: for anything. waited: seconds
    for which it has waited for memory."""

    behind: bool
    number: int | None = None
    most: int = 0
    size: int = 0
    beyond: bool = False
    values: list[Any] = field(default_factory=list)
    asks: bool = False
    waits: bool = False
    waited: float = 0.0


class MemoryBudget(Memory):
    """Budget of memory for long computations: those that run, and those that wait, `seconds` at
    most where there is no room at all."""

    def __init__(
        self,
        longest: float = MAX_WAIT,
        behind: float = MAX_BACKGROUND_WAIT,
        seconds: Callable[[], float] = lambda: settings().max_seconds / 2,
    ) -> None:
        self._longest, self._seconds = {False: longest, True: behind}, seconds
        self._moved = threading.Condition()
        self._works: dict[int, Work] = {}  # by thread
        self._numbers = count()

    @contextmanager
    def work(self, behind: bool = False) -> Iterator[None]:
        """Register a run or a step: it keeps its large values until its end, and what it raises
        keeps none. One within another is the same."""
        thread = threading.get_ident()
        if thread in self._works:
            yield
            return
        self._works[thread] = Work(behind)
        try:
            yield
        except BaseException as error:  # whoever awaits a thread holds its frames in a circle
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            with self._moved:
                # Whoever looks at all works just now holds it too.
                self._works.pop(thread).values = []
                self._moved.notify_all()

    @contextmanager
    def preemptible(self) -> Iterator[None]:
        """End the work of this thread with Preempted as soon as a reader waits for its memory."""
        work = self._works.get(threading.get_ident(), Work(True))

        def check() -> None:
            outside()
            if work.most and self._readers_ask():
                raise Preempted

        with cancellable(check) as outside:
            yield

    def wait_for_readers(self) -> None:
        """Wait until no reader waits for memory, at most for the longest wait. The work of this
        thread releases its memory."""
        if (work := self._works.get(threading.get_ident())) is not None:
            work.number, work.most = None, 0
        deadline = time.monotonic() + self._longest[True]
        while self._readers_ask() and time.monotonic() < deadline:
            self._wait()

    def holds(self, size: int, value: Any = None) -> None:
        """Register a large value of so many bytes for the work of this thread. A run keeps
        references to the last ones, so that none is computed twice in it."""
        if (work := self._works.get(threading.get_ident())) is not None:
            work.number = next(self._numbers) if work.number is None else work.number
            work.most = max(work.most, size)
            if value is not None and not work.behind:
                work.values = [*(each for each in work.values if each is not value), value][
                    -VALUES_PER_RUN:
                ]

    def release_oldest(self) -> None:
        """Drop this run's oldest large value where it has `HELD_PER_RUN` of them, before a new
        one."""
        if (work := self._works.get(threading.get_ident())) is not None:
            work.values = work.values[1 - VALUES_PER_RUN :]

    def release(self) -> None:
        """Drop this run's large values, of which it has made what it wants."""
        if (work := self._works.get(threading.get_ident())) is not None:
            work.values, work.most = [], 0

    def may_take(self, size: int, limit: int) -> bool:
        """True where the work of this thread may take so many bytes beside all others, each of
        which may want its largest twice: most pages read a text twice. One that holds something
        has its place, others do not overtake; the background has none while a reader waits."""
        work = self._works.get(threading.get_ident())
        if work is None or work.most or work.size:
            return work is None or not (work.behind and self._readers_ask())
        others = [each for each in tuple(self._works.values()) if each is not work]
        if any(each.asks and _priority(each) < _priority(work) for each in others):
            return False
        largest = sum(max(each.most, each.size) for each in others)
        return not largest or 2 * (size + largest) <= limit

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The work of this thread waits for what another thread makes, which may need room."""
        work = self._works.get(threading.get_ident(), Work(False))
        previous, work.waits = work.waits, True
        try:
            yield
        finally:
            work.waits = previous

    @contextmanager
    def working(self, size: int) -> Iterator[None]:
        """The work of this thread computes with so many bytes inside this."""
        work = self._works.get(threading.get_ident(), Work(False))
        number, before, work.size = work.number, work.size, size
        work.number = next(self._numbers) if number is None else number
        try:
            yield
        finally:
            work.size, work.number = before, work.number if work.most else number
            with self._moved:
                self._moved.notify_all()

    def wait_for(self, size: int, fits: Callable[[bool], bool]) -> None:
        """Wait until so many bytes are taken. fits: takes them where they fit; fits(True) beside
        what the cache may hold, which one at a time may do: whoever is the first of those that all
        wait, or has waited long, or is no run and no step. Raises NoRoom where they do not fit even
        so: at once where all wait, and after `seconds` of a work's waiting in all."""
        if (work := self._works.get(threading.get_ident())) is None:
            return super().wait_for(size, fits)
        since, is_clean = time.monotonic(), False
        work.number = next(self._numbers) if work.number is None else work.number
        work.asks = True
        try:
            with self.waiting():
                while not fits(False):
                    is_first, waited = self._is_first(work), time.monotonic() - since
                    is_due = is_first or waited > self._longest[work.behind]
                    if is_due and self._may_go_beyond(work):
                        if fits(True):
                            work.beyond = True
                            return
                        if is_first and is_clean:
                            raise self._refusal(work)
                        if is_first:  # what nobody holds any more may lie there yet
                            gc.collect()
                            is_clean = True
                            continue
                    if work.waited + waited > self._seconds():
                        raise self._refusal(work)
                    self._wait()
        finally:
            work.asks, work.waited = False, work.waited + time.monotonic() - since

    def _may_go_beyond(self, work: Work) -> bool:
        """True where no other work is beyond, but one that waits for what others make."""
        others = (each for each in tuple(self._works.values()) if each is not work)
        return not any(each.beyond and (each.asks or not each.waits) for each in others)

    def _refusal(self, work: Work) -> NoRoom:
        others = [each for each in tuple(self._works.values()) if each is not work]
        passing = any(each.most or each.size for each in others)
        return NoRoom(FULL if passing else TOO_MUCH, passing)

    def _wait(self) -> None:
        with self._moved:
            self._moved.wait(POLL_INTERVAL)
        check_cancelled()

    def _readers_ask(self) -> bool:
        return any(each.asks and not each.behind for each in tuple(self._works.values()))

    def _is_first(self, work: Work) -> bool:
        """True where all that use memory wait, and this one is the first of those that request
        some: readers before the background, and works that use memory, since it is freed at their
        end, before those that do not."""
        holding = [each for each in tuple(self._works.values()) if each.number is not None]
        if not all(each.waits for each in holding):
            return False
        return work is min((each for each in holding if each.asks), key=_priority)


def _priority(work: Work) -> tuple[bool, bool, bool, float]:
    """The order of works: one that is beyond, readers before the background, those that use memory
    before others, then by arrival."""
    holds = bool(work.most or work.size)
    return not work.beyond, work.behind, not holds, inf if work.number is None else work.number


memory_budget = MemoryBudget()

MAX_RETRIES = 5  # times that work gives way to readers before it goes on all the same
Result = TypeVar("Result")
_exclusive_lock = threading.Lock()


def run_exclusively(make: Callable[[], Result]) -> Result:
    """The result of `make`, which needs much memory: one such job at a time on the whole server. It
    begins anew where a reader waits for memory, a few times at most. It ends early where its result
    is no longer wanted."""
    for _ in range(MAX_RETRIES):
        memory_budget.wait_for_readers()
        try:
            with _exclusive(), memory_budget.preemptible():
                return make()
        except Preempted:
            continue
    with _exclusive():
        return make()


@contextmanager
def _exclusive() -> Iterator[None]:
    while not _exclusive_lock.acquire(timeout=POLL_INTERVAL):
        check_cancelled()
    try:
        yield
    finally:
        _exclusive_lock.release()


# Readers' runs of the script, one after another in the order of asking; those of a heavy model
# behind others.

RECENT_SECONDS = 1.0  # seconds
RUN_SECONDS = 0.25  # seconds that a run has to itself; an ordinary one takes a third of that
PREFETCH_WAIT = 0.08  # seconds that a run waits for what is made ahead of runs, whosever it is
OWN_PREFETCH_WAIT = 0.6  # seconds that it waits for what is made ahead of it of its own text
SWITCH_INTERVAL = 0.0005  # seconds
NOTICE_INTERVAL = 3.0  # seconds of waiting after which a reader is shown the place in the queue


HEAVY_PARAMETERS = 50_000_000  # of a model whose pass takes a tenth of a second
heavy_models: set[str] = set()  # names of those that were loaded
_heavy_run: ContextVar[bool] = ContextVar("heavy run", default=False)


@contextmanager
def computing(is_heavy: bool) -> Iterator[None]:
    """Compute as a run of that kind does: a heavy one waits behind others."""
    token = _heavy_run.set(is_heavy)
    try:
        yield
    finally:
        _heavy_run.reset(token)


class ScriptQueue:
    """A queue of runs, of which one has its `moment`, once it has waited for results computed ahead
    of it, `ahead` at most (seconds). Heavy runs go behind others, of which PATIENCE may pass
    them; others begin beside a heavy one."""

    def __init__(self, moment: float = RUN_SECONDS, ahead: float = PREFETCH_WAIT) -> None:
        self._moment, self._longest_ahead = moment, ahead
        self._lock = threading.Lock()
        self._ahead: list[tuple[Hashable, bool]] = []  # results, and whether a heavy model's
        self._prefetch_done = threading.Condition(self._lock)
        self._light: deque[threading.Condition] = deque()
        self._heavy: deque[threading.Condition] = deque()
        self._light_streak = 0
        # When the run that has its moment began, by whether it is heavy.
        self._first: dict[bool, tuple[object, float]] = {}
        self._begun: deque[float] = deque(maxlen=64)  # when runs began, the last ones

    @contextmanager
    def run(
        self, is_heavy: bool = False, notify: Callable[[int], None] = lambda n: None
    ) -> Iterator[None]:
        """Run after earlier ones have ended or had their moment. The computations of a heavy run
        wait behind those of others. notify: called every NOTICE_INTERVAL seconds of waiting with
        the number of runs of the same kind before this one; it may end the wait by an exception."""
        ticket = threading.Condition(self._lock)
        self._wait(ticket, is_heavy, notify)
        try:
            with computing(is_heavy):
                yield
        finally:
            with self._lock:
                if self._first.get(is_heavy, (None,))[0] is ticket:
                    del self._first[is_heavy]
                    self._wake()

    def _wait(
        self, ticket: threading.Condition, is_heavy: bool, notify: Callable[[int], None]
    ) -> None:
        """Wait until a run may begin, and let it have its moment."""
        queue = self._heavy if is_heavy else self._light
        notice = time.monotonic() + NOTICE_INTERVAL
        with self._lock:
            queue.append(ticket)
        try:
            while True:
                with self._lock:
                    if self._next() is ticket and self._left(is_heavy) <= 0:
                        queue.popleft()
                        self._begin(ticket, is_heavy)
                        return
                    until_notice = notice - time.monotonic()
                    left = self._left(is_heavy) if self._next() is ticket else until_notice
                    ticket.wait(max(0.0, min(left, until_notice)))
                    n = queue.index(ticket)
                if time.monotonic() >= notice:
                    notice = time.monotonic() + NOTICE_INTERVAL
                    notify(n)
        except BaseException:
            with self._lock:
                queue.remove(ticket)
                self._wake()
            raise

    def _begin(self, ticket: object, is_heavy: bool) -> None:
        self._light_streak = 0 if is_heavy else self._light_streak + bool(self._heavy)
        self._first[is_heavy] = ticket, time.monotonic()
        self._begun.append(time.monotonic())
        self._prefetch_done.wait_for(
            lambda: not any(each <= is_heavy for _, each in self._ahead), self._longest_ahead
        )
        self._wake()

    @contextmanager
    def before(self, key: Hashable = None, is_heavy: bool = False) -> Iterator[None]:
        """Make something that a run to come will need, known as `key`: the run waits for it. What
        a heavy model needs is computed behind others, and only heavy runs wait for it."""
        with self._lock:
            self._ahead.append((key, is_heavy))
        try:
            with computing(is_heavy):
                yield
        finally:
            with self._lock:
                self._ahead.remove((key, is_heavy))
                self._prefetch_done.notify_all()

    def ahead(self) -> int:
        """The number of results that are being computed ahead of runs."""
        return len(self._ahead)

    def wait_for(self, key: Hashable, seconds: float = OWN_PREFETCH_WAIT) -> None:
        """Wait for results that are computed ahead of this run, at most so many seconds: both at
        once take longer than one after the other."""
        with self._lock:
            self._prefetch_done.wait_for(lambda: key not in dict(self._ahead), seconds)

    def waiting(self) -> int:
        """The number of waiting runs."""
        return len(self._light) + len(self._heavy)

    def begun_lately(self) -> int:
        """The number of runs that have begun within the last second."""
        since = time.monotonic() - RECENT_SECONDS
        with self._lock:
            return sum(each > since for each in self._begun)

    def _left(self, is_heavy: bool) -> float:
        """Seconds until the next run of a kind may begin, whether or not the one that runs has
        ended. One that is not heavy begins beside a heavy one."""
        first = [since for kind, (_, since) in self._first.items() if is_heavy or not kind]
        return max(first, default=-inf) + self._moment - time.monotonic()

    def _next(self) -> threading.Condition | None:
        """The condition of the next run, None where nobody waits."""
        is_patient = self._light_streak < PATIENCE or True in self._first
        waiting = self._light if self._light and (is_patient or not self._heavy) else self._heavy
        return next(iter(waiting), None)

    def _wake(self) -> None:
        if (waiting := self._next()) is not None:
            waiting.notify()


def set_switch_interval() -> None:
    """Let threads take turns more often, once in a process."""
    sys.setswitchinterval(SWITCH_INTERVAL)


script_queue = ScriptQueue()
