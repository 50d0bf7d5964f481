"""Claims, the context they are tested in, and their verdicts.

A claim's measure takes a `ClaimContext` and gives one number with the reason for it. The verdict
compares that number with the claim's tolerance and nothing else: a claim by construction depends on
the architecture and not on the text, one that is true of random weights not on training. A claim
about learned behaviour must also differ from the same number of the same model with its weights
permuted (`chance`). Where a text or a model does not have what is needed, a measure raises
`Untestable` with a message for the reader; `TooShort` where a longer text would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.analysis.formatting import plural, power
from models.recording import Attention, Recording, Stream
from models.results import Lens

HOLDS, FAILS = "holds", "does not hold here"
SHORT, UNTESTABLE = "too short to tell", "cannot be tested here"
VERDICTS = (FAILS, HOLDS, SHORT, UNTESTABLE)
CONSTRUCTION, RANDOM, MEASURED = "by construction", "true of random weights", "measured here"
KINDS = (MEASURED, RANDOM, CONSTRUCTION)
AT_MOST, AT_LEAST = "at most", "at least"
TEXT, MODEL = "text", "model"
LACKS = "This model or text does not offer what the test needs"
NO_QKV = (
    "This model computes attention in its own code, which returns only the weights, without "
    "the scores, queries, keys and values they are made of."
)
NO_CHANCE = "There is no copy of this model with permuted weights to compare with"
MOST_ROWS = 48  # of a long text that are looked at where every pair of rows would take too long
FEWEST = 4  # rows, tokens or words on which a verdict rests; fewer decide nothing
N_TRIALS = 4  # tokens that are exchanged, one after another, where each takes a pass of its own
WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}


class Untestable(Exception):
    """A claim that this text or model cannot decide; the message says why."""


class TooShort(Untestable):
    """A claim that a longer text would decide; the message says how long."""


@dataclass(frozen=True)
class Measurement:
    """A number, the reason for it, and its parts as (name, value) for a small table; `value_text`:
    the number in words, where figures do not say it."""

    value: float
    why: str
    rows: tuple[tuple[str, str], ...] = ()
    value_text: str = ""


@dataclass(frozen=True)
class Claim:
    """One statement of a lecture note, in our words, and its test.

    note: a name of the sentences' NOTES; kind: one of KINDS; how: the measure, in words; formula:
    that of the number; noun: follows the number and its unit; bound and tolerance: the claim holds
    where the number is `bound` the tolerance; times or more: for a claim measured here, the
    required distance beyond chance; unit follows the number; page: the tab of the app that shows
    it, with its choices as in an address; remark: where the note is loose or wrong; because: why a
    claim that is not measured here follows, and when it can fail; needs: TEXT, or MODEL where the
    text plays no part; slow: it takes passes of its own.

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
    measure: Callable[[ClaimContext], Measurement]
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


def gaussian(rows: int, columns: int) -> np.ndarray:
    """Independent numbers of mean 0 and variance 1, the same ones each time: (row, column)."""
    return np.random.default_rng((rows, columns)).standard_normal((rows, columns))


@dataclass(frozen=True, eq=False)
class ClaimContext:
    """Context of a test: the recording on screen, and functions that compute more with its model.

    again(edits, text, target): another recording; `edits` in one line as `models.edits.to_line`
    writes them, text "" for the same one, target ids of a translator's decoder, None for those it
    has here. norms(stream), outputs(), jacobian(stream, token, site), highway(stream, token),
    lens(stream), logits(stream, token), embeddings() and depth(stream) as in `models.registry`.
    stepwise(rows): the scores (id) after each of so many tokens, read one at a time; raises
    ValueError for a model that does not write. chance(): the same context for the same model with
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
    chance: Callable[[], ClaimContext] | None = None
    bare: Callable[[], Recording | None] = lambda: None
    draw: Callable[[int, int], np.ndarray] = gaussian


def evaluate_claim(claim: Claim, context: ClaimContext) -> Verdict:
    """The verdict on a claim. A number that does not exist (NaN) decides nothing."""
    try:
        _require_text(claim, context)
        measurement, chance = _measure(claim, context), context.chance
        del context  # its recordings are as large as those of permuted weights
        by_chance = _measure_permuted(claim, chance)
    except TooShort as reason:
        return Verdict(SHORT, None, "–", str(reason))
    except Untestable as reason:
        return Verdict(UNTESTABLE, None, "–", str(reason))
    except (LookupError, NotImplementedError, ValueError, ZeroDivisionError):
        # The error's own words are a programmer's.
        return Verdict(UNTESTABLE, None, "–", f"{LACKS}.")
    bound = claim.tolerance if by_chance is None else claim.required_bound(by_chance.value)
    holds = measurement.value <= bound if claim.bound == AT_MOST else measurement.value >= bound
    if by_chance is not None and measurement.value == by_chance.value:
        holds = False  # what chance gives exactly is not beyond it
    return Verdict(
        HOLDS if holds else FAILS,
        measurement.value,
        measurement.value_text or with_unit(measurement.value, claim.unit),
        measurement.why,
        measurement.rows,
        bound,
        None if by_chance is None else by_chance.value,
        "" if by_chance is None else by_chance.value_text or with_unit(by_chance.value, claim.unit),
    )


def _require_text(claim: Claim, context: ClaimContext) -> None:
    """Raises Untestable where there is no text, and TooShort where there is too little of it."""
    first = context.recording.streams[0]
    n = int((~first.special).sum())
    if not n:
        raise Untestable("There is no text yet: the model sees only its special tokens.")
    if claim.needs == TEXT and n < FEWEST:
        raise TooShort(
            f"This needs at least {WORDS[FEWEST]} tokens of text; there "
            f"{'is' if n == 1 else 'are'} {n}."
        )


def _measure(claim: Claim, context: ClaimContext) -> Measurement:
    measurement = claim.measure(_with_reader_errors(context))
    if np.isnan(measurement.value):
        raise Untestable("The number does not exist here: something it divides by is 0.")
    return measurement


def _measure_permuted(
    claim: Claim, chance: Callable[[], ClaimContext] | None
) -> Measurement | None:
    """The number with permuted weights, for a claim measured here. Raises Untestable where there is
    none: alone it decides nothing."""
    if claim.kind != MEASURED:
        return None
    if chance is None:
        raise Untestable(f"{NO_CHANCE}.")
    try:
        return _measure(claim, chance())
    except ValueError as error:
        raise Untestable(f"{NO_CHANCE}: {str(error).rstrip('.')}.") from error


def _with_reader_errors(context: ClaimContext) -> ClaimContext:
    """The same, with what the model refuses as a reason for the reader: those errors are written
    for people, others are not."""

    def with_reader_error(call: Callable) -> Callable:
        def wrapper(*arguments: Any) -> Any:
            try:
                return call(*arguments)
            except ValueError as error:
                raise Untestable(f"{LACKS}: {str(error).rstrip('.')}.") from error

        return wrapper

    calls: dict[str, Any] = {
        name: with_reader_error(getattr(context, name)) for name in _MODEL_CALLS
    }
    return replace(context, **calls)


_MODEL_CALLS = (
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


# What many tests of claims ask first: whether there are rows enough, which tokens are text, what
# the model shows.


def require_tokens(stream: Stream, n: int = FEWEST, what: str = "") -> None:
    """Raises TooShort for a stream of fewer than n tokens."""
    require_count(len(stream.tokens), f"tokens{what}", n)


def require_count(n: int, what: str, fewest: int = FEWEST) -> None:
    """Check the sample size of a verdict, such as "rows". Raises TooShort for fewer."""
    if n < fewest:
        raise TooShort(
            f"This needs at least {WORDS.get(fewest, fewest)} {what}; there "
            f"{'is' if n == 1 else 'are'} {n} here."
        )


def attention_with_qkv(recording: Recording) -> tuple[Attention, ...]:
    """The attentions, all with the scores, queries, keys and values they are made of. Raises
    Untestable where some are not known, or there is none."""
    if not recording.attention:
        raise Untestable("This model shows no attention.")
    if not all(each.opens for each in recording.attention):
        raise Untestable(NO_QKV)
    return recording.attention


def self_attention(recording: Recording, stream: str = "") -> tuple[Attention, ...]:
    """The self-attentions, of one stream where it is named. Raises Untestable where there is
    none."""
    matches = tuple(
        attention
        for attention in recording.attention
        if attention.query == attention.key and stream in ("", attention.query)
    )
    if not matches:
        raise Untestable("This model shows no self-attention.")
    return matches


def causal_attention(recording: Recording) -> tuple[Attention, Stream]:
    """The self-attention under a causal mask and its stream. Raises Untestable where there is
    none."""
    for attention in recording.attention:
        if attention.query == attention.key == "decoder":
            return attention, recording.stream("decoder")
    raise Untestable(
        "This model has no decoder: an encoder’s attention has no mask, and each token sees the "
        "later ones too."
    )


def output_stream(recording: Recording) -> Stream:
    """The stream that words are read from."""
    return recording.streams[-1]


def text_places(stream: Stream) -> np.ndarray:
    """The places of a stream's tokens that are text, all where none is."""
    places = np.flatnonzero(~stream.special)
    return places if len(places) else np.arange(len(stream.tokens))


def text_rows(stream: Stream) -> np.ndarray:
    """The places of a stream's tokens that are text. Raises TooShort for fewer than FEWEST."""
    places = text_places(stream)
    require_count(len(places), "tokens of text")
    return places


def subsample(places: np.ndarray, most: int = MOST_ROWS) -> np.ndarray:
    """At most so many of some places, evenly spread."""
    return (
        places
        if len(places) <= most
        else places[np.linspace(0, len(places) - 1, most).round().astype(int)]
    )


def rows_with_choice(attention: Attention) -> np.ndarray:
    """The queries that have more than one key to choose from, at most MOST_ROWS of them. Raises
    TooShort for fewer than FEWEST."""
    places = np.flatnonzero(attention.allowed.sum(axis=1) > 1)
    require_count(len(places), "tokens that have more than one token to look at")
    return subsample(places)


def softmax(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Softmax along the last axis over what is allowed, float64."""
    z = np.where(allowed, scores.astype(np.float64), -np.inf)
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def state_before(stream: Stream, layer: int, place: str) -> str:
    """The site of the state that a sub-layer adds to. Raises Untestable where the model does not
    show it."""
    for before, wrote, _ in stream.writes():
        if wrote == f"{layer}.{place}.wrote":
            return before
    raise Untestable(f"This model does not show what the {place} of layer {layer} wrote.")


def input_site(stream: Stream) -> str:
    """The site where token and position are together, or the token's alone in a model that adds no
    positions."""
    return "embed+pos" if "embed+pos" in stream.sites else stream.sites[0]


def filler_text(stream: Stream, place: int) -> str:
    """A text of as many words as a stream has tokens, of which none is the token at a place."""
    label = stream.tokens[place].strip().lower()
    return " ".join(["b" if label == "a" else "a"] * len(stream.tokens))


def embedding_factor(e: ClaimContext) -> float:
    """By what the rows of the readout are multiplied to give the embeddings as the stream begins
    with them.

    The tied readout has those rows themselves: the scores of two tokens differ by E (h - h'), the
    bias falls out. Raises Untestable where it reads anything else."""
    stream = e.recording.streams[-1]
    require_tokens(stream)
    last = len(stream.tokens) - 1
    scores = e.logits(stream.name, last).astype(np.float64) - e.logits(stream.name, 0)
    product = e.embeddings() @ (stream.resid[-1, last].astype(np.float64) - stream.resid[-1, 0])
    times = float(product @ product) / float(product @ scores) if product @ scores else np.nan
    if not np.abs(product - times * scores).max() <= 1e-3 * np.abs(product).max():
        raise Untestable(
            "This model’s readout is not its embedding matrix itself, so the two cannot be "
            "compared."
        )
    return times


def by_layer(name: str, values: Sequence[float]) -> tuple[tuple[str, str], ...]:
    """Values of layers as rows of a small table."""
    return tuple(
        (f"{name}layer {layer}", number(float(value))) for layer, value in enumerate(values)
    )


def factor(ratio: float) -> float:
    """By what factor a ratio is away from 1, either way: 1 and more."""
    return float("nan") if not ratio > 0 else max(ratio, 1 / ratio)


def sample_tokens(places: np.ndarray) -> list[int]:
    """The tokens that are exchanged, one after another: N_TRIALS of the places, evenly spread.
    Raises TooShort for fewer places than that."""
    require_count(len(places), "tokens to try", N_TRIALS)
    return [int(place) for place in subsample(places, N_TRIALS)]


def patch_edit(text: str, site: str, token: int) -> str:
    """The edit that takes one token's vector at a site from the run of another text, in one
    line."""
    return f"PatchSite:{text.replace(' ', '%20')}:{site.replace('+', '%2B')}:{token}:"
