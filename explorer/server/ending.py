"""The server's end: whoever is told of it when the signal comes, and not when all lines are closed.

uvicorn waits for open answers before it ends. One that goes on for as long as the reader listens
would keep the server until it is killed.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def announced(then: Callable[[], None]) -> Iterator[None]:
    """Within this, a signal that ends the server also calls `then`, on the event loop that runs
    here. What answered the signal before still does. Elsewhere than in the main thread, which alone
    hears signals, nothing is changed."""
    loop = asyncio.get_running_loop()
    before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def hear(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(then)
        before[number](number, frame)

    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            answer = signal.getsignal(number)
            if callable(answer):
                before[number] = answer
                signal.signal(number, hear)
    try:
        yield
    finally:
        for each, answered in before.items():
            signal.signal(each, answered)
