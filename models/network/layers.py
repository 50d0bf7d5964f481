"""Layers of today's models that differ from the paper's.

    RMSNorm           x / rms(x) in LayerNorm's place: no mean is subtracted (Zhang, Sennrich 2019)
    rotary positions  q and k are turned by their place; nothing is added (Su et al. 2021)
    shared keys       several heads read one head's keys and values (Ainslie et al. 2023)
    gated FFN         an activated gate multiplies each unit (Shazeer 2020)
    a window          a token attends to the last so many tokens alone (Child et al. 2019)
    stretched angles  rotary angles made slower, for texts longer than those of training: all of
                      them (Chen et al. 2023), or the slow ones alone (Llama 3.1)

Differences of a line or two are in the file that has that part:

    side by side      attention and FFN read the same state (Wang, Komatsuzaki 2021): `Layer` in
                      models/network/transformer.py
    untied readout    words are read by a matrix of their own, not by the embedding: `Model` there
    norm of q and k   both pass an RMSNorm before their product (Henry et al. 2020; Qwen3):
                      models/network/attention.py
    narrow embeddings one matrix makes them as wide as the stream (Lan et al. 2020, ALBERT):
                      models/network/embedding.py
    shared layers     every layer has the weights of the first (Lan et al. 2020): `stack` in
                      models/network/transformer.py
    no biases         matrices without them (Chowdhery et al. 2022): wherever one is made

Axes as in models/network/transformer.py. A model's `Config` says which of these it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import pi

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.contract.edits import (
    CutPath,
    Edit,
    OtherNorm,
    PatchPath,
    PathEdit,
    SharedKeys,
    SiteEdit,
    edited,
    last_edit,
)
from models.network.config import ACTIVATIONS, Config
from models.network.linear import Linear

# The named places of a forward pass: what listens there, and what an edit puts there.

Tape = Callable[[str, Tensor], None]


def no_tape(name: str, tensor: Tensor) -> None:
    """The tape that records nothing."""


def output_buffer(
    tape: Tape, name: str, shape: tuple[int, ...], device: torch.device
) -> Tensor | None:
    """The buffer that a tape provides for a tensor, where it has a method `room` and the
    tensor is made in the processor's memory: scores and patterns are then written once and not
    copied."""
    allocate = getattr(tape, "room", None)
    return None if allocate is None or device.type != "cpu" else allocate(name, shape)


@dataclass(frozen=True, eq=False)
class Patch(Edit):
    """Vectors of another run, put in at a named place: what a PatchHead or PatchSite becomes when a
    pass begins.

    values (token, width), or (row, token, width) for the rows of a batch, replace as many tokens as
    there are; `head`: of that head alone; `token`: at that place alone.
    """

    borrows = True
    name: str
    values: Tensor
    head: int | None = None
    token: int | None = None

    @property
    def of_head(self) -> int | None:
        return self.head

    @property
    def place(self) -> str:
        return self.name

    def on(self, x: Tensor, allowed: Tensor | None = None) -> None:
        n = min(x.shape[-2], self.values.shape[-2])
        at = slice(n) if self.token is None else slice(min(self.token, n), min(self.token + 1, n))
        x[..., at, :] = self.values[..., at, :]


@dataclass(frozen=True, eq=False)
class Patches(Edit):
    """Vectors of another run at one place, each in a row of a batch: one for each row."""

    borrows = True
    name: str
    patches: tuple[Patch, ...]

    @property
    def place(self) -> str:
        return self.name

    def on(self, x: Tensor, allowed: Tensor | None = None) -> None:
        for row, patch in zip(x, self.patches):
            patch.on(row if patch.head is None else row[patch.head])


@dataclass(frozen=True, eq=False)
class SitePatches(Patches, SiteEdit):
    """The same of a site of a stream."""

    stream: str
    token: None = None

    @property
    def site(self) -> str:  # type: ignore[override]
        return self.name


@dataclass(frozen=True, eq=False)
class LentPath(Edit):
    """A PatchPath when a pass begins: with the head's output z in the other text's run, (token,
    d_head)."""

    borrows = True
    path: PatchPath
    values: Tensor


class Path(Edit):
    """The PathEdits to one reader during one pass. end: the label of its attention, its layer, its
    head, and "q", "k", "v" or "resid". heads: the (layer, head) that are cut off from it, each with
    the z that is put in its place, None for nothing. written (batch, token, d_model): by how much
    they have just written more than that, until it is left out of the sum; part: all that is left
    out, of a stream that is a sum; without: the state as it is without that; inputs: the same as
    the reader has it, in its layer."""

    def __init__(self, end: tuple[str, int | None, int | None, str]) -> None:
        self.attention, self.to_layer, self.to_head, self.to = end
        self.heads: dict[tuple[int, int], Tensor | None] = {}
        self.written: Tensor | None = None
        self.part: Tensor | None = None
        self.without: Tensor | None = None
        self.inputs: Tensor | None = None

    def ends_behind(self, layer: int, sublayer: str) -> bool:
        """True where it leads to the state after a sub-layer."""
        return (self.to, self.to_layer, sublayer) == ("resid", layer + 1, "ffn")


def less(z: Tensor, lent: Tensor | None) -> Tensor:
    """z of a head (batch, token, d_head) less that of another text (token, d_head), None for
    nothing; 0 at places that the other text has not."""
    if lent is None:
        return z
    n = min(z.shape[-2], len(lent))
    return torch.cat((z[..., :n, :] - lent[:n].to(z), torch.zeros_like(z[..., n:, :])), dim=-2)


def with_paths(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits of one pass, with what becomes of the paths among them, one for each reader."""
    paths: dict[tuple[str, int | None, int | None, str], Path] = {}
    for edit in edits:
        path, lent = (edit.path, edit.values) if isinstance(edit, LentPath) else (edit, None)
        if isinstance(path, CutPath) or (isinstance(path, PatchPath) and lent is not None):
            end = (path.attention, path.to_layer, path.to_head, path.to)
            paths.setdefault(end, Path(end)).heads[path.layer, path.head] = lent
    others = (edit for edit in edits if not isinstance(edit, (PathEdit, LentPath)))
    return (*others, *paths.values())


def hook_point(name: str, x: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
    """Return x as it goes on from a named place, replaced where an edit patches it; the tape
    records it."""
    x = edited(x, edits, name)
    tape(name, x)
    return x


# ---- RMSNorm for LayerNorm -------------------------------------------------------------------


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * gain, over the last axis; no mean, no bias."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = None
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)


Norm = nn.LayerNorm | RMSNorm


def norm_of(config: Config, width: int | None = None) -> Norm:
    """The norm that a model has wherever the paper has LayerNorm, fresh, as wide as the stream or
    `width`."""
    kind = RMSNorm if config.rms else nn.LayerNorm
    return kind(width or config.d_model, eps=config.eps)


def is_rms(norm: Norm, edits: tuple[Edit, ...] = (), layer: int | None = None) -> bool:
    """True where a norm subtracts no mean, by what it is or by an edit. layer None: a norm outside
    the layers."""
    norm_edit = last_edit(edits, OtherNorm, layer)
    return isinstance(norm, RMSNorm) if norm_edit is None else norm_edit.to == "rms"


def apply_norm(
    norm: Norm, x: Tensor, edits: tuple[Edit, ...] = (), layer: int | None = None
) -> Tensor:
    """x (..., d_model) through a norm; under an OtherNorm with the gain and bias it has, in the
    other way."""
    rms = is_rms(norm, edits, layer)
    if rms == isinstance(norm, RMSNorm):
        return norm(x)
    if not rms:
        return F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, norm.eps)
    x = F.rms_norm(x, x.shape[-1:], norm.weight, norm.eps)
    return x if norm.bias is None else x + norm.bias


# ---- rotary positions ------------------------------------------------------------------------


@lru_cache(maxsize=16)
def rotary_angles(
    n: int, d_head: int, base: float, share: float, scaling: tuple[float, ...] | None
) -> tuple[Tensor, Tensor]:
    """cos and sin of the angles of `n` places, each (place, dimension): pair i of a head's first
    `share` of dimensions, of which there are r, is turned by place x base^(-2i/r). The pair is
    dimensions i and i + r/2; the first of them has -sin.

    scaling (factor,): every angle is divided by factor. (factor, low, high, n_trained): Llama 3's,
    which divides those that turn fewer than `low` times in n_trained places, leaves those that turn
    more than `high` times, and blends between. In 32 bits, as models were trained.
    """
    with torch.inference_mode(False):  # they are kept, and gradients may pass them later
        frequency = rotary_frequencies(d_head, base, share, scaling)
        angle = (
            torch.arange(n, dtype=torch.float32, device="cpu")[:, None] * frequency
        )  # (place, pair)
        cos, sin = angle.cos(), angle.sin()
        return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def rotary_frequencies(
    d_head: int, base: float, share: float, scaling: tuple[float, ...] | None
) -> Tensor:
    """The angle that a place turns each pair by, (pair), as `rotary_angles`."""
    width = int(d_head * share) // 2 * 2  # an odd last dimension stays
    pairs = torch.arange(0, width, 2, dtype=torch.float32, device="cpu")
    frequency = 1.0 / base ** (pairs / width)
    if scaling is None:
        return frequency
    factor, *blend = scaling
    slowed = frequency / factor
    if blend:
        low, high, n_trained = blend
        ramp = ((n_trained * frequency / (2 * pi) - low) / (high - low)).clamp(0, 1)
        slowed = (1 - ramp) * slowed + ramp * frequency
    return slowed


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions (Su et al. 2021, RoFormer, eq. 34): dimensions (i, i + half) of x (batch,
    head, token, d_head) turned by the angle of their token and pair, cos and sin (token,
    dimension) of `rotary_angles`; the rest stays."""
    width = cos.shape[-1]
    turned = x if width == x.shape[-1] else x[..., :width]
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    turned = torch.addcmul(turned * cos, turned.roll(width // 2, -1), sin)
    return turned if width == x.shape[-1] else torch.cat((turned, x[..., width:]), dim=-1)


# ---- shared keys, a window -------------------------------------------------------------------


def pool_key_heads(x: Tensor, edits: tuple[Edit, ...]) -> Tensor:
    """Keys or values (batch, key head, key, d_head), each projected by its head, as heads share
    them: under a SharedKeys each group's mean, (batch, group, key, d_head). That is what the mean
    of the group's matrices makes (Ainslie et al. 2023, section 2.1)."""
    edit = last_edit(edits, SharedKeys)
    if edit is None or edit.groups == x.shape[1]:
        return x
    return x.unflatten(1, (edit.groups, -1)).mean(dim=2)


def repeat_key_heads(x: Tensor, n_head: int) -> Tensor:
    """Keys or values (batch, key head, key, d_head) as each head reads them, (batch, head, key,
    d_head): those of the first head of its group."""
    repeats = n_head // x.shape[1]
    return x if repeats == 1 else x.repeat_interleave(repeats, dim=1)


def apply_window(allowed: Tensor, window: int | None) -> Tensor:
    """`allowed` (query, key), the last query being the last key, without keys that are `window` or
    more places away."""
    if window is None:
        return allowed
    past, ones = allowed.shape[1] - len(allowed), torch.ones_like(allowed)
    return allowed & ones.triu(past - window + 1) & ones.tril(past + window - 1)


def with_shared_keys(config: Config, edits: tuple[Edit, ...]) -> Config:
    """The config with as many key heads as there are under edits."""
    edit = last_edit(edits, SharedKeys)
    return config if edit is None else replace(config, n_key_head=edit.groups)


# ---- gated FFN -------------------------------------------------------------------------------


class GatedFeedForward(nn.Module):
    """FFN(x) = (act(x W_gate) * x W_1) W_2: SwiGLU where act is silu, GeGLU where it is gelu."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.w_gate = Linear(config.d_model, config.d_ff, bias=config.bias_ffn)
        self.w_1 = Linear(config.d_model, config.d_ff, bias=config.bias_ffn)
        self.w_2 = Linear(config.d_ff, config.d_model, bias=config.bias_ffn)
        self.activation = config.activation

    def before(self, x: Tensor) -> Tensor:
        """The input of the activation, the gate: x (..., d_model) -> (..., d_ff)."""
        return self.w_gate(x)

    def hidden(self, x: Tensor) -> Tensor:
        """The hidden units as W_2 reads them: x (..., d_model) -> (..., d_ff)."""
        return ACTIVATIONS[self.activation](self.w_gate(x)) * self.w_1(x)

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, token, d_model) -> the same shape."""
        return self.w_2(self.hidden(x))
