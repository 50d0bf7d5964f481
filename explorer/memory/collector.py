"""Garbage collection by our own clock: when nobody is served, and before memory grows, never in the
middle of a click.

Python's collector walks every object there is, a second or more with torch imported. What stays
(modules, models) is frozen out of its sight. The rest is collected by one thread, when nobody has
been served for a moment, or at the latest when memory has grown by a tenth of the shelf. Now and
then, in a quiet moment, what was frozen is looked at too: a visit may have been among it.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from pathlib import Path

from explorer.memory.settings import settings

LOOK = 1.0  # seconds between two looks
QUIET = 2.0  # seconds without a reader's run after which nobody is in a hurry
LEAST, THOROUGH = 20.0, 600.0  # seconds between two collections, and between two of everything
PAGE = 4096  # bytes
_begun = threading.Lock()
_thread: threading.Thread | None = None
_served = 0.0


def settle() -> None:
    """Take what is in memory now out of the collector's sight: after each model that is loaded."""
    gc.collect()
    gc.freeze()


def begin() -> None:
    """Start the thread that collects, once in a process; Python's own collections of old objects
    are left to it."""
    global _thread
    with _begun:
        if _thread is None:
            young, middle, _ = gc.get_threshold()
            gc.set_threshold(young, middle, 1_000_000)
            _thread = threading.Thread(target=_work, name="collector", daemon=True)
            _thread.start()


def served() -> None:
    """A reader's run begins or ends: not now."""
    global _served
    _served = time.monotonic()


def in_memory() -> int:
    """Bytes of this process in memory; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0


def what_is_due(quiet: float, since: float, since_all: float, grown: int) -> str:
    """ "all", "some" or "" to collect, after so many seconds without a reader's run, since the last
    collection, and since the last one of everything, and so many bytes more in memory than after
    the last."""
    if quiet >= QUIET and since_all >= THOROUGH:
        return "all"
    if grown > settings().shelf_bytes / 10 or (quiet >= QUIET and since >= LEAST):
        return "some"
    return ""


def collect(what: str) -> None:
    """Collect "some", what came since the last model, or "all", what is frozen too."""
    if what == "all":
        gc.unfreeze()
    if what:
        gc.collect()
        _give_back()
    if what == "all":
        gc.freeze()


def _give_back() -> None:
    """Hand freed memory back to the system. Without this the C library keeps what each thread's
    arrays took, and a server that has served many threads looks full though little of it is in
    use."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc's; others give it back by themselves
        trim(0)


def _work() -> None:
    last = last_all = time.monotonic()
    size = in_memory()
    while True:
        time.sleep(LOOK)
        now = time.monotonic()
        what = what_is_due(now - _served, now - last, now - last_all, in_memory() - size)
        if what:
            collect(what)
            last, size = time.monotonic(), in_memory()
            last_all = last if what == "all" else last_all
