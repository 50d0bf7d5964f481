"""Running the components' JavaScript without a browser: node, its test runner, and the tools that
tests/js pins."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from explorer.components import bundle, codec

HERE = Path(__file__).parent / "js"

NODE = shutil.which("node")

needs_node = pytest.mark.skipif(
    NODE is None and not os.environ.get("CI"),
    reason="no node on this machine; under CI this is an error",
)


def served(folder: Path) -> Path:
    """Every module as the server sends it, in `folder`."""
    for name, content in bundle.modules().items():
        (folder / name).write_bytes(content)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def run(*command: str, **more: object) -> subprocess.CompletedProcess[str]:
    """The command's end, with what it wrote; under tests/js."""
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=300, **more)


@cache
def tools() -> Path:
    """Where the pinned tools are, installed once for each lock file."""
    stamp = HERE / "node_modules" / ".headlight"
    lock = (HERE / "package-lock.json").read_text()
    if not stamp.exists() or stamp.read_text() != lock:
        done = run("npm", "ci", "--no-audit", "--no-fund")
        assert done.returncode == 0, done.stderr
        stamp.write_text(lock)
    return HERE / "node_modules" / ".bin"


@cache
def reading() -> tuple[subprocess.Popen[str], Path]:
    """A node that reads with the served codec.js, one for all tests of a process, and its
    folder."""
    folder = tempfile.TemporaryDirectory()
    (Path(folder.name) / "codec.js").write_bytes(bundle.modules()["codec.js"])
    (Path(folder.name) / "package.json").write_text('{"type": "module"}')
    reader = subprocess.Popen(
        ["node", "arrived.js", folder.name],
        cwd=HERE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def end() -> None:
        reader.stdin.close()
        reader.wait(10)
        folder.cleanup()

    atexit.register(end)
    return reader, Path(folder.name)


def arrived(blocks: dict[str, np.ndarray], shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """What the browser's own code makes of `wire.fine`: (weights, half-widths of what is unknown),
    both of `shape`.

    Python writes the bytes, the served codec.js reads them.
    """
    if NODE is None and not os.environ.get("CI"):
        pytest.skip("no node on this machine to read what the browser reads")
    reader, folder = reading()
    sent, back = folder / "sent.bin", folder / "back.bin"
    sent.write_bytes(codec.encode({}, blocks))
    reader.stdin.write(f"{sent}\t{back}\n")
    reader.stdin.flush()
    assert reader.stdout.readline() == "done\n", "node could not read it; it says why above"
    weight, unknown = np.frombuffer(back.read_bytes(), dtype="<f4").reshape(2, *shape)
    return weight.astype(np.float64), unknown.astype(np.float64)


def unfolded(blocks: dict[str, np.ndarray], shape: tuple[int, int]) -> np.ndarray:
    """What the browser makes of `runs`."""
    if "runs" not in blocks:
        return np.ones(shape, dtype=bool)
    return np.repeat(np.arange(len(blocks["runs"])) % 2 == 0, blocks["runs"]).reshape(shape)
