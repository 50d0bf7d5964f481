"""What a claim is, what it is tested with, and how a verdict is reached.

A claim's measure takes `Evidence` and gives one number with the reason for it. The verdict is that
number against the claim's tolerance and nothing else: of a claim by construction it hangs on how
the model is built and not on the text, of one true of random weights on what training left of it.
One on what was learned must also lie beyond the same number of the same model with its weights
permuted (`chance`).
Where a text or a model does not offer what is needed, a measure raises `Untestable`, in words for
the reader; `TooShort` where a longer text would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.analysis.numbers import plural, power
from models.prediction import Lens
from models.recording import Recording

HOLDS, FAILS = "holds", "does not hold here"
SHORT, UNTESTABLE = "too short to tell", "cannot be tested here"
VERDICTS = (FAILS, HOLDS, SHORT, UNTESTABLE)
CONSTRUCTION, RANDOM, MEASURED = "by construction", "true of random weights", "measured here"
KINDS = (MEASURED, RANDOM, CONSTRUCTION)
AT_MOST, AT_LEAST = "at most", "at least"
TEXT, MODEL = "text", "model"
LACKS = "This model or text does not offer what the test needs"
CLOSED = (
    "This model computes attention inside its own code, which hands out the weights alone, without "
    "the scores, queries, keys and values they are made of."
)
NO_CHANCE = "There is no copy of this model with permuted weights to compare with"
MOST_ROWS = 48  # of a long text that are looked at where every pair of rows would take too long
FEWEST = 4  # rows, tokens or words on which a verdict rests; fewer decide nothing
TRIED = 4  # tokens that are exchanged, one after another, where each takes a pass of its own
WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}


class Untestable(Exception):
    """A claim that this text or model cannot decide; the message says why."""


class TooShort(Untestable):
    """A claim that a longer text would decide; the message says how long."""


@dataclass(frozen=True)
class Measured:
    """A number, why it is what it is, and the parts of it as (name, value) for a small table;
    `shown`: the number in words, where figures do not say it."""

    value: float
    why: str
    rows: tuple[tuple[str, str], ...] = ()
    shown: str = ""


@dataclass(frozen=True)
class Claim:
    """One statement of a lecture note, in our words, and its test.

    note: a name of the sentences' NOTES; kind: one of KINDS; how: what is measured, in words;
    formula: the number itself; noun: what it is, after its unit; bound and tolerance: the claim
    holds where the number is `bound` the tolerance; times or more: for a claim measured here, how
    far beyond chance it must lie too; unit follows the number; page: the page of the app where one
    can see it, by its file's name; remark: where the note is loose or wrong; because: why a claim
    that is not measured here follows, and when it can fail; needs: TEXT, or MODEL where the text
    plays no part; slow: it takes passes of its own.

    Raises ValueError for a kind that does not exist, a claim measured here that says nothing of
    chance, another that gives no reason."""

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
    measure: Callable[[Evidence], Measured]
    times: float = 0.0
    more: float = 0.0
    unit: str = ""
    remark: str = ""
    because: str = ""
    needs: str = TEXT
    slow: bool = False

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
        """How far beyond chance it must lie, as a person reads it."""
        high = self.bound == AT_LEAST
        if self.times:
            return f"{number(self.times)} times {'as large as' if high else 'smaller than'}"
        by = (
            f"{100 * self.more:.3g} points" if self.unit == "%" else with_unit(self.more, self.unit)
        )
        return f"{by} {'above' if high else 'below'}"

    def beyond(self, chance: float) -> float:
        """The bound that the number must reach: the tolerance, or what lies far enough beyond
        chance where that is stricter."""
        if self.bound == AT_LEAST:
            return max(self.tolerance, self.times * chance if self.times else chance + self.more)
        return min(self.tolerance, chance / self.times if self.times else chance - self.more)


@dataclass(frozen=True)
class Finding:
    """What became of a claim: the verdict, one of VERDICTS, the number (None where there is none),
    the reason and the parts.

    chance and by_chance: the same number with permuted weights, of a claim measured here; bound:
    what the number was held against."""

    verdict: str
    value: float | None
    shown: str
    why: str
    rows: tuple[tuple[str, str], ...] = ()
    bound: float | None = None
    chance: float | None = None
    by_chance: str = ""


def gaussian(rows: int, columns: int) -> np.ndarray:
    """Independent numbers of mean 0 and variance 1, the same ones each time: (row, column)."""
    return np.random.default_rng((rows, columns)).standard_normal((rows, columns))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What claims are tested with: the recording on screen, and ways to ask its model for more.

    again(edits, text, target): another recording; `edits` in one line as `models.edits.to_line`
    writes them, text "" for the same one, target ids of a translator's decoder, None for those it
    has here. norms(stream), outputs(), jacobian(stream, token, site), highway(stream, token),
    lens(stream), logits(stream, token), embeddings() and depth(stream) as in `models.library`.
    stepwise(rows): the scores (id) after each of so many tokens, read one at a time; raises
    ValueError for a model that does not write. chance(): the same evidence from the same model with
    permuted weights. bare(): the recording of the model trained without LayerNorm beside this one,
    None where there is none. draw(rows, columns): random numbers."""

    recording: Recording
    again: Callable[[str, str, tuple[int, ...] | None], Recording]
    norms: Callable[[str], Mapping[str, tuple[np.ndarray, np.ndarray, float, bool]]]
    outputs: Callable[[], Mapping[str, tuple[np.ndarray, np.ndarray]]]
    jacobian: Callable[[str, int, str], Any]
    highway: Callable[[str, int], Any]
    lens: Callable[[str], Lens]
    logits: Callable[[str, int], np.ndarray]
    embeddings: Callable[[], np.ndarray]
    stepwise: Callable[[int], Sequence[np.ndarray]]
    depth: Callable[[str], Any]
    chance: Callable[[], Evidence] | None = None
    bare: Callable[[], Recording | None] = lambda: None
    draw: Callable[[int, int], np.ndarray] = gaussian


def settle(claim: Claim, evidence: Evidence) -> Finding:
    """The verdict on a claim. A number that does not exist (NaN) decides nothing."""
    try:
        _enough(claim, evidence)
        found, chance = _measured(claim, evidence), evidence.chance
        del evidence  # its recordings are as large as those of permuted weights
        by_chance = _by_chance(claim, chance)
    except TooShort as reason:
        return Finding(SHORT, None, "–", str(reason))
    except Untestable as reason:
        return Finding(UNTESTABLE, None, "–", str(reason))
    except (LookupError, NotImplementedError, ValueError, ZeroDivisionError):
        # The error's own words are a programmer's.
        return Finding(UNTESTABLE, None, "–", f"{LACKS}.")
    bound = claim.tolerance if by_chance is None else claim.beyond(by_chance.value)
    holds = found.value <= bound if claim.bound == AT_MOST else found.value >= bound
    if by_chance is not None and found.value == by_chance.value:
        holds = False  # what chance gives exactly is not beyond it
    return Finding(
        HOLDS if holds else FAILS,
        found.value,
        found.shown or with_unit(found.value, claim.unit),
        found.why,
        found.rows,
        bound,
        None if by_chance is None else by_chance.value,
        "" if by_chance is None else by_chance.shown or with_unit(by_chance.value, claim.unit),
    )


def _enough(claim: Claim, evidence: Evidence) -> None:
    """Raises Untestable where there is no text, and TooShort where there is too little of it."""
    first = evidence.recording.streams[0]
    n = int((~first.special).sum())
    if not n:
        raise Untestable("There is no text yet: the model sees only its special tokens.")
    if claim.needs == TEXT and n < FEWEST:
        raise TooShort(
            f"This needs at least {WORDS[FEWEST]} tokens of text; there "
            f"{'is' if n == 1 else 'are'} {n}."
        )


def _measured(claim: Claim, evidence: Evidence) -> Measured:
    found = claim.measure(_spoken(evidence))
    if np.isnan(found.value):
        raise Untestable("The number does not exist here: something it divides by is 0.")
    return found


def _by_chance(claim: Claim, chance: Callable[[], Evidence] | None) -> Measured | None:
    """The number with permuted weights, for a claim measured here. Raises Untestable where there is
    none: alone it decides nothing."""
    if claim.kind != MEASURED:
        return None
    if chance is None:
        raise Untestable(f"{NO_CHANCE}.")
    try:
        return _measured(claim, chance())
    except ValueError as error:
        raise Untestable(f"{NO_CHANCE}: {str(error).rstrip('.')}.") from error


def _spoken(evidence: Evidence) -> Evidence:
    """The same, with what the model refuses as a reason for the reader: those errors are written
    for people, others are not."""

    def heard(ask: Callable) -> Callable:
        def asked(*what: Any) -> Any:
            try:
                return ask(*what)
            except ValueError as error:
                raise Untestable(f"{LACKS}: {str(error).rstrip('.')}.") from error

        return asked

    doors: dict[str, Any] = {name: heard(getattr(evidence, name)) for name in _ASKED}
    return replace(evidence, **doors)


_ASKED = (
    "again",
    "norms",
    "outputs",
    "jacobian",
    "highway",
    "lens",
    "logits",
    "embeddings",
    "stepwise",
    "depth",
    "bare",
)


def number(value: float) -> str:
    """A number in three figures, very small and large ones as a power of ten; a dash for one that
    does not exist (NaN)."""
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return power(float(value)).removeprefix("1.00 × ")


def with_unit(value: float, unit: str) -> str:
    """A number with its unit; shares, whose unit is "%", as percentages."""
    if unit == " nats":
        return plural(number(value), "nat")
    if unit != "%":
        return number(value) + unit
    return f"{100 * value:.{4 if 0.99 <= value < 1 else 3}g}%"


def about(recording: Recording) -> tuple[str, ...]:
    """What a file of verdicts must say when it stands alone: model, weights, edits, text."""
    model = recording.model
    return (
        f"Headlight · model {model.name} ({model.kind}, {model.n_layer} layers of {model.n_head} "
        f"heads, {model.n_parameters:,} parameters, weights {model.fingerprint}, {model.weights}) "
        f"· edits: {', '.join(map(str, recording.edits)) or 'none'}",
        "Text: " + " ".join(recording.text.split()),
        *(("Output: " + " ".join(recording.target.split()),) if recording.target else ()),
    )
