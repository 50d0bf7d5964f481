"""Changes to Streamlit's private parts: its end, its theme, callbacks, event loops, batches of
messages, and the values of a session. They are those of the version that requirements.txt holds; a
test of each fails where another has them otherwise."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner.script_runner import ScriptRunnerEvent
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.runtime.state.session_state import WStates

from explorer.app.state.sessions import uninterrupted

# The server's end: whoever is told of it when the signal comes, and not when all lines are
# closed.

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_shutdown(callback: Callable[[], None]) -> Iterator[None]:
    """Inside this context, a signal that ends the server also calls `callback`, on the event loop,
    before the earlier handler. Outside of the main thread, which alone receives signals, nothing is
    changed."""
    loop = asyncio.get_running_loop()
    previous_handlers: dict[int, Callable[[int, FrameType | None], object]] = {}

    def handle_signal(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(callback)
        previous_handlers[number](number, frame)

    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            previous = signal.getsignal(number)
            if callable(previous):
                previous_handlers[number] = previous
                signal.signal(number, handle_signal)
    try:
        yield
    finally:
        for signum, original in previous_handlers.items():
            signal.signal(signum, original)


# The theme that Streamlit puts into the first message of every run.


def cache_theme() -> None:
    """Let the sections of the theme be read once each."""
    populate = app_session._populate_theme_msg
    cached: dict[str, CustomThemeConfig] = {}

    def fill(msg: CustomThemeConfig, section: str = "theme") -> None:
        if section not in cached:
            populate(config := CustomThemeConfig(), section)
            cached[section] = config
        if cached[section].ByteSize():  # merging nothing would say that the section is there
            msg.MergeFrom(cached[section])

    app_session._populate_theme_msg = fill


def close_loops() -> None:
    """Let a session have an event loop while a run of its script lasts. Streamlit gives each one
    that takes three files, from its beginning until minutes after its end; this app's runs keep
    nothing in it."""
    names = "_create_scriptrunner", "_handle_scriptrunner_event_on_event_loop"
    begin, create, handle = (getattr(AppSession, name) for name in ("__init__", *names))

    def close(session: Any) -> None:
        app_session._close_script_event_loop(session._script_event_loop)

    def initialized(session: Any, *arguments: Any, **keywords: Any) -> None:
        begin(session, *arguments, **keywords)
        close(session)

    def create_runner(session: Any, *arguments: Any, **keywords: Any) -> None:
        if session._script_event_loop.is_closed():
            session._script_event_loop = asyncio.new_event_loop()
        create(session, *arguments, **keywords)

    def on_event(session: Any, sender: Any, event: Any, *arguments: Any, **keywords: Any) -> None:
        handle(session, sender, event, *arguments, **keywords)
        if event == ScriptRunnerEvent.SHUTDOWN and session._scriptrunner is None:
            close(session)

    for name, patched in zip(("__init__", *names), (initialized, create_runner, on_event)):
        setattr(AppSession, name, patched)


def finish_callbacks() -> None:
    """Let the callbacks of widgets run to their end. Streamlit leaves one where it stands when the
    reader's next action arrives, with half of its values written."""
    original = SafeSessionState.on_script_will_rerun

    def on_script_will_rerun(state: SafeSessionState, *arguments: Any, **keywords: Any) -> None:
        with uninterrupted():
            original(state, *arguments, **keywords)

    SafeSessionState.on_script_will_rerun = on_script_will_rerun  # type: ignore[assignment]


def skip_forgotten_widgets() -> None:
    """Let a browser send the value of a widget that the session no longer knows: of a page that the
    reader went back from. Streamlit would end the run with an error."""
    original = WStates.call_callback

    def call_callback(states: WStates, widget_id: str) -> None:
        if widget_id in states.widget_metadata:
            original(states, widget_id)

    WStates.call_callback = call_callback  # type: ignore[assignment]


PAUSE = 0.06  # seconds in which messages gather, unless the run ends before
STOP_EVENTS = {each for each in ScriptRunnerEvent if "STOPPED" in each.name}


class MessageBatch:
    """Queue of a session's calls for its event loop, in order. Calls within a `PAUSE`, or until
    `now`, run together.

    Streamlit wakes the loop for each message, some seventy a run, and each time the two threads
    exchange the interpreter's lock. In the browser each message that arrives alone is drawn alone:
    a short run appears at once, and a long run's parts as they come."""

    def __init__(self, loop: Any) -> None:
        self._loop, self._lock = loop, threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    def add(self, callback: Callable[[], None]) -> None:
        """From any thread. Raises RuntimeError where the loop is closed."""
        with self._lock:
            self._callbacks.append(callback)
            if len(self._callbacks) > 1:  # the loop comes for the others, and takes this one too
                return
        self._loop.call_soon_threadsafe(self._loop.call_later, PAUSE, self._do)

    def now(self) -> None:
        """Wait no longer. From any thread."""
        self._loop.call_soon_threadsafe(self._do)

    def _do(self) -> None:
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._loop.call_soon(callback)


def batch_messages() -> None:
    """Let every session's messages cross in groups."""
    lock = threading.Lock()
    batches: WeakKeyDictionary[AppSession, MessageBatch] = WeakKeyDictionary()

    def batch_of(session: Any) -> MessageBatch:
        with lock:
            if session not in batches:
                batches[session] = MessageBatch(session._event_loop)
            return batches[session]

    def call_soon(session: Any, callback: Callable[[], None]) -> None:
        unless_closed(session, lambda: batch_of(session).add(callback))

    def on_event(session: Any, sender: Any, event: Any, *arguments: Any, **keywords: Any) -> None:
        original(session, sender, event, *arguments, **keywords)
        if event in STOP_EVENTS:
            unless_closed(session, batch_of(session).now)

    original = AppSession._on_scriptrunner_event
    AppSession._call_soon_on_event_loop = call_soon  # type: ignore[assignment]
    AppSession._on_scriptrunner_event = on_event  # type: ignore[assignment]


def unless_closed(session: Any, call: Callable[[], None]) -> None:
    """A run may end after its loop."""
    try:
        call()
    except RuntimeError:
        if not session._event_loop.is_closed():
            raise


# The values of a session: Streamlit gathers all of them wherever one is wanted, for each menu on a
# page this app's two hundred.

OWN = "$$"  # the keys of Streamlit's own begin so, the ids of widgets among them
_gathered: Any = SessionState.filtered_state


class SessionValues(Mapping[str, Any]):
    """The values of `st.session_state` now under each key: of a widget that has a key its value."""

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def __getitem__(self, key: str) -> Any:
        if key.startswith(OWN):
            raise KeyError(key)
        state = self._state
        if key in state._key_id_mapper:  # a widget's
            return state[key]
        written = state._new_session_state  # in this run
        return written[key] if key in written else state._old_state[key]

    def __iter__(self) -> Iterator[str]:
        return iter(_gathered.fget(self._state))

    def __len__(self) -> int:
        return len(_gathered.fget(self._state))

    def __repr__(self) -> str:
        return repr(dict(self))


def look_up_values() -> None:
    """Look up the value of a session that is asked for."""
    SessionState.filtered_state = property(SessionValues)  # type: ignore[assignment]
