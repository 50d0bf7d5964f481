"""Threads of a test, and what it waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


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
