"""A class at two processes of the app and a Redis server, under strangers, one student with a
script, lines that drop and a process that dies: all hear of every move, and the tally is one answer
of each."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from classes import QUESTION, in_a_loop, redis_address, redis_server
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from benchmarks.clients import open_page, reader_line, server

__all__ = ["redis_address", "redis_server"]  # pytest finds them here

SCHOOL, STRANGER, OTHER = "127.0.0.1", "127.0.0.2", "127.0.0.3"
STUDENTS, TIMES, AT_ONCE = 6, 40, 20
LONGEST = 90  # seconds until all have heard


async def request(
    port: int, route: str, body: dict[str, Any], source: str = SCHOOL
) -> dict[str, Any]:
    """The answer of a route of the class to a request from an address. Raises RuntimeError where it
    is refused."""
    data = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection(SCHOOL, port, local_addr=(source, 0))
    writer.write(
        f"POST /class/{route} HTTP/1.1\r\nHost: {SCHOOL}:{port}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
        + data
    )
    head, _, content = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{route}: {head!r}")
    return json.loads(content)


@dataclass
class Listener:
    """A line of server-sent events, and the last state of the class on it."""

    port: int
    code: str
    word: str
    state: dict[str, Any] = field(default_factory=dict)
    line: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Open the line, and wait for the first message on it."""
        self.state = {}
        self.line = asyncio.create_task(self._listen())
        await self.until(lambda state: state)

    async def disconnect(self) -> None:
        """Close the line, as a phone does that sleeps."""
        assert self.line is not None
        self.line.cancel()
        await asyncio.gather(self.line, return_exceptions=True)

    async def until(self, holds: Any) -> None:
        """Wait until the state is so."""
        async with asyncio.timeout(LONGEST):
            while not holds(self.state):
                await asyncio.sleep(0.02)

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_connection(SCHOOL, self.port)
        try:
            route = f"/class/news?code={self.code}&as={self.word}"
            writer.write(f"GET {route} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            while line := await reader.readline():
                if line.startswith(b"data: "):
                    self.state = json.loads(line[6:])
        finally:
            writer.close()


class HonestClass:
    """A class of which half the students are at each process; all have answered a question."""

    async def begin(self, ports: list[int]) -> None:
        """Start it, and let all join and answer."""
        self.ports, self.moves = ports, 0
        made = await request(ports[0], "start", {})
        self.rule = {"code": made["code"], "key": made["key"]}
        self.teacher = Listener(ports[0], made["code"], made["watch"])
        self.students: list[Listener] = []
        for at in range(STUDENTS):
            port = ports[at % 2]
            word = (await request(port, "join", self.rule))["student"]
            self.students.append(Listener(port, made["code"], word))
        await asyncio.gather(*(each.connect() for each in (self.teacher, *self.students)))
        asked = await request(ports[0], "ask", self.rule | {"question": QUESTION})
        self.number = asked["number"]
        for each in self.students:
            await self.answer(each.port, each.word, 0)

    async def answer(self, port: int, word: str, choice: int) -> None:
        """Answer the question."""
        part = {"code": self.rule["code"], "student": word, "number": self.number}
        await request(port, "answer", part | {"choice": choice})

    async def is_whole(self) -> None:
        """Wait until all have heard of a move, and the tally is one answer of each student."""
        self.moves += 1
        at = f"/?token={self.moves}"
        await request(self.ports[0], "move", self.rule | {"at": at})
        for each in self.students:
            await each.until(lambda state: state["at"] == at)
        tally = {"here": STUDENTS, "tally": [STUDENTS, 0, 0]}
        await self.teacher.until(lambda state: state.items() >= tally.items())

    async def reconnect(self, students: list[Listener], port: int | None = None) -> None:
        """Let lines drop and come back, at another process where it is named."""
        await asyncio.gather(*(each.disconnect() for each in students))
        for each in students:
            each.port = port or each.port
        await asyncio.gather(*(each.connect() for each in students))


async def repeat(act: Any) -> None:
    """Do it TIMES times, a few at once; what is refused is refused."""
    places = asyncio.Semaphore(AT_ONCE)

    async def once(at: int) -> None:
        async with places:
            with suppress(RuntimeError, OSError):
                await act(at)

    await asyncio.gather(*(once(at) for at in range(TIMES)))


async def attack(lesson: HonestClass, pid: int) -> None:
    """One thing after the other; after each the class is whole. pid: of the second process."""
    ports, rule = lesson.ports, lesson.rule
    await lesson.is_whole()

    async def vote(at: int) -> None:
        word = (await request(ports[at % 2], "join", rule))["student"]
        await lesson.answer(ports[at % 2], word, 1)

    await repeat(vote)
    await lesson.is_whole()
    guess = {"code": "2222222"}
    guesses = repeat(lambda at: request(ports[0], "join", guess, (SCHOOL, STRANGER)[at % 2]))
    guessing = asyncio.ensure_future(guesses)
    await request(ports[0], "join", rule, STRANGER)  # a right code is let in meanwhile
    await guessing
    await lesson.is_whole()
    async with AsyncExitStack() as stay:
        for _ in range(TIMES):
            with suppress(OSError, WebSocketException):
                stream = f"ws://{SCHOOL}:{ports[0]}/_stcore/stream"
                idle = connect(stream, subprotocols=["streamlit", "none"], local_addr=(STRANGER, 0))
                await stay.enter_async_context(idle)
        async with reader_line(f"http://{SCHOOL}:{ports[0]}") as line:
            assert await open_page(line, "heads", {}) == "", "a reader has a page beside them"
        await lesson.is_whole()
    await repeat(lambda at: request(ports[at % 2], "start", {}, STRANGER))
    made = await request(ports[0], "start", {}, OTHER)
    await request(ports[1], "join", {"code": made["code"]}, OTHER)
    await lesson.is_whole()
    await lesson.reconnect(lesson.students)
    await lesson.is_whole()
    os.kill(pid, signal.SIGKILL)
    await lesson.reconnect([each for each in lesson.students if each.port == ports[1]], ports[0])
    await lesson.is_whole()
    await request(ports[0], "end", rule)
    await asyncio.gather(*(each.disconnect() for each in (lesson.teacher, *lesson.students)))


@pytest.mark.slow
@in_a_loop
async def test_a_class_stays_whole(redis_address: str) -> None:
    shared = {"HEADLIGHT_REDIS": redis_address, "HEADLIGHT_MAX_SESSIONS": str(TIMES // 2)}
    with server(**shared) as (one, _), server(**shared) as (other, pid):
        lesson = HonestClass()
        await lesson.begin([int(each.rpartition(":")[2]) for each in (one, other)])
        await attack(lesson, pid)
