"""Title, caption and file name of a picture, on the page and in the file that is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """Its title, the lines under it that say what was measured, the name of its file without an
    ending, and the `token` that whoever waits for it knows it by."""

    title: str
    caption: Sequence[str]
    file: str
    token: str

    def plain(self) -> dict:
        """The same for a header."""
        return {
            "title": self.title,
            "caption": list(self.caption),
            "file": self.file,
            "token": self.token,
        }

    @property
    def about(self) -> tuple[str, ...]:
        """Title and caption, as a table or a file has them."""
        return self.title, *self.caption
