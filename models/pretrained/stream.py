"""Where a stream of vectors is heard in a model, found by its law: a tensor `wrote` counts as a
sub-layer's output only where state + wrote comes by as well."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor, nn

from models.pretrained.hooks import AttentionCall, Place
from models.pretrained.overheard import SAME, Moment, Seen, in_layer, is_norm, same

Source = tuple[tuple[Place, float], ...]


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

    def places(self) -> list[Place]:
        """Every place that is heard."""
        return [place for _, source in self.sites for place, _ in source]


class Unfollowed(ValueError):
    """A model's states or attentions could not be found in what its modules read and give; says
    which."""


def stream_plan(
    name: str, states: list[Tensor], ids: Tensor, log: list[Moment | AttentionCall]
) -> StreamPlan:
    """A stream's sites; states (layer + 1) of (token, d_model) are what the model itself says they
    are, the last one after a last LayerNorm."""
    seen = Seen(log, *states[0].shape)
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


def _final_norm(seen: Seen, last: Tensor) -> int | None:
    """When the LayerNorm after the last layer gave the last state, None where there is none."""
    for at, moment in seen.outs(0, len(seen.log)):
        after_layers = is_norm(moment) and not in_layer(moment) and seen.read_by(at) is not None
        if after_layers and same(seen.vectors(at), last):
            return at
    return None


def _moments(name: str, seen: Seen, states: list[Tensor]) -> list[int]:
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
    sites: tuple[tuple[str, Place], ...]


def _sublayers(
    seen: Seen, state: Tensor, goal: Tensor, begin: int, end: int, post: bool
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


def _sum_after(seen: Seen, state: Tensor, out: int, end: int) -> int | None:
    wrote = seen.vectors(out)
    return (
        seen.first(state + wrote, out + 1, end + 1)
        if wrote.abs().max() > SAME * state.abs().max()
        else None
    )


def _sublayer_name(between: list[Moment | AttentionCall], module: str) -> str:
    """By the attention that was computed on the way; where that is the model's own code, unseen, by
    the name of the module that wrote."""
    calls = [moment for moment in between if isinstance(moment, AttentionCall)]
    if calls:
        return "attn" if calls[-1].n_query == calls[-1].n_key else "cross"
    return "attn" if "att" in module else "ffn"


def _entrance(
    seen: Seen, state: Tensor, when: int, ids: Tensor
) -> tuple[list[tuple[str, Source]], nn.Module | None]:
    """The sites before the first layer, up to the state that enters it, and the module that gives
    what is added for positions."""
    words: list[Moment] = []
    positions: list[Moment] = []
    segments: list[Moment] = []
    for at, moment in enumerate(seen.log[: when + 1]):
        if (
            isinstance(moment, AttentionCall)
            or moment.place.side == "in"
            or not moment.leaf
            or not moment.value.is_floating_point()
        ):
            continue
        came = seen.came(at)
        if "pos" in moment.name.lower() or moment.name.endswith("wpe"):
            positions.append(moment)
        elif (
            isinstance(moment.place.module, nn.Embedding)
            and came is not None
            and torch.equal(seen.moment(came).value.reshape(-1), ids)
        ):
            words.append(moment)
        elif "type" in moment.name.lower():
            segments.append(moment)
    table = positions[0].place.module if positions else None
    for word in words:
        for scale in dict.fromkeys((1.0, sqrt(seen.d_model), _ratio(seen, state, word))):
            for segment in (*segments, None):
                for position in (*positions, None):
                    if (
                        found := _entered(seen, state, when, word, scale, segment, position)
                    ) is not None:
                        return found, None if position is None else position.place.module
    # Positions that are no module's output, or an embedding of another width: what enters the first
    # layer holds both.
    return [("embed+pos", ((seen.moment(when).place, 1.0),))], table


def _ratio(seen: Seen, state: Tensor, word: Moment) -> float:
    """What the embedding would have to be multiplied by to be the state, if it is nothing else."""
    rows = _rows(seen, word)
    return 1.0 if rows is None else round(float((rows * state).sum() / (rows * rows).sum()), 4)


def _entered(
    seen: Seen,
    state: Tensor,
    when: int,
    word: Moment,
    scale: float,
    segment: Moment | None,
    position: Moment | None,
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


def _rows(seen: Seen, moment: Moment) -> Tensor | None:
    value = moment.value[0] if moment.value.dim() == 3 and len(moment.value) == 1 else moment.value
    return value if value.shape in ((seen.n, seen.d_model), (1, seen.d_model)) else None
