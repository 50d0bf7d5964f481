"""Paths between heads that are cut in a Hugging Face model in its own code.

An attention at the end of a path is called once more, on what it would read had the heads written
nothing. Queries, keys or values of one head are then those of that call. So whatever the model's
code does to them, such as rotary positions or a norm of queries, is done to these too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from models.contract.edit_validation import shared_keys_error
from models.contract.edits import Edit, PatchPath, PathEdit, StreamEdit
from models.network.layers import less
from models.pretrained.hooks import Change, ForwardPass, HookPoint, active_pass
from models.pretrained.probing import ModuleMap, StreamPlan, nearly_equal
from models.pretrained.site_edits import Places

Projected = tuple[Tensor, Tensor, Tensor]  # queries, keys and values, (1, head, token, d_head)
End = tuple[Any, str, Any]  # layer, what is read there, head
Heads = Mapping[tuple[int, int], Tensor | None]
OWN_CLASSES = (
    "to cut a path, let the model run in Headlight's own classes, as ours:NAME does; CutEdge cuts "
    "one weight here"
)


def _place(item: tuple[tuple[int, int], Tensor | None]) -> tuple[int, int]:
    return item[0]


def supports_paths(plan: ModuleMap) -> bool:
    """True for a model of one stream whose sub-layers read it through a norm, and write into it
    without one."""
    first, *others = plan.streams
    return plan.opens and not others and first.law and first.norm == "pre"


class CutPaths:
    """The paths that are cut or patched in one pass, which this belongs to.

    by_end: for each (layer, "q", "k", "v" or "resid", head) the (layer, head) that are cut off from
    it, each with the z (token, d_head) in its place, None for nothing. lent: that z of a PatchPath.
    outputs: what the heads of a layer give, (1, head, token, d_head), by the layer."""

    def __init__(
        self,
        plan: StreamPlan,
        edits: tuple[Edit, ...],
        name: str,
        lent: Callable[[PatchPath], Tensor],
    ) -> None:
        self.sites, self.name = dict(plan.sites), name
        self.by_end: dict[End, dict[tuple[int, int], Tensor | None]] = {}
        for edit in edits:
            if isinstance(edit, PathEdit):
                end = edit.to_layer, edit.to, edit.to_head
                z = lent(edit) if isinstance(edit, PatchPath) else None
                self.by_end.setdefault(end, {})[edit.layer, edit.head] = z
            elif isinstance(edit, StreamEdit):
                raise ValueError(
                    f"“{edit}”: beside a path that is cut, this edit needs the model to run in "
                    "Headlight's own classes"
                )
        self.outputs: dict[int, Tensor] = {}
        self._at_ends: list[tuple[str, int, Tensor]] = []

    def changes(self) -> Iterator[tuple[HookPoint, Change]]:
        """The change of the outputs before the states that paths lead to. Raises ValueError for one
        that is not heard as one tensor."""
        for (layer, to, _), heads in self.by_end.items():
            if to == "resid":
                (place, factor), *more = self.sites[f"{layer - 1}.ffn.wrote"]
                if more or factor != 1.0:
                    raise ValueError(f"{self.name} has no one tensor there that could be changed")
                yield place, partial(self._less, heads)

    def _less(self, heads: Heads, wrote: Tensor, places: Places) -> Tensor:
        parts = [self._written(places, *at, lent) for at, lent in sorted(heads.items(), key=_place)]
        return wrote - torch.stack(parts).sum(0).reshape(wrote.shape)

    def before(
        self, module: nn.Module, args: tuple, kwargs: Mapping[str, Any], current: ForwardPass
    ) -> None:
        """An attention is about to read: find what the heads at the ends of paths have there."""
        layer = current.calls[current.attentions[id(module)]]
        ends = {
            end: heads
            for end, heads in self.by_end.items()
            if end[0] == layer and end[1] != "resid"
        }
        if not ends:
            return
        ((read, _),) = self.sites[f"{layer}.attn.read"]
        state = current.places[HookPoint(read.module, "in", read.call).key]
        normed = current.places[read.key]
        if not any(each is normed for each in (*args, *kwargs.values())):
            raise ValueError(
                f"an attention of {self.name} does not read what a norm gives; {OWN_CLASSES}"
            )
        for (_, to, head), heads in ends.items():
            written = [
                self._written(current.places, *at, lent)
                for at, lent in sorted(heads.items(), key=_place)
            ]
            with active_pass(ForwardPass(keeps=False, paths=(call := _SecondCall()))):
                other = read.module(state - torch.stack(written).sum(0).reshape(state.shape))
                put = lambda each: other if each is normed else each
                module(*map(put, args), **{name: put(each) for name, each in kwargs.items()})
            self._at_ends.append((to, head, call.tensors[to]))

    def projected(self, query: Tensor, key: Tensor, value: Tensor) -> Projected:
        """Queries, keys and values of the attention that has just begun, those at the ends of
        paths made of the stream without what was cut off."""
        tensors = dict(zip("qkv", (query, key, value)))
        for to, head, other in self._at_ends:
            if other.shape[1] != query.shape[1]:
                raise ValueError(shared_keys_error(self.name))
            tensors[to] = torch.cat(
                (tensors[to][:, :head], other[:, head : head + 1], tensors[to][:, head + 1 :]),
                dim=1,
            )
        self._at_ends = []
        return tensors["q"], tensors["k"], tensors["v"]

    def _written(self, places: Places, layer: int, head: int, lent: Tensor | None) -> Tensor:
        """A head's part of the stream, (1, token, d_model), less what it would write with the z
        that is lent. Raises ValueError where what the heads
        of its layer give does not add up to what was written there."""
        (place, _), *_ = self.sites[f"{layer}.attn.wrote"]
        z, module = self.outputs[layer], place.module
        weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
        wrote = places[place.key]
        matrix = weight if not isinstance(module, nn.Linear) else module.weight.T
        if isinstance(matrix, Tensor) and matrix.shape == (
            z.shape[1] * z.shape[3],
            wrote.shape[-1],
        ):
            slices = matrix.unflatten(0, (z.shape[1], z.shape[3]))
            total = torch.einsum("bhtd,hdm->btm", z, slices) + (0 if bias is None else bias)
            if nearly_equal(total.reshape(wrote.shape), wrote):
                return less(z[:, head], lent) @ slices[head]
        raise ValueError(
            f"{self.name} does not show what each head of layer {layer} writes; {OWN_CLASSES}"
        )


class _SecondCall:
    """The second call of an attention, as a part of its own pass: keeps what it computes with."""

    def __init__(self) -> None:
        self.outputs: dict[int, Tensor] = {}
        self.tensors: dict[str, Tensor] = {}

    def before(
        self, module: nn.Module, args: tuple, kwargs: Mapping[str, Any], current: ForwardPass
    ) -> None:
        """No path ends in it."""

    def projected(self, query: Tensor, key: Tensor, value: Tensor) -> Projected:
        """Keep query, key and value, and return them as they are."""
        self.tensors = {"q": query, "k": key, "v": value}
        return query, key, value
