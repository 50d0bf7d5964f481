"""Start, limit and end a module of this package in a process of its own. Its crash affects only the
reader who requested its result.

A `Worker` is such a process that answers requests; `serve` is its other end. It begins with the
module alone: one that `multiprocessing` or `concurrent.futures` spawns runs the caller's script
too, which for the app is a page, and a fork of a server has its threads' locks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows bounds no process from within
    resource = None  # type: ignore[assignment]

# The folder in which the import path finds this package: the clone, whose modules have their own
# names there whatever they are called here, or where it is installed.
_ABOVE = Path(__file__).resolve().parents[1]
IN_CLONE = (_ABOVE / "headlight.py").is_file()
IMPORT_ROOT = _ABOVE if IN_CLONE else _ABOVE.parent
MEMORY = Path("/proc/self/statm")  # of Linux: pages of address space, and in memory
START_SECONDS = 120.0  # that a worker has to start
POLL_INTERVAL = 0.1  # seconds between two looks at whether an answer is still wanted


def start(module: str, *arguments: str, env: dict[str, str], **options: Any) -> subprocess.Popen:
    """Start a module of this package. env: added to this process's own.

    It writes to a pipe, and nobody reads what libraries say of hostile files."""
    if IN_CLONE:
        module = module[module.index("models.") :]
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=IMPORT_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, **env},
        **options,
    )


def kill(process: subprocess.Popen) -> None:
    """End a process that `start` started, with all that it started itself."""
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


class Unanswered(Exception):
    """A worker ended, or was ended, before it answered. late: its time was over."""

    def __init__(self, late: bool = False) -> None:
        super().__init__()
        self.late = late


class Worker:
    """A process that answers requests, one at a time: started when it is first needed, ended when
    nobody asks for `idle` seconds. It ends with its parent, which holds its standard input."""

    def __init__(self, module: str, idle: float) -> None:
        self.module, self.idle = module, idle
        self.process: subprocess.Popen[str] | None = None
        self._turn = threading.Lock()
        self._timer = threading.Timer(idle, self.close)

    def ask(
        self, request: dict, seconds: float, cancelled: Callable[[], bool] = lambda: False
    ) -> dict:
        """The answer to a request. Raises Unanswered where the process ends first, takes longer
        than `seconds`, or `cancelled()` becomes true; the next request starts another."""
        with self._turn:
            self._timer.cancel()
            try:
                process = self._running(cancelled)
                assert process.stdin is not None
                with suppress(BrokenPipeError):  # it has just ended, and so has its answer
                    process.stdin.write(json.dumps(request) + "\n")
                    process.stdin.flush()
                answer = json.loads(self._line(process, seconds, cancelled))
            except Unanswered:
                self._end()
                raise
            self._timer = threading.Timer(self.idle, self.close)
            self._timer.daemon = True
            self._timer.start()
        return answer

    def close(self) -> None:
        """End the process."""
        with self._turn:
            self._timer.cancel()
            self._end()

    def _running(self, cancelled: Callable[[], bool]) -> subprocess.Popen[str]:
        if self.process is None or self.process.poll() is not None:
            self._end()
            env = {"HF_HUB_OFFLINE": "1"}
            self.process = start(self.module, env=env, stdin=subprocess.PIPE, text=True)
            self._line(self.process, START_SECONDS, cancelled)  # it has its libraries now
        return self.process

    def _line(
        self, process: subprocess.Popen[str], seconds: float, cancelled: Callable[[], bool]
    ) -> str:
        """The next line that the process writes."""
        assert process.stdout is not None
        lines: list[str] = []
        pipe, end = process.stdout, time.monotonic() + seconds
        reader = threading.Thread(target=lambda: lines.append(pipe.readline()), daemon=True)
        reader.start()
        while reader.is_alive():
            reader.join(POLL_INTERVAL)
            if cancelled() or reader.is_alive() and time.monotonic() > end:
                raise Unanswered(late=not cancelled())
        if not lines[0]:
            with suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
            raise Unanswered(late=process.returncode == -getattr(signal, "SIGXCPU", 0))
        return lines[0]

    def _end(self) -> None:
        if self.process is not None:
            kill(self.process)
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # of what was not read
                        pipe.close()
        self.process = None


# ---- in the other process ----------------------------------------------------


def serve(prepare: Callable[[], object], answer: Callable[[dict], dict]) -> None:
    """Answer the requests to a `Worker`, in its process, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no answer
    prefer_oom_kill()
    prepare()
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


def end_with_parent() -> None:
    """End this process when its parent is gone, which holds the other end of its standard input."""

    def wait() -> None:
        os.read(0, 1)  # Python's own reader would hold a lock when this process ends by itself
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def prefer_oom_kill() -> None:
    """Let the kernel end this process, and those that it starts, before any other where memory is
    short. Elsewhere than on Linux nothing is changed."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def limit(memory: int, seconds: int) -> None:
    """Bound this process's memory to so many bytes beyond what it holds now, and its processor
    time to so many seconds. What the system cannot bound stays as it is."""
    limit_memory(memory)
    _set_limit("RLIMIT_CPU", seconds)


def limit_memory(memory: int) -> None:
    """Bound this process's memory to so many bytes beyond what it holds now."""
    if MEMORY.exists():
        used = int(MEMORY.read_text("ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
        _set_limit("RLIMIT_AS", max(1 << 20, used + memory))
    _set_limit("RLIMIT_CORE", 0)


def limit_seconds_from_now(seconds: int) -> None:
    """Let the system end this process once it has taken so many more seconds of the processor, to
    the next whole one. A later call counts anew."""
    if resource is not None:
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        soft = int(time.process_time()) + 1 + seconds
        if most == resource.RLIM_INFINITY or soft < most:
            resource.setrlimit(resource.RLIMIT_CPU, (soft, most))


def limit_files(size: int) -> None:
    """Bound each file that this process writes to so many bytes."""
    _set_limit("RLIMIT_FSIZE", size)


def _set_limit(name: str, most: int) -> None:
    if resource is not None:
        with suppress(ValueError, OSError):  # macOS refuses some
            resource.setrlimit(getattr(resource, name), (most, most))
