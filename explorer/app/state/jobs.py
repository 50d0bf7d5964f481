"""Jobs computed step by step: beam searches, sweeps and experiments, each kept at its furthest
step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.app.state import models, sessions
from explorer.app.state.scheduling import Cancelled, cancellable, memory_budget, slot
from explorer.app.state.sessions import is_here, is_known
from explorer.app.state.settings import settings, truncate
from explorer.app.state.visit import visit
from explorer.wording.templates import sentences
from models.contract.cancellation import NoRoom
from models.contract.recording import Recording
from models.live import live_training
from models.live.training_plan import MAX_SECONDS, Progress, TrainingPlan
from models.own import drafts
from models.runtime import caching, registry
from models.runtime.caching import cause, loaded
from models.runtime.run import Run

WORDS = sentences("server", "jobs")


def draft(model: str, text: str) -> drafts.Draft:
    """This reader's text in the making after a prompt, as far as it has come. Only the last one is
    kept.

    Raises ValueError, with words for the reader, where the prompt leaves no room.
    """
    key = (model, loaded(model).card.fingerprint, text)
    cached = visit.draft
    if cached is None or cached[0] != key:
        cached = visit.draft = (key, drafts.Draft(model, text))
    return cached[1]


# Readers' own small models in training: at most so many at once on a server, the others in a
# queue, each gone with its visit.

PROGRESS_INTERVAL = 0.25  # seconds between two looks of the one who looks after all
TRAINING_TIMEOUT = 10.0  # seconds without its reader after which a training is stopped
MAX_MODELS, MAX_MODELS_PER_VISIT = 24, 2  # models held, on a server and for one visit


class TrainingJob:
    """One reader's training. It waits, learns, or has stopped; `run` is its process."""

    def __init__(self, plan: TrainingPlan, session: str) -> None:
        self.run, self.session = live_training.start_training(plan), session
        self.waiting = False
        self.began = self.seen = time.monotonic()

    @property
    def learning(self) -> bool:
        """True while its process runs."""
        return self.run.running

    @property
    def progress(self) -> Progress:
        """The progress of the training."""
        return self.run.progress

    @property
    def can_resume(self) -> bool:
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
        self._at_once, self._is_connected, self._may_return, self._seconds = (
            at_once,
            here,
            known,
            seconds,
        )
        self._all: list[TrainingJob] = []  # in the order of asking
        self._sessions: dict[str, str] = {}  # session by the name of a model
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, plan: TrainingPlan, session: str) -> TrainingJob:
        """A new training of a visit, learning or in the queue; the one before it ends. Raises
        ValueError where none are allowed."""
        if not self._at_once():
            raise ValueError(WORDS("trains_none"))
        job = TrainingJob(plan, session)
        with self._lock:
            for previous in [each for each in self._all if each.session == session]:
                self._end(previous)
            self._all.append(job)
            job.waiting = True
            self._start_next()
            self._look_after()
        return job

    def resume(self, job: TrainingJob) -> None:
        """Let a training that was stopped learn on, when it has a slot."""
        with self._lock:
            if job.can_resume and job in self._all:
                self._all.remove(job)
                self._all.append(job)
                job.waiting = True
                self._start_next()
                self._look_after()

    def stop(self, job: TrainingJob) -> None:
        """Stop a training; its model stays."""
        with self._lock:
            job.waiting = False
            job.run.stop()

    def ahead(self, job: TrainingJob) -> int:
        """The number of trainings that run or wait before a waiting one."""
        with self._lock:
            earlier = self._all[: self._all.index(job)] if job in self._all else []
            return sum(each.waiting or each.learning for each in earlier)

    def longest(self) -> float:
        """The longest remaining time of running trainings, in seconds of the processor."""
        with self._lock:
            remaining = [MAX_SECONDS - each.progress.seconds for each in self._all if each.learning]
        return max(0.0, min(remaining, default=0.0))

    def keep(self, job: TrainingJob) -> tuple[str, tuple[str, ...]]:
        """Hold a training's model for its visit: its name, and the names of those that went to make
        room. Raises ValueError where it has no weights yet."""
        name = live_training.save_snapshot(job.run)
        with self._lock:
            own_models = [
                model for model, session in self._sessions.items() if session == job.session
            ]
            dropped = (
                own_models[: len(own_models) + 1 - MAX_MODELS_PER_VISIT]
                if len(own_models) >= MAX_MODELS_PER_VISIT
                else []
            )
            remaining = [model for model in self._sessions if model not in dropped]
            dropped += remaining[: max(0, len(remaining) + 1 - MAX_MODELS)]
            for model in dropped:
                self._drop(model)
            self._sessions[name] = job.session
            self._look_after()
        return name, tuple(dropped)

    def _end(self, job: TrainingJob) -> None:
        job.waiting = False
        job.run.end()
        self._all.remove(job)

    def _drop(self, name: str) -> None:
        self._sessions.pop(name, None)
        live_training.delete_snapshot(name)
        models.forget(name)

    def _start_next(self) -> None:
        free = self._at_once() - sum(each.learning for each in self._all)
        for job in [each for each in self._all if each.waiting][: max(0, free)]:
            job.waiting, job.began = False, time.monotonic()
            job.run.resume()

    def _look_after(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="live", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            time.sleep(PROGRESS_INTERVAL)
            with self._lock:
                self._look()
                if not self._all and not self._sessions:
                    self._thread = None
                    return

    def _look(self) -> None:
        now = time.monotonic()
        for job in list(self._all):
            if self._is_connected(job.session):
                job.seen = now
            elif not self._may_return(job.session):
                self._end(job)
                continue
            elif now - job.seen > TRAINING_TIMEOUT:
                job.waiting = False
                job.run.stop()
            if job.learning and now - job.began > self._seconds():
                job.run.stop()
        for name in [
            name for name, session in self._sessions.items() if not self._may_return(session)
        ]:
            self._drop(name)
        self._start_next()


trainings = Trainings(
    lambda: settings().live, is_here, is_known, lambda: float(settings().max_seconds)
)


def training_allowed() -> bool:
    """True where readers may train models on this server."""
    return settings().live > 0


def current_training() -> TrainingJob | None:
    """This visit's training, as far as it is."""
    return visit.training


def begin_training(plan: TrainingPlan) -> None:
    """Begin a training for this visit. Raises ValueError where this server trains none."""
    run = get_script_run_ctx(suppress_warning=True)
    visit.training = trainings.begin(plan, run.session_id if run else "")


def keep_model(job: TrainingJob) -> str:
    """Hold its model for this visit, as one of the models to choose from; returns its name."""
    name, dropped = trainings.keep(job)
    models.forget_opened(dropped)
    models.remember_opened(name)
    return name


END_TIMEOUT = 5.0  # seconds
# Seconds without its readers after which work ends: a broken line is soon back.
READER_TIMEOUT = 10.0


class Job:
    """A computation in a thread that can be stopped and resumed. Each of its steps runs in the
    compute queue, unless it `takes_slots` itself for its calls of a model. Without readers it ends,
    within a step too, and would begin anew.

    `latest`: its latest result, None before the first; `running`, `finished`."""

    # Those that run, by key: however full the cache is, they are found again and can be stopped.
    running_jobs: dict[Hashable, Job] = {}

    def __init__(
        self, begin: Callable[[], Iterator[Any]], key: Hashable = None, takes_slots: bool = True
    ) -> None:
        self.latest: Any = None
        self.running = self.finished = False
        self._begin, self._remaining_steps = begin, begin()
        self._asking = threading.Lock()
        self._key = self if key is None else key
        self._thread: threading.Thread | None = None
        self._slot = slot if takes_slots else nullcontext
        self._readers: frozenset[str] = frozenset()
        self._seen, self._abandoned = 0.0, False

    def resume(self) -> None:
        """Start, or start again where it was stopped; nothing where it runs or has finished."""
        with self._asking:
            if self.running or self.finished:
                return
            if self._thread:
                with memory_budget.waiting():
                    self._thread.join()  # a step at most: it was told to stop
            if self.running_jobs.setdefault(self._key, self) is not self:
                return  # another one under the same key is at it
            self.running, self._seen, self._abandoned = True, time.monotonic(), False
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop after the current step; the results so far stay."""
        self.running = False

    def read_by(self, session: str) -> None:
        """Register a reader's session, or `sessions.NOBODY` for none in particular."""
        self._readers |= {session}

    def remove_viewer(self, session: str) -> None:
        """Remove a reader who has opened something else."""
        self._readers -= {session}
        if not self._readers and self.running:
            self._abandoned = True

    def end(self) -> None:
        """End it within the step it is at, and wait until it has, a few seconds at most."""
        self._abandoned = self.running
        if self._thread:
            self._thread.join(END_TIMEOUT)

    def _look(self) -> None:
        now = time.monotonic()
        if any(map(is_here, self._readers)):
            self._seen = now
        elif self._readers and now - self._seen > READER_TIMEOUT:
            self._abandoned = True
        if self._abandoned:
            raise Cancelled

    def _work(self) -> None:
        try:
            with cancellable(self._look):
                while self.running:
                    self._look()
                    with memory_budget.work(behind=True), self._slot():
                        result = next(self._remaining_steps, None)
                    if result is None:
                        self.finished = True
                        return
                    self.latest = result
        except (Cancelled, NoRoom):
            self._remaining_steps, self._abandoned = self._begin(), False  # lets go of what it held
        finally:
            self.running = False
            if self._key is not self:
                caching.cache.weigh_again(self._key, self)
            self.running_jobs.pop(self._key, None)


def close() -> None:
    """End all jobs. Python must not end while a thread computes: C++ would abort."""
    for job in list(Job.running_jobs.values()):
        job.end()


def _job(key: Hashable, begin: Callable[[], Iterator[Any]], takes_slots: bool = True) -> Job:
    """The experiment under a key: the one that runs, else the one in the cache, else a new one."""
    # What one that runs comes to stays in the cache when it ends, at what it weighs then.
    job = Job.running_jobs.get(key) or caching.get(key, lambda: Job(begin, key, takes_slots))
    job.read_by(sessions.current())
    return job


_viewed_jobs: WeakValueDictionary[tuple[str, str], Job] = WeakValueDictionary()


def recording_job(recording: Recording, name: str, begin: Callable[[], Iterator[Any]]) -> Job:
    """The job `what` on a recording, at its furthest step. It begins by itself, so a reader who
    opens another leaves the one before."""
    job = _job((name, *cause(recording)), begin, takes_slots=False)
    reader = sessions.current(), name
    previous = _viewed_jobs.get(reader)
    if previous is not None and previous is not job and reader[0] != sessions.NOBODY:
        previous.remove_viewer(reader[0])
    _viewed_jobs[reader] = job
    return job


def decay_job(recording: Recording, stream: str, lag: int) -> Job:
    """The experiment of `registry.decay` on the tokens of a stream, at its furthest step."""
    ids = tuple(int(each) for each in recording.stream(stream).ids)
    return _job(("decay", ids[:100], lag), lambda: registry.decay(ids, lag))


@dataclass(frozen=True)
class SweepProgress:
    """A sweep of patches as far as it has come: the logit difference in the run as it is and in the
    donor's, how many places there are, and what each patch so far made of it, (place, logit
    difference). `error` says in words why it cannot be done."""

    clean: float = 0.0
    donor: float = 0.0
    places: int = 0
    effects: tuple[tuple[tuple[Any, int], float], ...] = ()
    error: str = ""


def patch_sweep(
    recording: Recording, unit: str, donor: str, name: str, token: int, id: int, against: int
) -> Job:
    """Patching of every part of the donor's run into the recording's, one by one: `what` is
    "Heads", of the attention `name`, or "Sites", of the stream `name`. The effect is the change of
    logit(id) - logit(against) at a token. At its furthest step."""
    model, text, edits = loaded(recording), recording.text, recording.edits
    donor = truncate(donor)
    begin = model.patch_heads if unit == "Heads" else model.patch_sites

    def steps() -> Iterator[SweepProgress]:
        try:
            patches = begin(text, donor, name, token, id, against, edits)
            effects: list[tuple[tuple[Any, int], float]] = []
            yield SweepProgress(patches.clean, patches.donor, patches.places)
            for effect in patches.effects:
                effects.append((effect.place, effect.value))
                yield SweepProgress(patches.clean, patches.donor, patches.places, tuple(effects))
        except ValueError as error:
            if isinstance(error, NoRoom) and error.passing:
                raise
            yield SweepProgress(error=str(error))

    return _job(("sweep", *cause(recording), unit, donor, name, token, id, against), steps)


def corpus_job(
    model: str, texts: tuple[str, ...], key: Hashable, measure: Callable[[Recording], Any]
) -> Job:
    """Many texts read one by one: `latest` has the result of `measure` for each so far, in their
    order, or an error message for a text that cannot be read. At its furthest step. The recordings
    themselves are not kept; the results are, as those of `Run.measure`."""

    def steps() -> Iterator[tuple[Any, ...]]:
        results: list[Any] = []
        for text in texts:
            results.append(Run(model, text).measure(key, measure))
            yield tuple(results)

    return _job(("through", model, loaded(model).card.fingerprint, texts, key), steps)
