"""The server's log: one line for a slow run, a refusal or an exception, with page, model, tokens
and seconds, and never the text."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.logger import get_logger
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.memory.runs import line

log = logging.getLogger("headlight")
ROOT = Path(__file__).resolve().parent.parent.parent
SLOW = 3.0  # seconds after which a run is told of
LONGEST = 80  # characters of a name
_within: ContextVar[bool] = ContextVar("within", default=False)  # a run that is timed already


def begin() -> None:
    """Send the log to the terminal, and keep Streamlit from writing exceptions there: their words
    may hold a reader's text."""
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
    get_logger("streamlit.error_util").addFilter(lambda record: record.exc_info is None)


@contextmanager
def run(**facts: object) -> Iterator[None]:
    """A run of the script, or of a part of it by itself, after those of other readers
    (`runs.line`). Tells of one that takes long."""
    if _within.get():
        yield
        return
    start, before = time.perf_counter(), _within.set(True)
    try:
        with line.run():
            yield
    finally:
        _within.reset(before)
        if (seconds := time.perf_counter() - start) >= SLOW:
            log.info("slow %s", _facts(**facts, seconds=seconds))


def fragment(draw: Callable[..., Any], run_every: float | None = None) -> Callable[..., Any]:
    """Streamlit's fragment of a page. When it runs by itself and takes long, that is told as of a
    run, with its name as `part`."""

    @wraps(draw)
    def timed(*given: Any, **named: Any) -> Any:
        with run(part=draw.__name__):
            return draw(*given, **named)

    return st.fragment(timed, run_every=run_every)


def refused(why: str, **facts: object) -> None:
    """Tells of something that was asked for and not given."""
    log.info("refused %s", _facts(why=why, **facts))


def raised(error: Exception) -> None:
    """Tells of an exception by its kind and the places in the code it came through."""
    places = [
        f"{Path(frame.filename).relative_to(ROOT)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(ROOT) and ".venv" not in frame.filename
    ]
    log.error("exception %s", _facts(kind=type(error).__name__, at=">".join(places[-4:])))


def _facts(**facts: object) -> str:
    """What is known of this run as "name=value", one line whatever it is made of."""
    state = {} if get_script_run_ctx(suppress_warning=True) is None else st.session_state
    known = {
        "page": state.get("page"),
        "model": state.get("model"),
        "tokens": state.get("n_tokens"),
    }
    known = {name: value for name, value in known.items() if value is not None} | facts
    return " ".join(
        f"{name}={value:.2f}" if isinstance(value, float) else f"{name}={_plain(str(value))}"
        for name, value in known.items()
    )


def _plain(value: str) -> str:
    """A word of a log line: nothing that ends the line or begins another fact."""
    kept = "".join(
        letter if letter.isprintable() and letter not in ' ="\\' else "?" for letter in value
    )
    return kept[:LONGEST]
