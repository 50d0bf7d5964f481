"""What a claim is, what it is tested with, and how a verdict is reached.

A claim's `measure` takes `Evidence` and gives one number with the reason for it; the verdict is that number against the claim's
tolerance and nothing else. Where a text or a model does not offer what is needed, `measure` raises `Untestable`, in words for the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.analysis.residual import power
from models.prediction import Lens
from models.recording import Attention, Recording, Stream

HOLDS, FAILS, UNTESTABLE = "holds", "does not hold here", "cannot be tested here"
VERDICTS = (HOLDS, FAILS, UNTESTABLE)
AT_MOST, AT_LEAST = "at most", "at least"
LACKS = "This model or text does not offer what the test needs"
CLOSED = "This model hands out its weights alone, without the scores, queries, keys and values they are made of."
MOST_ROWS = 48  # of a long text that are looked at where every pair of rows would take too long


class Untestable(Exception):
    """A claim that this text or model cannot decide; the message says why."""


@dataclass(frozen=True)
class Measured:
    """A number, why it is what it is, and the parts of it as (name, value) for a small table; `shown`: the number in words, where figures do not say it."""

    value: float
    why: str
    rows: tuple[tuple[str, str], ...] = ()
    shown: str = ""


@dataclass(frozen=True)
class Claim:
    """One statement of a lecture note, in our words, and its test.

    note: a name of `claims.NOTES`; how: what is measured, in words; formula: the number itself; bound and tolerance: the claim holds where
    the number is `bound` the tolerance; unit follows the number; page: the page of the app where one can see it, by its file's name;
    remark: where the note is loose or wrong.
    """

    id: str
    note: str
    statement: str
    how: str
    formula: str
    bound: str
    tolerance: float
    page: str
    measure: Callable[[Evidence], Measured]
    unit: str = ""
    remark: str = ""

    @property
    def rule(self) -> str:
        """The tolerance as a person reads it: "at most 10⁻⁵"."""
        return f"{self.bound} {with_unit(self.tolerance, self.unit)}"


@dataclass(frozen=True)
class Finding:
    """What became of a claim: the verdict, one of VERDICTS, the number (None where there is none), the reason and the parts."""

    verdict: str
    value: float | None
    shown: str
    why: str
    rows: tuple[tuple[str, str], ...] = ()


def gaussian(rows: int, columns: int) -> np.ndarray:
    """Independent numbers of mean 0 and variance 1, the same ones each time: (row, column)."""
    return np.random.default_rng((rows, columns)).standard_normal((rows, columns))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What claims are tested with: the recording on screen, and ways to ask its model for more.

    again(edits, text, target): another recording; `edits` in one line as `models.edits.to_line` writes them, text "" for the same one,
    target ids of a translator's decoder, None for those it has here. norms(stream), outputs(), jacobian(stream, token, site),
    highway(stream, token), lens(stream), logits(stream, token) and embeddings() as in `models.library`. stepwise(rows): the scores (id)
    after each of so many tokens, read one at a time; raises ValueError for a model that does not write. draw(rows, columns): random numbers.
    """

    recording: Recording
    again: Callable[[str, str, tuple[int, ...] | None], Recording]
    norms: Callable[[str], Mapping[str, tuple[np.ndarray, np.ndarray, float]]]
    outputs: Callable[[], Mapping[str, tuple[np.ndarray, np.ndarray]]]
    jacobian: Callable[[str, int, str], Any]
    highway: Callable[[str, int], Any]
    lens: Callable[[str], Lens]
    logits: Callable[[str, int], np.ndarray]
    embeddings: Callable[[], np.ndarray]
    stepwise: Callable[[int], Sequence[np.ndarray]]
    draw: Callable[[int, int], np.ndarray] = gaussian


def settle(claim: Claim, evidence: Evidence) -> Finding:
    """The verdict on a claim. A number that does not exist (NaN) decides nothing."""
    try:
        if evidence.recording.streams[0].special.all():
            raise Untestable("There is no text yet: the model sees only its special tokens.")
        found = claim.measure(_spoken(evidence))
        if np.isnan(found.value):
            raise Untestable("The number does not exist here: something it divides by is 0.")
    except Untestable as reason:
        return Finding(UNTESTABLE, None, "–", str(reason))
    except (LookupError, NotImplementedError, ValueError, ZeroDivisionError):
        return Finding(
            UNTESTABLE, None, "–", f"{LACKS}."
        )  # the error's own words are a programmer's
    holds = (
        found.value <= claim.tolerance if claim.bound == AT_MOST else found.value >= claim.tolerance
    )
    return Finding(
        HOLDS if holds else FAILS,
        found.value,
        found.shown or with_unit(found.value, claim.unit),
        found.why,
        found.rows,
    )


def _spoken(evidence: Evidence) -> Evidence:
    """The same, with what the model refuses as a reason for the reader: those errors are written for people, others are not."""

    def heard(ask: Callable) -> Callable:
        def asked(*what: Any) -> Any:
            try:
                return ask(*what)
            except ValueError as error:
                raise Untestable(f"{LACKS}: {str(error).rstrip('.')}.") from error

        return asked

    return replace(evidence, **{name: heard(getattr(evidence, name)) for name in _ASKED})


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
)


def number(value: float) -> str:
    """A number in three figures, very small and large ones as a power of ten; a dash for one that does not exist (NaN)."""
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return power(float(value)).removeprefix("1.00 × ")


def with_unit(value: float, unit: str) -> str:
    """A number with its unit; shares, whose unit is "%", as percentages."""
    if unit != "%":
        return number(value) + unit
    return f"{100 * value:.{4 if 0.99 <= value < 1 else 3}g}%"


# ---- what many tests ask first --------------------------------------------------------------------------------------


def at_least(stream: Stream, n: int, what: str = "") -> None:
    """Raises Untestable for a stream of fewer than n tokens."""
    if len(stream.tokens) < n:
        words = {2: "two", 3: "three", 4: "four", 5: "five"}.get(n, str(n))
        raise Untestable(
            f"This needs at least {words} tokens{what}; there {'is' if len(stream.tokens) == 1 else 'are'} {len(stream.tokens)}."
        )


def opened(recording: Recording) -> tuple[Attention, ...]:
    """The attentions, all with the scores, queries, keys and values they are made of. Raises Untestable where some are not known, or there is none."""
    if not recording.attention:
        raise Untestable("This model shows no attention.")
    if not all(each.opens for each in recording.attention):
        raise Untestable(CLOSED)
    return recording.attention


def own(recording: Recording, stream: str = "") -> tuple[Attention, ...]:
    """The self-attentions, of one stream where it is named. Raises Untestable where there is none."""
    found = tuple(
        each
        for each in recording.attention
        if each.query == each.key and stream in ("", each.query)
    )
    if not found:
        raise Untestable("This model shows no self-attention.")
    return found


def masked(recording: Recording) -> tuple[Attention, Stream]:
    """The self-attention under a causal mask and its stream. Raises Untestable where there is none."""
    for each in recording.attention:
        if each.query == each.key == "decoder":
            return each, recording.stream("decoder")
    raise Untestable(
        "This model has no decoder: an encoder’s attention has no mask, and each token sees the later ones too."
    )


def writer(recording: Recording) -> Stream:
    """The stream that words are read from."""
    return recording.streams[-1]


def text_places(stream: Stream) -> np.ndarray:
    """The places of a stream's tokens that are text, all where none is."""
    places = np.flatnonzero(~stream.special)
    return places if len(places) else np.arange(len(stream.tokens))


def few(places: np.ndarray, most: int = MOST_ROWS) -> np.ndarray:
    """At most so many of some places, evenly spread."""
    return (
        places
        if len(places) <= most
        else places[np.linspace(0, len(places) - 1, most).round().astype(int)]
    )


def choosing(attention: Attention) -> np.ndarray:
    """The queries that have more than one key to choose from, at most MOST_ROWS of them. Raises Untestable where there is none."""
    places = np.flatnonzero(attention.allowed.sum(axis=1) > 1)
    if not len(places):
        raise Untestable(
            "No token has more than one token to look at, so there is nothing to choose between."
        )
    return few(places)


def softmax(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Softmax along the last axis over what is allowed, float64."""
    z = np.where(allowed, scores.astype(np.float64), -np.inf)
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def state_before(stream: Stream, layer: int, place: str) -> str:
    """The site of the state that a sub-layer adds to. Raises Untestable where the model does not show it."""
    for before, wrote, _ in stream.writes():
        if wrote == f"{layer}.{place}.wrote":
            return before
    raise Untestable(f"This model does not show what the {place} of layer {layer} wrote.")


def beginning(stream: Stream) -> str:
    """The site where token and position are together, or the token's alone in a model that adds no positions."""
    return "embed+pos" if "embed+pos" in stream.sites else stream.sites[0]


def another(stream: Stream, place: int) -> str:
    """A text of as many words as a stream has tokens, of which none is the token at a place."""
    label = stream.tokens[place].strip().lower()
    return " ".join(["b" if label == "a" else "a"] * len(stream.tokens))


def embedding_factor(e: Evidence) -> float:
    """By what the rows of the readout are multiplied to give the embeddings as the stream begins with them.

    The tied readout has those rows themselves: the scores of two tokens differ by E (h - h'), the bias falls out. Raises Untestable where it
    reads anything else.
    """
    stream = e.recording.streams[-1]
    at_least(stream, 2)
    last = len(stream.tokens) - 1
    scores = e.logits(stream.name, last).astype(np.float64) - e.logits(stream.name, 0)
    product = e.embeddings() @ (stream.resid[-1, last].astype(np.float64) - stream.resid[-1, 0])
    times = float(product @ product) / float(product @ scores) if product @ scores else np.nan
    if not np.abs(product - times * scores).max() <= 1e-3 * np.abs(product).max():
        raise Untestable(
            "This model’s readout is not its embedding matrix itself, so the two cannot be compared."
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
