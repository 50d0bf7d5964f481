"""Steps of the tour, read from tour.toml, each with its computation."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from explorer.analysis.figures import StepResult
from explorer.analysis.terminology import ffn_formula
from explorer.analysis.tour import TourContext


@dataclass(frozen=True)
class TourStep:
    """One step: its id, which is its address, what it is called and says, where more is seen, whose
    way goes by, and what of the notes it shows. also: what it says instead, by `Shown.variant`."""

    id: str
    title: str
    says: str
    more: str
    page: str
    kinds: tuple[str, ...]
    systems: tuple[str, ...]
    address: tuple[tuple[str, str], ...] = ()
    also: tuple[tuple[str, str], ...] = ()


def read() -> tuple[TourStep, ...]:
    """All steps in the order of the file."""
    with (Path(__file__).parent / "tour.toml").open("rb") as file:
        written = tomllib.load(file)["step"]
    return tuple(_step(**each) for each in written)


def _step(
    kinds: list[str],
    systems: list[str],
    choices: dict[str, str] | None = None,
    also: dict[str, str] | None = None,
    **more: str,
) -> TourStep:
    return TourStep(
        **more,
        kinds=tuple(kinds),
        systems=tuple(systems),
        address=tuple((choices or {}).items()),
        also=tuple((also or {}).items()),
    )


STEPS = read()


def way(kind: str) -> tuple[TourStep, ...]:
    """The steps of a model's way, by its kind."""
    return tuple(step for step in STEPS if kind in step.kinds)


def more(step: TourStep, seen: TourContext) -> str:
    """A step's second paragraph, for this model."""
    heads = seen.recording.model.n_head
    matrices = (
        f"Each of {heads} heads has its own small W_Q, and {heads // seen.key_heads} of them share "
        "a W_K and a W_V"
        if seen.key_heads and seen.key_heads < heads
        else "Each head has its own small W_Q, W_K, W_V"
    )
    return step.more.format(
        norm=seen.norm,
        matrices=matrices,
        ffn=ffn_formula(seen.gate, seen.ffn_biases),
        unit="A unit and its gate determine" if seen.gate else "A unit’s row of W₁ determines",
        turned="Rotary positions then rotate q and k by their positions. "
        if seen.has_rotary_positions
        else "",
        turns="three times, by its own text, by the source and by the FFN"
        if len(seen.recording.streams) > 1
        else "twice, by the context and by the FFN",
    )


def sentence(step: TourStep, result: StepResult) -> tuple[str, str, str]:
    """A step's sentence with this text's words: the part before its number, the number, the part
    after it."""
    says = dict(step.also)[result.variant] if result.variant else step.says
    before, _, after = says.partition("{number}")
    return before.format(**result.words), result.number, after.format(**result.words)
