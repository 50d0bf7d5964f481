"""Subject of a panel: a head and a query of one attention, or a token of one stream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.analysis import consistency, logit_lens
from explorer.analysis.attention import Axes, axes
from explorer.analysis.recorded_findings import next_token_label
from explorer.text.markdown_escape import literal
from explorer.text.templates import sentences
from models import model_names
from models.caching import loaded, memo
from models.recording import Attention, Recording, Stream, from_end
from models.run import Run

REFUSALS = sentences("selection", "refusals")


@dataclass(frozen=True, eq=False)
class Selection:
    """A head of an attention of a run and one of its queries, checked to be there."""

    run: Run
    recording: Recording
    attention: Attention
    axes: Axes
    layer: int
    head: int
    query: int

    @property
    def at(self) -> tuple[int, int, int]:
        """(layer, head, query)."""
        return self.layer, self.head, self.query

    @property
    def name(self) -> str:
        """The attention's name in the address, "" for the first."""
        is_first = self.attention is self.recording.attention[0]
        return "" if is_first else self.attention.name

    @property
    def allowed(self) -> np.ndarray:
        """The cells (query, key) in which the head may attend, without those that edits cut."""
        return consistency.allowed_cells(self.recording, self.attention, self.layer, self.head)

    @property
    def weights(self) -> np.ndarray:
        """The query's weights (key), NaN where it is not allowed."""
        row = self.attention.pattern[self.at].astype(np.float64)
        return np.where(self.allowed[self.query], row, np.nan)

    @property
    def strongest(self) -> int:
        """The key of the largest weight."""
        return int(np.nan_to_num(self.weights, nan=-1).argmax())

    def place_of_key(self, key: int) -> int:
        """The place of a key as `place_of` gives it."""
        return place_of("key", key, len(self.axes.keys))

    @property
    def slots(self) -> dict[str, Any]:
        """Its layer, head, token and query word, for the slots of sentences."""
        layer, head, token = self.at
        return {"layer": layer, "head": head, "token": token, "query": self.word}

    @property
    def word(self) -> str:
        """Label of the query."""
        return self.axes.rows[self.query]

    @property
    def model(self) -> str:
        """The model's name, as a sentence begins with it."""
        return model_name(self.recording)

    @property
    def is_across(self) -> bool:
        """True where rows and columns are two texts."""
        return self.attention.query != self.attention.key


def expect_vectors(selection: Selection) -> None:
    """Raises ValueError for a model that gives its weights and no queries, keys and values."""
    if not selection.attention.opens:
        raise ValueError(REFUSALS("weights_alone", model=selection.model))


def model_name(recording: Recording) -> str:
    """The name of a recording's model, as a sentence begins with it."""
    title = model_names.title(recording.model.name)
    return f"{title}," if ", " in title else title


def expect_place(name: str, value: int | None, n: int, first: int = 0) -> None:
    """Raise ValueError for a value that is not one of n, counted from `first`. None passes."""
    if value is not None and not first <= value < first + n:
        raise ValueError(REFUSALS("no_place", name=name, value=value, last=first + n - 1))


def place_of(name: str, value: int, n: int) -> int:
    """The place from 0 of one of n; a negative one counts from the end. Raises as
    `expect_place`."""
    expect_place(name, from_end(value, n), n)
    return from_end(value, n)


def place_if_any(name: str, value: int | None, n: int) -> int | None:
    """The place of one of n as `place_of` gives it; None for None."""
    return None if value is None else place_of(name, value, n)


def expect_option(name: str, value: object, options: Collection[object]) -> None:
    """Raise ValueError for a value that is no option."""
    if value not in options:
        raise ValueError(
            REFUSALS("no_choice", name=name, value=value, names=", ".join(map(str, options)))
        )


FIRST_SITE = "0.attn"


def first_site(
    options: Callable[[Run, Mapping[str, Any]], Mapping[str, str]],
) -> Callable[[Run, Mapping[str, Any]], str]:
    """The site that is shown until a reader chooses: the first sub-layer's where there is one."""

    def first(run: Run, chosen: Mapping[str, Any]) -> str:
        there = options(run, chosen)
        return FIRST_SITE if FIRST_SITE in there else next(iter(there), "")

    return first


def typed_word(run: Run, text: str) -> tuple[int | None, str]:
    """The id of the first token of what a reader typed, None for none, and a sentence on how it is
    read."""
    words = sentences("selection", "typed")
    id, n = run.loaded.first_token(text) or (None, 0)
    if id is None:
        return None, words("no_token")
    first = literal(run.loaded.labels([id])[0])
    if n == 1:
        return id, words("one_token", token=first)
    return id, words("tokens", typed=literal(text[:60]), n=n, first=first)


def select(
    run: Run, layer: int = 0, head: int = 0, token: int = 0, attention: str = ""
) -> Selection:
    """A head and a query of a run; attention: its name, the first one where "". Raises ValueError
    for what is not there."""
    recording = run.recording()
    names = [each.name for each in recording.attention]
    if not names:
        raise ValueError(REFUSALS("no_attention", model=recording.model.name))
    if attention and attention not in names:
        raise ValueError(REFUSALS("no_such_attention", name=attention, names=", ".join(names)))
    chosen = recording.attention[names.index(attention) if attention else 0]
    layer, head, token = (
        place_of(name, value, count)
        for name, value, count in zip(
            ("layer", "head", "token"), (layer, head, token), chosen.pattern.shape
        )
    )
    is_across = chosen.query != chosen.key
    # between two texts the last row is named after the token that the model would produce next
    following = next_token_label(recording, chosen.query) if is_across else ""
    of_axes = axes(recording, chosen, following)
    return Selection(run, recording, chosen, of_axes, layer, head, token)


@dataclass(frozen=True, eq=False)
class StreamSelection:
    """A stream of a recording and one of its tokens, checked to be there."""

    recording: Recording
    stream: Stream
    token: int

    @property
    def word(self) -> str:
        """Label of the token."""
        return self.stream.tokens[self.token]

    @property
    def model(self) -> str:
        """The model's name, as a sentence begins with it."""
        return model_name(self.recording)

    @property
    def is_one_of_several(self) -> bool:
        """True where the model has other streams."""
        return len(self.recording.streams) > 1

    @property
    def logits(self) -> np.ndarray:
        """The model's scores over the vocabulary (id) at the token."""
        return loaded(self.recording).logits(self.recording, self.stream.name, self.token)

    def cached(self, key: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        """Something computed of the stream, kept beside its recording."""
        return memo(self.recording, (self.stream.name, *key), make)


def predicted(run: Run, token: int | None = None) -> StreamSelection:
    """A token whose word a model predicts, the first to ask for where None. Raises ValueError for
    one that is not there and for a model that predicts no words."""
    recording = run.recording()
    if why := loaded(recording).capabilities.no_readout:
        raise ValueError(REFUSALS("no_readout", model=model_name(recording), why=why))
    token = logit_lens.default_token(recording) if token is None else token
    return select_stream(run, token, logit_lens.read_stream(recording).name)


def select_stream(run: Run, token: int = 0, stream: str = "") -> StreamSelection:
    """A token of a stream of a run; stream: its name, the first one where "". Raises ValueError for
    what is not there."""
    recording = run.recording()
    names = [each.name for each in recording.streams]
    if stream and stream not in names:
        raise ValueError(REFUSALS("no_stream", name=stream, names=", ".join(names)))
    chosen = recording.streams[names.index(stream) if stream else 0]
    if not chosen.sites:
        raise ValueError(REFUSALS("no_vectors", model=recording.model.name))
    return StreamSelection(recording, chosen, place_of("token", token, len(chosen.tokens)))
