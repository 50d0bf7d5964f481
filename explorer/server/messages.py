"""The messages of a run cross from the script's thread to the server's loop in groups.

Streamlit wakes the loop for each of them, some seventy a run, and each time the two threads hand
the interpreter to and fro.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from streamlit.runtime.app_session import AppSession

PAUSE = 0.005  # seconds in which messages gather; Streamlit's loop sends every 0.01


class Group:
    """What a session's script wants done on its loop, in its order. What is asked for within a
    `PAUSE` is done together."""

    def __init__(self, loop: Any) -> None:
        self._loop, self._lock = loop, threading.Lock()
        self._asked: list[Callable[[], None]] = []

    def add(self, callback: Callable[[], None]) -> None:
        """From any thread. Raises RuntimeError where the loop is closed."""
        with self._lock:
            self._asked.append(callback)
            if len(self._asked) > 1:  # the loop comes for the others, and takes this one too
                return
        self._loop.call_soon_threadsafe(self._loop.call_later, PAUSE, self._do)

    def _do(self) -> None:
        with self._lock:
            asked, self._asked = self._asked, []
        for callback in asked:
            self._loop.call_soon(callback)


def gather() -> None:
    """Let every session's messages cross in groups. Where Streamlit has another way to hand them
    over, it keeps it."""
    if not hasattr(AppSession, "_call_soon_on_event_loop"):
        return
    made = threading.Lock()
    groups: WeakKeyDictionary[AppSession, Group] = WeakKeyDictionary()

    def soon(session: Any, callback: Callable[[], None]) -> None:
        loop = session._event_loop
        with made:
            group = groups.get(session)
            if group is None:
                group = groups[session] = Group(loop)
        try:
            group.add(callback)
        except RuntimeError:
            if not loop.is_closed():
                raise

    AppSession._call_soon_on_event_loop = soon  # type: ignore[assignment]
