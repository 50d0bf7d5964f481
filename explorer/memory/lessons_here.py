"""Classes kept in this process: enough for one, and gone with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from explorer.memory.lessons_store import TooMany


@dataclass
class Kept:
    """A class: its fields, its students, their answers by the question's number, how many listen,
    what its teacher's
    window shows, and when it ends."""

    fields: dict[str, str]
    ends: float
    students: set[str] = field(default_factory=set)
    answers: dict[str, dict[str, str]] = field(default_factory=dict)
    here: dict[str, int] = field(default_factory=dict)
    picture: tuple[str, bytes] = "", b""


class Here:
    """A `lessons_store.Store` of dictionaries. All its methods run on one event loop."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.news: Callable[[str, str], None] = lambda code, whom: None
        self._classes: dict[str, Kept] = {}
        self._counts: dict[str, tuple[int, float]] = {}

    async def make(self, code: str, fields: dict[str, str], life: float, most: int) -> bool:
        self.sweep()
        if code in self._classes:
            return False
        if len(self._classes) >= most:
            raise TooMany("This server holds as many classes as it can; try again later.")
        self._classes[code] = Kept(dict(fields), self.clock() + life)
        # Nobody may ask again: it is gone all the same.
        asyncio.get_running_loop().call_later(life + 1, self.sweep)
        return True

    async def read(self, code: str) -> dict[str, str] | None:
        kept = self._at(code)
        return dict(kept.fields) if kept else None

    async def write(self, code: str, fields: dict[str, str]) -> bool:
        kept = self._at(code)
        if kept:
            if fields.get("number", kept.fields["number"]) != kept.fields["number"]:
                kept.answers.clear()
            kept.fields.update(fields)
        return kept is not None

    async def drop(self, code: str) -> None:
        self._classes.pop(code, None)

    async def add(self, code: str, student: str, most: int) -> bool:
        kept = self._at(code)
        if kept and len(kept.students) >= most:
            raise TooMany("This class is full.")
        if kept:
            kept.students.add(student)
        return kept is not None

    async def knows(self, code: str, student: str) -> bool:
        kept = self._at(code)
        return kept is not None and student in kept.students

    async def put(self, code: str, number: str, student: str, choice: str) -> bool:
        kept = self._at(code)
        if kept is None or kept.fields["open"] != number:
            return False
        kept.answers.setdefault(number, {})[student] = choice
        return True

    async def answers(self, code: str, number: str) -> dict[str, str]:
        kept = self._at(code)
        return dict(kept.answers.get(number, {})) if kept else {}

    async def show(self, code: str, name: str, picture: bytes) -> None:
        kept = self._at(code)
        if kept:
            kept.picture = name, picture

    async def shown(self, code: str, name: str) -> bytes | None:
        kept = self._at(code)
        return kept.picture[1] if kept and name and kept.picture[0] == name else None

    async def tally(self, name: str, by: int, window: float) -> int:
        self.sweep()
        number, ends = self._counts.get(name, (0, self.clock() + window))
        self._counts[name] = max(0, number + by), ends
        return number + by

    async def here(self, code: str, place: str, number: int, stale: float) -> int:
        kept = self._at(code)
        if kept is None:
            return 0
        kept.here[place] = number
        return sum(kept.here.values())

    async def tell(self, code: str, whom: str) -> None:
        self.news(code, whom)

    async def close(self) -> None:
        self._classes.clear()
        self._counts.clear()

    def sweep(self) -> None:
        """Forget what has ended."""
        now = self.clock()
        for code in [code for code, kept in self._classes.items() if kept.ends <= now]:
            del self._classes[code]
        for name in [name for name, (_, ends) in self._counts.items() if ends <= now]:
            del self._counts[name]

    def _at(self, code: str) -> Kept | None:
        kept = self._classes.get(code)
        return kept if kept and kept.ends > self.clock() else None
