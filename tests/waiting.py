"""Threads of a test, and what it waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """A thread that has begun this work and keeps no process alive."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def until(true: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is true; fails where it is not within these seconds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


@contextmanager
def threads() -> Iterator[Callable[..., threading.Thread]]:
    """Starts work in threads, each `then` waited for until something is true; at the end all of
    them have ended."""
    begun: list[threading.Thread] = []

    def start(
        work: Callable, *given: object, then: Callable[[], object] = lambda: True
    ) -> threading.Thread:
        begun.append(in_thread(partial(work, *given)))
        until(then)
        return begun[-1]

    yield start
    for thread in begun:
        thread.join(30)
        assert not thread.is_alive(), "somebody waits for ever"
