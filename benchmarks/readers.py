"""Readers of a running server, as many as are asked for: the load that `class.py` measures.

Each reader is a websocket that speaks Streamlit's own protocol: every three seconds a new text of 8
to 20 words, timed from the request until the server says that the script has finished.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

from benchmarks.browser import cpu_ms, server

EVERY = 3.0  # seconds between two texts of one reader
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
    """What a load came to: milliseconds of each text, and the server's CPU and memory."""

    readers: int
    took: list[float] = field(default_factory=list)
    cpu: float = 0.0
    rss: float = 0.0

    def at(self, share: float) -> float:
        """The milliseconds within which that share of texts was done."""
        return sorted(self.took)[min(len(self.took) - 1, int(share * len(self.took)))]

    def row(self, name: str) -> str:
        """One line of the table."""
        return (
            f"{name:<12} {self.readers:>7} {len(self.took):>6} {self.at(0.5):>8.0f} "
            f"{self.at(0.95):>8.0f} {self.cpu / len(self.took):>10.1f} {self.rss / 1e6:>8.0f}"
        )


def rss_of(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def sentence(dice: random.Random) -> str:
    """A new text of 8 to 20 words."""
    return " ".join(dice.choices(WORDS, k=dice.randint(8, 20))).capitalize() + "."


async def reader(address: str, number: int, model: str, end: float, took: list[float]) -> None:
    """One reader until `end`: a text, its picture, and the rest of three seconds."""
    dice = random.Random(number)
    await asyncio.sleep(dice.random() * EVERY)
    async with connect(
        f"{address.replace('http', 'ws')}/_stcore/stream",
        subprotocols=["streamlit", "none"],
        max_size=None,
        open_timeout=60,
    ) as socket:
        first = True
        while time.monotonic() < end:
            asked = {"text": sentence(dice)} | ({"model": model} if model else {})
            start = time.monotonic()
            await socket.send(
                BackMsg(rerun_script={"query_string": urlencode(asked)}).SerializeToString()
            )
            while not finished(await asyncio.wait_for(socket.recv(), 300)):
                pass
            if not first:  # the first run of a session imports and sends what later ones do not
                took.append((time.monotonic() - start) * 1e3)
            first = False
            await asyncio.sleep(max(0.0, start + EVERY - time.monotonic()))


def finished(message: bytes) -> bool:
    """True for the message that a script has run to its end."""
    if len(message) > SMALL:
        return False
    read = ForwardMsg.FromString(message)
    return read.WhichOneof("type") == "script_finished"


async def load(address: str, pid: int, readers: int, seconds: float, model: str) -> Load:
    """That many readers at once for so many seconds; texts of the first three seconds do not
    count."""
    found = Load(readers)
    end = time.monotonic() + EVERY + seconds
    at_work = [
        asyncio.create_task(reader(address, number, model, end, found.took))
        for number in range(readers)
    ]
    before = cpu_ms(pid)
    await asyncio.gather(*at_work)
    found.cpu, found.rss = cpu_ms(pid) - before, rss_of(pid)
    return found


def measure(script: str, readers: int, seconds: float, model: str = "") -> Load:
    """A load on a server of its own, warmed by one reader first."""
    with server(script) as (address, pid):
        asyncio.run(load(address, pid, 1, EVERY, model))
        return asyncio.run(load(address, pid, readers, seconds, model))
