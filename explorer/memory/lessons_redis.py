"""Classes kept in Redis, where several processes serve one class. It needs the package `redis`
(requirements-classes.txt) and a server of version 6 or newer.

Every key of a class ends with the class, so that Redis itself forgets what a process that has died
would have had to drop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from typing import Any

from explorer.memory.lessons_store import TooMany

try:
    from redis import asyncio as redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError
except ImportError as problem:
    raise ValueError(
        "HEADLIGHT_REDIS is set, but the package redis is not installed: "
        "pip install -r requirements-classes.txt -c constraints.txt"
    ) from problem

PREFIX = "headlight:"
NEWS = f"{PREFIX}news"
AGAIN = 0.5  # seconds between two tries to hear the news

# One step each. KEYS: the class, its students, its answers, those here; all end with the class.
MAKE = """
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[3]) then return -1 end
for i = 4, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], tonumber(ARGV[1]) + tonumber(ARGV[2]), KEYS[1])
return 1
"""
WRITE = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
for i = 1, #ARGV, 2 do
  if ARGV[i] == 'number' and redis.call('HGET', KEYS[1], 'number') ~= ARGV[i + 1] then
    redis.call('DEL', KEYS[2])
  end
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 1
"""
ADD = """
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return 0 end
if redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[2]) then return -1 end
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], left)
return 1
"""
PUT = """
if redis.call('HGET', KEYS[1], 'open') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[2], math.max(1, redis.call('PTTL', KEYS[1])))
return 1
"""
SHOW = """
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return 0 end
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], left)
return 1
"""
COUNT = """
local n = redis.call('INCRBY', KEYS[1], ARGV[1])
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return n
"""


class InRedis:
    """A `lessons_store.Store` of a Redis server, by its address. ConnectionError where it does not
    answer."""

    def __init__(self, address: str) -> None:
        self.news: Callable[[str, str], None] = lambda code, whom: None
        # A connection from before Redis was started anew breaks at its first use.
        once_more = Retry(NoBackoff(), 1)
        self._redis = redis.from_url(
            address, decode_responses=True, socket_timeout=10, retry=once_more
        )
        self._hearing: asyncio.Task[None] | None = None

    async def make(self, code: str, fields: dict[str, str], life: float, most: int) -> bool:
        flat = [part for pair in fields.items() for part in pair]
        now, ms = int(time.time() * 1000), max(1, int(life * 1000))
        made = await self._run(MAKE, [_key(code), f"{PREFIX}classes"], [now, ms, most, *flat])
        if made < 0:
            raise TooMany("This server holds as many classes as it can; try again later.")
        return made == 1

    async def read(self, code: str) -> dict[str, str] | None:
        await self._hear()
        return await _asked(self._redis.hgetall(_key(code))) or None

    async def write(self, code: str, fields: dict[str, str]) -> bool:
        flat = [part for pair in fields.items() for part in pair]
        return await self._run(WRITE, [_key(code), _key(code, "answers")], flat) == 1

    async def drop(self, code: str) -> None:
        keys = [_key(code, part) for part in ("", "students", "answers", "here", "picture")]
        await _asked(self._redis.delete(*keys))
        await _asked(self._redis.zrem(f"{PREFIX}classes", _key(code)))

    async def add(self, code: str, student: str, most: int) -> bool:
        made = await self._run(ADD, [_key(code), _key(code, "students")], [student, most])
        if made < 0:
            raise TooMany("This class is full.")
        return made == 1

    async def knows(self, code: str, student: str) -> bool:
        return bool(await _asked(self._redis.sismember(_key(code, "students"), student)))

    async def put(self, code: str, number: str, student: str, choice: str) -> bool:
        keys = [_key(code), _key(code, "answers")]
        return await self._run(PUT, keys, [number, student, choice]) == 1

    async def answers(self, code: str, number: str) -> dict[str, str]:
        return await _asked(self._redis.hgetall(_key(code, "answers")))

    async def show(self, code: str, name: str, picture: bytes) -> None:
        said = [name, b64encode(picture).decode()]
        await self._run(SHOW, [_key(code), _key(code, "picture")], said)

    async def shown(self, code: str, name: str) -> bytes | None:
        kept = await _asked(self._redis.hget(_key(code, "picture"), name))
        return None if kept is None else b64decode(kept)

    async def tally(self, name: str, by: int, window: float) -> int:
        return int(await self._run(COUNT, [f"{PREFIX}count:{name}"], [by, int(window * 1000)]))

    async def here(self, code: str, place: str, number: int, stale: float) -> int:
        left = await _asked(self._redis.pttl(_key(code)))
        if left < 0:
            return 0
        key, now = _key(code, "here"), time.time()
        async with self._redis.pipeline(transaction=True) as steps:
            steps.hset(key, place, f"{number} {now}")
            steps.pexpire(key, left)
            steps.hvals(key)
            said = (await _asked(steps.execute()))[-1]
        kept = [each.split() for each in said]
        return sum(int(many) for many, when in kept if now - float(when) < stale)

    async def tell(self, code: str, whom: str) -> None:
        await _asked(self._redis.publish(NEWS, f"{code} {whom}"))

    async def close(self) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._hearing
        await self._redis.aclose()

    async def _run(self, script: str, keys: list[str], said: list[Any]) -> int:
        return await _asked(self._redis.eval(script, len(keys), *keys, *said))

    async def _hear(self) -> None:
        """Listen to the news from here on; the first time, wait until Redis says that we do."""
        if self._hearing is None or self._hearing.done():
            ready = asyncio.Event()
            self._hearing = asyncio.ensure_future(self._listen(ready))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ready.wait(), 5)

    async def _listen(self, ready: asyncio.Event) -> None:
        while True:
            try:
                async with self._redis.pubsub() as line:
                    await line.subscribe(NEWS)
                    while True:
                        said = await line.get_message(timeout=5)
                        if said is None:
                            continue
                        if said["type"] == "subscribe":
                            ready.set()
                            self.news("", "")  # what was said meanwhile was not heard
                        elif said["type"] == "message":
                            code, _, whom = str(said["data"]).partition(" ")
                            self.news(code, whom)
            except (RedisError, OSError):
                await asyncio.sleep(AGAIN)


def _key(code: str, part: str = "") -> str:
    return f"{PREFIX}class:{code}" + (f":{part}" if part else "")


async def _asked(answer: Awaitable[Any]) -> Any:
    """What Redis says. Raises ConnectionError where it cannot be asked."""
    try:
        return await answer
    except (RedisError, OSError) as problem:
        raise ConnectionError("Redis does not answer.") from problem
