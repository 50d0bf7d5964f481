"""A class whose store goes away and comes back: what happened meanwhile is heard, and the first who
asks is answered."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable

import pytest
from classes import (
    QUESTION,
    Line,
    in_a_loop,
    listening,
    processes,
    redis_address,
    redis_server,
    redis_store,
)

from explorer.app.classroom import service
from explorer.app.classroom.service import ClassService
from explorer.app.classroom.store import MemoryStore

__all__ = ["processes", "redis_address", "redis_server"]  # pytest finds them here


class Away(MemoryStore):
    """A store that does not answer while it is away, and whose slow writes arrive last."""

    away = False
    slow: asyncio.Event | None = None

    async def write(self, code: str, *more: object) -> bool:
        if self.slow:
            arrived, self.slow = self.slow, None
            await arrived.wait()
        return await super().write(code, *more)

    async def ask(self, code: str, *more: object) -> int:
        if self.slow:
            arrived, self.slow = self.slow, None
            await arrived.wait()
        return await super().ask(code, *more)

    async def lines(self, code: str, *more: object) -> None:
        if self.away:
            raise ConnectionError
        await super().lines(code, *more)

    async def read(self, code: str) -> dict[str, str] | None:
        if self.away:
            raise ConnectionError
        return await super().read(code)


async def followed(store: Away) -> tuple[ClassService, str, Line]:
    """A class in the store, its code, and the line of a student who is heard."""
    classes = ClassService(store)
    made = await classes.start("t")
    student, _ = await classes.join(made.code, "s")
    line, _ = await listening(classes, made.code, student)
    return classes, made.code, line


@in_a_loop
async def test_what_is_told_while_the_store_is_away_is_heard_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "LOOK_AGAIN", 0.01)
    classes, code, line = await followed(store := Away())
    store.away = True
    await store.drop(code)
    store.news("", "")
    await asyncio.sleep(0.1)
    store.away = False
    assert await line.next() == {"over": True}
    await line.close()
    await classes.close()


@in_a_loop
async def test_a_server_that_ends_while_the_store_is_away_does_not_wait_for_it() -> None:
    classes, _, line = await followed(store := Away())
    store.away = True
    store.news("", "")
    await asyncio.sleep(0)
    assert classes._tasks, "it looks at what was told"
    classes.leave()
    await classes.close()
    assert not classes._tasks and store.away
    await line.close()


async def overtaken(store: Away, first: Awaitable, second: Awaitable) -> None:
    """Do both, of which the first is written after the second."""
    arrived = store.slow = asyncio.Event()
    delayed = asyncio.ensure_future(first)
    while store.slow:
        await asyncio.sleep(0)
    await second
    arrived.set()
    await delayed


@in_a_loop
async def test_an_older_move_that_is_written_last_changes_nothing() -> None:
    classes = ClassService(store := Away())
    made = await classes.start("t")
    rule = made.code, made.key
    await overtaken(store, classes.move(*rule, "/learn"), classes.move(*rule, "/lens"))
    assert (await store.read(made.code))["at"] == "/lens"
    # Also where the second leads back to where the class was before the first.
    await overtaken(store, classes.move(*rule, "/learn"), classes.move(*rule, "/lens"))
    assert (await store.read(made.code))["at"] == "/lens"
    first, second = classes.show(*rule, "/a", b"a"), classes.show(*rule, "/b", b"b")
    await overtaken(store, first, second)
    kept = await store.read(made.code)
    picture = await store.load_picture(made.code, kept["picture"], "picture")
    assert kept["of"] == "/b" and picture == b"b"
    last = QUESTION | {"text": "The last?"}
    await overtaken(store, classes.ask(*rule, QUESTION), classes.ask(*rule, last))
    await overtaken(store, classes.reveal(*rule), classes.ask(*rule, last))
    seen = await classes.view(made.code, service.TEACHER)
    assert seen["question"] == last and seen["open"]
    await classes.close()


@in_a_loop
async def test_redis_keeps_the_newer_picture_and_question(redis_address: str) -> None:
    classes = ClassService(store := redis_store(redis_address))
    code = (await classes.start("t")).code
    late, early = 8 * 10**15, 8 * 10**15 - 1  # microseconds, the year 2223
    assert await store.show(code, late, {"picture": "new", "of": "/b"}, b"b", "picture")
    assert not await store.show(code, early, {"picture": "old", "of": "/a"}, b"a", "picture")
    assert (await store.read(code))["of"] == "/b"
    assert await store.load_picture(code, "new", "picture") == b"b"
    assert await store.load_picture(code, "old", "picture") is None
    assert await store.write(code, "question", late, {"open": "2"})
    assert not await store.write(code, "question", early, {"open": "1"})
    assert (await store.read(code))["open"] == "2"
    await classes.close()


@in_a_loop
async def test_who_leaves_while_the_store_is_away_is_counted_out_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "LOOK_AGAIN", 0.01)
    classes, code, line = await followed(store := Away())
    other = ClassService(store)  # another process, which only reads
    while (await other.view(code, service.TEACHER))["here"] != 1:
        await asyncio.sleep(0.01)
    store.away = True
    await line.close()
    await asyncio.sleep(0.1)
    store.away = False
    while (await other.view(code, service.TEACHER))["here"] != 0:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert (await other.view(code, service.TEACHER))["here"] == 0, "and is not counted in again"
    await classes.close()


@pytest.mark.slow
@in_a_loop
async def test_a_redis_that_stands_still_keeps_the_order_of_moves(
    redis_address: str, redis_server: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of a process has a connection of its own, and Redis goes through them in any
    order when it is back; what was given up on this side is carried out all the same."""
    monkeypatch.setattr("explorer.app.classroom.redis_store.TIMEOUT", 0.3)
    monkeypatch.setattr(service, "LOOK_AGAIN", 0.05)
    classes = ClassService(redis_store(redis_address))
    made = await classes.start("t")
    student, _ = await classes.join(made.code, "s")
    line, _ = await listening(classes, made.code, student)
    for step in range(10):
        last = f"/?token={step}"
        os.kill(redis_server[1], signal.SIGSTOP)
        try:
            sent = [
                asyncio.ensure_future(classes.move(made.code, made.key, at))
                for at in ("/older", "/old", last)
            ]
            await asyncio.sleep(0.2 if step % 2 else 0.5)
        finally:
            os.kill(redis_server[1], signal.SIGCONT)
        if (await asyncio.gather(*sent, return_exceptions=True))[-1]:
            await classes.move(made.code, made.key, last)  # as a teacher's window does
        assert (await classes.store.read(made.code))["at"] == last
        await line.until(lambda said: said["at"] == last)
    # Nobody was lost either: the line is open, and counted.
    while (await classes.view(made.code, service.TEACHER))["here"] != 1:
        await asyncio.sleep(0.05)
    await line.close()
    await classes.close()


@pytest.mark.slow
@in_a_loop
async def test_a_process_that_died_leaves_nobody_behind(
    processes: tuple[ClassService, ClassService], monkeypatch: pytest.MonkeyPatch
) -> None:
    from explorer.app.classroom import store

    monkeypatch.setattr(store, "STALE", 1.0)
    monkeypatch.setattr(service, "PULSE", 0.2)
    alive, died = processes
    made = await alive.start("t")
    words = [(await alive.join(made.code, "s"))[0] for _ in range(6)]
    teacher, _ = await listening(alive, made.code, made.watch)
    lines = [(await listening(alive, made.code, each))[0] for each in words[:3]]
    left = [(await listening(died, made.code, each))[0] for each in words[3:]]
    await teacher.until(lambda said: said["here"] == 6)
    # It says nothing any more, not even that its lines are closed.
    died._closed = True
    died._pulse.cancel()
    assert (await teacher.until(lambda said: said["here"] != 6))["here"] == 3
    for line in (teacher, *lines, *left):
        await line.close()


@pytest.mark.slow
@in_a_loop
async def test_a_connection_that_redis_has_closed_refuses_nobody(redis_address: str) -> None:
    store, other = redis_store(redis_address), redis_store(redis_address)
    await asyncio.gather(*(store.read("2222222") for _ in range(6)))
    for _ in range(20):
        await other._redis.client_kill_filter(_type="normal", skipme=True)
        assert await store.read("2222222") is None
    await other.close()
    await store.close()
