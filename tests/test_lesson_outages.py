"""A class whose store goes away and comes back: what happened meanwhile is heard, and the first who
asks is answered."""

from __future__ import annotations

import asyncio

import pytest
from test_lessons import Line, listening, redis_address

from explorer.memory import lessons as law
from explorer.memory.lessons import Lessons
from explorer.memory.lessons_here import Here

__all__ = ["redis_address"]  # pytest finds it here


class Away(Here):
    """A store that does not answer while it is away."""

    away = False

    async def read(self, code: str) -> dict[str, str] | None:
        if self.away:
            raise ConnectionError
        return await super().read(code)


async def followed(store: Away) -> tuple[Lessons, str, Line]:
    """A class in the store, its code, and the line of a student who is heard."""
    classes = Lessons(store)
    made = await classes.start("t")
    student, _ = await classes.join(made.code, "s")
    line, _ = await listening(classes, made.code, student)
    return classes, made.code, line


def test_what_is_told_while_the_store_is_away_is_heard_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(law, "LOOK_AGAIN", 0.01)

    async def test() -> None:
        classes, code, line = await followed(store := Away())
        store.away = True
        await store.drop(code)
        store.news("", "")
        await asyncio.sleep(0.1)
        store.away = False
        assert await line.next() == {"over": True}
        await line.close()
        await classes.close()

    asyncio.run(asyncio.wait_for(test(), 30))


def test_a_server_that_ends_while_the_store_is_away_does_not_wait_for_it() -> None:
    async def test() -> None:
        classes, _, line = await followed(store := Away())
        store.away = True
        store.news("", "")
        await asyncio.sleep(0)
        assert classes._at_work, "it looks at what was told"
        classes.leave()
        await classes.close()
        assert not classes._at_work and store.away
        await line.close()

    asyncio.run(asyncio.wait_for(test(), 30))


@pytest.mark.slow
def test_a_connection_that_redis_has_closed_refuses_nobody(redis_address: str) -> None:
    from explorer.memory.lessons_redis import InRedis

    async def test() -> None:
        store, other = InRedis(redis_address), InRedis(redis_address)
        await asyncio.gather(*(store.read("2222222") for _ in range(6)))
        for _ in range(20):
            await other._redis.client_kill_filter(_type="normal", skipme=True)
            assert await store.read("2222222") is None
        await other.close()
        await store.close()

    asyncio.run(asyncio.wait_for(test(), 60))
