"""What a page about one attention is of: the recording, the attention, what its axes are called,
and how its pictures and files are named."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from explorer.analysis import attention as matrices
from explorer.analysis.caption import caption
from explorer.components.picture import Picture
from explorer.frame import export
from explorer.frame.picker import axes_of, pick_attention
from explorer.memory import shelf
from explorer.memory.passes import Shown
from explorer.sentences import recipe
from models.recording import Attention, Recording


@dataclass(frozen=True, eq=False)
class Subject:
    """One attention on screen. It is made anew in every run and nowhere kept."""

    source: Shown
    recording: Recording
    attention: Attention
    axes: matrices.Axes

    @property
    def across(self) -> bool:
        """True where rows and columns are two texts."""
        return self.attention.query != self.attention.key

    def kept(self, what: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        """Something computed of the attention, kept beside its recording."""
        return shelf.derived(self.recording, (self.attention.name, *what), make)

    def numbers(self, what: str, needs: tuple[str, ...], *lines: str) -> None:
        """What lines of Python give of this attention, which is `of` in them, and `axes` what its
        rows and columns are called."""
        needs = ("explorer.analysis import attention", *needs)
        export.numbers(what, (self.source,), needs, (*self._named, *lines))

    def more(self, needs: tuple[str, ...], *lines: str) -> None:
        """The same behind the lines that make the page's file."""
        needs = ("explorer.analysis import attention", *needs)
        export.more(needs, *self._named, *lines)

    @property
    def _named(self) -> list[str]:
        at = self.recording.attention.index(self.attention)
        return [f"of = recording.attention[{at}]", *recipe.axes_of(self.across)]

    def name(self, *what: Hashable) -> str:
        """The name of a picture: equal causes, equal name."""
        return shelf.name_of(self.recording, self.attention.name, *what)

    def picture(self, title: str, *lines: str, file: str, what: tuple[Hashable, ...]) -> Picture:
        """How a picture is called. lines: what it shows; file: how its files are told from
        others."""
        return Picture(title, self.caption(*lines), self.file(file), self.name(*what))

    def caption(self, *lines: str, of: str = "") -> tuple[str, ...]:
        """What a figure must say of model and text; `of`: what else of the attention is shown."""
        shown = f"{self.attention.name}-attention{of}"
        given = self.source.target
        own = "the model’s own" + (", unedited" if self.recording.edits else "")
        whose = "as typed" if isinstance(given, str) else own
        return caption(self.recording, *lines, of=shown, target=f"Target ({whose})")

    def file(self, *parts: str) -> str:
        """What a file is called, without its ending."""
        several = self.attention.name.split() if len(self.recording.attention) > 1 else ()
        return "-".join(("headlight", self.recording.model.name, *several, *filter(None, parts)))


def subject(source: Shown) -> Subject:
    """The attention that is chosen, with the control that chooses it where there are several."""
    recording = source.recording()
    attention = pick_attention(recording)
    return Subject(source, recording, attention, axes_of(recording, attention))
