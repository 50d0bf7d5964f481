"""Interface of the stores of classes, and their errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from explorer.wording.templates import sentences

REFUSALS = sentences("classroom", "refusals")

# A class is occupied while a line of it is open. One that is not goes after `LAPSE` seconds, or
# sooner where its place is needed; its teacher brings it back (lessons.py). So whoever starts
# classes and leaves them keeps nobody else from a place, and no class is ended while somebody is
# in it: several teachers of a school behind one address have `OF_ONE` occupied ones, more than the
# places for readers would serve.
LAPSE = 900
# Seconds without a student after which a class with a teacher's line makes room for a new one where
# there are too many: a line alone costs a stranger nothing.
UNATTENDED = 900
MOST_CLASSES = 100  # at a time, on all processes together
OF_ONE, EMPTY_OF_ONE = 20, 5  # classes of one address, and those of them that are not occupied
MOST_ANSWERS = 2000  # to one question; beyond that those without an open line go
MOST_ENDED = 1000  # classes that their teachers ended, and which no key brings back
MOST_PRESSES = 16  # keys of a speaker's window that wait for the wall
MOST_STRUCK = 100  # words of a class that its teacher struck; beyond that the first of them go
# What a class has of its teacher's window: its page for the students, its slide for the speaker.
PICTURES = ("picture", "slide")
STALE = 30.0  # seconds after which the lines of a process that says nothing are closed


class Unknown(LookupError):
    """There is no such class, or the sender is not in it."""


class TooMany(RuntimeError):
    """The limit is reached: of tries, of classes or of students."""


FULL = REFUSALS("server_full")
FULL_OF_ONE = REFUSALS("network_full", of_one=OF_ONE)


class Store(Protocol):
    """A store of classes. Every method is atomic.

    A `stamp` orders a teacher's messages: one that is older than the last of its kind changes
    nothing, so that a delayed write does not undo a later one."""

    # Called with a code and for whom there is something new; with "" for all, where some was
    # missed.
    news: Callable[[str, str], None]

    async def secret(self, candidate: str) -> str:
        """The secret that all processes share; the candidate where there is none yet."""

    async def make(
        self, code: str, fields: dict[str, str], address: str, ends: float, occupied: bool
    ) -> bool:
        """Keep a new class; False where the code is taken or its class was ended. Where there are
        too many, the one that has been empty longest goes; raises TooMany where none is."""

    async def read(self, code: str) -> dict[str, str] | None:
        """The fields of a class, None where there is none."""

    async def write(self, code: str, kind: str, stamp: int, fields: dict[str, str]) -> bool:
        """Change fields of a class; False where there is none, or a newer stamp of this kind."""

    async def ask(self, code: str, stamp: int, question: str) -> int:
        """Replace the current question and drop its answers; returns its number, 0 where a newer
        one is there. "" for none."""

    async def drop(self, code: str) -> None:
        """End a class and forget all that belongs to it."""

    async def put(self, code: str, number: str, student: str, choice: str) -> bool:
        """A student's answer to the open question of that number; False where it is not open."""

    async def lines(self, code: str, place: str, stamp: int, words: list[str]) -> None:
        """Store the words with an open connection in a process `place`, for `STALE` seconds. This
        also
        extends the life of the class."""

    async def room(self, code: str) -> tuple[set[str], dict[str, str]]:
        """The words with an open connection in any process, and the answers by word."""

    async def show(
        self, code: str, stamp: int, fields: dict[str, str], picture: bytes, kind: str
    ) -> bool:
        """Keep the picture of a class of one of `PICTURES` under fields[kind], in the place of an
        older one."""

    async def load_picture(self, code: str, name: str, kind: str) -> bytes | None:
        """The picture of that kind and name, None where the class has another one by now."""

    async def press(self, code: str, key: str) -> None:
        """Add a key to those that were pressed for a class: the last `MOST_PRESSES` are kept, and
        the number of all."""

    async def strike(self, code: str, word: str, struck: bool) -> None:
        """Add a word to those in the field `struck` of a class, a line each, or take it out: the
        last `MOST_STRUCK` are kept."""

    async def tell(self, code: str, whom: str) -> None:
        """Call `news` in every process."""

    async def close(self) -> None:
        """Release the store's resources."""


# Classes in the memory of this process, for a server with one process.


@dataclass
class ClassRecord:
    """A class: its fields, its starter's address, when it lapses without an open line and when it
    ends; when a student's line was open last, or it was made; the lines of each process, the
    answers, and what its teacher's window shows."""

    fields: dict[str, str]
    address: str
    lapses: float
    ends: float
    attended: float
    stamps: dict[str, int] = field(default_factory=dict)
    lines: dict[str, tuple[float, set[str]]] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)

    def newer(self, kind: str, stamp: int) -> bool:
        """True, and this stamp is the last one, where none of its kind is newer."""
        if self.stamps.get(kind, 0) > stamp:
            return False
        self.stamps[kind] = stamp
        return True


class MemoryStore:
    """A `lessons_store.Store` of dictionaries. All its methods run on one event loop."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.news: Callable[[str, str], None] = lambda code, whom: None
        self._classes: dict[str, ClassRecord] = {}
        self._ended: list[str] = []
        self._secret = ""
        self._timer: asyncio.TimerHandle | None = None

    async def secret(self, candidate: str) -> str:
        self._secret = self._secret or candidate
        return self._secret

    async def make(
        self, code: str, fields: dict[str, str], address: str, ends: float, occupied: bool
    ) -> bool:
        self.sweep()
        if code in self._classes or code in self._ended:
            return False
        now = self.clock()
        same_address = [code for code, record in self._classes.items() if record.address == address]
        left = [code for code in same_address if self._is_left(self._classes[code])]
        full = ""
        if len(same_address) >= OF_ONE or len(left) >= EMPTY_OF_ONE:
            full, among = FULL_OF_ONE, left if len(left) >= EMPTY_OF_ONE else same_address
        elif len(self._classes) >= MOST_CLASSES:
            full, among = FULL, list(self._classes)
        if full:
            if not (empty := self._empty(among)):
                raise TooMany(full)
            del self._classes[empty[0]]
        lapses = now + LAPSE - (0 if occupied else STALE)
        self._classes[code] = ClassRecord(dict(fields), address, lapses, ends, now)
        self.sweep()
        return True

    async def read(self, code: str) -> dict[str, str] | None:
        record = self._at(code)
        return dict(record.fields) if record else None

    async def write(self, code: str, kind: str, stamp: int, fields: dict[str, str]) -> bool:
        record = self._at(code)
        if record is None or not record.newer(kind, stamp):
            return False
        record.fields.update(fields)
        return True

    async def ask(self, code: str, stamp: int, question: str) -> int:
        record = self._at(code)
        if record is None or not record.newer("question", stamp):
            return 0
        number = str(int(record.fields["number"]) + 1)
        open_number = number if question else ""
        record.fields.update(number=number, open=open_number, question=question, tally="")
        record.answers.clear()
        return int(number)

    async def drop(self, code: str) -> None:
        if self._classes.pop(code, None):
            self._ended = [*self._ended, code][-MOST_ENDED:]

    async def put(self, code: str, number: str, student: str, choice: str) -> bool:
        record = self._at(code)
        if record is None or record.fields["open"] != number:
            return False
        if len(record.answers) >= MOST_ANSWERS:
            present, _ = await self.room(code)
            record.answers = {word: at for word, at in record.answers.items() if word in present}
        record.answers[student] = choice
        return True

    async def lines(self, code: str, place: str, stamp: int, words: list[str]) -> None:
        record, now = self._at(code), self.clock()
        if record is None or not record.newer(f"lines {place}", stamp):
            return
        record.lines[place] = now + STALE, set(words)
        if words:
            record.lapses = now + LAPSE
        if {*words} - {record.fields["watch"]}:
            record.attended = now

    async def room(self, code: str) -> tuple[set[str], dict[str, str]]:
        record, now = self._at(code), self.clock()
        if record is None:
            return set(), {}
        open_lines = [words for until, words in record.lines.values() if until > now]
        return set().union(*open_lines), dict(record.answers)

    async def show(
        self, code: str, stamp: int, fields: dict[str, str], picture: bytes, kind: str
    ) -> bool:
        record = self._at(code)
        if record is None or not await self.write(code, kind, stamp, fields):
            return False
        record.pictures[kind] = picture
        return True

    async def load_picture(self, code: str, name: str, kind: str) -> bytes | None:
        record = self._at(code)
        return record.pictures[kind] if record and name and record.fields[kind] == name else None

    async def press(self, code: str, key: str) -> None:
        if record := self._at(code):
            fields = record.fields
            fields["pressed"] = str(int(fields["pressed"]) + 1)
            fields["presses"] = (fields["presses"] + key)[-MOST_PRESSES:]

    async def strike(self, code: str, word: str, struck: bool) -> None:
        if record := self._at(code):
            words = [each for each in record.fields["struck"].split("\n") if each not in ("", word)]
            words += [word] if struck else []
            record.fields["struck"] = "\n".join(words[-MOST_STRUCK:])

    async def tell(self, code: str, whom: str) -> None:
        self.news(code, whom)

    async def close(self) -> None:
        self._classes.clear()
        self.sweep()

    def sweep(self) -> None:
        """Forget what has ended or lapsed, now and whenever the next class does."""
        for code in [code for code in self._classes if not self._at(code)]:
            del self._classes[code]
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._classes:
            next_end = min(min(record.ends, record.lapses) for record in self._classes.values())
            wait = max(0.0, next_end - self.clock()) + 0.01
            self._timer = asyncio.get_running_loop().call_later(wait, self.sweep)

    def _is_left(self, record: ClassRecord) -> bool:
        """True for a class without an open line."""
        return record.lapses <= self.clock() + LAPSE - STALE

    def _empty(self, codes: list[str]) -> list[str]:
        """Those of the classes without an open line, or without a student for long; the one that
        was longest so first."""
        since = {
            code: record.lapses - LAPSE if self._is_left(record) else record.attended + UNATTENDED
            for code in codes
            if self._is_left(record := self._classes[code])
            or record.attended + UNATTENDED <= self.clock()
        }
        return sorted(since, key=lambda code: since[code])

    def _at(self, code: str) -> ClassRecord | None:
        record = self._classes.get(code)
        return record if record and min(record.ends, record.lapses) > self.clock() else None
