"""Classes: what a teacher shows, what is asked and what is answered, for as long as a class lasts
and no longer.

A class is kept by a `Store`, in this process or in Redis; what a class is and who may do what is
said here alone. Nothing of a student is kept but a random word that the student's own browser holds
and what that word last answered.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from typing import Any

from explorer.memory.lessons_store import Store, TooMany, Unknown

LIFE = 12 * 3600  # seconds that a class lasts at most
SIGNS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # none that is read as another
CODE_SIGNS = 7
MOST_CLASSES = 100  # at a time, on all processes together
MOST_STUDENTS = 1000  # of a class
MOST_LINES = 8  # of one student or teacher in a process: windows, and lines that broke unnoticed
# Tries that are allowed in a window of so many seconds: wrong codes of one address and of all
# together, and classes that one address starts.
WINDOW = 600
WRONG_OF_ONE, WRONG_OF_ALL, STARTS_OF_ONE = 150, 1200, 20
BEAT = 20.0  # seconds between two signs of life on a line where nothing happens
TALLY_EVERY = 0.1  # seconds between two tallies that a teacher sees
LOOK_AGAIN = 1.0  # seconds between two looks at a store that does not answer
STALE = 3 * BEAT  # seconds after which a process that says nothing has no students here

STUDENTS, TEACHER = "students", "teacher"


@dataclass(frozen=True)
class Opened:
    """What a teacher's browser keeps of a class: the code that students type, the key that rules
    the class, and the word that may watch the tally."""

    code: str
    key: str
    watch: str
    ends: float


@dataclass(eq=False)
class Listener:
    """One open line."""

    role: str
    word: str
    fresh: asyncio.Event = field(default_factory=asyncio.Event)
    opened: float = field(default_factory=time.monotonic)
    given_up: bool = False


def spelled(code: object) -> str:
    """A code as it is kept, of one as it was typed; "" for what cannot be one."""
    if not isinstance(code, str) or len(code) > 4 * CODE_SIGNS:
        return ""
    plain = "".join(sign for sign in code.upper() if sign.isalnum())
    return plain if len(plain) == CODE_SIGNS and set(plain) <= set(SIGNS) else ""


def _sealed(key: str) -> str:
    """A key as it is kept: whoever reads the store cannot rule a class."""
    return blake2b(key.encode(), digest_size=16).hexdigest()


class Lessons:
    """The classes of a store, and the lines of this process that listen to them."""

    def __init__(
        self, store: Store, life: float = LIFE, clock: Callable[[], float] = time.time
    ) -> None:
        self.store, self.life, self.clock = store, life, clock
        store.news = self._news
        self._place, self._salt = secrets.token_hex(4), secrets.token_bytes(16)
        self._lines: dict[str, set[Listener]] = {}
        self._latest: dict[tuple[str, str], str | None] = {}
        self._wanted: set[tuple[str, str]] = set()
        self._at_work: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._ending = False

    # What a teacher does.

    async def start(self, who: str) -> Opened:
        """A new class. Raises TooMany where `who`, or the server, has started too many."""
        if await self._tried("start", who) > STARTS_OF_ONE:
            raise TooMany("Too many classes were started from here; try again in ten minutes.")
        key, watch, ends = (
            secrets.token_urlsafe(24),
            secrets.token_urlsafe(16),
            self.clock() + self.life,
        )
        fields = {
            "key": _sealed(key),
            "watch": watch,
            "ends": repr(ends),
            "at": "/",
            "picture": "",
            "of": "",
            "number": "0",
            "open": "",
            "asked": "",
        }
        while True:
            code = "".join(secrets.choice(SIGNS) for _ in range(CODE_SIGNS))
            if await self.store.make(code, fields, self.life, MOST_CLASSES):
                return Opened(code, key, watch, ends)

    async def rules(self, code: str, key: str) -> dict[str, str]:
        """The class that this key rules. Raises Unknown for another key or no class."""
        kept = await self.store.read(code) if code else None
        if kept is None or not hmac.compare_digest(kept["key"], _sealed(str(key))):
            raise Unknown("This class has ended, or the key is not its own.")
        return kept

    async def move(self, code: str, key: str, at: str) -> None:
        """The teacher shows another address now."""
        kept = await self.rules(code, key)
        if kept["at"] != at and await self.store.write(code, {"at": at}):
            await self.store.tell(code, STUDENTS)

    async def show(self, code: str, key: str, at: str, picture: bytes) -> None:
        """What the teacher's own window shows there, for students whose pages are on their way."""
        await self.rules(code, key)
        name = secrets.token_urlsafe(8)
        await self.store.show(code, name, picture)
        if await self.store.write(code, {"picture": name, "of": at}):
            await self.store.tell(code, STUDENTS)

    async def ask(self, code: str, key: str, question: dict[str, Any] | None) -> int:
        """Ask a question, or with None take the last one away; its number."""
        kept = await self.rules(code, key)
        number = int(kept["number"]) + 1
        asked = json.dumps(question, ensure_ascii=False) if question else ""
        fields = {"number": str(number), "open": str(number) if question else "", "asked": asked}
        await self.store.write(code, fields)
        await self._tell_all(code)
        return number

    async def reveal(self, code: str, key: str) -> None:
        """Close the question and show what is right to all."""
        await self.rules(code, key)
        await self.store.write(code, {"open": ""})
        await self._tell_all(code)

    async def end(self, code: str, key: str) -> None:
        """The class is over; nothing of it is kept."""
        await self.rules(code, key)
        await self.store.drop(code)
        await self._tell_all(code)

    # What a student does.

    async def join(self, code: str, who: str) -> tuple[str, str]:
        """A new student's word, and where the class is. Raises Unknown for a wrong code, TooMany
        after too many of them from `who` or from all together, and for a full class."""
        # Whoever is refused takes no try from the others.
        if (
            await self._tried("wrong", who) > WRONG_OF_ONE
            or await self._tried("wrong", "") > WRONG_OF_ALL
        ):
            raise TooMany("Too many wrong codes were tried; try again in ten minutes.")
        student = secrets.token_urlsafe(16)
        kept = await self.store.read(code) if code else None
        if kept is None or not await self.store.add(code, student, MOST_STUDENTS):
            raise Unknown("There is no class with this code.")
        await self._tried("wrong", who, -1)
        await self._tried("wrong", "", -1)
        await self.store.tell(code, TEACHER)
        return student, kept["at"]

    async def picture(self, code: str, student: str, name: str) -> bytes | None:
        """What the teacher's window shows, None where it shows something else by now. Raises
        Unknown for one who has no part in the class."""
        if not code or not await self.store.knows(code, student):
            raise Unknown("This class has ended.")
        return await self.store.shown(code, name)

    async def answer(self, code: str, student: str, number: int, choice: int) -> None:
        """A student's answer, which may change until the reveal. Raises Unknown where the question
        is not open, or there is no such choice."""
        kept = await self.store.read(code) if code else None
        if kept is None or not await self.store.knows(code, str(student)):
            raise Unknown("This class has ended.")
        if not kept["open"] or kept["open"] != str(number):
            raise Unknown("This question is closed.")
        if not 0 <= choice < len(json.loads(kept["asked"])["choices"]):
            raise Unknown("There is no such answer.")
        if not await self.store.put(code, str(number), str(student), str(choice)):
            raise Unknown("This question is closed.")
        await self.store.tell(code, TEACHER)

    # What both hear.

    async def listen(self, code: str, word: str) -> AsyncIterator[str]:
        """What a student or the teacher sees of the class, as JSON: at once, and anew whenever it
        changes, "" every `BEAT` seconds. The last is {"over": true}. Raises Unknown at the first
        step for a word that has no part in the class.
        """
        kept = await self.store.read(code) if code else None
        if kept is None:
            raise Unknown("This class has ended.")
        role = TEACHER if hmac.compare_digest(kept["watch"].encode(), word.encode()) else STUDENTS
        if role == STUDENTS and not await self.store.knows(code, word):
            raise Unknown("This class has ended.")
        line = Listener(role, word)
        self._give_up_oldest(code, word)
        self._lines.setdefault(code, set()).add(line)
        try:
            await self._here(code)
            yield await self._first(code, role, word)
            async for said in self._goes_on(code, line, float(kept["ends"])):
                yield said
        finally:
            self._left(code, line)

    async def _goes_on(self, code: str, line: Listener, ends: float) -> AsyncIterator[str]:
        last: str | None = ""
        while not self._ending:
            try:
                await asyncio.wait_for(
                    line.fresh.wait(), max(0.0, min(BEAT, ends - self.clock() + 0.01))
                )
            except TimeoutError:
                if self.clock() >= ends:
                    break
                await self._here(code)
                yield ""
                continue
            line.fresh.clear()
            if line.given_up:
                return
            if self._ending:
                continue
            said = self._latest.get((code, line.role))
            if said is None:
                break
            if said != last:
                last = said
                yield said
        else:  # the class is not over: a browser asks again, and the next process answers
            return
        yield json.dumps({"over": True})

    async def _first(self, code: str, role: str, word: str) -> str:
        """What is sent when a line opens: also what this student has answered already."""
        seen = await self.view(code, role)
        if seen is None:
            return json.dumps({"over": True})
        if role == STUDENTS and seen.get("asked"):
            mine = (await self.store.answers(code, str(seen["number"]))).get(word)
            seen["mine"] = None if mine is None else int(mine)
        return json.dumps(seen, ensure_ascii=False)

    async def view(self, code: str, role: str) -> dict[str, Any] | None:
        """What is seen of a class: students learn what is right, and the tally, with the reveal."""
        kept = await self.store.read(code)
        if kept is None:
            return None
        number, asked = int(kept["number"]), json.loads(kept["asked"] or "null")
        seen: dict[str, Any] = {"at": kept["at"], "number": number, "open": bool(kept["open"])}
        if role == STUDENTS:
            # So many pages of this process go there at once: each waits for its turn.
            seen |= {name: kept[name] for name in ("picture", "of")}
            seen["many"] = self._students(code)
        if role == TEACHER:
            seen["here"] = await self.store.here(code, self._place, self._students(code), STALE)
        if asked and (role == TEACHER or not kept["open"]):
            given = list((await self.store.answers(code, str(number))).values())
            seen["tally"] = [given.count(str(at)) for at in range(len(asked["choices"]))]
        elif asked:
            asked = {name: asked[name] for name in ("text", "choices")}
        return seen | {"asked": asked}

    def leave(self) -> None:
        """End all lines of this process, which is about to end, and those that still come."""
        self._ending = True
        for line in chain.from_iterable(self._lines.values()):
            line.fresh.set()

    async def close(self) -> None:
        """Let go of the store."""
        await asyncio.gather(*self._leaving, *self._at_work.values())
        await self.store.close()

    async def _tried(self, what: str, who: str, by: int = 1) -> int:
        """How often `who` ("" for all) has done something in this window; kept under no address."""
        named = blake2b(who.encode(), key=self._salt, digest_size=8).hexdigest() if who else "all"
        return await self.store.tally(f"{what}:{named}", by, WINDOW)

    async def _tell_all(self, code: str) -> None:
        await self.store.tell(code, STUDENTS)
        await self.store.tell(code, TEACHER)

    def _students(self, code: str) -> int:
        return sum(line.role == STUDENTS for line in self._lines.get(code, ()))

    async def _here(self, code: str) -> None:
        """Say how many listen in this process."""
        await self.store.here(code, self._place, self._students(code), STALE)
        await self.store.tell(code, TEACHER)

    def _give_up_oldest(self, code: str, word: str) -> None:
        """Make room for one more line of a student or teacher."""
        mine = [line for line in self._lines.get(code, ()) if line.word == word]
        if len(mine) >= MOST_LINES:
            oldest = min(mine, key=lambda line: line.opened)
            oldest.given_up = True
            oldest.fresh.set()
            self._lines[code].discard(oldest)

    def _left(self, code: str, line: Listener) -> None:
        lines = self._lines.get(code, set())
        lines.discard(line)
        if not lines:
            self._lines.pop(code, None)
            for role in (STUDENTS, TEACHER):
                self._latest.pop((code, role), None)
        if line.role == STUDENTS:
            task = asyncio.ensure_future(self._fewer(code))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def _fewer(self, code: str) -> None:
        with suppress(ConnectionError):  # the next who comes or goes says it
            await self._here(code)

    def _news(self, code: str, whom: str) -> None:
        """Something is new: it is read once for all lines of this process, and read again where it
        changes meanwhile."""
        if not code:
            for each in (*self._lines,):
                self._news(each, STUDENTS)
                self._news(each, TEACHER)
            return
        name = code, whom
        if code not in self._lines:
            return
        self._wanted.add(name)
        if name not in self._at_work:
            self._at_work[name] = asyncio.ensure_future(self._look(name))

    async def _look(self, name: tuple[str, str]) -> None:
        code, whom = name
        try:
            while name in self._wanted:
                self._wanted.discard(name)
                try:
                    seen = await self.view(code, whom)
                except ConnectionError:
                    # What was said is not lost: it is looked at until it is seen.
                    await asyncio.sleep(LOOK_AGAIN)
                    if code in self._lines and not self._ending:
                        self._wanted.add(name)
                    continue
                self._latest[name] = None if seen is None else json.dumps(seen, ensure_ascii=False)
                for line in self._lines.get(code, ()):
                    if line.role == whom:
                        line.fresh.set()
                if whom == TEACHER:
                    await asyncio.sleep(TALLY_EVERY)
        finally:
            del self._at_work[name]
