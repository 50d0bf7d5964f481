"""Edits with numbers at the sites of a Hugging Face model in its own code: what becomes of the
tensors that its modules read and give, and whether the model's code has carried it on."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from models.contract.edits import Edit, SetNeuron, SiteEdit, StreamEdit, edited, of_stream
from models.contract.recording import Stream
from models.contract.spelling import there_are
from models.pretrained.hooks import Change, HookPoint
from models.pretrained.probing import StreamPlan, nearly_equal

Places = dict[tuple[int, str, int], Tensor]


def changes_of(
    plans: tuple[StreamPlan, ...], edits: tuple[Edit, ...], name: str
) -> dict[tuple[int, str, int], Change]:
    """By the key of a place what becomes of the tensor there under edits at sites.

    A state that is the sum of the state before and what a sub-layer wrote is changed in what is
    written, so that it goes on in the stream. Raises ValueError for a site that is not heard, or
    not as one tensor. name: the model's."""
    changes: dict[tuple[int, str, int], Change] = {}
    for at, plan in enumerate(plans):
        sites = [site for site, _ in plan.sites]
        of_plan = of_stream(edits, plan.name, first=at == 0)
        edits_of_sites = [edit for edit in of_plan if isinstance(edit, StreamEdit)]
        # Several may change one tensor: they do it as the pass comes by their sites.
        for edit in sorted(edits_of_sites, key=lambda each: _rank(each, sites)):
            place, change = _change(plan, edit, name)
            changes[place.key] = after(changes.get(place.key), change)
    return changes


def _rank(edit: Edit, sites: list[str]) -> int:
    """Place on the pass where an edit is carried out, by the order of the sites."""
    site = f"{edit.layer}.ffn.wrote" if isinstance(edit, SetNeuron) else getattr(edit, "site", "")
    return sites.index(site) if site in sites else len(sites)


def after(first: Change | None, then: Change) -> Change:
    """Two changes of one place, one after the other."""
    return then if first is None else lambda x, places: then(first(x, places), places)


def _change(plan: StreamPlan, edit: Edit, name: str) -> tuple[HookPoint, Change]:
    """The place at which an edit is carried out, and how."""
    if isinstance(edit, SetNeuron):
        return _neuron_change(plan, edit, name)
    assert isinstance(edit, SiteEdit)
    sites = dict(plan.sites)
    if edit.site not in sites:
        there = there_are(edit.site, sites)
        raise ValueError(f"“{edit}”: no site {edit.site!r} of stream {plan.name}; {there}")
    (place, factor), *more = sites[edit.site]
    if more or factor != 1.0:
        raise ValueError(f"“{edit}”: {name} has no one tensor there that could be changed")
    plain: Change = lambda x, _: edited(x, (edit,), edit.place)
    if not edit.site.endswith(".sum") or not plan.law:
        return place, plain
    writing = f"{edit.site.removesuffix('.sum')}.wrote"
    before = _state_before(plan, writing)
    ((written, _),) = sites[writing]

    def through_what_is_written(wrote: Tensor, places: Places) -> Tensor:
        state = _sum_of(before, places).reshape(wrote.shape)
        return edited(state + wrote, (edit,), edit.place) - state

    return written, through_what_is_written


def _state_before(plan: StreamPlan, writing: str) -> tuple[tuple[HookPoint, float], ...]:
    """The source of the state that a sub-layer's output is added to."""
    names = [site for site, _ in plan.sites]
    before = [each for each in names[: names.index(writing)] if not each.endswith(".read")]
    return dict(plan.sites)[before[-1]]


def _sum_of(source: tuple[tuple[HookPoint, float], ...], places: Places) -> Tensor:
    return torch.stack([places[place.key] * factor for place, factor in source]).sum(0)


def _neuron_change(plan: StreamPlan, edit: SetNeuron, name: str) -> tuple[HookPoint, Change]:
    """The input of the matrix that a feed-forward network writes with."""
    source = dict(plan.sites).get(f"{edit.layer}.ffn.wrote", ())
    module = source[0][0].module if len(source) == 1 else None
    weight = getattr(module, "weight", None)
    if module is None or not isinstance(weight, Tensor) or weight.dim() != 2:
        raise ValueError(f"“{edit}”: {name} does not show the hidden units of its layers")
    width = weight.shape[1] if isinstance(module, nn.Linear) else weight.shape[0]
    if not 0 <= edit.neuron < width:
        raise ValueError(f"“{edit}”: a layer of {name} has neurons 0 to {width - 1}")
    change = lambda x, _: edited(x, (edit,), edit.place)
    return HookPoint(module, "in", source[0][0].call), change


def expect_carried(
    edits: tuple[Edit, ...], plans: tuple[StreamPlan, ...], streams: Iterable[Stream], name: str
) -> None:
    """Raises ValueError where a model's code has not gone on with what an edit put at a site: every
    sum must be that of the state before and what was written."""
    if not any(isinstance(edit, StreamEdit) for edit in edits):
        return
    for plan, stream in zip(plans, streams):
        state: Tensor | None = None
        site_vectors = dict(zip(stream.sites, map(torch.tensor, stream.resid)))
        for site, vectors in site_vectors.items():
            if site.endswith(".wrote") and plan.law and state is not None:
                total = site_vectors.get(f"{site.removesuffix('.wrote')}.sum")
                if total is not None and not nearly_equal(state + vectors, total):
                    raise ValueError(
                        f"the code of {name} does not go on with what an edit put before {site}"
                    )
            elif not site.endswith((".wrote", ".read")):
                state = vectors
