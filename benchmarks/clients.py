"""A server of the app and its readers, for the benchmarks that measure it from outside.

A reader is a websocket that speaks Streamlit's own protocol, as a browser does.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from explorer.text import places

ROOT = Path(__file__).resolve().parent.parent
LONGEST_START = 300  # seconds until a server answers
LONGEST_WAIT = 120  # seconds between two messages of the server
SMALL = 200  # bytes; the message that a script has finished is smaller
WORDS = (
    "the old cat dog boy girl teacher saw gave took found carried lost read wrote small red house "
    "river book street door window because when while after before near under over with without "
    "slowly quickly and but so it they she he was were had"
).split()


@contextmanager
def server(script: str = "app.py", **environment: str) -> Iterator[tuple[str, int]]:
    """A server on a free port, ready: its address and process id. `environment`: variables of the
    process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)]
    process = subprocess.Popen(
        [*command, "--server.address", "127.0.0.1"],
        cwd=ROOT,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + LONGEST_START
        while True:
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=1)
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.1)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait(10)


def cpu_ms(pid: int) -> float:
    """Milliseconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> int:
    """Bytes of a process in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * 4096


def quantile(times: list[float], share: float) -> float:
    """The value within which that share of `times` lies, NaN where there are none."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))] if times else float("nan")


def random_text(dice: random.Random, words: int) -> str:
    """That many words drawn at random."""
    return " ".join(dice.choices(WORDS, k=words)).capitalize() + "."


def reader_line(address: str) -> connect:
    """The websocket of a reader."""
    return connect(
        f"{address.replace('http', 'ws')}/_stcore/stream",
        subprotocols=["streamlit", "none"],
        max_size=None,
        open_timeout=60,
    )


async def open_page(line: ClientConnection, page: str, choices: dict[str, str]) -> str:
    """Request a tab by its link and wait until its script has run. Returns "" or the error."""
    to = urlsplit(places.address(page, choices))
    request = {"query_string": to.query, "page_name": to.path.strip("/")}
    await line.send(BackMsg(rerun_script=request).SerializeToString())
    while True:
        try:
            # Not wait_for, which Python 3.11 lets swallow an end of the task.
            async with asyncio.timeout(LONGEST_WAIT):
                data = await line.recv()
        except TimeoutError:
            return f"{page}: nothing for {LONGEST_WAIT} seconds"
        message = ForwardMsg.FromString(data)
        element = message.delta.new_element
        if element.WhichOneof("type") == "exception":
            return f"{page}: {element.exception.type} {element.exception.message}"
        if len(data) <= SMALL and message.WhichOneof("type") == "script_finished":
            return ""
