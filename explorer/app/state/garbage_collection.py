"""Garbage collection by our own clock: when the server is idle and before memory grows, never in
the middle of a click.

Python's collector walks every object, a second or more with torch imported. Permanent objects
(modules, models) are frozen. The rest is collected by one thread, when no run was served for a
moment, or at the latest when memory has grown by a tenth of the cache's limit, beside the cached
values. Now and then, in a quiet moment, frozen objects are collected too: they may include those of
an ended visit. When the last reader has gone, the values cached for readers are dropped."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from explorer.app.state.sessions import anyone_is_here
from explorer.app.state.settings import settings

POLL_INTERVAL = 1.0  # seconds between two looks
QUIET_SECONDS = 2.0  # seconds without a reader's run after which nobody is in a hurry
# Seconds between two collections, and between two of everything.
MIN_INTERVAL, FULL_INTERVAL = 20.0, 600.0
IDLE_SECONDS = 20.0  # seconds without any reader after which nothing is kept for one
# New objects between two looks at the young ones, where Python takes 700: a text leaves some 1,200,
# and to look at them, and at those that stayed, with each text was a twentieth of what it costs.
YOUNG, NEVER = 20_000, 1_000_000
PAGE = 4096  # bytes
# glibc: arrays of a megabyte and more each get pages of their own, which go back to the system as
# soon as the array is gone. By itself it keeps more and more of them as the server works.
MMAP_THRESHOLD, OWN_PAGES = -3, 1 << 20
# What is freed stays in the heap that its thread took it from, and threads come and go: few heaps.
ARENA_MAX, ARENAS = -8, 2
on_idle: list[Callable[[], None]] = []  # what lets go of what is remembered
cached_sizes: list[Callable[[], int]] = []  # bytes that are
_start_lock = threading.Lock()
_thread: threading.Thread | None = None
_served = 0.0


def freeze() -> None:
    """Freeze all objects in memory, so that the collector skips them: after each model that is
    loaded."""
    gc.collect()
    gc.freeze()


def start() -> None:
    """Start the thread that collects, once in a process; Python's own collections of old objects
    are left to it."""
    global _thread
    with _start_lock:
        if _thread is None:
            gc.set_threshold(YOUNG, gc.get_threshold()[1], NEVER)
            return_pages()
            _thread = threading.Thread(target=_work, name="collector", daemon=True)
            _thread.start()


def return_pages() -> None:
    """Have the C library hand the memory of large arrays back, and keep few heaps."""
    _c_library("mallopt", MMAP_THRESHOLD, OWN_PAGES)
    _c_library("mallopt", ARENA_MAX, ARENAS)


def mark_served() -> None:
    """A reader's run begins or ends: not now."""
    global _served
    _served = time.monotonic()


def in_memory() -> int:
    """Bytes of this process in memory; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0


def unaccounted() -> int:
    """Bytes of this process outside of the cache: the program, the readers' visits, and garbage."""
    return in_memory() - sum(each() for each in cached_sizes)


def due_collection(quiet: float, since: float, since_all: float, grown: int) -> str:
    """ "all", "some" or "" to collect, after so many seconds without a reader's run, since the last
    collection, and since the last one of everything, and so many bytes more in memory than after
    the last."""
    if quiet >= QUIET_SECONDS and since_all >= FULL_INTERVAL:
        return "all"
    if grown > settings().cache_bytes / 10 or (quiet >= QUIET_SECONDS and since >= MIN_INTERVAL):
        return "some"
    return ""


def collect(scope: str) -> None:
    """Collect "some", the objects since the last model, or "all", frozen ones too."""
    if scope == "all":
        gc.unfreeze()
    if scope:
        gc.collect()
        _trim_heap()
    if scope == "all":
        gc.freeze()


def _trim_heap() -> None:
    """Return freed memory to the system. Without this the C library keeps the memory of each
    thread's arrays, and a server that has served many threads looks full though little of it is in
    use."""
    _c_library("malloc_trim", 0)


def _c_library(name: str, *arguments: int) -> None:
    """Call a function of glibc; other C libraries give memory back by themselves."""
    with suppress(TypeError, AttributeError):  # Windows names no library of the process itself
        getattr(ctypes.CDLL(None), name)(*arguments)


def _work() -> None:
    last_run = last_all = last_reader = time.monotonic()
    size, idle = unaccounted(), False
    while True:
        time.sleep(POLL_INTERVAL)
        now = time.monotonic()
        scope = due_collection(now - _served, now - last_run, now - last_all, unaccounted() - size)
        if anyone_is_here():
            last_reader, idle = now, False
        elif now - last_reader > IDLE_SECONDS and not idle:
            idle, scope = True, "all"
            for evict in on_idle:
                evict()
        if scope:
            collect(scope)
            last_run, size = time.monotonic(), unaccounted()
            last_all = last_run if scope == "all" else last_all
