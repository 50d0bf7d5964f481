"""The server's log: one line for a slow run, a refusal or an exception, with page, model, tokens
and seconds, and never the text; and counts of what happened since the start."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from itertools import accumulate
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.app.state.scheduling import NOTICE_INTERVAL, heavy_models, memory_budget, script_queue
from explorer.app.state.visit import visit
from explorer.wording.templates import sentences
from models.contract.cancellation import NoRoom

WORDS = sentences("server", "waits")

log = logging.getLogger("headlight")
ROOT = Path(__file__).resolve().parents[3]
SLOW = 3.0  # seconds after which a run is told of
REPEATS = 60.0  # seconds in which an exception of one kind and place is one line
MAX_KINDS = 256  # exceptions of which it is remembered that they were told
UNCAUGHT = "streamlit.error_util", "Uncaught app execution"  # what `raised` tells of too
LONGEST, LONGEST_LINE = 80, 200  # characters of a name, and of what others write
OTHERS = {"streamlit", "uvicorn", "websockets", "starlette", "asyncio"}  # who writes there too
_make_record = logging.getLogRecordFactory()
_repeated: dict[
    str, tuple[float, int]
] = {}  # until when it is one line, and how many were left out
_counts: Counter[tuple[str, str]] = Counter()
SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # up to which answers are counted
_latencies: dict[str, tuple[list[int], float]] = {}  # of a kind of answer: counts, and their sum
_counts_lock = threading.Lock()
_inside_run: ContextVar[bool] = ContextVar("within", default=False)  # a run that is timed already


def begin() -> None:
    """Send the log to the terminal, and let what Streamlit and the server below it write there be a
    line each: an exception's words may hold a reader's text, and a stranger's a line of ours."""
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
    logging.setLogRecordFactory(_one_line_record)
    logging.getLogger(UNCAUGHT[0]).addFilter(_is_new)


def _is_new(record: logging.LogRecord) -> bool:
    """False for Streamlit's record of an exception that it passes to `raised` right after."""
    return not getattr(record, "logged_by_us", False)


def _one_line_record(name: str, *arguments: Any, **keywords: Any) -> logging.LogRecord:
    """Log record of any logger; those of `OTHERS` as one line without an exception's text."""
    record = _make_record(name, *arguments, **keywords)
    record.logged_by_us = (name, record.msg) == UNCAUGHT
    if name.partition(".")[0] in OTHERS:
        error = record.exc_info[1] if record.exc_info else None
        message = record.getMessage() if error is None else f"exception {_facts(**_cause(error))}"
        record.msg = _printable(message)
        record.args, record.exc_info, record.exc_text, record.stack_info = (), None, None, None
    return record


@contextmanager
def timed_run(**facts: object) -> Iterator[None]:
    """Run the script, or a part of it, after those of other readers (`runs.line`), and log it where
    it takes long. Where it finds no memory it ends there with the sentence that says so."""
    with _warning_where_full(**facts):
        if _inside_run.get():
            yield
        else:
            with _in_turn(**facts):
                yield


@contextmanager
def _warning_where_full(**facts: object) -> Iterator[None]:
    try:
        yield
    except NoRoom as why:
        log_refusal("memory", **facts)
        st.warning(str(why))


@contextmanager
def _in_turn(**facts: object) -> Iterator[None]:
    start, token = time.perf_counter(), _inside_run.set(True)
    try:
        is_heavy = visit.model in heavy_models
        with script_queue.run(is_heavy, _show_place), memory_budget.work():
            yield
    finally:
        _inside_run.reset(token)
        seconds = time.perf_counter() - start
        count_seconds("page", seconds)
        if seconds >= SLOW:
            log.info("slow %s", _facts(**facts, seconds=seconds))


def _show_place(n: int) -> None:
    """Show a reader who waits how many pages of the same kind are before theirs. It ends the wait
    of a run that is no longer wanted."""
    name = {0: "next", 1: "after_one"}.get(n, "after_several")
    st.toast(
        WORDS(name, n=n),
        icon=":material/hourglass_empty:",
        duration=int(NOTICE_INTERVAL),
    )


def fragment(draw: Callable[..., Any], run_every: float | None = None) -> Callable[..., Any]:
    """Streamlit's fragment of a page. A slow rerun of it alone is logged like a run, with its name
    as `part`."""

    @wraps(draw)
    def timed(*arguments: Any, **keywords: Any) -> Any:
        with timed_run(part=draw.__name__):
            return draw(*arguments, **keywords)

    return st.fragment(timed, run_every=run_every)


def count(event: str, label: str = "", n: int = 1) -> None:
    """Count an event, or n of them; `label` tells those of one name apart."""
    with _counts_lock:
        _counts[event, label] += n


def counts(event: str) -> dict[str, int]:
    """Number of times that an event happened since the start, by its labels."""
    with _counts_lock:
        return {label: n for (name, label), n in _counts.items() if name == event}


def count_seconds(kind: str, seconds: float) -> None:
    """Count an answer of a kind by the seconds that it took."""
    with _counts_lock:
        counted, total = _latencies.get(kind, ([0] * (len(SECONDS) + 1), 0.0))
        counted[bisect_left(SECONDS, seconds)] += 1
        _latencies[kind] = counted, total + seconds


def latencies() -> dict[str, tuple[list[int], float]]:
    """By kind of answer: how many took at most each of `SECONDS`, and how many there were; and the
    seconds of all together."""
    with _counts_lock:
        return {
            kind: (list(accumulate(counted)), total)
            for kind, (counted, total) in _latencies.items()
        }


def log_refusal(why: str, **facts: object) -> None:
    """Log and count a refused request."""
    count("refusal", why)
    log.info("refused %s", _facts(why=why, **facts))


def log_problem(model: str, problem: str) -> None:
    """Log why a model cannot be used, whole, where readers are told less."""
    log.error("model=%s cannot be used: %s", _plain(model), _printable(problem))


def log_exception(error: Exception) -> None:
    """Log an exception by its kind and its places in the code. One that repeats, which a stranger
    could cause at will, is logged once a minute, with the number of those left out."""
    cause = _cause(error)
    until, left_out = _repeated.pop(" ".join(cause.values()), (0.0, 0))
    now = time.monotonic()
    is_due = now >= until
    while len(_repeated) >= MAX_KINDS:
        del _repeated[next(iter(_repeated))]
    state = (now + REPEATS, 0) if is_due else (until, left_out + 1)
    _repeated[" ".join(cause.values())] = state
    if is_due:
        log.error("exception %s", _facts(**cause, **({"left_out": left_out} if left_out else {})))


def _cause(error: BaseException) -> dict[str, str]:
    """An exception's kind, and the last places in our code that it came through; where it came
    through none, the last in another's."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        (Path(frame.filename).relative_to(ROOT), frame.lineno)
        for frame in frames
        if Path(frame.filename).is_relative_to(ROOT)
    ]
    places = [f"{file}:{line}" for file, line in ours if ".venv" not in file.parts] or [
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames
    ]
    places = places[-4:]
    while len(">".join(places)) > LONGEST and len(places) > 1:
        del places[0]  # the last one is where it was raised
    return {"kind": type(error).__name__, "at": ">".join(places)}


def _facts(**facts: object) -> str:
    """Facts of this run as "name=value", always one line."""
    values: dict[str, object] = {}
    if get_script_run_ctx(suppress_warning=True) is not None:
        values = {"page": visit.page, "model": visit.model, "tokens": visit.n_tokens}
    values = {name: value for name, value in values.items() if value not in ("", None)} | facts
    return " ".join(
        f"{name}={value:.2f}" if isinstance(value, float) else f"{name}={_plain(str(value))}"
        for name, value in values.items()
    )


def _printable(text: str) -> str:
    """A text as one line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:LONGEST_LINE]


def _plain(value: str) -> str:
    """A word of a log line: nothing that ends the line or begins another fact."""
    plain = "".join(
        letter if letter.isprintable() and letter not in ' ="\\' else "?" for letter in value
    )
    return plain[:LONGEST]
