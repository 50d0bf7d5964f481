"""The shelf: whatever has been computed, by its cause (model, weights' fingerprint, text, edits),
and where a caller handed the recording in, by what it holds; bounded by bytes."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.state import event_log, garbage_collection, places
from explorer.state.models import DEFAULT_MODEL, adopt_model, handle, is_loaded
from explorer.state.scheduling import (
    LARGE_BYTES,
    POLL_INTERVAL,
    BatchQueue,
    TimeLimit,
    check_cancelled,
    computing,
    for_others,
    heavy_models,
    memory_budget,
    turn,
    turn_released,
)
from explorer.state.settings import settings, truncate
from models import buffer_pool, live_training, registry, whole_words
from models.edits import Edit, OtherNorm
from models.example_texts import DEFAULT_TEXT
from models.recording import Attention, Recording, digest
from models.results import Attribution, Circuits, Lens, Neurons, WholeWord

CACHE_BYTES = settings().shelf_bytes
PRIMITIVE_TYPES = frozenset((int, float, bool, type(None)))
MAX_BATCH, MAX_BATCHED = 8, 300  # texts that are read in one pass, and characters of each
# Tabs of the places where nothing is edited by itself.
SHARING_TABS = frozenset(
    tab for place in ("attention", "architecture", "predict") for tab in places.PLACES[place].tabs
)
MAX_COMPLETED = 128  # tokens of a text after which words are written out
OBJECT_BYTES = 16  # bytes an object takes at least, beside its arrays and texts


class PendingEntry:
    """A value that is being computed: others who request it wait for that computation."""

    def __init__(self) -> None:
        self.owner, self.ended = threading.get_ident(), threading.Event()
        self.made: tuple[Any, ...] = ()


def _hold_for_run(value: Any, weight: int) -> None:
    if weight >= LARGE_BYTES:
        memory_budget.holds(weight, value)


class EvictedRef:
    """A heavy value that the cache has dropped: it may be referenced elsewhere, or a part of a
    recording, which keeps the memory of the whole."""

    def __init__(self, value: Any, weight: int) -> None:
        self.value, self.weight = weakref.ref(value), weight
        self._memory = [(weakref.ref(each), each.nbytes) for each in _memory_of(value)]

    def alive(self) -> int:
        """Bytes of it that are still referenced."""
        if self.value() is not None:
            return self.weight
        return sum(size for memory, size in self._memory if memory() is not None)


def _memory_of(value: Any) -> Iterable[np.ndarray]:
    """The arrays in which those of a recording lie; of all else nothing."""
    parts = (*value.streams, *value.attention) if isinstance(value, Recording) else ()
    arrays = [array for part in parts for array in vars(part).values()]
    owners = [
        array.base if isinstance(array.base, np.ndarray) else array
        for array in arrays
        if isinstance(array, np.ndarray)
    ]
    return {id(array): array for array in owners}.values()


class Cache:
    """Computed values by key; the least recently used are dropped when all together weigh more than
    `limit` bytes. Thread-safe.

    Each value is computed once for all who request it; no request waits for the computation of
    another key. A heavy value that was dropped while it is still referenced counts as long as it
    lives, and a new request returns it: the limit is one on all values in use."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._heavy: OrderedDict[Hashable, None] = OrderedDict()  # keys, of what makes room
        self._evicted: dict[Hashable, EvictedRef] = {}  # heavy, and maybe alive
        self.total = 0  # bytes of all that is held
        self._reserved_bytes: dict[int, int] = {}  # bytes taken for what is being made, by thread
        self.lock, self.take_lock = threading.Lock(), threading.Lock()
        self.pending: dict[Hashable, PendingEntry] = {}

    def get(
        self,
        key: Hashable,
        make: Callable[[], Any],
        weigh: Callable[[Any], int] | None = None,
        keep: bool = True,
    ) -> Any:
        """The value under `key`, made now where it is missing. It weighs `weigh(value)` bytes, by
        default its arrays and texts. keep: False for a value that is dropped at once where it is
        heavy."""
        while True:
            with self.lock:
                if key in self.entries:
                    self.entries.move_to_end(key)
                    if key in self._heavy:
                        self._heavy.move_to_end(key)
                        _hold_for_run(*self.entries[key])
                    return self.entries[key][0]
                if (revived := self._revive(key)) is not None:
                    return revived
                pending = self.pending.get(key)
                entry = PendingEntry()
                if pending is None:
                    self.pending[key] = entry
            if pending is None:
                return self._make(key, entry, make, weigh, keep)
            if pending.owner == threading.get_ident():
                return make()  # asked for within its own making
            with turn_released(), memory_budget.waiting():
                while not pending.ended.wait(POLL_INTERVAL):
                    check_cancelled()
            if pending.made:
                return pending.made[0]  # else whoever made it was stopped: the next one makes it

    def _make(
        self,
        key: Hashable,
        entry: PendingEntry,
        make: Callable[[], Any],
        weigh: Callable[[Any], int] | None,
        keep: bool,
    ) -> Any:
        try:
            value = make()
            # A bare array is weighed at once, whatever is said of it.
            least = weight_of(value) if isinstance(value, np.ndarray) else 0
            weight = max(least, weigh(value)) if weigh else weight_of(value)
            with self.lock:
                self._reserved_bytes.pop(entry.owner, None)
                self._insert(key, value, weight)
                if not keep and key in self._heavy:
                    self._drop(key)
            _hold_for_run(value, weight)
            entry.made = (value,)
            return value
        finally:
            with self.lock:
                self.pending.pop(key, None)
                self._reserved_bytes.pop(entry.owner, None)
            entry.ended.set()

    def weight(self) -> int:
        """The weight of all cached values in bytes."""
        with self.lock:
            return self.total

    def evict_all(self) -> None:
        """Keep only light, recently used values, at most a twentieth of the limit: for a server
        without readers."""
        with self.lock:
            for key, (_, weight) in list(self.entries.items()):
                if weight > self.limit / 100 or self.total > self.limit / 20:
                    self._drop(key)

    def make_room(self, size: int) -> bool:
        """Drop heavy values, the least recently used first, until so many bytes fit: before they
        are allocated, not after. True where there was not enough room."""
        with self.lock:
            scarce = not self._has_room(size + buffer_pool.pooled_bytes())
            self._drop_for(size)
        return scarce

    def fits(self, size: int) -> bool:
        """True where so many bytes fit, once heavy values are dropped."""
        with self.lock:
            self._drop_for(size)
            return self._has_room(size)

    def take(self, size: int) -> bool:
        """Reserve so many bytes for this thread's computation: drop heavy values, and where that is
        not enough, end the runs that reference them. True where anything was dropped."""
        scarce = self.make_room(size)
        if size < LARGE_BYTES:
            return scarce
        memory_budget.release_oldest()
        if not self._try_take(size):
            with turn_released():
                if not memory_budget.wait_for(size, lambda: self._try_take(size)):
                    self._begin(size)
        return scarce

    def _try_take(self, size: int) -> bool:
        """Take so many bytes where there is room and the run of this thread may have them."""
        with self.take_lock:
            if not (self.fits(size) and memory_budget.may_take(size, self.limit)):
                return False
            self._begin(size)
            return True

    def _begin(self, size: int) -> None:
        memory_budget.holds(size)
        thread = threading.get_ident()
        with self.lock:
            if any(entry.owner == thread for entry in self.pending.values()):
                self._reserved_bytes[thread] = self._reserved_bytes.get(thread, 0) + size

    def _insert(self, key: Hashable, value: Any, weight: int) -> None:
        self._drop(key)
        self._evicted.pop(key, None)
        self.total += weight
        self.entries[key] = (value, weight)
        if weight > self.limit / 100:
            self._heavy[key] = None
        while len(self.entries) > 1 and self.total > self.limit:
            # To drop what is light would make no room, and it may have been long in the making.
            oldest_heavy = next(iter(self._heavy), key)
            self._drop(next(iter(self.entries)) if oldest_heavy == key else oldest_heavy)
        while self.total + self._outside_bytes() > self.limit:
            oldest_heavy = next(iter(self._heavy), key)
            if oldest_heavy == key:
                return
            self._drop(oldest_heavy)

    def _revive(self, key: Hashable) -> Any:
        """Restore a value that was dropped under `key` but is still referenced elsewhere; else
        None."""
        evicted = self._evicted.get(key)
        value = evicted and evicted.value()
        if evicted and value is not None:
            self._insert(key, value, evicted.weight)
            _hold_for_run(value, evicted.weight)
        return value

    def _outside_bytes(self) -> int:
        """Bytes of dropped values that are still referenced, and of those being computed."""
        alive = {key: ref.alive() for key, ref in self._evicted.items()}
        self._evicted = {key: ref for key, ref in self._evicted.items() if alive[key]}
        return sum(alive.values()) + sum(self._reserved_bytes.values())

    def _has_room(self, size: int) -> bool:
        return self.total + self._outside_bytes() + size <= self.limit

    def _drop_for(self, size: int) -> None:
        while self._heavy and not self._has_room(size):
            self._drop(next(iter(self._heavy)))

    def _drop(self, key: Hashable) -> None:
        value, weight = self.entries.pop(key, (None, 0))
        self.total -= weight
        if key in self._heavy:
            del self._heavy[key]
            with suppress(TypeError):  # bytes and the like: whoever holds them has done so alone
                self._evicted[key] = EvictedRef(value, weight)


def weight_of(value: Any) -> int:
    """The bytes that a value keeps in memory: its arrays, each counted once and a view as the whole
    array below it, texts, and a little for every object."""
    visited: set[int] = set()
    total, stack = 0, [value]
    while stack:
        item = stack.pop()
        if type(item) in PRIMITIVE_TYPES:
            total += OBJECT_BYTES
            continue
        if id(item) in visited:
            continue
        visited.add(id(item))
        own, parts = _own_bytes(item)
        total += own
        stack += parts
        total += OBJECT_BYTES
    return total


def _own_bytes(one: Any) -> tuple[int, Iterable[Any]]:
    """The bytes of a value's own, and what else it keeps in memory."""
    if isinstance(one, np.ndarray):
        return (0, (one.base,)) if isinstance(one.base, np.ndarray) else (one.nbytes, ())
    if isinstance(one, (str, bytes, bytearray)):
        return len(one), ()
    if isinstance(one, (list, tuple, set, frozenset)):
        return 0, one
    if isinstance(one, Mapping):  # after the others, since it takes longest to ask
        return 0, (*one.keys(), *one.values())
    if hasattr(one, "nbytes"):
        return int(one.nbytes), ()
    if hasattr(one, "__dict__") and not isinstance(one, (type, ModuleType)):
        return 0, vars(one).values()
    return 0, ()


_cache = Cache(CACHE_BYTES)
_batches = BatchQueue(MAX_BATCH)
_prefetches: ContextVar[bool] = ContextVar("prefetches", default=False)
garbage_collection.on_idle.append(lambda: _cache.evict_all())
garbage_collection.on_idle.append(buffer_pool.clear)
garbage_collection.cached_sizes += [lambda: _cache.total, buffer_pool.pooled_bytes]
buffer_pool.before_lending.append(lambda coming: _cache.take(coming))


def get(key: Hashable, make: Callable[[], Any], weigh: Callable[[Any], int] | None = None) -> Any:
    """The value in the app's one cache under `key`, made now where it is missing."""
    return _cache.get(key, make, weigh)


def get_uncached(key: Hashable, make: Callable[[], Any]) -> Any:
    """Like `get`, for a single use: a heavy value is not cached."""
    return _cache.get(key, make, keep=False)


def cached_for(
    recording: Recording,
    key: Hashable,
    make: Callable[[], Any],
    weigh: Callable[[Any], int] | None = None,
) -> Any:
    """Something computed from a recording, kept under `what` beside it."""
    return get(("derived", *cache_key(recording), key), make, weigh)


def is_cached_for(recording: Recording, key: Hashable) -> bool:
    """True where `derived` has something already."""
    return ("derived", *cache_key(recording), key) in _cache.entries


def cached_for_recordings(model: str, key: Hashable, make: Callable[[], Any]) -> Any:
    """Something computed from several recordings of a model, kept under `what`, which names them,
    so that it needs none of them again."""
    return get(("kept", model, handle(model).card.fingerprint, key), make)


def cached_for_model(
    recording: Recording, key: tuple[Hashable, ...], make: Callable[[Any], Any]
) -> Any:
    """Something of the recording's model alone, kept whatever the text."""
    loaded = handle(recording.model.name)
    return get(
        ("of model", recording.model.name, recording.model.fingerprint, *key),
        lambda: make(loaded),
    )


def vocabulary(recording: Recording) -> list[str]:
    """Labels of all tokens of a recording's model, by their ids."""
    n = recording.model.n_vocab
    return cached_for_model(recording, ("vocabulary",), lambda model: model.labels(range(n)))


def picture_name(recording: Recording, *key: Hashable) -> str:
    """A short name for a picture: equal causes, equal name. Whoever waits for a picture in the
    browser waits for this name."""
    cause = (*cache_key(recording), key)
    return hashlib.sha256(repr(cause).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def cache_key(recording: Recording) -> tuple[Any, ...]:
    """The key of a recording: all that determines its numbers."""
    # The ids too: what a translator said may be split otherwise than the same text typed for it.
    return (
        recording.model.name,
        recording.model.fingerprint,
        recording.text,
        recording.target,
        recording.edits,
        recording.streams[-1].ids.tobytes(),
        _contents.get(id(recording), ""),
    )


# A model's passes over a text, and what is read off them: each made once for everyone and kept on
# the shelf.

Result = TypeVar("Result")


def warm_up() -> None:
    """Load the first model and run it once on the first text, so that lazy imports are done."""
    record(DEFAULT_MODEL, DEFAULT_TEXT)
    garbage_collection.freeze()


def run_in_turn(make: Callable[[], Result]) -> Result:
    """The result of `make`, run in the compute queue. A computation that takes too long ends the
    reader's run with a message."""
    try:
        with turn():
            return make()
    except TimeLimit as error:
        if get_script_run_ctx(suppress_warning=True) is None:
            raise
        st.warning(str(error))
        st.stop()


def record(
    model: str,
    text: str,
    edits: tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
    get: Callable[[Hashable, Callable[[], Any]], Recording] = get,
) -> Recording:
    """The recording of a model on a text, from the cache where it is there. `target` as in
    `Model.record`.

    A text or target beyond the server's limit is cut at its end."""
    loaded, text = handle(model), truncate(text)
    target = truncate(target) if isinstance(target, str) else target
    key = ("recording", model, loaded.card.fingerprint, text, edits, target)
    if edits or target is not None or key in _cache.entries or not _is_batched(model, text):
        return get(key, lambda: _read_text(loaded, text, edits, target))
    read = partial(_read_texts, loaded)
    return get(("in a batch", *key), lambda: _batches.result(key[1:3], text, read))


def _is_batched(model: str, text: str) -> bool:
    """True for a short text of a heavy model that reads several at once, where nothing is compared
    with a run under edits: a pass over several texts differs from one over a single text by
    rounding."""
    is_short = len(text) <= MAX_BATCHED
    return is_short and model in heavy_models and _shares_passes() and handle(model).reads_batches


def _shares_passes() -> bool:
    if get_script_run_ctx(suppress_warning=True) is None:
        return _prefetches.get()
    state = st.session_state
    return not state.get("edits") and state.get("page") in SHARING_TABS


@contextmanager
def prefetching() -> Iterator[None]:
    """Compute for a page without edits, before its run."""
    token = _prefetches.set(True)
    try:
        yield
    finally:
        _prefetches.reset(token)


def _read_text(loaded: Any, text: str, edits: tuple[Edit, ...] = (), target: Any = None) -> Any:
    event_log.count("text")
    return run_in_turn(lambda: loaded.record(text, edits, target))


def _read_texts(loaded: Any, texts: list[str]) -> Sequence[Recording]:
    """Recordings of the first of several texts; of the very first alone where one of them cannot be
    read, or where all take too long."""
    if len(texts) > 1:
        with suppress(ValueError), for_others(), turn():
            made = loaded.record_batch(texts)
            event_log.count("text", n=len(made))
            return made
    return (_read_text(loaded, texts[0]),)


@contextmanager
def recorded_ahead(model: str, text: str) -> Iterator[None]:
    """Record a text before the run that shows it has its turn, where it can be read in one pass
    with those of other readers, and keep the recording for the run. The page says what is wrong
    with a text that cannot be read."""
    recording = None
    with suppress(ValueError):
        if is_loaded(model) and _is_batched(model, truncate(text)):
            with memory_budget.work(), computing(is_heavy=True):
                recording = record(model, text)
    yield
    del recording


def record_uncached(
    model: str, text: str, edits: tuple[Edit, ...], target: tuple[int, ...] | None
) -> Recording:
    """Like `record`, for a single use: a heavy recording is not cached and evicts nothing."""
    return record(model, text, edits, target, get_uncached)


def record_training(run: Any, text: str, step: int | None = None) -> Recording:
    """A text as a training's model reads it now, or after so many steps. Of a list that is
    answered, its decoder reads the right answer.

    It is not kept: a moment later there is another. Raises ValueError before there are weights, and
    for a text that it cannot read.
    """
    return run_in_turn(lambda: live_training.record_text(run, text, step))


@dataclass(frozen=True)
class Run:
    """The arguments of a recording, without the recording: light enough to be stored for every
    visitor."""

    model: str
    text: str
    edits: tuple[Edit, ...] = ()
    target: str | tuple[int, ...] | None = None
    contents: str = field(default="", repr=False)  # digest of what `adopt` was given

    def recording(self) -> Recording:
        """The recording that was adopted, where it is of these arguments; else the model's own,
        from the cache, or made anew where it is no longer there."""
        return self.adopted() or record(self.model, self.text, self.edits, self.target)

    def adopted(self) -> Recording | None:
        """The recording that `adopt` was given, None where this run is not of its text, edits and
        target. Raises ValueError where its owner has let it go."""
        if not self.contents:
            return None
        if (recording := _adopted.get(self.contents)) is None:
            raise ValueError("the recording of this run is no longer in memory; record it again")
        return recording if replace(self, contents="") == _own_run(recording) else None

    def under(self, edits: tuple[Edit, ...]) -> Run:
        """The run under these edits. A translator's decoder goes on reading the text that it reads
        without them, so that both runs have the same rows."""
        target = self.target
        if target is None and len(streams := self.recording().streams) > 1:
            target = tuple(map(int, streams[-1].ids[1:]))
        return replace(self, edits=edits, target=target)


def measure_run(run: Run, key: Hashable, measure: Callable[[Recording], Any]) -> Any:
    """Apply `measure` to a run's recording without keeping the recording; the message where a
    model cannot read the text."""
    loaded = handle(run.model)

    def make() -> Any:
        text = truncate(run.text)
        try:
            adopted = run.adopted()
            return measure(adopted or _read_text(loaded, text, run.edits, run.target))
        except ValueError as error:
            return str(error)

    return cached_for_recordings(run.model, (key, run), make)


def run_of(recording: Recording) -> Run:
    """The run of a recording, for callbacks and buttons that outlive a script run."""
    return replace(_own_run(recording), contents=cache_key(recording)[-1])


def _own_run(recording: Recording) -> Run:
    """The run in which a recording's model makes it."""
    ids = tuple(map(int, recording.streams[-1].ids[1:])) if len(recording.streams) > 1 else None
    return Run(recording.model.name, recording.text, recording.edits, ids)


# Recordings that callers handed in, by their digests, and the digest of each. They may be changed
# or of an older file, so that model, text and edits do not say what is in them.
_adopted: WeakValueDictionary[str, Recording] = WeakValueDictionary()
_contents: dict[int, str] = {}  # by the identity of one that lives


def adopt(recording: Recording, loaded: Any) -> Run:
    """The run of a recording in hand and its loaded model. It shows this recording for as long as
    the caller keeps it; what other runs show does not change."""
    adopt_model(loaded)
    contents = digest(recording)
    _adopted[contents], _contents[id(recording)] = recording, contents
    weakref.finalize(recording, _contents.pop, id(recording), None)
    return replace(_own_run(recording), contents=contents)


def _model_output(recording: Recording, method: str, *arguments: Any) -> Any:
    """The result of a method of the recording's model, computed in the queue and cached."""
    # Here and below before the turn: a model that has to be loaded anew holds nobody up.
    loaded = handle(recording.model.name)
    return cached_for(
        recording,
        (method, *arguments),
        lambda: run_in_turn(lambda: getattr(loaded, method)(recording, *arguments)),
    )


def lens(recording: Recording, stream: str, top: int = 10) -> Lens:
    """The logit lens on a stream of a recording."""
    return _model_output(recording, "lens", stream, top)


def logits(recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores over the vocabulary (id) at one token of a stream."""
    return _model_output(recording, "logits", stream, token)


def next_words(
    model: str,
    text: str,
    next_tokens: Sequence[tuple[int, float]],
    limit: int = whole_words.MAX_WORDS,
    ids_read: tuple[int, ...] | None = None,
) -> dict[int, WholeWord]:
    """The words of several pieces that begin with the likeliest next tokens after a text, by the
    token, as `models.whole_words`; none where `ids_read` are given and the text is read as other
    tokens."""
    loaded = handle(model)
    followed = whole_words.followed_tokens(loaded, next_tokens, limit)
    ids = tuple(id for id, _ in followed)
    if not ids:
        return {}

    def make() -> dict[int, WholeWord]:
        try:
            writing = loaded.generate(truncate(text))
        except ValueError:  # no room for a token more
            return {}
        if ids_read is not None and tuple(map(int, writing.ids)) != ids_read:
            return {}
        return whole_words.whole_words(loaded, writing, followed)

    return get(("whole", model, loaded.card.fingerprint, text, ids), lambda: run_in_turn(make))


def predicted_words(
    recording: Recording,
    next_tokens: Sequence[tuple[int, float]],
    limit: int = whole_words.MAX_WORDS,
    token: int = -1,
) -> dict[int, WholeWord]:
    """The same for the likeliest tokens after one of a recording's tokens; none for a long text,
    and for an edited run, which cannot be continued."""
    stream = recording.streams[-1]
    if recording.edits or len(stream.tokens) > MAX_COMPLETED:
        return {}
    n_read = token % len(stream.tokens) + 1
    if n_read == len(stream.tokens):
        return next_words(recording.model.name, recording.text, next_tokens, limit)
    text = recording.text[: max(0, int(stream.spans[:n_read, 1].max()))]
    ids_read = tuple(map(int, stream.ids[:n_read]))
    return next_words(recording.model.name, text, next_tokens, limit, ids_read)


def words_after(recording: Recording, token: int) -> dict[int, WholeWord]:
    """The words of several pieces that the likeliest tokens after one of a recording's begin, by
    the token."""
    scores = logits(recording, recording.streams[-1].name, token)
    return predicted_words(recording, whole_words.likely_tokens(scores), token=token)


def attribution(
    recording: Recording, stream: str, token: int, id: int, against: int | None = None
) -> Attribution:
    """A word's logit at a token, taken apart; with `against` the difference to another word's."""
    return _model_output(recording, "attribute", stream, token, id, against)


def nearest(
    recording: Recording, stream: str, token: int, top: int
) -> tuple[np.ndarray, np.ndarray]:
    """The words of the vocabulary that a token's vectors come nearest to at every site of its
    stream: ids and cosines, each (site, rank)."""
    vectors = recording.stream(stream).resid[:, token]
    loaded = handle(recording.model.name)
    return cached_for(
        recording,
        ("nearest", stream, token, top),
        lambda: run_in_turn(lambda: loaded.nearest(vectors, top)),
    )


def all_logits(recording: Recording, stream: str) -> np.ndarray:
    """The model's scores over the vocabulary at every token of a stream, (token, id). Large, and so
    not kept."""
    loaded = handle(recording.model.name)
    return np.stack(
        [
            run_in_turn(lambda: loaded.logits(recording, stream, token))
            for token in range(len(recording.stream(stream).tokens))
        ]
    )


def norms(
    recording: Recording, stream: str
) -> dict[str, tuple[np.ndarray, np.ndarray, float, bool]]:
    """The LayerNorms of a stream as they were in the recording: gain, bias, eps, and whether the
    mean is subtracted (not in an RMSNorm), by place."""
    edits = tuple(edit for edit in recording.edits if isinstance(edit, OtherNorm))
    return cached_for_model(
        recording, ("norms", stream, edits), lambda loaded: loaded.norms(stream, edits)
    )


def outputs(recording: Recording) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """W_O, cut by head, and its bias, by attention of the recording's model."""
    return cached_for_model(recording, ("outputs",), lambda loaded: loaded.outputs())


def stream_gradients(recording: Recording, stream: str, token: int) -> Any:
    """The gradient of an output back to every state of a stream, as `Model.gradients`."""
    return _model_output(recording, "gradients", stream, token)


def jacobian(recording: Recording, stream: str, token: int, site: str) -> Any:
    """The Jacobians of one sub-layer at one token, as `Model.jacobian`."""
    return _model_output(recording, "jacobian", stream, token, site)


def ffn_activations(recording: Recording, stream: str, layer: int, token: int) -> Any:
    """The hidden units of a layer's feed-forward network at one token, as
    `Model.ffn_activations`."""
    return _model_output(recording, "ffn_activations", stream, layer, token)


def neurons(
    recording: Recording, stream: str, layer: int, comparison: tuple[int, int, int | None]
) -> Neurons:
    """The neurons of a layer's FFN by their contribution to a logit; `at`: the token, the word, and
    the one it is compared with, as for `attribution`."""
    return _model_output(recording, "neurons", stream, layer, *comparison)


def circuits(
    recording: Recording, attention: Attention, head: tuple[int, int], positions: tuple[int, ...]
) -> Circuits:
    """A head's circuits on the tokens at some places of its keys, with the values that it has for
    them there."""
    loaded, ids = handle(recording.model.name), recording.stream(attention.key).ids
    return cached_for(
        recording,
        ("circuits", attention.name, head, positions),
        lambda: run_in_turn(
            lambda: loaded.circuits(
                attention.name,
                *head,
                tuple(int(ids[position]) for position in positions),
                attention.v[head][list(positions)],
            )
        ),
    )


def bare_circuits(
    recording: Recording, attention: str, head: tuple[int, int], ids: tuple[int, ...]
) -> Circuits:
    """A head's circuits on bare words, whatever the text."""
    return cached_for_model(
        recording,
        ("circuits", attention, head, ids),
        lambda loaded: run_in_turn(lambda: loaded.circuits(attention, *head, ids)),
    )


def nearest_to(model: str, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words that vectors (row, d_model) come nearest to by cosine: ids and cosines, each (row,
    rank). Not kept."""
    loaded = handle(model)
    return run_in_turn(lambda: loaded.nearest(vectors, top))


def trained_decay(recording: Recording, stream: str, lag: int) -> Any:
    """The last step of `registry.decay` on the tokens of a stream: three networks, trained."""
    ids = tuple(int(each) for each in recording.stream(stream).ids)
    *_, last = registry.decay(ids, lag)
    return last


def depth_gradients(recording: Recording, stream: str) -> Any:
    """The gradients of a deep random stack on a stream's embeddings, as `registry.depth`. Another
    model of the same words has other ones."""
    recorded_stream = recording.stream(stream)
    return cached_for(
        recording,
        ("depth", stream),
        lambda: run_in_turn(lambda: registry.depth(recorded_stream.resid[0])),
    )
