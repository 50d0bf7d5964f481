"""Reading words off the residual stream: the logit lens, and a logit taken apart into what each
part of the model wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from models.edits import Edit, MeanHead, PatchHead, PatchSite, ZeroHead
from models.own import Handle, kept, place_of
from models.prediction import Attribution, Lens, Part
from models.readouts.bend import BIAS, Key, Linear, bend
from models.readouts.parameters import layers_of
from models.recording import Attention, Recording, Stream
from models.since import Norm, is_rms
from models.slices import breath
from models.transformer import AddAndNorm

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
def lens(handle: Handle, recording: Recording, stream: str, top: int = 10) -> Lens:
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
        breath()
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


def _last(handle: Handle, stream: Stream, site: str, edits: tuple[Edit, ...]) -> Tensor:
    """A site's vectors (token, d_model) as they would stand at the stack's end."""
    x = torch.tensor(stream.at(site))
    return (
        handle.model.last_norm.normed(x, edits)
        if "final.normed" in stream.sites and site != "final.normed"
        else x
    )


@torch.inference_mode()
def logits_at(handle: Handle, recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores (id) over the vocabulary at one token, float32."""
    return handle.model.logits(torch.tensor(recording.stream(stream).resid[-1, token])).numpy()


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
    handle: Handle,
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
    held = followed(handle, recording, stream, token).held
    direction, offset = word_direction(handle, id, against)
    last, explained = _vector(of, of.sites[-1], token), 1.0
    bent = bend(handle, last)
    if bent is not None:
        explained = bent.explained(last, torch.stack(list(held.values())), direction)
        held, last = bent.through(held), bent.whole(last)
    values = dict(zip(held, (torch.stack(list(held.values())) @ direction).tolist()))
    values[BIAS] = values.get(BIAS, 0.0) + float(offset)
    made = tuple(Part(*key, value) for key, value in values.items())
    return Attribution(token, id, against, float(last @ direction + offset), made, explained)


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


def followed(handle: Handle, recording: Recording, stream: str, token: int) -> Followed:
    """Every part of a token's last vector, each through all LayerNorms that come after it, held at
    the sigma that they have there."""
    of, model, edits = recording.stream(stream), handle.model, recording.edits
    held = _Parts(("embedding", -1, -1, ""), _vector(of, "embed", token))
    after: dict[int, list[Linear]] = {}

    def through(norm: Norm | None, at: int | None = None) -> None:
        assert norm is not None  # the site is there, so it is
        still = held_still(norm, held.rows.sum(0), is_rms(norm, edits, at))
        held.rows = still(held.rows)
        if norm.bias is not None:
            held.add({BIAS: norm.bias.double()})
        for way in after.values():
            way.append(still)

    if "pos.wrote" in of.sites:
        held.add({("position", -1, -1, ""): _vector(of, "pos.wrote", token)})
    if "embed.normed" in of.sites:
        through(model.embedding.norm)
    for wrote, out in _sublayers(handle, recording, of, token):
        if not out.adds(edits):
            held.clear()
            after.clear()
        held.add(wrote)
        after.update((layer, []) for kind, layer, *_ in wrote if kind == "ffn")
        if out.norm_at(edits) == "post":
            through(out.norm, out.layer)
    if "final.normed" in of.sites:
        through(model.last_norm.one())
    return Followed(held.named(), after)


class _Parts:
    """Vectors by what wrote them, as the rows (part, d_model) of one matrix."""

    def __init__(self, key: Key, vector: Tensor) -> None:
        self._at = {key: 0}
        self.rows = vector[None]

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


def word_direction(handle: Handle, id: int, against: int | None = None) -> tuple[Tensor, Tensor]:
    """What a last vector is multiplied with for a word's logit, (d_model), and what is added;
    `against` another word, the difference."""
    words, kept_bias = handle.model.readout_matrix, handle.model.readout_bias
    assert kept_bias is not None  # there is a readout
    bias = kept_bias.double()
    if against is None:
        return words[id].double(), bias[id]
    return words[id].double() - words[against].double(), bias[id] - bias[against]


def expect_a_sum(handle: Handle, recording: Recording, stream: str, asked: tuple[int, ...]) -> None:
    """Raises ValueError, as `attribute` says. asked: a token and the ids of words."""
    token, *words = asked
    n = len(recording.stream(stream).tokens)
    if not 0 <= token < n:
        raise ValueError(f"stream {stream} has tokens 0 to {n - 1}, not {token}")
    if not all(0 <= word < handle.card.n_vocab for word in words):
        raise ValueError(f"the vocabulary has ids 0 to {handle.card.n_vocab - 1}")
    if handle.model.config.readout is None:
        raise ValueError(f"{handle.card.name} has no readout that could be taken apart into a sum")
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


def _vector(stream: Stream, site: str, token: int) -> Tensor:
    return torch.tensor(stream.at(site)[token]).double()


def _sublayers(
    handle: Handle, recording: Recording, stream: Stream, token: int
) -> Iterator[tuple[dict, AddAndNorm]]:
    """In order: what was written by whom, and how it joins the stream."""
    by_label = {attention.name: attention for attention in recording.attention}
    for at, layer in enumerate(layers_of(handle, stream.name)):
        places = [("attn", layer.attention, layer.attention_out)]
        if hasattr(layer, "cross"):
            places.append(("cross", layer.cross, layer.cross_out))
        for place, module, out in places:
            yield (
                _heads(
                    handle,
                    by_label[module.label],
                    at,
                    token,
                    module.w_o,
                    _vector(stream, f"{at}.{place}.wrote", token),
                    recording,
                ),
                out,
            )
        yield (
            {("ffn", at, -1, ""): _vector(stream, f"{at}.ffn.wrote", token)},
            layer.feed_forward_out,
        )


def _heads(
    handle: Handle,
    attention: Attention,
    layer: int,
    token: int,
    w_o: nn.Linear,
    wrote: Tensor,
    recording: Recording,
) -> dict:
    """What each head wrote: its z through its slice of W_O. What is left of `wrote` is W_O's
    bias, where it has one."""
    z = outputs_of_heads(handle, recording, attention, layer, token)
    slices = w_o.weight.double().T.unflatten(0, z.shape)  # (head, d_head, d_model)
    here = [
        edit
        for edit in recording.edits
        if isinstance(edit, (ZeroHead, PatchHead))
        and (edit.attention, edit.layer) == (attention.name, layer)
    ]
    gone = {edit.head for edit in here if isinstance(edit, ZeroHead)} - {
        edit.head for edit in here if isinstance(edit, PatchHead)
    }
    heads = [head for head in range(len(z)) if head not in gone]
    parts = torch.einsum("hd,hdm->hm", z, slices)[heads]
    keys = (("head", layer, head, attention.name) for head in heads)
    return {**dict(zip(keys, parts.unbind())), BIAS: wrote - parts.sum(0)}


def outputs_of_heads(
    handle: Handle, recording: Recording, attention: Attention, layer: int, token: int
) -> Tensor:
    """z of every head at one query, (head, d_head): its pattern's row times its values, or what an
    edit put in its place."""
    z = torch.tensor(attention.pattern[layer, :, token, None] @ attention.v[layer])[:, 0].double()
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


def held_still(norm: Norm, total: Tensor, rms: bool) -> Linear:
    """A LayerNorm without its bias, whose sigma is what it is on `total` (d_model), or an RMSNorm
    (`rms`), held at the root of its mean square: a linear map of vectors (..., d_model)."""
    spread = (total**2).mean() if rms else total.var(unbiased=False)
    gain = norm.weight.double() / (spread + norm.eps).sqrt()
    return lambda rows: (rows if rms else rows - rows.mean(-1, keepdim=True)) * gain
