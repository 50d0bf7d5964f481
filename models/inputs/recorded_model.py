"""A recording from a file in the place of a model: what it holds is shown, and nothing else can be
computed.

The file may come from anywhere. What the pages rely on is checked here, beyond what makes a
recording: which names it uses, and that its numbers are such as a model gives."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from models.contract.capabilities import READ_OFF
from models.contract.edit_validation import check_places
from models.contract.edits import SPAN, CutEdge, Edit, HideWord, from_line, last_of, to_line
from models.contract.recording import (
    Attention,
    Card,
    GroupedArray,
    Recording,
    Stream,
    digest,
    stored_array,
)
from models.contract.recording_file import MOST_LAYERS, from_npz
from models.inputs.array_model import ArrayModel, capabilities_of, words_of
from models.inputs.array_model import capabilities as capabilities
from models.model_names import FILE_PREFIX
from models.runtime import registry

NO_MODEL = "There is a recording here and no model, so nothing can be computed anew"
NO_PARTS = "a recording holds no weights"
NO_READOUT = "is a recording and has no readout over the vocabulary"
# The streams of each kind of model, and the attentions between them: name, query and key.
STREAMS = {
    "encoder": ("encoder",),
    "decoder": ("decoder",),
    "encoder-decoder": ("encoder", "decoder"),
}
ATTENTION = {
    ("self", "encoder", "encoder"),
    ("self", "decoder", "decoder"),
    ("encoder self", "encoder", "encoder"),
    ("decoder self", "decoder", "decoder"),
    ("cross", "decoder", "encoder"),
}
SITE = re.compile(
    r"embed(\+pos|\.normed)?|pos\.wrote|final\.normed|"
    r"(0|[1-9]\d{0,3})\.(attn|cross|ffn)\.(read|wrote|sum|normed)"
)
MOST_TOKENS, MOST_CHARACTERS, MOST_LABEL = 4096, 200_000, 400
MOST_COUNT = 2**53
MOST_SHARED = 2**28  # values of keys that heads share, as all of the heads read them
LONGEST_NAME = 40


@dataclass(frozen=True, eq=False)
class RecordedModel(ArrayModel):
    """A stand-in for the model of a recording that was opened, which it holds."""

    source: ClassVar[str] = __name__
    recorded: Recording


def record(
    model: RecordedModel,
    text: str | tuple[int, ...],
    edits: tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """The recording, where it is asked for. target: None stands for what its decoder read. Raises
    ValueError for another text, edits or target, since nothing can be run."""
    recorded = model.recorded
    read = tuple(map(int, recorded.streams[-1].ids[1:])) if len(recorded.streams) > 1 else None
    if text != recorded.text_or_ids or edits != recorded.edits or target not in (None, read):
        raise ValueError(NO_MODEL)
    return recorded


def lens(*arguments: object) -> object:
    """Raises ValueError, as all that follow do: nothing can be computed."""
    raise ValueError(NO_MODEL)


def hidden(model: RecordedModel, readout: str) -> str:
    """Error message for what is read off weights."""
    return f"{NO_MODEL}, such as {READ_OFF[readout]}; record the text with its model"


logits = attribute = gradients = integrated = nearest = generate = beams = lens


def opened(data: bytes, most_bytes: int | None = None) -> RecordedModel:
    """The recording of an .npz file as a model, found by its name for as long as the caller holds
    it; equal files are opened once.

    most_bytes: as of `from_npz`. Raises ValueError, one sentence, for a file that is no recording
    or not such as Headlight writes one."""
    recording = from_npz(data, most_bytes)
    _expect_texts(recording)
    _expect_sizes(recording)
    for stream in recording.streams:
        _expect_stream(stream)
    for attention in recording.attention:
        _expect_attention(attention)
    _expect_edits(recording)
    written_by = re.sub(r"[^A-Za-z0-9.]+", "-", recording.model.name)[:LONGEST_NAME].strip("-.")
    name = f"{FILE_PREFIX}{written_by or 'model'}-{digest(recording)[:16]}"
    if registry.holds(name):
        model = registry.load(name)
        assert isinstance(model, RecordedModel)
        return model
    # Card lines are Markdown: no sign of the file's words makes a link or a picture there.
    weights = re.sub(r"[^\w ,.;()’+-]", "", recording.model.weights)
    recording = replace(recording, model=replace(recording.model, name=name, weights=weights))
    abilities = capabilities_of(recording, NO_PARTS, NO_READOUT)
    model = RecordedModel(recording.model, abilities, words_of(recording), recording)
    registry.hold(model)
    return model


def n_bytes(model: RecordedModel) -> int:
    """Bytes that the arrays of a recording take."""
    parts = (*model.recorded.streams, *model.recorded.attention)
    arrays = (stored_array(each) for part in parts for each in vars(part).values())
    return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))


def _refuse(why: str) -> None:
    raise ValueError(f"this recording is not such as Headlight writes one: {why}")


def _expect_texts(recording: Recording) -> None:
    """Raises ValueError for a text that no file and no address can carry, and for a long one."""
    card = recording.model
    texts = (recording.text, recording.target, recording.version, card.name, card.weights)
    labels = [each for of in recording.streams for each in (*of.tokens, *of.roles)]
    try:
        for each in (*texts, card.fingerprint, *labels):
            each.encode()
    except UnicodeEncodeError:
        _refuse("a text in it is not well-formed")
    if max(map(len, texts)) > MOST_CHARACTERS or max(map(len, labels), default=0) > MOST_LABEL:
        _refuse("a text in it is too long")
    marks = (recording.version, card.fingerprint)
    if not all(re.fullmatch(r"[\w.+-]{0,80}", each, re.ASCII) for each in marks):
        _refuse("its version or fingerprint is none")
    if max(map(len, (card.name, card.weights))) > MOST_LABEL:
        _refuse("a text in it is too long")


def _expect_sizes(recording: Recording) -> None:
    """Raises ValueError where the parts are others than those of the model that is named."""
    card: Card = recording.model
    if tuple(each.name for each in recording.streams) != STREAMS.get(card.kind):
        _refuse(f"its streams are none of a model of the kind {card.kind[:20]!r}")
    names = [(each.name, each.query, each.key) for each in recording.attention]
    if not names or not {*names} <= ATTENTION or len({each[0] for each in names}) < len(names):
        _refuse("its attentions are others than a model has")
    for attention in recording.attention:
        layers, heads = attention.pattern.shape[:2]
        if not layers or heads != card.n_head or not heads:
            _refuse(f"{attention.name} has other layers and heads than the model")


def _expect_stream(stream: Stream) -> None:
    """Raises ValueError for numbers and names that no stream has."""
    if not 1 <= len(stream.tokens) <= MOST_TOKENS:
        _refuse(f"stream {stream.name} has {len(stream.tokens):,} tokens")
    if stream.ids.min() < 0 or stream.ids.max() >= MOST_COUNT:
        _refuse("a token in it has no id")
    if not all(map(SITE.fullmatch, stream.sites)):
        _refuse("a site in it has a name that no site has")
    _expect_order(stream.sites)
    if stream.sites and not stream.resid.shape[-1]:
        _refuse("its vectors have no numbers")
    if not np.isfinite(stream.resid).all():
        _refuse("a number in it is not finite")


def _expect_order(sites: tuple[str, ...]) -> None:
    """Raises ValueError where what was written does not stand between a state and the sum of
    both, and where a layer stands after a later one."""
    for before, site, after in zip(("", *sites), sites, (*sites[1:], "")):
        sums = "embed+pos" if site == "pos.wrote" else f"{site.removesuffix('.wrote')}.sum"
        is_side = site.endswith((".wrote", ".read"))
        if is_side and (not before or not after) or site.endswith(".wrote") and after != sums:
            _refuse("its sites do not follow each other")
    numbers = [int(each.partition(".")[0]) for each in sites if each[:1].isdecimal()]
    if numbers != sorted(numbers) or numbers and numbers[-1] > len({*numbers}) - 1:
        _refuse("its layers are not in order")
    if numbers and numbers[-1] >= MOST_LAYERS:
        _refuse(f"it has more than {MOST_LAYERS:,} layers")


def _expect_attention(attention: Attention) -> None:
    """Raises ValueError for numbers that no attention has."""
    arrays = (attention.scores, attention.pattern, attention.q, attention.scale, attention.sink)
    shared = (stored_array(attention.k), stored_array(attention.v))
    if not all(np.isfinite(each).all() for each in (*arrays, *shared)):
        _refuse("a number in it is not finite")
    if attention.pattern.min() < 0 or attention.sink.min(initial=0) < 0:
        _refuse("a weight in it is negative")
    if not attention.reachable.any(axis=-1).all() and not attention.sink.size:
        _refuse("a token in it attends to nothing")
    if attention.opens and not (attention.q.shape[-1] and stored_array(attention.v).shape[-1]):
        _refuse("its queries or values have no numbers")
    if attention.opens and stored_array(attention.k).shape[-1] != attention.q.shape[-1]:
        _refuse("its queries and keys are of two sizes")
    if any(isinstance(x, GroupedArray) and x.size > MOST_SHARED for x in vars(attention).values()):
        _refuse("too many heads share its keys or values")
    layers = attention.layers
    if layers.size and (
        layers.shape != attention.pattern.shape[:1]
        or layers[0] < 0
        or layers[-1] >= MOST_TOKENS
        or (np.diff(layers) <= 0).any()
    ):
        _refuse("its layers are not in order")


def _expect_edits(recording: Recording) -> None:
    """Raises ValueError for edits whose fields are of other types, or name what is not there."""
    edits, layers = recording.edits, {each.name: len(each.pattern) for each in recording.attention}
    try:
        again = from_line(to_line(edits))
    except (TypeError, AttributeError):
        again = ()
    if again != edits:
        _refuse("its edits cannot be read")
    try:
        check_places(edits, recording.model, layers)
    except ValueError as error:
        _refuse(f"an edit cannot be, {str(error):.160}")
    for edit in edits:
        if isinstance(edit, CutEdge):
            of = next(each for each in recording.attention if each.name == edit.attention)
            sizes = zip((edit.query, edit.key), of.pattern.shape[2:])
            if not all(SPAN.fullmatch(str(each)) and last_of(each) < size for each, size in sizes):
                _refuse("an edit in it names a token that is not there")
        if isinstance(edit, HideWord):
            streams = (each for each in recording.streams if edit.stream in (None, each.name))
            of_word = next(streams, None)
            if of_word is None or not 0 <= edit.token < len(of_word.tokens):
                _refuse("an edit in it names a token that is not there")
