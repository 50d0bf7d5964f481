"""Gradients through the layers of a model: how far an output can feel a state it depends on.

Two measurements, each by automatic differentiation on the shared model, which stays as it is
(nothing accumulates on its parameters):

    highway   d(one logit)/d(the state after each sub-layer), with the residual connections and
              LayerNorm and without
    jacobian  of one sub-layer at one token: f, x + f and LayerNorm(x + f)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from models.attention import Stored
from models.config import Config
from models.edits import Edit, PatchHead, PatchSite, WithoutNorm, WithoutResidual
from models.own import Handle
from models.places import Tape
from models.readouts.parameters import layers_of, looks_at
from models.recording import Recording
from models.slices import breath
from models.transformer import EncoderDecoder, Layer

WAYS: dict[str, tuple[Edit, ...]] = {
    "residual on": (),
    "residual off": (WithoutResidual(),),
    "residual on, no norm": (WithoutNorm(),),
    "residual off, no norm": (WithoutResidual(), WithoutNorm()),
}
ROWS_AT_ONCE = 32  # of a Jacobian: bounds its memory at 512 tokens


@dataclass(frozen=True, eq=False)
class Highway:
    """Norms of d(logit of word `id` at `token` of stream `output`)/d(state), by way, site and
    token.

    ways: names of what was switched, as in WAYS; sites: "embed+pos" and then the sub-layers, such
    as "0.attn", each standing for the state after it; norm (way, site, token); logit (way): the
    output itself.
    """

    stream: str
    output: str
    token: int
    id: int
    ways: tuple[str, ...]
    sites: tuple[str, ...]
    norm: np.ndarray
    logit: np.ndarray


def highway(handle: Handle, recording: Recording, stream: str, token: int) -> Highway:
    """The gradient of the likeliest word's logit at a token, back to every state of the stream, the
    same word for every way.

    For the encoder of a translator the output is the decoder's first word. Of WAYS those that take
    away what the model has; the first is the model as it is. Raises ValueError for a token that is
    not there, for a model without a readout, and for a run into which something of another was put.
    """
    if any(isinstance(edit, (PatchHead, PatchSite)) for edit in recording.edits):
        raise ValueError(
            "gradients are those of a text's own run, and something of another was put into "
            "this one"
        )
    output = recording.streams[-1]
    row = token if output.name == stream else 0
    if not 0 <= token < len(recording.stream(stream).tokens):
        raise ValueError(
            f"stream {stream} has tokens 0 to {len(recording.stream(stream).tokens) - 1}, not "
            f"{token}"
        )
    word, norms, logits = -1, [], []
    sites: tuple[str, ...] = ()
    ways = ways_of(handle.model.config)
    for edits in ways.values():
        with torch.enable_grad():
            breath()
            states, last = _states(handle, recording, stream, (*recording.edits, *edits))
            breath()
            scores = handle.model.logits(last[0, row])
            word = int(scores.argmax()) if word < 0 else word
            gradients = torch.autograd.grad(
                scores[word], list(states.values()), materialize_grads=True
            )
        sites = tuple(states)
        norms.append(torch.stack([gradient[0].norm(dim=-1) for gradient in gradients]).numpy())
        logits.append(scores[word].item())
    return Highway(
        stream, output.name, row, word, tuple(ways), sites, np.stack(norms), np.array(logits)
    )


def ways_of(config: Config) -> dict[str, tuple[Edit, ...]]:
    """The WAYS that differ for a model: one trained without residual connections has them in none,
    one without LayerNorm likewise."""
    return {
        way: edits
        for way, edits in WAYS.items()
        if (config.residual or way.startswith("residual off"))
        and (config.norm is not None or way.endswith("no norm"))
    }


def _states(
    handle: Handle, recording: Recording, stream: str, edits: tuple[Edit, ...]
) -> tuple[dict[str, Tensor], Tensor]:
    """The state before the first layer and after every sub-layer of a stream, and the model's last
    vectors, all in one graph."""
    kept: dict[str, dict[str, Tensor]] = {each.name: {} for each in recording.streams}

    def tape(name: str) -> Tape:
        def keep(site: str, tensor: Tensor) -> None:
            place, _, what = site.rpartition(".")
            if site in ("embed", "embed+pos", "embed.normed"):
                kept[name].clear()
                kept[name][site] = tensor
            elif what in ("sum", "normed") and place != "final":  # the later of the two stays
                kept[name][place] = tensor

        return keep

    ids = [torch.tensor(each.ids)[None] for each in recording.streams]
    names = [each.name for each in recording.streams]
    if isinstance(handle.model, EncoderDecoder):
        memory = handle.model.encode(ids[0], tape=tape(names[0]), edits=edits)
        last = handle.model.decode(ids[1], memory, tape=tape(names[1]), edits=edits)
    else:
        last = handle.model(ids[0], tape=tape(names[0]), edits=edits)
    return kept[stream], last


@dataclass(frozen=True, eq=False)
class Jacobian:
    """Derivatives of one sub-layer at one token by that token's own vector x, everything else held:
    d x d matrices by their singular values.

    wrote (d): of f, what the sub-layer writes (a pre-LN one's LayerNorm is part of f); total (d):
    of x + f(x), of f(x) alone in a model trained without residual connections (`adds` False); after
    (d): of what stands after the LayerNorm that follows, for pre-LN and where there is none the
    same as total; all from the largest down.
    error: the largest entry of |J(x + f) - J(f) - I|, the two measured apart; without the residual
    of |J(f) - J(f)|.
    """

    site: str
    token: int
    wrote: np.ndarray
    total: np.ndarray
    after: np.ndarray
    error: float
    adds: bool = True


def jacobian(handle: Handle, recording: Recording, stream: str, token: int, site: str) -> Jacobian:
    """The Jacobians of the sub-layer `site`, such as "0.attn", of an unedited recording. Raises
    ValueError for one that is not there, and for an edited recording."""
    if recording.edits:
        raise ValueError("the Jacobian is that of an unedited run")
    of = recording.stream(stream)
    written = {wrote.rpartition(".")[0] for _, wrote, _ in of.writes()}
    if site not in written or site == "pos" or not 0 <= token < len(of.tokens):
        raise ValueError(
            f"stream {stream} has no sub-layer {site!r} or no token {token}; it has "
            f"{', '.join(sorted(written - {'pos'}))} and tokens 0 to {len(of.tokens) - 1}"
        )
    number, _, place = site.partition(".")
    layer = layers_of(handle, stream)[int(number)]
    x = torch.tensor(of.at(looks_at(layer, of, place, ())))
    x = x.to(handle.model.embedding.token.weight.dtype)
    out = {"attn": layer.attention_out, "ffn": layer.feed_forward_out}.get(place)
    out = layer.cross_out if out is None else out
    stands = {out.norm_at(()): out.norm or nn.Identity()}
    read, norm = stands.get("pre", nn.Identity()), stands.get("post", nn.Identity())
    f = _sublayer(layer, place, x, token, recording, read)
    adds = out.adds(())

    def summed(v: Tensor) -> Tensor:
        return v + f(v) if adds else f(v)

    def normed(v: Tensor) -> Tensor:
        return norm(summed(v))

    wrote, total, after = (_derivative(each, x[token]) for each in (f, summed, normed))
    error = (total - wrote - torch.eye(len(wrote)) * adds).abs().max().item()
    sizes = [torch.linalg.svdvals(each.double()).numpy() for each in (wrote, total, after)]
    return Jacobian(site, token, sizes[0], sizes[1], sizes[2], error, adds)


def _derivative(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The Jacobian (output, input) of a function of one vector at x, some rows at a time."""
    out, pulled, *_ = torch.func.vjp(function, x)
    rows = []
    for chosen in torch.eye(len(out)).split(ROWS_AT_ONCE):
        breath()
        rows.append(torch.func.vmap(pulled)(chosen)[0].detach())
    return torch.cat(rows)


class _Beside(Stored):
    """Keys and values of all tokens of a text, each (1, head, key, d_head), held but for those of
    one token, which a pass brings along."""

    def __init__(self, k: Tensor, v: Tensor, token: int) -> None:
        super().__init__()
        self.k, self.v, self.token = k, v, token

    def past(self, name: str) -> int:
        return self.token

    def with_new(self, name: str, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values, the token's own ones new."""

        def put(old: Tensor, new: Tensor) -> Tensor:
            return torch.cat((old[:, :, : self.token], new, old[:, :, self.token + 1 :]), dim=2)

        return put(self.k, k), put(self.v, v)


def _sublayer(
    layer: Layer, place: str, x: Tensor, token: int, recording: Recording, read: nn.Module
) -> Callable[[Tensor], Tensor]:
    """What a sub-layer writes at one token as a function of that token's vector (d_model). `read`:
    the LayerNorm it reads through, if any."""
    if place == "ffn":
        return lambda v: layer.feed_forward(read(v))
    if place == "cross":
        memory = torch.tensor(recording.streams[0].resid[-1])[None]
        return lambda v: layer.cross(read(v)[None, None], memory)[0, 0]
    own = next(each for each in recording.attention if each.name == layer.attention.label)
    allowed = torch.tensor(own.allowed[token : token + 1])
    # What the others offer is held: to differentiate it for 512 tokens took 16 times as long.
    with torch.no_grad():
        others = read(x)[None]
        beside = _Beside(*layer.attention.queries_keys_values(others, others, (), None)[1:], token)
    return lambda v: layer.attention(
        read(v)[None, None], read(v)[None, None], allowed, stored=beside
    )[0, 0]
