"""Find the residual stream and attentions of a Hugging Face model by a trial on a short text.

No table says where a family keeps its residual stream. Every tensor that passes through any module
on the probe is noted, and the stream is searched in them by its law: a tensor `wrote` counts as a
sub-layer's output only where state + wrote occurs as well. A tensor that is not found is not
offered: a model whose attention and feed-forward write side by side (GPT-NeoX, Falcon) has no sum
between the two, and none is made up."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from math import sqrt
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from models.contract.edits import Edit, HideWord
from models.pretrained.hooks import (
    ATTENTION_NAME,
    AttentionCall,
    ForwardPass,
    HookPoint,
    active_pass,
    first_tensor,
    replace_output,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput


# Everything that passes through a model's modules in a run, and the search for a value in it.

# How far apart two computations of the same number may be, in relation to the largest.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class TensorEvent:
    """A tensor that came by on the probe: at which place, of a module of which name, and whether
    that module has none inside it."""

    place: HookPoint
    name: str
    value: Tensor

    @property
    def leaf(self) -> bool:
        return not any(self.place.module.children())


@dataclass
class TraceLog:
    """The log with each moment's value as (token, d_model) where it has that shape, and the search
    for a value in it."""

    log: list[TensorEvent | AttentionCall]
    n: int
    d_model: int
    values: list[Tensor | None] = field(init=False)

    def __post_init__(self) -> None:
        self.values = [self._as_vectors(event) for event in self.log]

    def _as_vectors(self, event: TensorEvent | AttentionCall) -> Tensor | None:
        if isinstance(event, AttentionCall) or not event.value.is_floating_point():
            return None
        value = vectors_of_one(event.value)
        return value if value.shape == (self.n, self.d_model) else None

    def event(self, index: int) -> TensorEvent:
        """The event at an index at which a tensor occurred."""
        event = self.log[index]
        assert isinstance(event, TensorEvent)
        return event

    def vectors(self, index: int) -> Tensor:
        """The vectors (token, d_model) of a time when there were some."""
        value = self.values[index]
        assert value is not None
        return value

    def first(self, value: Tensor, begin: int, end: int) -> int | None:
        """The index where a value first occurs, from `begin` up to before `end`; None where it does
        not."""
        return next(
            (
                index
                for index in range(begin, end)
                if (candidate := self.values[index]) is not None and nearly_equal(candidate, value)
            ),
            None,
        )

    def module_outputs(self, begin: int, end: int) -> list[tuple[int, TensorEvent]]:
        """Outputs of modules with their indices, from `begin` up to before `end`, in order."""
        return [
            (index, event)
            for index, event in enumerate(self.log[begin:end], begin)
            if isinstance(event, TensorEvent)
            and self.values[index] is not None
            and event.place.side == "out"
        ]

    def input_index(self, output_index: int) -> int | None:
        """The index at which the module of an output had read its input, None where it read no
        tensor."""
        place = self.event(output_index).place
        input_key = HookPoint(place.module, "in", place.call).key
        return next(
            (
                index
                for index in range(output_index, -1, -1)
                if isinstance(event := self.log[index], TensorEvent)
                and event.place.key == input_key
            ),
            None,
        )

    def read_by(self, output_index: int) -> Tensor | None:
        """The vectors that the module read which gave something, None where these were none."""
        index = self.input_index(output_index)
        return None if index is None else self.values[index]

    def norm_of(self, value: Tensor, begin: int, end: int) -> int | None:
        """The index of the output of a LayerNorm that had read this value; None where none did."""
        for index, event in self.module_outputs(begin, end):
            if (
                is_norm(event)
                and (input_vectors := self.read_by(index)) is not None
                and nearly_equal(input_vectors, value)
            ):
                return index
        return None


def trace_modules(model: nn.Module, run: Callable[[], object]) -> list[TensorEvent | AttentionCall]:
    """All that modules read and give during a run, in order, with the calls of our attention
    function in between."""
    log: list[TensorEvent | AttentionCall] = []
    calls: Counter = Counter()

    def record(name: str, module: nn.Module, side: str, values: object) -> None:
        if (value := first_tensor(values)) is not None:
            log.append(TensorEvent(HookPoint(module, side, calls[name]), name, value.clone()))

    def input_hook(name: str) -> Callable:
        return lambda module, args, kwargs: record(name, module, "in", (*args, *kwargs.values()))

    def output_hook(name: str) -> Callable:
        def record_output(module: nn.Module, args: tuple, output: object) -> None:
            record(name, module, "out", output)
            calls[name] += 1

        return record_output

    hooks = []
    try:
        for name, module in model.named_modules():
            hooks += [
                module.register_forward_pre_hook(input_hook(name), with_kwargs=True),
                module.register_forward_hook(output_hook(name)),
            ]
        with active_pass(ForwardPass(keeps=False, on_attention=log.append)):
            run()
    finally:
        for hook in hooks:
            hook.remove()
    return log


def is_norm(event: TensorEvent | AttentionCall) -> bool:
    """True for LayerNorm, RMSNorm and their kin: a module with none inside it and one gain for each
    dimension."""
    if isinstance(event, AttentionCall) or not event.leaf:
        return False
    weight = getattr(event.place.module, "weight", None)
    return (
        isinstance(weight, Tensor)
        and weight.dim() == 1
        and weight.shape[0] == event.value.shape[-1]
    )


def in_layer(event: TensorEvent) -> bool:
    """True where the module is one of a numbered layer's."""
    return any(part.isdigit() for part in event.name.split("."))


def vectors_of_one(value: Tensor) -> Tensor:
    """The vectors (token, d_model) of the one text in a tensor (1, token, d_model), or (token, 1,
    d_model) as XLNet has them; any other as it is."""
    if value.dim() != 3:
        return value
    return value[0] if len(value) == 1 else value[:, 0] if value.shape[1] == 1 else value


def nearly_equal(a: Tensor, b: Tensor) -> bool:
    """True where two computations of a number agree to `SAME` of the largest."""
    return a.shape == b.shape and bool(
        (a - b).abs().max() <= TOLERANCE * b.abs().max().clamp(min=1e-3)
    )


# Where a stream of vectors is heard in a model, found by its law: a tensor `wrote` counts as a
# sub-layer's output only where state + wrote comes by as well.

Source = tuple[tuple[HookPoint, float], ...]


@dataclass(frozen=True)
class StreamPlan:
    """The sites of one stream in order, each the sum of tensors at hook points, times a factor.
    `n_layer` layers, `d_model` wide.

    attended: of a model that has attention in some of its layers alone, the numbers of these. Then
    a layer here is one of them with those before it, and the last with those after it too.

    law: every sub-layer's `.wrote` and sum are among the sites. final_norm: the LayerNorm after the
    last layer. narrow_norm: the norm of narrower vectors, of which a matrix makes the first state.
    positions: the table that is added to the embeddings. norm: "post", "pre", "branch"
    where what a sub-layer writes has passed a norm (OLMo 2), or "both" before it and there (Gemma
    2)."""

    name: str
    n_layer: int
    d_model: int
    sites: tuple[tuple[str, Source], ...]
    law: bool
    norm: str
    final_norm: nn.Module | None
    positions: nn.Module | None
    attended: tuple[int, ...] = ()
    narrow_norm: nn.Module | None = None

    def places(self) -> list[HookPoint]:
        """Every place that is heard."""
        return [place for _, source in self.sites for place, _ in source]


class UntraceableModel(ValueError):
    """A model's states or attentions could not be found in what its modules read and give; says
    which."""


def stream_plan(
    name: str, states: list[Tensor], ids: Tensor, log: list[TensorEvent | AttentionCall]
) -> StreamPlan:
    """A stream's sites; states (layer + 1) of (token, d_model) are what the model itself says they
    are, the last one after a last LayerNorm."""
    trace = TraceLog(log, *states[0].shape)
    final = _final_norm(trace, states[-1])
    if final is not None and (before := trace.read_by(final)) is not None:
        states = [*states[:-1], before]
    state_indices = _state_indices(name, trace, states)
    entrance, positions = _entrance(trace, states[0], state_indices[0], ids)
    last_events = [trace.event(at) for at in state_indices[1:]]
    ends_normed = [is_norm(each) and each.place.side == "out" for each in last_events]
    post = all(ends_normed)
    layers = [
        _sublayers(
            trace, states[at], states[at + 1], state_indices[at], state_indices[at + 1], post
        )
        for at in range(len(states) - 1)
    ]
    attended = _attended(trace, state_indices)
    shows_sublayers = len(attended) == len(layers) and all(
        layer is not None
        and [each.name for each in layer] in (["attn", "ffn"], ["attn", "cross", "ffn"])
        for layer in layers
    )
    sites = [*entrance]
    hybrid = 0 < len(attended) < len(layers)
    ends = [*attended[:-1], len(layers) - 1] if hybrid else range(len(layers))
    for number, at in enumerate(ends):
        layer = layers[at]
        end = "normed" if ends_normed[at] else "sum"
        output_site: list[tuple[str, Source]] = [
            (f"{number}.ffn.{end}", ((last_events[at].place, 1.0),))
        ]
        sites += _layer_sites(at, layer) if shows_sublayers and layer is not None else output_site
    norm = None
    if final is not None:
        place = trace.event(final).place
        sites.append(("final.normed", ((place, 1.0),)))
        norm = place.module
    return StreamPlan(
        name,
        len(ends),
        states[0].shape[1],
        tuple(sites),
        shows_sublayers,
        "post" if post else _norm_place(layers) if shows_sublayers else "pre",
        norm,
        positions,
        attended if hybrid else (),
        _narrow_norm(trace, entrance),
    )


def _narrow_norm(trace: TraceLog, entrance: list[tuple[str, Source]]) -> nn.Module | None:
    """The norm of narrower vectors that a matrix reads which gives the first state; None where
    there is no such matrix, or it reads something else."""
    (_, ((place, _), *more)), *others = entrance
    module = place.module
    if more or others or not isinstance(module, nn.Linear) or place.side != "out":
        return None
    events = [each for each in trace.log if isinstance(each, TensorEvent)]
    read_at = HookPoint(module, "in", place.call).key
    at = next(at for at, each in enumerate(events) if each.place.key == read_at)
    for each in events[:at]:
        is_output = each.place.side == "out" and module.in_features != module.out_features
        if is_output and is_norm(each) and nearly_equal(each.value, events[at].value):
            return each.place.module
    return None


def _attended(trace: TraceLog, state_indices: list[int]) -> tuple[int, ...]:
    """The layers, between two states each, in which our attention function was called; all where it
    never was."""
    calls = [at for at, event in enumerate(trace.log) if isinstance(event, AttentionCall)]
    spans = list(enumerate(zip(state_indices, state_indices[1:])))
    layers = [layer for layer, (begin, end) in spans if any(begin < at <= end for at in calls)]
    return tuple(layers or range(len(spans)))


def _final_norm(trace: TraceLog, last: Tensor) -> int | None:
    """The index where the LayerNorm after the last layer gave the last state, None where there is
    none."""
    for index, event in trace.module_outputs(0, len(trace.log)):
        after_layers = is_norm(event) and not in_layer(event) and trace.read_by(index) is not None
        if after_layers and nearly_equal(trace.vectors(index), last):
            return index
    return None


def _state_indices(name: str, trace: TraceLog, states: list[Tensor]) -> list[int]:
    """The index of each state of a stream. Raises UntraceableModel where one does not occur."""
    indices: list[int] = []
    for at, state in enumerate(states):
        index = trace.first(state, indices[-1] + 1 if indices else 0, len(trace.log))
        if index is None:
            raise UntraceableModel(
                f"the vectors between its layers, of its {name} after {at} layers, pass through no "
                "part of it as they are"
            )
        indices.append(index)
    return indices


def _layer_sites(layer_index: int, layer: list[_Sublayer]) -> list[tuple[str, Source]]:
    return [
        (f"{layer_index}.{sublayer.name}.{site}", ((place, 1.0),))
        for sublayer in layer
        for site, place in sublayer.sites
    ]


@dataclass(frozen=True)
class _Sublayer:
    """sites: by name. normed: what it writes is a norm's output."""

    name: str
    sites: tuple[tuple[str, HookPoint], ...]
    normed: bool


def _norm_place(layers: list[list[_Sublayer] | None]) -> str:
    """The place of norms of layers that norm no sum: `StreamPlan.norm`."""
    sublayers = [each for layer in layers for each in layer or ()]
    if not all(each.normed for each in sublayers):
        return "pre"
    return "both" if all("read" in dict(each.sites) for each in sublayers) else "branch"


def _sublayers(
    trace: TraceLog, state: Tensor, next_state: Tensor, begin: int, end: int, post: bool
) -> list[_Sublayer] | None:
    """The sub-layers that lead from one state to the next, None where they cannot be followed all
    the way."""
    sublayers, at = [], begin
    while not nearly_equal(state, next_state):
        step = next(
            (
                (out, total)
                for out, event in trace.module_outputs(at + 1, end + 1)
                if (total := _sum_after(trace, state, out, end)) is not None
            ),
            None,
        )
        if step is None:
            return None
        out, total = step
        sites = [("wrote", trace.event(out).place), ("sum", trace.event(total).place)]
        read = None if post else trace.norm_of(state, at, out)
        if read is not None:
            sites.insert(0, ("read", trace.event(read).place))
        name = _sublayer_name(trace.log[at + 1 : out], trace.event(out).name)
        state, at = trace.vectors(total), total
        if post:
            normed = trace.norm_of(state, total, end + 1)
            if normed is None:
                return None
            sites.append(("normed", trace.event(normed).place))
            state, at = trace.vectors(normed), normed
        sublayers.append(_Sublayer(name, tuple(sites), is_norm(trace.event(out))))
    return sublayers


def _sum_after(trace: TraceLog, state: Tensor, output_index: int, end: int) -> int | None:
    output = trace.vectors(output_index)
    return (
        trace.first(state + output, output_index + 1, end + 1)
        if output.abs().max() > TOLERANCE * state.abs().max()
        else None
    )


def _sublayer_name(events: list[TensorEvent | AttentionCall], module: str) -> str:
    """By the attention that was computed on the way; where that is the model's own code, unseen, by
    the name of the module that wrote."""
    calls = [event for event in events if isinstance(event, AttentionCall)]
    if calls:
        return "attn" if calls[-1].n_query == calls[-1].n_key else "cross"
    return "attn" if "att" in module else "ffn"


def _embeds(seen: TraceLog, at: int, moment: TensorEvent, ids: Tensor) -> bool:
    """True where a module's output is the embeddings of these token ids."""
    came = seen.input_index(at)
    return (
        isinstance(moment.place.module, nn.Embedding)
        and came is not None
        and torch.equal(seen.event(came).value.reshape(-1), ids)
    )


def _entrance(
    trace: TraceLog, state: Tensor, end: int, ids: Tensor
) -> tuple[list[tuple[str, Source]], nn.Module | None]:
    """The sites before the first layer, up to the state that enters it, and the module that gives
    what is added for positions."""
    words: list[TensorEvent] = []
    positions: list[TensorEvent] = []
    segments: list[TensorEvent] = []
    for index, event in enumerate(trace.log[: end + 1]):
        if (
            isinstance(event, AttentionCall)
            or event.place.side == "in"
            or not event.leaf
            or not event.value.is_floating_point()
        ):
            continue
        if "pos" in event.name.lower() or event.name.endswith("wpe"):
            positions.append(event)
        elif _embeds(trace, index, event, ids):
            words.append(event)
        elif "type" in event.name.lower():
            segments.append(event)
    table = positions[0].place.module if positions else None
    for word in words:
        scales = dict.fromkeys((1.0, sqrt(trace.d_model), _ratio(trace, state, word)))
        for scale, segment, position in product(scales, (*segments, None), (*positions, None)):
            sites = _entrance_sites(trace, state, end, word, scale, segment, position)
            if sites is not None:
                return sites, None if position is None else position.place.module
    # Positions that are no module's output, or an embedding of another width: what enters the first
    # layer holds both.
    return [("embed+pos", ((trace.event(end).place, 1.0),))], table


def _ratio(trace: TraceLog, state: Tensor, word: TensorEvent) -> float:
    """The factor between the embedding and the state, if the state is a multiple of it."""
    rows = _rows(trace, word)
    return 1.0 if rows is None else round(float((rows * state).sum() / (rows * rows).sum()), 4)


def _entrance_sites(
    trace: TraceLog,
    state: Tensor,
    end: int,
    word: TensorEvent,
    scale: float,
    segment: TensorEvent | None,
    position: TensorEvent | None,
) -> list[tuple[str, Source]] | None:
    """The sites of embed (+ position) (+ LayerNorm) = state, None where that does not hold."""
    addends = [(each, _rows(trace, each)) for each in (segment, position) if each is not None]
    total = _rows(trace, word)
    source: Source = ((word.place, scale),)
    if total is None:
        return None
    total = total * scale
    for event, rows in addends:
        if rows is None:
            return None
        total = total + rows
        if event is segment:
            source = (*source, (event.place, 1.0))
    sites: list[tuple[str, Source]] = [("embed", source)]
    if position is not None:
        if (sum_index := trace.first(total, 0, end + 1)) is None:
            return None
        sites += [
            ("pos.wrote", ((position.place, 1.0),)),
            ("embed+pos", ((trace.event(sum_index).place, 1.0),)),
        ]
    if nearly_equal(total, state):
        return sites
    norm_index = trace.norm_of(total, 0, end + 1)
    if norm_index is None or not nearly_equal(trace.vectors(norm_index), state):
        return None
    return [*sites, ("embed.normed", ((trace.event(norm_index).place, 1.0),))]


def _rows(trace: TraceLog, event: TensorEvent) -> Tensor | None:
    value = vectors_of_one(event.value)
    return value if value.shape in ((trace.n, trace.d_model), (1, trace.d_model)) else None


# Lengths of the probe: two, so that a stream is known by its length.
N_SOURCE, N_TARGET = 7, 5


@dataclass(frozen=True)
class ModuleMap:
    """Result of the search. attentions: the attention that a module computes, by the module's id;
    n_layer, n_head and d_head of each attention by name.

    opens: q, k, v and scores are found. hides_words: what a HideWord takes out is read by no other
    token. scale: the factor of q . k, None where layers differ;
    biased: something is added to it; bound: what the scores stay below, 0 for no bound.
    lm_head_input: the module whose output the readout reads, None where there is no readout that
    could be used by itself. n_classes: of a whole text, 0 where the
    model says nothing of it."""

    streams: tuple[StreamPlan, ...]
    attentions: dict[int, str]
    n_layer: dict[str, int]
    n_head: int
    d_head: int
    causal: bool
    opens: bool
    hides_words: bool
    scale: float | None
    biased: bool
    positions: str
    lm_head_input: nn.Module | None
    n_classes: int = 0
    bound: float = 0.0


READ_TWICE = ("ForSequenceClassification", "ForQuestionAnswering")


def reads_twice(model: PreTrainedModel) -> bool:
    """True for a model whose decoder reads the text that its encoder reads, such as BART with a
    head for classes: it has one text, and its body two."""
    has_head = any(each.__name__.endswith(READ_TWICE) for each in type(model).__mro__)
    return has_head and bool(model.config.is_encoder_decoder)


def body_of(model: PreTrainedModel) -> PreTrainedModel:
    """The part that takes any two texts, of a model that reads one twice; another model as it
    is."""
    return cast("PreTrainedModel", model.base_model) if reads_twice(model) else model


@torch.inference_mode()
def own_output(model: PreTrainedModel, inputs: dict[str, Tensor]) -> ModelOutput:
    """The output of a model's own code on the probe, with all that it is asked for. Raises whatever
    it raises."""
    asked = {"output_attentions": True, "output_hidden_states": True, "use_cache": False}
    return body_of(model)(**inputs, **asked)


def shows_attention(output: ModelOutput) -> bool:
    """True where a model's output has weights of attention (1, head, query, key) and all rows sum
    to 1, and those of one text have a query for each key."""
    patterns = patterns_of(output)
    return bool(patterns) and all(
        isinstance(each, Tensor)
        and each.dim() == 4
        and (name == "cross" or each.shape[2] == each.shape[3])
        and nearly_equal(each.sum(-1), torch.ones(each.shape[:-1]))
        and bool((each >= 0).all())
        for name, layers in patterns.items()
        for each in layers
    )


@torch.inference_mode()
def probe_model(
    model: PreTrainedModel, start: int | None, inputs: dict[str, Tensor], reference: ModelOutput
) -> ModuleMap:
    """Tries a model (loaded with eager attention) on a probe and says what it shows; `start` is the
    first token of its decoder, None where it has one stream. reference: its `own_output`. Leaves it
    with our attention function where that computes what its own does, else with its own.

    Raises UntraceableModel where its states are not found, and where not every layer has attention.
    """
    whole, model = model, body_of(model)
    patterns, states = patterns_of(reference), _states_of(reference)
    _expect_one_shape(patterns, states, inputs)
    attentions, calls = _attention_map(model, inputs, patterns)
    # Where our function makes the same patterns, what a row lacks is a learned sink's.
    if not attentions and not shows_attention(reference):
        raise UntraceableModel("its code returns attention whose rows do not sum to 1")
    log = trace_modules(model, lambda: model(**inputs, use_cache=False))
    ids = {
        "encoder": inputs["input_ids"],
        "decoder": inputs.get("decoder_input_ids", inputs["input_ids"]),
    }
    causal = start is not None or all(not each.triu(1).any() for each in patterns["self"])
    plans = []
    for name, each in states.items():
        name = "decoder" if name == "self" and causal else "encoder" if name == "self" else name
        plans.append(stream_plan(name, [state[0] for state in each], ids[name][0], log))
    for plan, layers in zip(plans, list(patterns.values())):
        if plan.n_layer != len(layers):
            raise UntraceableModel(f"{len(layers)} of its {plan.n_layer} layers have attention")
    pattern = next(iter(patterns.values()))[0]
    scales, bounds = ({getattr(each, what) for each in calls} for what in ("scale", "bound"))
    biased = any(each.biased for each in calls)
    return ModuleMap(
        streams=tuple(plans),
        attentions=attentions,
        n_layer={name: len(layers) for name, layers in patterns.items()},
        n_head=pattern.shape[1],
        d_head=_head_width(model, pattern.shape[1], plans[0].d_model),
        causal=causal,
        opens=bool(attentions),
        hides_words=_hides_words(model, inputs, attentions, patterns),
        scale=next(iter(scales)) if len(scales) == 1 else None,
        biased=biased,
        bound=max(bounds, default=0.0),
        positions=_kind_of_positions(model, plans[0].positions, biased),
        lm_head_input=_lm_head_input(model, inputs, reference),
        n_classes=_n_classes(reference if model is whole else whole(**sorted_inputs(whole, start))),
    )


def _hides_words(
    model: PreTrainedModel,
    inputs: dict[str, Tensor],
    attentions: dict[int, str],
    patterns: dict[str, Sequence[Tensor]],
) -> bool:
    """True where no state of another token changes with a token that is taken out of our attention
    function: where nothing beside attention, such as a recurrence or a convolution, reads it."""
    if not attentions:
        return False
    out, n_layer = 1, {name: len(layers) for name, layers in patterns.items()}
    edits: tuple[Edit, ...] = (HideWord(out),)
    seen: list[dict[str, Sequence[Tensor]]] = []
    for ids in (inputs["input_ids"], inputs["input_ids"].clone()):
        if seen:
            ids[0, out] = ids[0, out + 1]
        with active_pass(ForwardPass(attentions, n_layer, edits, keeps=False)):
            asked = {"output_hidden_states": True, "use_cache": False}
            seen.append(_states_of(model(**(inputs | {"input_ids": ids}), **asked)))
    for name, states in seen[0].items():
        for one, other in zip(states, seen[1][name]):
            one, other = vectors_of_one(one).clone(), vectors_of_one(other).clone()
            if name != "decoder":  # the token itself, of the text that it is in
                one[out] = other[out]
            if not nearly_equal(one, other):
                return False
    return True


def _expect_one_shape(
    patterns: dict[str, Sequence[Tensor]],
    states: dict[str, Sequence[Tensor]],
    inputs: dict[str, Tensor],
) -> None:
    """Raises UntraceableModel where layers have no attention of (1, head, query, key), where these
    are not alike, and where a token has other than one vector between two layers."""
    arrays = [each for layers in patterns.values() for each in layers]
    if not arrays:
        raise UntraceableModel("its code returns no attention")
    if not all(isinstance(each, Tensor) and each.dim() == 4 for each in arrays):
        raise UntraceableModel("its code returns no attention of the shape (1, head, query, key)")
    n, m = inputs["input_ids"].shape[1], N_TARGET
    lengths = {"decoder self": (m, m), "cross": (m, n)}
    for name, layers in patterns.items():
        if len(heads := {each.shape[1] for each in layers}) > 1:
            raise UntraceableModel(
                f"its layers have {' or '.join(map(str, sorted(heads)))} heads, and a recording "
                "has as many in each"
            )
        for each in layers:
            if (*each.shape[2:],) != lengths.get(name, (n, n)):
                raise UntraceableModel(
                    f"its attention has the shape {(*each.shape,)} on {n} tokens"
                )
    for each in [state for layers in states.values() for state in layers]:
        if each.dim() != 3 or 1 not in each.shape[:2]:
            raise UntraceableModel(
                f"between its layers stand vectors of the shape {(*each.shape,)}, and a token of a "
                "recording has one there"
            )


def _n_classes(reference: ModelOutput) -> int:
    """The number of scores that a model gives a whole text; 0 where it gives none."""
    logits = reference.get("logits")
    return logits.shape[1] if isinstance(logits, Tensor) and logits.dim() == 2 else 0


def patterns_of(output: ModelOutput) -> dict[str, Sequence[Tensor]]:
    """The patterns in a model's output by the attention's name, a layer each."""
    if "encoder_attentions" in output:
        patterns = {
            "encoder self": output["encoder_attentions"],
            "decoder self": output["decoder_attentions"],
            "cross": output["cross_attentions"],
        }
    else:
        patterns = {"self": output.get("attentions")}
    return {name: layers for name, layers in patterns.items() if layers}


def _states_of(output: ModelOutput) -> dict[str, Sequence[Tensor]]:
    if "encoder_hidden_states" in output:
        return {
            "encoder": output["encoder_hidden_states"],
            "decoder": output["decoder_hidden_states"],
        }
    return {"self": output["hidden_states"]}


def embedding_matrix(model: PreTrainedModel) -> Tensor:
    """The embeddings of a model's vocabulary, (id, d_model). Raises UntraceableModel for none."""
    try:
        weight = getattr(model.get_input_embeddings(), "weight", None)
    except NotImplementedError:
        weight = None
    if not isinstance(weight, Tensor) or weight.dim() != 2:
        raise UntraceableModel("it has no table with an embedding for each token")
    return weight


def probe_inputs(model: PreTrainedModel, start: int | None) -> dict[str, Tensor]:
    """Two short texts of ordinary tokens, all different where the vocabulary is large enough.
    Raises UntraceableModel for a model that does not read texts alone."""
    n_vocab = min(_vocabularies(model, start))
    shuffled = torch.randperm(n_vocab, generator=torch.Generator().manual_seed(0), device="cpu")
    special = {
        value
        for key, value in vars(model.config).items()
        if key.endswith("_token_id") and isinstance(value, int)
    }
    ids = [
        int(token)
        for token in shuffled[: N_SOURCE + N_TARGET + len(special)]
        if int(token) not in special
    ]
    ids = (ids * (N_SOURCE + N_TARGET))[: N_SOURCE + N_TARGET]
    inputs = {"input_ids": torch.tensor([ids[:N_SOURCE]])}
    if start is not None:
        inputs["decoder_input_ids"] = torch.tensor(
            [[start, *ids[N_SOURCE : N_SOURCE + N_TARGET - 1]]]
        )
    _expect_text_alone(model, inputs)
    return inputs


def _vocabularies(model: PreTrainedModel, start: int | None) -> Iterator[int]:
    """The numbers of tokens that a model and its parts have embeddings of; FSMT has two."""
    yield len(embedding_matrix(model))
    for name in ("encoder", "decoder") if start is not None else ():
        part: Any = getattr(model, f"get_{name}", lambda: None)()
        weight = getattr(getattr(part, "embed_tokens", None), "weight", None)
        if isinstance(weight, Tensor):
            yield len(weight)


def sorted_inputs(model: PreTrainedModel, start: int | None) -> dict[str, Tensor]:
    """A short text for a classifier, for one of two parts as its decoder reads it too: ended by the
    token that its head looks for, and moved on by the one that a decoder begins with."""
    inputs = probe_inputs(model, None)
    if start is not None:
        ids = inputs["input_ids"]
        if isinstance(end := config_value(model, "eos_token_id"), int):
            ids[0, -1] = end
        inputs["decoder_input_ids"] = torch.cat([ids.new_tensor([[start]]), ids[:, :-1]], dim=1)
    return inputs


def _expect_text_alone(model: PreTrainedModel, inputs: dict[str, Tensor]) -> None:
    """Raises UntraceableModel where a model's code cannot be called without something beside a
    text."""
    needed = [
        name
        for name, parameter in inspect.signature(model.forward).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        and name not in inputs
    ]
    if needed:
        raise UntraceableModel(f"beside a text its code needs {', '.join(needed)}")


def _attention_map(
    model: PreTrainedModel, inputs: dict[str, Tensor], patterns: dict[str, Sequence[Tensor]]
) -> tuple[dict[int, str], list[AttentionCall]]:
    """The attention that each module computes, and the calls of our function. Empty where it does
    not reproduce its patterns, and where layers' queries differ in width, as in Gemma 4."""
    model.set_attn_implementation(ATTENTION_NAME)
    with suppress(Exception):  # a family's code may use it in a way of its own
        found = _followed(model, inputs, patterns)
        if found[0]:
            return found
    model.set_attn_implementation("eager")
    return {}, []


def _followed(
    model: PreTrainedModel, inputs: dict[str, Tensor], patterns: dict[str, Sequence[Tensor]]
) -> tuple[dict[int, str], list[AttentionCall]]:
    """As `_attention_map`, of a model with our function."""
    calls: list[AttentionCall] = []
    with active_pass(ForwardPass(keeps=False, on_attention=calls.append)):
        model(**inputs, use_cache=False)
    attentions: dict[int, str] = {}
    for call in calls:
        attentions[id(call.module)] = _attention_name(call, "decoder_input_ids" in inputs)
    counts = Counter(attentions[id(call.module)] for call in calls)
    n_layer = {name: len(layers) for name, layers in patterns.items()}
    if counts == n_layer:
        trace = ForwardPass(attentions, n_layer)
        with active_pass(trace):
            model(**inputs, use_cache=False)
        if all(
            nearly_equal(
                torch.from_numpy(trace.heads[name].arrays["pattern"]), torch.cat(list(layers)).cpu()
            )
            for name, layers in patterns.items()
        ):
            return attentions, calls
    return {}, []


def _attention_name(call: AttentionCall, has_decoder: bool) -> str:
    if not has_decoder:
        return "self"
    return {(N_SOURCE, N_SOURCE): "encoder self", (N_TARGET, N_TARGET): "decoder self"}.get(
        (call.n_query, call.n_key), "cross"
    )


def _head_width(model: PreTrainedModel, n_head: int, d_model: int) -> int:
    named = config_value(model, "head_dim") or config_value(model, "d_kv")
    return named if isinstance(named, int) else d_model // n_head


def config_value(model: PreTrainedModel, name: str) -> Any:
    """A setting of a model, None where it has none; that of most layers where these differ."""
    try:
        return getattr(model.config, name, None)
    except Exception:  # transformers asks which layer's
        return vars(model.config).get(name)


def _kind_of_positions(model: PreTrainedModel, table: nn.Module | None, biased: bool) -> str:
    """The kind of positions: "learned", "sinusoids", "rotary", "buckets" (a learned bias on the
    scores, by distance), "distance" (a fixed one), "relative", or "unknown"."""
    if any("Rotary" in type(module).__name__ for module in model.modules()):
        return "rotary"
    if table is not None:
        return (
            "sinusoids"
            if "inusoid" in type(table).__name__
            or getattr(model.config, "sinusoidal_pos_embds", False)
            else "learned"
        )
    if any("relative_attention_bias" in name for name, _ in model.named_parameters()):
        return "buckets"
    if biased or any(hasattr(module, "build_alibi_tensor") for module in model.modules()):
        return "distance"
    return (
        "relative"
        if any(".rel_" in name or "relative" in name for name, _ in model.named_parameters())
        else "unknown"
    )


def _lm_head_input(
    model: PreTrainedModel, inputs: dict[str, Tensor], reference: ModelOutput
) -> nn.Module | None:
    """The module after which a model's readout begins, None where there is no readout or it reads
    something else besides."""
    if (
        "logits" not in reference
        or reference["logits"].dim() != 3
        or reference["logits"].shape[-1] != len(embedding_matrix(model))
    ):
        return None
    *_, states = _states_of(reference).values()
    last = states[-1]
    candidates = [
        model.base_model,
        *([model.get_decoder()] if hasattr(model, "get_decoder") else []),
    ]
    return next(
        (
            candidate
            for candidate in candidates
            if candidate is not None
            and candidate is not model
            and _feeds_readout(model, inputs, candidate, reference, last)
        ),
        None,
    )


def _feeds_readout(
    model: PreTrainedModel,
    inputs: dict[str, Tensor],
    candidate: nn.Module,
    reference: ModelOutput,
    last: Tensor,
) -> bool:
    """True where a module gives the last state, once, and the logits are those of the state that is
    put in its place in another run."""
    outputs: list[Tensor | None] = []
    hook = candidate.register_forward_hook(
        lambda module, args, output: outputs.append(first_tensor(output))
    )
    try:
        model(**inputs, use_cache=False)
    finally:
        hook.remove()
    if len(outputs) != 1 or outputs[0] is None or not nearly_equal(outputs[0], last):
        return False
    hook = candidate.register_forward_hook(replace_output)
    try:
        with active_pass(ForwardPass(keeps=False, answer=last)):
            logits = model(
                **{name: ids[:, :1] for name, ids in inputs.items()}, use_cache=False
            ).logits
    except Exception:  # its readout reads what one token does not have
        return False
    finally:
        hook.remove()
    return nearly_equal(logits, reference["logits"])
