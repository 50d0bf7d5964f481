"""Reading words off the residual stream: the logit lens, and a logit taken apart into what each
part of the model wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.contract.cancellation import checkpoint
from models.contract.capabilities import without_readout
from models.contract.edits import (
    Edit,
    PatchHead,
    Scaling,
    SiteEdit,
    ZeroHead,
    edited,
    edits_at,
    place_of,
)
from models.contract.recording import Attention, Recording, Stream
from models.contract.results import Attribution, Lens, Part
from models.contract.spelling import there_are
from models.network.attention import MultiHeadAttention
from models.network.config import ACTIVATIONS
from models.network.layers import Norm, is_rms
from models.network.own_model import OwnModel, activations, head_output_site
from models.readouts.weights import last_norm_of, layers_of

# The transform between a BERT's last vector and its words (a dense layer, an activation, a
# LayerNorm), taken as a linear map at one token, and how far that holds.

LinearMap = Callable[[Tensor], Tensor]
# A part of a logit: its kind, layer, head and attention, as in `Part`.
PartKey = tuple[str, int, int, str]
BIAS: PartKey = ("bias", -1, -1, "")
RESIDUAL: PartKey = ("transform", -1, -1, "")


@dataclass(frozen=True, eq=False)
class Linearization:
    """The transform at one token, linearized. slope: vectors (..., d_model) before it -> after it,
    with the derivative of the activation and LayerNorm's sigma at that token. bias (d_model): the
    effect of its own biases; rest (d_model): the remainder of its output, None for none. whole: the
    exact transform."""

    slope: LinearMap
    bias: Tensor
    rest: Tensor | None
    whole: LinearMap

    def transform_parts(self, parts: dict[PartKey, Tensor]) -> dict[PartKey, Tensor]:
        """Parts of the last vector after the transform, with its biases and the linearization's
        remainder."""
        slopes = self.slope(torch.stack(list(parts.values())))
        transformed = dict(zip(parts, slopes.unbind()))
        transformed[BIAS] = transformed.get(BIAS, 0) + self.bias
        return transformed if self.rest is None else transformed | {RESIDUAL: self.rest}

    def explained(self, vector: Tensor, parts: Tensor, direction: Tensor) -> float:
        """The share (R²) of the parts' effects that the linearization explains. Each part (part,
        d_model) is removed from the last vector in turn and the whole transform run; 1 - sum
        (change - slope's)^2 / sum change^2 of the logit along `direction`."""
        change = (self.whole(vector) - self.whole(vector - parts)) @ direction
        residue = change - self.slope(parts) @ direction
        total = float((change**2).sum())
        return 1.0 - float((residue**2).sum()) / total if total else 1.0


def transform_at(model: OwnModel, vector: Tensor) -> Linearization | None:
    """The transform of a model at a last vector (d_model, float64), None where it has none."""
    dense, norm = model.network.transform, model.network.transform_norm
    if dense is None or norm is None:
        return None
    return linearize(dense, ACTIVATIONS[model.network.config.activation], norm, vector)


def linearize(
    dense: nn.Linear, activation: LinearMap, norm: nn.LayerNorm, vector: Tensor
) -> Linearization:
    """norm(activation(dense(x))) at x = `last` (d_model, float64); the dense layer may give vectors
    of another width."""
    weight, gain, shift = dense.weight.double(), norm.weight.double(), norm.bias.double()
    bias = dense.bias.double() if dense.bias is not None else weight.new_zeros(len(weight))
    preactivation = weight @ vector + bias
    slope, activated = _slope(activation, preactivation), activation(preactivation)
    sigma = (activated.var(unbiased=False) + norm.eps).sqrt()

    def normalise(rows: Tensor) -> Tensor:
        return (rows - rows.mean(-1, keepdim=True)) / sigma * gain

    def transform(rows: Tensor) -> Tensor:
        return F.layer_norm(activation(rows @ weight.T + bias), gain.shape, gain, shift, norm.eps)

    return Linearization(
        lambda rows: normalise(slope * (rows @ weight.T)),
        normalise(slope * bias) + shift,
        normalise(activated - slope * preactivation),
        transform,
    )


def pooled(dense: nn.Linear, activation: LinearMap, vector: Tensor) -> Linearization:
    """activation(dense(x)), as a classifier of texts has it, at x = `vector` (d_model, float64).

    Each component of the activation has its mean slope on the way from 0 to where it is,
    activation(a) / a, and so leaves no remainder: integrated gradients of the activation. A tanh is
    flat where it is far from 0, and its slope there would give all to the remainder."""
    weight = dense.weight.double()
    bias = dense.bias.double() if dense.bias is not None else weight.new_zeros(len(weight))
    preactivation = weight @ vector + bias
    near = preactivation.abs() < NORM_FLOOR
    slope = torch.where(
        near, _slope(activation, preactivation), activation(preactivation) / preactivation
    )
    return Linearization(
        lambda rows: slope * (rows @ weight.T),
        slope * bias,
        None,
        lambda rows: activation(rows @ weight.T + bias),
    )


def _slope(activation: LinearMap, x: Tensor) -> Tensor:
    """The derivative of an activation at every component of x."""
    with torch.inference_mode(False), torch.enable_grad():
        x = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(activation(x).sum(), x)
    return gradient


# What was written into a token's vector, step by step: by which part, and the LayerNorms between,
# each held at the sigma that it had there, which makes it linear.


@dataclass(frozen=True, eq=False)
class LinearizedNorm:
    """A LayerNorm without its bias and with fixed sigma, or an RMSNorm with fixed root mean square:
    a linear map of vectors (..., d_model). `bias` (d_model), None for none; sigma, of which `eps`
    is a part: what it divides by."""

    gain: Tensor  # over sigma, (d_model)
    centred: bool
    bias: Tensor | None
    sigma: Tensor
    eps: float

    def __call__(self, rows: Tensor) -> Tensor:
        return (rows - rows.mean(-1, keepdim=True) if self.centred else rows) * self.gain

    def back(self, direction: Tensor) -> Tensor:
        """The transposed map of a direction (d_model): from the output of the norm to its input."""
        direction = direction * self.gain
        return direction - direction.mean() if self.centred else direction

    def exact(self, vector: Tensor) -> Tensor:
        """The norm itself on another vector (d_model), with the sigma that this one has and its
        bias."""
        spread = vector.var(unbiased=False) if self.centred else (vector**2).mean()
        normed = self(vector) * self.sigma / (spread + self.eps).sqrt()
        return normed if self.bias is None else normed + self.bias


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
    ablated: frozenset[int] = frozenset()

    def vectors(self) -> dict[PartKey, Tensor]:
        """The vector of each part. The rest of `wrote` beside the heads is W_O's bias, where it has
        one."""
        if self.of is None or self.z is None:
            return {(self.kind, self.layer, -1, ""): self.wrote}
        slices = self.of.w_o.weight.double().T.unflatten(0, self.z.shape)  # (head, d_head, d_model)
        parts = torch.einsum("hd,hdm->hm", self.z, slices)
        keys = self._heads(self.of)
        parts = parts[list(keys)]
        return {**dict(zip(keys.values(), parts.unbind())), BIAS: self.wrote - parts.sum(0)}

    def along(self, direction: Tensor) -> dict[PartKey, float]:
        """The product of each part's vector with a direction (d_model).

        W_O is the large part of the work: its product is made in the bits in which the model made
        it."""
        total = float(self.wrote @ direction)
        if self.of is None or self.z is None:
            return {(self.kind, self.layer, -1, ""): total}
        head_directions = (
            (direction.to(self.of.w_o.weight) @ self.of.w_o.weight).double().view(self.z.shape)
        )
        values = (self.z * head_directions).sum(-1).tolist()
        contributions: dict[PartKey, float] = {
            key: values[head] for head, key in self._heads(self.of).items()
        }
        return {**contributions, BIAS: total - sum(contributions.values())}

    def _heads(self, module: MultiHeadAttention) -> dict[int, PartKey]:
        return {
            head: ("head", self.layer, head, module.label)
            for head in range(module.n_head)
            if head not in self.ablated
        }


def stream_operations(
    model: OwnModel, recording: Recording, stream: str, token: int
) -> list[StreamWrite | LinearizedNorm]:
    """Everything that a token's vector passes, in order."""
    residual, edits = recording.stream(stream), recording.edits
    site_index = {site: sublayer for sublayer, site in enumerate(residual.sites)}
    rows = torch.tensor(residual.resid[:, token].astype(np.float64))  # (site, d_model)
    entrance = site_index.get("embed", 0)  # the sum alone where words are narrower than the stream
    operations: list[StreamWrite | tuple[Norm | None, int | None, str]] = [
        StreamWrite("embedding", -1, rows[entrance], replaces=True)
    ]
    if "pos.wrote" in site_index:
        operations.append(StreamWrite("position", -1, rows[site_index["pos.wrote"]]))
    if "embed.normed" in site_index:
        operations.append((model.network.embedding.norm, None, "embed.normed"))
    by_label = {attention.name: attention for attention in recording.attention}
    for layer, module in enumerate(layers_of(model, residual.name)):
        places = {"attn": (module.attention, module.attention_out)}
        if hasattr(module, "cross"):
            places["cross"] = (module.cross, module.cross_out)
        for sublayer, (head_module, add_and_norm) in (
            places | {"ffn": (None, module.feed_forward_out)}
        ).items():
            output, replaces = (
                rows[site_index[f"{layer}.{sublayer}.wrote"]],
                not add_and_norm.adds(edits),
            )
            if head_module is None:
                operations.append(StreamWrite("ffn", layer, output, replaces))
            else:
                recorded = by_label[head_module.label]
                z = head_outputs(model, recording, recorded, layer, token)
                ablated = _ablated_heads(recording, recorded.name, layer)
                operations.append(
                    StreamWrite("head", layer, output, replaces, head_module, z, ablated)
                )
            if add_and_norm.norm_at(edits) == "post":
                operations.append(
                    (add_and_norm.norm, add_and_norm.layer, f"{layer}.{sublayer}.normed")
                )
    if "final.normed" in site_index:
        operations.append((last_norm_of(model, stream).one(), None, "final.normed"))
    return linearized(operations, site_index, rows, recording)


def linearized(
    operations: list[StreamWrite | tuple[Norm | None, int | None, str]],
    site_index: dict[str, int],
    rows: Tensor,
    recording: Recording,
) -> list[StreamWrite | LinearizedNorm]:
    """The operations with their norms, each (norm, layer, site), linearized at their input vectors.
    All at once, since there are many."""
    norms = [each for each in operations if isinstance(each, tuple)]
    if not norms:
        return [each for each in operations if isinstance(each, StreamWrite)]
    inputs = rows[[site_index[site] - 1 for *_, site in norms]]  # (norm, d_model)
    centred_spread, bare_spread = inputs.var(-1, unbiased=False), (inputs**2).mean(-1)
    linear_norms: list[LinearizedNorm] = []
    for number, (norm, layer, _) in enumerate(norms):
        assert norm is not None  # the site is there, so it is
        rms = is_rms(norm, recording.edits, layer)
        spread = (bare_spread if rms else centred_spread)[number]
        sigma = (spread + norm.eps).sqrt()
        bias = None if norm.bias is None else norm.bias.double()
        linear_norms.append(
            LinearizedNorm(norm.weight.double() / sigma, not rms, bias, sigma, norm.eps)
        )
    remaining = iter(linear_norms)
    return [next(remaining) if isinstance(each, tuple) else each for each in operations]


def _ablated_heads(recording: Recording, attention: str, layer: int) -> frozenset[int]:
    """The heads of an attention that are off, and into which nothing else was put."""
    ablated: set[int] = set()
    for edit in edits_at(recording.edits, place_of(attention, layer, "z")):
        if isinstance(edit, ZeroHead):
            ablated.add(edit.head)
        elif not isinstance(edit, Scaling):
            ablated.discard(edit.head)
    return frozenset(ablated)


def head_outputs(
    model: OwnModel, recording: Recording, attention: Attention, layer: int, token: int
) -> Tensor:
    """z of every head at one query, (head, d_head): its pattern's row times its values, or what an
    edit put in its place."""
    place = place_of(attention.name, layer, "z")
    found = edits_at(recording.edits, place)
    rows = slice(None) if found else slice(token, token + 1)
    z = torch.tensor(np.matmul(attention.pattern[layer, :, rows], attention.v[layer])).double()
    z = edited(z, found, place)[:, token if found else 0]
    for edit in found:
        if isinstance(edit, PatchHead):
            stream, name = head_output_site(model, attention.name, layer)
            donor = activations(model, edit.text, recording.edits, {name})[stream][name][edit.head]
            if token < len(donor):
                z[edit.head] = donor[token].double()
    return z


def vector_at(stream: Stream, site: str, token: int) -> Tensor:
    """A token's vector at a site, (d_model), float64."""
    return torch.tensor(stream.at(site)[token].astype(np.float64))


NORM_FLOOR = 1e-12  # a word without one is near nothing


def states(stream: Stream, only: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The sites that a readout fits: every state, after its LayerNorm where it has one; some of
    them and the last where `only` names them. Raises ValueError for a name that is none of them."""
    there = tuple(
        site
        for at, site in enumerate(stream.sites)
        if not site.endswith((".wrote", ".read"))
        and not (
            site.endswith(".sum")
            and stream.sites[at + 1 : at + 2] in ((site[:-3] + "normed",), ("final.normed",))
        )
    )
    if only is None:
        return there
    if missing := [site for site in only if site not in there]:
        near = there_are(missing[0], there)
        raise ValueError(f"the readout fits no site {missing[0]!r} of stream {stream.name}; {near}")
    return tuple(site for site in there if site in only or site == there[-1])


@torch.inference_mode()
def lens(
    model: OwnModel,
    recording: Recording,
    stream: str,
    top: int = 10,
    token: int | None = None,
    sites: tuple[str, ...] | None = None,
    ids: tuple[int, ...] = (),
) -> Lens:
    """The logit lens on every state of a stream, of one token alone where it is given, and of some
    sites and the last where these are: the readout applied as if the state were the last one, a
    pre-LN model's after its last LayerNorm. ids: as `Lens.ids`.

    Raises ValueError for a model without a readout, and for a site that it does not fit.
    """
    residual = recording.stream(stream).only(token)
    return lens_of(
        stream,
        states(residual, sites),
        (len(residual.tokens), model.card.n_vocab),
        lambda site, rows: _final_vectors(model, residual, site, rows, recording.edits),
        model.network.logits,
        top,
        ids,
    )


BLOCK = 2048  # words that are compared with vectors at once
AT_ONCE = 64  # rows of scores: the vocabulary is read once for all of them


def lens_of(
    stream: str,
    sites: tuple[str, ...],
    shape: tuple[int, int],
    vectors_at: Callable[[str, slice], Tensor],
    logits_of: Callable[[Tensor], Tensor],
    top: int,
    ids: tuple[int, ...] = (),
) -> Lens:
    """The lens on some sites, the last of which has the final say. shape: the numbers of tokens and
    of words; vectors_at: the vectors of some tokens at a site as they would stand at the end,
    (token, d_model); logits_of: their scores, (token, id), of which at most AT_ONCE rows are there
    at a time, however long the text is, or of one token all where `ids` are asked for, as
    `Lens.ids`."""
    n_tokens, n_vocab = shape
    cells = len(sites), n_tokens
    found = Lens(
        stream,
        sites,
        np.empty((*cells, min(top, n_vocab)), np.int64),
        np.empty((*cells, min(top, n_vocab))),
        np.empty(n_tokens, np.int64),
        np.empty(cells, np.int64),
        np.empty(cells),
        np.empty(cells),
    )
    kept: list[Tensor] | None = [] if ids else None
    for start in range(0, n_tokens, AT_ONCE):
        rows = slice(start, min(start + AT_ONCE, n_tokens))
        _fill_rows_of_lens(found, rows, vectors_at, logits_of, kept)
    if kept is None:
        return found
    ids = tuple(dict.fromkeys((*ids, *found.top_ids[:, 0, 0].tolist())))
    scores = kept[0] if len(kept) == 1 else torch.cat(kept[::-1])
    is_above = np.empty(scores.shape, bool)
    ranks = [_n_above(scores, scores[:, id, None], is_above) for id in ids]
    return replace(found, ids=ids, ranks=np.array(ranks, np.int64).T)


def _fill_rows_of_lens(
    found: Lens,
    rows: slice,
    vectors_at: Callable[[str, slice], Tensor],
    logits_of: Callable[[Tensor], Tensor],
    kept: list[Tensor] | None,
) -> None:
    """Fill in the cells of a few tokens. What is as large as their scores is made once and written
    over, so that memory is not asked for anew at each site. kept: gets the scores, last sites
    first."""
    sites, n_tokens, top = found.sites, rows.stop - rows.start, found.top_ids.shape[-1]
    final = final_id = final_total = p = change = torch.zeros(0)
    is_above = np.zeros(0, bool)
    n = max(1, AT_ONCE // n_tokens)
    for end in range(len(sites), 0, -n):  # the last first, which the others are compared with
        checkpoint()
        places = range(max(0, end - n), end)
        scores = logits_of(torch.cat([vectors_at(sites[at], rows) for at in places]))
        if kept is not None:
            kept.append(scores)
        if end == len(sites):
            final = scores[-n_tokens:].clone()
            final_id, final_total = final.argmax(-1), final.logsumexp(-1).double()
            p = (final - final_total.float()[:, None]).exp_()
            change, is_above = torch.empty_like(final), np.empty(final.shape, bool)
            found.final_id[rows] = final_id.numpy()
        for at, logits in zip(places, scores.split(n_tokens)):
            # Large and in float32; what is summed over the vocabulary is summed in float64.
            total = logits.logsumexp(-1).double()
            values, best = _likeliest(logits, top)
            final_logits = logits.gather(-1, final_id[:, None])
            torch.sub(final, logits, out=change).mul_(p)
            kl = change.sum(-1, dtype=torch.float64) - (final_total - total)
            found.top_ids[at, rows] = best.numpy()
            found.top_logprobs[at, rows] = (values.double() - total[:, None]).numpy()
            found.rank[at, rows] = _n_above(logits, final_logits, is_above)
            found.logprob[at, rows] = (final_logits[:, 0].double() - total).numpy()
            found.kl[at, rows] = kl.clamp_(min=0).numpy()


def _n_above(scores: Tensor, score: Tensor, room: np.ndarray) -> list[int]:
    """The number of scores (token, id) that are larger than one (token, 1), by token. room (token,
    id) bool: written over; numpy counts in it some ten times faster than torch."""
    np.greater(scores.numpy(), score.numpy(), out=room)
    return [int(np.count_nonzero(row)) for row in room]


def _likeliest(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """The largest scores (token, id) of each row, and their ids: each (token, rank)."""
    if top == 1:  # some ten times faster than a search for several, in numpy once more
        best = torch.from_numpy(scores.numpy().argmax(-1))[..., None]
        return scores.gather(-1, best), best
    return scores.topk(top, dim=-1)


def _final_vectors(
    model: OwnModel, stream: Stream, site: str, rows: slice, edits: tuple[Edit, ...]
) -> Tensor:
    """The vectors of some tokens at a site, (token, d_model), as they would stand at the stack's
    end."""
    x = torch.tensor(stream.at(site)[rows]).to(model.network.embedding.token.weight.dtype)
    return (
        model.network.last_norm.normed(x, edits)
        if "final.normed" in stream.sites and site != "final.normed"
        else x
    )


@torch.inference_mode()
def logits_at(model: OwnModel, recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores (id) over the vocabulary at one token, float32."""
    vector = torch.tensor(recording.stream(stream).resid[-1, token])
    matrix, bias = (each.detach().numpy() for each in model.network.readout())
    # All of the matrix is read for one vector, which numpy does in half of torch's time.
    return matrix @ model.network.before_readout(vector).numpy() + bias


def expect_same_width(words: int, stream: int) -> None:
    """Raises ValueError where words are not as wide as the stream."""
    if words != stream:
        raise ValueError(
            f"The words of this model have {words} dimensions and its stream has {stream}, so they "
            "cannot be compared."
        )


@torch.inference_mode()
def nearest(
    embeddings: Tensor, lengths: Tensor, vectors: np.ndarray, top: int
) -> tuple[np.ndarray, np.ndarray]:
    """For vectors (row, d_model) the ids of the words whose `embeddings` (id, d_model) have the
    largest cosine with them, and the cosines: each (row, rank). lengths (id): of the embeddings,
    for which all of them are read.

    Raises ValueError where words are not as wide as the stream.
    """
    expect_same_width(embeddings.shape[1], vectors.shape[1])
    # A product over lengths, since words of length 1 would be a whole vocabulary more in memory.
    unit = nn.functional.normalize(torch.tensor(vectors).to(embeddings.dtype), dim=-1)
    # A block of words stays near the processor for all vectors, and of each only its best are kept.
    blocks = zip(embeddings.split(BLOCK), lengths.clamp_min(NORM_FLOOR).split(BLOCK))
    found = [
        (words @ unit.T).T.div_(long).topk(min(top, len(words)), dim=-1) for words, long in blocks
    ]
    best = torch.cat([each.values for each in found], dim=-1).topk(
        min(top, len(embeddings)), dim=-1
    )
    ids = torch.cat([each.indices + BLOCK * at for at, each in enumerate(found)], dim=-1)
    return ids.gather(-1, best.indices).numpy(), best.values.numpy()


@torch.inference_mode()
def attribute(
    model: OwnModel,
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
    residual = recording.stream(stream)
    expect_linear(model, recording, stream, (token, id, *([] if against is None else [against])))
    direction, offset = word_direction(model, id, against)
    vector, explained = vector_at(residual, residual.sites[-1], token), 1.0
    linearization = transform_at(model, vector)
    if linearization is None:
        values = _project_back(stream_operations(model, recording, stream, token), direction)
    else:
        parts = trace_parts(model, recording, stream, token)
        explained = linearization.explained(vector, torch.stack(list(parts.values())), direction)
        parts, vector = linearization.transform_parts(parts), linearization.whole(vector)
        values = dict(zip(parts, (torch.stack(list(parts.values())) @ direction).tolist()))
    values[BIAS] = values.get(BIAS, 0.0) + float(offset)
    contributions = tuple(Part(*key, value) for key, value in values.items())
    return Attribution(
        token, id, against, float(vector @ direction + offset), contributions, explained
    )


@torch.inference_mode()
def head_sources(
    model: OwnModel,
    recording: Recording,
    stream: str,
    token: int,
    id: int,
    against: int | None = None,
) -> dict[str, np.ndarray]:
    """Contribution of each head of a stream's attentions to a word's logit at a token from each
    key, by the attention's name, (layer, head, key): weight times value, through the head's slice
    of W_O and all norms after it, held as in `attribute`. The sum over the keys is the head's part
    there; NaN for a head whose output an edit took from elsewhere, 0 for one that was taken out or
    whose part does not arrive.

    Raises ValueError as `attribute` does.
    """
    expect_linear(model, recording, stream, (token, id, *([] if against is None else [against])))
    direction, _ = word_direction(model, id, against)
    residual = recording.stream(stream)
    linearization = transform_at(model, vector_at(residual, residual.sites[-1], token))
    if linearization is not None:
        basis = torch.eye(model.card.d_model, dtype=torch.float64)
        direction = linearization.slope(basis) @ direction
    by_label = {each.name: each for each in recording.attention if each.query == stream}
    sources = {name: np.zeros(each.pattern[:, :, 0].shape) for name, each in by_label.items()}
    for step in reversed(stream_operations(model, recording, stream, token)):
        if isinstance(step, LinearizedNorm):
            direction = step.back(direction)
            continue
        if step.of is not None and step.z is not None:
            of = by_label[step.of.label]
            along = (direction.float() @ step.of.w_o.weight).double().view(step.z.shape).numpy()
            weights = of.pattern[step.layer, :, token].astype(np.float64)  # (head, key)
            values = np.asarray(of.v[step.layer], np.float64)  # (head, key, d_head)
            brought = np.einsum("hk,hkd->hd", weights, values)
            is_own = np.isclose(brought, step.z.numpy(), atol=1e-4).all(-1, keepdims=True)
            parts = weights * np.einsum("hkd,hd->hk", values, along)
            sources[of.name][step.layer] = np.where(is_own, parts, np.nan)
            sources[of.name][step.layer, list(step.ablated)] = 0.0
        if step.replaces:
            break
    return sources


def _project_back(
    operations: list[StreamWrite | LinearizedNorm], direction: Tensor
) -> dict[PartKey, float]:
    """The product of each part's vector, after all operations, with a direction (d_model). The one
    direction is taken back through the linear operations, where `followed` takes every part's
    vector forward."""
    steps: list[dict[PartKey, float]] = []
    for step in reversed(operations):
        if isinstance(step, StreamWrite):
            steps.append(step.along(direction))
            if step.replaces:
                break
        else:
            steps.append({} if step.bias is None else {BIAS: float(step.bias @ direction)})
            direction = step.back(direction)
    values: dict[PartKey, float] = {}
    for contributions in reversed(steps):
        for key, value in contributions.items():
            values[key] = values.get(key, 0.0) + value
    return values


def norms_after_ffn(
    operations: list[StreamWrite | LinearizedNorm], layer: int
) -> list[LinearizedNorm]:
    """The LayerNorms from the output of a layer's FFN to the end, in order. Raises ValueError where
    that output does not arrive."""
    norms: list[LinearizedNorm] = []
    for step in reversed(operations):
        if isinstance(step, LinearizedNorm):
            norms.insert(0, step)
        elif (step.kind, step.layer) == ("ffn", layer):
            return norms
        elif step.replaces:
            break
    raise ValueError(
        f"nothing that the FFN of layer {layer} wrote reaches the readout: a later layer "
        "replaces the stream"
    )


def trace_parts(
    model: OwnModel, recording: Recording, stream: str, token: int
) -> dict[PartKey, Tensor]:
    """Every part (d_model) of a token's last vector, each through all LayerNorms that come after
    it, held at the sigma that they have there."""
    return traced(stream_operations(model, recording, stream, token), model.card.d_model)


def traced(operations: list[StreamWrite | LinearizedNorm], width: int) -> dict[PartKey, Tensor]:
    """The same of the vector, as wide as `width`, that some operations in order leave."""
    parts = _Parts(width)
    for step in operations:
        if isinstance(step, LinearizedNorm):
            parts.rows = step(parts.rows)
            if step.bias is not None:
                parts.add({BIAS: step.bias})
            continue
        if step.replaces:
            parts.clear()
        parts.add(step.vectors())
    return parts.named()


class _Parts:
    """Vectors by what wrote them, as the rows (part, d_model) of one matrix."""

    def __init__(self, width: int) -> None:
        self._at: dict[PartKey, int] = {}
        self.rows = torch.zeros(0, width, dtype=torch.float64)

    def add(self, vectors: dict[PartKey, Tensor]) -> None:
        """Add vectors: to the part's row where it has one, else as a new row."""
        for key in vectors.keys() & self._at.keys():
            self.rows[self._at[key]] += vectors[key]
        new_keys = [key for key in vectors if key not in self._at]
        if new_keys:
            self._at.update(zip(new_keys, range(len(self._at), len(self._at) + len(new_keys))))
            self.rows = torch.cat([self.rows, torch.stack([vectors[key] for key in new_keys])])

    def clear(self) -> None:
        """Remove all parts."""
        self._at, self.rows = {}, self.rows[:0]

    def named(self) -> dict[PartKey, Tensor]:
        """Each vector, (d_model)."""
        return dict(zip(self._at, self.rows.unbind()))


def word_direction(model: OwnModel, id: int, against: int | None = None) -> tuple[Tensor, Tensor]:
    """The direction (width) and the bias of a word's logit; of the difference with `against`."""
    words, bias = model.network.readout()
    if against is None:
        return words[id].double(), bias[id].double()
    return words[id].double() - words[against].double(), bias[id].double() - bias[against].double()


def expect_linear(
    model: OwnModel, recording: Recording, stream: str, indices: tuple[int, ...]
) -> None:
    """Raises ValueError, as `attribute` says. indices: a token and the ids of words."""
    token, *words = indices
    n = len(recording.stream(stream).tokens)
    if not 0 <= token < n:
        raise ValueError(f"stream {stream} has tokens 0 to {n - 1}, not {token}")
    if not all(0 <= word < model.card.n_vocab for word in words):
        raise ValueError(f"the vocabulary has ids 0 to {model.card.n_vocab - 1}")
    if model.network.config.readout is None:
        raise ValueError(
            f"{model.card.name} {without_readout(model.network.config.head)}, so there is no logit "
            "to take apart into a sum"
        )
    first_stream = recording.streams[0].name
    if any(
        isinstance(edit, SiteEdit)
        and (edit.stream or first_stream) == stream
        and not edit.site.endswith((".wrote", ".read"))
        for edit in recording.edits
    ):
        raise ValueError(
            "a state was put in by an edit, so the logit is no sum of what this run wrote"
        )
