"""Edits: frozen descriptions of changes to a forward pass.

An edit is data, never a hook. It travels with the call, `record(model, text, edits)`, and comes
back inside the Recording, so a caption can always state it and a shared model is never changed.
`str(edit)` describes it in words.

Layers, heads and tokens count from 0, negative ones from the end; the Recording's count from 0.
`layer` None stands for every layer; in a model of two stacks a layer's number means that layer of
both. `attention` is a name as in the Recording ("self", "encoder self", "decoder self", "cross").
`sublayer` is "attn", "cross" or "ffn".

`values` are numbers: an array of any framework, (width), the same at every token, or (token,
width), where places beyond the last row keep their own. The edit holds them as text
(`models.contract.arrays.Numbers`), so that it is hashable, and `str` names them by a digest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, get_type_hints
from urllib.parse import quote, unquote

import numpy as np

from models.contract.arrays import Numbers
from models.contract.spelling import there_are

# What may stand in the place of a model's own positions, see OtherPositions.
POSITIONS = ("sinusoids", "random", "rotary", "distance")
NORM_PLACES = ("pre", "post")
NORMS = {"layer": "LayerNorm", "rms": "RMSNorm"}
# Sites before the first layer and after the last one, in words.
OUTSIDE_LAYERS = {
    "embed": "the embedding",
    "pos.wrote": "the position",
    "embed+pos": "the embedding + position",
    "embed.normed": "the embedding after its norm",
    "final.normed": "the state after the last norm",
}
SUBLAYERS = {"attn": "self-attention", "cross": "cross-attention", "ffn": "feed-forward"}


# What 32 bits hold of a number, and of one and its inverse.
LEAST, MOST = 3e-39, 3e38


@dataclass(frozen=True)
class Edit:
    """Base class of edits: plain numbers and words, comparable, named by their class.

    in_any_code: a model in its own code can follow it as well, since its attention or a hook
    carries it out. has_numbers: its numbers stand at places of a text, and edits of one place keep
    their order. borrows: it puts in vectors of another text."""

    in_any_code: ClassVar[bool] = False
    has_numbers: ClassVar[bool] = False
    borrows: ClassVar[bool] = False

    @property
    def place(self) -> str:
        """The place in a pass where it changes an array, for `edits_at`; "" for none."""
        return ""

    @property
    def of_head(self) -> int | None:
        """The head whose array it changes alone, None for none."""
        return None

    def is_at(self, place: str) -> bool:
        """True where it is carried out at a place."""
        return self.place == place

    @property
    def stepwise(self) -> bool:
        """True where what it does to a token hangs on no later token and on no place, so that the
        keys and values of earlier tokens stay true while a text is written."""
        return not (self.borrows or self.has_numbers)

    def on(self, x: Any, allowed: Any = None) -> None:
        """Change x, an array or a tensor of the caller's own, in place: what stands at its place,
        of its head alone where it names one. allowed: where a pattern may have weight, None for
        everywhere. Here nothing: vectors of another text are put in by a Patch."""

    def is_of(self, stream: str, first: bool) -> bool:
        """True for what is carried out on a stream. first: it is the first one."""
        return True

    def tokens(self) -> dict[str, str | None]:
        """The fields that name a token, with the stream of that token, None for the first."""
        return {}

    @property
    def of_text(self) -> bool:
        """True for what is of one text alone: it names a place of it, or borrows from another."""
        return self.borrows or any(getattr(self, of) not in (None, "all") for of in self.tokens())

    def value_error(self) -> str:
        """Error message for a field out of range, "" where none is."""
        return ""

    def model_error(self, card: Any, config: Any, fills: bool) -> str:
        """Error message for a model that cannot follow it, by its Card and Config, "" for one that
        can. fills: it fills masked words."""
        return ""

    def _option_error(self, field: str, options: Iterable[str | None]) -> str:
        if getattr(self, field) in options:
            return ""
        value = getattr(self, field)
        there = there_are(str(value), filter(None, options))
        return f"{type(self).__name__} does not know {value!r}; {there}"


E = TypeVar("E", bound=Edit)


def edits_at(edits: Sequence[Edit], place: str) -> list[Any]:
    """The edits that are carried out at a place, in order, ablations of heads before all others."""
    found = [edit for edit in edits if edit.is_at(place)]
    return sorted(found, key=lambda each: not isinstance(each, Ablation)) if found[1:] else found


def edited(
    x: Any, edits: Sequence[Edit], place: str, head: int | None = None, allowed: Any = None
) -> Any:
    """The array or tensor of a place as edits leave it: x itself where there are none, else a copy.
    x is (..., token, width), or of attention (..., head, query, width); of one head alone where
    `head` names it. allowed: as `Edit.on` takes it, of the shape of x."""
    found = edits_at(edits, place) if edits else []
    if not found:
        return x
    x = x.clone() if hasattr(x, "clone") else x.copy()
    for edit in found:
        of = edit.of_head
        if of is None or head is not None:
            if head in (None, of):
                edit.on(x, allowed)
        else:
            edit.on(x[..., of, :, :], None if allowed is None else allowed[..., of, :, :])
    return x


def place_of(attention: str, layer: int, kind: str) -> str:
    """A place of an attention, by its name in a Recording: "z", what its heads give before W_O,
    "pattern", or "mask", where they may attend."""
    return f"{layer}.{attention}.{kind}"


def _part(x: Any, edit: Any) -> tuple[Any, Any]:
    """The part of x (..., token, width) that an edit with numbers changes, and its `values` there
    as x has its own, None for none; places that x does not have are left out. Raises ValueError
    for values of another width."""
    n, token = x.shape[-2], getattr(edit, "token", None)
    values: Any = edit.values.like(x) if hasattr(edit, "values") else None
    if values is not None and values.shape[-1] != x.shape[-1]:
        raise ValueError(
            f"“{edit}” has {values.shape[-1]} numbers a token; there are {x.shape[-1]} there"
        )
    by_token = values is not None and values.ndim == 2
    if by_token:
        n = min(n, len(values))
    at = slice(n) if token is None else slice(min(token, n), min(token + 1, n))
    return x[..., at, :], values[at] if by_token else values


def _layer_phrase(layer: int | None) -> str:
    return "in every layer" if layer is None else f"in layer {layer}"


class HeadEdit(Edit):
    """Base class of edits of what a single head gives, z (query, d_head) before W_O."""

    in_any_code = True
    layer: int
    head: int
    attention: str

    @property
    def of_head(self) -> int:
        return self.head

    @cached_property
    def place(self) -> str:  # type: ignore[override]
        return place_of(self.attention, self.layer, "z")


@dataclass(frozen=True)
class Ablation(HeadEdit):
    """Base class of edits that take away what a head does, without numbers of their own. word: what
    a control calls it, "" for one that has none."""

    word: ClassVar[str] = ""
    layer: int
    head: int
    attention: str = "self"


def _head_phrase(edit: Any) -> str:
    return f"head {edit.head} of layer {edit.layer}" + (
        "" if edit.attention == "self" else f" ({edit.attention}-attention)"
    )


@dataclass(frozen=True)
class ZeroHead(Ablation):
    """The head's output z is 0 before W_O: the head writes nothing (W_O's bias stays)."""

    word = "zero"

    def __str__(self) -> str:
        return f"{_head_phrase(self)} taken out"

    def on(self, x: Any, allowed: Any = None) -> None:
        x[...] = 0


@dataclass(frozen=True)
class MeanHead(Ablation):
    """Mean ablation: the head's output z is, at every token, its mean over all tokens of this
    text."""

    word = "mean"
    stepwise = False

    def __str__(self) -> str:
        return f"{_head_phrase(self)} replaced by its mean"

    def on(self, x: Any, allowed: Any = None) -> None:
        x[...] = x.mean(axis=-2, keepdims=True)


@dataclass(frozen=True)
class UniformHead(Ablation):
    """The head's pattern is even: every row gives the same weight to every key it may attend to."""

    word = "uniform"

    def __str__(self) -> str:
        return f"{_head_phrase(self)} with uniform attention"

    @cached_property
    def place(self) -> str:  # type: ignore[override]
        return place_of(self.attention, self.layer, "pattern")

    def on(self, x: Any, allowed: Any = None) -> None:
        x[...] = 1 if allowed is None else allowed
        x /= x.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class WithoutScale(Edit):
    """Scores are q . k, not divided by sqrt(d_head)."""

    in_any_code = True
    layer: int | None = None

    def __str__(self) -> str:
        return f"scores without the scale {_layer_phrase(self.layer)}"


@dataclass(frozen=True)
class ScaledBy(Edit):
    """Scores are q . k / `divisor` in the place of sqrt(d_head); `divisor` is from 3e-39 to 3e38,
    what 32 bits hold."""

    in_any_code = True
    divisor: float
    layer: int | None = None

    def __str__(self) -> str:
        return f"scores divided by {self.divisor:g} {_layer_phrase(self.layer)}"

    def value_error(self) -> str:
        if not self.divisor > 0:
            return f"“{self}”: the divisor must be a number above 0"
        if not LEAST <= self.divisor <= MOST:
            return (
                f"“{self}”: the divisor must lie between {LEAST:g} and {MOST:g}, as 32 bits hold it"
            )
        return ""


@dataclass(frozen=True)
class WithoutMask(Edit):
    """A decoder's self-attention may look at later tokens as well, in every layer."""

    stepwise = False

    def __str__(self) -> str:
        return "no causal mask"

    def model_error(self, card: Any, config: Any, fills: bool) -> str:
        has_none = card.kind == "encoder"
        return f"{card.name} is an encoder and has no causal mask to take away" if has_none else ""


@dataclass(frozen=True)
class WithMask(Edit):
    """An encoder's self-attention may look at no later token, in every layer: a causal mask it was
    not trained with."""

    def __str__(self) -> str:
        return "a causal mask"

    def model_error(self, card: Any, config: Any, fills: bool) -> str:
        has_one = card.kind == "decoder"
        return f"{card.name} is a decoder and has its causal mask already" if has_one else ""


@dataclass(frozen=True)
class Window(Edit):
    """A token sees those fewer than `size` (1 or more) places away alone, in every self-attention:
    in a decoder the last so many, itself among them, as in Mistral."""

    size: int

    def __str__(self) -> str:
        return f"a sliding window of {self.size} token{'s' * (self.size != 1)}"

    def value_error(self) -> str:
        none = self.size < 1
        return (
            f"“{self}”: a token sees at least itself, so a window has 1 token or more"
            if none
            else ""
        )


@dataclass(frozen=True)
class SharedKeys(Edit):
    """Heads share keys and values in so many `groups` (1 to all heads), in every attention: each
    group has the mean of what its heads' W_K and W_V make, as a model that shares keys is begun
    from one that does not (Ainslie et al. 2023, section 2.1)."""

    groups: int

    def __str__(self) -> str:
        return f"shared keys and values, {self.groups} group{'s' * (self.groups != 1)} of heads"

    def model_error(self, card: Any, config: Any, fills: bool) -> str:
        heads, keys = config.n_head, config.key_heads
        if keys < heads:
            return f"{heads} heads of {card.name} share {keys} heads’ keys and values already"
        if self.groups in (counts := groups_of(heads)):
            return ""
        return (
            f"“{self}”: the {heads} heads of {card.name} can be put in "
            f"{', '.join(map(str, counts))} groups of one size"
        )


@dataclass(frozen=True)
class WithoutPositions(Edit):
    """Nothing is added to the embeddings."""

    def __str__(self) -> str:
        return "no positions"


@dataclass(frozen=True)
class ShufflePositions(Edit):
    """Every token is given another token's position, in an order drawn by `seed` (0 or more); the
    tokens stay where they are."""

    stepwise = False

    seed: int

    def __str__(self) -> str:
        return f"positions shuffled (seed {self.seed})"

    def value_error(self) -> str:
        return f"{self} has a negative seed; seeds count from 0" if self.seed < 0 else ""


@dataclass(frozen=True)
class ShiftPositions(Edit):
    """Every token is given the position `by` places further on (0 or more)."""

    by: int

    def __str__(self) -> str:
        return f"positions shifted by {self.by}"

    def value_error(self) -> str:
        back = self.by < 0
        return f"“{self}”: positions can only be shifted onwards, by 0 or more" if back else ""


@dataclass(frozen=True)
class OtherPositions(Edit):
    """Another kind of positions than the model learned with, one of POSITIONS.

    "sinusoids": those of the paper, of the mean length of the model's own. "random": fixed random
    vectors of that same mean length. "rotary": nothing is added; q and k of self-attention are
    turned by angles that grow with the position (RoPE, Su et al. 2021). "distance": nothing is
    added; scores of self-attention fall with the distance, by a slope per head (ALiBi, Press et al.
    2022)."""

    to: str

    def __str__(self) -> str:
        return {
            "sinusoids": "sinusoidal positions",
            "random": "random positions",
            "rotary": "rotary positions",
            "distance": "a penalty on distance in the place of positions",
        }.get(self.to, self.to)

    def value_error(self) -> str:
        return self._option_error("to", POSITIONS)


@dataclass(frozen=True)
class WithoutResidual(Edit):
    """A sub-layer's output replaces the stream instead of being added to it. `sublayer` None: every
    sub-layer."""

    layer: int | None = None
    sublayer: str | None = None

    def __str__(self) -> str:
        name = SUBLAYERS.get(self.sublayer or "", self.sublayer)
        return f"no residual {f'around {name} ' if name else ''}{_layer_phrase(self.layer)}"

    def value_error(self) -> str:
        return self._option_error("sublayer", (*SUBLAYERS, None))

    def model_error(self, card: Any, config: Any, fills: bool) -> str:
        lacks = self.sublayer == "cross" and card.kind != "encoder-decoder"
        return f"{card.name} has no cross-attention" if lacks else ""


@dataclass(frozen=True)
class WithoutNorm(Edit):
    """LayerNorm is left out. `layer` None: in every layer, after the embeddings and after the stack
    as well."""

    layer: int | None = None

    def __str__(self) -> str:
        return f"no norm {_layer_phrase(self.layer)}"


@dataclass(frozen=True)
class MoveNorm(Edit):
    """LayerNorm stands elsewhere, with the gain and bias it has: "pre", before each sub-layer, or
    "post", after each sum. Moved to "pre" in every layer, a model that has no last LayerNorm gets
    one without gain and bias; moved to "post", a last one is left out."""

    to: str
    layer: int | None = None

    def __str__(self) -> str:
        return (
            f"norms {'before the sub-layers' if self.to == 'pre' else 'after the sums'} "
            f"{_layer_phrase(self.layer)}"
        )

    def value_error(self) -> str:
        return self._option_error("to", NORM_PLACES)

    def model_error(self, card: Any, config: Any, fills: bool) -> str:
        lacks = config.norm is None
        return f"{card.name} was trained without LayerNorm and has none to move" if lacks else ""


@dataclass(frozen=True)
class OtherNorm(Edit):
    """The other kind of norm, with the gain and bias the model has, one of NORMS: "rms" divides by
    the root of the mean square and subtracts no mean, "layer" subtracts it. `layer` None: in every
    layer, after the embeddings and after the stack as well."""

    to: str
    layer: int | None = None

    def __str__(self) -> str:
        replaced = NORMS["layer" if self.to == "rms" else "rms"]
        return f"{NORMS.get(self.to, self.to)} for {replaced} {_layer_phrase(self.layer)}"

    def value_error(self) -> str:
        return self._option_error("to", NORMS)

    def model_error(self, card: Any, config: Any, fills: bool) -> str:
        if config.norm is None:
            return f"{card.name} was trained without LayerNorm and has none to replace"
        return (
            f"{card.name} has {NORMS[self.to]} already" if config.rms == (self.to == "rms") else ""
        )


@dataclass(frozen=True)
class SideBySide(Edit):
    """The feed-forward network reads the state that self-attention reads, and not what attention
    left: both write at once, as in GPT-J and Pythia."""

    layer: int | None = None

    def __str__(self) -> str:
        return f"parallel attention and feed-forward {_layer_phrase(self.layer)}"

    def model_error(self, card: Any, config: Any, fills: bool) -> str:
        is_so = config.parallel
        return (
            f"attention and feed-forward of {card.name} stand side by side already" if is_so else ""
        )


@dataclass(frozen=True)
class WithoutFeedForward(Edit):
    """The feed-forward network writes nothing."""

    layer: int | None = None

    def __str__(self) -> str:
        return f"no feed-forward {_layer_phrase(self.layer)}"


class InputEdit(Edit):
    """Base class of edits that change what a model reads."""


@dataclass(frozen=True)
class HideToken(InputEdit):
    """The token at place `token` (special tokens counted in) is replaced by [MASK]. For models that
    fill masked words."""

    token: int

    def __str__(self) -> str:
        return f"token {self.token} masked"

    def tokens(self) -> dict[str, str | None]:
        return {"token": None}

    def model_error(self, card: Any, config: Any, fills: bool) -> str:
        text = f"{card.name} fills no masked words, so no token can be hidden from it"
        return "" if fills else text


@dataclass(frozen=True)
class HideWord(Edit):
    """The token at place `token` (special tokens counted in) is out: no other token reads it, in
    any layer or head. Every other token's score for it is left out of the softmax, and the row's
    other weights sum to 1; it keeps its place, and may read itself and the others. `stream` names
    the stream, None for the first. What is out of a translator's source is not read by
    cross-attention either."""

    token: int
    stream: str | None = None

    def __str__(self) -> str:
        of = "" if self.stream is None else f" of the {self.stream}"
        return f"token {self.token}{of} taken out"

    def tokens(self) -> dict[str, str | None]:
        return {"token": self.stream}


@dataclass(frozen=True)
class PatchHead(HeadEdit):
    """The head's output z is, place by place, the one it has when the model reads `text` instead,
    under all other edits but patches. Places that the other text has not keep their own."""

    in_any_code = False
    borrows = True
    text: str
    layer: int
    head: int
    attention: str = "self"

    def __str__(self) -> str:
        return f"{_head_phrase(self)} patched from “{' '.join(self.text.split())}”"


class StreamEdit(Edit):
    """Base class of edits of a stream that `stream` names, None for the first; `token`: at that
    place alone."""

    token: int | None
    stream: str | None

    def is_of(self, stream: str, first: bool) -> bool:
        return self.stream == stream or (first and self.stream is None)

    def tokens(self) -> dict[str, str | None]:
        return {"token": self.stream}


class SiteEdit(StreamEdit):
    """Base class of edits of the vectors at a site."""

    site: str

    @property
    def place(self) -> str:
        return self.site


@dataclass(frozen=True)
class PatchSite(SiteEdit):
    """The vectors at a site are, place by place, those that stand there when the model reads `text`
    instead, under all other edits but patches. `token`: at that place alone. `stream` names the
    stream, None for the first. Places that the other text has not keep their own."""

    borrows = True
    text: str
    site: str
    token: int | None = None
    stream: str | None = None

    def __str__(self) -> str:
        return f"{_site_phrase(self)} patched from “{' '.join(self.text.split())}”"


# Edits with numbers.


class WithNumbers(Edit):
    """Base class of edits with numbers: `values`, or a `factor`."""

    has_numbers = in_any_code = True

    def __post_init__(self) -> None:
        if hasattr(self, "values"):
            object.__setattr__(self, "values", Numbers(self.values))

    def value_error(self) -> str:
        is_fit = not hasattr(self, "factor") or abs(self.factor) <= MOST
        return "" if is_fit else f"“{self}”: the number must be finite in 32 bits"

    @property
    def rows(self) -> int | None:
        """The number of tokens that it has a vector for, None where all have the same."""
        values = getattr(self, "values", None)
        return None if values is None or values.array.ndim == 1 else len(values.array)

    @property
    def stepwise(self) -> bool:
        return getattr(self, "token", None) is None and self.rows is None

    def width_error(self, card: Any) -> str:
        """Error message for values of another width than what they are put into, "" for none."""
        if not hasattr(self, "values"):
            return ""
        of_head = isinstance(self, HeadEdit)
        where, width = ("a head", card.d_head) if of_head else ("a site", card.d_model)
        if self.values.array.shape[-1] == width:
            return ""
        shape = "x".join(map(str, self.values.array.shape))
        return f"“{self}” has the shape {shape}; {where} of {card.name} has {width} numbers a token"


class Setting(WithNumbers):
    """Base class of edits that put `values` in the place of what is there."""

    def on(self, x: Any, allowed: Any = None) -> None:
        part, values = _part(x, self)
        part[...] = values


class Adding(WithNumbers):
    """Base class of edits that add `values` to what is there."""

    def on(self, x: Any, allowed: Any = None) -> None:
        part, values = _part(x, self)
        part += values


class Scaling(WithNumbers):
    """Base class of edits that multiply what is there by `factor`."""

    factor: float

    def on(self, x: Any, allowed: Any = None) -> None:
        part, _ = _part(x, self)
        part *= self.factor


@dataclass(frozen=True)
class SetSite(Setting, SiteEdit):
    """The vectors at a site are `values`, (d_model) or (token, d_model)."""

    values: Numbers
    site: str
    token: int | None = None
    stream: str | None = None

    @classmethod
    def to_mean(
        cls,
        recordings: Iterable[Any],
        site: str,
        token: int | None = None,
        stream: str | None = None,
    ) -> Self:
        """Mean ablation over a set: the mean of the site's vectors over all tokens of recordings
        without edits. Raises ValueError for none, and for edited ones."""
        rows = [
            (each.streams[0] if stream is None else each.stream(stream)).at(site)
            for each in _unedited(recordings)
        ]
        return cls(Numbers(np.concatenate(rows).mean(axis=0)), site, token, stream)

    def __str__(self) -> str:
        return f"{_site_phrase(self)} set to {_phrase_of(self.values)}"


@dataclass(frozen=True)
class AddToSite(Adding, SiteEdit):
    """`values`, (d_model) or (token, d_model), such as a steering vector, are added to the vectors
    at a site."""

    values: Numbers
    site: str
    token: int | None = None
    stream: str | None = None

    def __str__(self) -> str:
        return f"{_phrase_of(self.values)} added to {_site_phrase(self)}"


@dataclass(frozen=True)
class ScaleSite(Scaling, SiteEdit):
    """The vectors at a site are multiplied by `factor`."""

    factor: float
    site: str
    token: int | None = None
    stream: str | None = None

    def __str__(self) -> str:
        return f"{_site_phrase(self)} times {self.factor:g}"


@dataclass(frozen=True)
class SetHead(Setting, HeadEdit):
    """The head's output z is `values`, (d_head) or (query, d_head), before W_O."""

    values: Numbers
    layer: int
    head: int
    attention: str = "self"

    @classmethod
    def to_mean(
        cls, recordings: Iterable[Any], layer: int, head: int, attention: str = "self"
    ) -> Self:
        """Mean ablation over a set: the mean of z = pattern x v over all queries of recordings
        without edits. Raises ValueError for none, for edited ones, and for those that do not show
        v."""
        rows = []
        for recording in _unedited(recordings):
            of = next((each for each in recording.attention if each.name == attention), None)
            if of is None or not of.opens:
                raise ValueError(f"this recording does not show the values of {attention!r}")
            rows.append(of.pattern[layer, head] @ of.v[layer, head])
        return cls(Numbers(np.concatenate(rows).mean(axis=0)), layer, head, attention)

    def __str__(self) -> str:
        return f"{_head_phrase(self)} set to {_phrase_of(self.values)}"


@dataclass(frozen=True)
class AddToHead(Adding, HeadEdit):
    """`values`, (d_head) or (query, d_head), are added to the head's output z, before W_O."""

    values: Numbers
    layer: int
    head: int
    attention: str = "self"

    def __str__(self) -> str:
        return f"{_phrase_of(self.values)} added to {_head_phrase(self)}"


@dataclass(frozen=True)
class ScaleHead(Scaling, HeadEdit):
    """The head's output z is multiplied by `factor`, before W_O."""

    factor: float
    layer: int
    head: int
    attention: str = "self"

    def __str__(self) -> str:
        return f"{_head_phrase(self)} times {self.factor:g}"


# Which of several: a number, "all", or in words of both "2-5" (both ends), "3-" (to the last) and
# "1,4"; of tokens also a word of the text, which stands for all of its tokens.
Span = int | str
SPAN = re.compile(r"(\d+(-\d*)?)(,\d+(-\d*)?)*|all")


def span_of(value: Any) -> Any:
    """A range, a list or an array of numbers as a `Span`; anything else as it is."""
    if isinstance(value, range) and value.step == 1 and len(value) > 1 and value[0] >= 0:
        return f"{value[0]}-{value[-1]}"
    if isinstance(value, (range, list, tuple, np.ndarray)) and len(value):
        return ",".join(map(str, value)) if len(value) > 1 else int(value[0])
    return value


def places_of(span: Span, n: int) -> list[int]:
    """Those of n that a span names, in order."""
    if span == "all":
        return list(range(n))
    found: set[int] = set()
    for part in str(span).split(","):
        first, dash, last = part.partition("-")
        found |= {*range(int(first), (int(last) + 1 if last else n) if dash else int(first) + 1)}
    return sorted(place for place in found if place < n)


def last_of(span: Span) -> int:
    """The largest number in a span, 0 for none."""
    return max(map(int, re.findall(r"\d+", str(span))), default=0)


def _span_phrase(name: str, span: Span) -> str:
    if span == "all":
        return f"every {name}"
    return f"{name} {span}" if isinstance(span, int) else f"{name}s {span}"


@dataclass(frozen=True)
class CutEdge(Edit):
    """Attention knockout: the head does not attend from token `query` to token `key`. That score is
    left out of the softmax, and the row's other weights sum to 1 (Geva et al. 2023). Each of the
    four is a number, several ("2-5", "3-", "1,4", range(2, 6), a list) or "all"; a token is a word
    of the text too, which stands for all of its tokens."""

    has_numbers = in_any_code = True
    layer: Span
    head: Span
    query: Span
    key: Span
    attention: str = "self"

    def __post_init__(self) -> None:
        for name in ("layer", "head", "query", "key"):
            object.__setattr__(self, name, span_of(getattr(self, name)))

    def is_at(self, place: str) -> bool:
        layer, _, rest = place.partition(".")
        return rest == f"{self.attention}.mask" and int(layer) in places_of(
            self.layer, int(layer) + 1
        )

    def on(self, x: Any, allowed: Any = None) -> None:
        n_head, n_query, n_key = x.shape[-3:]
        keys = places_of(self.key, n_key)
        queries = [[query] for query in places_of(self.query, n_query)]
        heads = [[[head]] for head in places_of(self.head, n_head)]
        if not (heads and queries and keys):
            return
        if not x[..., heads, queries, keys].any():
            raise ValueError(
                f"“{self}” cuts nothing: no head there may attend so, as a decoder’s tokens to "
                "those after them"
            )
        x[..., heads, queries, keys] = False
        for (query,) in queries:
            if not x[..., query, :].any(-1).all():
                raise ValueError(
                    f"“{self}”: token {query} attends to no other token there, so that no "
                    "weight would be left"
                )

    def tokens(self) -> dict[str, str | None]:
        query, key = {"cross": ("decoder", "encoder")}.get(
            self.attention, (self.attention.removesuffix("self").strip() or None,) * 2
        )
        return {"query": query, "key": key}

    def __str__(self) -> str:
        where = f"{_span_phrase('head', self.head)} of {_span_phrase('layer', self.layer)}"
        where += "" if self.attention == "self" else f" ({self.attention}-attention)"
        if isinstance(self.query, int) and isinstance(self.key, int):
            return f"{where} without the weight from token {self.query} to {self.key}"
        query, key = _span_phrase("token", self.query), _span_phrase("token", self.key)
        return f"{where} without the weights from {query} to {key}"


@dataclass(frozen=True)
class SetNeuron(StreamEdit):
    """A hidden unit of a layer's feed-forward network, after the activation (and the gate), is
    `value`. `token`: at that place alone; `stream`: None for the first."""

    has_numbers = in_any_code = True
    value: float
    layer: int
    neuron: int
    token: int | None = None
    stream: str | None = None

    def __str__(self) -> str:
        at = "" if self.token is None else f" at token {self.token}"
        return f"neuron {self.neuron} of layer {self.layer}{at} set to {self.value:g}"

    @property
    def place(self) -> str:
        return f"{self.layer}.ffn.hidden"

    @property
    def stepwise(self) -> bool:
        return self.token is None

    def on(self, x: Any, allowed: Any = None) -> None:
        part, _ = _part(x, self)
        part[..., self.neuron] = self.value

    def value_error(self) -> str:
        is_fit = abs(self.value) <= MOST
        return "" if is_fit else f"“{self}”: the number must be finite in 32 bits"

    def model_error(self, card: Any, config: Any, fills: bool) -> str:
        if 0 <= self.neuron < config.d_ff:
            return ""
        return f"“{self}”: a layer of {card.name} has neurons 0 to {config.d_ff - 1}"


class PathEdit(Edit):
    """Base class of edits of the direct path from a head to what reads the stream later."""

    has_numbers = True
    layer: int
    head: int
    to_layer: int | None
    to_head: int | None
    to: str
    attention: str

    @property
    def end(self) -> str:
        """The end of the path in words."""
        if self.to == "resid":
            last = self.to_layer is None
            return "the last state" if last else f"the stream before layer {self.to_layer}"
        return (
            f"the {PATH_ENDS.get(self.to, self.to)} of head {self.to_head} of layer {self.to_layer}"
        )


@dataclass(frozen=True)
class CutPath(PathEdit):
    """The direct path from a head to a later one is cut: queries ("q"), keys ("k") or values ("v")
    of head `to_head` of layer `to_layer` are made of the stream as it would be had the head written
    nothing, while all that other parts wrote stays as it was (path patching: Wang et al. 2022,
    Goldowsky-Dill et al. 2023)."""

    layer: int
    head: int
    to_layer: int
    to_head: int
    to: str = "q"
    attention: str = "self"

    def __str__(self) -> str:
        return f"{_head_phrase(self)} cut off from {self.end}"


@dataclass(frozen=True)
class PatchPath(PathEdit):
    """The direct path from a head to a later reader carries what the head writes when the model
    reads `text` instead, a text or a recording of one, under all other edits but patches; all that
    other parts wrote stays as it was (path patching: Wang et al. 2022, Goldowsky-Dill et al. 2023).

    The reader is the stream before layer `to_layer` ("resid"), None for the last state, which the
    readout reads: there the change is added to what the sub-layer before writes. Or it is a head's
    queries ("q"), keys ("k") or values ("v"). Places that the other text has not keep their own."""

    borrows = True
    text: str
    layer: int
    head: int
    to_layer: int | None = None
    to_head: int | None = None
    to: str = "resid"
    attention: str = "self"

    def __post_init__(self) -> None:
        donor: Any = self.text
        if hasattr(donor, "streams"):
            if donor.edits or donor.as_ids:
                raise ValueError("a path is patched from a text, or its recording without edits")
            object.__setattr__(self, "text", donor.text)

    @property
    def place(self) -> str:
        is_there = self.to == "resid" and self.to_layer is not None
        return f"{self.to_layer - 1}.ffn.wrote" if is_there else ""  # type: ignore[operator]

    def __str__(self) -> str:
        return f"{_head_phrase(self)} to {self.end} patched from “{' '.join(self.text.split())}”"


PATH_ENDS = {"q": "queries", "k": "keys", "v": "values"}


def _phrase_of(values: Numbers) -> str:
    return f"the numbers {values.digest}"


def _unedited(recordings: Iterable[Any]) -> list[Any]:
    listed = list(recordings)
    if not listed:
        raise ValueError("a mean is taken over one recording or more")
    if any(each.edits for each in listed):
        raise ValueError("a mean is taken over recordings without edits")
    return listed


def _site_phrase(edit: Any) -> str:
    """A site, and the token where it is of one alone, in words."""
    layer, sublayer, kind = (*edit.site.split("."), "", "")[:3]
    location = f"{SUBLAYERS.get(sublayer)} of layer {layer}"
    site = {"wrote": f"what {location} wrote", "read": f"what {location} reads"}.get(
        kind, f"the state after {location}"
    )
    if sublayer not in SUBLAYERS:
        site = OUTSIDE_LAYERS.get(edit.site, edit.site)
    return site + ("" if edit.token is None else f" at token {edit.token}")


def of_stream(edits: tuple[Edit, ...], name: str, first: bool) -> tuple[Edit, ...]:
    """The edits without those of another stream alone. first: it is the first stream."""
    return tuple(edit for edit in edits if edit.is_of(name, first))


@dataclass(frozen=True)
class ShuffleTokens(InputEdit):
    """The text's tokens are read in another order, drawn by `seed` (0 or more); special tokens keep
    their places, two tokens or more never stay: where the draw would leave them, all move on by
    one. stay: the places of other tokens that keep them, with dots between, and of those that move
    together, in their order, as pieces of a word ("2.7.9-11"); where these move among others, what
    keeps its place keeps it among them.
    It comes before every other edit: a HideToken names a place in the new order. A translator's
    source is shuffled, its target is not.
    """

    seed: int
    stay: str = ""

    def order(self, special: Sequence[bool]) -> np.ndarray:
        """The index of the token that is read at each place, (token). `special` (token): True for
        one that stays."""
        listed = [each.split("-") for each in self.stay.split(".") if each]
        kept = {int(each[0]) for each in listed if len(each) == 1}
        spans = {int(each[0]): int(each[-1]) for each in listed if len(each) > 1}
        blocks, at = list[list[int]](), 0
        while at < len(special):
            end, last = at, min(spans.get(at, at), len(special) - 1)
            while end < last and not (special[at] or special[end + 1]):
                end += 1
            blocks.append(list(range(at, end + 1)))
            at = end + 1
        stays = [len(each) == 1 and (special[each[0]] or each[0] in kept) for each in blocks]
        movable = np.flatnonzero(~np.array(stays, dtype=bool))
        permutation = np.random.default_rng(self.seed).permutation(movable)
        if np.array_equal(permutation, movable):
            permutation = np.roll(movable, 1)
        sources = np.arange(len(blocks))
        sources[movable] = permutation
        return np.array([at for each in sources for at in blocks[each]], dtype=int)

    @property
    def of_text(self) -> bool:
        return bool(self.stay)

    def __str__(self) -> str:
        return f"tokens shuffled (seed {self.seed})"

    def value_error(self) -> str:
        if self.seed < 0:
            return f"{self} has a negative seed; seeds count from 0"
        is_list = re.fullmatch(r"(\d{1,6}(-\d{1,6})?(\.\d{1,6}(-\d{1,6})?)*)?", self.stay)
        return "" if is_list else f"{self}: {self.stay!r} is no list of places such as 2.7.9-11"


KINDS: dict[str, type[Edit]] = {
    kind.__name__: kind
    for kind in (
        ZeroHead,
        MeanHead,
        UniformHead,
        PatchHead,
        PatchSite,
        SetSite,
        AddToSite,
        ScaleSite,
        SetHead,
        AddToHead,
        ScaleHead,
        CutEdge,
        CutPath,
        PatchPath,
        SetNeuron,
        WithoutScale,
        ScaledBy,
        WithoutMask,
        WithMask,
        Window,
        SharedKeys,
        WithoutPositions,
        ShufflePositions,
        ShiftPositions,
        OtherPositions,
        WithoutResidual,
        WithoutNorm,
        MoveNorm,
        OtherNorm,
        SideBySide,
        WithoutFeedForward,
        HideToken,
        HideWord,
        ShuffleTokens,
    )
}


def groups_of(n_head: int) -> tuple[int, ...]:
    """Into how many groups of one size heads can be put, fewest first."""
    return tuple(groups for groups in range(1, n_head + 1) if n_head % groups == 0)


def applies(
    edits: tuple[Edit, ...], kind: type[Edit], layer: int | None = None, sublayer: str | None = None
) -> bool:
    """True if `edits` holds one of this kind for this layer (or for all layers), and for this
    sub-layer where edits of the kind name one."""
    return any(
        isinstance(edit, kind)
        and getattr(edit, "layer", None) in (None, layer)
        and getattr(edit, "sublayer", None) in (None, sublayer)
        for edit in edits
    )


def last_edit(edits: tuple[Edit, ...], kind: type[E], layer: int | None = None) -> E | None:
    """The last edit of this kind that is meant for this layer (or for all), None where there is
    none."""
    for edit in reversed(edits):
        if isinstance(edit, kind) and getattr(edit, "layer", None) in (None, layer):
            return edit
    return None


# Edits as they are written: as JSON in a recording's file, as one line in an address, and in
# words.

RANGE = re.compile(r"(\d{1,4})-(\d{1,4})")


MAX_RANGE_HEADS = 4096  # in one word of an address


def to_json(edit: Edit) -> dict:
    """An edit as plain data: its class name under `kind`, then its fields."""
    return {"kind": type(edit).__name__, **asdict(edit)}


def from_json(data: dict) -> Edit:
    """The edit that `to_json` described. Raises ValueError for a kind that does not exist."""
    arguments = dict(data)
    name = arguments.pop("kind", None)
    if name not in KINDS:
        raise ValueError(f"no edit is called {name!r}; {there_are(str(name), KINDS)}")
    try:
        return KINDS[name](**arguments)
    except TypeError as error:
        raise ValueError(f"{name} cannot be made from {sorted(arguments)}") from error


@lru_cache(maxsize=4096)
def to_line(edits: tuple[Edit, ...]) -> str:
    """Edits in one line for an address: "ZeroHead:2:5:self,WithoutScale:"; an empty field is None,
    signs in words are escaped.

    Heads that stand side by side are one word: "UniformHead:0-3:0-7:self" is heads 0 to 7 of layers
    0 to 3.
    """
    return ",".join(
        ":".join([type(edit).__name__, *(_encoded(value) for value in values.values())])
        for edit, values in (
            (block[0], asdict(block[0]) | _ranges(block)) for block in blocks(edits)
        )
    )


def blocks(edits: tuple[Edit, ...]) -> list[tuple[Edit, ...]]:
    """Edits in their order, those together that do the same to heads side by side: all heads from
    one to another, layer by layer."""
    result, start = [], 0
    while start < len(edits):
        length = _length_of_block(edits[start:])
        result.append(edits[start : start + length])
        start += length
    return result


def describe(edits: tuple[Edit, ...]) -> str:
    """Edits as a caption says them, heads side by side together; "" for none."""
    phrases = []
    for block in blocks(edits):
        phrase = str(block[0])
        first_edit, final_edit = block[0], block[-1]
        if len(block) > 1 and isinstance(first_edit, Ablation) and isinstance(final_edit, Ablation):
            heads = (
                f"heads {first_edit.head} to {final_edit.head}"
                if first_edit.head < final_edit.head
                else f"heads {first_edit.head}"
            )
            layers = (
                f"layer {first_edit.layer}"
                if first_edit.layer == final_edit.layer
                else f"layers {first_edit.layer} to {final_edit.layer}"
            )
            phrase = phrase.replace(
                f"head {first_edit.head} of layer {first_edit.layer}",
                f"each of {heads} of {layers}",
                1,
            )
        phrases.append(phrase)
    return ", ".join(phrases)


def _length_of_block(edits: tuple[Edit, ...]) -> int:
    """The number of edits, from the first on, that form one block of heads."""
    first = edits[0]
    if not isinstance(first, Ablation):
        return 1

    def head_at(index: int) -> tuple[int, int] | None:
        edit = edits[index] if index < len(edits) else None
        if isinstance(edit, type(first)) and edit.attention == first.attention:
            return edit.layer, edit.head
        return None

    width = 1
    while head_at(width) == (first.layer, first.head + width):
        width += 1
    length = width
    while all(
        head_at(length + offset) == (first.layer + length // width, first.head + offset)
        for offset in range(width)
    ):
        length += width
    return length


def _ranges(block: tuple[Edit, ...]) -> dict[str, str]:
    """The fields of a block that are ranges."""
    return {
        name: f"{getattr(block[0], name)}-{getattr(block[-1], name)}"
        for name in ("layer", "head")
        if len(block) > 1 and getattr(block[0], name) != getattr(block[-1], name)
    }


def _encoded(value: object) -> str:
    return "" if value is None else quote(str(value), safe="")


def from_line(line: str) -> tuple[Edit, ...]:
    """The edits that `to_line` wrote. Raises ValueError, saying what is wrong, for a line that is
    none."""
    return tuple(edit for word in line.split(",") for edit in _from_block(word)) if line else ()


def of_any_text(line: str) -> str:
    """The edits of a line that another text keeps: those that are of no place of a text. A line
    that cannot be read stays."""
    try:
        edits = from_line(line)
    except ValueError:
        return line
    kept = tuple(each for each in edits if not each.of_text)
    return line if kept == edits else to_line(kept)


def _from_block(word: str) -> list[Edit]:
    """The edits of one word; a range of layers or heads stands for each of them."""
    name, *values = word.split(":")
    if not (name in KINDS and issubclass(KINDS[name], Ablation)) or not any(
        RANGE.fullmatch(value) for value in values[:2]
    ):
        return [_from_word(word)]
    ends = [RANGE.fullmatch(value) for value in values[:2]]
    layers, heads = (
        range(int(end[1]), int(end[2]) + 1) if end else [value] for end, value in zip(ends, values)
    )
    if not 0 < len(layers) * len(heads) <= MAX_RANGE_HEADS:
        raise ValueError(f"{name} cannot be read from {word!r}")
    return [
        _from_word(":".join([name, str(layer), str(head), *values[2:]]))
        for layer in layers
        for head in heads
    ]


def _from_word(word: str) -> Edit:
    name, *values = word.split(":")
    if name not in KINDS:
        raise ValueError(f"no edit is called {name!r}; {there_are(name, KINDS)}")
    kind = KINDS[name]
    kind_fields = fields(kind)
    if len(values) > len(kind_fields):
        raise ValueError(f"{name} has {len(kind_fields)} fields, not {len(values)}")
    hints = get_type_hints(kind)
    try:
        return kind(
            **{
                field.name: _value(value, str(hints[field.name]))
                for field, value in zip(kind_fields, values)
            }
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read from {word!r}") from error


def _value(text: str, hint: str) -> int | float | str | None:
    if not text and "None" in hint:
        return None
    text = unquote(text)  # the plus of 1e+20 is a sign that is escaped
    if "int | str" in hint:
        return int(text) if re.fullmatch(r"-?\d+", text) else text
    return int(text) if "int" in hint else float(text) if "float" in hint else text


def __dir__() -> list[str]:
    """The edits, what their arguments may be, and what describes, writes and reads them."""
    arguments = {"NORMS", "NORM_PLACES", "PATH_ENDS", "POSITIONS", "SUBLAYERS"}
    functions = {"describe", "from_json", "from_line", "to_json", "to_line"}
    return sorted({"Edit", *KINDS, *arguments, *functions})


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        raise AttributeError(f"headlight.edits has no {name!r}; {there_are(name, KINDS)}")
