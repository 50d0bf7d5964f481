"""Reading words off the residual stream: the logit lens, and a logit taken apart into what each
part of the model wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.attention import MultiHeadAttention
from models.cancellation import checkpoint
from models.capabilities import without_readout
from models.config import ACTIVATIONS
from models.edits import Edit, MeanHead, PatchHead, PatchSite, ZeroHead
from models.layers import Norm, is_rms
from models.own_model import OwnModel, kept, place_of
from models.readouts.weights import layers_of
from models.recording import Attention, Recording, Stream
from models.results import Attribution, Lens, Part

# The transform between a BERT's last vector and its words (a dense layer, an activation, a
# LayerNorm), taken as a linear map at one token, and how far that holds.

Linear = Callable[[Tensor], Tensor]
# A part of a logit: its kind, layer, head and attention, as in `Part`.
Key = tuple[str, int, int, str]
BIAS: Key = ("bias", -1, -1, "")
RESIDUAL: Key = ("transform", -1, -1, "")


@dataclass(frozen=True, eq=False)
class Linearization:
    """The transform at one token. slope: vectors (..., d_model) before it -> after it, the
    activation by its derivative there and LayerNorm by its sigma there. bias (d_model): what its
    own biases come to; rest (d_model): what the slope leaves of what it gives. whole: the transform
    itself, as it is."""

    slope: Linear
    bias: Tensor
    rest: Tensor
    whole: Linear

    def through(self, held: dict[Key, Tensor]) -> dict[Key, Tensor]:
        """What parts of the last vector come to after the transform, with what its own biases add
        and what the slope leaves."""
        slopes = self.slope(torch.stack(list(held.values())))
        bent = dict(zip(held, slopes.unbind()))
        return bent | {BIAS: bent.get(BIAS, 0) + self.bias, RESIDUAL: self.rest}

    def explained(self, last: Tensor, parts: Tensor, direction: Tensor) -> float:
        """How much of what happens the slope tells: each part (part, d_model) is taken from the
        last vector in turn and the whole transform run; 1 - sum (change - slope's)^2 / sum
        change^2 of the logit along `direction`."""
        change = (self.whole(last) - self.whole(last - parts)) @ direction
        left = change - self.slope(parts) @ direction
        total = float((change**2).sum())
        return 1.0 - float((left**2).sum()) / total if total else 1.0


def bend(handle: OwnModel, last: Tensor) -> Linearization | None:
    """The transform of a model at a last vector (d_model, float64), None where it has none."""
    dense, norm = handle.model.transform, handle.model.transform_norm
    if dense is None or norm is None:
        return None
    return linearize(dense, ACTIVATIONS[handle.model.config.activation], norm, last)


def linearize(
    dense: nn.Linear, activation: Linear, norm: nn.LayerNorm, last: Tensor
) -> Linearization:
    """norm(activation(dense(x))) at x = `last` (d_model, float64); the dense layer may give vectors
    of another width."""
    weight, gain, shift = dense.weight.double(), norm.weight.double(), norm.bias.double()
    bias = dense.bias.double() if dense.bias is not None else weight.new_zeros(len(weight))
    before = weight @ last + bias
    steep, after = _slope(activation, before), activation(before)
    sigma = (after.var(unbiased=False) + norm.eps).sqrt()

    def still(rows: Tensor) -> Tensor:
        return (rows - rows.mean(-1, keepdim=True)) / sigma * gain

    def whole(rows: Tensor) -> Tensor:
        return F.layer_norm(activation(rows @ weight.T + bias), gain.shape, gain, shift, norm.eps)

    return Linearization(
        lambda rows: still(steep * (rows @ weight.T)),
        still(steep * bias) + shift,
        still(after - steep * before),
        whole,
    )


def _slope(activation: Linear, x: Tensor) -> Tensor:
    """The derivative of an activation at every component of x."""
    with torch.inference_mode(False), torch.enable_grad():
        x = x.clone().requires_grad_()
        (found,) = torch.autograd.grad(activation(x).sum(), x)
    return found


# What was written into a token's vector, step by step: by which part, and the LayerNorms between,
# each held at the sigma that it had there, which makes it linear.


@dataclass(frozen=True, eq=False)
class LinearizedNorm:
    """A LayerNorm without its bias, whose sigma is held, or an RMSNorm at the root of its mean
    square: a linear map of vectors (..., d_model). `bias` (d_model): what it adds, None for
    nothing."""

    gain: Tensor  # over sigma, (d_model)
    centred: bool
    bias: Tensor | None

    def __call__(self, rows: Tensor) -> Tensor:
        return (rows - rows.mean(-1, keepdim=True) if self.centred else rows) * self.gain

    def back(self, direction: Tensor) -> Tensor:
        """What a vector (d_model) before it is multiplied with, where one after it is multiplied
        with `direction`: the map transposed."""
        direction = direction * self.gain
        return direction - direction.mean() if self.centred else direction


@dataclass(frozen=True, eq=False)
class StreamWrite:
    """A part, of `kind` and `layer` as in `Part`, that wrote a vector (d_model) into the stream.

    replaces: nothing is left of what was there before. z (head, d_head): what an attention's heads
    brought, of which each went through its slice of W_O; `gone`: heads that were taken out.
    """

    kind: str
    layer: int
    wrote: Tensor
    replaces: bool = False
    of: MultiHeadAttention | None = None
    z: Tensor | None = None
    gone: frozenset[int] = frozenset()

    def vectors(self) -> dict[Key, Tensor]:
        """What each part wrote. What the heads leave of `wrote` is W_O's bias, where it has one."""
        if self.of is None or self.z is None:
            return {(self.kind, self.layer, -1, ""): self.wrote}
        slices = self.of.w_o.weight.double().T.unflatten(0, self.z.shape)  # (head, d_head, d_model)
        parts = torch.einsum("hd,hdm->hm", self.z, slices)
        keys = self._heads(self.of)
        parts = parts[list(keys)]
        return {**dict(zip(keys.values(), parts.unbind())), BIAS: self.wrote - parts.sum(0)}

    def along(self, direction: Tensor) -> dict[Key, float]:
        """What each part's vector comes to, multiplied with a direction (d_model).

        W_O is the large part of the work: its product is made in 32 bits, as the model made it.
        """
        whole = float(self.wrote @ direction)
        if self.of is None or self.z is None:
            return {(self.kind, self.layer, -1, ""): whole}
        towards = (direction.float() @ self.of.w_o.weight).double().view(self.z.shape)
        values = (self.z * towards).sum(-1).tolist()
        found: dict[Key, float] = {key: values[head] for head, key in self._heads(self.of).items()}
        return {**found, BIAS: whole - sum(found.values())}

    def _heads(self, of: MultiHeadAttention) -> dict[int, Key]:
        return {
            head: ("head", self.layer, head, of.label)
            for head in range(of.n_head)
            if head not in self.gone
        }


def stream_operations(
    handle: OwnModel, recording: Recording, stream: str, token: int
) -> list[StreamWrite | LinearizedNorm]:
    """Everything that a token's vector passes, in order."""
    of, model, edits = recording.stream(stream), handle.model, recording.edits
    at = {site: place for place, site in enumerate(of.sites)}
    rows = torch.from_numpy(of.resid[:, token].astype(np.float64))  # (site, d_model)
    passed: list[StreamWrite | tuple[Norm | None, int | None, str]] = [
        StreamWrite("embedding", -1, rows[at["embed"]], replaces=True)
    ]
    if "pos.wrote" in at:
        passed.append(StreamWrite("position", -1, rows[at["pos.wrote"]]))
    if "embed.normed" in at:
        passed.append((model.embedding.norm, None, "embed.normed"))
    by_label = {attention.name: attention for attention in recording.attention}
    for layer, module in enumerate(layers_of(handle, of.name)):
        places = {"attn": (module.attention, module.attention_out)}
        if hasattr(module, "cross"):
            places["cross"] = (module.cross, module.cross_out)
        for place, (heads, out) in (places | {"ffn": (None, module.feed_forward_out)}).items():
            wrote, replaces = rows[at[f"{layer}.{place}.wrote"]], not out.adds(edits)
            if heads is None:
                passed.append(StreamWrite("ffn", layer, wrote, replaces))
            else:
                seen = by_label[heads.label]
                z = outputs_of_heads(handle, recording, seen, layer, token)
                gone = _gone(recording, seen.name, layer)
                passed.append(StreamWrite("head", layer, wrote, replaces, heads, z, gone))
            if out.norm_at(edits) == "post":
                passed.append((out.norm, out.layer, f"{layer}.{place}.normed"))
    if "final.normed" in at:
        passed.append((model.last_norm.one(), None, "final.normed"))
    return _held(passed, at, rows, recording)


def _held(
    passed: list[StreamWrite | tuple[Norm | None, int | None, str]],
    at: dict[str, int],
    rows: Tensor,
    recording: Recording,
) -> list[StreamWrite | LinearizedNorm]:
    """The way with its norms, each (norm, layer, site), held at what they met: the vectors that
    stand right before them. All at once, since a way has many."""
    norms = [each for each in passed if isinstance(each, tuple)]
    if not norms:
        return [each for each in passed if isinstance(each, StreamWrite)]
    met = rows[[at[site] - 1 for *_, site in norms]]  # (norm, d_model)
    centred_spread, bare_spread = met.var(-1, unbiased=False), (met**2).mean(-1)
    stills: list[LinearizedNorm] = []
    for place, (norm, layer, _) in enumerate(norms):
        assert norm is not None  # the site is there, so it is
        rms = is_rms(norm, recording.edits, layer)
        spread = (bare_spread if rms else centred_spread)[place]
        gain = norm.weight.double() / (spread + norm.eps).sqrt()
        stills.append(
            LinearizedNorm(gain, not rms, None if norm.bias is None else norm.bias.double())
        )
    left = iter(stills)
    return [next(left) if isinstance(each, tuple) else each for each in passed]


def _gone(recording: Recording, attention: str, layer: int) -> frozenset[int]:
    """The heads of an attention that are off, and into which nothing else was put."""
    here = [
        edit
        for edit in recording.edits
        if isinstance(edit, (ZeroHead, PatchHead))
        and (edit.attention, edit.layer) == (attention, layer)
    ]
    off = {edit.head for edit in here if isinstance(edit, ZeroHead)}
    return frozenset(off - {edit.head for edit in here if isinstance(edit, PatchHead)})


def outputs_of_heads(
    handle: OwnModel, recording: Recording, attention: Attention, layer: int, token: int
) -> Tensor:
    """z of every head at one query, (head, d_head): its pattern's row times its values, or what an
    edit put in its place."""
    row = attention.pattern[layer, :, token, None]
    z = torch.from_numpy(np.matmul(row, attention.v[layer]))[:, 0].double()
    for kind in (MeanHead, ZeroHead, PatchHead):  # the order in which the model follows them
        for edit in recording.edits:
            if not isinstance(edit, kind) or (edit.attention, edit.layer) != (
                attention.name,
                layer,
            ):
                continue
            if isinstance(edit, MeanHead):
                z[edit.head] = torch.tensor(
                    attention.pattern[layer, edit.head].mean(0) @ attention.v[layer, edit.head]
                ).double()
            elif isinstance(edit, ZeroHead):
                z[edit.head] = 0
            else:
                stream, name = place_of(handle, attention.name, layer)
                donor = kept(handle, edit.text, recording.edits, {name})[stream][name][edit.head]
                if token < len(donor):
                    z[edit.head] = donor[token].double()
    return z


def vector_at(stream: Stream, site: str, token: int) -> Tensor:
    """A token's vector at a site, (d_model), float64."""
    return torch.from_numpy(stream.at(site)[token].astype(np.float64))


NO_LENGTH = 1e-12  # a word without one is near nothing


def states(stream: Stream) -> tuple[str, ...]:
    """The sites that a readout fits: every state, after its LayerNorm where it has one."""
    return tuple(
        site
        for at, site in enumerate(stream.sites)
        if not site.endswith((".wrote", ".read"))
        and not (
            site.endswith(".sum")
            and stream.sites[at + 1 : at + 2] in ((site[:-3] + "normed",), ("final.normed",))
        )
    )


@torch.inference_mode()
def lens(handle: OwnModel, recording: Recording, stream: str, top: int = 10) -> Lens:
    """The logit lens on every state of a stream: the readout applied as if the state were the last
    one, a pre-LN model's after its last LayerNorm.

    Raises ValueError for a model without a readout.
    """
    of = recording.stream(stream)
    return lens_of(
        stream,
        states(of),
        lambda site: handle.model.logits(_last(handle, of, site, recording.edits)),
        top,
    )


def lens_of(stream: str, sites: tuple[str, ...], said: Callable[[str], Tensor], top: int) -> Lens:
    """The lens on some sites, the last of which has the final say; `said(site)` gives the scores
    there, (token, id)."""
    final = said(sites[-1])
    final_id, final_total = final.argmax(-1), final.logsumexp(-1).double()
    p = (final - final_total.float()[:, None]).exp()
    ids, logprobs, rank, own, kl = [], [], [], [], []
    for site in sites:
        # Large and in float32; what is summed over the vocabulary is summed in float64.
        checkpoint()
        here = said(site)
        total = here.logsumexp(-1).double()
        best, mine = here.topk(min(top, here.shape[-1]), dim=-1), here.gather(-1, final_id[:, None])
        ids.append(best.indices)
        logprobs.append(best.values.double() - total[:, None])
        rank.append((here > mine).sum(-1))
        own.append(mine[:, 0].double() - total)
        kl.append(
            ((p * (final - here)).sum(-1, dtype=torch.float64) - (final_total - total)).clamp(min=0)
        )
    words, words_logprobs, ranks, logprob, differs = (
        torch.stack(each).numpy() for each in (ids, logprobs, rank, own, kl)
    )
    return Lens(stream, sites, words, words_logprobs, final_id.numpy(), ranks, logprob, differs)


def _last(handle: OwnModel, stream: Stream, site: str, edits: tuple[Edit, ...]) -> Tensor:
    """A site's vectors (token, d_model) as they would stand at the stack's end."""
    x = torch.tensor(stream.at(site)).to(handle.model.embedding.token.weight.dtype)
    return (
        handle.model.last_norm.normed(x, edits)
        if "final.normed" in stream.sites and site != "final.normed"
        else x
    )


@torch.inference_mode()
def logits_at(handle: OwnModel, recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores (id) over the vocabulary at one token, float32."""
    last = torch.tensor(recording.stream(stream).resid[-1, token])
    matrix, bias = (each.detach().numpy() for each in handle.model.readout())
    # All of the matrix is read for one vector, which numpy does in half of torch's time.
    return matrix @ handle.model.before_readout(last).numpy() + bias


@torch.inference_mode()
def nearest(embeddings: Tensor, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """For vectors (row, d_model) the ids of the words whose `embeddings` (id, d_model) have the
    largest cosine with them, and the cosines: each (row, rank).

    Raises ValueError where words are not as wide as the stream.
    """
    if embeddings.shape[1] != vectors.shape[1]:
        raise ValueError(
            f"the words of this model have {embeddings.shape[1]} dimensions, its stream "
            f"{vectors.shape[1]}: they cannot be compared"
        )
    # A product over lengths, since words of length 1 would be a whole vocabulary more in memory.
    lengths = torch.linalg.vector_norm(embeddings, dim=-1).clamp_min(NO_LENGTH)
    cosines = nn.functional.normalize(torch.tensor(vectors), dim=-1) @ embeddings.T
    best = cosines.div_(lengths).topk(min(top, len(embeddings)), dim=-1)
    return best.indices.numpy(), best.values.numpy()


@torch.inference_mode()
def attribute(
    handle: OwnModel,
    recording: Recording,
    stream: str,
    token: int,
    id: int,
    against: int | None = None,
) -> Attribution:
    """The logit of a word at a token as a sum of parts (`Attribution` says how LayerNorm is held);
    with `against`, the difference of two logits.

    Raises ValueError for a token or word that is not there, and for a model without a readout.
    """
    of = recording.stream(stream)
    expect_a_sum(handle, recording, stream, (token, id, *([] if against is None else [against])))
    direction, offset = word_direction(handle, id, against)
    last, explained = vector_at(of, of.sites[-1], token), 1.0
    bent = bend(handle, last)
    if bent is None:
        values = _along(stream_operations(handle, recording, stream, token), direction)
    else:
        held = followed(handle, recording, stream, token).held
        explained = bent.explained(last, torch.stack(list(held.values())), direction)
        held, last = bent.through(held), bent.whole(last)
        values = dict(zip(held, (torch.stack(list(held.values())) @ direction).tolist()))
    values[BIAS] = values.get(BIAS, 0.0) + float(offset)
    made = tuple(Part(*key, value) for key, value in values.items())
    return Attribution(token, id, against, float(last @ direction + offset), made, explained)


def _along(passed: list[StreamWrite | LinearizedNorm], direction: Tensor) -> dict[Key, float]:
    """What each part's vector comes to at the end of a way, multiplied with a direction (d_model).
    The one direction is taken back through what is linear, where `followed` takes every part's
    vector forward."""
    found: list[dict[Key, float]] = []
    for step in reversed(passed):
        if isinstance(step, StreamWrite):
            found.append(step.along(direction))
            if step.replaces:
                break
        else:
            found.append({} if step.bias is None else {BIAS: float(step.bias @ direction)})
            direction = step.back(direction)
    values: dict[Key, float] = {}
    for each in reversed(found):
        for key, value in each.items():
            values[key] = values.get(key, 0.0) + value
    return values


@dataclass(frozen=True)
class Followed:
    """A token's last vector as a sum. held: what each part made of it, (d_model). after: what that
    which the FFN of a layer wrote goes through to the end, in order; an FFN is missing of which
    nothing arrives."""

    held: dict[Key, Tensor]
    after: dict[int, list[Linear]]

    def from_ffn(self, layer: int, rows: Tensor) -> Tensor:
        """Vectors (..., d_model) as they arrive at the readout, were they written by that FFN."""
        for still in self.after[layer]:
            rows = still(rows)
        return rows


def followed(handle: OwnModel, recording: Recording, stream: str, token: int) -> Followed:
    """Every part of a token's last vector, each through all LayerNorms that come after it, held at
    the sigma that they have there."""
    held = _Parts(recording.stream(stream).resid.shape[-1])
    after: dict[int, list[Linear]] = {}
    for step in stream_operations(handle, recording, stream, token):
        if isinstance(step, LinearizedNorm):
            held.rows = step(held.rows)
            if step.bias is not None:
                held.add({BIAS: step.bias})
            for later in after.values():
                later.append(step)
            continue
        if step.replaces:
            held.clear()
            after.clear()
        held.add(step.vectors())
        if step.kind == "ffn":
            after[step.layer] = []
    return Followed(held.named(), after)


class _Parts:
    """Vectors by what wrote them, as the rows (part, d_model) of one matrix."""

    def __init__(self, width: int) -> None:
        self._at: dict[Key, int] = {}
        self.rows = torch.zeros(0, width, dtype=torch.float64)

    def add(self, wrote: dict[Key, Tensor]) -> None:
        """What is written by those who wrote before goes to what they wrote."""
        for key in wrote.keys() & self._at.keys():
            self.rows[self._at[key]] += wrote[key]
        new = [key for key in wrote if key not in self._at]
        if new:
            self._at.update(zip(new, range(len(self._at), len(self._at) + len(new))))
            self.rows = torch.cat([self.rows, torch.stack([wrote[key] for key in new])])

    def clear(self) -> None:
        """Nothing of what was written is left."""
        self._at, self.rows = {}, self.rows[:0]

    def named(self) -> dict[Key, Tensor]:
        """Each vector, (d_model)."""
        return dict(zip(self._at, self.rows.unbind()))


def word_direction(handle: OwnModel, id: int, against: int | None = None) -> tuple[Tensor, Tensor]:
    """What a last vector is multiplied with for a word's logit, (d_model), and what is added;
    `against` another word, the difference."""
    words, bias = handle.model.readout()
    if against is None:
        return words[id].double(), bias[id].double()
    return words[id].double() - words[against].double(), bias[id].double() - bias[against].double()


def expect_a_sum(
    handle: OwnModel, recording: Recording, stream: str, asked: tuple[int, ...]
) -> None:
    """Raises ValueError, as `attribute` says. asked: a token and the ids of words."""
    token, *words = asked
    n = len(recording.stream(stream).tokens)
    if not 0 <= token < n:
        raise ValueError(f"stream {stream} has tokens 0 to {n - 1}, not {token}")
    if not all(0 <= word < handle.card.n_vocab for word in words):
        raise ValueError(f"the vocabulary has ids 0 to {handle.card.n_vocab - 1}")
    if handle.model.config.readout is None:
        raise ValueError(
            f"{handle.card.name} {without_readout(handle.model.config.head)}, so there is no logit "
            "to take apart into a sum"
        )
    first = recording.streams[0].name
    if any(
        isinstance(edit, PatchSite)
        and (edit.stream or first) == stream
        and not edit.site.endswith((".wrote", ".read"))
        for edit in recording.edits
    ):
        raise ValueError(
            "a state was put in from another text, so the logit is no sum of what this run wrote"
        )
