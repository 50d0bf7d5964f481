"""Models with a memory: what a model computes of a text is computed once for all who ask for it.

What is kept is keyed by its cause (model, weights' fingerprint, text, edits), and where a caller
handed a recording in, by what that holds. It is bounded by bytes; the host of the process says by
how many, and gives turns at the processor."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from models.contract.argument_validation import edits_of, target_of, text_or_ids
from models.contract.capabilities import Capabilities, TextGenerator
from models.contract.edits import Edit, OtherNorm
from models.contract.model import Model
from models.contract.recording import Recording
from models.contract.results import Circuits, Norm, WholeWord, softmax
from models.network import buffer_pool
from models.runtime import host, registry
from models.runtime.cache import Cache
from models.tokens import whole_words

Result = TypeVar("Result")
Rest = ParamSpec("Rest")


class HasRecording(Protocol):
    """A value that has a recording."""

    @property
    def recording(self) -> Recording:
        """The recording."""


Of = TypeVar("Of", bound=Recording | HasRecording)
MAX_COMPLETED = 128  # tokens of a text after which words are written out
ENDS = "ends here"  # the label of a token that ends what a model writes

cache = Cache(host.current.cache_bytes)
buffer_pool.before_lending.append(lambda coming: cache.take(coming))
_in_a_hurry: ContextVar[bool] = ContextVar("in a hurry", default=False)
contents: dict[int, str] = {}  # digests of recordings that callers handed in, by their identity


@contextmanager
def hurrying() -> Iterator[None]:
    """Leave out what takes long and is not seen at once: tokens that begin a word stay as they are,
    where the word is not known, since to read it takes passes of its own."""
    token = _in_a_hurry.set(True)
    try:
        yield
    finally:
        _in_a_hurry.reset(token)


def is_hurrying() -> bool:
    """True within `hurrying`."""
    return _in_a_hurry.get()


def use(new: host.Host) -> None:
    """Make this the host of the process; its limits are the cache's."""
    host.use(new)
    cache.limit, cache.beyond = new.cache_bytes, new.work_bytes


def in_slot(make: Callable[[], Result]) -> Result:
    """The result of `make`, computed in a slot of the processor."""
    return host.current.in_slot(make)


def get(key: Hashable, make: Callable[[], Any]) -> Any:
    """The value in the process's one cache under `key`, made now where it is missing."""
    return cache.get(key, make)


def get_once(key: Hashable, make: Callable[[], Any]) -> Any:
    """Like `get`, for a single use: a heavy value is not kept."""
    return cache.get(key, make, keep=False)


def cause(recording: Recording) -> tuple[Any, ...]:
    """All that determines a recording's numbers."""
    # The ids too: what a translator said may be split otherwise than the same text typed for it.
    return (
        recording.model.name,
        recording.model.fingerprint,
        recording.text,
        recording.target,
        recording.edits,
        *(stream.ids.tobytes() for stream in recording.streams),
        recording.as_ids,
        recording.covered,
        contents.get(id(recording), ""),
    )


def memo(recording: Recording, key: Hashable, make: Callable[[], Any]) -> Any:
    """Something computed from a recording, kept under `key` beside it."""
    return get(("derived", *cause(recording), key), make)


def has_memo(recording: Recording, key: Hashable) -> bool:
    """True where something is kept under `key` beside a recording."""
    return ("derived", *cause(recording), key) in cache.entries


def kept(
    compute: Callable[Concatenate[Of, Rest], Result],
) -> Callable[Concatenate[Of, Rest], Result]:
    """Keep what a function computes of a recording, or of a value that has one, beside it, under
    the function's name and what else it is given."""

    @wraps(compute)
    def once(of: Of, /, *rest: Rest.args, **named: Rest.kwargs) -> Result:
        recording = of if isinstance(of, Recording) else of.recording
        key = (_name_of(compute), *rest, *sorted(named.items()))
        return memo(recording, key, lambda: compute(of, *rest, **named))

    return once


def is_kept(compute: Callable[..., Any], recording: Recording, *rest: Hashable) -> bool:
    """True where the result of a function that is `kept` lies beside a recording."""
    return has_memo(recording, (_name_of(compute), *rest))


def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def picture_name(recording: Recording, *key: Hashable) -> str:
    """A short name for a picture: equal causes, equal name. Whoever waits for a picture in the
    browser waits for this name."""
    whole = (*cause(recording), key)
    return hashlib.sha256(repr(whole).encode("utf-8", "surrogatepass")).hexdigest()[:12]


@kept
def depth_gradients(recording: Recording, stream: str) -> Any:
    """The gradients of a deep random stack on a stream's embeddings, as `registry.depth`. Another
    model of the same words has other ones."""
    return in_slot(lambda: registry.depth(recording.stream(stream).resid[0]))


def loaded(of: str | Recording) -> CachedModel:
    """The model of that name, or of a recording, loaded once for everyone. Raises ValueError,
    saying why, for one that cannot be used."""
    return CachedModel(host.current.model(of if isinstance(of, str) else of.model.name))


class CachedModel(Model):
    """A loaded model whose results are kept, each computed once in a slot of the processor.

    uncached: the model itself, which also has what is not said here."""

    def __init__(self, model: Model) -> None:
        self.uncached = model

    def __getattr__(self, name: str) -> Any:
        if name == "uncached":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.uncached, name)

    @cached_property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """The capabilities of the model."""
        return self.uncached.capabilities

    @property
    def recorded(self) -> Recording | None:  # type: ignore[override]
        """As of the model itself."""
        return self.uncached.recorded

    @property
    def reads_batches(self) -> bool:
        """True where `record_batch` takes less time than as many calls of `record`."""
        return self.uncached.reads_batches

    # Of texts.

    def record(
        self,
        text: str | Sequence[int],
        edits: Edit | Iterable[Edit] = (),
        target: str | tuple[int, ...] | None = None,
    ) -> Recording:
        """As `Model.record`, from the cache where it is there. A text or target beyond the host's
        limit is cut at its end."""
        return self.recording_of(text_or_ids(text), edits_of(edits), target_of(target))

    def record_once(
        self,
        text: str | Sequence[int],
        edits: Edit | Iterable[Edit] = (),
        target: str | tuple[int, ...] | None = None,
    ) -> Recording:
        """Like `record`, for a single use: a heavy recording is not kept and evicts nothing."""
        return self.recording_of(text_or_ids(text), edits_of(edits), target_of(target), get_once)

    def has_recording(self, text: str, target: str | None = None) -> bool:
        """True where the recording of a text without edits is there."""
        cut = host.current.truncate
        return self._key(cut(text), (), target and cut(target)) in cache.entries

    def _key(
        self,
        text: str | tuple[int, ...],
        edits: tuple[Edit, ...],
        target: str | tuple[int, ...] | None,
    ) -> Hashable:
        card = self.uncached.card
        return ("recording", card.name, card.fingerprint, text, edits, target)

    def recording_of(
        self,
        text: str | tuple[int, ...],
        edits: tuple[Edit, ...],
        target: str | tuple[int, ...] | None,
        get: Callable[[Hashable, Callable[[], Any]], Any] = get,
    ) -> Recording:
        """As `record`, of arguments that are known to be of their types: those of a run."""
        here = host.current
        if self.uncached.recorded is not None:  # it is there already
            return self.uncached.record(text, edits, target)
        text = here.truncate(text) if isinstance(text, str) else text
        target = here.truncate(target) if isinstance(target, str) else target
        key = self._key(text, edits, target)
        is_kept = key in cache.entries
        together = isinstance(text, str) and here.reads_together(self.uncached, text)
        if edits or target is not None or is_kept or not isinstance(text, str) or not together:
            return get(key, lambda: here.record(self.uncached, text, edits, target))
        return get(("in a batch", key), lambda: here.record_together(self.uncached, text))

    def record_batch(self, texts: Sequence[str | Sequence[int]]) -> tuple[Recording, ...]:
        """As `Model.record_batch`; not kept."""
        return in_slot(lambda: self.uncached.record_batch(texts))

    # Of a recording, beside `READOUTS`.

    def each_logits(self, recording: Recording, stream: str) -> Iterator[np.ndarray]:
        """Scores over the vocabulary, (id), at each token of a stream in turn. All together are
        large, and none is kept."""
        score = self.uncached.logits
        for token in range(len(recording.stream(stream).tokens)):
            yield in_slot(lambda: score(recording, stream, token))

    # Of the model alone, whatever the text.

    def memo(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Something of this model that is kept under `key`, which names all that it is made of."""
        card = self.uncached.card
        return get(("of model", card.name, card.fingerprint, key), make)

    def norms(self, stream: str, edits: Edit | Iterable[Edit] = ()) -> dict[str, Norm]:
        """As `Model.norms`; of the edits only those of norms matter."""
        other = tuple(edit for edit in edits_of(edits) if isinstance(edit, OtherNorm))
        return self.memo(("norms", stream, other), lambda: self.uncached.norms(stream, other))

    def outputs(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """As `Model.outputs`."""
        return self.memo("outputs", self.uncached.outputs)

    def nearest(self, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        """As `Model.nearest`; not kept."""
        return in_slot(lambda: self.uncached.nearest(vectors, top))

    def circuits(
        self,
        attention: str,
        layer: int,
        head: int,
        ids: tuple[int, ...],
        values: np.ndarray | None = None,
    ) -> Circuits:
        """As `Model.circuits`; kept where no values are given."""
        read = lambda: self.uncached.circuits(attention, layer, head, ids, values)
        if values is not None:
            return in_slot(read)
        return self.memo(("circuits", attention, layer, head, ids), lambda: in_slot(read))

    def labels(self, ids: Iterable[int]) -> list[str]:
        """Tokens of the vocabulary as a person reads them, one that ends a text as what it does."""
        listed = list(ids)
        return [
            ENDS if self.is_end(token) else label
            for token, label in zip(listed, self.uncached.labels(listed))
        ]

    def vocabulary(self) -> list[str]:
        """Labels of all tokens, by their ids."""
        return self.memo("vocabulary", lambda: self.uncached.labels(range(self.card.n_vocab)))

    # Words of several pieces.

    def predicted_words(
        self,
        recording: Recording,
        next_tokens: Sequence[tuple[int, float]],
        limit: int = whole_words.MAX_WORDS,
        token: int = -1,
    ) -> dict[int, WholeWord]:
        """The words of several pieces that begin with the likeliest tokens after one of a
        recording's, by the token, as `models.tokens.whole_words`; none for a long text, and
        where a part of the text is read as other tokens or cannot be written on under its edits."""
        followed = whole_words.followed_tokens(self.uncached, next_tokens, limit)
        return self._words_begun(recording, followed, token)

    def words_after(
        self, recording: Recording, token: int, also: Iterable[int] = ()
    ) -> dict[int, WholeWord]:
        """The words of several pieces that the likeliest tokens after one of a recording's begin,
        by the token. also: further tokens, however likely each is; all are followed at once."""
        scores = self.logits(recording, recording.streams[-1].name, token)
        p = softmax(scores)
        followed = whole_words.followed_tokens(self.uncached, whole_words.likely_tokens(scores))
        rest = [(id, float(p[id])) for id in sorted(set(also) - {id for id, _ in followed})]
        further = whole_words.followed_tokens(self.uncached, rest, len(rest), least=0)
        return self._words_begun(recording, (*followed, *further), token)

    def word_probabilities(
        self, recording: Recording, token: int, words: Sequence[tuple[int, ...]]
    ) -> list[float] | None:
        """The probability of each of some words (ids) after a token of a recording; None where they
        cannot be read there."""
        n_read = token % len(recording.streams[-1].tokens) + 1

        def make() -> list[float] | None:
            if (writing := self._resumed(recording, n_read)) is None:
                return None
            first = softmax(self.logits(recording, recording.streams[-1].name, n_read - 1))
            return whole_words.probabilities(writing, words, first)

        return memo(recording, ("words", n_read, *words), lambda: in_slot(make))

    def _resumed(self, recording: Recording, n_read: int) -> TextGenerator | None:
        """A recording's text after its first `n_read` tokens, written on; None where there is no
        room for a token more, and where these are read as others."""
        try:
            return self.uncached.resume(recording, n_read)
        except ValueError:
            return None

    def _words_begun(
        self, recording: Recording, followed: tuple[tuple[int, float], ...], token: int
    ) -> dict[int, WholeWord]:
        """The words of several pieces that tokens after one of a recording's begin, by the token.
        followed: the tokens with their probabilities."""
        n = len(recording.streams[-1].tokens)
        if not followed or n > MAX_COMPLETED:
            return {}
        n_read = token % n + 1

        def make() -> dict[int, WholeWord]:
            writing = self._resumed(recording, n_read)
            return whole_words.whole_words(self.uncached, writing, followed) if writing else {}

        key = ("whole", n_read, tuple(id for id, _ in followed))
        if is_hurrying() and not has_memo(recording, key):
            return {}
        return memo(recording, key, lambda: in_slot(make))


# What a model computes of a recording, kept beside it.
READOUTS = (
    *("lens", "logits", "attribute", "head_sources", "score_parts", "score_path", "gradients"),
    *("head_gradients", "jacobian", "ffn_activations", "neurons"),
    *("class_logits", "class_attribution", "class_parts"),
)
# What is not kept: each text or sweep has a state of its own, whose steps their reader takes in a
# slot, and embeddings are large.
PASSED_ON = ("generate", "beams", "patch_heads", "patch_sites", "embeddings", "training_step")


def _cached_readout(name: str) -> Callable[..., Any]:
    """The method of `Model` of this name whose result is kept beside the recording."""
    method = getattr(Model, name)
    signature = inspect.signature(method)

    @wraps(method)
    def readout(self: CachedModel, *arguments: Any, **named: Any) -> Any:
        bound = signature.bind(self, *arguments, **named)
        bound.apply_defaults()
        _, recording, *rest = bound.args
        rest = [tuple(each) if isinstance(each, list) else each for each in rest]
        compute = getattr(self.uncached, name)
        return memo(recording, (name, *rest), lambda: in_slot(lambda: compute(recording, *rest)))

    return readout


def _passed_on(name: str) -> Callable[..., Any]:
    """The method of `Model` of this name, which asks the model itself."""

    @wraps(getattr(Model, name))
    def passed_on(self: CachedModel, *arguments: Any, **named: Any) -> Any:
        return getattr(self.uncached, name)(*arguments, **named)

    return passed_on


for _name in READOUTS:
    setattr(CachedModel, _name, _cached_readout(_name))
for _name in PASSED_ON:
    setattr(CachedModel, _name, _passed_on(_name))
