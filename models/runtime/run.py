"""A run: the arguments of a recording, from which it is made or found again."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from models.contract.argument_validation import (
    edits_of,
    expect_model,
    expect_recording,
    target_of,
    text_or_ids,
)
from models.contract.cancellation import NoRoom
from models.contract.edits import Edit
from models.contract.model import Model
from models.contract.recording import Recording, digest
from models.example_texts import OPENING_TEXT
from models.model_names import MINE_PREFIX, PERMUTED_SUFFIX
from models.runtime import caching, host, registry
from models.runtime.caching import CachedModel, loaded

# Recordings that callers handed in, by their digests. They may be changed or of an older file, so
# that model, text and edits do not say what is in them.
_adopted: WeakValueDictionary[str, Recording] = WeakValueDictionary()


@dataclass(frozen=True)
class Run:
    """The arguments of a recording, without the recording: light enough to be stored for every
    visitor.

    model: its name, or a loaded or wrapped model, whose name it is then. text: or token ids, as of
    `Model.record`. edits: several, or one. target: what a translator's decoder reads, see
    `Model.record`. contents: digest of the recording that a caller handed in, "" for none. ids: the
    token ids that are read in the place of the text, which is what they spell; None where the text
    is read. covered: the place that a reader is asked for, whose word no label tells, as of
    `Recording.covering`."""

    model: str
    text: str
    edits: tuple[Edit, ...] = ()
    target: str | tuple[int, ...] | None = None
    contents: str = field(default="", repr=False)
    ids: tuple[int, ...] | None = None
    covered: int | None = None
    _at_hand: ClassVar[weakref.ref[Recording] | None] = None

    def __post_init__(self) -> None:
        """Takes a loaded model by its name, one edit for several, and ids in the place of the text.
        Raises TypeError for what is none of these."""
        model: Any = self.model
        if isinstance(model, Model):
            host.current.adopt(model)
            object.__setattr__(self, "model", model.name)
        elif not isinstance(model, str):
            expect_model(model)
        if not isinstance(self.edits, tuple) or not all(isinstance(e, Edit) for e in self.edits):
            object.__setattr__(self, "edits", edits_of(self.edits))
        if not isinstance(self.target, str | tuple | None):
            object.__setattr__(self, "target", target_of(self.target))
        if not isinstance(self.text, str):
            read = loaded(self.model).record(text_or_ids(self.text))
            object.__setattr__(self, "text", read.text)
            object.__setattr__(self, "ids", read.text_or_ids if read.as_ids else None)

    @classmethod
    def of(cls, source: Run | Recording | Model, model: Model | None = None) -> Run:
        """The run of a recording in hand, which shows that recording for as long as the caller
        keeps it; what other runs show does not change. A run is itself, a loaded model its run on
        the text that the app opens on. model: the recording's, loaded; it is loaded by its name
        where None.

        Raises TypeError for anything else."""
        if isinstance(source, Run):
            return source
        for each in (source, model):
            if isinstance(each, Model):
                host.current.adopt(each)
        if isinstance(source, Model):
            return cls(source.name, OPENING_TEXT)
        if not isinstance(source, Recording):
            raise TypeError(
                f"a run, a recording or a loaded model, and not a {type(source).__name__}"
            )
        expect_recording(source)
        if source.model.name.startswith(MINE_PREFIX) and not registry.holds(source.model.name):
            from models.inputs import array_model

            array_model.hold_model_of(source)  # of a file: its model is not in memory
        contents = digest(source)
        _adopted[contents], caching.contents[id(source)] = source, contents
        weakref.finalize(source, caching.contents.pop, id(source), None)
        return replace(_run_of(source), contents=contents)

    @property
    def loaded(self) -> CachedModel:
        """Its model, with the memory of all."""
        return loaded(self.model)

    @property
    def text_or_ids(self) -> str | tuple[int, ...]:
        """Input of the model: the text, or the token ids in its place."""
        return self.text if self.ids is None else self.ids

    def recording(self) -> Recording:
        """The recording at hand; else the one that was handed in, where it is of these arguments;
        else the model's own, from the cache, or made anew where it is no longer there."""
        at_hand = self._at_hand() if self._at_hand is not None else None
        made = (
            at_hand
            or self.held()
            or self.loaded.recording_of(self.text_or_ids, self.edits, self.target)
        )
        return made.covering(self.covered)

    def covering(self, place: int | None) -> Run:
        """The run of the same pass, as of `Recording.covering`."""
        return self if place == self.covered else replace(self, covered=place)

    def with_at_hand(self, recording: Recording) -> Run:
        """An equal run that has its recording at hand, for as long as somebody else holds that: it
        looks for it nowhere."""
        run = copy(self)
        object.__setattr__(run, "_at_hand", weakref.ref(recording))
        return run

    def held(self) -> Recording | None:
        """The recording that was handed in, None where this run is not of its text, edits and
        target. Raises ValueError where its owner has let it go."""
        if not self.contents:
            return None
        if (recording := _adopted.get(self.contents)) is None:
            raise ValueError("the recording of this run is no longer in memory; record it again")
        own = replace(self, contents="", covered=None)
        return recording if own == _run_of(recording) else None

    def under(self, edits: tuple[Edit, ...]) -> Run:
        """The run under these edits. A translator's decoder goes on reading the text that it reads
        without them, so that both runs have the same rows."""
        target = self.target
        if target is None and len(streams := self.recording().streams) > 1:
            target = tuple(map(int, streams[-1].ids[1:]))
        return replace(self, edits=edits, target=target)

    def permuted(self) -> Run:
        """The run of the same model with its weights in random order, whose decoder reads what this
        one's reads."""
        return replace(self.under(()), model=self.model + PERMUTED_SUFFIX, contents="")

    def memo(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Something computed from its recording, kept under `key` beside it."""
        return caching.memo(self.recording(), key, make)

    def measure(self, key: Hashable, measure: Callable[[Recording], Any]) -> Any:
        """The result of `measure` on its recording, kept under `key`; the recording is not. A
        message where the model cannot read the text."""
        model = self.loaded

        def make() -> Any:
            source = host.current.truncate(self.text) if self.ids is None else self.ids
            try:
                recording = self.held() or host.current.record(
                    model.uncached, source, self.edits, self.target
                )
                return measure(recording)
            except ValueError as error:
                if isinstance(error, NoRoom) and error.passing:
                    raise
                return str(error)

        return model.memo((key, self), make)


def run_of(recording: Recording) -> Run:
    """The run of a recording that a run made or that was handed in, for what outlives the
    recording."""
    return replace(_run_of(recording), contents=caching.cause(recording)[-1])


def _run_of(recording: Recording) -> Run:
    """The run in which a recording's model makes it."""
    target = tuple(map(int, recording.streams[-1].ids[1:])) if len(recording.streams) > 1 else None
    ids = recording.text_or_ids if recording.as_ids else None
    assert not isinstance(ids, str)  # they stand in the place of a text
    return Run(
        recording.model.name,
        recording.text,
        recording.edits,
        target,
        ids=ids,
        covered=recording.covered,
    )
