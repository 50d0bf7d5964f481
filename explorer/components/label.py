"""What a picture says when it stands alone, and what it is called."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Label:
    """title and caption (lines) of a figure, `file`: what its files are called, without an ending, and
    `token`: the picture's own name, equal for equal causes."""

    title: str
    caption: tuple[str, ...]
    file: str
    token: str

    @property
    def about(self) -> tuple[str, ...]:
        """Title and caption, as a table or a file has them."""
        return self.title, *self.caption

    @property
    def header(self) -> dict[str, object]:
        """As the browser has them."""
        return asdict(self)
