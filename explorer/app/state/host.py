"""The app as the host of its models: readers take turns, memory is shared, and only offered models
are opened.

Importing this module makes it so for the process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.app.state import event_log, garbage_collection, models, scheduling
from explorer.app.state.models import is_loaded
from explorer.app.state.settings import settings, truncate
from explorer.app.state.visit import visit
from explorer.text import places
from models import model_names
from models.contract.cancellation import TimeLimit
from models.contract.edits import Edit
from models.contract.model import Model
from models.contract.notices import Notice
from models.contract.recording import Recording
from models.contract.results import OneList
from models.example_texts import DEFAULT_MODEL, OPENING_TEXT
from models.live import live_training
from models.live.live_training import TrainingProcess
from models.network import buffer_pool
from models.runtime import caching, registry
from models.runtime.caching import hurrying as hurrying
from models.runtime.caching import loaded
from models.runtime.host import Host

Result = TypeVar("Result")
MAX_BATCH, MAX_BATCHED = 8, 300  # texts that are read in one pass, and characters of each
_batches = scheduling.BatchQueue(MAX_BATCH)
_prefetches: ContextVar[bool] = ContextVar("prefetches", default=False)


class AppHost(Host):
    """The host of the app's process, for all its readers."""

    cache_bytes = settings().cache_bytes
    work_bytes = settings().work_bytes
    memory = scheduling.memory_budget

    def model(self, name: str) -> Model:
        """The loaded model of that name, if this server offers it to this visitor. Raises
        ValueError, saying why, for one that cannot be used. What this process has wrapped is its
        own, but for the recordings of visitors."""
        is_own = registry.holds(name) and not model_names.is_recorded(name)
        return registry.load(name) if is_own else models.in_memory(name)

    def adopt(self, model: Model) -> None:
        """Keep a model that a caller of the library loaded, under its own name."""
        models.adopt_model(model)

    def is_loaded(self, name: str) -> bool:
        """True for a model in memory."""
        return is_loaded(name)

    def no_room(self, name: str) -> str:
        """Reason why a pretrained model cannot be loaded now, "" where it can."""
        return models.no_room(name)

    def truncate(self, text: str) -> str:
        """The text cut to this server's limit of characters."""
        return truncate(text)

    def slot(self) -> AbstractContextManager[None]:
        """Wait for a slot in the compute queue, and compute in it."""
        return scheduling.slot()

    def slot_released(self) -> AbstractContextManager[None]:
        """Leave the slot to others while this thread waits for another one."""
        return scheduling.slot_released()

    def in_slot(self, make: Callable[[], Result]) -> Result:
        """The result of `make`, run in the compute queue. A computation that takes too long ends
        the reader's run with a message."""
        try:
            with scheduling.slot():
                return make()
        except TimeLimit as error:
            if get_script_run_ctx(suppress_warning=True) is None:
                raise
            st.warning(str(error))
            st.stop()

    def exclusively(self, make: Callable[[], Result]) -> Result:
        """The result of `make`, which needs much memory: one such job at a time on the server."""
        return scheduling.run_exclusively(make)

    def check_cancelled(self) -> None:
        """End this run or computation where nobody waits for its result any more."""
        scheduling.check_cancelled()

    def record(
        self,
        model: Model,
        text: str | tuple[int, ...],
        edits: tuple[Edit, ...],
        target: str | tuple[int, ...] | None,
    ) -> Recording:
        """A recording by a model, in a slot, and counted."""
        event_log.count("text")
        return super().record(model, text, edits, target)

    def reads_together(self, model: Model, text: str) -> bool:
        """True for a short text of a heavy model that reads several at once, where nothing is
        compared with a run under edits: a pass over several texts differs from one over a single
        text by rounding."""
        is_heavy = model.name in scheduling.heavy_models
        return len(text) <= MAX_BATCHED and is_heavy and _shares_passes() and model.reads_batches

    def record_together(self, model: Model, text: str) -> Recording:
        """A recording of a text, made in one pass with those of other readers."""
        group = model.name, model.card.fingerprint
        return _batches.result(group, text, partial(self._read_texts, model))

    def _read_texts(self, model: Model, texts: list[str]) -> Sequence[Recording]:
        """Recordings of the first of several texts; of the very first alone where one of them
        cannot be read, or where all take too long."""
        if len(texts) > 1:
            with suppress(ValueError), scheduling.for_others(), scheduling.slot():
                recordings = model.record_batch(texts)
                event_log.count("text", n=len(recordings))
                return recordings
        return (self.record(model, texts[0], (), None),)


def _shares_passes() -> bool:
    if get_script_run_ctx(suppress_warning=True) is None:
        return _prefetches.get()
    if st.session_state.get("edits") or not visit.page:
        return False
    return places.PLACES[places.place_of(visit.page)].reads_together


@contextmanager
def prefetching() -> Iterator[None]:
    """Compute for a page without edits, before its run."""
    token = _prefetches.set(True)
    try:
        yield
    finally:
        _prefetches.reset(token)


@contextmanager
def recorded_ahead(model: str, text: str) -> Iterator[None]:
    """Record a text before the run that shows it has its slot, where it can be read in one pass
    with those of other readers, and keep the recording for the run. The page says what is wrong
    with a text that cannot be read."""
    recording = None
    with suppress(ValueError):
        if is_loaded(model) and app.reads_together(loaded(model).uncached, truncate(text)):
            with scheduling.memory_budget.work(), scheduling.computing(is_heavy=True):
                recording = loaded(model).record(text)
    yield
    del recording


def record_training(run: TrainingProcess, text: str, step: int | None = None) -> Recording:
    """A text as a training's model reads it now, or after so many steps. Of a list that is
    answered, its decoder reads the right answer.

    It is not kept: a moment later there is another. Raises ValueError before there are weights, and
    for a text that it cannot read.
    """
    return caching.in_slot(lambda: live_training.record_text(run, text, step))


def read_list(run: TrainingProcess, text: str, step: int | None = None) -> OneList:
    """One list and what a training's model says to it now, or after so many steps, likewise."""
    return caching.in_slot(lambda: live_training.read_list(run, text, step))


def warm_up() -> None:
    """Load the first model and run it once on the first text, so that lazy imports are done."""
    loaded(DEFAULT_MODEL).record(OPENING_TEXT)
    garbage_collection.freeze()


app = AppHost()
caching.use(app)
warnings.simplefilter("ignore", Notice)  # pages say it
garbage_collection.on_idle.append(lambda: caching.cache.evict_all())
garbage_collection.on_idle.append(buffer_pool.clear)
garbage_collection.cached_sizes += [lambda: caching.cache.total, buffer_pool.pooled_bytes]
