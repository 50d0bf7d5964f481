"""What was written into a token's vector, step by step: by which part, and the LayerNorms between,
each held at the sigma that it had there, which makes it linear."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.attention import MultiHeadAttention
from models.edits import MeanHead, PatchHead, ZeroHead
from models.own import Handle, kept, place_of
from models.readouts.bend import BIAS, Key
from models.readouts.parameters import layers_of
from models.recording import Attention, Recording, Stream
from models.since import Norm, is_rms


@dataclass(frozen=True, eq=False)
class Still:
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
class Written:
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


def way(handle: Handle, recording: Recording, stream: str, token: int) -> list[Written | Still]:
    """Everything that a token's vector passes, in order."""
    of, model, edits = recording.stream(stream), handle.model, recording.edits
    at = {site: place for place, site in enumerate(of.sites)}
    rows = torch.from_numpy(of.resid[:, token].astype(np.float64))  # (site, d_model)
    passed: list[Written | tuple[Norm | None, int | None, str]] = [
        Written("embedding", -1, rows[at["embed"]], replaces=True)
    ]
    if "pos.wrote" in at:
        passed.append(Written("position", -1, rows[at["pos.wrote"]]))
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
                passed.append(Written("ffn", layer, wrote, replaces))
            else:
                seen = by_label[heads.label]
                z = outputs_of_heads(handle, recording, seen, layer, token)
                gone = _gone(recording, seen.name, layer)
                passed.append(Written("head", layer, wrote, replaces, heads, z, gone))
            if out.norm_at(edits) == "post":
                passed.append((out.norm, out.layer, f"{layer}.{place}.normed"))
    if "final.normed" in at:
        passed.append((model.last_norm.one(), None, "final.normed"))
    return _held(passed, at, rows, recording)


def _held(
    passed: list[Written | tuple[Norm | None, int | None, str]],
    at: dict[str, int],
    rows: Tensor,
    recording: Recording,
) -> list[Written | Still]:
    """The way with its norms, each (norm, layer, site), held at what they met: the vectors that
    stand right before them. All at once, since a way has many."""
    norms = [each for each in passed if isinstance(each, tuple)]
    if not norms:
        return [each for each in passed if isinstance(each, Written)]
    met = rows[[at[site] - 1 for *_, site in norms]]  # (norm, d_model)
    centred_spread, bare_spread = met.var(-1, unbiased=False), (met**2).mean(-1)
    stills: list[Still] = []
    for place, (norm, layer, _) in enumerate(norms):
        assert norm is not None  # the site is there, so it is
        rms = is_rms(norm, recording.edits, layer)
        spread = (bare_spread if rms else centred_spread)[place]
        gain = norm.weight.double() / (spread + norm.eps).sqrt()
        stills.append(Still(gain, not rms, None if norm.bias is None else norm.bias.double()))
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
    handle: Handle, recording: Recording, attention: Attention, layer: int, token: int
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
