"""What keeps classes has to do, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Unknown(LookupError):
    """There is no such class, or whoever asks has no part in it."""


class TooMany(RuntimeError):
    """The limit is reached: of tries, of classes or of students."""


class Store(Protocol):
    """Where classes are kept. Every method is one step: no other one sees half of it."""

    # Called with a code and for whom there is something new; with "" for all, where some was
    # missed.
    news: Callable[[str, str], None]

    async def make(self, code: str, fields: dict[str, str], life: float, most: int) -> bool:
        """Keep a new class; False where the code is taken. Raises TooMany beyond so many
        classes."""

    async def read(self, code: str) -> dict[str, str] | None:
        """The fields of a class, None where there is none."""

    async def write(self, code: str, fields: dict[str, str]) -> bool:
        """Change fields of a class; False where there is none."""

    async def drop(self, code: str) -> None:
        """Forget a class and all that belongs to it."""

    async def add(self, code: str, student: str, most: int) -> bool:
        """One more student; False where there is no such class. Raises TooMany beyond so many."""

    async def knows(self, code: str, student: str) -> bool:
        """True for a student of the class."""

    async def put(self, code: str, number: str, student: str, choice: str) -> bool:
        """A student's answer to the open question of that number; False where it is not open."""

    async def answers(self, code: str, number: str) -> dict[str, str]:
        """Every student's answer to the question of that number."""

    async def show(self, code: str, name: str, picture: bytes) -> None:
        """Keep the picture of a class under its name, in the place of the last one."""

    async def shown(self, code: str, name: str) -> bytes | None:
        """The picture of that name, None where it is no longer the class's."""

    async def tally(self, name: str, by: int, window: float) -> int:
        """Add to a count that begins anew when the window ends; the count."""

    async def here(self, code: str, place: str, number: int, stale: float) -> int:
        """How many listen in this process, by its name; how many in all."""

    async def tell(self, code: str, whom: str) -> None:
        """Call `news` in every process."""

    async def close(self) -> None:
        """Let go of what the store holds."""
