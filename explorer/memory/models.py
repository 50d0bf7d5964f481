"""Models in memory, loaded once for everyone, with what each says and shows of itself."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.memory import collector, offered, told, trials
from explorer.memory.settings import settings
from explorer.sentences import own_code
from models import learn, library, pieces
from models.edits import NORMS
from models.offers import Offers
from models.recording import Recording

DEFAULT_MODEL = "encoder"
PREFERRED = ("encoder", "decoder", "translator")  # for a page that the chosen model does not fit

COPIES = 2**27  # bytes of weights made of other models in a moment: earlier and permuted ones
NUMBER = 4  # bytes of a weight
IN_USE = 300.0  # seconds for which a model that a reader has asked for is that reader's

_handles: OrderedDict[str, Any] = OrderedDict()

_handles_lock = threading.Lock()
_asked: dict[tuple[str, str], float] = {}  # when a session last asked for a pretrained model


def handle(name: str) -> Any:
    """The loaded model of that name, loaded once for everyone. Raises ValueError, saying why, for
    one that cannot be used."""
    with _handles_lock:
        _note(name)
        if name in _handles:
            _handles.move_to_end(name)
            return _handles[name]
    if not learn.is_live(name) and not offered.is_allowed(name):
        raise ValueError("This model is not offered on this server.")
    if problem := no_room(name):
        raise ValueError(problem)
    loading = Loading.of(name)
    loading.wait(None)
    if loading.problem:
        raise ValueError(loading.problem)
    return loading.result


def is_loaded(name: str) -> bool:
    """True for a model in memory."""
    return name in _handles


def is_borrowed(name: str) -> bool:
    """True for a model that does not come with the app, and may have to be fetched."""
    return (
        name.partition("@")[0] not in library.names()
        and name != f"{library.IN_ITS_OWN_CODE}{library.MINILM}"
        and not learn.is_live(name)
    )


def is_light(name: str) -> bool:
    """True for a model that is read from this project's own files or from memory."""
    return name.partition("@")[0] in library.names() or learn.is_live(name)


def forget(base: str) -> None:
    """Let a model and its earlier weights go from memory."""
    with _handles_lock:
        for name in [name for name in _handles if name.partition("@")[0] == base]:
            del _handles[name]


def let_go() -> None:
    """Let go of what is made of other models in a moment: copies with permuted weights, and earlier
    weights. For when nobody is there."""
    with _handles_lock:
        for name in list(_handles):
            if _is_copy(name):
                del _handles[name]


collector.when_alone.append(let_go)


class Loading:
    """Something that is fetched or read in the background: `share` of it is here, from 0 to 1; then
    its `result`, or a `problem` in a sentence.

    Everyone who asks for the same model waits for the same loading. Borrowed models come one after
    the other, since each looks at what memory is free.
    """

    _under_way: dict[Hashable, Loading] = {}
    _asking, _turn = threading.Lock(), threading.Lock()

    def __init__(
        self,
        key: tuple[str, str],
        begin: Callable[[Loading], Any],
        done: Callable[[Any], None],
    ) -> None:
        self.share, self.result, self.problem = 0.0, None, ""
        self._key, self._begin, self._done = key, begin, done
        self._wanted, self._stopped = 0, threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, name: str) -> Loading:
        """The loading of a model; of a borrowed one after a trial in a process of its own."""

        def begin(self: Loading) -> Any:
            base = name.removesuffix(library.PERMUTED)
            if name != base and is_loaded(base):
                pieces.make_room(2 * _size(base))  # the copy, and what its making takes
            if not is_borrowed(base):
                return library.load(name, self._told)
            return trials.load(name, base, self._told, self._stopped.is_set)

        return cls._only(("model", name), begin, lambda made: _keep(name, made))

    @classmethod
    def found(cls, where: str) -> Loading:
        """A Hugging Face model's files on their way, and its trial; the result is its name for
        `handle`."""

        def begin(self: Loading) -> str:
            if settings().public:
                raise ValueError("This server opens no other models.")
            name, stamp = library.tried(where, self._told, self._stopped.is_set)
            if trials.note(name, stamp):
                forget(name)  # what is in memory was made of other files
            return name

        return cls._only(("files", where), begin)

    def stop(self) -> None:
        """One who asked for it wants it no more; it ends with the last of them."""
        self._wanted -= 1
        if self._wanted <= 0:
            self._stopped.set()

    def wait(self, seconds: float | None) -> bool:
        """True once it has ended, within so many seconds; None: however long it takes."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @classmethod
    def _only(
        cls,
        key: tuple[str, str],
        begin: Callable[[Loading], Any],
        done: Callable[[Any], None] = lambda result: None,
    ) -> Loading:
        with cls._asking:
            if key not in cls._under_way:
                cls._under_way[key] = cls(key, begin, done)
            cls._under_way[key]._wanted += 1
            return cls._under_way[key]

    def _told(self, done: int, total: int) -> None:
        self.share = min(1.0, done / total) if total else 0.0

    def _work(self) -> None:
        kind, name = self._key
        try:
            with nullcontext() if kind == "model" and is_light(name) else self._turn:
                self.result = self._begin(self)
                self._done(self.result)
        except ValueError as error:
            self.problem = str(error) or "The model cannot be read; choose another."
        # Files from anywhere, read by code of many families: they fail in any way.
        except Exception as error:
            self.problem = "The model cannot be read; choose another."
            told.raised(error)
        finally:
            with self._asking:
                self._under_way.pop(self._key, None)


def _keep(name: str, made: Any) -> None:
    """Put a model among those in memory; where there are too many pretrained ones, the least used
    that nobody looks at goes."""
    with _handles_lock:
        _handles[name] = made
        copies = [each for each in _handles if _is_copy(each)]
        while len(copies) > 1 and sum(map(_size, copies)) > COPIES:
            del _handles[copies.pop(0)]
        while len(held := _pretrained()) > settings().max_models:
            free = [each for each in held if each != name and not _readers(each)]
            del _handles[free[0] if free else next(each for each in held if each != name)]
    collector.settle()


def _is_copy(name: str) -> bool:
    """True for permuted weights, and those of one of our own models after so many steps."""
    step = name.rpartition("@")[2] if "@" in name else ""
    return name.endswith(library.PERMUTED) or (is_light(name) and step.isdecimal())


def _size(name: str) -> int:
    """Bytes that a model in memory takes."""
    return _handles[name].card.n_parameters * NUMBER


def _pretrained() -> list[str]:
    """The pretrained models in memory, the least used first."""
    return [name for name in _handles if _is_pretrained(name)]


def _is_pretrained(name: str) -> bool:
    return not is_light(name) or name in library.PACKAGED


def _note(name: str) -> None:
    """This session has asked for a model now; what was asked for long ago is forgotten."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is not None and _is_pretrained(name):
        now = time.monotonic()
        _asked[run.session_id, name] = now
        for key in [key for key, when in _asked.items() if now - when > IN_USE]:
            del _asked[key]


def _readers(name: str) -> set[str]:
    """The sessions that a model in memory serves."""
    return {session for session, model in _asked if model == name}


def no_room(name: str) -> str:
    """Why a pretrained model cannot be taken into memory now, "" where it can: each one there is
    looked at by another reader."""
    run = get_script_run_ctx(suppress_warning=True)
    mine = run.session_id if run is not None else ""
    with _handles_lock:
        held = _pretrained()
        if not _is_pretrained(name) or name in _handles or len(held) < settings().max_models:
            return ""
        if any(not _readers(each) - {mine} for each in held):
            return ""
    shown = [title(each) for each in held if not offered.needs_asking(each)]
    instead = f"Choose one of these: {', '.join(shown)}, or try" if shown else "Try"
    return (
        f"This server holds {len(held)} pretrained models at a time, and other readers are "
        f"looking at each of them. {instead} again in a few minutes."
    )


def title(model: str) -> str:
    """A model's name as a person reads it."""
    if learn.is_live(model):
        return learn.title(model)
    if model.startswith(library.IN_ITS_OWN_CODE):
        return f"{model.removeprefix(library.IN_ITS_OWN_CODE)}, in its own code"
    if model.startswith(library.ON_THE_CLUSTER):
        return f"{model.removeprefix(library.ON_THE_CLUSTER)}, on the cluster"
    return model.removeprefix(library.IN_OURS)


def named(model: str) -> str:
    """A model as what a sentence of Markdown is about."""
    return own_code.named(title(model))


def facts(model: str) -> dict:
    """A model's card; of a borrowed one what it shows of itself, under the same names."""
    if is_light(model):
        return library.card(model.partition("@")[0])
    loaded = handle(model)
    card, offered = loaded.card, library.offers(loaded)
    ways = {library.IN_ITS_OWN_CODE: "in its own code", library.ON_THE_CLUSTER: "on the cluster"}
    here = "its weights in Headlight’s own classes"
    way = ways.get(model[: model.find(":") + 1], here)
    return {
        "kind": card.kind,
        "readout": bool(offered.logits),
        "n_parameters": card.n_parameters,
        "headline": "",
        "summary": f"A pretrained model, {way}.",
        "config": {"n_layer": card.n_layer, "n_head": card.n_head},
        "limits": [
            f"weights: {card.weights}",
            f"attention: {', '.join(offered.attention)}",
            f"positions: {offered.positions}",
            *_parts(offered, card.n_head),
        ],
    }


def _parts(offered: Offers, n_head: int) -> Iterator[str]:
    """What a model has in the place of the paper's parts, a line each."""
    places = {"post": "after each sum", "pre": "before each sub-layer"}
    if offered.norm in places:
        yield f"norm: {NORMS['rms' if offered.rms else 'layer']}, {places[offered.norm]}"
    if offered.gate:
        yield f"feed-forward network: gated ({offered.gate})"
    if offered.key_heads and offered.key_heads < n_head:
        yield f"keys and values: {offered.key_heads}, shared by {n_head} heads"
    if offered.window:
        yield f"window: each token sees the last {offered.window} tokens"
    if offered.parallel:
        yield "attention and feed-forward network: side by side"


def shows_writes(recording: Recording) -> bool:
    """True where what each head writes can be known: the model hands out its values, and W_O can be
    had."""
    return all(attention.opens for attention in recording.attention) and bool(
        offers(recording.model.name).weights
    )


def offers(model: str) -> Offers:
    """What a model shows of itself, see `library.offers`."""
    return library.offers(handle(model))


def cards() -> dict[str, dict]:
    """What people should know of every model, by name, see `library.card`."""
    return {name: library.card(name) for name in library.names()}


def embedding_scale(model: str) -> float | None:
    """By what a model multiplies a word's embedding before anything is added: √d_model in the
    paper, 1 in models that leave it as it is; None where a model in its own code does not say."""
    return float(_embedding(model).scale) if offers(model).weights else None


def word_vector(model: str) -> str:
    """What a model's stream begins with for a word, in a few signs."""
    if not offers(model).weights:
        return "embedding"
    return (
        ("√d × " if embedding_scale(model) != 1 else "")
        + "embedding"
        + ("" if _embedding(model).segment is None else " + segment")
    )


def _embedding(model: str) -> Any:
    return handle(model).model.embedding


def readout(model: str) -> str | None:
    """How a model says its words: "tied" to its embedding, "untied" by a matrix of its own, by a
    "transform" before the embedding, by its "own code", or None where it says none."""
    offered = offers(model)
    if not offered.logits:
        return None
    linear = "untied" if offered.untied else "tied"
    return "own code" if not offered.weights else linear if offered.linear_readout else "transform"


def position_table(model: str) -> np.ndarray | None:
    """The table of positions that a model has learned, (position, d_model); None for one that adds
    sinusoids or nothing, or does not show it."""
    offered = offers(model)
    return (
        np.array(_embedding(model).position.detach().numpy())
        if offered.weights and offered.positions == "learned"
        else None
    )


def embeddings(model: str) -> np.ndarray:
    """Every word's embedding as a model's stream begins with it, (id, d_model). Large, and so not
    kept."""
    return library.embeddings(handle(model))


def spelled(model: str, ids: Iterable[int]) -> str:
    """The text that tokens of a model's vocabulary spell, special ones left out."""
    return handle(model).tokenizer.text(ids)


def end(model: str) -> tuple[int, str] | None:
    """The token that ends what a model writes, and its label; None where it has none."""
    tokenizer = handle(model).tokenizer
    token = getattr(tokenizer, "eos", None)
    return None if token is None else (token, tokenizer.label(token))


def first_token(model: str, text: str) -> tuple[int, int] | None:
    """The id of the first token that a text is split into when it stands alone, and how many there
    are. None where there are none."""
    ids = handle(model).tokenizer.ids([text.encode("utf-8", "replace").decode("utf-8")])[0]
    return (ids[0], len(ids)) if ids else None


def labels(model: str, ids: Iterable[int]) -> list[str]:
    """Tokens of a model's vocabulary as a person reads them."""
    return library.labels(handle(model), ids)
