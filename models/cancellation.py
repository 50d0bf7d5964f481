"""Where a long computation may be interrupted: between two slices it breathes, and whoever runs it
decides what that means.

`breath()` does nothing unless the computation runs `with breathing(what)`. What is called may wait,
so that others have their turn, and may raise, which ends the computation there; nothing shared is
left changed by that. What another machine works out is asked for `with elsewhere()`: meanwhile this
one may serve others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

Aside = Callable[[], AbstractContextManager[None]]
_aside: ContextVar[Aside] = ContextVar("aside", default=nullcontext)
_between: ContextVar[Callable[[], None] | None] = ContextVar("between", default=None)


def checkpoint() -> None:
    """Called by long computations between two slices of their work."""
    between = _between.get()
    if between is not None:
        between()


def remote_wait() -> AbstractContextManager[None]:
    """Computations wait inside this for what is worked out on another machine."""
    return _aside.get()()


@contextmanager
def interruptible(between: Callable[[], None], aside: Aside = nullcontext) -> Iterator[None]:
    """Long computations run inside call `between` between two slices, and wait for other machines
    inside `aside()`."""
    before, before_aside = _between.set(between), _aside.set(aside)
    try:
        yield
    finally:
        _between.reset(before)
        _aside.reset(before_aside)
