"""The library on other systems and Pythons: the grammar of 3.11, and a system without what only
Linux has. `tests/test_packaging.py` runs the wheel by a later Python where there is one."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_house import ROOT, SOURCES, parsed


@pytest.mark.slow
def test_every_file_keeps_to_the_grammar_of_3_11() -> None:
    for path in (*SOURCES, ROOT / "setup.py"):
        ast.parse(path.read_text("utf-8"), str(path), feature_version=(3, 11))


# What Windows or macOS lacks, taken from every process of a test as it starts.
ELSEWHERE = """
import builtins, ctypes, errno, os, pathlib

for name in ("fork", "killpg", "nice", "sched_getaffinity"):
    delattr(os, name)
load, library = builtins.__import__, ctypes.CDLL.__init__


def imported(name, of=None, *given, **named):
    if name in ("resource", "fcntl") and (of or {}).get("__name__", "").startswith("models"):
        raise ModuleNotFoundError(name)
    return load(name, of, *given, **named)


builtins.__import__ = imported


def init(self, name, *given, **named):
    if name is None:
        raise TypeError("no library of the process itself")
    library(self, name, *given, **named)


ctypes.CDLL.__init__ = init


def without(method, answer):
    def again(path, *given, **named):
        if str(path).startswith(("/proc", "/sys")):
            return answer(path)
        return method(path, *given, **named)

    return again


def missing(path):
    raise FileNotFoundError(errno.ENOENT, "not on this system", str(path))


for name in ("read_text", "write_text", "open", "stat"):
    setattr(pathlib.Path, name, without(getattr(pathlib.Path, name), missing))
"""


@pytest.mark.slow
def test_the_library_works_on_a_system_without_what_only_linux_has(
    tmp_path: Path, tiny_folder: Callable[[str], Path]
) -> None:
    (tmp_path / "sitecustomize.py").write_text(ELSEWHERE)
    code = f"""
import os, time
from pathlib import Path

assert not hasattr(os, "fork") and not Path("/proc/self/statm").exists()
import headlight
from headlight import live_training
from explorer.app.server import routes
from explorer.app.state import garbage_collection
from models import child_process
from models.network import linear
from models.pretrained import machine_limits, sandbox

recording = headlight.record("encoder", "The cat sat.")
assert "<html" in headlight.page(recording, "heads")
child_process.limit(1, 1)
child_process.limit_files(0)
child_process.prefer_oom_kill()
assert (routes.rss(), garbage_collection.in_memory(), machine_limits.free_memory()) == (0, 0, None)
assert not linear.is_intel_cpu()
garbage_collection.start()
garbage_collection.collect("all")
assert not sandbox.FORKS
print(sandbox.tester.try_out(Path({str(tiny_folder("bert"))!r}), "it"))
sandbox.tester.close()
run = live_training.TrainingProcess(live_training.TrainingPlan("copy"))
run.resume()
while run.running and not run.weights:
    time.sleep(0.1)
run.end()
print(run.problem or len(run.weights))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["ours:", "1"]


@pytest.mark.slow
def test_nothing_that_only_some_systems_have_is_imported_unguarded() -> None:
    """Not at a file's top level, where an import that fails keeps the file out."""
    partial = re.compile(r"resource|fcntl|pwd|grp|termios|pty|syslog|winreg|msvcrt")
    for path in SOURCES:
        for node in parsed(path).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not any(partial.fullmatch(name) for name in names), f"{path}: {names}"
