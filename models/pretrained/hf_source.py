"""Any Hugging Face model of text, in its own code, as a source of Recordings.

`hf_model.load` fetches a model by its name on the hub or from a folder, and tries it on a short
text to find its capabilities (`probing.py`). `record` runs it and makes the same Recording as for
our own models: streams, attentions, and q, k, v and scores wherever the model lets its attention be
computed by a function from outside (`hooks.py`), which most families do.

Edits that change attention alone, the text, or states work here, and paths between heads where the
model is pre-LN; those that change the architecture need Headlight's own classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from models.contract import path_integral
from models.contract.arrays import Numbers
from models.contract.cancellation import checkpoint
from models.contract.capabilities import READ_OFF, Capabilities
from models.contract.edit_validation import check_places, path_error
from models.contract.edits import (
    KINDS,
    CutPath,
    Edit,
    HeadEdit,
    HideToken,
    HideWord,
    PatchHead,
    PatchPath,
    PatchSite,
    PathEdit,
    SetHead,
    SetSite,
    ShuffleTokens,
    StreamEdit,
    WithoutScale,
    edited,
    place_of,
)
from models.contract.notices import tell, tell_cut
from models.contract.recording import Attention, NotFinite, NotFollowed, Recording, Stream, from_end
from models.contract.results import Attribution, Beam, Lens, Part, ResidualGradients, SeededSampling
from models.contract.spelling import there_are
from models.model_names import HUB_PREFIX, MINE_PREFIX, OURS_PREFIX
from models.network import buffer_pool
from models.network.edit_ops import (
    expect_followed,
    expect_tokens,
    mask_tokens,
    of_text,
    shuffle_tokens,
)
from models.network.generation import expect_room
from models.network.layers import Patches, SitePatches
from models.network.own_model import clean, read_text
from models.pretrained import hf_model, model_files, weight_conversion
from models.pretrained.config_mapping import MOST_BYTES_OF_PATTERNS
from models.pretrained.hf_model import (
    HFGeneration,
    HFModel,
    attentions_of,
    begin_ids,
    broken_off,
    class_head_of,
    expect_finite,
    expect_readout,
    inputs_of,
    no_class_head,
    no_readout,
    not_followed_on,
    readout_of,
    stream_of,
    target_of,
    version_of,
)
from models.pretrained.hf_model import beams as search_of
from models.pretrained.hooks import ForwardPass, HookPoint
from models.pretrained.machine_limits import free_memory, size_text
from models.pretrained.path_edits import OWN_CLASSES, CutPaths, supports_paths
from models.pretrained.probing import (
    StreamPlan,
    embedding_matrix,
    nearly_equal,
    patterns_of,
    vectors_of_one,
)
from models.pretrained.site_edits import after, changes_of, expect_carried
from models.pretrained.weight_conversion import CONVERSIONS
from models.readouts import logit_lens
from models.readouts.gradients import Place, Slopes, gradients_by, states_after
from models.readouts.logit_lens import BIAS, Linearization, PartKey, lens_of, states
from models.readouts.patching import expect_asked, own_edits
from models.tokens.tokenizer import Tokens

if TYPE_CHECKING:
    from transformers.utils import ModelOutput

__all__ = [
    "attribute",
    "beams",
    "class_attribution",
    "class_logits",
    "class_parts",
    "gradients",
    "integrated",
    "lens",
    "logits",
    "nearest",
    "capabilities",
    "record",
    "slopes",
    "generate",
]


@torch.inference_mode()
def record(
    model: HFModel,
    text: str | tuple[int, ...],
    edits: tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """One forward pass over the text, recorded, as `models.network.own_model.record` does it.

    For a model that reads one text and writes another, `target` is what its decoder reads, as a
    text or as bare token ids; None stands for the model's own answer, the likeliest token each
    time. Raises ValueError for an edit that cannot be honoured on a model in its own code, and
    NotFinite where an edit makes numbers overflow.
    """
    edits = tuple(edits)
    _check(model, edits)
    has_decoder = model.start is not None
    if target is not None and not has_decoder:
        raise ValueError(
            f"{model.card.name} reads one text alone, so there is no target to give it"
        )
    masks = model.card.kind == "encoder"
    reading = read_text(model, text, lambda each: model.tokens(each, masks))
    tokens = reading.tokens
    _expect_room(model, len(tokens.ids))
    lengths: dict[str, int | None] = {model.plan.streams[0].name: len(tokens.ids)}
    if model.reads_twice:
        lengths["decoder"] = len(tokens.ids)
    elif has_decoder and target is None:
        lengths["decoder"] = None
        if any(isinstance(edit, StreamEdit) for edit in edits):
            raise ValueError(
                f"{model.card.name} writes its own text without such an edit; give the target"
            )
    texts = {model.plan.streams[0].name: (tokens, reading.text)}
    edits = of_text(edits, lengths, texts)
    tokens = shuffle_tokens(tokens, edits)
    if model.tokenizer.mask is not None:
        tokens = mask_tokens(
            tokens, edits, model.tokenizer.mask, model.tokenizer.label(model.tokenizer.mask)
        )
    _expect_embedded(model, tokens)
    stream_tokens, target_text, target_dropped = [tokens], "", 0
    if has_decoder:
        read = replace(reading, tokens=tokens)
        decoded, target_text, target_dropped = target_of(model, read, edits, target)
        stream_tokens.append(decoded)
        lengths["decoder"] = len(decoded.ids)
        edits = of_text(edits, lengths, texts)
    expect_tokens(edits, lengths)
    inputs = inputs_of(model, *(each.ids for each in stream_tokens))
    trace = forward_pass(model, edits)
    # Before the lock, for which others wait with memory of their own.
    buffer_pool.make_room(recorded_bytes(model, [len(each.ids) for each in stream_tokens]))
    try:
        with model.passing(trace):
            output = model.network(
                **inputs,
                use_cache=False,
                **({} if model.plan.opens else {"output_attentions": True}),
            )
    except (RuntimeError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise broken_off(model, inputs, error) from error
    streams, attention = _read_off(model, trace, output, stream_tokens)
    expect_followed(edits, streams)
    expect_carried(edits, model.plan.streams, streams, model.card.name)
    return Recording(
        model.card,
        reading.text,
        edits,
        streams,
        attention,
        reading.dropped,
        target_text,
        target_dropped,
        reading.as_ids,
    )


def recorded_bytes(model: HFModel, lengths: list[int]) -> int:
    """The bytes of a recorded pass over streams of so many tokens, about: the tensors of the pass,
    the arrays that they are copied to, and the scores of the words."""
    card, plan = model.card, model.plan
    states = sum(len(each.sites) * n * each.d_model for each, n in zip(plan.streams, lengths))
    queries, keys = max(lengths), max(lengths[0], lengths[-1])
    heads = sum(plan.n_layer.values()) * card.n_head * queries
    return 4 * (2 * states + heads * (2 * keys + 3 * card.d_head) + queries * card.n_vocab)


def _expect_embedded(model: HFModel, tokens: Tokens) -> None:
    """Raises ValueError for a token that a tokenizer has and the model has no embedding of."""
    at = max(range(len(tokens.ids)), key=tokens.ids.__getitem__)
    if tokens.ids[at] >= model.card.n_vocab:
        raise ValueError(
            f"{model.card.name} has embeddings of {model.card.n_vocab:,} tokens, and its tokenizer "
            f"gives {tokens.labels[at]!r} the id {tokens.ids[at]:,}; wrap it with its own tokenizer"
        )


def _read_off(
    model: HFModel, trace: ForwardPass, output: ModelOutput, tokens: list[Tokens]
) -> tuple[tuple[Stream, ...], tuple[Attention, ...]]:
    """The streams and attentions of a pass that was heard. Raises NotFinite, and NotFollowed where
    it gave other than on the trial."""
    try:
        streams = tuple(
            stream_of(plan, trace, each) for plan, each in zip(model.plan.streams, tokens)
        )
        expect_finite(trace, streams)
        return streams, attentions_of(model.plan, trace, output, streams)
    except NotFinite:
        raise
    except (ValueError, RuntimeError, LookupError, TypeError) as error:
        raise NotFollowed(not_followed_on(model, len(tokens[0].ids), error)) from error


def _expect_room(model: HFModel, n: int) -> None:
    """Raises ValueError where scores and patterns of n tokens are more than is free: of a network
    in memory a text is as long as it has positions. Warns where its weights have changed."""
    if model.version not in (None, version_of(model.network)):
        tell(
            f"the weights of {model.card.name} have changed since it was wrapped, and its name and "
            "digest have not; wrap it again"
        )
    need = 8 * model.plan.n_head * sum(model.plan.n_layer.values()) * n * n
    free = free_memory() if need > MOST_BYTES_OF_PATTERNS else None
    if free is not None and need > free:
        raise ValueError(
            f"a recording of {n:,} tokens of {model.card.name} takes {size_text(need)} of memory, "
            f"and {size_text(free)} are free; shorten the text"
        )


def forward_pass(model: HFModel, edits: tuple[Edit, ...]) -> ForwardPass:
    """A pass that is recorded, under edits. Raises ValueError for a site that cannot be edited."""
    plan, name = model.plan, model.card.name
    others = tuple(edit for edit in edits if not edit.borrows)
    donor = cache(lambda text: record(model, text, others))
    lent = tuple(_lent(edit, donor) if edit.borrows else edit for edit in edits)
    changes = changes_of(plan.streams, lent, name)
    made = ForwardPass(plan.attentions, plan.n_layer, lent, changes)
    if any(isinstance(edit, PathEdit) for edit in edits):
        z_of = lambda edit: torch.tensor(_z(donor(edit.text), edit))
        made.paths = CutPaths(plan.streams[0], edits, name, z_of)
        for place, change in made.paths.changes():
            changes[place.key] = after(changes.get(place.key), change)
    return made


def _lent(edit: Edit, donor: Callable[[str], Recording]) -> Edit:
    """A patch as the edit that puts in what stands there when the donor's text is read."""
    if isinstance(edit, PatchHead):
        return SetHead(Numbers(_z(donor(edit.text), edit)), edit.layer, edit.head, edit.attention)
    if not isinstance(edit, PatchSite):
        return edit
    streams = donor(edit.text).streams
    stream = next((each for each in streams if edit.stream in (None, each.name)), None)
    if stream is None or edit.site not in stream.sites:
        if stream is None:
            there = there_are(str(edit.stream), (each.name for each in streams))
            raise ValueError(f"{edit}: no stream {edit.stream!r}; {there}")
        there = there_are(edit.site, stream.sites)
        raise ValueError(f"{edit}: no site {edit.site!r} of stream {stream.name}; {there}")
    if edit.token is not None and not 0 <= edit.token < len(stream.tokens):
        raise ValueError(f"{edit}: the other text has tokens 0 to {len(stream.tokens) - 1} there")
    return SetSite(Numbers(stream.at(edit.site)), edit.site, edit.token, edit.stream)


def _z(recording: Recording, edit: HeadEdit | PatchPath) -> np.ndarray:
    """A head's output in a recording, (query, d_head)."""
    attention = next(each for each in recording.attention if each.name == edit.attention)
    z = attention.pattern[edit.layer, edit.head] @ attention.v[edit.layer, edit.head]
    place = place_of(edit.attention, edit.layer, "z")
    return np.asarray(edited(z, recording.edits, place, edit.head))


class PatchRun:
    """The two texts' runs of a sweep of patches, and the first one run anew with something put in,
    several at once, as `models.readouts.patching.OwnRun`."""

    def __init__(
        self,
        model: HFModel,
        text: str,
        donor: str,
        edits: tuple[Edit, ...],
        token: int,
        id: int,
        against: int,
    ) -> None:
        self.model, self.ids = model, [id, against]
        others = own_edits(edits)
        recording, self._donor = record(model, text, others), record(model, donor, others)
        expect_readout(model, recording.streams[-1].name)
        self.edits, self.text = recording.edits, recording
        self.token = expect_asked(model.card, recording, token, self.ids)
        self.sites = {
            each.name: tuple(site for site in states(each) if self._is_one(each.name, site))
            for each in recording.streams
        }
        self.n_tokens = {each.name: len(each.tokens) for each in recording.streams}
        self.clean, self.donor = self._difference(recording), self._difference(self._donor)

    def _is_one(self, stream: str, site: str) -> bool:
        """True where a site is one tensor of the model's code, which can be changed."""
        try:
            changes_of(self.model.plan.streams, (SitePatches(site, (), stream),), "")
        except ValueError:
            return False
        return True

    def _difference(self, recording: Recording) -> float:
        stream = recording.streams[-1]
        found = logits(self.model, recording, stream.name, min(self.token, len(stream.tokens) - 1))
        return float(found[self.ids[0]] - found[self.ids[1]])

    def n_layer(self, attention: str) -> int:
        """The number of layers of an attention."""
        return self.model.plan.n_layer[attention]

    def stream_of(self, attention: str) -> str:
        """The stream that an attention writes into."""
        return next(each.query for each in self.text.attention if each.name == attention)

    def heads(self, attention: str, layer: int) -> Tensor:
        """The donor's z in a layer of an attention, (head, token, d_head)."""
        heads = (PatchHead("", layer, head, attention) for head in range(self.model.card.n_head))
        return torch.tensor(np.stack([_z(self._donor, each) for each in heads]))

    def vectors(self, stream: str, site: str) -> Tensor | None:
        """The donor's vectors at a site, (token, d_model), None where it has none there."""
        found = self._donor.stream(stream)
        return torch.tensor(found.at(site)) if site in found.sites else None

    @torch.inference_mode()
    def differences(self, stream: str, layer: int | None, patches: Patches) -> list[float]:
        """The difference of the logits with each of several patches put into a stream."""
        n = len(patches.patches)
        inputs = {
            name: each.expand(n, -1)
            for name, each in inputs_of(self.model, *(of.ids for of in self.text.streams)).items()
        }
        with self.model.passing(forward_pass(self.model, (*self.edits, patches))):
            output = self.model.network(**inputs, use_cache=False)
        scores = output.logits[:, self.token, self.ids].float()
        return (scores[:, 0] - scores[:, 1]).tolist()


patch_run = PatchRun


@torch.inference_mode()
def logits(model: HFModel, recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores (id) over the vocabulary at one token of a stream, by its own readout.
    Raises ValueError where it has none there."""
    expect_readout(model, stream)
    last = torch.tensor(recording.stream(stream).resid[-1, token])
    return hf_model.readout(model, last[None].to(embedding_matrix(model.network).dtype))[0].numpy()


@torch.inference_mode()
def class_logits(model: HFModel, recording: Recording) -> np.ndarray:
    """Scores of the classes of a recorded text, (class), by the model's own head: the pass once
    more, under the recording's edits."""
    trace = forward_pass(model, recording.edits)
    inputs = inputs_of(model, *(each.ids for each in recording.streams))
    with model.passing(trace):
        return model.network(**inputs).logits[0].numpy()


@torch.inference_mode()
def lens(
    model: HFModel,
    recording: Recording,
    stream: str,
    top: int = 10,
    token: int | None = None,
    sites: tuple[str, ...] | None = None,
    ids: tuple[int, ...] = (),
) -> Lens:
    """The logit lens on every state of a stream, of one token alone where it is given, and of some
    sites and the last where these are: the model's last LayerNorm, where it has one, and its own
    readout, as if the state were the last. ids: as `Lens.ids`.

    Raises ValueError for a stream that the readout does not read.
    """
    expect_readout(model, stream)
    target_stream, norm = recording.stream(stream).only(token), model.plan.streams[-1].final_norm
    dtype = embedding_matrix(model.network).dtype

    def vectors_at(site: str, rows: slice) -> Tensor:
        vectors = torch.tensor(target_stream.at(site)[rows]).to(dtype)
        return vectors if norm is None or site == "final.normed" else norm(vectors)

    return lens_of(
        stream,
        states(target_stream, sites),
        (len(target_stream.tokens), model.card.n_vocab),
        vectors_at,
        lambda vectors: hf_model.readout(model, vectors),
        top,
        ids,
    )


def capabilities(model: HFModel) -> Capabilities:
    """The capabilities of a loaded model, as the survey found them."""
    plan = model.plan
    hides = model.tokenizer.mask is not None and not plan.causal
    always = (ShuffleTokens, HideToken) if hides else (ShuffleTokens,)
    width = embedding_matrix(model.network).shape[1]
    head = class_head_of(model)
    return Capabilities(
        kind=model.card.kind,
        attention=tuple(plan.n_layer),
        opens=plan.opens,
        scale=plan.scale,
        biased=plan.biased,
        bound=plan.bound,
        sites={each.name: tuple(site for site, _ in each.sites) for each in plan.streams},
        law=all(stream.law for stream in plan.streams),
        norm=plan.streams[0].norm,
        positions=plan.positions,
        logits=plan.streams[-1].name if plan.lm_head_input is not None else "",
        edits=(
            *always,
            *(
                each
                for each in KINDS.values()
                if each.in_any_code and (plan.opens or issubclass(each, StreamEdit))
            ),
            *((PatchSite, PatchHead) if plan.opens else (PatchSite,)),
            *((HideWord,) if plan.hides_words else ()),
            *((CutPath, PatchPath) if supports_paths(plan) else ()),
        ),
        weights=False,
        classes=hf_model.classes_of(model),
        pooler="" if head is None else head.name,
        multi_label=model.network.config.problem_type == "multi_label_classification",
        no_parts=missing(model),
        no_readout=hf_model.no_readout(model),
        mask=model.tokenizer.mask_name if model.card.kind == "encoder" else "",
        writes=plan.lm_head_input is not None and model.card.kind != "encoder",
        languages=() if model.languages is None else tuple(model.languages.ids),
        source="" if model.languages is None else model.languages.source,
        target="" if model.languages is None else model.languages.target,
        rms=not centres(plan.streams[-1].final_norm),
        embedding_width=None if width == model.card.d_model else width,
        widened_normed=plan.streams[0].narrow_norm is not None,
    )


def nearest(model: HFModel, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words whose embeddings come nearest to vectors (row, d_model), by cosine; narrow ones
    through the matrix whose output the stream begins with, where there is one."""
    words = embedding_matrix(model.network).detach()
    if words.shape[1] != model.card.d_model and (widen := _widening(model, words.shape[1])):
        words = words @ widen.weight.detach().T
    return logit_lens.nearest(words, torch.linalg.vector_norm(words, dim=-1), vectors, top)


def _widening(model: HFModel, width: int) -> nn.Linear | None:
    """The matrix whose output is the first state of the stream, None where that is another's."""
    _, ((place, factor), *more) = model.plan.streams[0].sites[0]
    module = place.module
    if not isinstance(module, nn.Linear) or more or factor != 1 or place.side != "out":
        return None
    return module if module.in_features == width else None


def generate(
    model: HFModel, text: str, then: tuple[int, ...] = (), edits: tuple[Edit, ...] = ()
) -> HFGeneration:
    """A text in the making, as `Model.generate`, by the model's own code."""
    card = model.card
    if card.kind == "encoder":
        raise ValueError(f"{card.name} fills masked words and does not write")
    expect_readout(model, model.plan.streams[-1].name)
    tokens, dropped = model.tokens(clean(text))
    if model.start is not None:
        tell_cut(card.name, card.n_positions, tokens.ids, dropped)
        expect_room(card, len(then), 0)
        ids = [model.start, *then] if then else list(begin_ids(model))
        tokens, trace = _writing_under(model, text, tokens, edits)
        return HFGeneration(model, ids, list(tokens.ids), trace)
    expect_room(card, len(tokens.ids) + len(then), dropped)
    tokens, trace = _writing_under(model, text, tokens, edits)
    return HFGeneration(model, [*tokens.ids, *then], None, trace)


def _writing_under(
    model: HFModel, text: str, tokens: Tokens, edits: tuple[Edit, ...]
) -> tuple[Tokens, ForwardPass]:
    """A text as it is read under edits, and the pass of which each step of what is written has a
    copy. Raises ValueError for an edit that the model cannot follow."""
    _check(model, edits)
    lengths: dict[str, int | None] = {model.plan.streams[0].name: len(tokens.ids)}
    if model.start is not None:
        lengths["decoder"] = None
    edits = of_text(edits, lengths, {model.plan.streams[0].name: (tokens, clean(text))})
    expect_tokens(edits, {**lengths, [*lengths][-1]: None})
    return shuffle_tokens(tokens, edits), forward_pass(model, edits)


def beams(
    model: HFModel, text: str, how: int | SeededSampling, edits: tuple[Edit, ...] = ()
) -> Iterator[tuple[Beam, ...]]:
    """Beam search for the translation of a text, as `Model.beams`, by the model's own code."""
    if model.start is None:
        raise ValueError(f"{model.card.name} writes no translation")
    expect_readout(model, model.plan.streams[-1].name)
    tokens, dropped = model.tokens(clean(text))
    tell_cut(model.card.name, model.card.n_positions, tokens.ids, dropped)
    tokens, trace = _writing_under(model, text, tokens, edits)
    return search_of(model, list(tokens.ids), how, trace)


def _check(model: HFModel, edits: tuple[Edit, ...]) -> None:
    card, supported = model.card, capabilities(model).edits
    check_places(edits, card, model.plan.n_layer)
    for edit in edits:
        if isinstance(edit, HideToken) and HideToken not in supported:
            raise ValueError(
                f"{card.name} fills no masked words, so no token can be hidden from it"
            )
        if isinstance(edit, HideWord) and model.plan.opens and HideWord not in supported:
            raise ValueError(
                f"“{edit}”: not attention alone carries words to others in {card.name}, so none "
                "can be taken out"
            )
        if isinstance(edit, PathEdit) and CutPath not in supported:
            raise ValueError(
                f"“{edit}”: the attention of {card.name} reads its stream otherwise than through "
                f"a norm, or its code does not show what each sub-layer writes; {OWN_CLASSES}"
            )
        if isinstance(edit, PathEdit) and (error := path_error(edit, card)):
            raise ValueError(error)
        if not isinstance(edit, supported):
            raise ValueError(
                f"“{edit}”: this edit needs the model to run in Headlight's own classes"
            )
        if isinstance(edit, WithoutScale) and model.plan.scale == 1.0:
            raise ValueError(
                f"{card.name} multiplies q · k by nothing, so there is no scale to take away"
            )


# The gradient of a logit back through a Hugging Face model's own code.


def gradients(
    model: HFModel,
    recording: Recording,
    stream: str,
    token: int,
    id: int | None,
    against: int | None,
    sites: tuple[str, ...],
    attention: str,
) -> ResidualGradients:
    """The gradient of a word's logit at a token of the last stream, as `Model.gradients`, by
    automatic differentiation of the model's own code.

    Raises ValueError for a model without a readout, and where a state is no part of what the logit
    was computed from.
    """
    expect_readout(model, recording.streams[-1].name)
    plan = next(each for each in model.plan.streams if each.name == stream)
    after = {
        name if name[0].isdecimal() else "embed+pos": site
        for name, site in states_after(recording.stream(stream)).items()
        if len(dict(plan.sites)[site]) == 1
    }
    ask = partial(slopes, model, recording, token, id, against)
    return gradients_by(ask, recording, (stream, token, against), after, sites, attention)


def slopes(
    model: HFModel,
    recording: Recording,
    token: int,
    id: int | None,
    against: int | None,
    places: tuple[Place, ...],
) -> Slopes:
    """Gradients by place, as `models.readouts.gradients.slopes`."""
    inputs = inputs_of(model, *(each.ids for each in recording.streams))
    shown = {} if model.plan.opens else {"output_attentions": True}
    trace = replace(forward_pass(model, recording.edits), graph={})
    checkpoint()
    with torch.enable_grad(), model.passing(trace), _followed(model.network):
        output = model.network(**inputs, use_cache=False, **shown)
        scores = output.logits[0, token]
        checkpoint()
        word = int(scores.argmax()) if id is None else id
        value = scores[word] if against is None else scores[word] - scores[against]
        tensors = {place: _tensor_at(model, trace, output, place) for place in places}
        grads = torch.autograd.grad(value, list(tensors.values()), allow_unused=True)
    if any(each is None for each in grads):
        raise ValueError(f"{model.card.name} does not let its states be followed back")
    found = {}
    for (place, tensor), grad in zip(tensors.items(), grads):
        one, slope = tensor.detach(), grad
        if len(place) == 2:
            factor = _source_at(model, place)[1]
            one, slope = vectors_of_one(one) * factor, vectors_of_one(slope) / factor
        else:
            one, slope = one[0], slope[0]
        found[place] = one.float().numpy(), slope.float().numpy()
    return word, value.item(), found


@contextmanager
def _followed(network: Any) -> Iterator[None]:
    """Inside, gradients go back to the embeddings also of a network whose weights are frozen."""

    def follow(module: nn.Module, arguments: object, output: Tensor) -> None:
        if not output.requires_grad:
            output.requires_grad_()

    hook = network.get_input_embeddings().register_forward_hook(follow)
    try:
        yield
    finally:
        hook.remove()


def _tensor_at(model: HFModel, trace: ForwardPass, output: Any, place: Place) -> Tensor:
    """The tensor of a pass at a place."""
    if len(place) == 2:
        return trace.places[_source_at(model, place)[0].key]
    attention, layer, kind = place
    if trace.graph:
        return trace.graph[attention, layer, kind]
    if kind != "pattern":
        raise ValueError(f"the code of {model.card.name} shows weights of attention alone")
    return list(patterns_of(output)[attention])[layer]


def _source_at(model: HFModel, place: tuple[str, str]) -> tuple[HookPoint, float]:
    """The hook of a site of a stream, and its factor. Raises ValueError for a sum of several."""
    stream, site = place
    plan = next(each for each in model.plan.streams if each.name == stream)
    source, *more = dict(plan.sites)[site]
    if more:
        raise ValueError(f"{model.card.name} has no one tensor at {site}")
    return source


def integrated(
    model: HFModel,
    recording: Recording,
    stream: str,
    of: tuple[int, int | None, int | None],
    steps: int,
    begin: tuple[int, ...] | None,
) -> tuple[np.ndarray, float]:
    """Integrated gradients of a word's logit, as `models.readouts.gradients.integrated`, from
    embeddings of words; what is added to these, such as positions, is there from the start.

    Raises ValueError also for a model that reads one text and writes another."""
    expect_readout(model, stream)
    token, id, against = of
    row = lambda scores: _less(scores[0, token], against)
    return _integrated(model, recording, row, id, steps, begin)


def class_attribution(
    model: HFModel,
    recording: Recording,
    of: tuple[int, int | None],
    steps: int,
    begin: tuple[int, ...] | None,
) -> tuple[np.ndarray, float]:
    """Integrated gradients of a class's score, (token), as `Model.class_attribution`, and the score
    less the one at the embeddings of the ids to `begin` with. of: the class and the other."""
    id, against = of
    row = lambda scores: _less(scores[0], against)
    if model.reads_twice:
        return _integrated_twice(model, recording, row, id, steps, begin)
    return _integrated(model, recording, row, id, steps, begin)


def _less(scores: Tensor, against: int | None) -> Tensor:
    return scores if against is None else scores - scores[against]


@torch.no_grad()
def _embedded(embeddings: nn.Module, ids: tuple[int, ...] | None) -> Tensor | float:
    """The embeddings of ids, (1, token, d_model), 0 for none."""
    return 0.0 if ids is None else embeddings(torch.tensor(ids)[None])


def _integrated_twice(
    model: HFModel,
    recording: Recording,
    row: Callable[[Tensor], Tensor],
    id: int,
    steps: int,
    begin: tuple[int, ...] | None,
) -> tuple[np.ndarray, float]:
    """As `_integrated`, of a model whose decoder reads the text too: a token's share is that of
    both places where it is read, and the token that the decoder begins with stays."""
    body: Any = model.network.base_model
    places = [each.get_input_embeddings() for each in (body.get_encoder(), body.get_decoder())]
    ids = [torch.tensor(each.ids)[None] for each in recording.streams]
    again = None if begin is None else (int(ids[1][0, 0]), *begin[:-1])
    firsts = [_embedded(of, each) for of, each in zip(places, (begin, again))]
    share, ways, starts = 1.0, list[Tensor](), list[Tensor]()

    def scale(module: nn.Module, arguments: object, output: Tensor) -> Tensor:
        factor = torch.full_like(output[..., :1], share)
        if starts:  # the decoder's, after the encoder's
            factor[:, 0] = 1.0
        first = firsts[len(starts)]
        ways.append((output - first).detach())
        starts.append((first + ways[-1] * factor).requires_grad_())
        return starts[-1]

    def score() -> Tensor:
        ways.clear()
        starts.clear()
        checkpoint()
        with model.passing(forward_pass(model, recording.edits)):
            hooks = [each.register_forward_hook(scale) for each in {*places}]
            try:
                return row(model.network(input_ids=ids[0], decoder_input_ids=ids[1]).logits)[id]
            finally:
                for each in hooks:
                    each.remove()

    def slopes(place: float) -> tuple[float, np.ndarray]:
        nonlocal share
        share = place
        value = score()
        slope, of_decoder = (
            (gradient * way)[0].sum(-1).numpy()
            for gradient, way in zip(torch.autograd.grad(value, starts), ways)
        )
        slope[:-1] += of_decoder[1:]
        return float(value.detach()), slope

    with torch.enable_grad():
        return path_integral.shares_of(path_integral.one_by_one(slopes), steps)


def _integrated(
    model: HFModel,
    recording: Recording,
    row: Callable[[Tensor], Tensor],
    id: int | None,
    steps: int,
    begin: tuple[int, ...] | None,
) -> tuple[np.ndarray, float]:
    """Integrated gradients of a score from the embeddings of the ids to `begin` with, or 0,
    (token), and the score less the one there. row: of the model's scores those of which one is
    followed; id: which, the largest where None."""
    if model.start is not None:
        raise ValueError(f"{model.card.name} reads one text and writes another in its own code")
    inputs = inputs_of(model, recording.streams[0].ids)
    embeddings = model.network.get_input_embeddings()
    first = _embedded(embeddings, begin)
    share, way, start = 1.0, torch.zeros(0), torch.zeros(0)

    def scale(module: nn.Module, arguments: object, output: Tensor) -> Tensor:
        nonlocal way, start
        from_there = first if isinstance(first, float) else first.reshape(output.shape)
        way = (output - from_there).detach()
        start = (from_there + way * share).requires_grad_()
        return start

    def scores(place: float) -> Tensor:
        nonlocal share
        checkpoint()
        share = place
        with model.passing(forward_pass(model, recording.edits)):
            hook = embeddings.register_forward_hook(scale)
            try:
                return row(model.network(**inputs).logits)
            finally:
                hook.remove()

    with torch.no_grad():
        last = scores(1.0)
    if id is not None and not 0 <= id < len(last):
        raise ValueError(f"there are scores 0 to {len(last) - 1}, and none {id}")
    of = int(last.argmax()) if id is None else id

    def slopes(place: float) -> tuple[float, np.ndarray]:
        with torch.enable_grad():
            score = scores(place)[of]
            (gradient,) = torch.autograd.grad(score, start)
        # (text, token, d_model), or (token, text, d_model) of one text
        return score.item(), (gradient * way).sum(-1).flatten().numpy()

    return path_integral.shares_of(path_integral.one_by_one(slopes), steps)


# A LayerNorm of any kind, in a model's own code, held at the spread it has on one vector.

Linear = Callable[[Tensor], Tensor]


def linearize_norm(norm: nn.Module, total: Tensor) -> tuple[Linear, Tensor] | None:
    """A norm at `total` (d_model, float64) as a linear map of vectors (..., d_model), and its bias.
    None where it is no norm of a known kind.

    LayerNorm centres and RMSNorm does not, and a gain may be stored as it is or less 1: which it is
    here is measured, since norm(x) = gain (x - centre(x)) / sigma + bias and norm(-x) has the same
    bias."""
    gain = getattr(norm, "weight", None)
    if not isinstance(gain, Tensor) or gain.shape != total.shape:
        return None
    kind = gain.dtype
    positive, negative = (norm(sign * total.to(kind)[None])[0].double() for sign in (1, -1))
    bias, linear_part = (positive + negative) / 2, (positive - negative) / 2
    for centres in (True, False):
        for gain_offset in (0.0, 1.0):
            scaled = (gain.double() + gain_offset) * _centred(total, centres)
            sigma = scaled.norm() / linear_part.norm()
            if torch.isfinite(sigma) and nearly_equal(scaled / sigma, linear_part):
                return _map(gain.double() + gain_offset, centres, sigma), bias
    return None


def _map(gain: Tensor, centres: bool, sigma: Tensor) -> Linear:
    return lambda rows: gain * _centred(rows, centres) / sigma


def _centred(rows: Tensor, centres: bool) -> Tensor:
    return rows - rows.mean(-1, keepdim=True) if centres else rows


@torch.inference_mode()
def centres(norm: nn.Module | None) -> bool:
    """True for a norm that subtracts the mean: a number added to every component changes nothing.
    Where there is none, True."""
    weight = getattr(norm, "weight", None)
    if norm is None or not isinstance(weight, Tensor):
        return True
    x = torch.linspace(-1, 2, len(weight), dtype=weight.dtype)[None]
    return nearly_equal(norm(x + 1), norm(x))


# What its own code shows in the place of what is read off weights.
INSTEAD = {
    "weights": "its tensors are model.network’s",
    "gradients": "model.gradients shows those of its states",
    "logit_lens": "model.attribute shows what each head brings in all",
    "score_parts": "recording.attention has the scores, queries and keys",
    "ffn": "model.attribute shows what each FFN brings in all",
    "circuits": "its tensors are model.network’s",
    "training_step": "torch’s optimisers train a copy of model.network",
}


def hidden(model: HFModel, readout: str) -> str:
    """Error message for what is read off weights: it is not shown, and where it is."""
    name, location = model.name, model.name.removeprefix(HUB_PREFIX)
    why = f"{name} runs in its own code, which does not show {READ_OFF[readout]}"
    folder = model_files.local_folder(location) if location != name else None
    if folder is not None and weight_conversion.covers(folder):
        return f"{why}; load {OURS_PREFIX}{location}, whose classes do"
    if name.startswith(MINE_PREFIX) and model.network.config.model_type in CONVERSIONS:
        return f"{why}; save it with save_pretrained and load {OURS_PREFIX}FOLDER, whose classes do"
    return f"{why}; {INSTEAD[readout]}"


HIDDEN_WRITES = "its code does not show what each sub-layer writes before its LayerNorm"


def missing(model: HFModel) -> str:
    """Reason why no logit of a model can be decomposed, as the end of a sentence; "" where it
    can."""
    plan = model.plan.streams[-1]
    if model.plan.lm_head_input is None:
        return f"it {no_readout(model)}"
    if readout_of(model) is None:
        return (
            "between its last vector and the words stands something that is neither linear nor a "
            "dense layer, an activation that is known here and a LayerNorm"
        )
    if not plan.law and plan.norm == "post":
        return HIDDEN_WRITES
    return ""


@torch.inference_mode()
def attribute(
    model: HFModel,
    recording: Recording,
    stream: str,
    token: int,
    id: int,
    against: int | None = None,
) -> Attribution:
    """The logit of a word at a token as a sum of parts, as `models.readouts.logit_lens.attribute`.

    A head has a part of its own where the projection after the heads was found; else an attention
    is one part, and so is a layer whose attention and FFN write side by side. Raises ValueError
    where the decomposition does not exist, and where the recorded parts do not add up to the
    model's last vector."""
    expect_readout(model, stream)
    target_stream, words = recording.stream(stream), (id, *([] if against is None else [against]))
    if not 0 <= token < len(target_stream.tokens):
        raise ValueError(
            f"stream {stream} has tokens 0 to {len(target_stream.tokens) - 1}, not {token}"
        )
    if not all(0 <= word < model.card.n_vocab for word in words):
        raise ValueError(f"the vocabulary has ids 0 to {model.card.n_vocab - 1}")
    readout = readout_of(model)
    if readout is None or missing(model):
        raise ValueError(f"a logit of {model.card.name} cannot be taken apart: {missing(model)}")
    contributions, last = _parts_of_last(model, recording, target_stream, token)
    before = None if readout.transform is None else readout.transform.at(last)
    along = readout.direction(id, against)
    return _along(contributions, last, before, along, (token, id, against))


@torch.inference_mode()
def class_parts(
    model: HFModel, recording: Recording, id: int, against: int | None = None
) -> Attribution:
    """The score of a class as a sum of parts, as `Model.class_parts`."""
    head, name = class_head_of(model), model.card.name
    if head is None:
        raise ValueError(f"the scores of {name} cannot be taken apart: {no_class_head(model)}")
    if not model.plan.streams[-1].law and model.plan.streams[-1].norm == "post":
        raise ValueError(f"the scores of {name} cannot be taken apart: {HIDDEN_WRITES}")
    stream = recording.streams[-1]
    token = from_end(head.token, len(stream.tokens))
    contributions, last = _parts_of_last(model, recording, stream, token)
    made = _along(
        contributions, last, head.at(last), head.direction(id, against), (token, id, against)
    )
    scores = class_logits(model, recording).astype(np.float64)
    score = scores[id] - (0 if against is None else scores[against])
    if not nearly_equal(torch.tensor([made.logit]), torch.tensor([score])):
        raise ValueError(f"{name} reads the score of this text off another vector")
    return made


def _along(
    contributions: dict[PartKey, Tensor],
    last: Tensor,
    before: Linearization | None,
    along: tuple[Tensor, float],
    target: tuple[int, int, int | None],
) -> Attribution:
    """Parts of a last vector along a direction with a bias, after what stands before it. target:
    the token, the id and the other id."""
    (direction, offset), explained = along, 1.0
    if before is not None:
        explained = before.explained(last, torch.stack(list(contributions.values())), direction)
        contributions, last = before.transform_parts(contributions), before.whole(last)
    values = {key: float(vector @ direction) for key, vector in contributions.items()}
    values[BIAS] = values.get(BIAS, 0.0) + offset
    parts = tuple(Part(*key, value) for key, value in values.items())
    return Attribution(*target, float(last @ direction) + offset, parts, explained)


def _parts_of_last(
    model: HFModel, recording: Recording, stream: Stream, token: int
) -> tuple[dict[PartKey, Tensor], Tensor]:
    """Contribution of each part to a token's last vector, and that vector. Raises ValueError where
    the recorded parts do not add up to it."""
    contributions = _contributions(model, recording, stream, token)
    last = _state_at(stream, stream.sites[-1], token)
    if not nearly_equal(sum(contributions.values(), torch.zeros_like(last)), last):
        raise ValueError(
            f"what {model.card.name} was heard to write does not add up to its last vector"
        )
    return contributions, last


def _contributions(
    model: HFModel, recording: Recording, stream: Stream, token: int
) -> dict[PartKey, Tensor]:
    """Contribution of each part to a token's last vector, with every norm linearized."""
    plan = model.plan.streams[-1]
    contributions: dict[PartKey, Tensor] = {}
    for site in stream.sites:
        checkpoint()
        vector = _state_at(stream, site, token)
        number, _, place = site.partition(".")
        if site == "embed" or site == "embed+pos" and not contributions:
            contributions["embedding", -1, -1, ""] = vector
        elif site == "pos.wrote":
            contributions["position", -1, -1, ""] = vector
        elif place == "ffn.wrote":
            contributions["ffn", int(number), -1, ""] = vector
        elif place.endswith(".wrote"):
            head_outputs = _head_outputs(model, recording, (int(number), place), vector, token)
            contributions |= {
                key: contributions.get(key, 0) + part for key, part in head_outputs.items()
            }
        elif place.endswith("normed"):
            _apply_norm(_norm_at(plan, site), contributions)
        elif not plan.law and place.endswith(".sum"):
            contributions["layer", int(number), -1, ""] = vector - sum(contributions.values())
    return contributions


def _apply_norm(norm: nn.Module, contributions: dict[PartKey, Tensor]) -> None:
    """Every part through a norm that is held on their sum; its bias joins the part "bias"."""
    total = torch.stack(list(contributions.values())).sum(0)
    linearized = linearize_norm(norm, total)
    if linearized is None:
        raise ValueError(f"its {type(norm).__name__} is no LayerNorm or RMSNorm")
    linear_map, bias = linearized
    for key, vector in contributions.items():
        contributions[key] = linear_map(vector)
    contributions[BIAS] = contributions.get(BIAS, torch.zeros_like(total)) + bias


def _norm_at(plan: StreamPlan, site: str) -> nn.Module:
    ((place, _),) = dict(plan.sites)[site]
    return place.module


def _head_outputs(
    model: HFModel, recording: Recording, site: tuple[int, str], output: Tensor, token: int
) -> dict[PartKey, Tensor]:
    """Output of each head of an attention at a token, and the projection's bias. The attention is
    one part where that does not add up to its output."""
    layer, place = site
    cross, stream = place.startswith("cross"), model.plan.streams[-1]
    name = next(
        each.name
        for each in recording.attention
        if (each.name == "cross") is cross and each.query == stream.name
    )
    undivided = {("attn", layer, -1, name): output}
    attention = next(each for each in recording.attention if each.name == name)
    module = dict(stream.sites)[f"{layer}.{place}"][0][0].module
    weight = getattr(module, "weight", None)
    if not attention.opens or not isinstance(weight, Tensor) or weight.dim() != 2:
        return undivided
    z = torch.tensor(attention.pattern[layer, :, token, None] @ attention.v[layer])[:, 0].double()
    matrix = (weight.T if isinstance(module, nn.Linear) else weight).double()
    if tuple(matrix.shape) != (z.numel(), len(output)):
        return undivided
    slices = matrix.unflatten(0, tuple(z.shape))
    heads = {("head", layer, head, name): z[head] @ slices[head] for head in range(len(z))}
    remainder = output - sum(heads.values())
    bias = getattr(module, "bias", None)
    if not nearly_equal(output - remainder + (0 if bias is None else bias.double()), output):
        return undivided
    return {**heads, BIAS: remainder}


def _state_at(stream: Stream, site: str, token: int) -> Tensor:
    return torch.tensor(stream.at(site)[token]).double()
