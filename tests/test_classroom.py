"""Classes: the same laws for those kept in this process and those in a real Redis, whatever is sent
to them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from driver import free_port

from explorer.classroom import service
from explorer.classroom.service import ClassService
from explorer.classroom.store import MemoryStore, Store, Unknown

REDIS = shutil.which("redis-server")
QUESTION = {"text": "Which?", "choices": ["a", "b", "c"], "right": 1, "says": "b.", "to": "/"}
Play = Callable[[ClassService], Awaitable[None]]


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
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield f"redis://127.0.0.1:{port}/0", process.pid
    process.terminate()
    process.wait(10)


@pytest.fixture
def redis_address(redis_server: tuple[str, int]) -> str:
    return redis_server[0]


@pytest.fixture
def redis_pid(redis_server: tuple[str, int]) -> int:
    return redis_server[1]


@pytest.fixture(params=["here", "redis"])
def play(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """Runs a test of classes, each time in a fresh store."""
    address = request.getfixturevalue("redis_address") if request.param == "redis" else ""

    def store() -> Store:
        if not address:
            return MemoryStore()
        from explorer.classroom.redis_store import RedisStore

        return RedisStore(address)

    async def played(test: Play, life: float) -> None:
        kept = store()
        if address:
            await kept._redis.flushall()
        classes = ClassService(kept, life)
        try:
            await asyncio.wait_for(test(classes), 60)
        finally:
            await classes.close()

    yield lambda test, life=service.LIFE: asyncio.run(played(test, life))


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


def test_what_the_teacher_shows_is_seen_by_all_and_at_once_by_whoever_comes(play) -> None:
    async def test(classes: ClassService) -> None:
        made = await classes.start("t")
        first, at = await classes.join(made.code, "s")
        assert at == "/"
        line, seen = await listening(classes, made.code, first)
        assert seen["at"] == "/" and not seen["question"]
        await classes.move(made.code, made.key, "/architecture?width=64")
        assert (await line.until(lambda said: said["at"] != "/"))["at"] == "/architecture?width=64"
        late, at = await classes.join(made.code, "s2")
        assert at == "/architecture?width=64" and late != first
        # One that was away, asleep or without a network, hears how things stand, not what it
        # missed.
        await line.close()
        for step in range(20):
            await classes.move(made.code, made.key, f"/?token={step}")
        line, seen = await listening(classes, made.code, first)
        assert seen["at"] == "/?token=19"
        await line.close()

    play(test)


def test_students_fetch_the_last_picture_and_nobody_else_does(play) -> None:
    async def test(classes: ClassService) -> None:
        made, other = await classes.start("t"), await classes.start("t")
        student, _ = await classes.join(made.code, "s")
        line, seen = await listening(classes, made.code, student)
        assert (seen["picture"], seen["of"], seen["many"]) == ("", "", 1)
        await classes.move(made.code, made.key, "/predict")
        await line.next()
        first = bytes(range(256)) * 9
        await classes.show(made.code, made.key, "/predict", first)
        seen = await line.next()
        assert seen["at"] == seen["of"] == "/predict"
        assert await classes.picture(made.code, student, seen["picture"]) == first
        await classes.show(made.code, made.key, "/predict", b"second")
        later = await line.next()
        assert await classes.picture(made.code, student, later["picture"]) == b"second"
        for gone in (seen["picture"], ""):  # it is not kept beside the next
            assert await classes.picture(made.code, student, gone) is None
        for code, word, name in (
            (made.code, made.key, later["picture"]),
            (other.code, student, later["picture"]),
            ("", student, later["picture"]),
        ):
            with pytest.raises(Unknown):
                await classes.picture(code, word, name)
        with pytest.raises(Unknown):
            await classes.show(made.code, other.key, "/", b"")
        await classes.end(made.code, made.key)
        with pytest.raises(Unknown):
            await classes.picture(made.code, student, later["picture"])
        await line.close()

    play(test)


def test_a_line_that_is_not_read_holds_up_nobody_and_hears_the_last_word(play) -> None:
    async def test(classes: ClassService) -> None:
        made = await classes.start("t")
        words = [(await classes.join(made.code, "s"))[0] for _ in range(2)]
        (asleep, _), (awake, _) = [await listening(classes, made.code, each) for each in words]
        for step in range(50):
            await classes.move(made.code, made.key, f"/?token={step}")
        assert await awake.until(lambda said: said["at"] == "/?token=49")
        assert (await asleep.until(lambda said: said["at"] == "/?token=49"))["number"] == 0
        await asleep.close()
        await awake.close()

    play(test)


def test_answers_count_once_each_and_what_is_right_is_told_with_the_reveal(play) -> None:
    async def test(classes: ClassService) -> None:
        made = await classes.start("t")
        words = [(await classes.join(made.code, "s"))[0] for _ in range(5)]
        teacher, _ = await listening(classes, made.code, made.watch)
        student, *others = [(await listening(classes, made.code, each))[0] for each in words]
        number = await classes.ask(made.code, made.key, QUESTION)
        seen = await student.until(lambda said: said["question"])
        assert seen["question"] == {"text": "Which?", "choices": ["a", "b", "c"]} and seen["open"]
        assert "tally" not in seen
        for word, choice in zip(words, (0, 1, 1, 1, 2)):
            await classes.answer(made.code, word, number, choice)
        await classes.answer(made.code, words[0], number, 2)  # changes its mind
        seen = await teacher.until(lambda said: sum(said.get("tally") or [0]) == 5)
        while seen["tally"] != [0, 3, 2]:
            seen = await teacher.next()
        assert seen["question"]["right"] == 1
        await student.close()
        student, seen = await listening(classes, made.code, words[0])
        assert seen["mine"] == 2 and "right" not in seen["question"]
        await classes.reveal(made.code, made.key)
        seen = await student.until(lambda said: not said["open"])
        assert seen["question"] == QUESTION and seen["tally"] == [0, 3, 2]
        with pytest.raises(Unknown, match="closed"):
            await classes.answer(made.code, words[1], number, 0)
        # The next question begins with nothing, and an answer to the last one does not count.
        again = await classes.ask(made.code, made.key, QUESTION)
        with pytest.raises(Unknown, match="closed"):
            await classes.answer(made.code, words[1], number, 0)
        assert again == number + 1 and (await classes.store.room(made.code))[1] == {}
        await classes.ask(made.code, made.key, None)
        assert (await student.until(lambda said: said["number"] == again + 1))["question"] is None
        for line in (student, teacher, *others):
            await line.close()

    play(test)


def test_only_the_key_rules_a_class_and_it_does_so_from_anywhere(play) -> None:
    async def test(classes: ClassService) -> None:
        made, other = await classes.start("t"), await classes.start("t")
        student, _ = await classes.join(made.code, "s")
        for key in ("", student, made.watch, made.code, other.key, "x" * 64):
            for act in (
                classes.move(made.code, key, "/"),
                classes.ask(made.code, key, QUESTION),
                classes.reveal(made.code, key),
                classes.end(made.code, key),
            ):
                with pytest.raises(Unknown):
                    await act
        # Nothing that is kept is the key: whoever reads the store cannot rule.
        assert made.key not in json.dumps(await classes.store.read(made.code))
        # A teacher whose line broke goes on with the same key, and finds the class as it was.
        number = await classes.ask(made.code, made.key, QUESTION)
        own, _ = await listening(classes, made.code, student)
        await classes.answer(made.code, student, number, 1)
        line, _ = await listening(classes, made.code, made.watch)
        await line.until(lambda said: said["here"] == 1)
        await line.close()
        line, seen = await listening(classes, made.code, made.watch)
        assert seen["tally"] == [0, 1, 0] and seen["open"] and seen["number"] == number
        await classes.reveal(made.code, made.key)
        await line.close()
        await own.close()

    play(test)


def test_whoever_has_no_part_hears_nothing_and_counts_for_nothing(play) -> None:
    async def test(classes: ClassService) -> None:
        made, other = await classes.start("t"), await classes.start("t")
        stranger, _ = await classes.join(other.code, "s")
        number = await classes.ask(made.code, made.key, QUESTION)
        for code, word in (
            (made.code, ""),
            (made.code, stranger),
            (made.code, "é"),
            ("", stranger),
        ):
            with pytest.raises(Unknown):
                await anext(classes.listen(code, word))
            with pytest.raises(Unknown):
                await classes.answer(code, word, number, 0)
        mine, _ = await classes.join(made.code, "s")
        for choice in (-1, 3, 10**9):
            with pytest.raises(Unknown):
                await classes.answer(made.code, mine, number, choice)
        assert (await classes.store.room(made.code))[1] == {}

    play(test)


@pytest.mark.parametrize("by", ["its teacher", "the clock"])
def test_an_ended_class_is_gone_with_all_that_belonged_to_it(play, by: str) -> None:
    async def test(classes: ClassService) -> None:
        made = await classes.start("t")
        word, _ = await classes.join(made.code, "s")
        line, _ = await listening(classes, made.code, word)
        number = await classes.ask(made.code, made.key, QUESTION)
        await classes.answer(made.code, word, number, 0)
        if by == "its teacher":
            await classes.end(made.code, made.key)
        assert await line.until(lambda said: "over" in said) == {"over": True}
        with pytest.raises(Unknown):
            await classes.join(made.code, "s")
        with pytest.raises(Unknown):
            await classes.move(made.code, made.key, "/")
        with pytest.raises(Unknown):
            await classes.picture(made.code, word, "")
        kept = classes.store
        assert await kept.read(made.code) is None

        async def left() -> list:
            if isinstance(kept, MemoryStore):
                return list(kept._classes)
            return [key async for key in kept._redis.scan_iter("headlight:class:*")]

        for _ in range(0 if by == "its teacher" else 100):  # by itself: nobody asks
            if not await left():
                break
            await asyncio.sleep(0.05)
        assert not await left()

    # Long enough for what comes before its end on a busy machine.
    play(test, service.LIFE if by == "its teacher" else 2.0)


def test_two_processes_are_one_class(redis_address: str) -> None:
    from explorer.classroom.redis_store import RedisStore

    async def test() -> None:
        here, there = (
            ClassService(RedisStore(redis_address)),
            ClassService(RedisStore(redis_address)),
        )
        made = await here.start("t")
        word, _ = await there.join(made.code, "s")
        teacher, _ = await listening(here, made.code, made.watch)
        student, _ = await listening(there, made.code, word)
        assert (await teacher.until(lambda said: said["here"] == 1))["here"] == 1
        await here.move(made.code, made.key, "/learn")
        await student.until(lambda said: said["at"] == "/learn")
        number = await here.ask(made.code, made.key, QUESTION)
        await student.until(lambda said: said["question"])
        await there.answer(made.code, word, number, 1)
        await teacher.until(lambda said: said.get("tally") == [0, 1, 0])
        # Redis itself drops every line, as when it is started anew: the class goes on.
        await here.store._redis.client_kill_filter(_type="pubsub")
        await here.reveal(made.code, made.key)
        await student.until(lambda said: not said["open"])
        await student.close()
        await teacher.until(lambda said: said["here"] == 0)
        await teacher.close()
        await here.end(made.code, made.key)
        await here.close()
        await there.close()

    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.mark.slow
def test_nobody_is_lost_in_three_hundred_rounds_of_coming_and_going(
    redis_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes on one Redis, both at work at once: after each round the teacher sees how many
    are there, with lines that come and go in the same moment in both of them."""
    from explorer.classroom.redis_store import RedisStore

    monkeypatch.setattr(service, "TALLY_EVERY", 0.005)

    async def test() -> None:
        here, there = (
            ClassService(RedisStore(redis_address)),
            ClassService(RedisStore(redis_address)),
        )
        made = await here.start("t")
        chance = random.Random(7)
        words = [(await here.join(made.code, "s"))[0] for _ in range(20)]
        teacher, seen = await listening(here, made.code, made.watch)
        lines: dict[str, Line] = {}

        async def read() -> None:
            while True:
                seen.update(json.loads(await anext(teacher.heard) or "{}"))

        reading = asyncio.ensure_future(read())

        async def turn(word: str) -> None:
            if word in lines:
                await lines.pop(word).close()
            else:
                process = chance.choice((here, there))
                lines[word], _ = await listening(process, made.code, word)

        wrong = []
        for step in range(300):
            await asyncio.gather(*(turn(word) for word in chance.sample(words, 14)))
            for _ in range(400):  # the news is on its way
                if seen["here"] == len(lines):
                    break
                await asyncio.sleep(0.005)
            else:
                wrong.append((step, len(lines), seen["here"]))
        assert wrong == []
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        for line in lines.values():
            await line.close()
        await here.close()
        await there.close()

    asyncio.run(asyncio.wait_for(test(), 300))
