"""What one stranger, or one student with a script, can do to other people's classes: nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from classes import QUESTION, classes, in_a_loop, listening, redis_address, redis_server

from explorer.app.classroom import codes, service, store
from explorer.app.classroom.service import ClassService
from explorer.app.classroom.store import TooMany, Unknown
from explorer.app.server.client_address import network

__all__ = ["classes", "redis_address", "redis_server"]  # pytest finds them here


async def living(classes: ClassService, *made: service.CreatedClass) -> list[bool]:
    """Which of these classes there are."""
    return [await classes.store.read(each.code) is not None for each in made]


@in_a_loop
async def test_a_strangers_empty_classes_take_no_place_from_others(classes: ClassService) -> None:
    honest = await classes.start("school")
    line, _ = await listening(classes, honest.code, honest.watch)
    # Many more than there are places, from one address and then from many.
    left = [await classes.start("stranger") for _ in range(store.MOST_CLASSES + 20)]
    alive = await living(classes, *left)
    assert alive == [False] * (len(left) - store.EMPTY_OF_ONE) + [True] * store.EMPTY_OF_ONE
    for at in range(2 * store.MOST_CLASSES):
        await classes.start(f"stranger {at}")
    other = await classes.start("another school")
    assert await living(classes, honest, other) == [True, True]
    await line.close()


@in_a_loop
async def test_a_school_has_a_class_for_each_teacher_in_them(classes: ClassService) -> None:
    made, lines = [], []
    for _ in range(store.OF_ONE):
        made.append(await classes.start("school"))
        lines.append((await listening(classes, made[-1].code, made[-1].watch))[0])
    assert all(await living(classes, *made)), "none of them is empty"
    with pytest.raises(TooMany, match="from this network"):
        await classes.start("school")
    await classes.start("elsewhere")
    await classes.end(made[0].code, made[0].key)
    await classes.start("school")
    for line in lines:
        await line.close()


@in_a_loop
async def test_a_teachers_line_alone_keeps_no_place_from_other_schools(
    classes: ClassService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers of several addresses hold every place, each with a line."""
    monkeypatch.setattr(store, "MOST_CLASSES", 12)
    monkeypatch.setattr(store, "OF_ONE", 6)
    monkeypatch.setattr(service, "PULSE", 0.05)
    honest = await classes.start("school")
    student, _ = await classes.join(honest.code, "s")
    lines = [(await listening(classes, honest.code, each))[0] for each in (honest.watch, student)]
    made = []
    for at in range(store.MOST_CLASSES - 1):
        made.append(await classes.start(f"stranger {at % 3}"))
        lines.append((await listening(classes, made[-1].code, made[-1].watch))[0])
    while not all([(await classes.store.room(each.code))[0] for each in (honest, *made)]):
        await asyncio.sleep(0.01)
    with pytest.raises(TooMany, match="server"):
        await classes.start("another school")
    await asyncio.sleep(0.3)
    monkeypatch.setattr(store, "UNATTENDED", 0.2)
    late = await classes.start("another school")
    alive = await living(classes, *made)
    assert alive == [False] + [True] * (len(made) - 1), "the one that has waited longest"
    assert await living(classes, honest, late) == [True, True]
    for line in lines:
        await line.close()


@pytest.mark.slow
@in_a_loop
async def test_a_class_without_a_line_lapses(
    classes: ClassService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LAPSE", 0.6)
    monkeypatch.setattr(store, "STALE", 0.3)
    monkeypatch.setattr(service, "PULSE", 0.1)

    async def gone(classes: ClassService, made: service.CreatedClass) -> None:
        while await classes.store.read(made.code):
            await asyncio.sleep(0.05)
        with pytest.raises(Unknown):
            await classes.join(made.code, "s")

    # Of a class that nobody enters, of one with a student, and of one with its teacher.
    empty = await classes.start("stranger")
    made = await classes.start("t")
    student, _ = await classes.join(made.code, "s")
    line, _ = await listening(classes, made.code, student)
    await gone(classes, empty)
    await asyncio.sleep(0.8)
    assert await living(classes, made) == [True], "a student is there"
    await line.close()
    await gone(classes, made)
    for key in ("x", made.watch, made.key + "x"):
        with pytest.raises(Unknown):
            await classes.move(made.code, key, "/learn")
    await classes.move(made.code, made.key, "/learn")
    # A student of before is one again, and the teacher's own line brings it back too.
    line, seen = await listening(classes, made.code, student)
    assert seen["at"] == "/learn"
    await line.close()
    await gone(classes, made)
    line, seen = await listening(classes, made.code, made.watch)
    assert seen["at"] == "" and (await classes.join(made.code, "s"))[1] == "/"
    await asyncio.sleep(0.8)
    assert await living(classes, made) == [True], "the teacher is there"
    await line.close()
    # One that was ended is not brought back.
    await classes.end(made.code, made.key)
    with pytest.raises(Unknown):
        await classes.move(made.code, made.key, "/learn")
    with pytest.raises(Unknown):
        await anext(classes.listen(made.code, made.watch))


@in_a_loop
async def test_a_script_that_joins_and_answers_a_thousand_times_is_nobody(
    classes: ClassService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_ANSWERS", 30)
    monkeypatch.setattr(service, "MOST_STUDENTS", 60)
    made = await classes.start("t")
    teacher, _ = await listening(classes, made.code, made.watch)
    words = [(await classes.join(made.code, "school"))[0] for _ in range(20)]
    lines = [(await listening(classes, made.code, each))[0] for each in words]
    number = await classes.ask(made.code, made.key, QUESTION)
    for word in words:
        await classes.answer(made.code, word, number, 0)
    for _ in range(service.MOST_STUDENTS + 10):
        word, _ = await classes.join(made.code, "school")
        await classes.answer(made.code, word, number, 1)
    seen = await classes.view(made.code, service.TEACHER)
    assert (seen["tally"], seen["here"]) == ([20, 0, 0], 20)
    assert len((await classes.store.room(made.code))[1]) <= store.MOST_ANSWERS + 20
    # It has not filled the class.
    late, _ = await classes.join(made.code, "school")
    line, _ = await listening(classes, made.code, late)
    await classes.answer(made.code, late, number, 2)
    await teacher.until(lambda said: said.get("tally") == [20, 0, 1])
    # Who has gone does not count, until the reveal; from then on nothing changes.
    await line.close()
    await teacher.until(lambda said: said.get("tally") == [20, 0, 0])
    await classes.reveal(made.code, made.key)
    for each in lines:
        await each.close()
    seen = await teacher.until(lambda said: said["here"] == 0)
    assert seen["tally"] == [20, 0, 0]
    await teacher.close()


async def seated(classes: ClassService, code: str, address: str, browser: str = "") -> str:
    """The word of a student whose line is open."""
    word, _ = await classes.join(code, address)
    await anext(line := classes.listen(code, word, address, browser))
    LINES.append(line)  # or it closes
    return word


LINES: list[AsyncIterator[str]] = []


def here(classes: ClassService, code: str) -> set[str]:
    """The words of the students with an open line."""
    return {line.word for line in classes._lines[code] if line.role == service.STUDENTS}


SCHOOL, ELSEWHERE, IDLE_LINES = "203.0.113.7", "198.51.100.9", 1000


@in_a_loop
async def test_a_thousand_idle_lines_of_one_pupil_close_a_class_to_nobody(
    classes: ClassService,
) -> None:
    """Neither to pupils behind the same address nor to one at home, nor do they end the line of a
    pupil who answers or has a browser."""
    made = await classes.start(SCHOOL)
    first = [await seated(classes, made.code, SCHOOL, f"browser {at}") for at in range(30)]
    for _ in range(IDLE_LINES - len(first)):
        await seated(classes, made.code, SCHOOL)
    assert len(here(classes, made.code)) == service.MOST_STUDENTS
    late = [await seated(classes, made.code, SCHOOL, f"browser {at}") for at in range(30, 60)]
    home = [await seated(classes, made.code, ELSEWHERE) for _ in range(5)]
    open_now = here(classes, made.code)
    assert open_now >= {*first, *late, *home} and len(open_now) == service.MOST_STUDENTS
    number = await classes.ask(made.code, made.key, QUESTION)
    for word in (*first, *late):
        await classes.answer(made.code, word, number, 0)
    await classes.ask(made.code, made.key, QUESTION)  # who answered an earlier one has answered
    for _ in range(IDLE_LINES):
        await seated(classes, made.code, SCHOOL)
    assert here(classes, made.code) >= {*first, *late, *home}
    LINES.clear()


@in_a_loop
async def test_who_never_answered_makes_room_and_who_did_does_not(
    classes: ClassService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST_STUDENTS", 4)
    monkeypatch.setattr(service, "SHARE", 1)
    made = await classes.start("t")
    words = [await seated(classes, made.code, "s") for _ in range(4)]
    number = await classes.ask(made.code, made.key, QUESTION)
    for word in (words[0], words[2], words[3]):
        await classes.answer(made.code, word, number, 0)
    late = await seated(classes, made.code, "s")
    assert here(classes, made.code) == {words[0], late, *words[2:]}, "one was silent"
    await classes.answer(made.code, late, number, 0)
    with pytest.raises(TooMany, match="full"):
        await seated(classes, made.code, "s")
    # A window more of one who is there takes nobody's place.
    await anext(again := classes.listen(made.code, words[0], "s"))
    await again.aclose()
    # An address with more than its share makes room for another one, until they are even.
    others = [await seated(classes, made.code, "other") for _ in range(2)]
    assert len(here(classes, made.code)) == 4 and here(classes, made.code) >= {*others}
    third = await seated(classes, made.code, "other")
    assert here(classes, made.code) >= {others[1], third}, "its own silent one makes room"
    LINES.clear()


@in_a_loop
async def test_wrong_codes_wait_and_right_ones_do_not(
    classes: ClassService, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who waits at all waits for ever in this test.
    monkeypatch.setattr(codes, "WAIT_EACH", 1e9)
    monkeypatch.setattr(codes, "LONGEST_WAIT", 1e9)
    wrong = "2222222"
    made = await classes.start("t")
    for _ in range(codes.FREE_TRIES):
        with pytest.raises(Unknown):
            await classes.join(wrong, "school")
    waiting = [
        asyncio.ensure_future(classes.join(wrong, "school")) for _ in range(codes.MOST_WAITING)
    ]
    while classes._wrong_codes._waiting < codes.MOST_WAITING:
        await asyncio.sleep(0.01)
    with pytest.raises(TooMany):
        await classes.join(wrong, "school")
    assert not any(each.done() for each in waiting)
    # The right code is let in beside them, and another school's wrong one is answered.
    student, _ = await classes.join(made.code, "school")
    with pytest.raises(Unknown):
        await classes.join(wrong, "another")
    # No address waits of which a line is open.
    line, _ = await listening(classes, made.code, student)
    await line.close()
    line = classes.listen(made.code, student, "school")
    await anext(line)
    with pytest.raises(Unknown):
        await classes.join(wrong, "school")
    await line.aclose()
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


def test_the_wait_grows_with_wrong_codes_and_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def slept(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(codes.asyncio, "sleep", slept)
    wrong = codes.WrongCodes()

    async def tried(times: int) -> None:
        for _ in range(times):
            await wrong.wait("school")

    asyncio.run(tried(codes.FREE_TRIES + 200))
    assert waits == sorted(waits) and len(waits) == 200
    assert waits[0] < 1 and waits[-1] == codes.LONGEST_WAIT


def test_a_limit_of_an_address_holds_for_a_network_of_the_new_kind() -> None:
    def of(host: str) -> str:
        return network({"type": "http", "client": (host, 1)})

    assert of("2001:db8:1:2:3:4:5:6") == of("2001:db8:1:ffff::9") != of("2001:db8:2:2::9")
    assert of("::ffff:192.0.2.1") == of("192.0.2.1") == "192.0.2.1" != of("192.0.2.2")
    assert of("testclient") == "testclient" and network({"type": "http", "client": None}) == ""


def test_codes_cannot_be_guessed_while_a_class_lasts() -> None:
    """Nobody is shut out, so that only what the server can answer bounds the tries: a thousand a
    second is more than a process does."""
    tries = 1000 * service.LIFE
    signs = codes.ALPHABET
    assert len(set(signs)) == len(signs)
    assert tries / len(signs) ** codes.CODE_LENGTH < 2e-3
    made = {codes.code_of("secret", f"{at}") for at in range(500)}
    assert len(made) == 500 and all(codes.normalized_code(code) == code for code in made)


def test_a_code_is_read_as_it_is_written() -> None:
    assert codes.normalized_code("k7p-m3xw") == codes.normalized_code(" K7P M3XW ") == "K7PM3XW"
    for wrong in (
        "",
        "K7PM3X",
        "K7PM3XW2",
        "K7PM3X0",
        "K7PM3X\u0131",
        None,
        7,
        "A" * 10**6,
        "<b>K7P</b>",
    ):
        assert codes.normalized_code(wrong) == ""
