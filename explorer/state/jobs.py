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

import numpy as np
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.state import cache, models, sessions
from explorer.state.cache import cause_of
from explorer.state.models import handle
from explorer.state.scheduling import (
    LOOK,
    Cancelled,
    Preempted,
    looked_after,
    room,
    still_wanted,
    turn,
)
from explorer.state.sessions import is_here, is_known
from explorer.state.settings import beginning, settings
from models import live_training, registry
from models.recording import Recording
from models.results import Beam, SeededSampling, WrittenToken, said
from models.training_plan import SECONDS, Progress, TrainingPlan

# A reader's text in the making, as far as it has come.

Draw = Callable[[np.ndarray, int], int]


class Draft:
    """A reader's text in the making: the prompt, what was said after it, and the scores for what
    comes next.

    `writing` is the model's side of it, with its stored keys and values; `n_prompt` how many tokens
    the prompt has.
    """

    def __init__(self, model: str, text: str) -> None:
        self.model, self.text = model, beginning(text)
        self._stepping = (
            threading.RLock()
        )  # a run that a newer one takes over from may still be at a step
        self.start_over()

    def start_over(self) -> None:
        """Go back to the prompt."""
        loaded = handle(self.model)
        with turn():
            self.writing = loaded.generate(self.text)
        self.n_prompt = len(self.writing.ids)
        self.said: list[WrittenToken] = []

    @property
    def ended(self) -> bool:
        """True where the last word said is the model's sign for the end."""
        return bool(self.said) and self.said[-1].id == handle(self.model).tokenizer.eos

    @property
    def full(self) -> bool:
        """True where the model takes no further token."""
        return self.writing.is_full

    def towards(self, ids: tuple[int, ...]) -> int:
        """Take one step to where `ids` is all that was said: one token more, or one fewer. How many
        steps are left, 0 where it is there.

        What stands in `ids` after the model's sign for the end, and what has no room, counts as not
        there.
        """
        with self._stepping:
            eos = handle(self.model).tokenizer.eos
            ids = ids[: ids.index(eos) + 1] if eos in ids else ids
            ids = ids[: self.writing.n_positions - self.n_prompt]
            now = tuple(word.id for word in self.said)
            common = next(
                (at for at, (a, b) in enumerate(zip(now, ids)) if a != b), min(len(now), len(ids))
            )
            if now and not common:
                self.start_over()
                return len(ids)
            if common < len(now):
                self.writing.back()
                self.said.pop()
                return len(now) - 1 - common + len(ids) - common
            if common < len(ids):
                self._add(ids[common])
                return len(ids) - common - 1
            return 0

    def _add(self, token: int) -> None:
        self.said.append(said(self.writing.logits, token))
        with turn():
            self.writing.add(token)


def ahead(model: str, text: str, most: int, how: Hashable, draw: Draw) -> tuple[int, ...]:
    """What would be written after a prompt: at most so many tokens, each drawn from the scores (id)
    by `draw(scores, place)`. Kept by `how` they are drawn."""

    def written() -> tuple[int, ...]:
        made = Draft(model, text)
        while len(made.said) < most and not (made.ended or made.full):
            made._add(draw(made.writing.logits, len(made.writing.ids)))
        return tuple(word.id for word in made.said)

    key = ("ahead", model, handle(model).card.fingerprint, text, most, how)
    return cache.get(key, written)


def draft(model: str, text: str) -> Draft:
    """This reader's text in the making after a prompt, as far as it has come. Only the last one is
    kept.

    Raises ValueError, with words for the reader, where the prompt leaves no room.
    """
    cause = (model, handle(model).card.fingerprint, text)
    kept = st.session_state.get("draft")
    if kept is None or kept[0] != cause:
        kept = st.session_state.draft = (cause, Draft(model, text))
    return kept[1]


# Readers' own small models in training: at most so many at once on a server, the others in a
# queue, each gone with its visit.

MINE = "live training"  # in a visit's state
PROGRESS_INTERVAL = 0.25  # seconds between two looks of the one who looks after all
TRAINING_TIMEOUT = 10.0  # seconds without its reader after which a training is stopped
MOST_KEPT, MOST_KEPT_EACH = 24, 2  # models held, on a server and for one visit


class TrainingJob:
    """One reader's training. It waits, learns, or has stopped; `run` is what it learned so far."""

    def __init__(self, plan: TrainingPlan, session: str) -> None:
        self.run, self.session = live_training.begin(plan), session
        self.waiting = False
        self.began = self.seen = time.monotonic()

    @property
    def learning(self) -> bool:
        """True while its process is at work."""
        return self.run.running

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        return self.run.progress

    @property
    def may_go_on(self) -> bool:
        """True where it was stopped before its steps and seconds were used up."""
        return not (self.waiting or self.learning or self.run.done)


class Trainings:
    """All trainings of this server. `at_once`: how many learn at a time; `here(session)`: whether a
    reader is connected, `known`: or may come back."""

    def __init__(
        self,
        at_once: Callable[[], int],
        here: Callable[[str], bool],
        known: Callable[[str], bool],
        seconds: Callable[[], float],
    ) -> None:
        self._at_once, self._here, self._known, self._seconds = at_once, here, known, seconds
        self._all: list[TrainingJob] = []  # in the order of asking
        self._kept: dict[str, str] = {}  # session by the name of a model
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, plan: TrainingPlan, session: str) -> TrainingJob:
        """A new training of a visit, learning or in the queue; the one before it ends. Raises
        ValueError where none are allowed."""
        if not self._at_once():
            raise ValueError("This server trains no models.")
        one = TrainingJob(plan, session)
        with self._lock:
            for old in [each for each in self._all if each.session == session]:
                self._end(old)
            self._all.append(one)
            one.waiting = True
            self._start_next()
            self._look_after()
        return one

    def go_on(self, one: TrainingJob) -> None:
        """Let a training that was stopped learn on, when it is its turn."""
        with self._lock:
            if one.may_go_on and one in self._all:
                self._all.remove(one)
                self._all.append(one)
                one.waiting = True
                self._start_next()
                self._look_after()

    def stop(self, one: TrainingJob) -> None:
        """Stop a training; what it has learned stays."""
        with self._lock:
            one.waiting = False
            one.run.stop()

    def ahead(self, one: TrainingJob) -> int:
        """How many learn or wait before one that waits."""
        with self._lock:
            before = self._all[: self._all.index(one)] if one in self._all else []
            return sum(each.waiting or each.learning for each in before)

    def longest(self) -> float:
        """Seconds of the processor that those who learn may still take, at most."""
        with self._lock:
            left = [SECONDS - each.progress.seconds for each in self._all if each.learning]
        return max(0.0, min(left, default=0.0))

    def keep(self, one: TrainingJob) -> tuple[str, tuple[str, ...]]:
        """Hold a training's model for its visit: its name, and the names of those that went to make
        room. Raises ValueError where it has no weights yet."""
        name = live_training.keep(one.run)
        with self._lock:
            mine = [each for each, whose in self._kept.items() if whose == one.session]
            gone = mine[: len(mine) + 1 - MOST_KEPT_EACH] if len(mine) >= MOST_KEPT_EACH else []
            others = [each for each in self._kept if each not in gone]
            gone += others[: max(0, len(others) + 1 - MOST_KEPT)]
            for each in gone:
                self._drop(each)
            self._kept[name] = one.session
            self._look_after()
        return name, tuple(gone)

    def end_all(self) -> None:
        """End every training and let every model go."""
        with self._lock:
            for each in list(self._all):
                self._end(each)
            for name in list(self._kept):
                self._drop(name)

    def _end(self, one: TrainingJob) -> None:
        one.waiting = False
        one.run.end()
        self._all.remove(one)

    def _drop(self, name: str) -> None:
        self._kept.pop(name, None)
        live_training.drop(name)
        models.forget(name)

    def _start_next(self) -> None:
        free = self._at_once() - sum(each.learning for each in self._all)
        for one in [each for each in self._all if each.waiting][: max(0, free)]:
            one.waiting, one.began = False, time.monotonic()
            one.run.go_on()

    def _look_after(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="live", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            time.sleep(PROGRESS_INTERVAL)
            with self._lock:
                self._look()
                if not self._all and not self._kept:
                    self._thread = None
                    return

    def _look(self) -> None:
        now = time.monotonic()
        for one in list(self._all):
            if self._here(one.session):
                one.seen = now
            elif not self._known(one.session):
                self._end(one)
                continue
            elif now - one.seen > TRAINING_TIMEOUT:
                one.waiting = False
                one.run.stop()
            if one.learning and now - one.began > self._seconds():
                one.run.stop()
        for name in [name for name, whose in self._kept.items() if not self._known(whose)]:
            self._drop(name)
        self._start_next()


trainings = Trainings(
    lambda: settings().live, is_here, is_known, lambda: float(settings().max_seconds)
)


def allowed() -> bool:
    """True where readers may train models on this server."""
    return settings().live > 0


def mine() -> TrainingJob | None:
    """This visit's training, as far as it is."""
    return st.session_state.get(MINE)


def begin(plan: TrainingPlan) -> None:
    """Begin a training for this visit. Raises ValueError where this server trains none."""
    run = get_script_run_ctx(suppress_warning=True)
    st.session_state[MINE] = trainings.begin(plan, run.session_id if run else "")


def keep(one: TrainingJob) -> str:
    """Hold its model for this visit, as one of the models to choose from; returns its name."""
    name, gone = trainings.keep(one)
    models.forget_allowed(gone)
    models.remember(name)
    return name


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


def search(model: str, text: str, how: int | SeededSampling) -> Search:
    """The search for a text's translation, with so many beams or drawn, begun once for everyone and
    kept as far as it has come."""
    loaded, text = handle(model), beginning(text)
    key = ("search", model, loaded.card.fingerprint, text, how)
    weight = 500_000 * (1 if isinstance(how, SeededSampling) else how)
    return cache.get(key, lambda: Search(iter(loaded.beams(text, how))), lambda _: weight)


class Job:
    """Something that goes on by itself in a thread, and can be stopped and gone on with. Each of
    its steps takes its turn with all else, unless it `takes_turns` itself for what it asks of a
    model. When all its readers have gone it ends, within a step too, and would begin anew.

    `latest`: what it has come to so far, None before the first; `running`, `finished`.
    """

    # Those that run, by key: however full the shelf is, they are found again and can be stopped.
    at_work: dict[Hashable, Job] = {}

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
            raise Cancelled

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
        except Cancelled:
            self._to_come, self._given_up = self._begin(), False  # lets go of what it held
        finally:
            self.running = False
            self.at_work.pop(self._key, None)


def close() -> None:
    """End all that is at work. Python must not end under a thread that computes: C++ calls that an
    abort."""
    for each in list(Job.at_work.values()):
        each.end()


def _experiment(key: Hashable, begin: Callable[[], Iterator[Any]], takes_turns: bool = True) -> Job:
    """The experiment under a key: the one that runs, else the one on the shelf, else a new one."""
    # What one that runs comes to stays on the shelf when it ends.
    found = Job.at_work.get(key)
    kept = cache.get(key, lambda: found or Job(begin, key, takes_turns), lambda _: HEAVY)
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
        except Preempted:
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


_looked_at: WeakValueDictionary[tuple[str, str], Job] = WeakValueDictionary()


def in_turn(recording: Recording, what: str, begin: Callable[[], Iterator[Any]]) -> Job:
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


def decay(recording: Recording, stream: str, lag: int) -> Job:
    """The experiment of `registry.decay` on the tokens of a stream: not begun, or as far as anyone
    has taken it."""
    ids = tuple(int(each) for each in recording.stream(stream).ids)
    return _experiment(("decay", ids[:100], lag), lambda: registry.decay(ids, lag))


def longest_lag(n: int) -> int:
    """The largest lag that the experiment takes for a text of n tokens; 0 where the text is too
    short."""
    return registry.longest_lag(n)


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
) -> Job:
    """Every part of the donor's run put into the recording's, one by one: `what` is "Heads", of the
    attention `name`, or "Sites", of the stream
    `name`. What it does to logit(id) - logit(against) at a token is read off. Not begun, or as far
    as anyone has taken it."""
    loaded, text, edits = handle(recording.model.name), recording.text, recording.edits
    donor = beginning(donor)
    begin = loaded.patch_heads if what == "Heads" else loaded.patch_sites

    def to_come() -> Iterator[Swept]:
        try:
            swept = begin(text, donor, name, token, id, against, edits)
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
) -> Job:
    """Many texts read one by one: `latest` is what `read` made of each so far, in their order; of
    one that cannot be read the sentence that says why. Not begun, or as far as anyone has taken it.
    The recordings themselves are not kept."""
    loaded = handle(model)

    def to_come() -> Iterator[tuple[Any, ...]]:
        made: list[Any] = []
        for text in texts:
            try:
                made.append(read(loaded.record(beginning(text))))
            except ValueError as error:
                made.append(str(error))
            yield tuple(made)

    return _experiment(("through", model, loaded.card.fingerprint, texts, what), to_come)
