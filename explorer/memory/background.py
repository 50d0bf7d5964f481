"""What is computed step by step: beam searches, sweeps and experiments, each kept as far as anyone
has taken it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from explorer.memory import sessions, shelf
from explorer.memory.models import handle
from explorer.memory.room import GaveWay, room
from explorer.memory.sessions import is_here
from explorer.memory.settings import beginning
from explorer.memory.shelf import cause_of
from explorer.memory.turns import LOOK, Unwanted, looked_after, still_wanted, turn
from models import library
from models.prediction import Beam, Drawn
from models.recording import Recording

HEAVY = (
    2_000_000  # bytes that networks in training and stored runs take, which no array of ours shows
)
ENDS_WITHIN = 5.0  # seconds
MOST_AGAIN = 5  # times that work gives way to readers before it goes on all the same
GONE_FOR = 10.0  # seconds without its readers after which work ends: a broken line is soon back


class Search:
    """A beam search as far as it has come. Many may read it; whoever wants more takes the next
    step, for all.

    `steps`: after each step the best hypotheses, best first. `finished`: there is no further step.
    """

    def __init__(self, to_come: Iterator[tuple[Beam, ...]]) -> None:
        self.steps: list[tuple[Beam, ...]] = []
        self.finished = False
        self._to_come, self._stepping = to_come, threading.Lock()

    def go_on(self) -> None:
        """Take one step, unless it has finished."""
        with self._stepping:
            if not self.finished:
                try:
                    with turn():
                        self.steps.append(next(self._to_come))
                    self.finished = all(beam.done for beam in self.steps[-1])
                except StopIteration:
                    self.finished = True
                if self.finished:
                    self._to_come = iter(())  # lets the stored keys and values go


def search(model: str, text: str, how: int | Drawn) -> Search:
    """The search for a text's translation, with so many beams or drawn, begun once for everyone and
    kept as far as it has come."""
    loaded, text = handle(model), beginning(text)
    key = ("search", model, loaded.card.fingerprint, text, how)
    weight = 500_000 * (1 if isinstance(how, Drawn) else how)
    return shelf.get(key, lambda: Search(iter(library.beams(loaded, text, how))), lambda _: weight)


class Experiment:
    """Something that goes on by itself in a thread, and can be stopped and gone on with. Each of
    its steps takes its turn with all else, unless it `takes_turns` itself for what it asks of a
    model. When all its readers have gone it ends, within a step too, and would begin anew.

    `latest`: what it has come to so far, None before the first; `running`, `finished`.
    """

    # Those that run, by key: however full the shelf is, they are found again and can be stopped.
    at_work: dict[Hashable, Experiment] = {}

    def __init__(
        self, begin: Callable[[], Iterator[Any]], key: Hashable = None, takes_turns: bool = True
    ) -> None:
        self.latest: Any = None
        self.running = self.finished = False
        self._begin, self._to_come = begin, begin()
        self._asking = threading.Lock()
        self._key = self if key is None else key
        self._thread: threading.Thread | None = None
        self._turn = turn if takes_turns else nullcontext
        self._readers: frozenset[str] = frozenset()
        self._seen, self._given_up = 0.0, False

    def go_on(self) -> None:
        """Start, or start again where it was stopped; nothing where it runs or has finished."""
        with self._asking:
            if self.running or self.finished:
                return
            if self._thread:
                with room.waiting():
                    self._thread.join()  # a step at most: it was told to stop
            if self.at_work.setdefault(self._key, self) is not self:
                return  # another one under the same key is at it
            self.running, self._seen, self._given_up = True, time.monotonic(), False
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop after the step it is at; what it has come to stays."""
        self.running = False

    def read_by(self, session: str) -> None:
        """A reader looks at it, or nobody in particular (`sessions.NOBODY`)."""
        self._readers |= {session}

    def left_by(self, session: str) -> None:
        """A reader asks for something else instead."""
        self._readers -= {session}
        if not self._readers and self.running:
            self._given_up = True

    def end(self) -> None:
        """End it within the step it is at, and wait until it has, a few seconds at most."""
        self._given_up = self.running
        if self._thread:
            self._thread.join(ENDS_WITHIN)

    def _look(self) -> None:
        now = time.monotonic()
        if any(map(is_here, self._readers)):
            self._seen = now
        elif self._readers and now - self._seen > GONE_FOR:
            self._given_up = True
        if self._given_up:
            raise Unwanted

    def _work(self) -> None:
        try:
            with looked_after(self._look):
                while self.running:
                    self._look()
                    with room.work(behind=True), self._turn():
                        made = next(self._to_come, None)
                    if made is None:
                        self.finished = True
                        return
                    self.latest = made
        except Unwanted:
            self._to_come, self._given_up = self._begin(), False  # lets go of what it held
        finally:
            self.running = False
            self.at_work.pop(self._key, None)


def close() -> None:
    """End all that is at work. Python must not end under a thread that computes: C++ calls that an
    abort."""
    for each in list(Experiment.at_work.values()):
        each.end()


def _experiment(
    key: Hashable, begin: Callable[[], Iterator[Any]], takes_turns: bool = True
) -> Experiment:
    """The experiment under a key: the one that runs, else the one on the shelf, else a new one."""
    # What one that runs comes to stays on the shelf when it ends.
    found = Experiment.at_work.get(key)
    kept = shelf.get(key, lambda: found or Experiment(begin, key, takes_turns), lambda _: HEAVY)
    found = found or kept
    found.read_by(sessions.current())
    return found


Made = TypeVar("Made")
_alone = threading.Lock()


def alone(make: Callable[[], Made]) -> Made:
    """What `make` gives, which holds much in memory: one such thing at a time on the whole server,
    and begun anew where a reader waits for room, a few times at most. It ends early where what
    waits is wanted no more."""
    for _ in range(MOST_AGAIN):
        room.let_pass()
        try:
            with _one_at_a_time(), room.giving_way():
                return make()
        except GaveWay:
            continue
    with _one_at_a_time():
        return make()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    while not _alone.acquire(timeout=LOOK):
        still_wanted()
    try:
        yield
    finally:
        _alone.release()


_looked_at: WeakValueDictionary[tuple[str, str], Experiment] = WeakValueDictionary()


def in_turn(recording: Recording, what: str, begin: Callable[[], Iterator[Any]]) -> Experiment:
    """Something about a recording that is worked out step by step under the name `what`: not begun,
    or as far as anyone has taken it. It begins unasked, so a reader who looks at another leaves the
    one before."""
    found = _experiment((what, *cause_of(recording)), begin, takes_turns=False)
    reader = sessions.current(), what
    before = _looked_at.get(reader)
    if before is not None and before is not found and reader[0] != sessions.NOBODY:
        before.left_by(reader[0])
    _looked_at[reader] = found
    return found


def decay(recording: Recording, stream: str, lag: int) -> Experiment:
    """The experiment of `library.decay` on the tokens of a stream: not begun, or as far as anyone
    has taken it."""
    ids = tuple(int(each) for each in recording.stream(stream).ids)
    return _experiment(("decay", ids[:100], lag), lambda: library.decay(ids, lag))


def longest_lag(n: int) -> int:
    """The largest lag that the experiment takes for a text of n tokens; 0 where the text is too
    short."""
    return library.longest_lag(n)


@dataclass(frozen=True)
class Swept:
    """A sweep of patches as far as it has come: the logit difference in the run as it is and in the
    donor's, how many places there are, and what each patch so far made of it, (place, logit
    difference). `error` says in words why it cannot be done."""

    clean: float = 0.0
    donor: float = 0.0
    places: int = 0
    effects: tuple[tuple[tuple[Any, int], float], ...] = ()
    error: str = ""


def sweep(
    recording: Recording, what: str, donor: str, name: str, token: int, id: int, against: int
) -> Experiment:
    """Every part of the donor's run put into the recording's, one by one: `what` is "Heads", of the
    attention `name`, or "Sites", of the stream
    `name`. What it does to logit(id) - logit(against) at a token is read off. Not begun, or as far
    as anyone has taken it."""
    loaded, text, edits = handle(recording.model.name), recording.text, recording.edits
    donor = beginning(donor)
    begin = library.sweep_heads if what == "Heads" else library.sweep_sites

    def to_come() -> Iterator[Swept]:
        try:
            swept = begin(loaded, text, donor, name, token, id, against, edits)
            found: list[tuple[tuple[Any, int], float]] = []
            yield Swept(swept.clean, swept.donor, swept.places)
            for effect in swept.effects:
                found.append((effect.place, effect.value))
                yield Swept(swept.clean, swept.donor, swept.places, tuple(found))
        except ValueError as error:
            yield Swept(error=str(error))

    return _experiment(
        ("sweep", *cause_of(recording), what, donor, name, token, id, against), to_come
    )


def through(
    model: str, texts: tuple[str, ...], what: Hashable, read: Callable[[Recording], Any]
) -> Experiment:
    """Many texts read one by one: `latest` is what `read` made of each so far, in their order; of
    one that cannot be read the sentence that says why. Not begun, or as far as anyone has taken it.
    The recordings themselves are not kept."""
    loaded = handle(model)

    def to_come() -> Iterator[tuple[Any, ...]]:
        made: list[Any] = []
        for text in texts:
            try:
                made.append(read(library.record(loaded, beginning(text))))
            except ValueError as error:
                made.append(str(error))
            yield tuple(made)

    return _experiment(("through", model, loaded.card.fingerprint, texts, what), to_come)
