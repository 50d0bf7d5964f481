"""The one door to every model: which there are, loading one, and recording a forward pass on a
text.

Scripts, benchmarks, notebooks and the app use these verbs and nothing else. Importing this module
costs nothing: torch is imported when a model is loaded, transformers when one is loaded in its own
code.

How models are named is told in `models.model_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from models import live_training, smollm2
from models.argument_validation import edits_of, expect_handle, expect_recording_of, expect_text
from models.capabilities import Capabilities, Source, TextGenerator
from models.edits import Edit
from models.model_names import (
    IN_ITS_OWN_CODE,
    IN_OURS,
    MINILM,
    ON_THE_CLUSTER,
    PERMUTED,
    SMOLLM2,
    packaged_folder,
    way_of,
    whole,
)
from models.model_names import PACKAGED as PACKAGED
from models.model_names import absent as absent
from models.model_names import card as card
from models.model_names import checkpoints as checkpoints
from models.model_names import knows as knows
from models.model_names import names as names
from models.model_names import spelled as spelled
from models.recording import Recording
from models.results import Attribution, Beam, Circuits, Lens, Neurons, SeededSampling
from models.shipped_models import without_earlier as without_earlier

if TYPE_CHECKING:
    from models import cluster, own_model
    from models.pretrained import hf_model
    from models.readouts.ffn import FFNActivations
    from models.readouts.gradients import Decay, Depth, Jacobian, ResidualGradients
    from models.readouts.patching import Sweep
    from models.readouts.weights import Norm

    Handle = own_model.OwnModel | hf_model.HFModel | cluster.ClusterModel
    Stamp = tuple[object, ...]


# What is inside a model beyond its recording, as a part of the one door: `models.registry` hands
# these on. Importing this module costs nothing, as there.


def neurons(
    handle: Any,
    recording: Recording,
    stream: str,
    layer: int,
    token: int,
    id: int,
    against: int | None = None,
) -> Neurons:
    """The hidden units of a layer's FFN by what they add to a word's logit at a token; with
    `against` to the difference to another word's."""
    from models.readouts import ffn

    expect_handle(handle)
    expect_recording_of(handle, recording, stream, token)
    return ffn.neurons(ours(handle), recording, stream, layer, token, id, against)


def circuits(
    handle: Any,
    attention: str,
    layer: int,
    head: int,
    ids: tuple[int, ...],
    values: np.ndarray | None = None,
) -> Circuits:
    """What a head's matrices make of words, each by itself: whom it looks for, and what it writes
    of it; with `values` (word, d_head) of these."""
    from models.readouts import circuits as circuits_readouts

    return circuits_readouts.circuits(ours(handle), attention, layer, head, ids, values)


def ours(handle: Any) -> own_model.OwnModel:
    """The handle, if it is of a model in our own classes. Raises ValueError where it is not."""
    from models import own_model

    if not isinstance(handle, own_model.OwnModel):
        raise ValueError(f"{handle.card.name} runs in its own code, which does not show this")
    return handle


def load(name: str, progress: Callable[[int, int], None] | None = None) -> Handle:
    """The model of that name, loaded. `progress(done_bytes, total_bytes)` is called while files are
    fetched.

    Raises ValueError, one sentence that says why and what to do, for a name that is not known and a
    model that cannot be used.
    """
    if name.startswith(ON_THE_CLUSTER):
        from models import cluster

        return cluster.load(name)
    if name.endswith(PERMUTED):
        from models.weight_shuffle import permuted

        whole_one = load(name.removesuffix(PERMUTED), progress)
        return permuted(cast("own_model.OwnModel | hf_model.HFModel", whole_one), name)
    where = name.partition(":")[2]
    if name == MINILM:
        from models.pretrained import weight_conversion

        return weight_conversion.load(packaged_folder(), MINILM)
    if name == SMOLLM2:
        from models.pretrained import weight_conversion

        return weight_conversion.load(smollm2.folder(), SMOLLM2)
    if name.startswith(IN_ITS_OWN_CODE):
        from models.pretrained import hf_model, sandbox

        where = str(packaged_folder()) if where == MINILM else where
        return sandbox.prove(hf_model.load(where, progress, name), name)
    if name.startswith(IN_OURS):
        from models.pretrained import hub, sandbox, weight_conversion

        return sandbox.prove(weight_conversion.load(hub.find(where, progress, name), name), name)
    from models import own_model

    return live_training.load(name) if live_training.is_live(name) else own_model.load(name)


def tried(
    where: str,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[str, Stamp | None]:
    """What `load` calls a Hugging Face model, after it was loaded and run once in a process of its
    own, under limits on time and memory; and the `stamp` of the files that were tried.

    `where`: its name on the hub or its folder, "hub:" before it for its own code, "ours:" for
    Headlight's classes. Files that are not here are fetched first. What a cluster serves is tried
    there. Raises ValueError, one sentence, for a model that cannot be used, and where `cancelled()`
    became true.
    """
    if where.startswith(ON_THE_CLUSTER):
        return where, None
    from models.pretrained import hub, model_files, sandbox

    way, where = way_of(where.strip())
    where = whole(where) if where else where
    folder = hub.locate(where, progress)
    looks = model_files.stamp(folder)
    return sandbox.tester.try_out(folder, where, way, cancelled) + where, looks


def stamp(name: str) -> Stamp | None:
    """How a Hugging Face model's files on this machine look now: another one when a file was
    written since. None for a model without files here."""
    from models.pretrained import model_files

    way, where = way_of(name)
    folder = model_files.here(where) if way else None
    return None if folder is None else model_files.stamp(folder)


def fetched() -> tuple[str, ...]:
    """Names of the hub's models whose files lie in this machine's cache of it."""
    from models.pretrained import hub

    return hub.fetched()


def families() -> list[dict[str, str]]:
    """A table of the Hugging Face families that are tried by the tests: what each shows of itself,
    and whether our own classes run it."""
    from models.pretrained import weight_conversion

    looks = {"encoder": "self", "decoder": "self, causal"}
    return [
        {
            "family": each.name,
            "kind": each.kind,
            "attention": looks.get(each.kind, "self, causal, cross"),
            "q, k, v and scores": "yes" if each.opens else "patterns alone",
            "residual stream": "every sub-layer" if each.law else "after each layer",
            "norms": each.norm,
            "positions": each.positions,
            "in Headlight’s own classes": "yes"
            if each.model_type in weight_conversion.CONVERSIONS
            else "",
            "example": each.example,
        }
        for each in weight_conversion.SUPPORTED_FAMILIES
    ]


def offers(handle: Handle | str) -> Capabilities:
    """What a loaded model shows of itself."""
    handle = _handle(handle)
    return _source(handle).offers(handle)


def _source(handle: Handle) -> Source:
    """The module that the handle was loaded by."""
    return cast("Source", import_module(handle.source))


def _handle(model: Handle | str) -> Handle:
    """The model itself, or the one of that name."""
    if isinstance(model, str):
        return load(model)
    expect_handle(model)
    return model


def _reads(model: Handle | str, recording: Recording, stream: str, token: int = 0) -> Handle:
    """The model, which made the recording, with this stream and token."""
    handle = _handle(model)
    expect_recording_of(handle, recording, stream, token)
    return handle


def record(
    handle: Handle | str,
    text: str,
    edits: Edit | tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """One forward pass of the model over the text under the edits, as a frozen Recording.

    handle: a loaded model; a name loads it each time anew. `target`: what a translator's decoder
    reads, as a text or as bare token ids; where None, what it would say itself. Raises ValueError
    for edits that the model or the text cannot follow.
    """
    handle = _handle(handle)
    expect_text(text)
    return _source(handle).record(handle, text, edits_of(edits), target)


def writing(handle: Handle | str, text: str, then: tuple[int, ...] = ()) -> TextGenerator:
    """A text in the making: of a decoder, going on from `text`; of a translator, its translation
    from the first word on. `then`: ids that were written already.

    Raises ValueError for a model that does not write, and for a text that leaves no room.
    """
    handle = _handle(handle)
    return _source(handle).writing(handle, text, then)


def beams(handle: Handle | str, text: str, how: int | SeededSampling) -> Iterator[tuple[Beam, ...]]:
    """Beam search for the translation of a text, one step at a time: the `how` many best hypotheses
    so far, best first, or the one that is drawn as `how` says. Raises ValueError for a model that
    translates nothing."""
    handle = _handle(handle)
    return _source(handle).beams(handle, text, how)


def lens(handle: Handle | str, recording: Recording, stream: str, top: int = 10) -> Lens:
    """What every state of a stream would say if it were the last: the logit lens."""
    handle = _reads(handle, recording, stream)
    return _source(handle).lens(handle, recording, stream, top)


def logits(handle: Handle | str, recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores over the vocabulary (id) at one token of a stream."""
    handle = _reads(handle, recording, stream, token)
    return _source(handle).logits(handle, recording, stream, token)


def attribute(
    handle: Handle | str,
    recording: Recording,
    stream: str,
    token: int,
    id: int,
    against: int | None = None,
) -> Attribution:
    """A word's logit at a token, taken apart into what each part of the model wrote; with `against`
    the difference to another word's."""
    handle = _reads(handle, recording, stream, token)
    return _source(handle).attribute(handle, recording, stream, token, id, against)


def nearest(handle: Handle | str, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words of the vocabulary whose embeddings come nearest to vectors (row, d_model), by
    cosine: ids and cosines, each (row, rank)."""
    handle = _handle(handle)
    return _source(handle).nearest(handle, vectors, top)


def norms(
    handle: Handle | str, stream: str, edits: Edit | tuple[Edit, ...] = ()
) -> dict[str, Norm]:
    """Every LayerNorm of a stream by its place, such as "0.attn": gain and bias (d_model), eps, and
    whether it subtracts the mean."""
    from models.readouts import weights

    return weights.norms(ours(_handle(handle)), stream, edits_of(edits))


def outputs(handle: Handle | str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """W_O of every attention by its label: cut by head, (layer, head, d_head, d_model), and its
    bias (layer, d_model)."""
    from models.readouts import weights

    return weights.outputs(ours(_handle(handle)))


def highway(
    handle: Handle | str, recording: Recording, stream: str, token: int
) -> ResidualGradients:
    """The gradient of the likeliest word's logit at a token, back to every state of a stream, with
    residual and LayerNorm and without; of a model in its own code as it is alone."""
    handle = _reads(handle, recording, stream, token)
    return _source(handle).highway(handle, recording, stream, token)


def jacobian(
    handle: Handle | str, recording: Recording, stream: str, token: int, site: str
) -> Jacobian:
    """The Jacobians of a sub-layer, such as "0.attn", at one token: of what it writes, of the sum,
    and after its LayerNorm."""
    from models.readouts import gradients

    handle = _reads(handle, recording, stream, token)
    return gradients.jacobian(ours(handle), recording, stream, token, site)


def depth(vectors: np.ndarray) -> Depth:
    """The gradient at every layer of a deep stack with random weights on embeddings (token,
    d_model), with residual connections and without."""
    from models.readouts import gradients

    return gradients.depth(vectors)


def inside(
    handle: Handle | str, recording: Recording, stream: str, layer: int, token: int
) -> FFNActivations:
    """The hidden units of a layer's feed-forward network at one token, and what each of them
    writes."""
    from models.readouts import ffn

    handle = _reads(handle, recording, stream, token)
    return ffn.ffn_activations(ours(handle), recording, stream, layer, token)


def sweep_heads(
    handle: Handle | str,
    text: str,
    donor: str,
    attention: str,
    token: int,
    id: int,
    against: int,
    edits: Edit | tuple[Edit, ...] = (),
) -> Sweep:
    """Every head of an attention in turn taken from the run of another text, and what that does to
    logit(id) - logit(against) at a token."""
    from models.readouts import patching

    where = attention, token, id, against
    return patching.heads(ours(_handle(handle)), text, donor, *where, edits_of(edits))


def sweep_sites(
    handle: Handle | str,
    text: str,
    donor: str,
    stream: str,
    token: int,
    id: int,
    against: int,
    edits: Edit | tuple[Edit, ...] = (),
) -> Sweep:
    """Every state of a stream at every token in turn taken from the run of another text, and what
    that does to the same difference."""
    from models.readouts import patching

    where = stream, token, id, against
    return patching.sites(ours(_handle(handle)), text, donor, *where, edits_of(edits))


def decay(ids: Iterable[int], lag: int) -> Iterator[Decay]:
    """An RNN, an LSTM and a small Transformer learning side by side to say the token `lag` back:
    gradients by distance, as it goes on."""
    from models.readouts import gradients

    return gradients.decay(tuple(ids), lag)


def longest_lag(n: int) -> int:
    """The largest lag that `decay` takes for a text of n tokens; 0 where the text is too short."""
    from models.readouts import gradients

    return gradients.longest_lag(n)


def embeddings(handle: Handle | str) -> np.ndarray:
    """Every word's embedding as the stream begins with it, (id, d_model): of our own models times
    sqrt(d_model)."""
    from models import own_model

    return own_model.embeddings(ours(_handle(handle)))


def labels(handle: Handle | str, ids: Iterable[int]) -> list[str]:
    """Tokens of the vocabulary as a person reads them."""
    tokenizer = _handle(handle).tokenizer
    return [tokenizer.label(int(token)) for token in ids]
