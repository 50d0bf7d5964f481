"""Activation patching: parts of one run put into another, one after the other, and what each does
to a word's logit.

Meng et al. 2022 (causal tracing) and Wang et al. 2022 (path patching): where the run of another
text, the donor, is put in and the answer turns to the donor's, there the model keeps what tells the
two texts apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from models.contract.edits import Edit, PathEdit, place_of
from models.contract.notices import tell, tell_cut
from models.contract.recording import Recording, Stream, from_end
from models.contract.results import Sweep
from models.contract.spelling import there_are
from models.network.layers import Patch, Patches, SitePatches
from models.network.own_model import OwnModel, activations, head_output_site, record
from models.network.transformer import EncoderDecoder
from models.readouts.gradients import Place, Slopes
from models.readouts.logit_lens import states

MAX_ROWS_TOKENS = 512  # of the texts that are read in one pass


@torch.inference_mode()
def patch_heads(
    model: Any,
    text: str,
    donor: str,
    attention: str,
    token: int,
    id: int,
    against: int,
    edits: tuple[Edit, ...] = (),
) -> Sweep:
    """Patch every head of an attention in turn, its output z from the donor's run at all tokens.

    The difference logit(id) - logit(against) is read at `token` of the last stream; a translator's
    decoder reads its unpatched output. Raises ValueError as `record` does, and for a token or word
    that does not exist."""
    if attention not in model.capabilities.attention:
        there = there_are(attention, model.capabilities.attention)
        raise ValueError(f"no attention is called {attention!r}; {there}")
    run = run_of(model, text, donor, edits, token, id, against)
    layers, heads = tuple(range(run.n_layer(attention))), tuple(range(model.card.n_head))
    places = {layer: (attention, layer, "z") for layer in layers}
    linear = LinearEffects(model, text, run, (id, against), tuple(places.values()))

    def estimated(layer: int, heads: Sequence[int]) -> Iterator[float]:
        yield from linear.differences(places[layer], run.heads(attention, layer), heads)

    def patched(layer: int, heads: Sequence[int]) -> Iterator[float]:
        z = run.heads(attention, layer)
        name, stream = place_of(attention, layer, "z"), run.stream_of(attention)
        patches = [Patch(name, z[head], head=head) for head in heads]
        for some in batches(patches, run.n_tokens[stream]):
            yield from run.differences(stream, layer, Patches(name, some))

    return Sweep(run.clean, run.donor, layers, heads, patched, estimated)


@torch.inference_mode()
def patch_sites(
    model: Any,
    text: str,
    donor: str,
    stream: str,
    token: int,
    id: int,
    against: int,
    edits: tuple[Edit, ...] = (),
) -> Sweep:
    """Every state of a stream at every token that both texts have, in turn taken from the donor's
    run. As `patch_heads` in all else."""
    run = run_of(model, text, donor, edits, token, id, against)
    names = tuple(name for name in run.sites[stream] if run.vectors(stream, name) is not None)
    n = min(run.n_tokens[stream], *(len(run.vectors(stream, name)) for name in names))
    linear = LinearEffects(model, text, run, (id, against), tuple((stream, name) for name in names))

    def estimated(name: str, tokens: Sequence[int]) -> Iterator[float]:
        yield from linear.differences((stream, name), run.vectors(stream, name), tokens)

    def patched(name: str, tokens: Sequence[int]) -> Iterator[float]:
        vectors, (layer, *_) = run.vectors(stream, name), name.split(".")
        first = int(layer) if layer.isdecimal() else None
        patches = [Patch(name, vectors, token=token) for token in tokens]
        for some in batches(patches, run.n_tokens[stream]):
            yield from run.differences(stream, first, SitePatches(name, some, stream))

    return Sweep(run.clean, run.donor, names, tuple(range(n)), patched, estimated)


class LinearEffects:
    """Attribution patching (Nanda 2023): what each patch of a run would do were the logits linear
    in what stands at its place, by the gradients of one pass."""

    def __init__(
        self, model: Any, text: str, run: Any, ids: tuple[int, int], places: tuple[Place, ...]
    ) -> None:
        self.model, self.text, self.run, self.ids, self.places = model, text, run, ids, places

    @cached_property
    def slopes(self) -> Slopes:
        """The gradients, taken when they are first asked for."""
        source, run = import_module(self.model.source), self.run
        recording = source.record(self.model, self.text, run.edits)
        return source.slopes(self.model, recording, run.token, *self.ids, self.places)

    def differences(self, place: Place, values: Tensor, which: Sequence[int]) -> Iterator[float]:
        """The differences of the logits with the donor's values at a place: (token, d_model), each
        at one token, or (head, token, d_head), each of one head."""
        _, clean, found = self.slopes
        here, slope = found[place]
        n = min(values.shape[-2], here.shape[-2])
        moved = (values[..., :n, :].numpy() - here[..., :n, :]) * slope[..., :n, :]
        for each in which:
            yield clean + float(moved[each].sum())


def batches(patches: list[Patch], n: int) -> Iterator[tuple[Patch, ...]]:
    """Patches of a text of n tokens, as many together as one pass reads."""
    size = max(1, MAX_ROWS_TOKENS // n)
    for start in range(0, len(patches), size):
        yield tuple(patches[start : start + size])


def run_of(model: Any, *asked: Any) -> Any:
    """The runs of a model's source, as `OwnRun`."""
    source = import_module(model.source)
    return (
        source.patch_run(model, *asked) if hasattr(source, "patch_run") else OwnRun(model, *asked)
    )


def own_edits(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits without patches, which a sweep is made without."""
    others = tuple(edit for edit in edits if not edit.borrows)
    if len(others) < len(edits):
        tell("a sweep of patches is made without the patches among the edits")
    return others


def expect_asked(card: Any, recording: Recording, token: int, ids: Sequence[int]) -> int:
    """A token of the last stream, counted from 0. Raises ValueError for one that is not there, and
    for an id that the vocabulary does not have."""
    n = len(recording.streams[-1].tokens)
    token = from_end(token, n)
    if not 0 <= token < n:
        raise ValueError(f"the text has tokens 0 to {n - 1}, not {token}")
    if not all(0 <= word < card.n_vocab for word in ids):
        raise ValueError(f"the vocabulary has ids 0 to {card.n_vocab - 1}")
    return token


class OwnRun:
    """The two texts' runs, and the first one run anew with something put in, from the layer on
    where it is put in. Neither recording is kept: a sweep of a long text goes on for minutes."""

    def __init__(
        self,
        model: OwnModel,
        text: str,
        donor: str,
        edits: tuple[Edit, ...],
        token: int,
        id: int,
        against: int,
    ) -> None:
        self.model = model
        self.words = torch.tensor([id, against])
        recording = record(model, text, own_edits(edits))
        first = recording.streams[0].tokens
        tell_cut(model.name, model.card.n_positions, first, recording.dropped)
        self.edits, last = recording.edits, recording.streams[-1]
        self.token = expect_asked(model.card, recording, token, (id, against))
        self.sites = {each.name: states(each) for each in recording.streams}
        self.n_tokens = {each.name: len(each.tokens) for each in recording.streams}
        self.ids = [torch.tensor(each.ids)[None] for each in recording.streams]
        self.before = {each.name: _states_before(each) for each in recording.streams}
        self.clean = self._difference(torch.tensor(last.resid[-1]))
        name, end = last.name, last.sites[-1]
        del recording, last
        self._donor = activations(model, donor, self.edits)
        self.donor = self._difference(self._donor[name][end])

    def n_layer(self, attention: str) -> int:
        """The number of layers of an attention."""
        return len(self.model.attentions[attention])

    def stream_of(self, attention: str) -> str:
        """The stream that an attention writes into."""
        return head_output_site(self.model, attention, 0)[0]

    def heads(self, attention: str, layer: int) -> Tensor:
        """The donor's z in a layer of an attention, (head, token, d_head)."""
        stream, name = head_output_site(self.model, attention, layer)
        return self._donor[stream][name]

    def vectors(self, stream: str, site: str) -> Tensor | None:
        """The donor's vectors at a site, (token, d_model), None where it has none there."""
        return self._donor[stream].get(site)

    def _difference(self, vectors: Tensor) -> float:
        """logit(id) - logit(against) of last vectors (token, d_model); where there are fewer
        tokens, at the last."""
        row = vectors[min(self.token, len(vectors) - 1)]
        logit, other_logit = self.model.network.logits(row)[self.words].tolist()
        return logit - other_logit

    @torch.inference_mode()
    def differences(self, stream: str, layer: int | None, patches: Patches) -> list[float]:
        """The difference of the logits with each of several patches put into a stream, at a layer,
        None for one outside the layers."""
        network, n = self.model.network, len(patches.patches)
        edits = (*self.edits, patches)
        begins = layer is not None and not any(isinstance(each, PathEdit) for each in self.edits)
        if isinstance(network, EncoderDecoder):
            encoder = edits if stream == "encoder" else self.edits
            memory = network.encode(self.ids[0].expand(n, -1), edits=encoder)
            decoder = edits if stream == "decoder" else self.edits
            x = network.decode(self.ids[1].expand(n, -1), memory, edits=decoder)
        else:
            state = self.before[stream][layer] if begins and layer is not None else None
            entered = (0, None) if state is None else (layer, state.expand(n, -1, -1))
            x = network(self.ids[0].expand(n, -1), edits=edits, entered=entered)
        scores = network.logits(x[:, self.token])[:, self.words]
        return (scores[:, 0] - scores[:, 1]).tolist()


def _states_before(stream: Stream) -> list[Tensor]:
    """The state before each layer, (1, token, d_model), by the layer."""
    found: list[Tensor] = []
    state = 0
    for at, site in enumerate(stream.sites):
        layer, _, rest = site.partition(".")
        if layer.isdecimal() and int(layer) == len(found):
            found.append(torch.tensor(stream.resid[state])[None])
        if not rest.endswith(("wrote", "read")) and site != "pos.wrote":
            state = at
    return found
