"""A logit of a Hugging Face model in its own code as a sum of what its parts wrote, where its
readout is a matrix, with or without a transform such as BERT's, and its stream can be followed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from models.cancellation import checkpoint
from models.pretrained.hf_model import HFModel, expect_readout, no_readout, readout_of
from models.pretrained.hooks import ForwardPass, active_pass
from models.pretrained.probing import StreamPlan, nearly_equal
from models.readouts.gradients import ResidualGradients
from models.readouts.logit_lens import BIAS, PartKey
from models.recording import Recording, Stream
from models.results import Attribution, Part

# The gradient of a logit back through a Hugging Face model's own code.

AS_IT_IS = "residual on"  # the one way that a model's own code runs


def gradients(handle: HFModel, recording: Recording, stream: str, token: int) -> ResidualGradients:
    """The gradient of the likeliest word's logit at a token back to every state of the stream, as
    `models.readouts.gradients.highway`, by automatic differentiation of the model's own code. It is
    taken in one way, as the model is.

    Raises ValueError for a token that is not there, for a model without a readout, and where a
    state is no part of what the logit was computed from.
    """
    output = recording.streams[-1]
    expect_readout(handle, output.name)
    n = len(recording.stream(stream).tokens)
    if not 0 <= token < n:
        raise ValueError(f"stream {stream} has tokens 0 to {n - 1}, not {token}")
    row = token if output.name == stream else 0
    inputs = {"input_ids": torch.tensor(recording.streams[0].ids)[None]}
    if handle.start is not None:
        inputs["decoder_input_ids"] = torch.tensor(output.ids)[None]
    trace = ForwardPass(handle.plan.attentions, handle.plan.n_layer, recording.edits)
    checkpoint()
    with torch.enable_grad(), handle.lock, active_pass(trace):
        scores = handle.model(**inputs, use_cache=False).logits[0, row]
        checkpoint()
        word = int(scores.argmax())
        plan = next(each for each in handle.plan.streams if each.name == stream)
        states = _states(plan, trace)
        grads = torch.autograd.grad(scores[word], list(states.values()), allow_unused=True)
    if any(each is None for each in grads):
        raise ValueError(f"{handle.card.name} does not let its states be followed back")
    norm = torch.stack([each.reshape(n, -1).norm(dim=-1) for each in grads])
    logit = scores[word].detach()
    return ResidualGradients(
        stream,
        output.name,
        row,
        word,
        (AS_IT_IS,),
        tuple(states),
        norm[None].numpy(),
        logit[None].numpy(),
    )


def _states(plan: StreamPlan, trace: ForwardPass) -> dict[str, Tensor]:
    """The state before the first layer, as "embed+pos", and the one after every sub-layer that was
    heard as one tensor."""
    states: dict[str, Tensor] = {}
    for site, source in plan.sites:
        place, _, what = site.rpartition(".")
        if len(source) != 1 or source[0][1] != 1.0 or place == "final":
            continue
        tensor = trace.places[source[0][0].key]
        if site in ("embed", "embed+pos", "embed.normed"):
            states["embed+pos"] = tensor
        elif what in ("sum", "normed"):  # the later of the two stays
            states[place] = tensor
    return states


# A LayerNorm of any kind, in a model's own code, held at the spread it has on one vector.

Linear = Callable[[Tensor], Tensor]


def linearize_norm(norm: nn.Module, total: Tensor) -> tuple[Linear, Tensor] | None:
    """A norm at `total` (d_model, float64) as a linear map of vectors (..., d_model), and its bias.
    None where it is no norm of a known kind.

    LayerNorm centres and RMSNorm does not, and a gain may be stored as it is or less 1: which it is
    here is measured, since norm(x) = gain (x - centre(x)) / sigma + bias and norm(-x) has the same
    bias."""
    gain = getattr(norm, "weight", None)
    if not isinstance(gain, Tensor) or gain.shape != total.shape:
        return None
    kind = gain.dtype
    positive, negative = (norm(sign * total.to(kind)[None])[0].double() for sign in (1, -1))
    bias, linear_part = (positive + negative) / 2, (positive - negative) / 2
    for centres in (True, False):
        for gain_offset in (0.0, 1.0):
            scaled = (gain.double() + gain_offset) * _centred(total, centres)
            sigma = scaled.norm() / linear_part.norm()
            if torch.isfinite(sigma) and nearly_equal(scaled / sigma, linear_part):
                return _map(gain.double() + gain_offset, centres, sigma), bias
    return None


def _map(gain: Tensor, centres: bool, sigma: Tensor) -> Linear:
    return lambda rows: gain * _centred(rows, centres) / sigma


def _centred(rows: Tensor, centres: bool) -> Tensor:
    return rows - rows.mean(-1, keepdim=True) if centres else rows


@torch.inference_mode()
def centres(norm: nn.Module | None) -> bool:
    """True for a norm that subtracts the mean: a number added to every component changes nothing.
    Where there is none, True."""
    weight = getattr(norm, "weight", None)
    if norm is None or not isinstance(weight, Tensor):
        return True
    x = torch.linspace(-1, 2, len(weight), dtype=weight.dtype)[None]
    return nearly_equal(norm(x + 1), norm(x))


def missing(handle: HFModel) -> str:
    """Reason why no logit of a model can be decomposed, as the end of a sentence; "" where it
    can."""
    plan = handle.plan.streams[-1]
    if handle.plan.lm_head_input is None:
        return f"it {no_readout(handle)}"
    if readout_of(handle) is None:
        return (
            "between its last vector and the words stands something that is neither linear nor a "
            "dense layer, an activation that is known here and a LayerNorm"
        )
    if not plan.law and plan.norm != "pre":
        return "its code does not show what each sub-layer writes before its LayerNorm"
    return ""


@torch.inference_mode()
def attribute(
    handle: HFModel,
    recording: Recording,
    stream: str,
    token: int,
    id: int,
    against: int | None = None,
) -> Attribution:
    """The logit of a word at a token as a sum of parts, as `models.readouts.logit_lens.attribute`.

    A head has a part of its own where the projection after the heads was found; else an attention
    is one part, and so is a layer whose attention and FFN write side by side. Raises ValueError
    where the decomposition does not exist, and where the recorded parts do not add up to the
    model's last vector."""
    expect_readout(handle, stream)
    target_stream, words = recording.stream(stream), (id, *([] if against is None else [against]))
    if not 0 <= token < len(target_stream.tokens):
        raise ValueError(
            f"stream {stream} has tokens 0 to {len(target_stream.tokens) - 1}, not {token}"
        )
    if not all(0 <= word < handle.card.n_vocab for word in words):
        raise ValueError(f"the vocabulary has ids 0 to {handle.card.n_vocab - 1}")
    readout = readout_of(handle)
    if readout is None or missing(handle):
        raise ValueError(f"a logit of {handle.card.name} cannot be taken apart: {missing(handle)}")
    contributions = _contributions(handle, recording, target_stream, token)
    last = _state_at(target_stream, target_stream.sites[-1], token)
    if not nearly_equal(sum(contributions.values(), torch.zeros_like(last)), last):
        raise ValueError(
            f"what {handle.card.name} was heard to write does not add up to its last vector"
        )
    direction, offset = readout.direction(id, against)
    explained = 1.0
    if readout.transform is not None:
        linearization = readout.transform.at(last)
        explained = linearization.explained(
            last, torch.stack(list(contributions.values())), direction
        )
        contributions, last = (
            linearization.transform_parts(contributions),
            linearization.whole(last),
        )
    values = {key: float(vector @ direction) for key, vector in contributions.items()}
    values[BIAS] = values.get(BIAS, 0.0) + offset
    parts = tuple(Part(*key, value) for key, value in values.items())
    return Attribution(token, id, against, float(last @ direction) + offset, parts, explained)


def _contributions(
    handle: HFModel, recording: Recording, stream: Stream, token: int
) -> dict[PartKey, Tensor]:
    """Contribution of each part to a token's last vector, with every norm linearized."""
    plan = handle.plan.streams[-1]
    contributions: dict[PartKey, Tensor] = {}
    for site in stream.sites:
        checkpoint()
        vector = _state_at(stream, site, token)
        number, _, place = site.partition(".")
        if site == "embed" or site == "embed+pos" and not contributions:
            contributions["embedding", -1, -1, ""] = vector
        elif site == "pos.wrote":
            contributions["position", -1, -1, ""] = vector
        elif place == "ffn.wrote":
            contributions["ffn", int(number), -1, ""] = vector
        elif place.endswith(".wrote"):
            head_outputs = _head_outputs(handle, recording, (int(number), place), vector, token)
            contributions |= {
                key: contributions.get(key, 0) + part for key, part in head_outputs.items()
            }
        elif place.endswith("normed"):
            _apply_norm(_norm_at(plan, site), contributions)
        elif not plan.law and place.endswith(".sum"):
            contributions["layer", int(number), -1, ""] = vector - sum(contributions.values())
    return contributions


def _apply_norm(norm: nn.Module, contributions: dict[PartKey, Tensor]) -> None:
    """Every part through a norm that is held on their sum; its bias joins the part "bias"."""
    total = torch.stack(list(contributions.values())).sum(0)
    linearized = linearize_norm(norm, total)
    if linearized is None:
        raise ValueError(f"its {type(norm).__name__} is no LayerNorm or RMSNorm")
    linear_map, bias = linearized
    for key, vector in contributions.items():
        contributions[key] = linear_map(vector)
    contributions[BIAS] = contributions.get(BIAS, torch.zeros_like(total)) + bias


def _norm_at(plan: StreamPlan, site: str) -> nn.Module:
    ((place, _),) = dict(plan.sites)[site]
    return place.module


def _head_outputs(
    handle: HFModel, recording: Recording, site: tuple[int, str], output: Tensor, token: int
) -> dict[PartKey, Tensor]:
    """Output of each head of an attention at a token, and the projection's bias. The attention is
    one part where that does not add up to its output."""
    layer, place = site
    cross, stream = place.startswith("cross"), handle.plan.streams[-1]
    name = next(
        each.name
        for each in recording.attention
        if (each.name == "cross") is cross and each.query == stream.name
    )
    undivided = {("attn", layer, -1, name): output}
    attention = next(each for each in recording.attention if each.name == name)
    module = dict(stream.sites)[f"{layer}.{place}"][0][0].module
    weight = getattr(module, "weight", None)
    if not attention.opens or not isinstance(weight, Tensor) or weight.dim() != 2:
        return undivided
    z = torch.tensor(attention.pattern[layer, :, token, None] @ attention.v[layer])[:, 0].double()
    matrix = (weight.T if isinstance(module, nn.Linear) else weight).double()
    if tuple(matrix.shape) != (z.numel(), len(output)):
        return undivided
    slices = matrix.unflatten(0, tuple(z.shape))
    heads = {("head", layer, head, name): z[head] @ slices[head] for head in range(len(z))}
    remainder = output - sum(heads.values())
    bias = getattr(module, "bias", None)
    if not nearly_equal(output - remainder + (0 if bias is None else bias.double()), output):
        return undivided
    return {**heads, BIAS: remainder}


def _state_at(stream: Stream, site: str, token: int) -> Tensor:
    return torch.tensor(stream.at(site)[token]).double()
