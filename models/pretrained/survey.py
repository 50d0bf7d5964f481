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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from models.pretrained.hooks import OURS, AttentionCall, Pass, answered, first_tensor, listening
from models.pretrained.overheard import everything, same
from models.pretrained.stream import StreamPlan, Unfollowed, stream_plan

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput

# Lengths of the probe: two, so that a stream is known by its length.
N_SOURCE, N_TARGET = 7, 5


@dataclass(frozen=True)
class Plan:
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
def survey(model: PreTrainedModel, start: int | None) -> Plan:
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
    return Plan(
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
