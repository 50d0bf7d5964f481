"""A Hugging Face model of text in its own code, loaded and looked over, ready to record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from models.contract.argument_validation import expect_ids, word_of
from models.contract.capabilities import without_readout
from models.contract.edits import Edit
from models.contract.model import Model
from models.contract.notices import tell
from models.contract.recording import Attention, Card, NotFinite, NotFollowed, Stream
from models.contract.results import Beam, SeededSampling
from models.contract.tokenizer_output import segments
from models.model_names import MINE_PREFIX, in_languages
from models.network.config import ACTIVATIONS
from models.network.generation import max_answer_length, search, tell_unended
from models.network.own_model import ReadText, clean
from models.pretrained import gguf, hub, languages, lora, model_files, weight_checks
from models.pretrained.config_mapping import max_text_length, saved_head
from models.pretrained.hooks import (
    ATTENTION_NAME,
    ForwardPass,
    HookPoint,
    active_pass,
    put_hooks,
    register,
)
from models.pretrained.hub import Progress, first_line, model_of, quietly, tokenizer_of
from models.pretrained.hub_tokenizer import HubTokenizer
from models.pretrained.languages import Languages
from models.pretrained.model_files import NotLoaded, remedy
from models.pretrained.probing import (
    N_SOURCE,
    ModuleMap,
    StreamPlan,
    TensorEvent,
    UntraceableModel,
    body_of,
    config_value,
    embedding_matrix,
    nearly_equal,
    own_output,
    patterns_of,
    probe_inputs,
    probe_model,
    reads_twice,
    shows_attention,
    sorted_inputs,
    trace_modules,
    vectors_of_one,
)
from models.readouts.logit_lens import Linearization, LinearMap, linearize, pooled
from models.tokens import chat_template
from models.tokens.chat_template import ChatTemplate
from models.tokens.token_labels import NO_SPAN
from models.tokens.tokenizer import Tokens
from models.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torch import FloatTensor, LongTensor
    from transformers import LogitsProcessorList, PreTrainedModel
    from transformers._typing import GenerativePreTrainedModel
    from transformers.utils import ModelOutput


UNBOUNDED = 2**20  # positions of a model that names no number of them


# A Recording's streams and attentions from what was heard on a pass of a Hugging Face model.


def stream_of(plan: StreamPlan, trace: ForwardPass, tokens: Tokens) -> Stream:
    """One stream, each site the sum of the tensors at its hook points."""
    n = len(tokens.ids)
    resid = np.empty((len(plan.sites), n, plan.d_model), dtype=np.float32)
    for at, (_, source) in enumerate(plan.sites):
        first, *more = (_rows(trace, place) * factor for place, factor in source)
        torch.from_numpy(resid[at]).copy_(sum(more, first))
    return Stream(
        name=plan.name,
        tokens=tokens.labels,
        ids=np.array(tokens.ids),
        special=np.array(tokens.special),
        spans=np.array(tokens.spans).reshape(-1, 2),
        sites=tuple(site for site, _ in plan.sites),
        resid=resid,
        roles=tokens.roles,
    )


def expect_finite(trace: ForwardPass, streams: tuple[Stream, ...]) -> None:
    """Raises NotFinite where a stream ends in numbers that are none; scores come first, since edits
    here change attention alone."""
    if all(np.isfinite(stream.resid[-1]).all() for stream in streams):
        return
    for name, heads in trace.heads.items():
        for layer, scores in enumerate(heads.arrays["scores"]):
            if not np.isfinite(scores).all():
                raise NotFinite(f"{layer}.{'cross' if name == 'cross' else 'attn'}.scores")
    raise NotFinite(
        next(
            site
            for stream in streams
            for site, vectors in zip(stream.sites, stream.resid)
            if not np.isfinite(vectors).all()
        )
    )


def _rows(trace: ForwardPass, place: HookPoint) -> Tensor:
    return vectors_of_one(trace.places[place.key])


def attentions_of(
    plan: ModuleMap, trace: ForwardPass, output: ModelOutput, streams: tuple[Stream, ...]
) -> tuple[Attention, ...]:
    """The attentions in the plan's order. output: the model's output, for one whose attention
    cannot be computed by our function."""
    only_stream = streams[0].name
    ends = {
        "self": (only_stream, only_stream),
        "encoder self": ("encoder", "encoder"),
        "decoder self": ("decoder", "decoder"),
        "cross": ("decoder", "encoder"),
    }
    attentions = []
    for name in plan.n_layer:
        query, key = ends[name]
        if plan.opens:
            heads = trace.heads[name]
            layers = next(each.attended for each in plan.streams if each.name == query)
            attentions.append(
                Attention(name, query, key, layers=np.array(layers, int), **heads.arrays)
            )
        else:
            pattern = torch.cat(list(patterns_of(output)[name])).numpy()
            allowed = np.ones(pattern.shape[2:], dtype=bool)
            if query == key == "decoder" and not np.triu(pattern, 1).any():
                allowed = np.tril(allowed)
            attentions.append(Attention.closed(name, query, key, pattern, allowed))
    return tuple(attentions)


@dataclass(frozen=True, eq=False)
class HFModel(Model):
    """A loaded model, ready to record. It is shared by everyone and never changes.

    `lock`: one pass at a time, because some families' code writes on its modules while it runs; one
    for all models of a network.
    `languages`: of a multilingual translator those between which it translates.
    `chat`: the template in which chats are read, None for a model without one.
    `version`: of a caller's own network what `version_of` said when it was wrapped, None for one
    that nobody else has.
    """

    card: Card
    tokenizer: HubTokenizer
    network: PreTrainedModel
    plan: ModuleMap
    start: int | None
    source: ClassVar[str] = f"{__package__}.hf_source"
    lock: Lock = field(default_factory=Lock)
    languages: Languages | None = None
    chat: ChatTemplate | None = field(default=None, repr=False)
    version: int | None = None

    @contextmanager
    def passing(self, trace: ForwardPass) -> Iterator[None]:
        """Inside, a pass of the network alone, without dropout, whose hooks belong to `trace`."""
        with self.lock, evaluating(self.network), active_pass(trace):
            yield

    @property
    def reads_twice(self) -> bool:
        """True where its decoder reads the text that its encoder reads."""
        return reads_twice(self.network)

    def tokens(self, text: str, masks: bool = False) -> tuple[Tokens, int]:
        """The text as the model reads it, a chat in the model's template, and how many tokens were
        dropped. `masks`: a typed mask token is one."""
        if self.chat is not None and (read := self.chat.tokens(text, self.card.n_positions)):
            return read
        return self.tokenizer.tokens(text, self.card.n_positions, masks)


def inputs_of(model: HFModel, *ids: Sequence[int] | np.ndarray) -> dict[str, Tensor]:
    """Token ids of a text, and of what a decoder reads, as a network takes them, (1, token); of a
    pair of texts with the segments in which its tokenizer frames them."""
    inputs = dict(
        zip(("input_ids", "decoder_input_ids"), (torch.tensor(each)[None] for each in ids))
    )
    separator = getattr(model.tokenizer, "separator", None)
    n_segments = getattr(model.network.config, "type_vocab_size", None) or 0
    if separator is not None and n_segments > 1 and any(types := segments([*ids[0]], separator)):
        inputs["token_type_ids"] = torch.tensor(types)[None]
    return inputs


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Inside, a network as by `eval()`; each of its modules that was in training is so again
    afterwards."""
    in_training = [each for each in network.modules() if each.training]
    for each in in_training:
        each.training = False
    try:
        yield
    finally:
        for each in in_training:
            each.training = True


_locks: WeakKeyDictionary[nn.Module, Lock] = WeakKeyDictionary()


def load(where: str, progress: Progress | None = None, name: str = "") -> HFModel:
    """A model by its name on the hub, such as "distilbert/distilbert-base-uncased", or from a
    folder; in float32 on the CPU.

    `progress(done_bytes, total_bytes)` is called while it is fetched. `name` is what its card calls
    it, `where` if empty. Raises NotLoaded, a ValueError whose one sentence says why a model cannot
    be used and what to do.
    """
    name = name or where.strip()
    folder = hub.find(where, progress, name)
    with quietly():
        tokenizer = tokenizer_of(folder, name)
        network = model_of(folder, name)
        treatment = model_files.treatment(folder, name) + lora.note(folder)
        weight_checks.check(network, folder, name)
        digest = model_files.digest([*model_files.weights_of(folder, name), *lora.files(folder)])
        gguf.check_digest(folder, digest, name)
        model = from_network(network, tokenizer, name, digest[:12], treatment)
    return replace(model, chat=chat_template.of_folder(folder, tokenizer))


def wrapped(network: Any, tokenizer: Any, name: str, fingerprint: str) -> HFModel:
    """A loaded model of a caller's own transformers network, see `models.inputs.wrap.wrap`: of
    weights in 16 bits, in which no sum can be followed, a copy in 32, with a warning. Raises
    ValueError for weights of other kinds, and NotLoaded where it shows too little."""
    kinds = {each.dtype for each in network.parameters() if each.is_floating_point()}
    weights = ", ".join(sorted(map(str, kinds)))
    if kinds - {torch.float32, torch.float64}:
        if not kinds <= {torch.float16, torch.bfloat16, torch.float32}:
            raise ValueError(
                f"the weights are {weights}, in which the sums of its stream cannot be followed; "
                "give model.float()"
            )
        tell(f"the weights are {weights}: what is read is a copy of them in torch.float32")
        network, weights = deepcopy(network).float(), f"{weights}, computed in float32"
    if tokenizer is None or isinstance(tokenizer, (list, tuple)):
        n_vocab = len(embedding_matrix(network))
        words: Any = Vocabulary(n_vocab if tokenizer is None else tokenizer)
    else:
        words = HubTokenizer(_transformers_tokenizer(tokenizer), _eos_ids(network))
    with quietly():
        network.set_attn_implementation("eager")
        made = from_network(network, words, name, fingerprint, weights, is_bounded=False)
    return replace(made, version=version_of(network))


def version_of(network: nn.Module) -> int:
    """A number that is another one after a step of training, as torch counts what is written into
    weights."""
    return sum(each._version for each in network.parameters() if not each.is_inference())


def _transformers_tokenizer(tokenizer: Any) -> Any:
    """A tokenizer of transformers; rules of the tokenizers library as one."""
    if hasattr(tokenizer, "all_special_ids"):
        return tokenizer
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    if not isinstance(tokenizer, tokenizers.Tokenizer):
        raise TypeError(
            f"a tokenizer, a sequence of words or None, and not {type(tokenizer).__name__}"
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def _eos_ids(model: Any) -> tuple[int, ...]:
    """The tokens that end what a model writes, by its own settings."""
    eos = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    return tuple(eos) if isinstance(eos, list) else () if eos is None else (eos,)


def from_network(
    network: PreTrainedModel,
    tokenizer: HubTokenizer,
    name: str,
    fingerprint: str,
    weights: str = "float32",
    is_bounded: bool = True,
) -> HFModel:
    """A loaded model of a transformers network in memory, with eager attention. is_bounded: it
    reads no more tokens than LONGEST, and not all that it has positions for. Raises NotLoaded where
    it shows too little."""
    register()
    start = _decoder_start(network) if network.config.is_encoder_decoder else None
    shown = False
    try:
        with evaluating(network):
            inputs = probe_inputs(body_of(network), start)
            try:
                output = own_output(network, inputs)
            except Exception as error:  # a family's code, with settings from anywhere
                raise NotLoaded(_why_it_breaks_off(error, name)) from error
            shown = shows_attention(output)
            plan = probe_model(network, start, inputs, output)
    except NotLoaded:
        raise
    except Exception as error:  # it gives what no other family gives
        raise NotLoaded(not_followed(name, error, shown)) from error
    put_hooks(
        [place.module for stream in plan.streams for place in stream.places()],
        [module for module in network.modules() if id(module) in plan.attentions],
        plan.lm_head_input,
    )
    card = Card(
        name=name,
        kind="encoder-decoder" if start is not None else "decoder" if plan.causal else "encoder",
        n_layer=max(plan.n_layer.values()),
        n_head=plan.n_head,
        d_model=plan.streams[0].d_model,
        d_head=plan.d_head,
        n_vocab=len(embedding_matrix(network)),
        n_positions=_longest(network, tokenizer, plan, is_bounded),
        n_parameters=sum(parameter.numel() for parameter in network.parameters()),
        fingerprint=fingerprint,
        weights=weights,
    )
    lock = _locks.setdefault(network, Lock())
    model = HFModel(card, tokenizer, network, plan, start, lock=lock)
    forced = _setting(model, "forced_bos_token_id")
    pair = None if start is None else languages.default(tokenizer.own, start, forced)
    return model if pair is None else _between(model, pair)


def between(model: HFModel, pair: tuple[str, str]) -> HFModel:
    """A multilingual translator between two of its languages, (source, target), under a name that
    says them, sharing its weights. Raises ValueError for a language that it does not have."""
    translators = _translators.setdefault(model, {})
    if pair not in translators:
        translators[pair] = _between(
            replace(model, card=replace(model.card, name=in_languages(model.name, pair))), pair
        )
    return translators[pair]


_translators: WeakKeyDictionary[HFModel, dict[tuple[str, str], HFModel]] = WeakKeyDictionary()


def _between(model: HFModel, pair: tuple[str, str]) -> HFModel:
    own, chosen = languages.between(model.tokenizer.own, _begin(model), pair)
    return replace(model, tokenizer=HubTokenizer(own), start=chosen.start, languages=chosen)


def not_followed(name: str, error: Exception, shown: bool = False) -> str:
    """Error message for a model that its own code runs and the recorder does not. shown: that code
    gives weights of attention, so that these can be looked at."""
    why = error if isinstance(error, UntraceableModel) else f"“{first_line(error)}”"
    other = ", or give its attentions to headlight.view" if shown else ""
    return (
        f"Headlight's recorder cannot follow {name}: {why}; choose a model of another family"
        f"{other}."
    )


def not_followed_on(model: HFModel, n: int, error: Exception) -> str:
    """Error message for a text of n tokens that a model's own code runs on and the recorder does
    not."""
    return (
        f"Headlight's recorder cannot follow {model.card.name} on a text of {n} tokens "
        f"(“{first_line(error)}”); give another text, or choose a model of another family."
    )


def broken_off(model: HFModel, inputs: dict[str, Tensor], error: Exception) -> ValueError:
    """The reason why a recorded pass broke off: the recorder, where the model's own code runs on
    these ids without it, else a limit that its configuration does not name."""
    n = inputs["input_ids"].shape[1]
    with model.lock:
        model.network.set_attn_implementation("eager")
        try:
            model.network(**inputs, use_cache=False)
        except Exception:  # whatever it says, it is its own
            what = f"does not run on {n} tokens ({first_line(error)}); shorten the text"
            return ValueError(f"{model.card.name} {what}")
        finally:
            if model.plan.opens:
                model.network.set_attn_implementation(ATTENTION_NAME)
    return NotFollowed(not_followed_on(model, n, error))


def _why_it_breaks_off(error: Exception, name: str) -> str:
    """Error message for a model whose own code fails on the trial's text, with advice by kind of
    error."""
    said = first_line(error)
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return f"{name} needs more memory than is free; close something or choose a smaller model."
    if isinstance(error, IndexError) and "out of range" in said:
        return (
            f"A token or position that the config.json of {name} names lies beyond the end of its "
            f"tables; {remedy(name)} or choose another."
        )
    if isinstance(error, ValueError):  # written by its authors, for who uses it
        return (
            f"The code of {name} refuses a text of {N_SOURCE} tokens (“{said}”); "
            "change its settings or choose a model of another family."
        )
    broken = f"The code of {name} breaks off on a text of {N_SOURCE} tokens"
    if name.startswith(MINE_PREFIX):  # it may read something else than one text
        return (
            f"{broken} (“{said}”); wrap the part of it that reads a text, such as its decoder or "
            "its text_model, or choose another."
        )
    return (
        f"{broken} with the settings of its config.json (“{said}”); {remedy(name)} or choose "
        "another."
    )


def _decoder_start(model: PreTrainedModel) -> int:
    """The token that a decoder begins with."""
    for settings in (getattr(model, "generation_config", None), model.config):
        for key in ("decoder_start_token_id", "bos_token_id", "pad_token_id"):
            if (token := getattr(settings, key, None)) is not None:
                return token
    return 0


def _longest(
    model: PreTrainedModel, tokenizer: HubTokenizer, plan: ModuleMap, is_bounded: bool
) -> int:
    """The longest text a model is given: what it was made for, and where that is bounded, what
    memory holds; where the masks of its layers are not known, the window within which all see the
    same."""
    lengths = ("max_position_embeddings", "n_positions", "max_seq_len")
    bounds = [
        value
        for key in (lengths if plan.opens else (*lengths, "sliding_window"))
        if isinstance(value := config_value(model, key), int) and value > 0
    ]
    for stream in plan.streams:
        weight = getattr(stream.positions, "weight", None)
        if isinstance(weight, Tensor) and weight.dim() == 2:
            first_position = getattr(stream.positions, "offset", 0)
            padding = getattr(stream.positions, "padding_idx", None)
            if plan.positions == "learned" and padding is not None:
                first_position = padding + 1  # RoBERTa counts from there
            bounds.append(len(weight) - first_position)
    made_for = getattr(tokenizer.own, "model_max_length", UNBOUNDED)
    if not is_bounded:
        return max(2, min(bounds or [made_for, UNBOUNDED]))
    return max_text_length([*bounds, made_for], plan.n_head, sum(plan.n_layer.values()))


# How a Hugging Face model reads words off a vector: by its own code, and where that is so, as a
# matrix, or as a matrix after a transform.

# Rows of logits are computed so many bytes at a time.
BYTES_OF_LOGITS = 256 << 20


def readout(model: HFModel, vectors: Tensor) -> Tensor:
    """Vectors (row, d_model) through the model's own readout: (row, id). The stack runs on one
    token, and these take the place of its answer."""
    token_ids = torch.tensor(
        [[0 if getattr(model.network.config, "pad_token_id", None) != 0 else 1]]
    )
    inputs = {
        "input_ids": token_ids,
        **({"decoder_input_ids": token_ids} if model.start is not None else {}),
    }
    rows = max(1, BYTES_OF_LOGITS // (4 * model.card.n_vocab))
    logits = []
    for chunk in vectors.split(rows):
        with model.passing(ForwardPass(keeps=False, answer=chunk[None])):
            logits.append(model.network(**inputs, use_cache=False).logits[0])
    return torch.cat(logits)


def no_readout(model: HFModel) -> str:
    """Reason why a model predicts no words, as the predicate of a sentence, "" where it does."""
    if model.plan.lm_head_input is not None:
        return ""
    if model.network.get_output_embeddings() is not None:
        return "has a readout that cannot be run on its last vector alone"
    return without_readout(saved_head(model.network.config.architectures))


def classes_of(model: HFModel) -> tuple[str, ...]:
    """The names of the classes of a classifier of texts, in the order of its scores; () for any
    other model, and for one that gives a text a number."""
    n, config = model.plan.n_classes, model.network.config
    if n < 2:
        return ()
    names: dict[Any, str] = dict(config.id2label or {})
    return tuple(str(names.get(each, each)) for each in range(n))


@dataclass(frozen=True, eq=False)
class ClassHead:
    """The head that makes a classifier's scores of the last vector of one token: scores = `weight`
    (class, width) @ vector + `offset` (class), of that vector or of activation(dense(vector)).

    token: its place in the text, 0 or -1. name: of the activation, "" where the vector itself is
    read."""

    weight: Tensor
    offset: Tensor
    token: int
    name: str = ""
    dense: nn.Linear | None = None

    def at(self, last: Tensor) -> Linearization | None:
        """The layers before the matrix, linearised at a last vector (d_model, float64); None for
        none."""
        if self.dense is None:
            return None
        return pooled(self.dense, POOLER_ACTIVATIONS[self.name], last)

    def direction(self, id: int, against: int | None = None) -> tuple[Tensor, float]:
        """The direction (width) and the bias of a class's score; of the difference with
        `against`."""
        weight, offset = self.weight[id].double(), float(self.offset[id])
        if against is None:
            return weight, offset
        return weight - self.weight[against].double(), offset - float(self.offset[against])


POOLER_ACTIVATIONS: dict[str, LinearMap] = {"tanh": torch.tanh, **ACTIVATIONS}
_class_heads: WeakKeyDictionary[HFModel, ClassHead | None] = WeakKeyDictionary()


@torch.inference_mode()
def class_head_of(model: HFModel) -> ClassHead | None:
    """The head of a classifier of texts, found once for a model by what comes by on a short text;
    None where it is another, and for a model without classes."""
    if model not in _class_heads:
        _class_heads[model] = _find_class_head(model) if classes_of(model) else None
    return _class_heads[model]


def _traced_class(model: HFModel) -> tuple[list[TensorEvent], Tensor, Tensor]:
    """The tensors of a pass in which a classifier reads a short text, the last vectors of its last
    stream, (token, d_model), and the scores, (class)."""
    inputs, scores = sorted_inputs(model.network, model.start), list[Tensor]()
    with model.lock, evaluating(model.network):
        log = trace_modules(model.network, lambda: scores.append(model.network(**inputs).logits[0]))
    events = [each for each in log if isinstance(each, TensorEvent) and each.value.dim() > 1]
    (last_place, _), *_ = model.plan.streams[-1].sites[-1][1]
    last = next(_vectors(each) for each in events if each.place.key == last_place.key)
    return events, last, scores[0]


@torch.inference_mode()
def no_class_head(model: HFModel) -> str:
    """The reason why a classifier's scores have no parts: what its head reads, as far as it is
    known."""
    events, last, _ = _traced_class(model)
    tail = last.mean(0, keepdim=True)
    if any(_is_input(each) and nearly_equal(_vectors(each), tail) for each in events):
        return "its head reads the mean of all tokens’ vectors, and parts are those of one vector"
    return (
        "what reads them off the first or last token's vector is neither a matrix nor a dense "
        "layer, a known activation and a matrix"
    )


def _find_class_head(model: HFModel) -> ClassHead | None:
    events, last, scores = _traced_class(model)
    _, *more = model.plan.streams[-1].sites[-1][1]
    read = {each.place.module: _vectors(each) for each in events if _is_input(each)}
    gave = {each.place.module: _vectors(each) for each in events if not _is_input(each)}
    layers = [each for each in gave if isinstance(each, nn.Linear) and each in read]
    ends = [last[0], last[-1]]
    for matrix in layers:
        rows = zip(read[matrix], gave[matrix])
        for vector in [row for row, output in rows if nearly_equal(output, scores)]:
            bias = matrix.bias
            offset = scores.new_zeros(len(scores)) if bias is None else bias.detach()
            for token, end in zip((0, -1), ends):
                if not more and nearly_equal(vector, end):
                    return ClassHead(matrix.weight.detach(), offset, token)
            for dense in layers:
                for token, name in _pooled_as(read[dense], gave[dense], ends, vector):
                    return ClassHead(matrix.weight.detach(), offset, token, name, dense)
    return None


def _pooled_as(
    read: Tensor, gave: Tensor, ends: Sequence[Tensor], vector: Tensor
) -> Iterator[tuple[int, str]]:
    """The token and the activation by which a dense layer, which read and gave these rows, made a
    vector of one of the ends of a text."""
    for row, output in zip(read, gave):
        for token, end in zip((0, -1), ends):
            if nearly_equal(row, end):
                for name, activation in POOLER_ACTIVATIONS.items():
                    if nearly_equal(activation(output), vector):
                        yield token, name


def _vectors(event: TensorEvent) -> Tensor:
    return event.value.flatten(0, -2)


def expect_readout(model: HFModel, stream: str) -> None:
    """Raises ValueError for a model without a readout, and for a stream that it does not read."""
    if model.plan.lm_head_input is None:
        raise ValueError(f"{model.card.name} {no_readout(model)}, so it makes no prediction")
    if stream != model.plan.streams[-1].name:
        raise ValueError(
            f"{model.card.name} reads words off its {model.plan.streams[-1].name} alone"
        )


@dataclass(frozen=True, eq=False)
class Transform:
    """The transform between a BERT's last vector and its readout: norm(activation(dense x))."""

    dense: nn.Linear
    activation: LinearMap
    norm: nn.LayerNorm

    def at(self, last: Tensor) -> Linearization:
        """The transform at a last vector (d_model, float64)."""
        return linearize(self.dense, self.activation, self.norm, last)


@dataclass(frozen=True, eq=False)
class Readout:
    """logits = scale x `weight` (id, width) @ vector + `offset` (id), of the last vector or of what
    a `transform` makes of it."""

    weight: Tensor
    scale: float
    offset: Tensor
    transform: Transform | None = None

    def direction(self, id: int, against: int | None = None) -> tuple[Tensor, float]:
        """The direction (d_model) and the bias of a word's logit; of the difference with
        `against`."""
        weight, offset = self.weight[id].double() * self.scale, float(self.offset[id])
        if against is None:
            return weight, offset
        other = self.weight[against].double() * self.scale
        return weight - other, offset - float(self.offset[against])


_readouts: WeakKeyDictionary[HFModel, Readout | None] = WeakKeyDictionary()


@torch.inference_mode()
def readout_of(model: HFModel) -> Readout | None:
    """The model's readout as a matrix, after a transform such as BERT's where there is one; None
    where it is another: tried on random vectors, and found once for a model. What bends otherwise
    (a bound on the logits) is found out."""
    if model not in _readouts:
        _readouts[model] = _fit_readout(model)
    return _readouts[model]


def _fit_readout(model: HFModel) -> Readout | None:
    module = model.network.get_output_embeddings() if model.plan.lm_head_input is not None else None
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2 or len(weight) != model.card.n_vocab:
        return None
    generator = torch.Generator().manual_seed(0)
    samples = torch.randn(3, model.card.d_model, generator=generator, device="cpu")
    samples = samples.to(weight) * torch.tensor([[1.0], [8.0], [0.0]], dtype=weight.dtype)
    linear_readout = _linear_readout(weight, samples, readout(model, samples), None)
    return linear_readout or _transform_readout(model, weight, samples)


def _linear_readout(
    weight: Tensor, inputs: Tensor, logits: Tensor, transform: Transform | None
) -> Readout | None:
    """The readout that said these logits (row, id) of these vectors (row, width), where it is a
    matrix times a number and something added."""
    if weight.shape[1] != inputs.shape[1]:
        return None
    products, logit_differences = (inputs[:2] - inputs[2]) @ weight.T, logits[:2] - logits[2]
    scale = float((logit_differences * products).sum() / (products * products).sum())
    offset = logits[2] - scale * (inputs[2] @ weight.T)
    if not nearly_equal(inputs @ weight.T * scale + offset, logits):
        return None
    return Readout(weight.detach(), scale, offset, transform)


def _transform_readout(model: HFModel, weight: Tensor, samples: Tensor) -> Readout | None:
    """A transform's readout: a dense layer that read these vectors (row, d_model), and a LayerNorm
    that read a known activation of its output, and whose output the word logits are computed
    from."""
    logits: list[Tensor] = []
    log = trace_modules(model.network, lambda: logits.append(readout(model, samples)))
    events = [event for event in log if isinstance(event, TensorEvent)]
    values = [event.value.flatten(0, -2) for event in events if event.value.dim() > 1]
    events = [event for event in events if event.value.dim() > 1]
    inputs = {event.place.module: value for event, value in zip(events, values) if _is_input(event)}
    outputs = {
        event.place.module: value for event, value in zip(events, values) if not _is_input(event)
    }
    for dense, dense_input in inputs.items():
        if not isinstance(dense, nn.Linear) or not nearly_equal(dense_input, samples):
            continue
        for norm, norm_input in inputs.items():
            if not isinstance(norm, nn.LayerNorm) or norm.weight is None or norm.bias is None:
                continue
            for activation in ACTIVATIONS.values():
                if nearly_equal(activation(outputs[dense]), norm_input):
                    transform = Transform(dense, activation, norm)
                    return _linear_readout(weight, outputs[norm], logits[0], transform)
    return None


def _is_input(event: TensorEvent) -> bool:
    return event.place.side == "in"


# A model's own code reading on from what it has read, with its own stored keys and values.

PROBE = 5  # tokens


class IncrementalDecoder:
    """Rows of tokens that a model has read so far, side by side.

    `ids` (row, token). `source`: the ids that the encoder of a model with two streams reads, once
    and for all rows; None for a decoder. Where nothing is kept (`keeps` False) every step reads
    all. It belongs to one reader; the model is shared and unchanged.
    """

    def __init__(self, model: HFModel, source: Sequence[int] | None, keeps: bool) -> None:
        self.model, self.keeps = model, keeps
        self._source = None if source is None else torch.tensor([list(source)])
        self.ids = torch.zeros(1, 0, dtype=torch.long)
        self.cache: Any = None
        self._memory: Tensor | None = None

    @property
    def is_croppable(self) -> bool:
        """True where the newest tokens' stored keys and values can be removed."""
        return bool(getattr(self.cache, "is_croppable", False))

    def crop(self, n: int) -> None:
        """Forget the newest n tokens of every row."""
        if self.cache is not None:
            self.cache.crop(-n)
        self.ids = self.ids[:, :-n]

    @torch.inference_mode()
    def read(
        self, new_ids: Tensor, rows: Tensor | None = None, trace: ForwardPass | None = None
    ) -> Any:
        """Run the model on `new_ids` (row, token) after all earlier tokens, and return its output.
        rows (row): the earlier row that each row continues. trace: hooks of the pass."""
        model, past_ids = self.model, self.ids
        if rows is not None:
            past_ids = past_ids[rows]
            if self.cache is not None:
                self.cache.reorder_cache(rows)
        self.ids = torch.cat([past_ids, new_ids], dim=1)
        with model.passing(trace or ForwardPass(keeps=False)):
            output = model.network(
                **self._inputs(new_ids if self.keeps else self.ids),
                past_key_values=self.cache,
                use_cache=self.keeps,
                **({} if model.plan.opens or trace is None else {"output_attentions": True}),
            )
        self.cache = output.get("past_key_values") if self.keeps else None
        return output

    def _inputs(self, new_ids: Tensor) -> dict[str, Any]:
        if self.cache is None and self.keeps:
            self.cache = empty_cache(self.model)
        if self._source is None:
            return {"input_ids": new_ids}
        if not self.keeps:
            return {
                "input_ids": self._source.expand(len(new_ids), -1),
                "decoder_input_ids": new_ids,
            }
        from transformers.modeling_outputs import BaseModelOutput

        if self._memory is None:
            self._memory = self.model.network.get_encoder()(input_ids=self._source)[0]
        memory = BaseModelOutput(last_hidden_state=self._memory.expand(len(new_ids), -1, -1))
        return {"encoder_outputs": memory, "decoder_input_ids": new_ids}


def empty_cache(model: HFModel) -> Any:
    """An empty cache that grows a layer when one is written and holds every key: the one that T5
    makes itself has as many layers as its encoder, and one with windows forgets what is before
    them. None, for the model's own, where some layers keep something else than keys."""
    from transformers import DynamicCache, EncoderDecoderCache

    if model.start is not None:
        return EncoderDecoderCache(DynamicCache(), DynamicCache())
    return None if model.plan.streams[-1].attended else DynamicCache()


def cached_layers(cache: object) -> list[Any]:
    """The layers of a cache that hold keys; of a decoder that looks at a source its own first."""
    parts = [getattr(cache, f"{which}_attention_cache", None) for which in ("self", "cross")]
    return [
        layer
        for part in (cache, *parts)
        for layer in getattr(part, "layers", ())
        if isinstance(getattr(layer, "keys", None), Tensor)
    ]


_cache_support: WeakKeyDictionary[HFModel, bool] = WeakKeyDictionary()


def supports_cache(model: HFModel) -> bool:
    """True for a model whose code, given the keys and values of a text that it has read, says after
    one more token what it says after reading all. Tried once for a model."""
    if model not in _cache_support:
        try:
            _cache_support[model] = _cache_agrees(model)
        except (RuntimeError, ValueError, TypeError, AttributeError, LookupError):
            # A family's code may keep its past in another way, or not at all.
            _cache_support[model] = False
    return _cache_support[model]


@torch.inference_mode()
def _cache_agrees(model: HFModel) -> bool:
    n = model.card.n_vocab
    ids, source, rows = torch.arange(n // 3, n // 3 + PROBE)[None] % n, None, None
    if model.start is not None:  # a search goes on from one row in several
        source, rows = ids[0].tolist(), torch.tensor([0, 0])
        ids = torch.cat([torch.tensor([[model.start]]), ids[:, 1:]], dim=1)
    full_logits = IncrementalDecoder(model, source, keeps=False).read(ids).logits[0, -1]
    cached_reading = IncrementalDecoder(model, source, keeps=True)
    cached_reading.read(ids[:, :-1])
    if not cached_layers(cached_reading.cache):
        return False
    last = ids[:, -1:] if rows is None else ids[:, -1:].expand(len(rows), -1)
    return all(
        nearly_equal(each, full_logits) for each in cached_reading.read(last, rows).logits[:, -1]
    )


# What the decoder of a Hugging Face model reads: a text given, or the model's own answer.

# A model's own answer ends after so many tokens, if it does not end itself.
LONGEST_ANSWER = 128


def target_of(
    model: HFModel, reading: ReadText, edits: tuple[Edit, ...], target: str | tuple[int, ...] | None
) -> tuple[Tokens, str, int]:
    """The decoder's input as tokens and as text, and the number of its tokens that did not fit."""
    if model.reads_twice:
        return _text_again(model, reading, target), reading.text, 0
    if isinstance(target, str):
        target = clean(target)
        tokens, dropped = _target_tokens(model, target)
        return tokens, target, dropped
    expect_ids(model.card, target or ())
    ids = list(target) if target is not None else _answer(model, reading.tokens, edits)
    text = model.tokenizer.text(ids)
    tokens, dropped = _target_tokens(model, text)
    if tokens.ids[1:] == tuple(ids):
        return tokens, text, dropped
    # another spelling of the same text; what was said counts
    tokens = model.tokenizer.tokens_of((_begin(model), *ids), text)
    dropped = max(0, len(tokens.ids) - model.card.n_positions)
    return tokens.first(model.card.n_positions), text, dropped


def _text_again(model: HFModel, reading: ReadText, target: str | tuple[int, ...] | None) -> Tokens:
    """The input of a two-part classifier's decoder: the text, moved on by the token that it
    begins with. Raises ValueError for another text, and for one without the token that is last."""
    read, name, end = reading.tokens, model.card.name, model.network.config.eos_token_id
    if target not in (None, reading.text, read.ids[:-1]):
        raise ValueError(f"the decoder of {name} reads the text itself; leave the target out")
    if classes_of(model) and end is not None and end not in read.ids:
        token = model.tokenizer.label(end)
        raise ValueError(f"{name} tells a text's class by its last {token}; end the ids with {end}")
    begin = _begin(model)
    return Tokens(
        (begin, *read.ids[:-1]),
        (model.tokenizer.label(begin), *read.labels[:-1]),
        (NO_SPAN, *read.spans[:-1]),
        (True, *read.special[:-1]),
    )


def _begin(model: HFModel) -> int:
    """The token that the decoder begins with."""
    assert model.start is not None  # there is a decoder
    return model.start


def _target_tokens(model: HFModel, text: str) -> tuple[Tokens, int]:
    """A target as the decoder reads it: the tokens it begins with, then the text as the model was
    trained to say it, without the token that ends it. Of a multilingual translator the tokens
    around a text are those of a source, and left out."""
    tokens, dropped = (
        model.tokenizer.tokens(text, model.card.n_positions)
        if text
        else (model.tokenizer.tokens_of(()), 0)
    )
    has_end = bool(tokens.ids) and tokens.special[-1] and tokens.ids[-1] in model.tokenizer.eos_ids
    positions = [
        at
        for at in range(len(tokens.ids) - has_end)
        if model.languages is None or not tokens.special[at]
    ]
    begin = begin_ids(model)
    excess = max(0, len(positions) + len(begin) - model.card.n_positions)
    positions = positions[: len(positions) - excess]
    return Tokens(
        (*begin, *(tokens.ids[at] for at in positions)),
        (*map(model.tokenizer.label, begin), *(tokens.labels[at] for at in positions)),
        (*[NO_SPAN] * len(begin), *(tokens.spans[at] for at in positions)),
        (*[True] * len(begin), *(tokens.special[at] for at in positions)),
    ), dropped + excess


def begin_ids(model: HFModel) -> tuple[int, ...]:
    """The tokens that whatever a decoder reads begins with: its own, and that of a language."""
    forced = None if model.languages is None else model.languages.forced
    return (_begin(model), *(() if forced is None else (forced,)))


def _answer(model: HFModel, source: Tokens, edits: tuple[Edit, ...]) -> list[int]:
    """The model's own answer under the edits, the likeliest token each time, without the token it
    begins with and the one that ends it."""
    if not model.network.can_generate():
        return []
    longest = min(LONGEST_ANSWER, model.card.n_positions - 1, 2 * len(source.ids) + 10)
    ids, eos_ids = torch.tensor([source.ids]), model.tokenizer.eos_ids
    # With edits every step is computed anew: a head's mean over the tokens is over all of them.
    uses_cache = not edits and supports_cache(model)
    trace = ForwardPass(model.plan.attentions, model.plan.n_layer, edits, keeps=False)
    with model.passing(trace), quietly():
        answer_ids = (
            cast("GenerativePreTrainedModel", model.network)
            .generate(
                ids,
                attention_mask=torch.ones_like(ids),
                decoder_start_token_id=model.start,
                forced_bos_token_id=_forced(model),
                do_sample=False,
                num_beams=1,
                max_new_tokens=longest,
                eos_token_id=sorted(eos_ids) or None,
                use_cache=uses_cache,
                **({"past_key_values": empty_cache(model)} if uses_cache else {}),
            )[0, 1:]
            .tolist()
        )
    if answer_ids and answer_ids[-1] in eos_ids:
        return answer_ids[:-1]
    tell_unended(model.card.name, len(answer_ids), longest)
    return answer_ids


# Writing a text a token at a time by a model's own code, with its own stored keys and values, and
# the search for the likeliest text.

# Where the newest token looks, by an attention's place in a layer; closed: its name in an output.
ATTENTION_ROWS = {"self": "attn", "decoder self": "attn", "cross": "cross"}
OUTPUT_ATTENTIONS = {
    "self": "attentions",
    "decoder self": "decoder_attentions",
    "cross": "cross_attentions",
}


@dataclass(frozen=True)
class CacheSize:
    """Size of a model's own cache: bytes in all, key/value heads of a layer, and their width. Heads
    that share their keys count once. All 0 for an empty cache."""

    nbytes: int = 0
    n_head: int = 0
    d_head: int = 0


class HFGeneration:
    """A text that is being generated, as `models.network.generation.Generation`, by a model in its
    own code.

    `ids` (token); `logits` (id) of the next token, float32; `rows`: under "attn" the newest token's
    weights, (layer, head, key), and under "cross" those on `source`, the tokens that an encoder
    reads, once. Where the model's code has no KV cache that gives the same logits, every step reads
    the whole text. trace: the pass, with its edits, of which each step has a copy."""

    def __init__(
        self, model: HFModel, ids: list[int], source: list[int] | None, trace: ForwardPass
    ) -> None:
        self.model, self.n_positions, self._trace = model, model.card.n_positions, trace
        self.keeps = keeps_cache(model, trace)
        self.source = source
        self.ids: list[int] = []
        self.logits = np.zeros(0, dtype=np.float32)
        self.rows: dict[str, np.ndarray] = {}
        self._reading = IncrementalDecoder(model, source, self.keeps)
        self._read(ids)

    @property
    def is_full(self) -> bool:
        """True where the model takes no further token."""
        return len(self.ids) >= self.n_positions

    @property
    def stored(self) -> CacheSize:
        """The size of the cache of the text so far and of the source."""
        layers = [(layer.keys, layer.values) for layer in cached_layers(self._reading.cache)]
        if not layers:
            return CacheSize()
        nbytes = sum(each.numel() * each.element_size() for pair in layers for each in pair)
        return CacheSize(nbytes, layers[0][0].shape[1], layers[0][0].shape[-1])

    def add(self, token: int) -> None:
        """Take a token as the next one. Raises ValueError where the model is full."""
        if self.is_full:
            raise ValueError(f"the model reads {self.n_positions} tokens and no more")
        self._read([word_of(self.model.card, token)])

    def back(self) -> None:
        """Take the newest token back. The first stays."""
        if len(self.ids) < 2:
            return
        *remaining, last = self.ids[:-1]
        if remaining and self._reading.is_croppable:
            self._reading.crop(2)
            self.ids = remaining
            self._read([last])
        else:
            self._reading, self.ids = IncrementalDecoder(self.model, self.source, self.keeps), []
            self._read([*remaining, last])

    def logits_after(self, continuations: Sequence[Sequence[int]]) -> np.ndarray:
        """Scores (row, id) of the token after each of several continuations, which are read one
        after the other. None is taken."""
        ids, logits, rows, after = list(self.ids), self.logits, self.rows, []
        for each in continuations:
            self._read(list(each))
            after.append(self.logits)
            if self._reading.is_croppable or not self.keeps:
                self._reading.crop(len(each))
            else:
                self._reading = IncrementalDecoder(self.model, self.source, self.keeps)
                self._read(ids)
            self.ids, self.logits, self.rows = list(ids), logits, rows
        return np.stack(after)

    @torch.inference_mode()
    def _read(self, ids: list[int]) -> None:
        plan, trace = self.model.plan, self._trace.again()
        output = self._reading.read(torch.tensor([ids]), trace=trace)
        self.logits = output.logits[0, -1].float().numpy().copy()  # not of all tokens
        self.rows = {
            place: trace.heads[name].arrays["pattern"][:, :, -1].copy()
            if plan.opens
            else torch.stack([each[0, :, -1] for each in output[OUTPUT_ATTENTIONS[name]]]).numpy()
            for name, place in ATTENTION_ROWS.items()
            if name in plan.n_layer
        }
        self.ids += ids


def keeps_cache(model: HFModel, trace: ForwardPass) -> bool:
    """True where stored keys and values stay true while a text is written under a pass's edits."""
    return supports_cache(model) and all(edit.stepwise for edit in trace.edits) and not trace.paths


def beams(
    model: HFModel, source: list[int], how: int | SeededSampling, trace: ForwardPass
) -> Iterator[tuple[Beam, ...]]:
    """Beam search for a two-stream model's output for a source, as
    `models.network.generation.beams`.

    Probabilities are the model's own. A token that its own settings rule out (such as padding) is
    never chosen."""
    assert model.start is not None  # it has two streams
    reading, rules = IncrementalDecoder(model, source, keeps_cache(model, trace)), _rules(model)

    def step_logprobs(new: Tensor, rows: Tensor | None) -> Tensor:
        heard = trace.again() if trace.edits else None
        logprobs = reading.read(new, rows, heard).logits[:, -1].double().log_softmax(dim=-1)
        ids, scores = cast("LongTensor", reading.ids), cast("FloatTensor", logprobs.clone())
        ruled_out = rules(ids, scores).isneginf()
        return logprobs.masked_fill(ruled_out, float("-inf"))

    longest = max_answer_length(len(source), model.card.n_positions)
    ids = torch.tensor([[model.start]])
    return search(step_logprobs, ids, model.tokenizer.eos_ids, how, longest)


def _setting(model: HFModel, name: str) -> Any:
    return getattr(getattr(model.network, "generation_config", None), name, None)


def _forced(model: HFModel) -> int | None:
    """The token that a model's output must begin with, None for none."""
    if model.languages is not None:
        return model.languages.forced
    return _setting(model, "forced_bos_token_id")


def _rules(model: HFModel) -> LogitsProcessorList:
    """Logits processors from a model's own settings: tokens that it must not choose, and when."""
    import transformers as of

    ends = sorted(model.tokenizer.eos_ids)
    processors: dict[str, Callable[[Any], Any]] = {
        "bad_words_ids": lambda ids: of.NoBadWordsLogitsProcessor(ids, ends),
        "suppress_tokens": of.SuppressTokensLogitsProcessor,
        "forced_bos_token_id": of.ForcedBOSTokenLogitsProcessor,
        "no_repeat_ngram_size": of.NoRepeatNGramLogitsProcessor,
        "min_length": lambda n: of.MinLengthLogitsProcessor(n, ends),
    }
    settings = {name: _setting(model, name) for name in processors}
    settings["forced_bos_token_id"] = _forced(model)
    return of.LogitsProcessorList(
        make(settings[name])
        for name, make in processors.items()
        if settings[name] or (name == "forced_bos_token_id" and settings[name] == 0)
    )
