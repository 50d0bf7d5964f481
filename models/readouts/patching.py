"""Activation patching: parts of one run put into another, one after the other, and what each does
to a word's logit.

Meng et al. 2022 (causal tracing) and Wang et al. 2022 (path patching): where the run of another
text, the donor, is put in and the answer turns to the donor's, there the model keeps what tells the
two texts apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from models.edits import Edit
from models.layers import Patch
from models.notices import tell, tell_cut
from models.own_model import OwnModel, activations, head_output_site, record
from models.readouts.logit_lens import states
from models.recording import from_end
from models.results import Effect, Sweep
from models.transformer import EncoderDecoder


@torch.inference_mode()
def patch_heads(
    model: OwnModel,
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
    if attention not in model.attentions:
        raise ValueError(
            f"no attention is called {attention!r}; there are {', '.join(model.attentions)}"
        )
    card = model.card
    outputs = [head_output_site(model, attention, layer) for layer in range(card.n_layer)]
    run = _Run(model, text, donor, edits, token, id, against, {z for _, z in outputs})

    def effects() -> Iterator[Effect]:
        for layer, (stream, name) in enumerate(outputs):
            for head in range(card.n_head):
                yield Effect(
                    (layer, head),
                    run.value(stream, Patch(name, run.activations[stream][name][head], head=head)),
                )

    return Sweep(run.clean, run.donor, card.n_layer * card.n_head, effects())


@torch.inference_mode()
def patch_sites(
    model: OwnModel,
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
    run = _Run(model, text, donor, edits, token, id, against)
    names = [name for name in run.sites[stream] if name in run.activations[stream]]
    n = min(run.n_tokens[stream], *(len(run.activations[stream][name]) for name in names))

    def effects() -> Iterator[Effect]:
        for name in names:
            for position in range(n):
                yield Effect(
                    (name, position),
                    run.value(stream, Patch(name, run.activations[stream][name], token=position)),
                )

    return Sweep(run.clean, run.donor, len(names) * n, effects())


class _Run:
    """The two texts' runs, and the first one run anew with something put in. names: of the
    donor's vectors that are put in, all states where None. Neither recording is kept: a sweep of a
    long text goes on for minutes."""

    def __init__(
        self,
        model: OwnModel,
        text: str,
        donor: str,
        edits: tuple[Edit, ...],
        token: int,
        id: int,
        against: int,
        names: set[str] | None = None,
    ) -> None:
        self.model = model
        self.words = torch.tensor([id, against])
        others = tuple(edit for edit in edits if not edit.borrows)
        if len(others) < len(edits):
            tell("a sweep of patches is made without the patches among the edits")
        recording = record(model, text, others)
        first = recording.streams[0].tokens
        tell_cut(model.name, model.card.n_positions, first, recording.dropped)
        self.edits, last = recording.edits, recording.streams[-1]
        n = len(last.tokens)
        token = from_end(token, n)
        if not 0 <= token < n:
            raise ValueError(f"the text has tokens 0 to {n - 1}, not {token}")
        if not all(0 <= word < model.card.n_vocab for word in (id, against)):
            raise ValueError(f"the vocabulary has ids 0 to {model.card.n_vocab - 1}")
        self.token = token
        self.sites = {each.name: states(each) for each in recording.streams}
        self.n_tokens = {each.name: len(each.tokens) for each in recording.streams}
        self.ids = [torch.tensor(each.ids)[None] for each in recording.streams]
        self.clean = self.difference(torch.tensor(last.resid[-1]))
        name, end = last.name, last.sites[-1]
        del recording, last
        if names is None:
            names = {site for sites in self.sites.values() for site in sites}
        self.activations = activations(model, donor, self.edits, names | {end})
        self.donor = self.difference(self.activations[name][end])

    def difference(self, vectors: Tensor) -> float:
        """logit(id) - logit(against) of last vectors (token, d_model); where there are fewer
        tokens, at the last."""
        logit, other_logit = self.model.network.logits(vectors[min(self.token, len(vectors) - 1)])[
            self.words
        ].tolist()
        return logit - other_logit

    @torch.inference_mode()
    def value(self, stream: str, patch: Patch) -> float:
        """The difference of the logits with something put into a stream."""
        model, edits = self.model.network, (*self.edits, patch)
        if not isinstance(model, EncoderDecoder):
            return self.difference(model(self.ids[0], edits=edits)[0])
        memory = model.encode(self.ids[0], edits=edits if stream == "encoder" else self.edits)
        return self.difference(
            model.decode(self.ids[1], memory, edits=edits if stream == "decoder" else self.edits)[0]
        )
