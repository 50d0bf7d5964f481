"""What keeps classes has to do, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

# A class is occupied while a line of it is open. One that is not goes after `LAPSE` seconds, or
# sooner where its place is needed; its teacher brings it back (lessons.py). So whoever starts
# classes and leaves them keeps nobody else from a place, and no class is ended while somebody is
# in it: several teachers of a school behind one address have `OF_ONE` occupied ones, more than the
# places for readers would serve.
LAPSE = 900
MOST_CLASSES = 100  # at a time, on all processes together
OF_ONE, EMPTY_OF_ONE = 20, 5  # classes of one address, and those of them that are not occupied
MOST_ANSWERS = 2000  # to one question; beyond that those without an open line go
MOST_ENDED = 1000  # classes that their teachers ended, and which no key brings back
STALE = 30.0  # seconds after which the lines of a process that says nothing are closed


class Unknown(LookupError):
    """There is no such class, or whoever asks has no part in it."""


class TooMany(RuntimeError):
    """The limit is reached: of tries, of classes or of students."""


FULL = "This server holds as many classes as it can; try again later."
FULL_OF_ONE = f"{OF_ONE} classes from this network are going on; end one of them first."


class Store(Protocol):
    """Where classes are kept. Every method is one step: no other one sees half of it.

    A `stamp` orders what a teacher sends: what is older than the last of its kind changes nothing,
    so that a write that was delayed does not undo a later one.
    """

    # Called with a code and for whom there is something new; with "" for all, where some was
    # missed.
    news: Callable[[str, str], None]

    async def secret(self, candidate: str) -> str:
        """The secret that all processes share; the candidate where there is none yet."""

    async def make(
        self, code: str, fields: dict[str, str], address: str, ends: float, occupied: bool
    ) -> bool:
        """Keep a new class; False where the code is taken or its class was ended. Where there are
        too many, the one longest without an open line goes; raises TooMany where none is."""

    async def read(self, code: str) -> dict[str, str] | None:
        """The fields of a class, None where there is none."""

    async def write(self, code: str, kind: str, stamp: int, fields: dict[str, str]) -> bool:
        """Change fields of a class; False where there is none, or a newer stamp of this kind."""

    async def ask(self, code: str, stamp: int, question: str) -> int:
        """Put a question in the place of the last one, whose answers go; its number, 0 where a
        newer one stands. "" for none."""

    async def drop(self, code: str) -> None:
        """End a class and forget all that belongs to it."""

    async def put(self, code: str, number: str, student: str, choice: str) -> bool:
        """A student's answer to the open question of that number; False where it is not open."""

    async def lines(self, code: str, place: str, stamp: int, words: list[str]) -> None:
        """The words whose lines are open in a process, by its name, for `STALE` seconds; this also
        keeps the class from its lapse."""

    async def room(self, code: str) -> tuple[set[str], dict[str, str]]:
        """The words with an open line in any process, and the answers by word."""

    async def show(self, code: str, stamp: int, fields: dict[str, str], picture: bytes) -> bool:
        """Keep the picture of a class under fields["picture"], in the place of an older one."""

    async def shown(self, code: str, name: str) -> bytes | None:
        """The picture of that name, None where it is no longer the class's."""

    async def tell(self, code: str, whom: str) -> None:
        """Call `news` in every process."""

    async def close(self) -> None:
        """Let go of what the store holds."""
