"""What a Hugging Face model shows of itself, found by trying it on a short text when it is loaded.

No table says where a family keeps its residual stream. Everything that passes through any module on
the probe is noted, and the
stream is looked for in it by its law: a tensor `wrote` counts as a sub-layer's output only where
state + wrote comes by as well. What is not
found is not offered: a model whose attention and feed-forward write side by side (GPT-NeoX, Falcon)
has no sum between the two, and none is made up.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import sqrt
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from models.pretrained.hooks import (
    OURS,
    AttentionCall,
    HookPoint,
    Pass,
    answered,
    first_tensor,
    listening,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput


# Everything that passes through a model's modules in a run, and the search for a value in it.

# How far apart two computations of the same number may be, in relation to the largest.
SAME = 1e-5


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
        self.values = [self._as_vectors(moment) for moment in self.log]

    def _as_vectors(self, moment: TensorEvent | AttentionCall) -> Tensor | None:
        if isinstance(moment, AttentionCall) or not moment.value.is_floating_point():
            return None
        value = (
            moment.value[0] if moment.value.dim() == 3 and len(moment.value) == 1 else moment.value
        )
        return value if value.shape == (self.n, self.d_model) else None

    def moment(self, at: int) -> TensorEvent:
        """What came by at a time when a tensor did."""
        moment = self.log[at]
        assert isinstance(moment, TensorEvent)
        return moment

    def vectors(self, at: int) -> Tensor:
        """The vectors (token, d_model) of a time when there were some."""
        value = self.values[at]
        assert value is not None
        return value

    def first(self, value: Tensor, begin: int, end: int) -> int | None:
        """When a value first comes by, from `begin` up to before `end`."""
        return next(
            (
                at
                for at in range(begin, end)
                if (found := self.values[at]) is not None and same(found, value)
            ),
            None,
        )

    def outs(self, begin: int, end: int) -> list[tuple[int, TensorEvent]]:
        """What modules gave in a stretch of time, in order."""
        return [
            (at, moment)
            for at, moment in enumerate(self.log[begin:end], begin)
            if isinstance(moment, TensorEvent)
            and self.values[at] is not None
            and moment.place.side == "out"
        ]

    def came(self, out: int) -> int | None:
        """When the module that gave something had read its input, None where it read no tensor."""
        place = self.moment(out).place
        wanted = HookPoint(place.module, "in", place.call).key
        return next(
            (
                at
                for at in range(out, -1, -1)
                if isinstance(moment := self.log[at], TensorEvent) and moment.place.key == wanted
            ),
            None,
        )

    def read_by(self, out: int) -> Tensor | None:
        """The vectors that the module read which gave something, None where these were none."""
        came = self.came(out)
        return None if came is None else self.values[came]

    def norm_of(self, value: Tensor, begin: int, end: int) -> int | None:
        """When a LayerNorm that had read this value gave its result."""
        for at, moment in self.outs(begin, end):
            if is_norm(moment) and (read := self.read_by(at)) is not None and same(read, value):
                return at
        return None


def everything(model: nn.Module, run: Callable[[], object]) -> list[TensorEvent | AttentionCall]:
    """All that modules read and give during a run, in order, with the calls of our attention
    function in between."""
    log: list[TensorEvent | AttentionCall] = []
    calls: Counter = Counter()

    def note(name: str, module: nn.Module, side: str, values: object) -> None:
        if (value := first_tensor(values)) is not None:
            log.append(TensorEvent(HookPoint(module, side, calls[name]), name, value.clone()))

    def before(name: str) -> Callable:
        return lambda module, args, kwargs: note(name, module, "in", (*args, *kwargs.values()))

    def after(name: str) -> Callable:
        def went(module: nn.Module, args: tuple, output: object) -> None:
            note(name, module, "out", output)
            calls[name] += 1

        return went

    hooks = []
    try:
        for name, module in model.named_modules():
            hooks += [
                module.register_forward_pre_hook(before(name), with_kwargs=True),
                module.register_forward_hook(after(name)),
            ]
        with listening(Pass(keeps=False, told=log.append)):
            run()
    finally:
        for hook in hooks:
            hook.remove()
    return log


def is_norm(moment: TensorEvent | AttentionCall) -> bool:
    """True for LayerNorm, RMSNorm and their kin: a module with none inside it and one gain for each
    dimension."""
    if isinstance(moment, AttentionCall) or not moment.leaf:
        return False
    weight = getattr(moment.place.module, "weight", None)
    return (
        isinstance(weight, Tensor)
        and weight.dim() == 1
        and weight.shape[0] == moment.value.shape[-1]
    )


def in_layer(moment: TensorEvent) -> bool:
    """True where the module is one of a numbered layer's."""
    return any(part.isdigit() for part in moment.name.split("."))


def same(a: Tensor, b: Tensor) -> bool:
    """True where two computations of a number agree to `SAME` of the largest."""
    return a.shape == b.shape and bool((a - b).abs().max() <= SAME * b.abs().max().clamp(min=1e-3))


# Where a stream of vectors is heard in a model, found by its law: a tensor `wrote` counts as a
# sub-layer's output only where state + wrote comes by as well.

Source = tuple[tuple[HookPoint, float], ...]


@dataclass(frozen=True)
class StreamPlan:
    """Where one stream is heard: its sites in order, each the sum of tensors at places, times a
    factor. `n_layer` layers, `d_model` wide.

    law: every sub-layer's `.wrote` and sum are among the sites. final_norm: the LayerNorm after the
    last layer. positions: the table that is added to the embeddings. norm: "post" or "pre".
    """

    name: str
    n_layer: int
    d_model: int
    sites: tuple[tuple[str, Source], ...]
    law: bool
    norm: str
    final_norm: nn.Module | None
    positions: nn.Module | None

    def places(self) -> list[HookPoint]:
        """Every place that is heard."""
        return [place for _, source in self.sites for place, _ in source]


class Unfollowed(ValueError):
    """A model's states or attentions could not be found in what its modules read and give; says
    which."""


def stream_plan(
    name: str, states: list[Tensor], ids: Tensor, log: list[TensorEvent | AttentionCall]
) -> StreamPlan:
    """A stream's sites; states (layer + 1) of (token, d_model) are what the model itself says they
    are, the last one after a last LayerNorm."""
    seen = TraceLog(log, *states[0].shape)
    final = _final_norm(seen, states[-1])
    if final is not None and (before := seen.read_by(final)) is not None:
        states = [*states[:-1], before]
    when = _moments(name, seen, states)
    entrance, positions = _entrance(seen, states[0], when[0], ids)
    lasts = [seen.moment(at) for at in when[1:]]
    ends_normed = [is_norm(each) and each.place.side == "out" for each in lasts]
    post = all(ends_normed)
    layers = [
        _sublayers(seen, states[at], states[at + 1], when[at], when[at + 1], post)
        for at in range(len(states) - 1)
    ]
    law = all(
        layer is not None
        and [each.name for each in layer] in (["attn", "ffn"], ["attn", "cross", "ffn"])
        for layer in layers
    )
    sites = [*entrance]
    for at, layer in enumerate(layers):
        end = "normed" if ends_normed[at] else "sum"
        whole: list[tuple[str, Source]] = [(f"{at}.ffn.{end}", ((lasts[at].place, 1.0),))]
        sites += _of_layer(at, layer) if law and layer is not None else whole
    norm = None
    if final is not None:
        place = seen.moment(final).place
        sites.append(("final.normed", ((place, 1.0),)))
        norm = place.module
    return StreamPlan(
        name,
        len(layers),
        states[0].shape[1],
        tuple(sites),
        law,
        "post" if post else "pre",
        norm,
        positions,
    )


def _final_norm(seen: TraceLog, last: Tensor) -> int | None:
    """When the LayerNorm after the last layer gave the last state, None where there is none."""
    for at, moment in seen.outs(0, len(seen.log)):
        after_layers = is_norm(moment) and not in_layer(moment) and seen.read_by(at) is not None
        if after_layers and same(seen.vectors(at), last):
            return at
    return None


def _moments(name: str, seen: TraceLog, states: list[Tensor]) -> list[int]:
    """When each state of a stream comes by. Raises Unfollowed where one does not."""
    when: list[int] = []
    for at, state in enumerate(states):
        found = seen.first(state, when[-1] + 1 if when else 0, len(seen.log))
        if found is None:
            raise Unfollowed(f"state {at} of its {name} comes by nowhere")
        when.append(found)
    return when


def _of_layer(at: int, layer: list[_Sublayer]) -> list[tuple[str, Source]]:
    return [
        (f"{at}.{each.name}.{what}", ((place, 1.0),))
        for each in layer
        for what, place in each.sites
    ]


@dataclass(frozen=True)
class _Sublayer:
    name: str
    sites: tuple[tuple[str, HookPoint], ...]


def _sublayers(
    seen: TraceLog, state: Tensor, goal: Tensor, begin: int, end: int, post: bool
) -> list[_Sublayer] | None:
    """The sub-layers that lead from one state to the next, None where they cannot be followed all
    the way."""
    found, at = [], begin
    while not same(state, goal):
        step = next(
            (
                (out, total)
                for out, moment in seen.outs(at + 1, end + 1)
                if (total := _sum_after(seen, state, out, end)) is not None
            ),
            None,
        )
        if step is None:
            return None
        out, total = step
        sites = [("wrote", seen.moment(out).place), ("sum", seen.moment(total).place)]
        read = None if post else seen.norm_of(state, at, out)
        if read is not None:
            sites.insert(0, ("read", seen.moment(read).place))
        name = _sublayer_name(seen.log[at + 1 : out], seen.moment(out).name)
        state, at = seen.vectors(total), total
        if post:
            normed = seen.norm_of(state, total, end + 1)
            if normed is None:
                return None
            sites.append(("normed", seen.moment(normed).place))
            state, at = seen.vectors(normed), normed
        found.append(_Sublayer(name, tuple(sites)))
    return found


def _sum_after(seen: TraceLog, state: Tensor, out: int, end: int) -> int | None:
    wrote = seen.vectors(out)
    return (
        seen.first(state + wrote, out + 1, end + 1)
        if wrote.abs().max() > SAME * state.abs().max()
        else None
    )


def _sublayer_name(between: list[TensorEvent | AttentionCall], module: str) -> str:
    """By the attention that was computed on the way; where that is the model's own code, unseen, by
    the name of the module that wrote."""
    calls = [moment for moment in between if isinstance(moment, AttentionCall)]
    if calls:
        return "attn" if calls[-1].n_query == calls[-1].n_key else "cross"
    return "attn" if "att" in module else "ffn"


def _embeds(seen: TraceLog, at: int, moment: TensorEvent, ids: Tensor) -> bool:
    """True where a module's output is the embeddings of these token ids."""
    came = seen.came(at)
    return (
        isinstance(moment.place.module, nn.Embedding)
        and came is not None
        and torch.equal(seen.moment(came).value.reshape(-1), ids)
    )


def _entrance(
    seen: TraceLog, state: Tensor, when: int, ids: Tensor
) -> tuple[list[tuple[str, Source]], nn.Module | None]:
    """The sites before the first layer, up to the state that enters it, and the module that gives
    what is added for positions."""
    words: list[TensorEvent] = []
    positions: list[TensorEvent] = []
    segments: list[TensorEvent] = []
    for at, moment in enumerate(seen.log[: when + 1]):
        if (
            isinstance(moment, AttentionCall)
            or moment.place.side == "in"
            or not moment.leaf
            or not moment.value.is_floating_point()
        ):
            continue
        if "pos" in moment.name.lower() or moment.name.endswith("wpe"):
            positions.append(moment)
        elif _embeds(seen, at, moment, ids):
            words.append(moment)
        elif "type" in moment.name.lower():
            segments.append(moment)
    table = positions[0].place.module if positions else None
    for word in words:
        scales = dict.fromkeys((1.0, sqrt(seen.d_model), _ratio(seen, state, word)))
        for scale, segment, position in product(scales, (*segments, None), (*positions, None)):
            found = _entered(seen, state, when, word, scale, segment, position)
            if found is not None:
                return found, None if position is None else position.place.module
    # Positions that are no module's output, or an embedding of another width: what enters the first
    # layer holds both.
    return [("embed+pos", ((seen.moment(when).place, 1.0),))], table


def _ratio(seen: TraceLog, state: Tensor, word: TensorEvent) -> float:
    """What the embedding would have to be multiplied by to be the state, if it is nothing else."""
    rows = _rows(seen, word)
    return 1.0 if rows is None else round(float((rows * state).sum() / (rows * rows).sum()), 4)


def _entered(
    seen: TraceLog,
    state: Tensor,
    when: int,
    word: TensorEvent,
    scale: float,
    segment: TensorEvent | None,
    position: TensorEvent | None,
) -> list[tuple[str, Source]] | None:
    """The sites of embed (+ position) (+ LayerNorm) = state, None where that does not hold."""
    added = [(each, _rows(seen, each)) for each in (segment, position) if each is not None]
    total = _rows(seen, word)
    source: Source = ((word.place, scale),)
    if total is None:
        return None
    total = total * scale
    for moment, rows in added:
        if rows is None:
            return None
        total = total + rows
        if moment is segment:
            source = (*source, (moment.place, 1.0))
    sites: list[tuple[str, Source]] = [("embed", source)]
    if position is not None:
        if (summed := seen.first(total, 0, when + 1)) is None:
            return None
        sites += [
            ("pos.wrote", ((position.place, 1.0),)),
            ("embed+pos", ((seen.moment(summed).place, 1.0),)),
        ]
    if same(total, state):
        return sites
    normed = seen.norm_of(total, 0, when + 1)
    if normed is None or not same(seen.vectors(normed), state):
        return None
    return [*sites, ("embed.normed", ((seen.moment(normed).place, 1.0),))]


def _rows(seen: TraceLog, moment: TensorEvent) -> Tensor | None:
    value = moment.value[0] if moment.value.dim() == 3 and len(moment.value) == 1 else moment.value
    return value if value.shape in ((seen.n, seen.d_model), (1, seen.d_model)) else None


# Lengths of the probe: two, so that a stream is known by its length.
N_SOURCE, N_TARGET = 7, 5


@dataclass(frozen=True)
class ModuleMap:
    """What was found. attentions: which attention a module computes, by its id; n_layer, n_head and
    d_head of each attention by name.

    opens: q, k, v and scores are heard. scale: what q . k is multiplied by, None where layers
    differ; biased: something is added to it.
    door: the module whose output the readout reads, None where there is no readout that could be
    used by itself.
    """

    streams: tuple[StreamPlan, ...]
    attentions: dict[int, str]
    n_layer: dict[str, int]
    n_head: int
    d_head: int
    causal: bool
    opens: bool
    scale: float | None
    biased: bool
    positions: str
    door: nn.Module | None


@torch.inference_mode()
def survey(model: PreTrainedModel, start: int | None) -> ModuleMap:
    """Tries a model (loaded with eager attention) on a probe and says what it shows; `start` is the
    first token of its decoder, None where it has one stream. Leaves it with our attention function
    where that computes what its own does, else with its own.

    Raises Unfollowed where its states are not found, and where not every layer has attention.
    """
    inputs = _probe(model, start)
    _expect_text_alone(model, inputs)
    true = model(**inputs, output_attentions=True, output_hidden_states=True, use_cache=False)
    patterns, states = patterns_of(true), _states_of(true)
    if not patterns or any(
        not isinstance(each, Tensor) or each.dim() != 4
        for layers in patterns.values()
        for each in layers
    ):
        raise Unfollowed("its code hands out no attention")
    if not all(
        same(each.sum(-1), torch.ones(each.shape[:-1])) and (each >= 0).all()
        for layers in patterns.values()
        for each in layers
    ):
        raise Unfollowed("its code hands out attention whose rows do not sum to 1")
    attentions, scales, biased = _ours(model, inputs, patterns)
    log = everything(model, lambda: model(**inputs, use_cache=False))
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
            raise Unfollowed(f"{len(layers)} of its {plan.n_layer} layers have attention")
    one = next(iter(patterns.values()))[0]
    return ModuleMap(
        streams=tuple(plans),
        attentions=attentions,
        n_layer={name: len(layers) for name, layers in patterns.items()},
        n_head=one.shape[1],
        d_head=_head_width(model, one.shape[1], plans[0].d_model),
        causal=causal,
        opens=bool(attentions),
        scale=next(iter(scales)) if len(scales) == 1 else None,
        biased=biased,
        positions=_kind_of_positions(model, plans[0].positions, biased),
        door=_door(model, inputs, true),
    )


def patterns_of(output: ModelOutput) -> dict[str, Sequence[Tensor]]:
    """The patterns in a model's output by the attention's name, a layer each."""
    if "encoder_attentions" in output:
        found = {
            "encoder self": output["encoder_attentions"],
            "decoder self": output["decoder_attentions"],
            "cross": output["cross_attentions"],
        }
    else:
        found = {"self": output.get("attentions")}
    return {name: layers for name, layers in found.items() if layers}


def _states_of(output: ModelOutput) -> dict[str, Sequence[Tensor]]:
    if "encoder_hidden_states" in output:
        return {
            "encoder": output["encoder_hidden_states"],
            "decoder": output["decoder_hidden_states"],
        }
    return {"self": output["hidden_states"]}


def words_of(model: PreTrainedModel) -> Tensor:
    """The embeddings of a model's vocabulary, (id, d_model). Raises Unfollowed for none."""
    try:
        weight = getattr(model.get_input_embeddings(), "weight", None)
    except NotImplementedError:
        weight = None
    if not isinstance(weight, Tensor) or weight.dim() != 2:
        raise Unfollowed("it has no table with an embedding for each token")
    return weight


def _probe(model: PreTrainedModel, start: int | None) -> dict[str, Tensor]:
    """Two short texts of ordinary tokens, all different where the vocabulary is large enough."""
    n_vocab = len(words_of(model))
    drawn = torch.randperm(n_vocab, generator=torch.Generator().manual_seed(0))
    special = {
        value
        for key, value in vars(model.config).items()
        if key.endswith("_token_id") and isinstance(value, int)
    }
    ids = [
        int(token)
        for token in drawn[: N_SOURCE + N_TARGET + len(special)]
        if int(token) not in special
    ]
    ids = (ids * (N_SOURCE + N_TARGET))[: N_SOURCE + N_TARGET]
    inputs = {"input_ids": torch.tensor([ids[:N_SOURCE]])}
    if start is not None:
        inputs["decoder_input_ids"] = torch.tensor(
            [[start, *ids[N_SOURCE : N_SOURCE + N_TARGET - 1]]]
        )
    return inputs


def _expect_text_alone(model: PreTrainedModel, inputs: dict[str, Tensor]) -> None:
    """Raises Unfollowed where a model's code cannot be called without something beside a text."""
    needed = [
        name
        for name, each in inspect.signature(model.forward).parameters.items()
        if each.default is each.empty
        and each.kind is each.POSITIONAL_OR_KEYWORD
        and name not in inputs
    ]
    if needed:
        raise Unfollowed(f"beside a text its code needs {', '.join(needed)}")


def _ours(
    model: PreTrainedModel, inputs: dict[str, Tensor], patterns: dict[str, Sequence[Tensor]]
) -> tuple[dict[int, str], set[float], bool]:
    """Which attention each module computes, what it scales by, and whether it adds a bias, where
    our function computes its patterns; else none."""
    model.set_attn_implementation(OURS)
    calls: list[AttentionCall] = []
    with listening(Pass(keeps=False, told=calls.append)):
        model(**inputs, use_cache=False)
    attentions: dict[int, str] = {}
    for call in calls:
        attentions[id(call.module)] = _name_of(call, "decoder_input_ids" in inputs)
    counts = Counter(attentions[id(call.module)] for call in calls)
    n_layer = {name: len(layers) for name, layers in patterns.items()}
    if counts == n_layer:
        second = Pass(attentions, n_layer)
        with listening(second):
            model(**inputs, use_cache=False)
        if all(
            same(torch.from_numpy(second.heads[name].arrays["pattern"]), torch.cat(list(layers)))
            for name, layers in patterns.items()
        ):
            return (
                attentions,
                {call.scale for call in calls},
                any(call.biased for call in calls),
            )
    model.set_attn_implementation("eager")
    return {}, set(), False


def _name_of(call: AttentionCall, two: bool) -> str:
    if not two:
        return "self"
    return {(N_SOURCE, N_SOURCE): "encoder self", (N_TARGET, N_TARGET): "decoder self"}.get(
        (call.n_query, call.n_key), "cross"
    )


def _head_width(model: PreTrainedModel, n_head: int, d_model: int) -> int:
    return (
        getattr(model.config, "head_dim", None)
        or getattr(model.config, "d_kv", None)
        or d_model // n_head
    )


def _kind_of_positions(model: PreTrainedModel, table: nn.Module | None, biased: bool) -> str:
    """How a model knows the order of its tokens: "learned", "sinusoids", "rotary", "buckets" (a
    learned bias on the scores, by distance), "distance" (a fixed one), "relative", or "unknown"."""
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


def _door(model: PreTrainedModel, inputs: dict[str, Tensor], true: ModelOutput) -> nn.Module | None:
    """The module after which a model's readout begins, None where there is no readout or it reads
    something else besides."""
    if (
        "logits" not in true
        or true["logits"].dim() != 3
        or true["logits"].shape[-1] != len(words_of(model))
    ):
        return None
    *_, states = _states_of(true).values()
    last = states[-1]
    doors = [model.base_model, *([model.get_decoder()] if hasattr(model, "get_decoder") else [])]
    return next(
        (
            door
            for door in doors
            if door is not None and door is not model and _shows(model, inputs, door, true, last)
        ),
        None,
    )


def _shows(
    model: PreTrainedModel,
    inputs: dict[str, Tensor],
    door: nn.Module,
    true: ModelOutput,
    last: Tensor,
) -> bool:
    """True where a module gives the last state, once, and the logits are those of the state that is
    put in its place in another run."""
    shown: list[Tensor | None] = []
    hook = door.register_forward_hook(
        lambda module, args, output: shown.append(first_tensor(output))
    )
    try:
        model(**inputs, use_cache=False)
    finally:
        hook.remove()
    if len(shown) != 1 or shown[0] is None or not same(shown[0], last):
        return False
    hook = door.register_forward_hook(answered)
    try:
        with listening(Pass(keeps=False, answer=last)):
            said = model(
                **{name: ids[:, :1] for name, ids in inputs.items()}, use_cache=False
            ).logits
    finally:
        hook.remove()
    return same(said, true["logits"])
