"""Many readers, one after the other and at once, on every page: how long a text takes, and whether
memory stays flat.

`python -m benchmarks.soak --texts 400 --readers 8 --shelf 128` starts a server of its own and
visits it over its websocket as browsers do, every visit with another long text on the next page.
Said: the server's memory over each tenth of the texts, the median of two looks a second, beside
that of the second tenth (the first one fills what is remembered), and the most that was seen; at
the end seconds a text. A single look says little: a text that is just being read takes a tenth of
all. What is remembered of a text is bounded by the shelf, so after the first tenth of 2,000 texts
memory is flat.
"""

from __future__ import annotations

import argparse
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
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from explorer.state import places

ROOT = Path(__file__).resolve().parent.parent
PAGES = tuple(tab for place in places.PLACES.values() for tab in place.tabs)
MODELS = ("encoder", "decoder", "translator", "minilm")
WORDS = [
    "the",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "a",
    "mat",
    "and",
    "then",
    "it",
    "was",
    "red",
    "because",
    "of",
    "an",
    "apple",
    "tree",
    "in",
    "our",
    "town",
]
PARTS = 10
LOOK = 0.5  # seconds between two looks at memory
LONGEST_WAIT = 120  # seconds between two messages of the server


@dataclass
class Soak:
    """What came of it: seconds of every text, the server's memory (bytes) over each part of the
    texts, and visits that went wrong."""

    seconds: list[float]
    memory: list[int]
    wrong: list[str]

    def growth(self) -> int:
        """Bytes by which memory grew in the second half."""
        return self.memory[-1] - self.memory[len(self.memory) // 2 - 1]


@contextmanager
def server(shelf: int) -> Iterator[tuple[int, int]]:
    """A server on a free port, up: its port and process id. shelf: MiB."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
        cwd=ROOT,
        env={**os.environ, "HEADLIGHT_SHELF_BYTES": str(shelf * 2**20)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(240):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1):
                    break
            except OSError:
                time.sleep(0.25)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(10)


def memory_of(process: int) -> int:
    """Bytes of a process in memory."""
    return int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1]) * 4096


def line_to(port: int) -> connect:
    """A reader's websocket."""
    return connect(
        f"ws://127.0.0.1:{port}/_stcore/stream", subprotocols=["streamlit"], max_size=2**26
    )


async def ask(line: ClientConnection, page: str, asked: dict[str, str]) -> str:
    """A reader asks for a page by a link and waits until it stands. Returns "" or what went
    wrong."""
    wish = BackMsg()
    to = urlsplit(places.address(page, asked))
    wish.rerun_script.query_string = to.query
    wish.rerun_script.page_name = to.path.strip("/")
    await line.send(wish.SerializeToString())
    while True:
        message = ForwardMsg()
        try:
            message.ParseFromString(await asyncio.wait_for(line.recv(), LONGEST_WAIT))
        except TimeoutError:
            return f"{page}: nothing for {LONGEST_WAIT} seconds"
        element = message.delta.new_element
        if element.WhichOneof("type") == "exception":
            return f"{page}: {element.exception.type} {element.exception.message}"
        if message.WhichOneof("type") == "script_finished":
            return ""


async def visit(port: int, page: str, asked: dict[str, str]) -> str:
    """A reader comes with a link, waits until the page stands, and goes. Returns "" or what went
    wrong."""
    async with line_to(port) as line:
        return await ask(line, page, asked)


def texts(n: int, tokens: int) -> Iterator[tuple[str, dict[str, str]]]:
    """So many visits: a page, and a link with a text that nobody has asked for before."""
    chance = random.Random(0)
    for at in range(n):
        said = " ".join(chance.choices(WORDS, k=tokens))
        model = MODELS[at // len(PAGES) % len(MODELS)]
        yield PAGES[at % len(PAGES)], {"text": f"{at} {said}", "model": model}


async def soak(port: int, process: int, n: int, readers: int, tokens: int) -> Soak:
    """All texts by so many readers at once."""
    result, left = Soak([], [], []), texts(n, tokens)
    looks: list[int] = []  # at memory, in the part at hand

    async def look() -> None:
        while True:
            looks.append(memory_of(process))
            await asyncio.sleep(LOOK)

    async def reader() -> None:
        for page, asked in left:
            begun = time.perf_counter()
            try:
                wrong = await visit(port, page, asked)
            except (OSError, TimeoutError) as error:
                wrong = f"{page}: {type(error).__name__} {error}"
            result.seconds.append(time.perf_counter() - begun)
            result.wrong += [wrong] if wrong else []
            if len(result.seconds) * PARTS // n > len(result.memory):
                looks.append(memory_of(process))
                now, most = median(looks), max(looks)
                looks.clear()
                result.memory.append(int(now))
                print(
                    f"{len(result.seconds)} texts, {now / 2**20:,.0f} MiB, "
                    f"{now / result.memory[:2][-1] - 1:+.1%}, at most {most / 2**20:,.0f}",
                    flush=True,
                )

    watching = asyncio.create_task(look())
    await asyncio.gather(*(reader() for _ in range(readers)))
    watching.cancel()
    return result


def run(n: int, readers: int, shelf: int, tokens: int) -> Soak:
    """Start a server and soak it."""
    with server(shelf) as (port, process):
        return asyncio.run(soak(port, process, n, readers, tokens))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--texts", type=int, default=400)
    asked.add_argument("--readers", type=int, default=4)
    asked.add_argument("--shelf", type=int, default=128, help="MiB")
    asked.add_argument("--tokens", type=int, default=300, help="words a text")
    given = asked.parse_args()
    result = run(given.texts, given.readers, given.shelf, given.tokens)
    ranked = sorted(result.seconds)
    print(
        f"{len(ranked)} texts of {given.tokens} words, {given.readers} readers, a shelf of "
        f"{given.shelf} MiB"
    )
    print(
        f"seconds a text: median {ranked[len(ranked) // 2]:.2f}, 95 of 100 within "
        f"{ranked[int(0.95 * len(ranked))]:.2f}"
    )
    print(f"the second half of the texts added {result.growth() / 2**20:,.0f} MiB")
    for wrong in result.wrong[:10]:
        print("wrong:", wrong)


if __name__ == "__main__":
    main()
