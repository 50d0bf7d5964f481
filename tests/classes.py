"""Classes of a test, in each kind of store, and the lines of those who listen to them."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import httpx2
import pytest
from driver import free_port
from waiting import until

from explorer.app.classroom.service import ClassService
from explorer.app.classroom.store import MemoryStore, Store

REDIS = shutil.which("redis-server")
QUESTION = {"text": "Which?", "choices": ["a", "b", "c"], "right": 1, "says": "b.", "to": "/"}


def in_a_loop(test: Callable) -> Callable:
    """An async test, run in a loop of its own for at most 300 s; its classes are closed there."""

    @functools.wraps(test)
    def run(**given: object) -> None:
        async def whole() -> None:
            try:
                await asyncio.wait_for(test(**given), 300)
            finally:
                for each in (given.get("classes"), *given.get("processes", ())):
                    await each.close() if each else None

        asyncio.run(whole())

    return run


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A real Redis server of its own: its address, and the number of its process."""
    if REDIS is None and not os.environ.get("CI"):
        pytest.skip("no redis-server on this machine; under CI this is an error")
    pytest.importorskip("redis")
    folder: Path = tmp_path_factory.mktemp("redis")
    port = free_port()
    command = [REDIS, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until(answers)
    yield f"redis://127.0.0.1:{port}/0", process.pid
    process.terminate()
    process.wait(10)


@pytest.fixture
def redis_address(redis_server: tuple[str, int]) -> str:
    """The address of an empty Redis."""
    import redis

    with redis.Redis.from_url(redis_server[0]) as store:
        store.flushall()
    return redis_server[0]


def redis_store(address: str) -> Store:
    from explorer.app.classroom.redis_store import RedisStore

    return RedisStore(address)


@pytest.fixture(params=["here", "redis"])
def classes(request: pytest.FixtureRequest) -> ClassService:
    """Classes in a fresh store of each kind."""
    if request.param == "here":
        return ClassService(MemoryStore())
    return ClassService(redis_store(request.getfixturevalue("redis_address")))


@pytest.fixture
def processes(redis_address: str) -> tuple[ClassService, ClassService]:
    """Classes of two processes on one Redis."""
    return ClassService(redis_store(redis_address)), ClassService(redis_store(redis_address))


@contextmanager
def crowd(server: str, code: str) -> Iterator[None]:
    """Ten more students of a class, who are lines alone: more than pages follow at once for."""
    at, lines = urlsplit(server), []
    for _ in range(10):
        word = httpx2.post(f"{server}/class/join", json={"code": code}).json()["student"]
        lines.append(HTTPConnection(at.hostname, at.port))
        lines[-1].request("GET", f"/class/news?{urlencode({'code': code, 'as': word})}")
        assert lines[-1].getresponse().status == 200
    yield
    for line in lines:
        line.close()


class Line:
    """One open line, and what it last said."""

    def __init__(self, heard: AsyncIterator[str]) -> None:
        self.heard = heard

    async def next(self) -> dict:
        while not (said := await asyncio.wait_for(anext(self.heard), 10)):
            pass
        return json.loads(said)

    async def until(self, fits: Callable[[dict], bool]) -> dict:
        """The first of the next things said that is so."""
        while not fits(said := await self.next()):
            pass
        return said

    async def close(self) -> None:
        await self.heard.aclose()


async def listening(classes: ClassService, code: str, word: str) -> tuple[Line, dict]:
    line = Line(classes.listen(code, word))
    return line, await line.next()
