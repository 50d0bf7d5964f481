"""Stress test of a class under attacks and faults: `python -m benchmarks.class_attack`.

Two processes of the app and a Redis server on this machine. An honest class of 60, half of it at
each process, is asked a question, and answers. Then, one after the other: one student joins and
answers 980 times; 150 wrong codes come from the class's own address; a stranger opens 260 sockets
and leaves them idle, while a page is opened; another starts classes in a loop; all lines drop and
come back; Redis stands still for 14 seconds while the teacher moves twice and a student leaves; one
process is killed. After each, the teacher moves, all must hear of it, as many are connected as
there are, and the tally must hold one answer of each of them. Printed: the seconds until then.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from benchmarks.clients import Student, class_request, server, visit

SCHOOL, STRANGER, OTHER = "127.0.0.1", "127.0.0.2", "127.0.0.3"
QUESTION = {"text": "Which?", "choices": ["a", "b", "c", "d"], "right": 1, "says": "b"}
LONGEST = 90  # seconds until all is well again
AT_ONCE = 20  # requests of an attacker


@contextmanager
def redis() -> Iterator[tuple[str, int]]:
    """A Redis server of its own: its address, and the number of its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [shutil.which("redis-server") or "redis-server", "--port", str(port)]
    command += ["--bind", "127.0.0.1", "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0", process.pid
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(10)


class Class:
    """An honest class at two processes, and what is to be true of it."""

    def __init__(self, ports: list[int]) -> None:
        self.ports, self.moves, self.number = ports, 0, 0
        self.rule: dict[str, str] = {}

    async def begin(self, students: int) -> None:
        """Start it, and let all join and answer."""
        made = await class_request(self.ports[0], "start", {})
        self.rule = {"code": made["code"], "key": made["key"]}
        self.teacher = Student(self.ports[0], made["code"], made["watch"])
        self.students: list[Student] = []
        for at in range(students):
            port = self.ports[at % len(self.ports)]
            word = (await class_request(port, "join", self.rule))["student"]
            self.students.append(Student(port, made["code"], word))
        await asyncio.gather(*(each.connect() for each in (self.teacher, *self.students)))
        question = {"question": QUESTION}
        self.number = (await class_request(self.ports[0], "ask", self.rule | question))["number"]
        await asyncio.gather(*(self.answer(each.port, each.word, 0) for each in self.students))

    async def answer(self, port: int, word: str, choice: int) -> None:
        """Answer the question."""
        part = {"code": self.rule["code"], "student": word, "number": self.number}
        await class_request(port, "answer", part | {"choice": choice})

    async def whole(self) -> float:
        """Seconds until all hear of a move and the tally is one answer of each student."""
        start = time.monotonic()
        self.moves += 1
        at = f"/?token={self.moves}"
        await class_request(self.ports[0], "move", self.rule | {"at": at})
        await asyncio.wait_for(
            asyncio.gather(*(each.arrival(at) for each in self.students)), LONGEST
        )
        expected = (len(self.students), [len(self.students), 0, 0, 0])
        while (self.teacher.state.get("here"), self.teacher.state.get("tally")) != expected:
            if time.monotonic() > start + LONGEST:
                raise AssertionError(f"{self.teacher.state} is not {expected}")
            await asyncio.sleep(0.05)
        return time.monotonic() - start

    async def reconnect(self, students: list[Student], port: int | None = None) -> None:
        """Let lines drop and come back, at another process where it is named."""
        await asyncio.gather(*(each.disconnect() for each in students))
        for each in students:
            each.port = port or each.port
        await asyncio.gather(*(each.connect() for each in students))


async def many(times: int, act) -> None:
    """Do it so many times, a few at once; what is refused is refused."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(at: int) -> None:
        async with turn:
            with suppress(RuntimeError, OSError):
                await act(at)

    await asyncio.gather(*(one(at) for at in range(times)))


async def votes(lesson: Class, times: int) -> None:
    """One student joins and answers, again and again."""

    async def act(at: int) -> None:
        port = lesson.ports[at % 2]
        word = (await class_request(port, "join", lesson.rule))["student"]
        await lesson.answer(port, word, 1)

    await many(times, act)


async def wrong_codes(lesson: Class, times: int) -> float:
    """Wrong codes from the class's own address and from a stranger's; the seconds that a right one
    takes meanwhile, at the stranger's address, where no line is open."""

    async def act(at: int) -> None:
        source = STRANGER if at % 2 else SCHOOL
        await class_request(lesson.ports[0], "join", {"code": "2222222"}, source)

    trying = asyncio.ensure_future(many(2 * times, act))
    await asyncio.sleep(1)
    start = time.monotonic()
    await class_request(lesson.ports[0], "join", lesson.rule, STRANGER)
    seconds = time.monotonic() - start
    await trying
    return seconds


async def starts(lesson: Class, times: int) -> None:
    """A stranger starts classes and leaves them; then a teacher elsewhere starts one."""
    await many(times, lambda at: class_request(lesson.ports[at % 2], "start", {}, STRANGER))
    made = await class_request(lesson.ports[0], "start", {}, OTHER)
    await class_request(lesson.ports[1], "join", {"code": made["code"]}, OTHER)


async def stands_still(lesson: Class, seconds: float, pid: int) -> None:
    """Redis stands still; the teacher moves twice, and one student goes and comes back."""
    away = lesson.students[-1]
    os.kill(pid, signal.SIGSTOP)
    try:
        moving = []
        for at in ("/learn", "/experiment"):
            rule = lesson.rule | {"at": at}
            moving.append(asyncio.ensure_future(class_request(lesson.ports[0], "move", rule)))
            await asyncio.sleep(0.1)
        await away.disconnect()
        await asyncio.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)
    answers = await asyncio.gather(*moving, return_exceptions=True)
    if isinstance(answers[-1], Exception):  # a teacher's window tries again
        await class_request(lesson.ports[0], "move", rule)
    await away.connect()
    assert away.state["at"] == rule["at"], "the later move"


async def comes_in(port: int) -> float:
    """Seconds until one more reader has a page."""
    start = time.monotonic()
    while time.monotonic() < start + LONGEST:
        with suppress(OSError, WebSocketException):
            if not await visit(f"http://127.0.0.1:{port}", "heads", {}):
                return time.monotonic() - start
        await asyncio.sleep(0.2)
    raise AssertionError("no place for a reader")


async def attacked(ports: list[int], pids: list[int], redis_pid: int, sizes) -> None:
    """Print a line for each thing that happens to the class."""
    lesson = Class(ports)
    await lesson.begin(sizes.students)

    async def line(name: str, note: str = "") -> None:
        seconds = await lesson.whole()
        seen = lesson.teacher.state
        print(
            f"{name:<24} {seconds:>8.2f} {seen['here']:>9} {sum(seen['tally']):>8}  {note}",
            flush=True,
        )

    print(f"{'after':<24} {'whole s':>8} {'connected':>9} {'answers':>8}")
    await line("nothing")
    await votes(lesson, sizes.votes)
    await line(f"{sizes.votes} joins and votes")
    right = await wrong_codes(lesson, sizes.wrong)
    await line(f"{sizes.wrong} wrong codes", f"a right one meanwhile took {right:.2f} s")
    async with AsyncExitStack() as stay:
        opened = 0
        for _ in range(sizes.sockets):
            with suppress(OSError, WebSocketException):
                await stay.enter_async_context(
                    connect(
                        f"ws://127.0.0.1:{ports[0]}/_stcore/stream",
                        subprotocols=["streamlit", "none"],
                        local_addr=(STRANGER, 0),
                    )
                )
                opened += 1
        page = await comes_in(ports[0])
        await line(f"{sizes.sockets} idle sockets", f"{opened} opened; a page took {page:.2f} s")
    await starts(lesson, sizes.starts)
    await line(f"{sizes.starts} classes started")
    await lesson.reconnect(lesson.students)
    await line("all lines dropped")
    await stands_still(lesson, sizes.stall, redis_pid)
    await line(f"Redis still for {sizes.stall:g} s")
    os.kill(pids[1], signal.SIGKILL)
    await lesson.reconnect([each for each in lesson.students if each.port == ports[1]], ports[0])
    await line("a process killed")
    await class_request(ports[0], "end", lesson.rule)
    await asyncio.gather(*(each.disconnect() for each in (lesson.teacher, *lesson.students)))


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--votes", type=int, default=980)
    parser.add_argument("--wrong", type=int, default=150)
    parser.add_argument("--sockets", type=int, default=260)
    parser.add_argument("--starts", type=int, default=150)
    parser.add_argument("--stall", type=float, default=14.0)
    sizes = parser.parse_args(arguments)
    with redis() as (address, redis_pid):
        before = os.environ.get("HEADLIGHT_REDIS")
        os.environ["HEADLIGHT_REDIS"] = address
        try:
            with server("app.py") as (one, pid), server("app.py") as (other, other_pid):
                ports = [int(each.rpartition(":")[2]) for each in (one, other)]
                asyncio.run(attacked(ports, [pid, other_pid], redis_pid, sizes))
        finally:
            os.environ.pop("HEADLIGHT_REDIS")
            if before is not None:
                os.environ["HEADLIGHT_REDIS"] = before


if __name__ == "__main__":
    main()
