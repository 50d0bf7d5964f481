"""Classes: the teacher's page, questions and answers, for the duration of a class.

A class is stored in a `Store`, in this process or in Redis; the rules of a class and the rights of
each role are defined here alone. Of a student only a random word, which the student's own browser
keeps, and its last answers are stored."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from typing import Any

from explorer.app.classroom import codes
from explorer.app.classroom.store import Store, TooMany, Unknown
from explorer.text import lesson as lesson_text
from explorer.text.lesson import Lesson
from explorer.wording.templates import sentences

REFUSALS = sentences("classroom", "refusals")

LIFE = 12 * 3600  # seconds that a class lasts at most
MOST_STUDENTS = 1000  # of a class, at once, in a process
# So many of them of one address, or network, make room for a student of another where all places of
# a class are taken; a school may stand behind one.
SHARE = MOST_STUDENTS // 5
MOST_LINES = 8  # of one student or teacher in a process: windows, and lines that broke unnoticed
HEARTBEAT = 20.0  # seconds between two signs of life on a line where nothing happens
PULSE = 5.0  # seconds after which a process says anew whose lines are open in it
MOST_LESSON = 100_000  # bytes of the lesson that a class holds
TALLY_EVERY = 0.1  # seconds between two tallies that a teacher sees
LOOK_AGAIN = 1.0  # seconds between two tries of a store that does not answer

STUDENTS, TEACHER, LINES = "students", "teacher", "lines"


@dataclass(frozen=True)
class CreatedClass:
    """Credentials of a class for the teacher's browser: the code that students type, the key that
    controls the class, and the word that may watch the tally."""

    code: str
    key: str
    watch: str
    ends: float


@dataclass(eq=False)
class Listener:
    """One open line. browser: the word that the server gave to it, "" without one."""

    role: str
    word: str
    address: str
    browser: str = ""
    fresh: asyncio.Event = field(default_factory=asyncio.Event)
    opened: float = field(default_factory=time.monotonic)
    closed: bool = False


KEYS = "<>0abcdfghpqrtuv"  # of the teacher's window that a speaker's window may press
CLOSED = "closed"  # of a question whose votes are shown and whose answer is not
MOST_ROUNDS = 4  # votes on one question
MOST_GUESSES = 12  # different words of a tally, the most frequent first
LONGEST_GUESS, LONGEST_REASON = 40, 200  # characters of a word, and of a sentence
# What students have of a question before its answer is shown.
ASKED = ("text", "choices", "pictures", "head", "covers", "free", "long")


def _tally(
    question: str, present: set[str], answers: dict[str, str], struck: set[str]
) -> list[Any]:
    """The number of connected students for each answer; of words that are typed freely [word,
    number], the most frequent first, however they are capitalized, and then those that the teacher
    struck."""
    fields = json.loads(question)
    choices = [answer for word, answer in sorted(answers.items()) if word in present]
    if not fields.get("free"):
        return [choices.count(str(at)) for at in range(len(fields["choices"]))]
    spelled: dict[str, str] = {}
    for choice in choices:
        spelled.setdefault(choice.casefold(), choice)
    counts = Counter(choice.casefold() for choice in choices)
    ranked = counts.most_common()
    shown = [pair for pair in ranked if pair[0] not in struck][:MOST_GUESSES]
    hidden = [pair for pair in ranked if pair[0] in struck][:MOST_GUESSES]
    return [[spelled[word], n] for word, n in (*shown, *hidden)]


def _struck(fields: dict[str, str]) -> set[str]:
    """The words that the teacher of a class struck, in lower case."""
    return {*fields.get("struck", "").split("\n")} - {""}


def _for_role(tally: list[Any] | None, struck: set[str], role: str) -> list[Any] | None:
    """A tally as a role sees it: of words that the teacher struck a student sees none, and the
    teacher's stand at its end, [word, number, true]."""
    if not tally or isinstance(tally[0], int):
        return tally
    ranked = sorted(tally, key=lambda row: -row[1])
    shown = [row for row in ranked if row[0].casefold() not in struck]
    return (
        shown if role == STUDENTS else shown + [[*row, True] for row in ranked if row not in shown]
    )


def _followed(fields: dict[str, str]) -> str:
    """The lesson of a class as its students have it where the class is, "" for none."""
    lesson = fields["lesson"]
    return lesson_text.until_told(lesson, fields["at"]) if lesson else ""


class ClassService:
    """The classes of a store, and the lines of this process that listen to them."""

    def __init__(
        self, store: Store, life: float = LIFE, clock: Callable[[], float] = time.time
    ) -> None:
        self.store, self.life, self.clock = store, life, clock
        store.news = self._news
        self._place, self._secret, self._stamp = secrets.token_hex(4), "", 0
        self._lines: dict[str, set[Listener]] = {}
        self._answered: dict[str, dict[str, None]] = {}  # words by class, the last ones
        self._latest: dict[tuple[str, str], str | None] = {}
        self._wanted: set[tuple[str, str]] = set()
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._pulse: asyncio.Task[None] | None = None
        self._wrong_codes = codes.WrongCodes()
        self._ending = self._closed = False

    # What a teacher does.

    async def start(self, address: str) -> CreatedClass:
        """A new class. Raises TooMany where there is no place, or none for this address."""
        ends = int(self.clock() + self.life) + 1
        while True:
            key = codes.new_key(ends)
            watch = codes.watch_of(key)
            code = await self._code(watch)
            if await self._make(code, watch, address, "/", occupied=False):
                return CreatedClass(code, key, watch, ends)

    async def rules(self, code: str, key: str, address: str = "") -> dict[str, str]:
        """The class that this key rules. Raises Unknown for another key or no class."""
        watch = codes.watch_of(key)
        fields = await self._class(code, watch, address, occupied=False)
        if fields is None or not codes.same(fields["watch"], watch):
            raise Unknown(REFUSALS("key_not_its_own"))
        return fields

    async def move(self, code: str, key: str, location: str, address: str = "") -> None:
        """The teacher shows another address now."""
        stamp = self._next_stamp()
        await self.rules(code, key, address)
        if await self.store.write(code, "move", stamp, {"at": location}):
            await self.store.tell(code, STUDENTS)

    async def show(
        self, code: str, key: str, location: str, picture: bytes, stays: bool = False
    ) -> None:
        """Store a picture of the teacher's window, which stands in for students' own pages; no
        bytes where the window shows none. stays: what it shows is of that window alone, and no page
        of a student comes in its place."""
        stamp = self._next_stamp()
        await self.rules(code, key)
        fields = {"picture": secrets.token_urlsafe(8) if picture else "", "of": location}
        fields["stays"] = "1" if stays else ""
        if await self.store.show(code, stamp, fields, picture, "picture"):
            await self.store.tell(code, STUDENTS)

    async def speak(self, code: str, key: str, slide: bytes) -> None:
        """Store what the speaker's window shows of the teacher's slide, for the teacher alone."""
        stamp = self._next_stamp()
        await self.rules(code, key)
        fields = {"slide": secrets.token_urlsafe(8)}
        if await self.store.show(code, stamp, fields, slide, "slide"):
            await self.store.tell(code, TEACHER)

    async def hold(self, code: str, key: str, lesson: Lesson) -> None:
        """Keep the lesson that the teacher follows, for the students: they get it without what is
        for who speaks. Raises ValueError for one that is too long."""
        stamp = self._next_stamp()
        await self.rules(code, key)
        text = lesson_text.of_followers(lesson).json
        if len(text.encode()) > MOST_LESSON:
            raise ValueError(REFUSALS("lesson_too_long", n=MOST_LESSON // 1000))
        if await self.store.write(code, "lesson", stamp, {"lesson": text}):
            await self.store.tell(code, STUDENTS)

    async def ask(self, code: str, key: str, question: dict[str, Any] | None) -> int:
        """Ask a question, or with None take the last one away; its number."""
        stamp = self._next_stamp()
        await self.rules(code, key)
        text = json.dumps(question, ensure_ascii=False) if question else ""
        number = await self.store.ask(code, stamp, text)
        await self._tell_all(code)
        return number

    async def close_vote(self, code: str, key: str) -> None:
        """End the vote and show how many chose what, and not yet what is right. The tally stays as
        it is then: phones that sleep afterwards do not change it."""
        await self._show_votes(code, key, CLOSED)

    async def reveal(self, code: str, key: str) -> None:
        """Show what is right to all, after the vote, which ends."""
        await self._show_votes(code, key, "")

    async def _show_votes(self, code: str, key: str, state: str) -> None:
        stamp = self._next_stamp()
        fields = await self.rules(code, key)
        if not fields["question"] or (fields["tally"] and fields["open"] in ("", state)):
            return
        tally = fields["tally"]
        if not tally and await self.store.write(code, "question", stamp, {"open": CLOSED}):
            room = await self.store.room(code)
            tally = json.dumps(_tally(fields["question"], *room, _struck(fields)))
        if tally:
            await self.store.write(code, "question", stamp, {"tally": tally, "open": state})
        await self._tell_all(code)

    async def ask_again(self, code: str, key: str) -> int:
        """Let the class vote once more, after a discussion; its number, 0 where the answer is
        known. The tally so far stays beside the next."""
        stamp = self._next_stamp()
        fields = await self.rules(code, key)
        question = json.loads(fields["question"] or "null")
        if question is None or (fields["tally"] and fields["open"] != CLOSED):
            return 0
        tally = json.loads(fields["tally"] or "null")
        if tally is None:
            tally = _tally(fields["question"], *await self.store.room(code), _struck(fields))
        question["rounds"] = [*question.get("rounds", ()), tally][-MOST_ROUNDS:]
        number = await self.store.ask(code, stamp, json.dumps(question, ensure_ascii=False))
        await self._tell_all(code)
        return number

    async def end(self, code: str, key: str) -> None:
        """The class is over; nothing of it is kept."""
        await self.rules(code, key)
        await self.store.drop(code)
        await self._tell_all(code)

    # What a speaker's window does, which has the teacher's word and not the key.

    async def slide(self, code: str, watch: str, name: str) -> bytes | None:
        """The slide of the speaker's window, None where the teacher has gone on. Raises Unknown for
        a word that watches no class."""
        await self._watched(code, watch)
        return await self.store.load_picture(code, name, "slide")

    async def press(self, code: str, watch: str, key: str) -> None:
        """Press one of `KEYS` in the teacher's window. Raises Unknown for a word that watches no
        class, ValueError for another key."""
        if len(key) != 1 or key not in KEYS:
            raise ValueError(REFUSALS("no_action"))
        await self._watched(code, watch)
        await self.store.press(code, key)
        await self.store.tell(code, TEACHER)

    async def strike(self, code: str, watch: str, word: str, struck: bool = True) -> None:
        """Strike a word that was typed, however it is capitalized, for as long as the class lasts:
        no student and no wall shows it. False takes that back. Raises Unknown for a word that
        watches no class."""
        await self._watched(code, watch)
        await self.store.strike(code, " ".join(word.split()).casefold(), struck)
        await self._tell_all(code)

    async def _watched(self, code: str, watch: str) -> None:
        fields = await self.store.read(code) if code else None
        if fields is None or not codes.same(fields["watch"], watch):
            raise Unknown(REFUSALS("ended"))

    # What a student does.

    async def join(self, code: str, address: str) -> tuple[str, str]:
        """A new student's word, and where the class is. Raises Unknown for a wrong code, after a
        wait that grows with their number."""
        fields = await self.store.read(code) if code else None
        if fields is None:
            listeners = chain.from_iterable(self._lines.values())
            if not any(line.address == address for line in listeners):
                await self._wrong_codes.wait(address)
            raise Unknown(REFUSALS("no_class"))
        at = lesson_text.for_followers(fields["at"], bool(fields["lesson"]))
        return codes.student_of(await self._key(), code), at or "/"

    async def lesson(self, code: str, student: str) -> str:
        """The lesson that the class follows, as JSON, "" for none, up to what its steps still
        cover. Raises Unknown for one who is not in the class."""
        fields = await self._part(code, student)
        if fields is None:
            raise Unknown(REFUSALS("ended"))
        return _followed(fields)

    async def picture(self, code: str, student: str, name: str) -> bytes | None:
        """The picture of the teacher's window, None where the window shows something else by now.
        Raises Unknown for one who is not in the class."""
        if await self._part(code, student) is None:
            raise Unknown(REFUSALS("ended"))
        return await self.store.load_picture(code, name, "picture")

    async def answer(self, code: str, student: str, number: int, choice: int | str) -> None:
        """A student's answer, which may change until the vote ends, and counts while a line of the
        student is open: the number of a choice, or a word or a sentence where the question asks
        for one. Raises Unknown where the question is not open, or there is no such choice,
        ValueError for words that are too long."""
        fields = await self._part(code, student)
        if fields is None:
            raise Unknown(REFUSALS("ended"))
        if not fields["open"] or fields["open"] != str(number):
            raise Unknown(REFUSALS("closed"))
        question = json.loads(fields["question"])
        longest = LONGEST_REASON if question.get("long") else LONGEST_GUESS
        if isinstance(choice, str) and len(choice) > longest:
            raise ValueError(REFUSALS("too_long", n=longest))
        if bool(question.get("free")) != isinstance(choice, str) or (
            isinstance(choice, int) and not 0 <= choice < len(question["choices"])
        ):
            raise Unknown(REFUSALS("no_answer"))
        if not await self.store.put(code, str(number), student, str(choice)):
            raise Unknown(REFUSALS("closed"))
        if any(line.word == student for line in self._lines.get(code, ())):
            answered = self._answered.setdefault(code, {})
            answered[student] = answered.pop(student, None)
            if len(answered) > 2 * MOST_STUDENTS:
                del answered[next(iter(answered))]
        await self.store.tell(code, TEACHER)

    # What both hear.

    async def listen(
        self, code: str, word: str, address: str = "", browser: str = ""
    ) -> AsyncIterator[str]:
        """Stream the class's state to a student or the teacher, as JSON: at once, and whenever it
        changes, "" every `HEARTBEAT` seconds. The last is {"over": true}. Raises Unknown at the
        first step for a word that is not in the class, TooMany for one student more than its
        limit where no line makes room. browser: the word that the server gave to it."""
        fields = await self._class(code, word, address, occupied=True)
        if fields is None:
            raise Unknown(REFUSALS("ended"))
        role = TEACHER if codes.same(fields["watch"], word) else STUDENTS
        if role == STUDENTS and not codes.is_student(await self._key(), code, word):
            raise Unknown(REFUSALS("ended"))
        line = Listener(role, word, address, browser)
        if role == STUDENTS:
            self._make_room(code, line)
        self._give_up_oldest(code, word)
        self._lines.setdefault(code, set()).add(line)
        try:
            self._schedule((code, LINES))
            if self._pulse is None or self._pulse.done():
                self._pulse = asyncio.ensure_future(self._beat())
            yield await self._first(code, role, word)
            async for message in self._goes_on(code, line, float(fields["ends"])):
                yield message
        finally:
            self._left(code, line)

    async def _goes_on(self, code: str, line: Listener, ends: float) -> AsyncIterator[str]:
        last: str | None = ""
        while not self._ending:
            try:
                await asyncio.wait_for(
                    line.fresh.wait(), max(0.0, min(HEARTBEAT, ends - self.clock() + 0.01))
                )
            except TimeoutError:
                if self.clock() >= ends:
                    break
                yield ""
                continue
            line.fresh.clear()
            if line.closed:
                return
            if self._ending:
                continue
            snapshot = self._latest.get((code, line.role))
            if snapshot is None:
                break
            if snapshot != last:
                last = snapshot
                yield snapshot
        else:  # the class is not over: a browser asks again, and the next process answers
            return
        yield json.dumps({"over": True})

    async def _first(self, code: str, role: str, word: str) -> str:
        """The first message of a connection, with this student's earlier answers."""
        snapshot = await self.view(code, role)
        if snapshot is None:
            return json.dumps({"over": True})
        if role == STUDENTS and snapshot["question"]:
            answer = (await self.store.room(code))[1].get(word)
            is_word = answer is not None and snapshot["question"].get("free")
            snapshot["mine"] = answer if answer is None or is_word else int(answer)
        return json.dumps(snapshot, ensure_ascii=False)

    async def view(self, code: str, role: str) -> dict[str, Any] | None:
        """The state of a class for a role. Students get the tally with the end of the vote, and the
        right answer with the reveal."""
        fields = await self.store.read(code)
        if fields is None:
            return None
        question, tally = (
            json.loads(fields["question"] or "null"),
            json.loads(fields["tally"] or "null"),
        )
        struck = _struck(fields)
        if question and "rounds" in question:
            question["rounds"] = [_for_role(each, struck, role) for each in question["rounds"]]
        snapshot: dict[str, Any] = {"at": fields["at"], "number": int(fields["number"])}
        snapshot["open"] = bool(question) and tally is None
        snapshot["revealed"] = tally is not None and fields["open"] != CLOSED
        if role == STUDENTS:
            # So many pages of this process go there at once: each waits for its turn.
            lesson = _followed(fields)
            for name in ("at", "of"):
                snapshot[name] = lesson_text.for_followers(fields[name], bool(lesson))
            snapshot |= {"picture": fields["picture"], "stays": bool(fields["stays"])}
            snapshot["held"] = sha256(lesson.encode()).hexdigest()[:12] if lesson else ""
            snapshot["many"] = sum(line.role == STUDENTS for line in self._lines.get(code, ()))
            if question and not snapshot["revealed"]:
                names = ASKED if snapshot["open"] else (*ASKED, "rounds")
                question = {name: question[name] for name in names if name in question}
        else:
            present, answers = await self.store.room(code)
            snapshot["here"] = len(present - {fields["watch"]})
            snapshot |= {name: fields[name] for name in ("slide", "presses")}
            snapshot["pressed"] = int(fields["pressed"])
            if snapshot["open"]:
                tally = _tally(fields["question"], present, answers, struck)
        if tally is not None:
            snapshot["tally"] = _for_role(tally, struck, role)
        return snapshot | {"question": question}

    def leave(self) -> None:
        """End all lines of this process, which is about to end, and those that still come."""
        self._ending = True
        for line in chain.from_iterable(self._lines.values()):
            line.fresh.set()

    async def close(self) -> None:
        """Let go of the store."""
        self._ending = True
        if self._pulse:
            self._pulse.cancel()
        await asyncio.gather(*self._tasks.values())
        self._closed = True
        await self.store.close()

    # How a class is made and known again.

    async def _key(self) -> str:
        """The secret of the store."""
        self._secret = self._secret or await self.store.secret(secrets.token_hex(16))
        return self._secret

    async def _code(self, watch: str) -> str:
        # A Redis that was started anew has lost it.
        self._secret = await self.store.secret(await self._key())
        return codes.code_of(self._secret, watch)

    async def _make(
        self, code: str, watch: str, address: str, location: str, occupied: bool
    ) -> bool:
        shown = ("picture", "of", "stays", "slide", "presses")
        names = (*shown, "open", "question", "tally", "lesson", "struck")
        fields = dict.fromkeys(names, "") | {"number": "0", "pressed": "0"}
        fields |= {"watch": watch, "ends": str(codes.ends_of(watch)), "at": location}
        starter = codes.signature(self._secret, "address", address)  # an address is not stored
        return await self.store.make(code, fields, starter, codes.ends_of(watch), occupied)

    async def _class(
        self, code: str, watch: str, address: str, occupied: bool
    ) -> dict[str, str] | None:
        """The class of a code. One that lapsed, or gave its place to another, is made anew for who
        watches it; it is nowhere then, until its teacher's window says where it is."""
        fields = await self.store.read(code) if code else None
        if fields or not code or code != await self._code(watch):
            return fields
        if codes.ends_of(watch) > self.clock():
            await self._make(code, watch, address, "", occupied)
        return await self.store.read(code)

    async def _part(self, code: str, word: str) -> dict[str, str] | None:
        """The class of which this is a student's word, None for no student's."""
        if not codes.is_student(await self._key(), code, word):
            return None
        return await self.store.read(code)

    def _next_stamp(self) -> int:
        """A stamp that increases with each message of a teacher."""
        self._stamp = max(self._stamp + 1, int(self.clock() * 1e6))
        return self._stamp

    async def _tell_all(self, code: str) -> None:
        await self.store.tell(code, STUDENTS)
        await self.store.tell(code, TEACHER)

    # What this process does for its lines.

    def _give_up_oldest(self, code: str, word: str) -> None:
        """Make room for one more line of a student or teacher."""
        own_lines = [line for line in self._lines.get(code, ()) if line.word == word]
        if len(own_lines) >= MOST_LINES:
            self._give_up(code, own_lines)

    def _give_up(self, code: str, lines: list[Listener]) -> None:
        """Close the oldest of some lines."""
        oldest = min(lines, key=lambda line: line.opened)
        oldest.closed = True
        oldest.fresh.set()
        self._lines[code].discard(oldest)

    def _make_room(self, code: str, newcomer: Listener) -> None:
        """Close a line of a full class to make room for a student: of an address that has
        too many, else of the newcomer's own one that never answered; of the browser with most of
        these the oldest. Raises TooMany where there is none."""
        lines = [line for line in self._lines.get(code, ()) if line.role == STUDENTS]
        words = {line.word for line in lines}
        if newcomer.word in words or len(words) < MOST_STUDENTS:
            return
        counts = Counter(line.address for line in lines)
        largest, most = counts.most_common(1)[0]
        too_many = most > max(SHARE, counts[newcomer.address] + 1)
        address = largest if too_many else newcomer.address
        of_address = [line for line in lines if line.address == address]
        silent = [line for line in of_address if line.word not in self._answered.get(code, ())]
        if not (silent := silent or (of_address if too_many else [])):
            raise TooMany(REFUSALS("full"))
        ((browser, _),) = Counter(line.browser for line in silent).most_common(1)
        self._give_up(code, [line for line in silent if line.browser == browser])

    def _left(self, code: str, line: Listener) -> None:
        lines = self._lines.get(code, set())
        lines.discard(line)
        if not lines:
            self._lines.pop(code, None)
            self._answered.pop(code, None)
            for role in (STUDENTS, TEACHER):
                self._latest.pop((code, role), None)
        self._schedule((code, LINES))

    async def _beat(self) -> None:
        while self._lines:
            await asyncio.sleep(PULSE)
            for code in (*self._lines,):
                self._schedule((code, LINES))

    def _news(self, code: str, whom: str) -> None:
        """Something is new for the lines of this process; with "" for all of them."""
        if not code:
            for class_code in (*self._lines,):
                for work in (LINES, STUDENTS, TEACHER):
                    self._schedule((class_code, work))
        elif code in self._lines:
            self._schedule((code, whom))

    def _schedule(self, name: tuple[str, str]) -> None:
        """Do one thing for all lines of a class, and once more where it changes meanwhile: read
        what students or the teacher see, or write whose lines are open."""
        self._wanted.add(name)
        if name not in self._tasks and not self._closed:
            self._tasks[name] = asyncio.ensure_future(self._work(name))

    async def _work(self, name: tuple[str, str]) -> None:
        code, whom = name
        try:
            while name in self._wanted:
                self._wanted.discard(name)
                try:
                    await (self._write_lines(code) if whom == LINES else self._look(code, whom))
                except ConnectionError:
                    # Nothing is lost: it is tried until the store answers.
                    await asyncio.sleep(0 if self._ending else LOOK_AGAIN)
                    if (code in self._lines or whom == LINES) and not self._ending:
                        self._wanted.add(name)
        finally:
            del self._tasks[name]

    async def _write_lines(self, code: str) -> None:
        # One write at a time, each of all lines as they are at that moment: none is lost, and one
        # that could not be written is written by the next.
        words = sorted({line.word for line in self._lines.get(code, ())})
        await self.store.lines(code, self._place, self._next_stamp(), words)
        await self.store.tell(code, TEACHER)

    async def _look(self, code: str, whom: str) -> None:
        snapshot = await self.view(code, whom)
        self._latest[code, whom] = (
            None if snapshot is None else json.dumps(snapshot, ensure_ascii=False)
        )
        for line in self._lines.get(code, ()):
            if line.role == whom:
                line.fresh.set()
        if whom == TEACHER:
            await asyncio.sleep(TALLY_EVERY)
