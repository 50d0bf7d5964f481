"""Classes: the same laws for those kept in this process and those in a real Redis, whatever is sent
to them."""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from classes import (
    QUESTION,
    Line,
    classes,
    in_a_loop,
    listening,
    processes,
    redis_address,
    redis_server,
)

from explorer.app.classroom import service
from explorer.app.classroom.service import ClassService
from explorer.app.classroom.store import MemoryStore, Unknown

__all__ = ["classes", "processes", "redis_address", "redis_server"]  # pytest finds them here


@in_a_loop
async def test_what_the_teacher_shows_is_seen_by_all(classes: ClassService) -> None:
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


@in_a_loop
async def test_students_fetch_the_last_picture_and_nobody_else_does(classes: ClassService) -> None:
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
    assert not later["stays"], "their own pages come in its place"
    await classes.show(made.code, made.key, "/predict", b"of this window", stays=True)
    assert (await line.next())["stays"]
    await classes.show(made.code, made.key, "/predict", b"")  # words alone
    seen = await line.next()
    assert not seen["stays"]
    assert (seen["picture"], seen["of"]) == ("", "/predict")
    with pytest.raises(Unknown):
        await classes.show(made.code, other.key, "/", b"")
    await classes.end(made.code, made.key)
    with pytest.raises(Unknown):
        await classes.picture(made.code, student, later["picture"])
    await line.close()


@in_a_loop
async def test_a_line_that_is_not_read_holds_up_nobody(classes: ClassService) -> None:
    made = await classes.start("t")
    words = [(await classes.join(made.code, "s"))[0] for _ in range(2)]
    (asleep, _), (awake, _) = [await listening(classes, made.code, each) for each in words]
    for step in range(50):
        await classes.move(made.code, made.key, f"/?token={step}")
    assert await awake.until(lambda said: said["at"] == "/?token=49")
    assert (await asleep.until(lambda said: said["at"] == "/?token=49"))["number"] == 0
    await asleep.close()
    await awake.close()


@in_a_loop
async def test_answers_count_once_each_until_the_reveal(classes: ClassService) -> None:
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


@in_a_loop
async def test_only_the_key_rules_a_class_and_from_anywhere(classes: ClassService) -> None:
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


@in_a_loop
async def test_whoever_has_no_part_hears_and_counts_for_nothing(classes: ClassService) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("by", ["its teacher", "the clock"])
@in_a_loop
async def test_an_ended_class_is_gone_with_all_of_it(classes: ClassService, by: str) -> None:
    if by == "the clock":
        classes.life = 2.0  # long enough for what comes before its end on a busy machine
    made = await classes.start("t")
    word, _ = await classes.join(made.code, "s")
    line, _ = await listening(classes, made.code, word)
    number = await classes.ask(made.code, made.key, QUESTION)
    await classes.answer(made.code, word, number, 0)
    if by == "its teacher":
        await classes.end(made.code, made.key)
    assert await line.until(lambda said: "over" in said) == {"over": True}
    for act in (
        classes.join(made.code, "s"),
        classes.move(made.code, made.key, "/"),
        classes.picture(made.code, word, ""),
    ):
        with pytest.raises(Unknown):
            await act
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


@in_a_loop
async def test_two_processes_are_one_class(processes: tuple[ClassService, ClassService]) -> None:
    here, there = processes
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


@pytest.mark.slow
@in_a_loop
async def test_nobody_is_lost_in_a_hundred_rounds_of_coming_and_going(
    processes: tuple[ClassService, ClassService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes on one Redis, both at work at once: after each round the teacher sees how many
    are there, with lines that come and go in the same moment in both of them."""
    monkeypatch.setattr(service, "TALLY_EVERY", 0.005)
    here, there = processes
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
    for step in range(100):
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


GUESS = {
    **{"text": "Next?", "choices": [], "right": -1, "says": "It is Nepali.", "to": "/predict"},
    **{"free": True, "covers": True, "model": [["Nepali", 0.9], ["English", 0.02]]},
}


@in_a_loop
async def test_a_class_votes_shows_its_votes_votes_again_and_then_has_the_answer(
    classes: ClassService,
) -> None:
    made = await classes.start("t")
    words = [(await classes.join(made.code, "s"))[0] for _ in range(3)]
    teacher, _ = await listening(classes, made.code, made.watch)
    student, *others = [(await listening(classes, made.code, each))[0] for each in words]
    number = await classes.ask(made.code, made.key, QUESTION)
    for word, choice in zip(words, (0, 0, 1)):
        await classes.answer(made.code, word, number, choice)
    await classes.close_vote(made.code, made.key)
    seen = await student.until(lambda said: said["question"] and not said["open"])
    assert seen["tally"] == [2, 1, 0] and not seen["revealed"]
    assert not {"right", "says"} & set(seen["question"]), "the votes are no answer"
    with pytest.raises(Unknown, match="closed"):
        await classes.answer(made.code, words[0], number, 1)
    again = await classes.ask_again(made.code, made.key)
    assert again == number + 1
    seen = await student.until(lambda said: said["open"])
    assert "tally" not in seen and "rounds" not in seen["question"], "it would lead the second vote"
    with pytest.raises(Unknown, match="closed"):
        await classes.answer(made.code, words[0], number, 1)
    for word in words:
        await classes.answer(made.code, word, again, 1)
    await classes.reveal(made.code, made.key)
    seen = await student.until(lambda said: said.get("revealed"))
    assert seen["tally"] == [0, 3, 0] and seen["question"]["rounds"] == [[2, 1, 0]]
    assert seen["question"]["right"] == 1 and seen["question"]["says"] == "b."
    assert await classes.ask_again(made.code, made.key) == 0, "who knows the answer does not vote"
    for line in (student, teacher, *others):
        await line.close()


@in_a_loop
async def test_words_that_are_typed_are_counted_and_the_models_come_with_the_answer(
    classes: ClassService,
) -> None:
    made = await classes.start("t")
    words = [(await classes.join(made.code, "s"))[0] for _ in range(4)]
    lines = [(await listening(classes, made.code, each))[0] for each in words]
    number = await classes.ask(made.code, made.key, GUESS)
    for choice in (0, -1):
        with pytest.raises(Unknown):
            await classes.answer(made.code, words[0], number, choice)
    for word, guess in zip(words, ("French", "Nepali", "nepali", "NEPALI")):
        await classes.answer(made.code, word, number, guess)
    seen = await lines[0].until(lambda said: said["question"])
    assert seen["question"]["covers"] and "model" not in seen["question"]
    late, seen = await listening(classes, made.code, words[0])
    assert seen["mine"] == "French"
    await classes.reveal(made.code, made.key)
    seen = await lines[0].until(lambda said: said.get("revealed"))
    assert [[word.casefold(), n] for word, n in seen["tally"]] == [["nepali", 3], ["french", 1]]
    assert seen["question"]["model"] == GUESS["model"]
    for line in (late, *lines):
        await line.close()


@in_a_loop
async def test_a_word_that_is_struck_is_the_teachers_alone_for_the_whole_class(
    classes: ClassService,
) -> None:
    made = await classes.start("t")
    words = [(await classes.join(made.code, "s"))[0] for _ in range(3)]
    teacher, _ = await listening(classes, made.code, made.watch)
    student, *others = [(await listening(classes, made.code, each))[0] for each in words]

    async def guessed() -> None:
        number = await classes.ask(made.code, made.key, GUESS)
        for word, guess in zip(words, ("Rude  Word", "rude word", "soup")):
            await classes.answer(made.code, word, number, " ".join(guess.split()))

    await guessed()
    for word in (words[0], "", made.key):
        with pytest.raises(Unknown):
            await classes.strike(made.code, word, "soup")
    await classes.strike(made.code, made.watch, " RUDE   word ")
    seen = await teacher.until(lambda said: [True] in [row[2:] for row in said.get("tally", ())])
    assert [[each.casefold(), *n] for each, *n in seen["tally"]] == [
        ["soup", 1],
        ["rude word", 2, True],
    ]
    await classes.close_vote(made.code, made.key)
    seen = await student.until(lambda said: said["question"] and not said["open"])
    assert seen["tally"] == [["soup", 1]]
    await classes.ask_again(made.code, made.key)
    await classes.reveal(made.code, made.key)
    seen = await student.until(lambda said: said["revealed"])
    assert seen["question"]["rounds"] == [[["soup", 1]]], "nor in the votes before"
    await guessed()  # the next question, where the same is typed
    await classes.close_vote(made.code, made.key)
    seen = await student.until(lambda said: said["question"] and not said["open"])
    assert seen["tally"] == [["soup", 1]]
    await classes.strike(made.code, made.watch, "Rude word", struck=False)
    seen = await student.until(lambda said: len(said["tally"]) == 2)
    assert seen["tally"][0][1:] == [2]
    for at in range(120):
        await classes.strike(made.code, made.watch, f"word {at}")
    fields = await classes.store.read(made.code)
    assert fields and fields["struck"].split("\n") == [f"word {at}" for at in range(20, 120)]
    for line in (student, teacher, *others):
        await line.close()


@in_a_loop
async def test_a_speaker_hears_the_slide_and_presses_keys_by_the_teachers_word(
    processes: tuple[ClassService, ClassService],
) -> None:
    one, other = processes
    made = await one.start("t")
    student, _ = await one.join(made.code, "s")
    wall, _ = await listening(one, made.code, made.watch)
    phone, _ = await listening(other, made.code, made.watch)
    pupil, first = await listening(other, made.code, student)
    await one.speak(made.code, made.key, b"note and answer")
    name = (await phone.until(lambda said: said["slide"]))["slide"]
    assert await other.slide(made.code, made.watch, name) == b"note and answer"
    for key in ">>bq":
        await other.press(made.code, made.watch, key)
    said = await wall.until(lambda said: said["pressed"] == 4)
    assert said["presses"] == ">>bq", "each once and in their order"
    for key in "b" * 40:
        await other.press(made.code, made.watch, key)
    assert len((await wall.until(lambda said: said["pressed"] == 44))["presses"]) < 40
    await one.move(made.code, made.key, "/learn")
    heard = await pupil.until(lambda said: said["at"] == "/learn")
    assert not {"slide", "pressed", "presses"} & (first.keys() | heard.keys()), (
        "of the teacher alone"
    )
    for word in (student, "", f"{made.watch[:-1]}x"):
        with pytest.raises(Unknown):
            await other.slide(made.code, word, name)
        with pytest.raises(Unknown):
            await other.press(made.code, word, ">")
    for key in ("", "s", ">>"):
        with pytest.raises(ValueError, match="."):
            await other.press(made.code, made.watch, key)
    await one.speak(made.code, made.key, b"the next step")
    assert await other.slide(made.code, made.watch, name) is None, "the wall has gone on"
    with pytest.raises(Unknown):
        await one.speak(made.code, made.watch, b"a word is no key")
