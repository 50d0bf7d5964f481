"""Models in memory, loaded once for everyone, with what each says and shows of itself."""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

from explorer.app.state import event_log, garbage_collection
from explorer.app.state.scheduling import HEAVY_PARAMETERS, heavy_models
from explorer.app.state.settings import settings
from explorer.app.state.visit import visit
from explorer.wording.templates import sentences
from models import model_names
from models.contract.recording import Recording
from models.live import live_training
from models.network import buffer_pool
from models.runtime import registry

WORDS = sentences("server", "models")

# Which models a visitor may choose. On a public server those that come with it and those that its
# operator lists; else any, and what one visitor opened stands on no other's list.

COOKIE = "_streamlit_xsrf"  # a random word that Streamlit gives to each browser
# Browsers of which it is remembered what they opened, and how much.
MAX_BROWSERS, MAX_MODELS_PER_BROWSER = 1000, 20

_of_all_visitors: ContextVar[bool] = ContextVar("of all visitors", default=False)
_salt = secrets.token_bytes(16)
# What each browser opened in this process, the latest last: a page loaded anew is another visit.
_browser_models: OrderedDict[str, tuple[str, ...]] = OrderedDict()


def server_models() -> tuple[str, ...]:
    """The models of this server: the shipped ones, MiniLM in both ways, and those that the operator
    lists."""
    shipped = registry.names()
    minilm = (f"{registry.HUB_PREFIX}{registry.MINILM}",) if registry.MINILM in shipped else ()
    return tuple(dict.fromkeys((*shipped, *minilm, *map(registry.spelled, settings().models))))


def canonical_name(name: str) -> str:
    """The name of the model that a link asks for, in the one way that `load` uses. On a public
    server as it is written: to spell it out would tell a stranger of folders and accounts."""
    return name.strip() if settings().public else registry.spelled(name)


def is_allowed(name: str) -> bool:
    """True for a model that may be opened on this server. It says nothing of whether there is
    one."""
    base = name.partition("@")[0]
    if live_training.is_live(name):
        return base in opened_models()  # of this visit alone
    if model_names.is_recorded(name):
        return name in opened_models() and not _of_all_visitors.get()
    return (
        model_names.is_local(name)
        or registry.without_changes(name) in server_models()
        or base in server_models()
        and name in registry.checkpoints(base)
        or not (settings().public or _of_all_visitors.get())
        and registry.knows(name)
    )


@contextmanager
def of_all_visitors() -> Iterator[None]:
    """Allow inside this only the models that every visitor has here, whoever opened others."""
    token = _of_all_visitors.set(True)
    try:
        yield
    finally:
        _of_all_visitors.reset(token)


def has_every_visitor(name: str) -> bool:
    """True for a model that every visitor may open here: one of whose panels have addresses."""
    with of_all_visitors():
        return is_allowed(canonical_name(name))


def files_of(name: str) -> str:
    """The name of the model whose files one is of: of a translator between two languages itself."""
    return registry.split_languages(name)[0]


def in_languages(name: str, languages: tuple[str, str]) -> str:
    """The name of a multilingual translator between two of its languages, (source, target)."""
    return registry.in_languages(name, languages)


def opened_models() -> tuple[str, ...]:
    """The borrowed models that this visitor opened, in order."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return ()
    return visit.opened_models


def remember_opened(name: str) -> None:
    """This visitor has opened a model."""
    name = files_of(name)
    if live_training.is_live(name):
        name = name.partition("@")[0]
    if name not in server_models() and name.partition("@")[0] not in registry.names():
        visit.opened_models = tuple(dict.fromkeys((*opened_models(), name)))
        is_of_visit = live_training.is_live(name) or model_names.is_recorded(name)
        if (browser := _browser()) and not is_of_visit:
            names = (*(each for each in _browser_models.pop(browser, ()) if each != name), name)
            _browser_models[browser] = names[-MAX_MODELS_PER_BROWSER:]
            while len(_browser_models) > MAX_BROWSERS:
                _browser_models.popitem(last=False)


def is_of_this_browser(name: str) -> bool:
    """True for a model that this browser has opened in this process, in whatever visit, and still
    may."""
    return is_allowed(name) and files_of(name) in _browser_models.get(_browser(), ())


def _browser() -> str:
    """The browser of this visit, under an anonymous name; "" where it is unknown."""
    token, _ = decode_xsrf_token_string(st.context.cookies.get(COOKIE, ""))
    return blake2b(token, key=_salt, digest_size=16).hexdigest() if token else ""


def forget_opened(names: tuple[str, ...]) -> None:
    """Models that are gone stand on this visitor's list no more."""
    visit.opened_models = tuple(name for name in opened_models() if name not in names)


def needs_asking(name: str) -> bool:
    """True for a model that a link alone does not open: it does not come with this server, and this
    visitor has not opened it."""
    name = files_of(name)
    base = name.partition("@")[0]
    is_open = name in opened_models() or (live_training.is_live(name) and base in opened_models())
    return name not in server_models() and base not in registry.names() and not is_open


def choices() -> tuple[str, ...]:
    """The models for this visitor to choose from."""
    return (*server_models(), *(name for name in opened_models() if is_allowed(name)))


# Which borrowed models went through a trial in this process, and with which files.

TRIALS = 2  # of one loading, where files change meanwhile
_trial_stamps: dict[str, object] = {}  # by name, the stamp of the files that were tried


def passed_trial(name: str) -> bool:
    """True for a model that went through a trial, and whose files are as they were then."""
    return name in _trial_stamps and _trial_stamps[name] == registry.stamp(name)


def record_trial(name: str, stamp: object) -> bool:
    """A model went through a trial with the files of this stamp. True where other files of it did
    before."""
    previous = _trial_stamps.get(name, stamp)
    _trial_stamps[name] = stamp
    return previous != stamp


def load(
    name: str, base: str, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
) -> Any:
    """A borrowed model, loaded from files that went through a trial; `base`: the model that it is
    made of. Raises ValueError as `registry.trial_load`, and where the files change meanwhile."""
    for _ in range(TRIALS):
        if not passed_trial(base):
            record_trial(*registry.trial_load(base, progress, cancelled))
        model = registry.load(name, progress)
        if passed_trial(base):
            return model
    raise ValueError(WORDS("changed", name=base.partition(":")[2]))


SMOLLM2 = registry.SMOLLM2  # the model here that answers

COPY_BYTES = 2**27  # bytes of weights made of other models in a moment: earlier and permuted ones
PATH = re.compile(r"(?<![\w:/])~?/\w")  # in a sentence: where a path begins
WEIGHT_BYTES = 4  # bytes of a weight
IN_USE_SECONDS = 300.0  # seconds for which a model that a reader has asked for is that reader's

# The models in memory by their names, the one asked for last at the end.
loaded_models: OrderedDict[str, Any] = OrderedDict()
_models_lock = threading.Lock()
_last_requests: dict[tuple[str, str], float] = {}  # by session and pretrained model, in seconds


def in_memory(name: str) -> Any:
    """The loaded model of that name, loaded once for everyone. Raises ValueError, saying why, for
    one that cannot be used."""
    base, languages = registry.split_languages(name)
    if languages is not None:  # of the same weights
        return registry.between(in_memory(base), languages)
    if _of_all_visitors.get() and not is_allowed(name):
        raise ValueError(WORDS("not_offered"))
    if model_names.is_recorded(name):
        return registry.load(name)
    with _models_lock:
        _note_request(name)
        if name in loaded_models:
            loaded_models.move_to_end(name)
            return loaded_models[name]
    if not live_training.is_live(name) and not is_allowed(name):
        raise ValueError(WORDS("not_offered"))
    if problem := no_room(name):
        raise ValueError(problem)
    loading = Loading.of(name)
    loading.wait(None)
    if loading.problem:
        raise ValueError(loading.problem)
    return loading.result


def adopt_model(loaded: Any) -> None:
    """Keep a model that a caller of the library loaded, under its own name, in the place of one
    that had it."""
    with _models_lock:
        loaded_models[loaded.card.name] = loaded


def is_loaded(name: str) -> bool:
    """True for a model in memory."""
    return files_of(name) in loaded_models or model_names.is_recorded(name) and registry.holds(name)


def forget(base: str) -> None:
    """Let a model and its earlier weights go from memory."""
    with _models_lock:
        for name in [name for name in loaded_models if name.partition("@")[0] == base]:
            del loaded_models[name]


def evict_copies() -> None:
    """Drop models that are quick to derive from others: copies with permuted weights, and earlier
    weights. For a server without readers."""
    with _models_lock:
        for name in list(loaded_models):
            if _is_copy(name):
                del loaded_models[name]


garbage_collection.on_idle.append(evict_copies)


class Loading:
    """A download or load in the background: its `share` from 0 to 1; then its `result`, or a
    `problem` in a sentence.

    All who request the same model wait for the same loading. Borrowed models load one after the
    other, since each checks the free memory."""

    _under_way: dict[Hashable, Loading] = {}
    _asking, _turn = threading.Lock(), threading.Lock()

    def __init__(
        self,
        key: tuple[str, str],
        begin: Callable[[Loading], Any],
        done: Callable[[Any], None],
    ) -> None:
        self.share, self.result, self.problem = 0.0, None, ""
        self._key, self._begin, self._done = key, begin, done
        self._wanted, self._stopped = 0, threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, name: str) -> Loading:
        """The loading of a model; of a borrowed one after a trial in a process of its own."""

        def begin(self: Loading) -> Any:
            base = name.removesuffix(registry.PERMUTED_SUFFIX)
            if name.endswith(registry.BARE_SUFFIX):
                whole = in_memory(name.removesuffix(registry.BARE_SUFFIX))
                return registry.bare(whole, name)  # of the same weights
            if name != base and is_loaded(base):
                room = in_memory(base).card.n_parameters * WEIGHT_BYTES
                buffer_pool.make_room(2 * room)  # the copy, and what its making takes
            if not model_names.is_borrowed(base):
                return registry.load(name, self._report_progress)
            tried = registry.without_changes(base)
            return load(name, tried, self._report_progress, self._stopped.is_set)

        return cls._only(("model", name), begin, lambda model: _store(name, model))

    @classmethod
    def start(cls, where: str) -> Loading:
        """Start the download and trial of a Hugging Face model; the result is its name for
        `in_memory`."""

        def begin(self: Loading) -> str:
            if settings().public:
                raise ValueError(WORDS("listed_only"))
            name, stamp = registry.trial_load(where, self._report_progress, self._stopped.is_set)
            if record_trial(name, stamp):
                forget(name)  # the model in memory is of other files
            return name

        return cls._only(("files", where), begin)

    def stop(self) -> None:
        """Withdraw one request; the loading ends when the last one is withdrawn."""
        self._wanted -= 1
        if self._wanted <= 0:
            self._stopped.set()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the end, at most so many seconds, None for no limit. Returns True where it
        ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @classmethod
    def _only(
        cls,
        key: tuple[str, str],
        begin: Callable[[Loading], Any],
        done: Callable[[Any], None] = lambda result: None,
    ) -> Loading:
        with cls._asking:
            if key not in cls._under_way:
                cls._under_way[key] = cls(key, begin, done)
            cls._under_way[key]._wanted += 1
            return cls._under_way[key]

    def _report_progress(self, done: int, total: int) -> None:
        self.share = min(1.0, done / total) if total else 0.0

    def _work(self) -> None:
        kind, name = self._key
        try:
            with nullcontext() if kind == "model" and model_names.is_local(name) else self._turn:
                self.result = self._begin(self)
                self._done(self.result)
        except ValueError as error:
            self.problem = _for_readers(name, str(error)) or WORDS("unreadable")
        # Files from anywhere, read by code of many families: they fail in any way.
        except Exception as error:
            self.problem = WORDS("unreadable")
            event_log.log_exception(error)
        finally:
            with self._asking:
                self._under_way.pop(self._key, None)


def _for_readers(name: str, problem: str) -> str:
    """Reason why a model cannot be used, as readers are told. On a public server a sentence that
    names a place on its disk goes to the log instead."""
    if not settings().public or not PATH.search(
        problem.replace(name.partition(":")[2] or name, "")
    ):
        return problem
    event_log.log_problem(name, problem)
    return WORDS("unusable", name=model_names.title(name))


def _store(name: str, model: Any) -> None:
    """Add a model to those in memory. Above the limit of pretrained models, the least recently used
    one that no reader has open is dropped."""
    with _models_lock:
        loaded_models[name] = model
        if model.card.n_parameters >= HEAVY_PARAMETERS:
            heavy_models.add(name)
        copies = [candidate for candidate in loaded_models if _is_copy(candidate)]
        while len(copies) > 1 and sum(map(_size, copies)) > COPY_BYTES:
            del loaded_models[copies.pop(0)]
        while len(pretrained := _pretrained()) > settings().max_models:
            free = [
                candidate
                for candidate in pretrained
                if candidate != name and not _readers(candidate)
            ]
            del loaded_models[
                free[0]
                if free
                else next(candidate for candidate in pretrained if candidate != name)
            ]
    garbage_collection.freeze()


def _is_copy(name: str) -> bool:
    """True for permuted weights, and those of one of our own models after so many steps."""
    step = name.rpartition("@")[2] if "@" in name else ""
    is_derived = name.endswith((registry.PERMUTED_SUFFIX, registry.BARE_SUFFIX))
    return is_derived or (model_names.is_local(name) and step.isdecimal())


def _size(name: str) -> int:
    """Bytes that a model in memory takes, 0 for one of another's weights."""
    if name.endswith(registry.BARE_SUFFIX):
        return 0
    return loaded_models[name].card.n_parameters * WEIGHT_BYTES


def _pretrained() -> list[str]:
    """The pretrained models in memory, the least used first."""
    return [name for name in loaded_models if _is_pretrained(name)]


def _is_pretrained(name: str) -> bool:
    return name in registry.PACKAGED or not model_names.is_local(name)


def _note_request(name: str) -> None:
    """Note this session's request for a model now; forget old requests."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is not None and _is_pretrained(name):
        now = time.monotonic()
        _last_requests[run.session_id, name] = now
        for key in [key for key, when in _last_requests.items() if now - when > IN_USE_SECONDS]:
            del _last_requests[key]


def _readers(name: str) -> set[str]:
    """The sessions that a model in memory serves."""
    return {session for session, model in _last_requests if model == name}


def no_room(name: str) -> str:
    """Reason why a pretrained model cannot be loaded now, "" where it can: every loaded one is in
    use by another reader."""
    run = get_script_run_ctx(suppress_warning=True)
    own_session = run.session_id if run is not None else ""
    with _models_lock:
        pretrained = _pretrained()
        if (
            not _is_pretrained(name)
            or name in loaded_models
            or len(pretrained) < settings().max_models
        ):
            return ""
        if any(not _readers(candidate) - {own_session} for candidate in pretrained):
            return ""
    listed = [
        model_names.title(candidate) for candidate in pretrained if not needs_asking(candidate)
    ]
    name = "full_but_some" if listed else "full"
    return WORDS(name, n=len(pretrained), names=", ".join(listed))


def is_chat_model(model: str) -> bool:
    """True for a model that has a template for chats."""
    return getattr(in_memory(model), "chat", None) is not None


def typed_special(recording: Recording) -> str:
    """The first special token of its model that a text spells and that is read as letters, "" where
    there is none."""
    model = in_memory(recording.model.name)
    tokenizer = model.tokenizer
    rules = getattr(tokenizer, "rules", None)
    if rules is None:
        return ""
    added = rules.get_added_tokens_decoder().values()
    names = {each.content for each in added if each.special and each.content in recording.text}
    names |= {
        name
        for name in map(tokenizer.label, tokenizer.special)
        if len(name) > 2 and name in recording.text
    }
    mask = model.capabilities.mask
    read = {at for start, end in recording.streams[0].spans.tolist() for at in range(start, end)}
    places = [
        (recording.text.find(name), -len(name), name)
        for name in names
        if name != mask and recording.text.find(name) in read
    ]
    return min(places)[2] if places else ""
