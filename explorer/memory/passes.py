"""A model's passes over a text, and what is read off them: each made once for everyone and kept on
the shelf."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.memory import collector, shelf
from explorer.memory.models import DEFAULT_MODEL, handle
from explorer.memory.settings import beginning
from explorer.memory.shelf import derived, of_model
from explorer.memory.turns import TooLong, turn
from models import learn, library
from models.edits import Edit, OtherNorm
from models.examples import DEFAULT_TEXT
from models.prediction import Attribution, Circuits, Lens, Neurons
from models.recording import Attention, Recording

Made = TypeVar("Made")


def warm_up() -> None:
    """Load the first model and run it once on the first text, so that what is imported at first use
    is there."""
    record(DEFAULT_MODEL, DEFAULT_TEXT)
    collector.settle()


def made_in_turn(make: Callable[[], Made]) -> Made:
    """What `make` gives, made in turn. A computation that takes too long ends the reader's run with
    a sentence."""
    try:
        with turn():
            return make()
    except TooLong as said:
        if get_script_run_ctx(suppress_warning=True) is None:
            raise
        st.warning(str(said))
        st.stop()


def record(
    model: str,
    text: str,
    edits: tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
    get: Callable[[Hashable, Callable[[], Any]], Recording] = shelf.get,
) -> Recording:
    """The recording of a model on a text, from the shelf where it lies there. `target` as in
    `library.record`.

    Of a text longer than the server reads, and of such a target, it is that of the beginning.
    """
    loaded, text = handle(model), beginning(text)
    target = beginning(target) if isinstance(target, str) else target
    key = ("recording", model, loaded.card.fingerprint, text, edits, target)
    return get(key, lambda: made_in_turn(lambda: library.record(loaded, text, edits, target)))


def in_passing(
    model: str, text: str, edits: tuple[Edit, ...], target: tuple[int, ...] | None
) -> Recording:
    """As `record`, for one look: where it is heavy it is not kept, and takes nobody's place on the
    shelf for longer than it is looked at."""
    return record(model, text, edits, target, shelf.in_passing)


def watched(run: Any, text: str, step: int | None = None) -> Recording:
    """A text as a training's model reads it now, or after so many steps. Of a list that is
    answered, its decoder reads the right answer.

    It is not kept: a moment later there is another. Raises ValueError before there are weights, and
    for a text that it cannot read.
    """
    return made_in_turn(lambda: learn.read(run, text, step))


@dataclass(frozen=True)
class Shown:
    """Which recording is meant, without holding it: what `record` is asked for. Light enough to be
    kept for every visitor."""

    model: str
    text: str
    edits: tuple[Edit, ...] = ()
    target: str | tuple[int, ...] | None = None

    def recording(self) -> Recording:
        """The recording itself, from the shelf, made anew where it no longer lies there."""
        return record(self.model, self.text, self.edits, self.target)

    def attention(self, name: str) -> Attention:
        """One of its attentions."""
        return next(each for each in self.recording().attention if each.name == name)


def shown_of(recording: Recording) -> Shown:
    """The name of a recording, for what is kept longer than a run: a button to press later, a
    function to call back."""
    ids = tuple(map(int, recording.streams[-1].ids[1:])) if len(recording.streams) > 1 else None
    return Shown(recording.model.name, recording.text, recording.edits, ids)


def _of(recording: Recording, read: Callable[..., Made], *asked: Any) -> Made:
    """What `read(handle, recording, *asked)` of the library gives, made in turn and kept."""
    # Here and below before the turn: a model that has to be loaded anew holds nobody up.
    loaded = handle(recording.model.name)
    return derived(
        recording,
        (read.__name__, *asked),
        lambda: made_in_turn(lambda: read(loaded, recording, *asked)),
    )


def lens(recording: Recording, stream: str, top: int = 10) -> Lens:
    """The logit lens on a stream of a recording."""
    return _of(recording, library.lens, stream, top)


def logits(recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores over the vocabulary (id) at one token of a stream."""
    return _of(recording, library.logits, stream, token)


def attribution(
    recording: Recording, stream: str, token: int, id: int, against: int | None = None
) -> Attribution:
    """A word's logit at a token, taken apart; with `against` the difference to another word's."""
    return _of(recording, library.attribute, stream, token, id, against)


def nearest(
    recording: Recording, stream: str, token: int, top: int
) -> tuple[np.ndarray, np.ndarray]:
    """The words of the vocabulary that a token's vectors come nearest to at every site of its
    stream: ids and cosines, each (site, rank)."""
    vectors = recording.stream(stream).resid[:, token]
    loaded = handle(recording.model.name)
    return derived(
        recording,
        ("nearest", stream, token, top),
        lambda: made_in_turn(lambda: library.nearest(loaded, vectors, top)),
    )


def all_logits(recording: Recording, stream: str) -> np.ndarray:
    """The model's scores over the vocabulary at every token of a stream, (token, id). Large, and so
    not kept."""
    loaded = handle(recording.model.name)
    return np.stack(
        [
            made_in_turn(lambda: library.logits(loaded, recording, stream, token))
            for token in range(len(recording.stream(stream).tokens))
        ]
    )


def norms(
    recording: Recording, stream: str
) -> dict[str, tuple[np.ndarray, np.ndarray, float, bool]]:
    """The LayerNorms of a stream as they were in the recording: gain, bias, eps, and whether the
    mean is subtracted (not in an RMSNorm), by place."""
    edits = tuple(edit for edit in recording.edits if isinstance(edit, OtherNorm))
    return of_model(
        recording, ("norms", stream, edits), lambda loaded: library.norms(loaded, stream, edits)
    )


def outputs(recording: Recording) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """W_O, cut by head, and its bias, by attention of the recording's model."""
    return of_model(recording, ("outputs",), library.outputs)


def highway(recording: Recording, stream: str, token: int) -> Any:
    """The gradient of an output back to every state of a stream, as `library.highway`."""
    return _of(recording, library.highway, stream, token)


def jacobian(recording: Recording, stream: str, token: int, site: str) -> Any:
    """The Jacobians of one sub-layer at one token, as `library.jacobian`."""
    return _of(recording, library.jacobian, stream, token, site)


def inside(recording: Recording, stream: str, layer: int, token: int) -> Any:
    """The hidden units of a layer's feed-forward network at one token, as `library.inside`."""
    return _of(recording, library.inside, stream, layer, token)


def neurons(
    recording: Recording, stream: str, layer: int, at: tuple[int, int, int | None]
) -> Neurons:
    """The neurons of a layer's FFN by what they add to a logit; `at`: the token, the word, and the
    one it is compared with, as for `attribution`."""
    return _of(recording, library.neurons, stream, layer, *at)


def circuits(
    recording: Recording, attention: Attention, at: tuple[int, int], places: tuple[int, ...]
) -> Circuits:
    """A head's circuits on the tokens at some places of its keys, with the values that it has for
    them there."""
    loaded, ids = handle(recording.model.name), recording.stream(attention.key).ids
    return derived(
        recording,
        ("circuits", attention.name, at, places),
        lambda: made_in_turn(
            lambda: library.circuits(
                loaded,
                attention.name,
                *at,
                tuple(int(ids[place]) for place in places),
                attention.v[at][list(places)],
            )
        ),
    )


def bare_circuits(
    recording: Recording, attention: str, at: tuple[int, int], ids: tuple[int, ...]
) -> Circuits:
    """A head's circuits on bare words, whatever the text."""
    return of_model(
        recording,
        ("circuits", attention, at, ids),
        lambda loaded: made_in_turn(lambda: library.circuits(loaded, attention, *at, ids)),
    )


def nearest_to(model: str, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words that vectors (row, d_model) come nearest to by cosine: ids and cosines, each (row,
    rank). Not kept."""
    loaded = handle(model)
    return made_in_turn(lambda: library.nearest(loaded, vectors, top))


def depth(recording: Recording, stream: str) -> Any:
    """The gradients of a deep random stack on a stream's embeddings, as `library.depth`. Another
    model of the same words has other ones."""
    of = recording.stream(stream)
    return derived(
        recording,
        ("depth", stream),
        lambda: made_in_turn(lambda: library.depth(of.resid[0])),
    )
