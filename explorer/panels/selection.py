"""Subject of a panel: a head and a query of one attention, or a token of one stream; and how each
of these is declared as a choice, with what a text opens on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from explorer.analysis import consistency, logit_lens, opening
from explorer.analysis.attention import Axes, axes
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import word_groups
from explorer.analysis.head_naming import Head as NamedHead
from explorer.figures.formatting import Written, hundredths
from explorer.panels import link_words
from explorer.panels.choice import EVERY, Choice
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models import model_names
from models.contract.edits import HideToken, ShuffleTokens
from models.contract.recording import Attention, Recording, Stream, from_end
from models.contract.spelling import there_are
from models.runtime.caching import loaded, memo
from models.runtime.run import Run

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
    def facts(self) -> RecordingFacts:
        """The facts of its recording."""
        return RecordingFacts(self.recording)

    @property
    def heads(self) -> tuple[NamedHead, ...]:
        """Every head of its attention, with its name on this text."""
        return self.facts.named_heads(self.attention.name)

    @property
    def name(self) -> str:
        """The attention's name in the address, "" for the first."""
        is_first = self.attention is self.recording.attention[0]
        return "" if is_first else self.attention.name

    @property
    def allowed(self) -> np.ndarray:
        """The cells (query, key) in which the head may attend, without those that edits cut."""
        if not self.recording.edits:
            return np.asarray(self.attention.allowed[self.layer])
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

    def weight(self, key: int) -> Written:
        """The query's weight on a key, as sentences have it."""
        return Written.by(hundredths, self.attention.pattern[(*self.at, key)])

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
    following = RecordingFacts(recording).next_token_label(chosen.query) if is_across else ""
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
    token = opening.predicted(recording) if token is None else token
    return select_stream(run, token, logit_lens.read_stream(recording).name)


def why_here(at: StreamSelection) -> str:
    """Why another token is on show than the word that every tab opens on: a model that goes on
    predicts what follows; "" where that is not so."""
    recording, stream = at.recording, at.stream
    is_opened = recording.model.kind == "decoder" and at.token == opening.predicted(recording)
    if not is_opened or opening.word(recording, stream) == at.token:
        return ""
    return " " + sentences("selection", "opening")("next", model=at.model, word=at.word)


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


# ---- the selection as choices --------------------------------------------------------------------

Chosen = Mapping[str, Any]


def attention_of(run: Run, chosen: Chosen) -> Attention:
    """The attention that is chosen. Raises ValueError for a model that shows none."""
    return select(run, attention=chosen.get("attention") or "").attention


def stream_of(run: Run, chosen: Chosen) -> Stream:
    """The stream of a token that is chosen: that of the stream or of the attention's queries, where
    one of these is chosen, else the first."""
    recording = run.recording()
    if chosen.get("stream"):
        return recording.stream(chosen["stream"])
    of = chosen.get("attention")
    return recording.stream(attention_of(run, chosen).query) if of else recording.streams[0]


def _checked_attention(run: Run, chosen: Chosen, value: str) -> str:
    of = select(run, attention=value)
    return of.name


def _checked_stream(run: Run, chosen: Chosen, value: str) -> str:
    return select_stream(run, 0, value).stream.name if value else run.recording().streams[0].name


def _attention_word(run: Run, value: str | None) -> str:
    every = run.recording().attention
    return value or (every[0].name if value == "" and len(every) > 1 else "")


def _opened_attention(run: Run, chosen: Chosen) -> str:
    """That of the strongest finding, the first one where something is chosen in it."""
    names = ("layer", "head", "token", "source", "key")
    recording = run.recording()
    if len(recording.attention) == 1 or any(chosen.get(name) is not None for name in names):
        return ""
    return opening.attention(recording)


def _row(run: Run, chosen: Chosen) -> int | str:
    """The word that the strongest finding of the selected head is about, no word where there is
    none or where, between two texts, a key is selected."""
    of, at = attention_of(run, chosen), (chosen["layer"], chosen["head"])
    if chosen.get("key") is not None and of.query != of.key:
        return EVERY
    row = opening.row(run.recording(), of, at)
    return EVERY if row is None else row


def _head(at: int) -> Callable[[Run, Chosen], int]:
    """The layer, 0, or the head, 1, that an attention opens on."""
    return lambda run, chosen: opening.head(
        run.recording(), attention_of(run, chosen), chosen.get("layer")
    )[at]


def _lookup(at: int) -> Callable[[Run, Chosen], int]:
    """The layer, 0, the head, 1, or the query, 2, of the lookup that an attention opens on."""
    names = ("layer", "head", "token")
    return lambda run, chosen: opening.lookup(
        run.recording(), attention_of(run, chosen), *map(chosen.get, names)
    )[at]


def _cell(at: int) -> Callable[[Run, Chosen], int]:
    """The query, 0, or the key, 1, of the cell that a head opens on."""

    def place(run: Run, chosen: Chosen) -> int:
        recording, of = run.recording(), attention_of(run, chosen)
        layer, head = chosen["layer"], chosen.get("head")
        if head is None:
            _, head = opening.head(recording, of, layer)
        named = chosen.get("token"), chosen.get("source")
        return opening.cell(recording, of, (layer, head), *named)[at]

    return place


def _before_taken_out(run: Run) -> Recording:
    """What a word is chosen on: the text as the model reads it with every part, so that what is
    taken out leaves the word where it was; a run of one recording alone as it is."""
    kept = tuple(each for each in run.edits if isinstance(each, (HideToken, ShuffleTokens)))
    if kept == run.edits:
        return run.recording()
    try:
        return run.under(kept).recording()
    except ValueError:
        return run.recording()


def _word(run: Run, chosen: Chosen) -> int:
    name = stream_of(run, chosen).name
    before = _before_taken_out(run)
    return opening.word(before, before.stream(name))


def _word_on_its_way(run: Run, chosen: Chosen) -> int:
    before = _before_taken_out(run)
    return opening.flow_word(before, before.streams[0])


def _followed_word(run: Run, chosen: Chosen) -> int:
    name = stream_of(run, chosen).name
    before = _before_taken_out(run)
    return opening.flow_word(before, before.stream(name))


def _predicted(run: Run, chosen: Chosen) -> int | None:
    """The token whose word is predicted, None for a model that predicts none."""
    silent = run.loaded.capabilities.no_readout
    return None if silent else opening.predicted(run.recording())


def token_read(run: Run, chosen: Chosen, value: Any) -> int:
    """The check of a token of the stream that words are read from."""
    return place_of("token", value, len(_stream_read(run, chosen).tokens))


def token_of_text(run: Run, chosen: Chosen, value: Any) -> int:
    """The check of a token of the text, whose stream is the first."""
    return place_of("token", value, len(run.recording().streams[0].tokens))


def _place(name: str, axis: int) -> Callable[[Run, Chosen, Any], int]:
    """The check of a place along an axis of an attention's weights (layer, head, query, key)."""
    return lambda run, chosen, value: place_of(
        name, value, attention_of(run, chosen).pattern.shape[axis]
    )


def _token(run: Run, chosen: Chosen, value: Any) -> int:
    return place_of("token", value, len(stream_of(run, chosen).tokens))


def _of_word(stream: Callable[[Run, Chosen], Stream]) -> Callable[[Run, Chosen, str], int]:
    """What gives the place of a word of the text that is said in the place of a token."""

    def place(run: Run, chosen: Chosen, word: str) -> int:
        recording, of = run.recording(), stream(run, chosen)
        if (at := link_words.token_of_word(word, recording, of.name)) is None:
            labels = dict.fromkeys(word_groups(recording, of.name).labels)
            raise ValueError(REFUSALS("no_word", word=word, there=there_are(word, labels)))
        return at

    return place


def _stream_of_keys(run: Run, chosen: Chosen) -> Stream:
    return run.recording().stream(attention_of(run, chosen).key)


def _stream_read(run: Run, chosen: Chosen) -> Stream:
    """The stream from which words are read."""
    recording = run.recording()
    silent = run.loaded.capabilities.no_readout
    return recording.streams[-1] if silent else logit_lens.read_stream(recording)


ATTENTION = Choice(of="model", suits="", checked=_checked_attention, spelled=_attention_word)
LAYER = Choice(of="model", suits=_head(0), checked=_place("layer", 0))
HEAD = Choice(of="model", suits=_head(1), checked=_place("head", 1))
TOKEN = Choice(of="text", suits=_word, checked=_token, named=_of_word(stream_of))
KEY = Choice(name="source", of="text", checked=_place("key", 3), named=_of_word(_stream_of_keys))
STREAM = Choice(
    of="model",
    suits=lambda run, chosen: run.recording().streams[0].name,
    checked=_checked_stream,
)

# The first attention, or that of the strongest finding.
FirstAttention = Annotated[str, ATTENTION]
OpenedAttention = Annotated[str, replace(ATTENTION, suits=_opened_attention)]
# The head that an attention opens on, or all of them.
Layer = Annotated[int, LAYER]
Head = Annotated[int, HEAD]
LayerOrEvery = Annotated[int | None, replace(LAYER, suits=EVERY, takes_every=True)]
HeadOrEvery = Annotated[int | None, replace(HEAD, suits=EVERY, takes_every=True)]
# In the head: the row that is told of, or the cell; for the first no key is selected at first.
RowOrEvery = Annotated[int | None, replace(TOKEN, suits=_row, takes_every=True)]
KeyOfRow = Annotated[int | None, KEY]
Query = Annotated[int, replace(TOKEN, suits=_cell(0))]
Key = Annotated[int, replace(KEY, suits=_cell(1))]
# The lookup whose second key matters most.
LookupLayer = Annotated[int, replace(LAYER, suits=_lookup(0))]
LookupHead = Annotated[int, replace(HEAD, suits=_lookup(1))]
LookupQuery = Annotated[int, replace(TOKEN, suits=_lookup(2))]
# A stream, and a word of it or of the queries of an attention, that whose way is shown, or none.
FirstStream = Annotated[str, STREAM]
Word = Annotated[int, TOKEN]
FollowedWord = Annotated[int, replace(TOKEN, suits=_followed_word)]
WordOrEvery = Annotated[int | None, replace(TOKEN, takes_every=True)]
LookupQueryOrEvery = Annotated[int | None, replace(TOKEN, suits=_lookup(2), takes_every=True)]
# A token whose word is predicted, and one of the text whose way is shown.
Predicted = Annotated[
    int | None,
    replace(TOKEN, suits=_predicted, checked=token_read, named=_of_word(_stream_read)),
]
WordOnItsWay = Annotated[
    int,
    replace(
        TOKEN,
        suits=_word_on_its_way,
        checked=token_of_text,
        named=_of_word(lambda run, chosen: run.recording().streams[0]),
    ),
]
# Where a panel itself does with None, and with EVERY, what it says.
LayerIfAny = Annotated[int | None, replace(LAYER, suits=None, takes_every=True)]
HeadIfAny = Annotated[int | None, replace(HEAD, suits=None, takes_every=True)]
TokenIfAny = Annotated[int | None, replace(TOKEN, suits=None, takes_every=True)]
