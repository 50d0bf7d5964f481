"""Classes kept in Redis, where several processes serve one class. It needs the package `redis`
(requirements-classes.txt) and a server of version 6 or newer.

Every key of a class expires with the class, so that Redis itself forgets what a process that has
died would have had to drop.
"""

from __future__ import annotations

import asyncio
import contextlib
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from typing import Any

from explorer.app.classroom import store
from explorer.app.classroom.store import TooMany

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
CLASSES, ENDED, SECRET = f"{PREFIX}classes", f"{PREFIX}ended", f"{PREFIX}secret"
PARTS = ("", "stamps", "lines", "answers", *store.PICTURES)  # the keys of a class
CONNECTIONS, TIMEOUT = 50, 10  # of a process; seconds for an answer, and for a free connection
RETRY_SECONDS = 0.5  # seconds between two tries to hear the news

# What follows is one step each. CLASSES holds "address code" by the moment of its lapse, so that
# the class that has been longest without an open line comes first. The keys of a class expire
# then, or at its end.
SHARED = """
local time = redis.call('TIME')
local exact = time[1] * 1000 + time[2] / 1000
local now = math.floor(exact)
-- False where a newer stamp of this kind is stored.
local function newer(stamps, kind, stamp)
  if tonumber(redis.call('HGET', stamps, kind) or 0) > tonumber(stamp) then return false end
  redis.call('HSET', stamps, kind, stamp)
  return true
end
local function expire(key, keys)
  local left = math.max(1, redis.call('PTTL', key))
  for _, each in ipairs(keys) do redis.call('PEXPIRE', each, left) end
end
-- The words with an open line, as one string for each process.
local function present(lines)
  local open = {}
  for _, each in ipairs(redis.call('HVALS', lines)) do
    local till, words = each:match('^(%d+) (.*)$')
    if tonumber(till) > now then open[#open + 1] = words end
  end
  return open
end
"""
# KEYS: the class, CLASSES, ENDED. ARGV: its address, OF_ONE, EMPTY_OF_ONE, MOST_CLASSES, its end,
# LAPSE, STALE and UNATTENDED in ms, 1 for an occupied class, then its fields.
MAKE = """
local address, of_one, empty_of_one, most = ARGV[1] .. ' ', ARGV[2], ARGV[3], ARGV[4]
local left, lapse, stale = tonumber(ARGV[5]) - now, tonumber(ARGV[6]), tonumber(ARGV[7])
local unattended = tonumber(ARGV[8])
if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('ZSCORE', KEYS[3], KEYS[1]) then return 0 end
local all = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
-- Of all classes and of this address's: their number, those without a line, and those that are
-- empty, each with the time since when.
local number, mine, my_left, empty, my_empty = 0, 0, {}, {}, {}
for i = 1, #all, 2 do
  local member, is_mine = all[i], all[i]:sub(1, #address) == address
  local attended = redis.call('HGET', member:match(' (.*)$'), 'attended')
  if not attended then
    redis.call('ZREM', KEYS[2], member)
  else
    number = number + 1
    if is_mine then mine = mine + 1 end
    local lapses, since = tonumber(all[i + 1]), attended + unattended
    local is_left = lapses <= exact + lapse - stale
    if is_left then since = lapses - lapse end
    local one = {since, member}
    if is_left and is_mine then my_left[#my_left + 1] = one end
    if is_left or since <= exact then
      empty[#empty + 1] = one
      if is_mine then my_empty[#my_empty + 1] = one end
    end
  end
end
local among, full = nil, 0
if #my_left >= tonumber(empty_of_one) then
  among, full = my_left, -2
elseif mine >= tonumber(of_one) then
  among, full = my_empty, -2
elseif number >= tonumber(most) then
  among, full = empty, -1
end
local goes = nil
if among then
  table.sort(among, function(a, b) return a[1] < b[1] end)
  if not among[1] then return full end
  goes = among[1][2]
end
if goes then
  local key = goes:match(' (.*)$')
  redis.call('ZREM', KEYS[2], goes)
  for _, part in ipairs({'', ':stamps', ':lines', ':answers', ':picture', ':slide'}) do
    redis.call('DEL', key .. part)
  end
end
redis.call('HSET', KEYS[1], 'address', ARGV[1], 'attended', exact)
for i = 10, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
if ARGV[9] ~= '1' then lapse = lapse - stale end
redis.call('PEXPIRE', KEYS[1], math.max(1, math.min(left, lapse)))
redis.call('ZADD', KEYS[2], exact + lapse, address .. KEYS[1])
return 1
"""
# KEYS from here on: the class and its PARTS.
WRITE = """
if redis.call('EXISTS', KEYS[1]) == 0 or not newer(KEYS[2], ARGV[1], ARGV[2]) then return 0 end
for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
expire(KEYS[1], {KEYS[2]})
return 1
"""
ASK = """
if redis.call('EXISTS', KEYS[1]) == 0 or not newer(KEYS[2], 'question', ARGV[1]) then return 0 end
local number = redis.call('HINCRBY', KEYS[1], 'number', 1)
local open = ARGV[2] == '' and '' or tostring(number)
redis.call('HSET', KEYS[1], 'open', open, 'question', ARGV[2], 'tally', '')
redis.call('DEL', KEYS[4])
expire(KEYS[1], {KEYS[2]})
return number
"""
PUT = """
if redis.call('HGET', KEYS[1], 'open') ~= ARGV[1] then return 0 end
if redis.call('HLEN', KEYS[4]) >= tonumber(ARGV[4]) then
  local open = {}
  for _, words in ipairs(present(KEYS[3])) do
    for word in words:gmatch('%S+') do open[word] = true end
  end
  for _, word in ipairs(redis.call('HKEYS', KEYS[4])) do
    if not open[word] then redis.call('HDEL', KEYS[4], word) end
  end
end
redis.call('HSET', KEYS[4], ARGV[2], ARGV[3])
expire(KEYS[1], {KEYS[4]})
return 1
"""
LINES = """
local ends, lapse = redis.call('HGET', KEYS[1], 'ends'), tonumber(ARGV[5])
if not ends or not newer(KEYS[2], 'lines ' .. ARGV[1], ARGV[2]) then return 0 end
redis.call('HSET', KEYS[3], ARGV[1], now + tonumber(ARGV[4]) .. ' ' .. ARGV[3])
if ARGV[3] ~= '' and ARGV[3] ~= redis.call('HGET', KEYS[1], 'watch') then
  redis.call('HSET', KEYS[1], 'attended', exact)
end
if ARGV[3] ~= '' then
  redis.call('PEXPIRE', KEYS[1], math.max(1, math.min(lapse, tonumber(ends) * 1000 - now)))
  local member = redis.call('HGET', KEYS[1], 'address') .. ' ' .. KEYS[1]
  redis.call('ZADD', ARGV[6], exact + lapse, member)
end
expire(KEYS[1], KEYS)
return 1
"""
DROP = """
local address = redis.call('HGET', KEYS[1], 'address')
if not address then return 0 end
redis.call('ZREM', ARGV[1], address .. ' ' .. KEYS[1])
redis.call('ZADD', ARGV[2], exact, KEYS[1])
redis.call('ZREMRANGEBYRANK', ARGV[2], 0, -1 - ARGV[3])
for _, each in ipairs(KEYS) do redis.call('DEL', each) end
return 1
"""
ROOM = "return {present(KEYS[3]), redis.call('HGETALL', KEYS[4])}"
SHOW = """
if redis.call('EXISTS', KEYS[1]) == 0 or not newer(KEYS[2], KEYS[3], ARGV[1]) then return 0 end
for i = 4, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('DEL', KEYS[3])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
expire(KEYS[1], {KEYS[2], KEYS[3]})
return 1
"""
PRESS = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], 'pressed', 1)
local pressed = redis.call('HGET', KEYS[1], 'presses') .. ARGV[1]
redis.call('HSET', KEYS[1], 'presses', pressed:sub(-ARGV[2]))
return 1
"""
STRIKE = """
local struck, words = redis.call('HGET', KEYS[1], 'struck'), {}
if not struck then return 0 end
for word in struck:gmatch('[^\\n]+') do
  if word ~= ARGV[1] then words[#words + 1] = word end
end
if ARGV[2] == '1' then words[#words + 1] = ARGV[1] end
local first = math.max(1, #words - ARGV[3] + 1)
redis.call('HSET', KEYS[1], 'struck', table.concat(words, '\\n', first))
return 1
"""


class RedisStore:
    """A `store.Store` of a Redis server, by its address. ConnectionError where it does not
    answer."""

    def __init__(self, address: str) -> None:
        self.news: Callable[[str, str], None] = lambda code, whom: None
        # A connection from before Redis was started anew breaks at its first use.
        once_more = Retry(NoBackoff(), 1)
        # A crowd waits for a connection; the default pool refuses whoever is one too many.
        self._redis = redis.Redis.from_pool(
            redis.BlockingConnectionPool.from_url(
                address,
                max_connections=CONNECTIONS,
                timeout=TIMEOUT,
                decode_responses=True,
                socket_timeout=TIMEOUT,
                retry=once_more,
            )
        )
        self._listener: asyncio.Task[None] | None = None

    async def secret(self, candidate: str) -> str:
        await _reply(self._redis.set(SECRET, candidate, nx=True))
        return await _reply(self._redis.get(SECRET))

    async def make(
        self, code: str, fields: dict[str, str], address: str, ends: float, occupied: bool
    ) -> bool:
        limits = [store.OF_ONE, store.EMPTY_OF_ONE, store.MOST_CLASSES]
        times = [_ms(each) for each in (ends, store.LAPSE, store.STALE, store.UNATTENDED)]
        values = [address, *limits, *times, int(occupied), *_flat(fields)]
        outcome = await self._run(MAKE, [_key(code), CLASSES, ENDED], values)
        if outcome < 0:
            raise TooMany(store.FULL if outcome == -1 else store.FULL_OF_ONE)
        return outcome == 1

    async def read(self, code: str) -> dict[str, str] | None:
        await self._hear()
        return await _reply(self._redis.hgetall(_key(code))) or None

    async def write(self, code: str, kind: str, stamp: int, fields: dict[str, str]) -> bool:
        return await self._run(WRITE, _keys(code), [kind, stamp, *_flat(fields)]) == 1

    async def ask(self, code: str, stamp: int, question: str) -> int:
        return await self._run(ASK, _keys(code), [stamp, question])

    async def drop(self, code: str) -> None:
        await self._run(DROP, _keys(code), [CLASSES, ENDED, store.MOST_ENDED])

    async def put(self, code: str, number: str, student: str, choice: str) -> bool:
        values = [number, student, choice, store.MOST_ANSWERS]
        return await self._run(PUT, _keys(code), values) == 1

    async def lines(self, code: str, place: str, stamp: int, words: list[str]) -> None:
        values = [place, stamp, " ".join(words), _ms(store.STALE), _ms(store.LAPSE), CLASSES]
        await self._run(LINES, _keys(code), values)

    async def room(self, code: str) -> tuple[set[str], dict[str, str]]:
        open_lines, answers = await self._run(ROOM, _keys(code), [])
        present = set(" ".join(open_lines).split())
        return present, dict(zip(answers[::2], answers[1::2]))

    async def show(
        self, code: str, stamp: int, fields: dict[str, str], picture: bytes, kind: str
    ) -> bool:
        keys = [_key(code), _key(code, "stamps"), _key(code, kind)]
        values = [stamp, fields[kind], b64encode(picture).decode(), *_flat(fields)]
        return await self._run(SHOW, keys, values) == 1

    async def load_picture(self, code: str, name: str, kind: str) -> bytes | None:
        picture = await _reply(self._redis.hget(_key(code, kind), name))
        return None if picture is None else b64decode(picture)

    async def press(self, code: str, key: str) -> None:
        await self._run(PRESS, _keys(code), [key, store.MOST_PRESSES])

    async def strike(self, code: str, word: str, struck: bool) -> None:
        await self._run(STRIKE, _keys(code), [word, int(struck), store.MOST_STRUCK])

    async def tell(self, code: str, whom: str) -> None:
        await _reply(self._redis.publish(NEWS, f"{code} {whom}"))

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listener
        await self._redis.aclose()

    async def _run(self, script: str, keys: list[str], values: list[Any]) -> Any:
        return await _reply(self._redis.eval(SHARED + script, len(keys), *keys, *values))

    async def _hear(self) -> None:
        """Listen to the news from here on; the first time, wait until Redis says that we do."""
        if self._listener is None or self._listener.done():
            ready = asyncio.Event()
            self._listener = asyncio.ensure_future(self._listen(ready))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ready.wait(), 5)

    async def _listen(self, ready: asyncio.Event) -> None:
        while True:
            try:
                async with self._redis.pubsub() as line:
                    await line.subscribe(NEWS)
                    while True:
                        message = await line.get_message(timeout=5)
                        if message is None:
                            continue
                        if message["type"] == "subscribe":
                            ready.set()
                            self.news("", "")  # what was said meanwhile was not heard
                        elif message["type"] == "message":
                            code, _, whom = str(message["data"]).partition(" ")
                            self.news(code, whom)
            except (RedisError, OSError):
                await asyncio.sleep(RETRY_SECONDS)


def _key(code: str, part: str = "") -> str:
    return f"{PREFIX}class:{code}" + (f":{part}" if part else "")


def _keys(code: str) -> list[str]:
    return [_key(code, part) for part in PARTS]


def _flat(fields: dict[str, str]) -> list[str]:
    return [part for pair in fields.items() for part in pair]


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


async def _reply(reply: Awaitable[Any]) -> Any:
    """Redis's reply. Raises ConnectionError where Redis does not answer."""
    try:
        return await reply
    except (RedisError, OSError) as problem:
        raise ConnectionError("Redis does not answer.") from problem
