"""Readers of a running server, as many as are asked for: the load that `class.py` measures.

Each reader is a websocket that speaks Streamlit's own protocol: every three seconds a new text of 8
to 20 words, timed from the request until the server says that the script has finished. At the same
time it asks for the text's two large pictures by themselves, as the browser does.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.browser import cpu_ms, server

EVERY = 3.0  # seconds between two texts of one reader
REST = 30.0  # seconds for which a browser does not ask for pictures again where there were none
SMALL = 200  # bytes; the message that a script has finished is smaller
WORDS = [
    "the",
    "old",
    "cat",
    "dog",
    "boy",
    "girl",
    "teacher",
    "saw",
    "gave",
    "took",
    "found",
    "carried",
    "lost",
    "read",
    "wrote",
    "small",
    "red",
    "house",
    "river",
    "book",
    "street",
    "door",
    "window",
    "because",
    "when",
    "while",
    "after",
    "before",
    "near",
    "under",
    "over",
    "with",
    "without",
    "slowly",
    "quickly",
    "and",
    "but",
    "so",
    "it",
    "they",
    "she",
    "he",
    "was",
    "were",
    "had",
]


@dataclass
class Load:
    """What a load came to: milliseconds of each text, and of each whose pictures came sooner; the
    server's CPU and memory."""

    readers: int
    asks: bool = False  # for the pictures by themselves too
    took: list[float] = field(default_factory=list)
    sooner: list[float] = field(default_factory=list)
    cpu: float = 0.0
    rss: float = 0.0

    def at(self, share: float, of: list[float] | None = None) -> float:
        """The milliseconds within which that share of texts was done."""
        times = sorted(self.took if of is None else of)
        return times[min(len(times) - 1, int(share * len(times)))] if times else float("nan")

    def row(self, name: str) -> str:
        """One line of the table."""
        told = (
            f"{name:<12} {self.readers:>7} {len(self.took):>6} {self.at(0.5):>8.0f} "
            f"{self.at(0.95):>8.0f} {self.cpu / len(self.took):>10.1f} {self.rss / 1e6:>8.0f}"
        )
        if not self.asks:
            return told
        return (
            f"{told} {len(self.sooner) / len(self.took):>7.2f} {self.at(0.5, self.sooner):>7.0f} "
            f"{self.at(0.95, self.sooner):>7.0f}"
        )


def rss_of(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def sentence(dice: random.Random) -> str:
    """A new text of 8 to 20 words."""
    return " ".join(dice.choices(WORDS, k=dice.randint(8, 20))).capitalize() + "."


def pictures(address: str, text: str, model: str, sooner: list[float]) -> bool:
    """Ask for a text's pictures by themselves, and note how long they took; False where there are
    none."""
    body = json.dumps({"text": text, "model": model or "encoder", "asked": {}}).encode()
    asked = Request(f"{address}/ahead", body, {"Content-Type": "application/json"})
    start = time.monotonic()
    with urlopen(asked, timeout=300) as answer:
        answer.read()
        if answer.status == 200:
            sooner.append((time.monotonic() - start) * 1e3)
        return answer.status == 200


async def reader(
    address: str, number: int, model: str, all_there: asyncio.Barrier, seconds: float, found: Load
) -> None:
    """One reader: a first text, which imports and sends what later ones do not, then for so many
    seconds, or until one text is told, a text, its pictures, and the rest of three seconds."""
    dice = random.Random(number)
    await asyncio.sleep(dice.random() * EVERY)
    async with connect(
        f"{address.replace('http', 'ws')}/_stcore/stream",
        subprotocols=["streamlit", "none"],
        max_size=None,
        open_timeout=60,
    ) as socket:
        await drawn(socket, sentence(dice), model)
        await all_there.wait()
        await asyncio.sleep(dice.random() * EVERY)
        end, again = time.monotonic() + seconds, 0.0
        while time.monotonic() < end or not found.took:
            text, start, aside = sentence(dice), time.monotonic(), []
            if found.asks and start > again:
                asking = asyncio.to_thread(pictures, address, text, model, found.sooner)
                aside.append(asyncio.create_task(asking))
            await drawn(socket, text, model)
            found.took.append((time.monotonic() - start) * 1e3)
            if not all(await asyncio.gather(*aside)):
                again = time.monotonic() + REST
            await asyncio.sleep(max(0.0, start + EVERY - time.monotonic()))


async def drawn(socket: ClientConnection, text: str, model: str) -> None:
    """A text is asked for, and its run has ended."""
    asked = urlencode({"text": text} | ({"model": model} if model else {}))
    await socket.send(BackMsg(rerun_script={"query_string": asked}).SerializeToString())
    while not finished(await asyncio.wait_for(socket.recv(), 300)):
        pass


def finished(message: bytes) -> bool:
    """True for the message that a script has run to its end."""
    if len(message) > SMALL:
        return False
    read = ForwardMsg.FromString(message)
    return read.WhichOneof("type") == "script_finished"


async def load(
    address: str,
    pid: int,
    readers: int,
    seconds: float,
    model: str,
    asks: bool = False,
    first: int = 0,
) -> Load:
    """That many readers at once for so many seconds, counted from when all have their first page:
    what is told is what a text costs, in time and in CPU, and not what a visit does. first: the
    number of the first reader; each number has texts of its own."""
    found = Load(readers, asks)
    all_there = asyncio.Barrier(readers + 1)
    async with asyncio.TaskGroup() as at_work:
        for number in range(first, first + readers):
            at_work.create_task(reader(address, number, model, all_there, seconds, found))
        await all_there.wait()
        before = cpu_ms(pid)
    found.cpu, found.rss = cpu_ms(pid) - before, rss_of(pid)
    return found


def measure(script: str, readers: int, seconds: float, model: str = "") -> Load:
    """A load on a server of its own, warmed by one reader first."""
    with server(script) as (address, pid):
        asyncio.run(load(address, pid, 1, EVERY, model))
        return asyncio.run(load(address, pid, readers, seconds, model, script == "app.py"))


def side_by_side(readers: int, seconds: float, model: str) -> Iterator[tuple[str, Load]]:
    """On one server so many readers of the first model alone, then again beside as many of another
    model, and these."""
    with server("app.py") as (address, pid):

        async def both() -> list[Load]:
            loads = ((2 * readers, ""), (3 * readers, model))
            return await asyncio.gather(
                *(load(address, pid, readers, seconds, each, first=at) for at, each in loads)
            )

        for each in ("", model):  # warmed
            asyncio.run(load(address, pid, 1, EVERY, each, first=5 * readers))
        yield "alone", asyncio.run(load(address, pid, readers, seconds, "", first=readers))
        yield from zip(("beside", model), asyncio.run(both()))
