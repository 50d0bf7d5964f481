"""Readers' own small models in training: at most so many at once on a server, the others in a
queue, each gone with its visit.

A training is a process of its own with the lowest priority. One thread looks after all: it starts
who is next, stops what has had its time, and ends what belongs to a visit that is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.memory import models, offered
from explorer.memory.sessions import is_here, is_known
from explorer.memory.settings import settings
from models import learn
from models.learning import SECONDS, Plan, Progress

MINE = "live training"  # in a visit's state
LOOK = 0.25  # seconds between two looks of the one who looks after all
GONE_FOR = 10.0  # seconds without its reader after which a training is stopped
MOST_KEPT, MOST_KEPT_EACH = 24, 2  # models held, on a server and for one visit


class Training:
    """One reader's training. It waits, learns, or has stopped; `run` is what it learned so far."""

    def __init__(self, plan: Plan, session: str) -> None:
        self.run, self.session = learn.begin(plan), session
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
        self._all: list[Training] = []  # in the order of asking
        self._kept: dict[str, str] = {}  # session by the name of a model
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, plan: Plan, session: str) -> Training:
        """A new training of a visit, learning or in the queue; the one before it ends. Raises
        ValueError where none are allowed."""
        if not self._at_once():
            raise ValueError("This server trains no models.")
        one = Training(plan, session)
        with self._lock:
            for old in [each for each in self._all if each.session == session]:
                self._end(old)
            self._all.append(one)
            one.waiting = True
            self._start_next()
            self._look_after()
        return one

    def go_on(self, one: Training) -> None:
        """Let a training that was stopped learn on, when it is its turn."""
        with self._lock:
            if one.may_go_on and one in self._all:
                self._all.remove(one)
                self._all.append(one)
                one.waiting = True
                self._start_next()
                self._look_after()

    def stop(self, one: Training) -> None:
        """Stop a training; what it has learned stays."""
        with self._lock:
            one.waiting = False
            one.run.stop()

    def ahead(self, one: Training) -> int:
        """How many learn or wait before one that waits."""
        with self._lock:
            before = self._all[: self._all.index(one)] if one in self._all else []
            return sum(each.waiting or each.learning for each in before)

    def longest(self) -> float:
        """Seconds of the processor that those who learn may still take, at most."""
        with self._lock:
            left = [SECONDS - each.progress.seconds for each in self._all if each.learning]
        return max(0.0, min(left, default=0.0))

    def keep(self, one: Training) -> tuple[str, tuple[str, ...]]:
        """Hold a training's model for its visit: its name, and the names of those that went to make
        room. Raises ValueError where it has no weights yet."""
        name = learn.keep(one.run)
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

    def _end(self, one: Training) -> None:
        one.waiting = False
        one.run.end()
        self._all.remove(one)

    def _drop(self, name: str) -> None:
        self._kept.pop(name, None)
        learn.drop(name)
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
            time.sleep(LOOK)
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
            elif now - one.seen > GONE_FOR:
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


def mine() -> Training | None:
    """This visit's training, as far as it is."""
    return st.session_state.get(MINE)


def begin(plan: Plan) -> None:
    """Begin a training for this visit. Raises ValueError where this server trains none."""
    run = get_script_run_ctx(suppress_warning=True)
    st.session_state[MINE] = trainings.begin(plan, run.session_id if run else "")


def keep(one: Training) -> str:
    """Hold its model for this visit, as one of the models to choose from; returns its name."""
    name, gone = trainings.keep(one)
    offered.forget(gone)
    offered.remember(name)
    return name
