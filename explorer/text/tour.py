"""Steps of the tour, read from tour.toml, each with its measure."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from explorer.analysis import tour as tour_analysis
from explorer.analysis.measure import Measure, MeasureContext
from explorer.text.formulas import shown
from explorer.text.templates import sentences


@dataclass(frozen=True)
class TourStep:
    """One step: its id, which is its address, what it is called and says, where more is seen, whose
    way goes by, what of the notes it shows, and its measure. also: what it says instead, by the
    measure's variant. formulas: ids of those beside it."""

    id: str
    title: str
    says: str
    more: str
    page: str
    kinds: tuple[str, ...]
    systems: tuple[str, ...]
    measure: Callable[[MeasureContext], Measure]
    address: tuple[tuple[str, str], ...] = ()
    also: tuple[tuple[str, str], ...] = ()
    formulas: tuple[str, ...] = ()


def read() -> tuple[TourStep, ...]:
    """All steps in the order of the file. Raises AttributeError where one has no measure."""
    with (Path(__file__).parent / "tour.toml").open("rb") as file:
        written = tomllib.load(file)["step"]
    return tuple(_step(**each) for each in written)


def _step(
    id: str,
    kinds: list[str],
    systems: list[str],
    choices: Mapping[str, str] = MappingProxyType({}),
    also: Mapping[str, str] = MappingProxyType({}),
    formulas: Sequence[str] = (),
    **more: str,
) -> TourStep:
    return TourStep(
        id,
        **more,
        kinds=tuple(kinds),
        systems=tuple(systems),
        measure=getattr(tour_analysis, id),
        address=tuple(choices.items()),
        also=tuple(also.items()),
        formulas=tuple(formulas),
    )


STEPS = read()


def way(kind: str) -> tuple[TourStep, ...]:
    """The steps of a model's way, by its kind."""
    return tuple(step for step in STEPS if kind in step.kinds)


def more(step: TourStep, context: MeasureContext) -> str:
    """A step's second paragraph, for this model."""
    heads, offers = context.recording.model.n_head, context.capabilities
    words = sentences("tour", "more")
    groups = heads // (offers.key_heads or heads)  # of heads that share a key and a value
    return step.more.format(
        norm=context.norm,
        matrices=words("shared" if groups > 1 else "own", heads=heads, groups=groups),
        unit=words("gated" if offers.gate else "plain"),
        turned=words("rotary") if offers.positions == "rotary" else "",
        turns=words("three" if len(context.recording.streams) > 1 else "two"),
    )


def sentence(step: TourStep, measure: Measure) -> tuple[str, str, str]:
    """A step's sentence with this text's words: the part before its number, the number, the part
    after it."""
    says = dict(step.also)[measure.variant] if measure.variant else step.says
    before, _, after = says.partition("{number}")
    return measure.fill(before), measure.text, measure.fill(after)


def formulas(step: TourStep, measure: Measure, context: MeasureContext) -> list[dict[str, Any]]:
    """A step's formulas for the browser, with the numbers of the place that it shows."""
    at: dict[str, Any] = {
        name: int(value) if value.isdecimal() else value for name, value in measure.address
    }
    if at.get("anatomy_cell"):
        at["token"], at["source"] = map(int, at["anatomy_cell"].split("."))
    else:
        at.pop("source", None)
    return shown(step.formulas, context, at)
