"""What the screens ask of model and text, in names alone, so that a button may keep it; arrays come
from the shelf each time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from explorer.analysis import positions
from explorer.analysis.caption import caption
from explorer.analysis.terminology import recording_norm_name
from explorer.state import cache, models
from explorer.state.cache import Run
from models.edits import WithoutPositions
from models.recording import Card, Recording, Stream


@dataclass(frozen=True)
class PositionSource:
    """A model, a text, and the stream that is looked at."""

    model: str
    text: str
    stream_name: str

    @property
    def plain(self) -> Recording:
        return cache.record(self.model, self.text)

    @property
    def card(self) -> Card:
        return self.plain.model

    @property
    def stream(self) -> Stream:
        return self.plain.stream(self.stream_name)

    @property
    def adds(self) -> str:
        """What the model adds for the positions, "sinusoids", "learned" or "none", measured on this
        text."""
        return positions.encoding_kind(self.stream)

    @property
    def within(self) -> str:
        """How a model that adds nothing brings positions into its attention, "" where it does
        not."""
        return str(models.capabilities(self.model).positions or "")

    @property
    def norm(self) -> str:
        """What the model's norms are called."""
        return recording_norm_name(self.plain, models.capabilities(self.model).rms)

    @property
    def target(self) -> str | None:
        """What the decoder of a translator reads in every pass that is compared: its translation of
        the text as it stands. None for other models."""
        return self.plain.target if self.plain.model.kind == "encoder-decoder" else None

    @property
    def without(self) -> tuple[WithoutPositions, ...]:
        """The edit that takes the positions away; none for a model that has none to take."""
        if self.within == "rotary" and WithoutPositions in models.capabilities(self.model).edits:
            return (WithoutPositions(),)
        added = cache.cached_for_recordings(
            self.model,
            "adds positions",
            lambda: positions.encoding_kind(cache.record(self.model, "Hi").streams[0]) != "none",
        )
        return (WithoutPositions(),) if added else ()

    def both(self) -> tuple[Recording, Recording]:
        """The text recorded with positions and without. Raises ValueError where they cannot be
        taken away."""
        return (
            cache.record(self.model, self.text, (), self.target),
            cache.record(self.model, self.text, self.without, self.target),
        )

    def learned(self) -> Any:
        """The table of positions that the model has learned, (position, d_model); of one that does
        not hand it out, the rows of this text."""
        table = models.position_table(self.model)
        return self.stream.at("pos.wrote") if table is None else table

    def table(self) -> Any:
        """The vectors of all positions that the model has, (position, d_model)."""
        if self.adds == "learned":
            return self.learned()
        return positions.table(self.card.n_positions, self.card.d_model)

    @property
    def table_line(self) -> str:
        """The line of Python that makes `table`, the vectors of all positions; of a model that does
        not hand out the table it learned, the rows of this text."""
        if self.adds != "learned":
            return f"table = positions.table({self.card.n_positions}, {self.card.d_model})"
        if models.position_table(self.model) is None:
            return f'table = recording.stream({self.stream_name!r}).at("pos.wrote")'
        return "table = model.model.embedding.position.detach().numpy()"

    @property
    def two(self) -> tuple[Run, Run]:
        """The runs with positions and without, by name."""
        return (
            Run(self.model, self.text, (), self.target),
            Run(self.model, self.text, self.without, self.target),
        )

    @property
    def shown(self) -> Run:
        """The run on screen, by name."""
        return Run(self.model, self.text)

    def caption(self, *more: str) -> tuple[str, ...]:
        """What a figure of this text must say when it stands alone."""
        return caption(self.plain, *more, subject=f"stream {self.stream_name}")

    def about_table(self, n: int) -> tuple[str, ...]:
        """What a figure of the learned table must say when it stands alone."""
        return (
            f"Headlight · model {self.model} (weights {self.card.fingerprint}) · its learned "
            f"table, positions 0 to {n - 1}, d_model "
            f"{self.card.d_model} · no text",
        )


def about_formula(n: int, d: int) -> tuple[str, ...]:
    """What a figure of the formula must say when it stands alone."""
    return (
        f"Headlight · sinusoids of the paper, d_model {d}, positions 0 to {n - 1} · no model and "
        "no text",
    )
