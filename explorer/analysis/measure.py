"""A measured number and the words it is read in, the context it is measured in, and what many
measurements ask first: whether there are rows enough, which tokens are text, what the model shows.

A measure that a text or a model has nothing for raises `Untestable` with a message for the reader;
`TooShort` where a longer text would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from explorer.analysis import gradients, logit_lens, residual
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.terminology import recording_norm_name
from explorer.figures.formatting import fill
from explorer.figures.kinds import Figure
from explorer.wording.templates import sentences
from models import model_names
from models.contract.capabilities import Capabilities
from models.contract.edits import Edit, HideToken, from_line
from models.contract.recording import Attention, Recording, Stream
from models.contract.results import (
    FFNActivations,
    HeadGradients,
    Jacobian,
    Lens,
    Norm,
    ResidualGradients,
)
from models.runtime.caching import CachedModel, depth_gradients, in_slot, loaded, memo
from models.runtime.run import Run

REASONS = sentences("measure", "untestable")

LACKS, NO_QKV = REASONS("lacks"), REASONS("no_qkv")
MOST_ROWS = 48  # of a long text that are looked at where every pair of rows would take too long
FEWEST = 4  # rows, tokens or words on which a verdict rests; fewer decide nothing
N_TRIALS = 4  # tokens that are exchanged, one after another, where each takes a pass of its own
WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}


class Untestable(Exception):
    """A measure that this text or model has nothing for; the message says why."""


class TooShort(Untestable):
    """A measure that a longer text would have; the message says how long."""


@dataclass(frozen=True, eq=False)
class Measure:
    """A measured number, and what its readers say and show of it.

    value: the number; text: the same as it is written, "" where the reader's unit says how. slots:
    the words and numbers that sentences name. variant: which of a reader's sentences is true here,
    "" for the first. rows: parts as (name, value) for a small table. figures: the pictures side by
    side. address: the choices that show the same on its page. Raises TypeError for a slot that is
    neither a word nor a number of Python."""

    value: float
    text: str = ""
    slots: Mapping[str, object] = field(default_factory=dict)
    variant: str = ""
    rows: tuple[tuple[str, object], ...] = ()
    figures: tuple[Figure, ...] = ()
    address: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name, slot in (*self.slots.items(), *self.rows):
            if not isinstance(slot, str | int | float):
                raise TypeError(f"{name} is a {type(slot).__name__}")

    def fill(self, template: str) -> str:
        """A sentence with the slots in it; `value` is the number, `number` its text."""
        return fill(template, {"value": self.value, "number": self.text, **self.slots})


def gaussian(rows: int, columns: int) -> np.ndarray:
    """Independent numbers of mean 0 and variance 1, the same ones each time: (row, column)."""
    return np.random.default_rng((rows, columns)).standard_normal((rows, columns))


NO_NORM = "-no-norm"  # behind a model's name: trained without LayerNorm from the first step on


@dataclass(frozen=True, eq=False)
class MeasureContext(RecordingFacts):
    """A run that measures are taken of: the facts of its recording, and what its model computes of
    it.

    A measure holds it as long as it runs, and nothing keeps it. draw(rows, columns): random
    numbers."""

    run: Run
    model: CachedModel
    draw: Callable[[int, int], np.ndarray] = gaussian

    @classmethod
    def of(cls, run: Run) -> MeasureContext:
        """The context of a run."""
        return cls(run.recording(), run, run.loaded)

    def replaced(self, **members: Any) -> MeasureContext:
        """The same with some members replaced, such as `logits` or `recording`."""
        other = copy(self)
        for name, member in members.items():
            object.__setattr__(other, name, member)
        return other

    @cached_property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model."""
        return self.model.capabilities

    @cached_property
    def norm(self) -> str:
        """The name of the model's norms, LayerNorm or RMSNorm."""
        return recording_norm_name(self.recording, self.capabilities.rms)

    @cached_property
    def own_target(self) -> tuple[int, ...] | None:
        """The ids that the decoder of a translator reads here; None for other models."""
        streams = self.recording.streams
        return tuple(map(int, streams[-1].ids[1:])) if len(streams) > 1 else None

    def rerun(self, edits: str, text: str, target: tuple[int, ...] | None) -> Recording:
        """Another recording by the model, not kept. edits: in one line as
        `models.contract.edits.to_line` writes them, beside those of the run; text: "" for the same
        one; target: ids that a translator's decoder reads, None for those it has here."""
        own = self.own_target if target is None and not text else target
        edited = (*self.run.edits, *from_line(edits))
        target = own if self.own_target is not None else None
        return self.model.record_once(text or self.run.text_or_ids, edited, target)

    @cached_property
    def permuted(self) -> Callable[[], MeasureContext] | None:
        """Makes the same context of the model with its weights in random order; it holds nothing of
        this one. None where there is no such model."""
        if self.run.model.startswith(model_names.MINE_PREFIX):
            return None
        return partial(MeasureContext.of, self.run.permuted())

    def without_norm(self) -> Recording | None:
        """The recording of the model trained without LayerNorm beside this one, None where there is
        none."""
        name = f"{self.run.model}{NO_NORM}"
        if name not in model_names.names():
            return None
        return loaded(name).record(self.run.text_or_ids, target=self.own_target)

    def norms(self, stream: str) -> Mapping[str, Norm]:
        """The norms of a stream as they are in the recording, see `Model.norms`."""
        return self.model.norms(stream, self.recording.edits)

    def outputs(self) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
        """W_O and its bias by attention, see `Model.outputs`."""
        return self.model.outputs()

    def embeddings(self, ids: np.ndarray | None = None) -> np.ndarray:
        """Every word's embedding as the stream begins with it, (id, d_model); those of some `ids`
        where they are given."""
        return self.model.embeddings(ids)

    def logits(self, stream: str, token: int) -> np.ndarray:
        """Scores over the vocabulary, (id), at one token of a stream."""
        return self.model.logits(self.recording, stream, token)

    def lens(self, recording: Recording, stream: str) -> Lens:
        """The logit lens on a stream of a recording by the model."""
        return self.model.lens(recording, stream)

    def gradients(self, stream: str, token: int) -> ResidualGradients:
        """The gradient at a token back to every state of a stream, see `Model.gradients`."""
        return self.model.gradients(self.recording, stream, token)

    @cached_property
    def targets(self) -> tuple[tuple[int, int], ...]:
        """The targets of the text's loss, (token of the last stream, id): of a model that goes on
        the token after each; of another the words that edits hide, or else all words as they
        stand."""
        stream = self.recording.streams[-1]
        if logit_lens.predicts_next(self.recording):
            return tuple(enumerate(map(int, stream.ids[1:])))
        seen = tuple(each for each in self.run.edits if not isinstance(each, HideToken))
        plain = stream
        if seen != self.run.edits:
            plain = self.model.record_once(self.run.text_or_ids, seen, None).streams[-1]
        places = np.flatnonzero(plain.ids != stream.ids)
        places = places if len(places) else np.flatnonzero(~plain.special)
        return tuple((int(at), int(plain.ids[at])) for at in places)

    def head_gradients(self, attention: str, layer: int) -> HeadGradients:
        """The gradient of the text's loss at an attention's layer, see `Model.head_gradients`."""
        return self.model.head_gradients(self.recording, attention, layer, self.targets)

    def jacobian(self, stream: str, token: int, site: str) -> Jacobian:
        """The Jacobians of a sub-layer at one token, see `Model.jacobian`."""
        return self.model.jacobian(self.recording, stream, token, site)

    def ffn(self, stream: str, layer: int, token: int) -> FFNActivations:
        """The hidden units of a layer's feed-forward network at one token."""
        return self.model.ffn_activations(self.recording, stream, layer, token)

    def depth(self, stream: str) -> Any:
        """The gradients of a deep random stack on a stream's embeddings, see `registry.depth`."""
        return depth_gradients(self.recording, stream)

    def recurrent_gradient(self) -> np.ndarray:
        """The share of a gradient at the last word of the first stream at each token of
        `gradients.from_word_to_word`, where untrained recurrent networks read its first states."""
        stream = self.recording.streams[0]
        places = gradients.from_word_to_word(stream)
        inputs = residual.site_vectors(stream, stream.sites[0])[places]
        make = lambda: gradients.recurrent_gradient(self.draw, inputs)
        return memo(self.recording, "recurrent gradient", make)[::-1]

    def stepwise(self, rows: int) -> Sequence[np.ndarray]:
        """The scores (id) after each of so many tokens, read one at a time. Raises ValueError for a
        model that does not write."""
        last = self.recording.streams[-1]

        def write() -> list[np.ndarray]:
            writing = self.model.generate("" if self.own_target is None else self.run.text)
            if writing.ids != [int(last.ids[0])]:
                raise ValueError("a text that begins with one token of its own")
            scores = [writing.logits]
            for id in last.ids[1:rows]:
                writing.add(int(id))
                scores.append(writing.logits)
            return scores

        return in_slot(write)

    def require_edits(self, *kinds: type[Edit]) -> None:
        """Raises Untestable where the model does not honour an edit of each of these kinds."""
        if not all(issubclass(kind, self.capabilities.edits) for kind in kinds):
            raise Untestable(LACKS)

    def require_readout(self) -> None:
        """Raises Untestable where no words are read off the model's last stream."""
        if self.capabilities.logits != self.recording.streams[-1].name:
            raise Untestable(REASONS("no_readout"))


def require_tokens(stream: Stream) -> None:
    """Raises TooShort for a stream of too few tokens for a verdict."""
    require_count(len(stream.tokens), "tokens")


def require_count(n: int, what: str, fewest: int = FEWEST) -> None:
    """Check the sample size of a verdict, such as "rows". Raises TooShort for fewer."""
    if n < fewest:
        raise TooShort(
            REASONS(
                "too_short",
                least=WORDS.get(fewest, fewest),
                what=what,
                are="is" if n == 1 else "are",
                n=n,
            )
        )


def attention_with_qkv(recording: Recording) -> tuple[Attention, ...]:
    """The attentions, all with the scores, queries, keys and values they are made of. Raises
    Untestable where some are not known, or there is none."""
    if not recording.attention:
        raise Untestable(REASONS("no_attention"))
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
        raise Untestable(REASONS("no_self_attention"))
    return matches


def causal_attention(recording: Recording) -> tuple[Attention, Stream]:
    """The self-attention under a causal mask and its stream. Raises Untestable where there is
    none."""
    for attention in recording.attention:
        if attention.query == attention.key == "decoder":
            return attention, recording.stream("decoder")
    raise Untestable(REASONS("no_decoder"))


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
    """The queries that have more than one key to choose from in every layer, at most MOST_ROWS of
    them. Raises TooShort for fewer than FEWEST."""
    choice = np.all([mask.sum(axis=1) > 1 for _, mask in attention.masks], axis=0)
    places = np.flatnonzero(choice)
    require_count(len(places), "tokens that have more than one token to attend to")
    return subsample(places)


def state_before(stream: Stream, layer: int, place: str) -> str:
    """The site of the state that a sub-layer adds to. Raises Untestable where the model does not
    show it."""
    for before, wrote, _ in stream.writes():
        if wrote == f"{layer}.{place}.wrote":
            return before
    raise Untestable(REASONS("no_output", place=place, layer=layer))


def require_tied_readout(context: MeasureContext) -> None:
    """Raise Untestable as `embedding_factor` does. A model that reads the embeddings does so on
    every text: it is asked once."""
    stream = context.recording.streams[-1]
    require_tokens(stream)
    if np.array_equal(stream.resid[-1, -1], stream.resid[-1, 0]):  # two states are to be compared
        raise Untestable(REASONS("untied"))
    context.model.memo(("tied", stream.name), lambda: embedding_factor(context) > 0)


def embedding_factor(context: MeasureContext) -> float:
    """By what the rows of the readout are multiplied to give the embeddings as the stream begins
    with them.

    The tied readout has those rows themselves: the scores of two tokens differ by E (h - h'), the
    bias falls out. Raises Untestable where it reads anything else."""
    stream = context.recording.streams[-1]
    require_tokens(stream)
    last = len(stream.tokens) - 1
    scores = context.logits(stream.name, last).astype(np.float64) - context.logits(stream.name, 0)
    # In the precision of the embeddings: of a large vocabulary no second copy in 64 bits is made.
    product = (context.embeddings() @ (stream.resid[-1, last] - stream.resid[-1, 0])).astype(
        np.float64
    )
    times = float(product @ product) / float(product @ scores) if product @ scores else np.nan
    if not np.abs(product - times * scores).max() <= 1e-3 * np.abs(product).max():
        raise Untestable(REASONS("untied"))
    return times


def by_layer(name: str, values: Sequence[float]) -> tuple[tuple[str, float], ...]:
    """Values of layers as rows of a small table."""
    return tuple((f"{name}layer {layer}", float(value)) for layer, value in enumerate(values))


def factor(ratio: float) -> float:
    """By what factor a ratio is away from 1, either way: 1 and more."""
    return float("nan") if not ratio > 0 else max(ratio, 1 / ratio)


def with_other_vector(context: MeasureContext, stream: Stream, place: int, site: str) -> Recording:
    """The recording in which one token's vector at a site is that of another text, of as many words
    as the stream has tokens, of which none is this token."""
    other = "b" if stream.tokens[place].strip().lower() == "a" else "a"
    text = "%20".join([other] * len(stream.tokens))
    return context.rerun(f"PatchSite:{text}:{site.replace('+', '%2B')}:{place}:", "", None)


def layers_of(stream: Stream) -> tuple[residual.SubLayer, ...]:
    """The sub-layers of a stream. Raises Untestable where the model does not show what they
    write."""
    sublayers = tuple(each for each in residual.sublayers(stream) if each.layer >= 0)
    if not sublayers:
        raise Untestable(REASONS("no_sublayers"))
    return sublayers
