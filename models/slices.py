"""Where a long computation may be interrupted: between two slices it breathes, and whoever runs it
decides what that means.

`breath()` does nothing unless the computation runs `with breathing(what)`. What is called may wait,
so that others have their turn, and may raise, which ends the computation there; nothing shared is
left changed by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_between: ContextVar[Callable[[], None] | None] = ContextVar("between", default=None)


def breath() -> None:
    """Called by long computations between two slices of their work."""
    between = _between.get()
    if between is not None:
        between()


@contextmanager
def breathing(between: Callable[[], None]) -> Iterator[None]:
    """Long computations run inside call `between` between two slices."""
    before = _between.set(between)
    try:
        yield
    finally:
        _between.reset(before)
