"""Start, limit and end a module of this package in a process of its own. Its crash affects only the
reader who requested its result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
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
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


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
