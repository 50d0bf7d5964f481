"""Arrays of one's own in the place of a model: recordings that no model here has made.

Such a recording goes into every panel that its numbers are enough for. There is nothing to run, so
that no edit can be followed and nothing be predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, overload

import numpy as np

from models.contract.capabilities import READ_OFF, Capabilities
from models.contract.edits import Edit
from models.contract.model import Model
from models.contract.notices import tell
from models.contract.recording import ROW_SUM_TOLERANCE, Attention, Card, Recording, Stream, digest
from models.inputs import handed_out
from models.model_names import MINE_PREFIX
from models.runtime import registry
from models.tokens.vocabulary import Vocabulary

NO_MODEL = "there are arrays and no model here, so that nothing can be run"
NO_READOUT = "is arrays alone and has no readout over the vocabulary"


@dataclass(frozen=True, eq=False)
class ArrayModel(Model):
    """Model of a recording that has no other."""

    source: ClassVar[str] = __name__
    card: Card
    recorded_capabilities: Capabilities
    tokenizer: Vocabulary


def capabilities(model: ArrayModel) -> Capabilities:
    """Capabilities of its recording."""
    return model.recorded_capabilities


def record(
    model: ArrayModel,
    text: str | tuple[int, ...],
    edits: tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """Raises ValueError: nothing can be run."""
    raise ValueError(NO_MODEL)


def lens(*arguments: object) -> Any:
    """Raises ValueError, as all that follow do: nothing can be run."""
    raise ValueError(NO_MODEL)


def hidden(model: ArrayModel, readout: str) -> str:
    """Error message for what is read off weights."""
    return f"{READ_OFF[readout]} cannot be read: {NO_MODEL}; record the text with a model"


logits = attribute = gradients = integrated = nearest = generate = beams = lens


def hold_model_of(recording: Recording) -> None:
    """Has what stands for the model of a recording found by its name as long as the recording is
    there."""
    capabilities = capabilities_of(recording, NO_MODEL, NO_READOUT)
    registry.hold(ArrayModel(recording.model, capabilities, words_of(recording)), recording)


def words_of(recording: Recording) -> Vocabulary:
    """The labels of all tokens of a recording."""
    labels = (label for stream in recording.streams for label in stream.tokens)
    return Vocabulary([*dict.fromkeys(labels)])


def capabilities_of(recording: Recording, no_model: str, no_readout: str) -> Capabilities:
    """Capabilities of a model that is not here, by its recording. no_model, no_readout: why not
    more, as `Capabilities` says it."""
    return Capabilities(
        kind=recording.model.kind,
        attention=tuple(each.name for each in recording.attention),
        scale=None,
        norm=None,
        positions=None,
        logits="",
        edits=(),
        opens=all(each.opens for each in recording.attention),
        law=all(any(".wrote" in site for site in each.sites) for each in recording.streams),
        weights=False,
        no_parts=no_model,
        no_readout=no_readout,
        writes=False,
        sites={each.name: each.sites for each in recording.streams},
    )


def recording_of(
    attention: Attention, stream: Stream, name: str, written: Stream | None = None
) -> Recording:
    """A recording of arrays of one text, or of two, the second `written`, under a name of its
    own."""
    layers, heads = attention.pattern.shape[:2]
    streams = (stream,) if written is None else (stream, written)
    target = "" if written is None else " ".join(written.tokens)
    card = Card(
        name=f"{MINE_PREFIX}{name}",
        kind=stream.name if written is None else "encoder-decoder",
        n_layer=layers,
        n_head=heads,
        d_model=stream.resid.shape[-1],
        d_head=attention.q.shape[-1],
        n_vocab=len({token for each in streams for token in each.tokens}),
        n_positions=max(len(each.tokens) for each in streams),
        n_parameters=0,
        fingerprint="",
        weights="arrays of one’s own",
    )
    text = " ".join(stream.tokens)
    recording = Recording(card, text, (), streams, (attention,), target=target)
    mark = digest(recording)[:12]
    card = replace(card, name=f"{card.name}-{mark[:6]}", fingerprint=mark)
    recording = replace(recording, model=card)
    hold_model_of(recording)
    return recording


@overload
def view(
    attention: Any,
    tokens: Sequence[str],
    *,
    keys: Sequence[str] | None = None,
    mask: None = None,
    name: str = "arrays",
) -> Recording:
    """Of one text."""


@overload
def view(
    attention: Any, tokens: Sequence[Sequence[str]], *, mask: Any, name: str = "arrays"
) -> tuple[Recording, ...]:
    """Of several."""


def view(
    attention: Any,
    tokens: Any,
    *,
    keys: Sequence[str] | None = None,
    mask: Any = None,
    name: str = "arrays",
) -> Recording | tuple[Recording, ...]:
    """A recording of attention that was computed elsewhere, for every panel that needs attention
    alone; of a batch one of each text.

    attention: an array of any framework, (layer, head, query, key), or (head, query, key) of one
    layer, or (query, key) of one head; or the layers one by one, each (head, query, key) or (1,
    head, query, key), as transformers returns them, None for one without attention; or a model's
    output that has them, or what generate returned, whose steps are the rows of one text. tokens:
    what each is called, or what a tokenizer gives of the text. Where no query attends to a later
    token, the mask is causal. keys: what the keys are called where they are another text's, as of
    cross-attention, of which panels call a row by the token that is written from it, the one after.
    mask: of a batch (text, token), 0 for padding, which is left out; the layers
    are then (text, head, query, key) and tokens a row for each text.

    A row that is off by rounding to 16 bits, at most 0.8 %, is divided by its sum, with a warning.
    Raises ValueError where the shape is another, where a row does not sum to 1, and for a text with
    padding; `models.inputs.handed_out.FORMS` says what else transformers hands out.
    """
    if mask is not None:
        texts = handed_out.texts_of_batch(attention, tokens, mask)
        return tuple(view(each, labels, name=name) for each, labels in texts)
    pattern, numbers = handed_out.attention_of(attention)
    labels = handed_out.labels_of(tokens)
    if len(labels) == pattern.shape[2] + 1 and handed_out.is_generated(attention):
        tell(f"the last token, {labels[-1]!r}, was written and not read, so it has no row")
        labels = labels[:-1]
    n = len(labels)
    if keys is not None:
        return _across(pattern, numbers, labels, handed_out.labels_of(keys), name)
    handed_out.expect_shape(pattern, n)
    handed_out.expect_no_padding(pattern, labels)
    pattern = rows_of_one(pattern)
    allowed = np.ones((n, n), dtype=bool)
    causal = n > 1 and not np.triu(pattern, 1).any()
    stream = "decoder" if causal else "encoder"
    allowed = np.tril(allowed) if causal else allowed
    closed = Attention.closed("self", stream, stream, pattern, allowed)
    layers = replace(closed, layers=np.array(numbers, int))
    return recording_of(layers, bare_stream(stream, labels), name)


def _across(
    pattern: np.ndarray,
    numbers: tuple[int, ...],
    labels: tuple[str, ...],
    keys: tuple[str, ...],
    name: str,
) -> Recording:
    """The recording of an attention from one text, which is written, to another."""
    handed_out.expect_shape(pattern, len(labels), len(keys))
    allowed = np.ones(pattern.shape[2:], dtype=bool)
    closed = Attention.closed("cross", "decoder", "encoder", rows_of_one(pattern), allowed)
    layers = replace(closed, layers=np.array(numbers, int))
    source, written = bare_stream("encoder", keys), bare_stream("decoder", labels)
    return recording_of(layers, source, name, written)


def bare_stream(
    name: str,
    labels: tuple[str, ...],
    sites: tuple[str, ...] = (),
    resid: np.ndarray | None = None,
) -> Stream:
    """A stream of tokens that stand in a text with spaces between them; without vectors where there
    are none."""
    number = {label: at for at, label in enumerate(dict.fromkeys(labels))}
    ends = np.cumsum([len(label) + 1 for label in labels]) - 1
    starts = ends - [len(label) for label in labels]
    n = len(labels)
    return Stream(
        name=name,
        tokens=labels,
        ids=np.array([number[label] for label in labels]),
        special=np.zeros(n, dtype=bool),
        spans=np.stack((starts, ends), axis=1),
        sites=sites,
        resid=np.zeros((len(sites), n, 0), np.float32) if resid is None else resid,
    )


def rows_of_one(pattern: np.ndarray) -> np.ndarray:
    """Weights in 32 or 64 bits whose rows sum to 1. Where one is off by more than ROW_SUM_TOLERANCE
    and up to HALF_TOLERANCE, as after rounding to 16 bits, those that are no EXACT ones are divided
    by their sum, with a warning. Raises ValueError for other numbers."""
    pattern = pattern if pattern.dtype == np.float64 else pattern.astype(np.float32)
    if not np.isfinite(pattern).all() or (pattern < 0).any():
        raise ValueError("weights of attention are 0 or more, and finite; some of these are not")
    sums = pattern.sum(axis=-1, keepdims=True, dtype=np.float64)
    off = np.abs(sums - 1)
    layer, head, query, _ = map(int, np.unravel_index(off.argmax(), off.shape))
    worst = sums[layer, head, query, 0]
    row = f"of query {query} in head {head} of layer {layer} sums to {worst:.4g}"
    if off.max() > HALF_TOLERANCE:
        raise ValueError(f"rows of attention sum to 1; that {row}{SINKS * bool(worst < 1)}")
    if off.max() <= ROW_SUM_TOLERANCE:
        return pattern
    rounded = off > EXACT
    tell(
        f"rows of attention sum to 1; {int(rounded.sum()):,} of these {rounded.size:,} do not and "
        f"are divided by their sum (the worst, {row})"
    )
    return np.where(rounded, (pattern / sums).astype(pattern.dtype), pattern)


SINKS = (
    "; where a head has a sink, which takes a part of each row, record the text with "
    "headlight.wrap(model, tokenizer)"
)
# By how much the sum of a row that was rounded to 16 bits may be off: 2^-8 of each weight.
HALF_TOLERANCE = 2**-7
EXACT = 1e-6  # as of 32 bits
