"""The contract between the models and everything that shows them: one forward pass over one text,
frozen, numpy only.

Axis legend:
    layer, head      counted from 0
    query, key       positions of an attention's query stream and key stream
    site             a named place on the residual stream, in the order of the pass
    token            a position of one stream
    d_model, d_head  widths of the stream and of one head

Sites obey one conservation law, readable from their names. A site `X.wrote` holds what was added to
the state before it, and the site right after it is the sum. A `X.normed` that follows is the
LayerNorm of that sum and the state from there on. A site `X.read` is what a sub-layer reads, the
LayerNorm of the state, where that is before the sub-layer: a side branch. States are all sites but
the `.wrote` and `.read` ones.

A model that runs in another's code may show less of itself: fewer sites, and attentions of which
only the pattern is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import blake2b
from numbers import Integral
from typing import Any, Literal

import numpy as np

from models.contract.cancellation import expect_wanted
from models.contract.edits import Edit
from models.contract.spelling import there_are
from models.version import VERSION

# The first character of a token's label where the token goes on inside a word: "dev", "‧ices".
CONTINUES = "\u2027"
# The label of a token that a reader is asked for, in the place of its own.
COVER = "\u25a2"


def from_end(value: int, n: int) -> int:
    """The place from 0 of one of n; a negative one counts from the end, as in Python. What is none
    of them is left for the callee, which says what there is."""
    return value + n if -n <= value < 0 else value


# Keys and values that several heads share: held once, read as if every head had its own.


class GroupedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array (layer, head, key, d_head) in which neighbouring heads are alike, `stored` once for
    each group of them, (layer, key head, key, d_head).

    One head of it is a view. Any other part is assembled on request, as an array of its own that is
    not cached. It is read-only."""

    def __init__(self, array: np.ndarray, n_head: int) -> None:
        self.stored, self.n_head = array, n_head

    @property
    def each(self) -> int:
        """The number of query heads that share one key head."""
        return self.n_head // self.stored.shape[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """As if every head had its own."""
        layers, _, keys, width = self.stored.shape
        return layers, self.n_head, keys, width

    @property
    def ndim(self) -> int:
        """Four axes."""
        return self.stored.ndim

    @property
    def dtype(self) -> np.dtype:
        """Of its numbers."""
        return self.stored.dtype

    @property
    def size(self) -> int:
        """The number of values as read, which is more than the stored ones."""
        return self.stored.size * self.each

    def __len__(self) -> int:
        return len(self.stored)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[layer] for layer in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Integral):
            return _frozen(np.repeat(self.stored[int(index)], self.each, axis=0))
        if isinstance(index, tuple) and len(index) > 1 and isinstance(index[1], Integral):
            layers, head, *inner = index
            if isinstance(layers, (Integral, slice)) and -self.n_head <= head < self.n_head:
                return self.stored[(layers, int(head) % self.n_head // self.each, *inner)]
        return _frozen(np.asarray(self)[index])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("keys that heads share are put together, which takes a copy")
        array = np.repeat(self.stored, self.each, axis=1)
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = (np.asarray(each) if isinstance(each, GroupedArray) else each for each in inputs)
        return getattr(ufunc, method)(*arrays, **options)

    def __getattr__(self, name: str) -> Any:
        # All else that an array has; but not its bytes, of which most are not held.
        if name.startswith("_") or name in ("stored", "n_head", "nbytes", "base", "flags", "data"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


def grouped(array: np.ndarray | GroupedArray, n_head: int) -> np.ndarray | GroupedArray:
    """Keys or values as they are read by so many heads: those of fewer key heads as Shared, where
    each stands for as many heads as every other; all else as it is."""
    if isinstance(array, GroupedArray) or array.ndim != 4 or array.shape[1] in (0, n_head):
        return array
    return array if n_head % array.shape[1] else GroupedArray(array, n_head)


def stored_array(value: Any) -> Any:
    """Part of an array that is held: of a GroupedArray what heads share, of one that is the same in
    every layer one layer; any other value as it is."""
    if isinstance(value, np.ndarray) and value.dtype == bool and value.ndim == 3 and len(value):
        return value if value.strides[0] else value[0]
    return value.stored if isinstance(value, GroupedArray) else value


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value


ROW_SUM_TOLERANCE = 1e-4


class NotFinite(ValueError):
    """A pass whose numbers overflowed; `site` is the first place where they did."""

    def __init__(self, site: str) -> None:
        super().__init__(
            f"the numbers are no longer finite: the first that are not stand at {site}"
        )
        self.site = site


class NotFollowed(ValueError):
    """A pass that a model's own code makes and that no recording can be made of."""


class NotEncoded(ValueError):
    """A text on which a tokenizer's own rules fail, or that a chat template refuses."""

    def __init__(
        self,
        reason: str = "The model’s tokenizer fails on this text; change the text or choose another "
        "model.",
    ) -> None:
        super().__init__(reason)


@dataclass(frozen=True)
class Card:
    """The model of a recording, and how its weights were treated."""

    name: str
    kind: str
    n_layer: int
    n_head: int
    d_model: int
    d_head: int
    n_vocab: int
    n_positions: int
    n_parameters: int
    fingerprint: str
    weights: str


@dataclass(frozen=True, eq=False)
class Stream:
    """One column of residual vectors over a text.

    tokens (n) as a person reads them; ids (n); special (n), True for a token that is not text;
    spans (n, 2), start and end in characters of the text, -1 where there is none; sites (s) names;
    resid (site, token, d_model). roles (n): of a chat, whose message each token is in, "" for the
    template's own tokens; () for a text that is no chat. Raises ValueError where the shapes
    disagree.
    """

    name: str
    tokens: tuple[str, ...]
    ids: np.ndarray
    special: np.ndarray
    spans: np.ndarray
    sites: tuple[str, ...]
    resid: np.ndarray
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.tokens)
        if len(self.roles) not in (0, n):
            raise ValueError(f"stream {self.name} has {n} tokens and {len(self.roles)} roles")
        _expect(f"ids of stream {self.name}", self.ids, (n,))
        _expect(f"special of stream {self.name}", self.special, (n,))
        _expect(f"spans of stream {self.name}", self.spans, (n, 2))
        _expect(f"resid of stream {self.name}", self.resid, (len(self.sites), n, None))
        if len(set(self.sites)) != len(self.sites):
            raise ValueError(f"stream {self.name} names a site twice: {self.sites}")
        _freeze(self)

    def __repr__(self) -> str:
        sites, n, d_model = self.resid.shape
        return f"Stream({self.name!r}, {n} tokens, {sites} sites, d_model {d_model})"

    def only(self, token: int | None) -> Stream:
        """The stream of one token alone; as it is for None."""
        if token is None:
            return self
        at = slice(token, token + 1)
        return Stream(
            self.name,
            self.tokens[at],
            self.ids[at],
            self.special[at],
            self.spans[at],
            self.sites,
            self.resid[:, at],
            self.roles[at],
        )

    def of_sites(self, sites: Collection[str]) -> Stream:
        """The stream at some of its sites, in their order, its vectors a copy."""
        kept = [at for at, site in enumerate(self.sites) if site in sites]
        return replace(self, sites=tuple(self.sites[at] for at in kept), resid=self.resid[kept])

    def at(self, site: str) -> np.ndarray:
        """The vectors at one site, (token, d_model). Raises KeyError for a site the stream does not
        have."""
        expect_wanted()
        if site not in self.sites:
            raise KeyError(
                f"stream {self.name} has no site {site!r}; {there_are(site, self.sites)}"
            )
        return self.resid[self.sites.index(site)]

    def writes(self) -> tuple[tuple[str, str, str], ...]:
        """Every (before, wrote, sum) triple of site names: before + wrote = sum, unless an edit
        took the residual away."""
        triples, state = [], ""
        for index, site in enumerate(self.sites):
            if site.endswith(".wrote"):
                triples.append((state, site, self.sites[index + 1]))
            elif not site.endswith(".read"):
                state = site
        return tuple(triples)


@dataclass(frozen=True, eq=False)
class Attention:
    """One attention of a model, all layers and heads.

    query, key: names of the streams its two axes belong to. scores (layer, head, query, key): q . k
    after scaling, before the mask and the softmax. pattern, the same shape: after both. allowed
    (layer, query, key): True where attending is permitted; given as (query, key) where it is the
    same in every layer, and then held once. sink (layer, head, query): what a learned sink, a score
    that belongs to no key, takes of each row; of 0 layers where there is none. Rows of pattern and
    sink sum to 1. q (layer, head, query, d_head); k and v (layer, head, key, d_head). Where groups
    of heads share keys and values, both may be given as (layer, key head, key, d_head): they are
    held so, once, and read as `Shared`, by every head. scale (layer): what q . k was multiplied by,
    by the model or under an edit; where it is not given, 1 / sqrt(d_head), or 1 where that makes
    the recorded scores. layers: the model's own numbers of these layers where it has others too,
    without attention; none where it has not. Raises ValueError where shapes, sums or the mask
    disagree.

    Where the model's code hands out its pattern and no more, scores, q, k and v have 0 layers and
    `opens` is False.
    """

    name: str
    query: str
    key: str
    scores: np.ndarray
    pattern: np.ndarray
    allowed: np.ndarray
    q: np.ndarray
    k: np.ndarray | GroupedArray
    v: np.ndarray | GroupedArray
    scale: np.ndarray = field(default_factory=lambda: np.zeros(0))
    sink: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0), np.float32))
    layers: np.ndarray = field(default_factory=lambda: np.zeros(0, int))

    def __post_init__(self) -> None:
        _expect(f"pattern of {self.name}", self.pattern, (None, None, None, None))
        layers, heads, queries, keys = self.pattern.shape
        if self.allowed.ndim == 2:
            everywhere = np.broadcast_to(self.allowed, (layers, *self.allowed.shape))
            object.__setattr__(self, "allowed", everywhere)
        qkv_layers = layers if self.opens else 0
        for name in ("k", "v"):
            object.__setattr__(self, name, grouped(getattr(self, name), heads))
        _expect(f"scores of {self.name}", self.scores, (qkv_layers, heads, queries, keys))
        _expect(f"allowed of {self.name}", self.allowed, (layers, queries, keys))
        if self.sink.size:
            _expect(f"sink of {self.name}", self.sink, (layers, heads, queries))
        _expect(f"q of {self.name}", self.q, (qkv_layers, heads, queries, None))
        _expect(f"k of {self.name}", self.k, (qkv_layers, heads, keys, None))
        _expect(f"v of {self.name}", self.v, (qkv_layers, heads, keys, None))
        if self.opens and not self.scale.size:
            object.__setattr__(self, "scale", _likeliest_scale(self))
        _expect(f"scale of {self.name}", self.scale, (qkv_layers,))
        sums = self.pattern @ np.ones(keys, self.pattern.dtype)
        error = np.abs((sums + self.sink if self.sink.size else sums) - 1.0).max(initial=0.0)
        if not error <= ROW_SUM_TOLERANCE:
            raise ValueError(f"rows of {self.name} do not sum to 1: off by {error:.3g}")
        for at, allowed in self.masks:
            if not allowed.all() and any(layer[:, ~allowed].any() for layer in self.pattern[at]):
                raise ValueError(f"{self.name} attends where it is not allowed")
        _freeze(self)

    def __repr__(self) -> str:
        layers, heads, queries, keys = self.pattern.shape
        size = f"{layers} layers, {heads} heads, {queries} queries, {keys} keys"
        return f"Attention({self.name!r}, {size}{'' if self.opens else ', pattern alone'})"

    @property
    def key_heads(self) -> int:
        """The number of stored key/value heads."""
        return stored_array(self.k).shape[1]

    def of_layers(self, at: slice | np.ndarray) -> Attention:
        """Some of the layers alone, without q, k, v and scores; all of them, for which a slice
        stands, as they are."""
        if isinstance(at, slice):
            return self
        sink = self.sink[at] if self.sink.size else self.sink
        pattern, allowed = self.pattern[at], self.allowed[at]
        return Attention.closed(self.name, self.query, self.key, pattern, allowed, sink)

    def patterns(self) -> Attention:
        """The attention without scores, q, k and v, its pattern a copy."""
        pattern, sink = self.pattern.copy(), self.sink.copy()
        allowed = self.allowed[0].copy() if not self.allowed.strides[0] else self.allowed.copy()
        return Attention.closed(self.name, self.query, self.key, pattern, allowed, sink)

    @property
    def masks(self) -> list[tuple[slice | np.ndarray, np.ndarray]]:
        """The different masks (query, key) of its layers, each behind the layers that have it."""
        if not self.allowed.strides[0] or len(self.allowed) < 2:
            return [(slice(None), mask) for mask in self.allowed[:1]]
        different, at = np.unique(self.allowed, axis=0, return_inverse=True)
        if len(different) == 1:
            return [(slice(None), different[0])]
        return [(np.flatnonzero(at.ravel() == i), mask) for i, mask in enumerate(different)]

    @cached_property
    def reachable(self) -> np.ndarray:
        """The cells (query, key) that are allowed in some layer."""
        return np.asarray(self.allowed.any(axis=0) if self.allowed.strides[0] else self.allowed[0])

    @cached_property
    def received(self) -> np.ndarray:
        """The sum of weights that each key receives from rows with a choice of keys, (layer, head,
        key)."""
        received = np.empty_like(self.pattern[:, :, 0])
        for at, allowed in self.masks:
            received[at] = (allowed.sum(axis=1) > 1).astype(received.dtype) @ self.pattern[at]
        return received

    @property
    def sink_scores(self) -> np.ndarray:
        """The score of the learned sink beside each row's, (layer, head, query), as it follows from
        what it takes; minus infinity where there is none."""
        if not self.sink.size or not self.opens:
            return np.full(self.pattern.shape[:3], -np.inf)
        best = self.pattern.argmax(axis=-1)[..., None]
        weight, score = (
            np.take_along_axis(each, best, -1)[..., 0].astype(np.float64)
            for each in (self.pattern, self.scores)
        )
        with np.errstate(divide="ignore"):
            return score + np.log(self.sink.astype(np.float64)) - np.log(weight)

    @property
    def opens(self) -> bool:
        """True where a cell can be opened down to the vectors it came from; False where scores, q,
        k and v are not known."""
        return len(self.scores) > 0

    @classmethod
    def closed(
        cls,
        name: str,
        query: str,
        key: str,
        pattern: np.ndarray,
        allowed: np.ndarray,
        sink: np.ndarray | None = None,
    ) -> Attention:
        """An attention of which only the pattern (layer, head, query, key), `allowed` and the
        learned sink's share, where it has one, are known."""
        _, heads, queries, keys = pattern.shape
        empty = {n: np.zeros((0, heads, n, 0), pattern.dtype) for n in (queries, keys)}
        return cls(
            name,
            query,
            key,
            np.zeros((0, heads, queries, keys), pattern.dtype),
            pattern,
            allowed,
            empty[queries],
            empty[keys],
            empty[keys].copy(),
            sink=np.zeros((0, 0, 0), pattern.dtype) if sink is None else sink,
        )


@dataclass(frozen=True, eq=False)
class Recording:
    """One forward pass: the model's card, the text, the edits it ran under, its streams and
    attentions.

    `dropped` is how many tokens of the text did not fit the model and were left out, at the end.
    `target` is the second text of a model
    that reads one and writes another: what its decoder read, and `target_dropped` what of that did
    not fit. `as_ids`: the first text was given as token ids that no text is split into, and `text`
    is what they spell. `version` is the Headlight that made it, "" where a file does not say;
    recordings of two versions may be equal. `is_part`: some of its arrays were asked for, and the
    others are gone. `covered`: as of `covering`. Raises ValueError where an attention names a
    stream that is not there or of another length.
    """

    model: Card
    text: str
    edits: tuple[Edit, ...]
    streams: tuple[Stream, ...]
    attention: tuple[Attention, ...]
    dropped: int = 0
    target: str = ""
    target_dropped: int = 0
    as_ids: bool = False
    version: str = field(default=VERSION, compare=False)
    is_part: bool = False
    covered: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for attention in self.attention:
            for axis, name, size in (
                ("query", attention.query, attention.pattern.shape[2]),
                ("key", attention.key, attention.pattern.shape[3]),
            ):
                n = len(self.stream(name).tokens)
                if n != size:
                    raise ValueError(
                        f"{n} tokens in stream {name} but {attention.name} has {size} on its "
                        f"{axis} axis"
                    )

    def only(
        self, sites: Iterable[str] | None = None, attention: Literal["all", "pattern", ""] = "all"
    ) -> Recording:
        """A part of it, in memory of its own, for its arrays alone: no panel and no method of a
        model takes one. sites: those of the streams that are kept, in their order, all where None.
        attention: "all" of every attention, its "pattern" alone, or "" for none. Raises ValueError
        for a site that no stream has, and for another word."""
        if attention not in ("all", "pattern", ""):
            raise ValueError(f'attention is "all", "pattern" or "", and not {attention!r}')
        wanted = None if sites is None else tuple(sites)
        there = [site for stream in self.streams for site in stream.sites]
        if unknown := [site for site in wanted or () if site not in there]:
            near = there_are(unknown[0], there)
            raise ValueError(f"no stream has a site {unknown[0]!r}; {near}")
        streams = (
            self.streams if wanted is None else tuple(s.of_sites(wanted) for s in self.streams)
        )
        attentions = self.attention if attention else ()
        if attention == "pattern":
            attentions = tuple(each.patterns() for each in self.attention)
        return replace(self, streams=streams, attention=attentions, is_part=True)

    def covering(self, place: int | None) -> Recording:
        """The same pass for a reader who is asked for a word: its tokens are called `COVER`. place:
        of the last stream, the token that is asked for, where the model writes the text with all
        after it; one behind the last where the text ends before it. None covers nothing."""
        if place == self.covered:
            return self
        if place is None or self.covered is not None:
            raise ValueError("a recording that is covered is covered once")
        of = self.streams[-1]
        tokens = list(of.tokens)
        for at in self._asked(place):
            tokens[at] = COVER
        streams = (*self.streams[:-1], replace(of, tokens=tuple(tokens)))
        return replace(self, streams=streams, covered=place)

    def _asked(self, place: int) -> range:
        """The tokens of the last stream that a question on a place is about."""
        tokens, n = self.streams[-1].tokens, len(self.streams[-1].tokens)
        if self.model.kind != "encoder":
            return range(place, n)
        first, end = place, place + 1
        while 0 < first < n and tokens[first].startswith(CONTINUES):
            first -= 1
        while end < n and tokens[end].startswith(CONTINUES):
            end += 1
        return range(first, min(end, n))

    def texts_with_cover(self, place: int | None) -> tuple[str, str]:
        """The text and the target as one reads them who is asked for the word at a place, as of
        `covering`: what the model writes ends there."""
        if place is None or (self.as_ids and len(self.streams) == 1):
            return self.text, self.target
        stream, asked = self.streams[-1], self._asked(place)
        written = self.text if len(self.streams) == 1 else self.target
        spans = [stream.spans[at] for at in asked if not stream.special[at]]
        there = [(int(start), int(end)) for start, end in spans if 0 <= start < end]
        if there:
            start, end = there[0][0], there[-1][1]
            while start < end and written[start].isspace():  # which is part of some tokens
                start += 1
            rest = written[end:] if self.model.kind == "encoder" else ""
            written = f"{written[:start]}{COVER}{rest}"
        return (written, "") if len(self.streams) == 1 else (self.text, written)

    @property
    def text_or_ids(self) -> str | tuple[int, ...]:
        """Input of the model: the text, or the token ids in its place."""
        return tuple(map(int, self.streams[0].ids)) if self.as_ids else self.text

    def stream(self, name: str) -> Stream:
        """The stream of that name. Raises ValueError where there is none."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        there = there_are(name, (each.name for each in self.streams))
        raise ValueError(f"no stream is called {name!r}; {there}")

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 60 else f"{self.text[:59]}…"
        edits = f", {len(self.edits)} edits" if self.edits else ""
        parts = ", ".join(map(repr, (*self.streams, *self.attention)))
        return f"Recording({self.model.name!r}, {text!r}{edits}, {parts})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recording) and _equal(self, other)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


def digest(recording: Recording) -> str:
    """A digest of all that a recording holds: equal for equal recordings, and for no others."""
    digest = blake2b(digest_size=16)
    parts: tuple[Any, ...] = (recording, *recording.streams, *recording.attention)
    for part in parts:
        for member in fields(part):
            value = stored_array(getattr(part, member.name))
            if isinstance(value, np.ndarray):
                digest.update(f"{member.name} {value.dtype.str} {value.shape}".encode())
                digest.update(np.ascontiguousarray(value).data)
            elif member.compare and member.name not in ("streams", "attention"):
                digest.update(f"{member.name} {value!r}".encode())
    return digest.hexdigest()


def _likeliest_scale(attention: Attention) -> np.ndarray:
    """By what each layer multiplied q . k, (layer): 1 / sqrt(d_head), or 1 where the first head's
    scores come nearer to that. Files and models that do not say it knew no third."""
    q, k, scores = (
        each[:, 0].astype(np.float64) for each in (attention.q, attention.k, attention.scores)
    )
    unscaled, default = q @ k.swapaxes(-1, -2), max(1, q.shape[-1]) ** -0.5
    errors = [
        np.abs(unscaled * scale - scores).max(axis=(1, 2), initial=0.0) for scale in (default, 1.0)
    ]
    return np.where(errors[1] < errors[0], 1.0, default)


def _expect(name: str, array: np.ndarray | GroupedArray, shape: tuple[int | None, ...]) -> None:
    if array.ndim != len(shape) or any(
        expected not in (None, actual) for expected, actual in zip(shape, array.shape)
    ):
        raise ValueError(f"{name} should have shape {shape}, has {array.shape}")


def _freeze(part: Stream | Attention) -> None:
    for member in fields(part):
        value = stored_array(getattr(part, member.name))
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


def _equal(a: Any, b: Any) -> bool:
    for member in fields(a):
        x, y = getattr(a, member.name), getattr(b, member.name)
        if not member.compare:
            continue
        if isinstance(x, (np.ndarray, GroupedArray)):
            if x.dtype != y.dtype or not np.array_equal(x, y):
                return False
        elif member.name in ("streams", "attention"):
            if len(x) != len(y) or not all(map(_equal, x, y)):
                return False
        elif x != y:
            return False
    return True
