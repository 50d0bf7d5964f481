"""Sessions of runs, and whether their readers are still connected: work for a reader ends when the
reader has gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

NOBODY = ""  # outside a reader's run: in a script or at the server's start


def current() -> str:
    """The session whose run this is; NOBODY's outside a run."""
    run = get_script_run_ctx(suppress_warning=True)
    return NOBODY if run is None else run.session_id


def is_here(session: str) -> bool:
    """True while a reader is connected, and for work of no reader in particular."""
    if session == NOBODY or not Runtime.exists():
        return True
    try:
        return Runtime.instance().is_active_session(session)
    except RuntimeError:  # the server has just ended
        return False


def is_known(session: str) -> bool:
    """True while a reader is connected or may come back to their session."""
    manager = getattr(Runtime.instance(), "_session_mgr", None) if Runtime.exists() else None
    return manager is None or manager.get_session_info(session) is not None


def anyone_is_here() -> bool:
    """True while at least one reader is connected."""
    manager = getattr(Runtime.instance(), "_session_mgr", None) if Runtime.exists() else None
    return manager is None or manager.num_active_sessions() > 0


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Inside this context a reader's next action waits. Elsewhere each look at the session's state
    may end the run for it, so that of several values that belong together only some are written."""
    run = get_script_run_ctx(suppress_warning=True)
    state = None if run is None else run.session_state
    interrupt = getattr(state, "_yield_callback", None)
    if interrupt is None:
        yield
        return
    object.__setattr__(state, "_yield_callback", lambda: None)  # its own `__setattr__` is a value's
    try:
        yield
    finally:
        object.__setattr__(state, "_yield_callback", interrupt)
