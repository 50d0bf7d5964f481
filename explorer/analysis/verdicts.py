"""Claims, and the verdicts on them.

The verdict compares a claim's measure with the claim's tolerance and nothing else: a claim by
construction depends on the architecture and not on the text, one that is true of random weights not
on training. A claim about learned behaviour must also differ from the same number of the same model
with its weights permuted (`chance`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from explorer.analysis.measure import (
    REASONS,
    Measure,
    MeasureContext,
    TooShort,
    Untestable,
    require_count,
)
from explorer.figures.formatting import fill, number, with_unit

HOLDS, FAILS = "holds", "does not hold here"
SHORT, UNTESTABLE = "too short to tell", "cannot be tested here"
VERDICTS = (FAILS, HOLDS, SHORT, UNTESTABLE)
CONSTRUCTION, RANDOM, MEASURED = "by construction", "true of random weights", "measured here"
KINDS = (MEASURED, RANDOM, CONSTRUCTION)
AT_MOST, AT_LEAST = "at most", "at least"
TEXT, MODEL = "text", "model"


@dataclass(frozen=True)
class Claim:
    """One statement of a lecture note, in our words, and its test.

    note: a name of the sentences' NOTES; kind: one of KINDS; how: the measure, in words; formula:
    that of the number; noun: follows the number and its unit; bound and tolerance: the claim holds
    where the number is `bound` the tolerance; times or more: for a claim measured here, the
    required distance beyond chance; unit follows the number; page: the tab of the app that shows
    it, with its choices as in an address; why: the reason for the number, a template of the
    measure's slots; also: what stands in its {also}, by the measure's variant; parts: templates of
    a small table; remark: where the note is loose or wrong; because: why a claim that is not
    measured here follows, and when it can fail; needs: TEXT, or MODEL where the text plays no part;
    slow: it takes passes of its own; concept: the view of the tab Concepts that it is about, where
    another tab shows it.

    Raises ValueError for a kind that does not exist, a claim measured here without a distance
    beyond chance, another without a reason."""

    id: str
    note: str
    kind: str
    statement: str
    how: str
    formula: str
    noun: str
    bound: str
    tolerance: float
    page: str
    why: str
    measure: Callable[[MeasureContext], Measure]
    also: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[tuple[str, str], ...] = ()
    times: float = 0.0
    more: float = 0.0
    unit: str = ""
    remark: str = ""
    because: str = ""
    needs: str = TEXT
    slow: bool = False
    concept: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.bound not in (AT_MOST, AT_LEAST):
            raise ValueError(f"{self.id}: no such kind or bound")
        if self.kind == MEASURED and not (self.times > 1) ^ (self.more > 0):
            raise ValueError(f"{self.id}: it is measured, so it must say how far beyond chance")
        if self.kind != MEASURED and not self.because:
            raise ValueError(f"{self.id}: it must say why it holds")

    @property
    def rule(self) -> str:
        """The tolerance as a person reads it: "at most 10⁻⁵"."""
        return f"{self.bound} {with_unit(self.tolerance, self.unit)}"

    @property
    def margin(self) -> str:
        """The required distance beyond chance, in words."""
        high = self.bound == AT_LEAST
        if self.times:
            return f"{number(self.times)} times {'as large as' if high else 'smaller than'}"
        by = (
            f"{100 * self.more:.3g} points" if self.unit == "%" else with_unit(self.more, self.unit)
        )
        return f"{by} {'above' if high else 'below'}"

    def required_bound(self, chance: float) -> float:
        """The bound that the number must reach: the tolerance, or what lies far enough beyond
        chance where that is stricter."""
        if self.bound == AT_LEAST:
            return max(self.tolerance, self.times * chance if self.times else chance + self.more)
        return min(self.tolerance, chance / self.times if self.times else chance - self.more)

    def text(self, measure: Measure) -> str:
        """The number as it is written."""
        return measure.text or with_unit(measure.value, self.unit)

    def reason(self, measure: Measure) -> str:
        """The reason for the number, in words."""
        also = self.also.get(measure.variant, "")
        return measure.fill(self.why.replace("{also}", also)).strip()

    def table(self, measure: Measure) -> tuple[tuple[str, str], ...]:
        """The number's parts as (name, value)."""
        rows = ((name, fill("{part}", {"part": part})) for name, part in measure.rows)
        return (*((measure.fill(name), measure.fill(part)) for name, part in self.parts), *rows)


@dataclass(frozen=True)
class Verdict:
    """Result of testing a claim: the verdict, one of VERDICTS, the number (None where there is
    none), the reason and the parts.

    chance and by_chance: the same number with permuted weights, of a claim measured here; bound:
    the limit that the number was compared with."""

    verdict: str
    value: float | None
    value_text: str
    why: str
    rows: tuple[tuple[str, str], ...] = ()
    bound: float | None = None
    chance: float | None = None
    by_chance: str = ""


def evaluate_claim(claim: Claim, context: MeasureContext) -> Verdict:
    """The verdict on a claim. A number that does not exist (NaN) decides nothing."""
    try:
        _require_text(claim, context)
        measure, permuted_context = _measure(claim, context), context.permuted
        del context  # its recordings are as large as those of permuted weights
        permuted = _measure_permuted(claim, permuted_context)
    except TooShort as reason:
        return Verdict(SHORT, None, "–", str(reason))
    except Untestable as reason:
        return Verdict(UNTESTABLE, None, "–", str(reason))
    except (LookupError, NotImplementedError, ValueError, ZeroDivisionError):
        # The error's own words are a programmer's.
        return Verdict(UNTESTABLE, None, "–", REASONS("lacks"))
    bound = claim.tolerance if permuted is None else claim.required_bound(permuted.value)
    holds = measure.value <= bound if claim.bound == AT_MOST else measure.value >= bound
    if permuted is not None and measure.value == permuted.value:
        holds = False  # what chance gives exactly is not beyond it
    return Verdict(
        HOLDS if holds else FAILS,
        measure.value,
        claim.text(measure),
        claim.reason(measure),
        claim.table(measure),
        bound,
        None if permuted is None else permuted.value,
        "" if permuted is None else claim.text(permuted),
    )


def _require_text(claim: Claim, context: MeasureContext) -> None:
    """Raises Untestable where there is no text, and TooShort where there is too little of it."""
    first = context.recording.streams[0]
    n = int((~first.special).sum())
    if not n:
        raise Untestable(REASONS("no_text"))
    if claim.needs == TEXT:
        require_count(n, "tokens of text")


def _measure(claim: Claim, context: MeasureContext) -> Measure:
    measure = claim.measure(_with_reader_errors(context))
    if np.isnan(measure.value):
        raise Untestable(REASONS("no_number"))
    return measure


def _measure_permuted(
    claim: Claim, permuted: Callable[[], MeasureContext] | None
) -> Measure | None:
    """The number with permuted weights, for a claim measured here. Raises Untestable where there is
    none: alone it decides nothing."""
    if claim.kind != MEASURED:
        return None
    if permuted is None:
        raise Untestable(REASONS("no_permuted"))
    try:
        return _measure(claim, permuted())
    except ValueError as error:
        why = str(error).rstrip(".")
        raise Untestable(REASONS("no_permuted_since", why=why)) from error


def _with_reader_errors(context: MeasureContext) -> MeasureContext:
    """The same, with what the model refuses as a reason for the reader: those errors are written
    for people, others are not."""

    def with_reader_error(call: Callable) -> Callable:
        def wrapper(*arguments: Any) -> Any:
            try:
                return call(*arguments)
            except ValueError as error:
                raise Untestable(REASONS("lacks_since", why=str(error).rstrip("."))) from error

        return wrapper

    calls: dict[str, Any] = {
        name: with_reader_error(getattr(context, name)) for name in _MODEL_CALLS
    }
    return context.replaced(**calls)


_MODEL_CALLS = (
    "rerun",
    "norms",
    "outputs",
    "jacobian",
    "gradients",
    "lens",
    "logits",
    "embeddings",
    "stepwise",
    "depth",
    "without_norm",
)
