"""Reading words off the residual stream: the logit lens, and a logit taken apart into what each
part of the model wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from models.edits import Edit, PatchSite
from models.offers import without_readout
from models.own import Handle
from models.prediction import Attribution, Lens, Part
from models.readouts.bend import BIAS, Key, Linear, bend
from models.readouts.written import Still, Written, vector_at, way
from models.recording import Recording, Stream
from models.slices import breath

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
    x = torch.tensor(stream.at(site)).to(handle.model.embedding.token.weight.dtype)
    return (
        handle.model.last_norm.normed(x, edits)
        if "final.normed" in stream.sites and site != "final.normed"
        else x
    )


@torch.inference_mode()
def logits_at(handle: Handle, recording: Recording, stream: str, token: int) -> np.ndarray:
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
    direction, offset = word_direction(handle, id, against)
    last, explained = vector_at(of, of.sites[-1], token), 1.0
    bent = bend(handle, last)
    if bent is None:
        values = _along(way(handle, recording, stream, token), direction)
    else:
        held = followed(handle, recording, stream, token).held
        explained = bent.explained(last, torch.stack(list(held.values())), direction)
        held, last = bent.through(held), bent.whole(last)
        values = dict(zip(held, (torch.stack(list(held.values())) @ direction).tolist()))
    values[BIAS] = values.get(BIAS, 0.0) + float(offset)
    made = tuple(Part(*key, value) for key, value in values.items())
    return Attribution(token, id, against, float(last @ direction + offset), made, explained)


def _along(passed: list[Written | Still], direction: Tensor) -> dict[Key, float]:
    """What each part's vector comes to at the end of a way, multiplied with a direction (d_model).
    The one direction is taken back through what is linear, where `followed` takes every part's
    vector forward."""
    found: list[dict[Key, float]] = []
    for step in reversed(passed):
        if isinstance(step, Written):
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


def followed(handle: Handle, recording: Recording, stream: str, token: int) -> Followed:
    """Every part of a token's last vector, each through all LayerNorms that come after it, held at
    the sigma that they have there."""
    held = _Parts(recording.stream(stream).resid.shape[-1])
    after: dict[int, list[Linear]] = {}
    for step in way(handle, recording, stream, token):
        if isinstance(step, Still):
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


def word_direction(handle: Handle, id: int, against: int | None = None) -> tuple[Tensor, Tensor]:
    """What a last vector is multiplied with for a word's logit, (d_model), and what is added;
    `against` another word, the difference."""
    words, bias = handle.model.readout()
    if against is None:
        return words[id].double(), bias[id].double()
    return words[id].double() - words[against].double(), bias[id].double() - bias[against].double()


def expect_a_sum(handle: Handle, recording: Recording, stream: str, asked: tuple[int, ...]) -> None:
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
