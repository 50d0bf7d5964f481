"""Points at which a long computation can be interrupted.

`checkpoint()` does nothing unless the computation runs `with interruptible(hook)`. The hook may
wait, so that other computations run, and may raise, which ends the computation at that point; no
shared state is left changed by that. A result that another machine computes is awaited `with
remote_wait()`: meanwhile this machine may serve others. `expect_wanted()` waits for nothing: loops
of measures and panels call it, wherever they run, and the host of the process says what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar


class TimeLimit(ValueError):
    """A computation has taken more time than the host of the process gives to one."""


class NoRoom(ValueError):
    """A computation would take more memory than the host of the process gives to one, or than is
    left just now: `passing`."""

    def __init__(self, why: str, passing: bool = False) -> None:
        super().__init__(why)
        self.passing = passing


WaitContext = Callable[[], AbstractContextManager[None]]
_wait_context: ContextVar[WaitContext] = ContextVar("aside", default=nullcontext)
_checkpoint_hook: ContextVar[Callable[[], None] | None] = ContextVar("between", default=None)
_layer_hook: ContextVar[Callable[[], None] | None] = ContextVar("between layers", default=None)


_expect_wanted: Callable[[], None] = lambda: None


def expect_wanted() -> None:
    """Called in loops: ends the computation, by an exception, where nobody waits for it any
    more."""
    _expect_wanted()


def use(check: Callable[[], None]) -> None:
    """Have `expect_wanted` call `check`, in the whole process."""
    global _expect_wanted
    _expect_wanted = check


def checkpoint() -> None:
    """Called by long computations between two slices of their work."""
    hook = _checkpoint_hook.get()
    if hook is not None:
        hook()


def layer_checkpoint() -> None:
    """Called by a pass before each layer."""
    hook = _layer_hook.get()
    if hook is not None:
        hook()


def remote_wait() -> AbstractContextManager[None]:
    """Computations wait inside this for what is worked out on another machine."""
    return _wait_context.get()()


@contextmanager
def interruptible(
    on_checkpoint: Callable[[], None],
    wait_context: WaitContext = nullcontext,
    in_passes: bool = False,
) -> Iterator[None]:
    """Long computations run inside call `on_checkpoint` between two slices, and wait for other
    machines inside `wait_context()`. in_passes: between two layers of a pass too."""
    tokens = [
        (_checkpoint_hook, _checkpoint_hook.set(on_checkpoint)),
        (_layer_hook, _layer_hook.set(on_checkpoint if in_passes else None)),
    ]
    context_token = _wait_context.set(wait_context)
    try:
        yield
    finally:
        for hook, token in tokens:
            hook.reset(token)
        _wait_context.reset(context_token)
