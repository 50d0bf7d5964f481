"""How fast a class follows its teacher: `python -m benchmarks.class_latency --followers 60 300`.

One process of the app. Each follower holds a line of server-sent events, as a student's browser
does. A move is timed from the moment the teacher sends it until each follower has heard it
("event"), and with `--pages` until the follower's own page has also run its script on the new
address over a session of its own ("page"; what a browser then draws is not in it), for which each
waits for a turn of its own. With `--browser` one more follower is a real browser: "seen" is when
its picture shows the teacher's head and token, "whole" when the server's answer stands there too.

Then a question: every follower answers while ten leave and come back, and the tally must hold every
answer.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.asyncio.client import connect

from benchmarks.browser import cpu_ms, server
from benchmarks.load_clients import finished, rss_of

# Students' pages come one after another, and where they are many the teacher's picture comes first:
# seconds, as class_client.js has them.
A_PAGE, FEW, FIRST = 0.045, 8, 0.8
IDLE = 2.0  # seconds of which the server's work is told while nothing is asked of it
LEAVE = 10  # followers that go and come back while the others answer
QUESTION = {"text": "Which?", "choices": ["a", "b", "c", "d"], "right": 1, "says": "b"}
HEADS, LAYERS = 8, 4  # of the first model
# The browser's picture shows a head; the page's heading says so.
SEEN = """at => [...document.querySelectorAll("*")].some((each) =>
  each.shadowRoot?.querySelector(".head")?.dataset.head === at)"""
WHOLE = """name => [...document.querySelectorAll("h2")].some((h) => h.textContent.includes(name))
  && !document.querySelector("[data-testid=stStatusWidget]")"""


def goal(move: int) -> tuple[str, str, str]:
    """The address of a move, each to another head, what the picture then shows and what the page
    calls it."""
    layer, head = move // HEADS % LAYERS, move % HEADS
    token = f"&token={3 + move % 5}"
    return f"/?layer={layer}&head={head}{token}", f"{layer}.{head}", f"Layer {layer}, head {head}"


async def asked(
    port: int, what: str, said: dict[str, Any], source: str = "127.0.0.1"
) -> dict[str, Any]:
    """What the server answers to something that is sent to a class from an address."""
    body = json.dumps(said).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    writer.write(
        f"POST /class/{what} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    answer = await reader.read()
    writer.close()
    head, _, said_back = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{what}: {answer[:300]!r}")
    return json.loads(said_back)


@dataclass
class Follower:
    """One student: a line, what was last heard on it, and when each address was."""

    port: int
    code: str
    word: str
    heard: dict[str, float] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    line: asyncio.Task[None] | None = None

    async def come(self) -> None:
        """Open the line, and wait for the first word on it."""
        self.news.clear()
        self.line = asyncio.create_task(self._listen())
        await asyncio.wait_for(self.news.wait(), 60)

    async def leave(self) -> None:
        """Close the line, as a phone does that sleeps."""
        assert self.line is not None
        self.line.cancel()
        await asyncio.gather(self.line, return_exceptions=True)

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            asked = f"/class/news?code={self.code}&as={self.word}"
            writer.write(f"GET {asked} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            while line := await reader.readline():
                if line.startswith(b"data: "):
                    self.seen = json.loads(line[6:])
                    self.heard.setdefault(self.seen.get("at", ""), time.monotonic())
                    self.news.set()
        finally:
            writer.close()

    async def hears(self, at: str) -> float:
        """When an address was heard."""
        while at not in self.heard:
            self.news.clear()
            await self.news.wait()
        return self.heard[at]

    async def shows(self, socket: Any, at: str) -> float:
        """When this student's own page had run on an address, in its turn."""
        await self.hears(at)
        many = self.seen["many"]
        await asyncio.sleep(random.random() * A_PAGE * (many - 1) + (many > FEW) * FIRST)
        asked_for = BackMsg(rerun_script={"query_string": at.partition("?")[2]})
        await socket.send(asked_for.SerializeToString())
        while not finished(await asyncio.wait_for(socket.recv(), 300)):
            pass
        return time.monotonic()


def share(times: list[float], part: float) -> float:
    """The milliseconds within which that part was done."""
    return 1e3 * sorted(times)[min(len(times) - 1, int(part * len(times)))]


async def moved(
    port: int,
    rule: dict[str, Any],
    followers: list[Follower],
    sockets: list[Any],
    moves: int,
    begun: asyncio.Queue[float] | None = None,
) -> list[float]:
    """Seconds from each move until each follower has heard of it, or with `sockets` shows it."""
    took: list[float] = []
    for move in range(moves):
        at = goal(move + (moves if sockets else 0))[0]
        start = time.monotonic()
        waiting = (
            [each.shows(socket, at) for each, socket in zip(followers, sockets)]
            if sockets
            else [each.hears(at) for each in followers]
        )
        arrived = asyncio.gather(*waiting)
        if begun:
            await begun.put(start)
        await asked(port, "move", rule | {"at": at})
        took += [when - start for when in await asyncio.wait_for(arrived, 300)]
        await asyncio.sleep(1.5 if begun else 0.3)
    return took


async def watched(page: Any, first: int, moves: int, start: asyncio.Queue[float]) -> Any:
    """Seconds from each of the teacher's moves until a real browser shows the head, and until its
    page is whole."""
    seen, whole = [], []
    for move in range(first, first + moves):
        _, shown, name = goal(move)
        begun = await start.get()
        await page.wait_for_function(SEEN, arg=shown, timeout=120_000)
        seen.append(time.monotonic() - begun)
        await page.wait_for_function(WHOLE, arg=name, timeout=120_000)
        whole.append(time.monotonic() - begun)
    return seen, whole


@contextlib.asynccontextmanager
async def student(port: int, code: str, wanted: bool) -> AsyncIterator[Any]:
    """A real browser that follows the class, None where none is `wanted`."""
    if not wanted:
        yield None
        return
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = await browser.new_page(viewport={"width": 1280, "height": 720})
        await page.goto(f"http://127.0.0.1:{port}/join/{code}")
        await page.wait_for_selector(".head[data-token]", timeout=120_000)
        yield page
        await browser.close()


async def answered(
    port: int, rule: dict[str, Any], teacher: Follower, followers: list[Follower]
) -> tuple[int, float]:
    """How many answers the teacher's tally holds in the end, and after how many seconds."""
    asked_for = await asked(port, "ask", rule | {"question": QUESTION})
    number, start = asked_for["number"], time.monotonic()
    away = followers[:LEAVE]
    await asyncio.gather(*(each.leave() for each in away))

    async def answer(each: Follower, at: int) -> None:
        if each in away:
            await each.come()  # and finds the question there
            assert each.seen["asked"]["text"] == QUESTION["text"]
        said = {"code": each.code, "student": each.word, "number": number, "choice": at % 4}
        await asked(port, "answer", said)

    await asyncio.gather(*(answer(each, at) for at, each in enumerate(followers)))
    while sum(teacher.seen.get("tally") or [0]) < len(followers) and time.monotonic() < start + 60:
        teacher.news.clear()
        await asyncio.wait_for(teacher.news.wait(), 60)
    tally = teacher.seen["tally"]
    assert tally == [len(range(choice, len(followers), 4)) for choice in range(4)], tally
    return sum(tally), time.monotonic() - start


async def lesson(port: int, pid: int, number: int, moves: int, pages: bool, browser: bool) -> str:
    """One class of so many followers: a line of the table."""
    made = await asked(port, "start", {})
    rule = {"code": made["code"], "key": made["key"]}
    words = [(await asked(port, "join", rule))["student"] for _ in range(number)]
    followers = [Follower(port, made["code"], word) for word in words]
    teacher = Follower(port, made["code"], made["watch"])
    await asyncio.gather(*(each.come() for each in (teacher, *followers)))
    idle = cpu_ms(pid)
    await asyncio.sleep(IDLE)
    idle = (cpu_ms(pid) - idle) / IDLE
    took = await moved(port, rule, followers, [], moves)
    got, seconds = await answered(port, rule, teacher, followers)
    shown: list[float] = []
    seen: list[float] = []
    whole: list[float] = []
    if pages or browser:
        async with student(port, made["code"], browser) as page:
            sockets = [await session(port) for _ in followers]
            begun: asyncio.Queue[float] = asyncio.Queue()
            watching = asyncio.create_task(watched(page, moves, moves, begun)) if page else None
            shown = await moved(port, rule, followers, sockets, moves, begun if page else None)
            if watching:
                seen, whole = await watching
            await asyncio.gather(*(each.close() for each in sockets))
    await asked(port, "end", rule)
    await asyncio.gather(*(each.line for each in followers if each.line))
    cells = [
        f"{share(each, part):>8.0f}" if each else f"{'-':>8}"
        for each in (took, shown, seen, whole)
        for part in (0.5, 0.95)
    ]
    return (
        f"{number:>9} {' '.join(cells)} {got:>8} {seconds:>8.2f} {idle:>9.1f} "
        f"{rss_of(pid) / 1e6:>7.0f}"
    )


async def session(port: int) -> Any:
    """A student's session of the app, its first page shown."""
    socket = await connect(
        f"ws://127.0.0.1:{port}/_stcore/stream",
        subprotocols=["streamlit", "none"],
        max_size=None,
        open_timeout=60,
    )
    await socket.send(BackMsg(rerun_script={"query_string": ""}).SerializeToString())
    while not finished(await asyncio.wait_for(socket.recv(), 300)):
        pass
    return socket


def main(given: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--followers", type=int, nargs="+", default=[60, 300])
    parser.add_argument("--moves", type=int, default=10)
    parser.add_argument("--pages", action="store_true")
    parser.add_argument("--browser", action="store_true")
    asked_for = parser.parse_args(given)
    print(
        f"{'followers':>9} {'event50':>8} {'event95':>8} {'page50':>8} {'page95':>8} "
        f"{'seen50':>8} {'seen95':>8} {'whole50':>8} {'whole95':>8} "
        f"{'answers':>8} {'within s':>8} {'idle ms/s':>9} {'RSS MB':>7}"
    )
    with server("app.py") as (address, pid):
        port = int(address.rpartition(":")[2])
        for number in asked_for.followers:
            ways = asked_for.pages, asked_for.browser
            print(asyncio.run(lesson(port, pid, number, asked_for.moves, *ways)), flush=True)


if __name__ == "__main__":
    main()
