"""Models of our own: weights from disk, a forward pass on a text, and the Recording of it.

A model's folder under `models/weights` holds `model.safetensors` (fp16), `tokenizer.json` and
`card.json`, whose `kind` and `config` give the architecture and whose other entries (data, recipe,
scores, limits) are for people. `checkpoints.safetensors`, where there is one, holds earlier weights
of the same model as `STEP/name`, in fp16 or coarser (models/network/quantization.py), without those
that are the last ones too; such a one is called `model@STEP`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from math import prod
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load as load_safetensors
from torch import Tensor, nn

from models import shipped_models
from models.contract.argument_validation import expect_ids, text_or_ids
from models.contract.capabilities import TextGenerator
from models.contract.edit_validation import check, check_length
from models.contract.edits import Edit, PatchHead, PatchPath, PatchSite
from models.contract.model import OWN, Model
from models.contract.notices import tell_cut
from models.contract.recording import Attention, Card, NotFinite, Recording
from models.contract.spelling import there_are
from models.network import devices, generation, quantization
from models.network.activation_cache import ActivationStore, Recorder, TextRecord, recorded_shapes
from models.network.attention import MultiHeadAttention, self_attention_mask, self_attention_masks
from models.network.config import Config
from models.network.edit_ops import (
    expect_followed,
    expect_tokens,
    fitting_edits,
    mask_tokens,
    of_text,
    score_divisor,
    shuffle_tokens,
    without_hidden_words,
)
from models.network.layers import GatedFeedForward, LentPath, Patch, with_shared_keys
from models.network.linear import HAS_AVX512
from models.network.transformer import Decoder, Encoder, EncoderDecoder, FeedForward, Transformer
from models.tokens import copying
from models.tokens.chat_template import ChatTemplate
from models.tokens.copying import Copier
from models.tokens.tokenizer import BOS, CLS, EOS, MASK, SEP, Tokenizer, Tokens
from models.tokens.unknown_words import known_words, unknown_words

# How weights lie in memory while a model is read: the numbers stay what they are, and a pass is
# faster.


def optimise_layout(model: nn.Module) -> None:
    """Lay out what reads the stream: q, k and v, and the units of the feed-forward networks; with
    AVX-512, what both write with too."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            for each in (module.w_q, module.w_k, module.w_v):
                each.lay_out()
            output = module.w_o
        elif isinstance(module, (FeedForward, GatedFeedForward)):
            module.w_1.lay_out()
            if isinstance(module, GatedFeedForward):
                module.w_gate.lay_out()
            output = module.w_2
        else:
            continue
        if HAS_AVX512:
            output.lay_out()


# Bytes of all that a pass over several texts records: twelve megabytes are a text of 20 tokens of
# smollm2.
MAX_BATCH_BYTES, ITEM_BYTES = 100_000_000, 4

KINDS: dict[str, type[Transformer]] = {
    "encoder": Encoder,
    "decoder": Decoder,
    "encoder-decoder": EncoderDecoder,
}


# The special tokens around a text, before and after it.
ENDS = {"encoder": ((CLS,), (SEP,)), "decoder": ((BOS,), ()), "encoder-decoder": ((), (EOS,))}


@dataclass(frozen=True)
class OwnModel(Model):
    """A loaded model, ready to record. It is shared by everyone and never changes. `ends`: the
    special tokens before and after a text. `chat`: the template in which chats are read, None for a
    model that was trained on none."""

    source: ClassVar[str] = OWN
    card: Card
    tokenizer: Tokenizer
    network: Transformer = field(repr=False)
    ends: tuple[tuple[str, ...], tuple[str, ...]]
    chat: ChatTemplate | None = field(default=None, repr=False)

    @cached_property
    def attentions(self) -> dict[str, list[MultiHeadAttention]]:
        """Every attention of the model by its label, its layers in order."""
        return self.network.attentions()

    @property
    def reads_batches(self) -> bool:
        """True for a decoder: `record_batch` reads several texts in one pass."""
        return isinstance(self.network, Decoder)

    def record_batch(self, texts: Sequence[str | Sequence[int]]) -> tuple[Recording, ...]:
        with devices.running_on(self.device):
            return record_batch(self, texts) if self.reads_batches else super().record_batch(texts)

    def resume(self, recording: Recording, n_read: int) -> TextGenerator:
        """As `Model.resume`, from the recorded keys and values."""
        n_read = self._expect_resumable(recording, n_read)
        if not all(each.opens for each in recording.attention):
            return super().resume(recording, n_read)
        stream, edits = recording.streams[-1], recording.edits
        generation.expect_room(self.card, n_read, 0)
        ids, read = stream.ids[:n_read].tolist(), None
        with devices.running_on(self.device):
            if all(each.stepwise for each in edits):
                logits = self.logits(recording, stream.name, n_read - 1)
                read = generation.recorded(recording, n_read, logits)
            edits = (*edits, *_patches(self, edits)[self.card.kind])
            written = generation.Generation(self.network, ids, read=read, edits=edits)
        return written if self.device == "cpu" else devices.Placed(written, self.device)

    @property
    def dtype(self) -> type:
        """The numbers of its recordings."""
        is_double = self.network.embedding.token.weight.dtype == torch.float64
        return np.float64 if is_double else np.float32

    @property
    def word_vectors(self) -> Tensor:
        """Each word's embedding as wide as the stream, (id, d_model). Narrow ones are made so each
        time."""
        embedding = self.network.embedding
        words, widen = embedding.token.weight.detach(), embedding.widen
        return words if widen is None else words @ widen.weight.detach().T

    @cached_property
    def word_lengths(self) -> Tensor:
        """The length of each of the `word_vectors`, (id)."""
        return torch.linalg.vector_norm(self.word_vectors, dim=-1)

    @cached_property
    def has_readout_bias(self) -> bool:
        """True where the readout adds something to some word's score."""
        bias = self.network.readout_bias
        return bias is not None and bool(bias.any())


def load(name: str) -> OwnModel:
    """The shipped model of that name, in fp32 on the CPU. Raises ValueError for a name that is not
    shipped."""
    base, _, step = name.partition("@")
    folder, card = shipped_models.folder(base), shipped_models.card(base)
    weight_bytes = (folder / "model.safetensors").read_bytes()
    tensors = load_safetensors(weight_bytes)
    if step:
        shipped_models.expect_checkpoint(name)
        with safe_open(folder / shipped_models.EARLIER, framework="pt") as file:
            earlier = {
                key.partition("/")[2]: file.get_tensor(key)
                for key in file.keys()
                if key.startswith(f"{step}/")
            }
        weight_bytes = b"".join(earlier[key].numpy().tobytes() for key in sorted(earlier))
        tensors |= quantization.dequantize(earlier)
    model = KINDS[card["kind"]](Config(**card["config"]))
    model.load_state_dict({key: tensor.float() for key, tensor in tensors.items()})
    return from_network(
        model.eval().requires_grad_(False),  # a graph of gradients then holds what they need alone
        Tokenizer.load(folder / "tokenizer.json"),
        name,
        hashlib.sha256(weight_bytes).hexdigest()[:12],
        f"{'8 to 12 bits' if step and quantization.is_quantized(folder) else 'fp16'}, computed in "
        "fp32",
    )


def from_network(
    network: Transformer,
    tokenizer: Tokenizer,
    name: str,
    fingerprint: str,
    weights: str = "fp16, computed in fp32",
    ends: tuple[tuple[str, ...], tuple[str, ...]] | None = None,
    chat: ChatTemplate | None = None,
) -> OwnModel:
    """A loaded model of a network in memory, as training and tests have it. `ends`: the special
    tokens around a text, None for those of our own models; `chat`: as of `OwnModel`."""
    config = network.config
    optimise_layout(network)
    card = Card(
        name=name,
        kind=next(kind for kind, cls in KINDS.items() if type(network) is cls),
        n_layer=config.n_layer,
        n_head=config.n_head,
        d_model=config.d_model,
        d_head=config.d_head,
        n_vocab=config.n_vocab,
        n_positions=config.n_positions,
        n_parameters=sum(parameter.numel() for parameter in network.parameters()),
        fingerprint=fingerprint,
        weights=weights,
    )
    return OwnModel(card, tokenizer, network, ENDS[card.kind] if ends is None else ends, chat)


@torch.inference_mode()
def record(
    model: OwnModel,
    text: str | tuple[int, ...],
    edits: tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """One forward pass over the text, recorded. A text over the model's length is cut at its end;
    `dropped` says by how much. Token ids in its place are read as they are.

    For a model that reads one text and writes another, `target` is what its decoder reads (teacher
    forcing), as a text or as bare token ids; None stands for what the model itself says, the
    likeliest token each time. Raises ValueError for an edit that the model or text cannot follow,
    and for a target where the model has no second text; NotFinite where an edit makes numbers
    overflow.
    """
    if edits:
        fills_masks = model.tokenizer.mask is not None
        check(edits, model.card, model.network.config, tuple(model.attentions), fills_masks)
    is_pair = isinstance(model.network, EncoderDecoder)
    if target is not None and not is_pair:
        raise ValueError(
            f"{model.card.name} reads one text alone, so there is no target to give it"
        )
    reading = read_text(model, text, partial(frame, model))
    tokens = reading.tokens
    lengths: dict[str, int | None] = {"encoder" if is_pair else model.card.kind: len(tokens.ids)}
    if is_pair:
        target_tokens = None if target is None else _given_target(model, target)
        lengths["decoder"] = None if target_tokens is None else len(target_tokens[0].ids)
    texts = {next(iter(lengths)): (tokens, reading.text)}
    if is_pair and target_tokens is not None:
        texts["decoder"] = target_tokens[:2]
    edits = of_text(edits, lengths, texts)
    expect_tokens(edits, lengths)
    patches = _patches(model, edits)
    tokens = shuffle_tokens(tokens, edits)
    if is_pair:
        return _record_two(model, replace(reading, tokens=tokens), edits, patches, target)
    tokens = mask_tokens(tokens, edits, model.tokenizer.mask, MASK)
    check_length(edits, len(tokens.ids), model.card)
    config = with_shared_keys(model.network.config, edits)
    tape = Recorder(config, len(tokens.ids), dtype=model.dtype)
    all_edits = (*edits, *patches[model.card.kind])
    model.network(torch.tensor([tokens.ids]), tape=tape, edits=all_edits)
    return _recording(model, replace(reading, tokens=tokens), tape.text(), edits)


@torch.inference_mode()
def record_batch(model: OwnModel, texts: Sequence[str | Sequence[int]]) -> tuple[Recording, ...]:
    """The first of several texts in one pass of a decoder, each as by `record` but for rounding: as
    many as fit into MAX_BATCH_BYTES.

    Shorter texts are padded on the right, where the causal mask hides it from them. Raises
    ValueError for a text that the model cannot read."""
    sources = [text_or_ids(text) for text in texts]
    framed = _fitting(model, sources)
    if len(framed) == 1:
        return (record(model, sources[0]),)
    longest = max(len(each.tokens.ids) for each in framed)
    ids = torch.zeros(len(framed), longest, dtype=torch.long)
    for row, each in zip(ids, framed):
        row[: len(each.tokens.ids)] = torch.tensor(each.tokens.ids)
    tape = Recorder(model.network.config, longest, batch=len(framed), dtype=model.dtype)
    model.network(ids, tape=tape)
    return tuple(
        _recording(model, each, tape.text(row, len(each.tokens.ids)).copy())
        for row, each in enumerate(framed)
    )


def _fitting(model: OwnModel, texts: Sequence[str | tuple[int, ...]]) -> list[ReadText]:
    """The first texts as they are read, as many as one pass may record, at least one."""
    framed: list[ReadText] = []
    longest = 0
    for text in texts:
        reading = read_text(model, text, partial(frame, model))
        longest = max(longest, len(reading.tokens.ids))
        numbers = sum(map(prod, recorded_shapes(model.network.config, longest, 0)))
        if framed and (len(framed) + 1) * numbers * ITEM_BYTES > MAX_BATCH_BYTES:
            break
        framed.append(reading)
    return framed


def _recording(
    model: OwnModel, reading: ReadText, tape: TextRecord, edits: tuple[Edit, ...] = ()
) -> Recording:
    """Recording of what a tape has seen of a model with one stream. Raises NotFinite."""
    _finite(tape)
    tokens = reading.tokens
    name, windows = model.card.kind, model.network.config.windows
    n = len(tokens.ids)
    masks = self_attention_masks(0, n, name == "decoder", edits, windows)
    differ = len({*windows}) > 1
    allowed = torch.stack(masks) if differ else masks[0]
    attention = Attention(
        name="self",
        query=name,
        key=name,
        allowed=_allowed(allowed, edits, "self"),
        scale=_scale(model, "self", edits),
        **tape.heads["attn"],
    )
    streams = (tape.stream(name, tokens),)
    expect_followed(edits, streams)
    return Recording(
        model.card,
        reading.text,
        tuple(edits),
        streams,
        (attention,),
        reading.dropped,
        as_ids=reading.as_ids,
    )


def _record_two(
    model: OwnModel,
    reading: ReadText,
    edits: tuple[Edit, ...],
    patches: dict[str, tuple[Edit, ...]],
    target: str | tuple[int, ...] | None,
) -> Recording:
    source = reading.tokens
    # What is copied is found in the text that the tokens are of.
    copier = None if reading.as_ids else copier_of(model, reading.text, source)
    check_length(edits, n := len(source.ids), model.card)
    encoder_edits, decoder_edits = (*edits, *patches["encoder"]), (*edits, *patches["decoder"])
    network = model.network
    config = with_shared_keys(network.config, edits)
    source_tape = Recorder(config, n, dtype=model.dtype)
    assert isinstance(network, EncoderDecoder)  # record has looked
    memory = network.encode(torch.tensor([source.ids]), tape=source_tape, edits=encoder_edits)
    memory_tape = source_tape.text()
    _finite(memory_tape, "encoder ")
    tokens, target, target_dropped = _target(model, memory, decoder_edits, target, copier)
    check_length(edits, m := len(tokens.ids), model.card)
    target_tape = Recorder(config, m, n, dtype=model.dtype)
    network.decode(torch.tensor([tokens.ids]), memory, tape=target_tape, edits=decoder_edits)
    tape = target_tape.text()
    _finite(tape, "decoder ")
    of_source, of_target = (
        self_attention_mask(0, size, causal, edits) for size, causal in ((n, False), (m, True))
    )
    of_both = torch.ones(m, n, dtype=torch.bool)
    attention = tuple(
        Attention(
            name=name,
            query=query,
            key=key,
            allowed=_allowed(allowed, edits, name),
            scale=_scale(model, name, edits),
            **heads,
        )
        for name, query, key, allowed, heads in (
            ("encoder self", "encoder", "encoder", of_source, memory_tape.heads["attn"]),
            ("decoder self", "decoder", "decoder", of_target, tape.heads["attn"]),
            ("cross", "decoder", "encoder", of_both, tape.heads["cross"]),
        )
    )
    streams = (memory_tape.stream("encoder", source), tape.stream("decoder", tokens))
    expect_followed(edits, streams)
    return Recording(
        model.card,
        reading.text,
        tuple(edits),
        streams,
        attention,
        reading.dropped,
        target,
        target_dropped,
        reading.as_ids,
    )


def _target(
    model: OwnModel,
    memory: Tensor,
    edits: tuple[Edit, ...],
    target: str | tuple[int, ...] | None,
    copier: Copier | None,
) -> tuple[Tokens, str, int]:
    """The decoder's input as tokens and as text, and the number of its tokens that did not fit."""
    assert isinstance(model.network, EncoderDecoder)
    if target is None:
        written = generation.greedy(model.network, model.tokenizer, memory, edits, copier)
        target = tuple(written)
    return _given_target(model, target)


def _given_target(model: OwnModel, target: str | tuple[int, ...]) -> tuple[Tokens, str, int]:
    """A text or token ids for the decoder, as `_target` returns them."""
    if isinstance(target, str):
        tokens, dropped = frame_target(model, clean(target))
        return tokens, clean(target), dropped
    expect_ids(model.card, target)
    text = model.tokenizer.text(list(target))
    tokens, dropped = frame_target(model, text)
    if tokens.ids[1:] != target:  # another spelling of the same text; what was said counts
        tokens = model.tokenizer.tokens_of((model.tokenizer.ends[0], *target), text)
        dropped = max(0, len(tokens.ids) - model.card.n_positions)
        return tokens.first(model.card.n_positions), text, dropped
    return tokens, text, dropped


def _allowed(mask: Tensor, edits: tuple[Edit, ...], attention: str) -> np.ndarray:
    """The mask (query, key) or (layer, query, key) of an attention without the words that are
    out."""
    allowed = without_hidden_words(mask, mask.shape, edits, attention)
    assert allowed is not None
    return allowed.numpy()


def _scale(model: OwnModel, attention: str, edits: tuple[Edit, ...]) -> np.ndarray:
    """The factor of q . k in each layer of an attention, (layer)."""
    layers = model.attentions[attention]
    return np.array([1 / score_divisor(edits, each.layer, each.scale) for each in layers])


def _finite(tape: TextRecord, stream: str = "") -> None:
    """Raises NotFinite where the pass ended in numbers that are none."""
    if not tape.is_finite():
        raise NotFinite(f"{stream}{tape.first_non_finite()}")


@torch.inference_mode()
def activations(
    model: OwnModel,
    text: str | tuple[int, ...],
    edits: tuple[Edit, ...] = (),
    names: set[str] | None = None,
    with_target: bool = True,
) -> dict[str, dict[str, Tensor]]:
    """Vectors of a pass over a text, by stream and name: sites (token, d_model) and heads' outputs
    "0.attn.z" (head, token, d_head).

    Patches among the edits are left out. `wanted`: the names to keep, None for all. `written`:
    whether a translator writes its text too; reading takes a fraction of the time.
    """
    edits = tuple(edit for edit in edits if not edit.borrows)
    reading = read_text(model, text, partial(frame, model))
    tell_cut(model.name, model.card.n_positions, reading.tokens.ids, reading.dropped)
    tokens = shuffle_tokens(reading.tokens, edits)
    edits = fitting_edits(tokens, edits)
    tokens = mask_tokens(tokens, edits, model.tokenizer.mask, MASK)
    check_length(edits, len(tokens.ids), model.card)
    ids = torch.tensor([tokens.ids])
    source_store, target_store = ActivationStore(names), ActivationStore(names)
    if not isinstance(model.network, EncoderDecoder):
        model.network(ids, tape=source_store, edits=edits)
        return {model.card.kind: source_store.tensors}
    memory = model.network.encode(ids, tape=source_store, edits=edits)
    if not with_target:
        return {"encoder": source_store.tensors}
    target_ids = [
        model.tokenizer.ends[0],
        *generation.greedy(
            model.network, model.tokenizer, memory, edits, copier_of(model, reading.text, tokens)
        ),
    ]
    model.network.decode(torch.tensor([target_ids]), memory, tape=target_store, edits=edits)
    return {"encoder": source_store.tensors, "decoder": target_store.tensors}


def _patches(model: OwnModel, edits: tuple[Edit, ...]) -> dict[str, tuple[Edit, ...]]:
    """The patches of edits, by stream; a text that several of them name is read once."""
    with_target = any(
        head_output_site(model, edit.attention, edit.layer)[0] == "decoder"
        if isinstance(edit, (PatchHead, PatchPath))
        else isinstance(edit, PatchSite) and edit.stream == "decoder"
        for edit in edits
    )
    donor = cache(lambda text: activations(model, text, edits, with_target=with_target))
    patches: dict[str, list[Edit]] = {"encoder": [], "decoder": []}
    for edit in edits:
        if isinstance(edit, (PatchHead, PatchPath)):
            stream, name = head_output_site(model, edit.attention, edit.layer)
            z = donor(edit.text)[stream][name][edit.head]
            path = LentPath(edit, z) if isinstance(edit, PatchPath) else None
            patches[stream].append(path or Patch(name, z, head=edit.head))
        elif isinstance(edit, PatchSite):
            vectors = donor(edit.text)
            stream = edit.stream or next(iter(vectors))
            sites = [site for site in vectors.get(stream, {}) if not site.endswith(".z")]
            if edit.site not in sites:
                if not sites:
                    raise ValueError(f"{edit}: no stream {stream!r}; {there_are(stream, vectors)}")
                there = there_are(edit.site, sites)
                raise ValueError(f"{edit}: no site {edit.site!r} of stream {stream}; {there}")
            n = len(vectors[stream][edit.site])
            if edit.token is not None and not 0 <= edit.token < n:
                raise ValueError(f"{edit}: the other text has tokens 0 to {n - 1} there")
            patches[stream].append(Patch(edit.site, vectors[stream][edit.site], token=edit.token))
    return {stream: tuple(stream_patches) for stream, stream_patches in patches.items()}


def head_output_site(model: OwnModel, attention: str, layer: int) -> tuple[str, str]:
    """The stream that an attention's heads write into, and the name that their outputs have on the
    tape."""
    stream = (
        "decoder"
        if attention == "cross"
        else attention.removesuffix(" self")
        if " " in attention
        else model.card.kind
    )
    return stream, f"{layer}.{'cross' if attention == 'cross' else 'attn'}.z"


def clean(text: str) -> str:
    """The text without half surrogate pairs, which are no text: each becomes "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True)
class ReadText:
    """Input of a model: its text, its tokens, how many did not fit, and whether it was given as
    token ids that the text is not split into."""

    text: str
    tokens: Tokens
    dropped: int
    as_ids: bool = False


def read_text(
    model: Model, source: str | tuple[int, ...], split: Callable[[str], tuple[Tokens, int]]
) -> ReadText:
    """A text, or token ids, as a model of any code reads it. split: a text as its tokens, and how
    many did not fit. Raises ValueError for ids that the vocabulary does not have."""
    if isinstance(source, str):
        text = clean(source)
        return ReadText(text, *split(text))
    card, tokenizer = model.card, model.tokenizer
    expect_ids(card, source)
    _expect_no_padding(tokenizer, source)
    text = tokenizer.text(source)
    ids, dropped = source[: card.n_positions], max(0, len(source) - card.n_positions)
    try:
        tokens, _ = split(text)
    except ValueError:  # of special tokens alone
        tokens = None
    if tokens is not None and not dropped and tokens.ids == ids:
        return ReadText(text, tokens, 0)
    return ReadText(text, tokenizer.tokens_of(ids), dropped, as_ids=True)


def _expect_no_padding(tokenizer: Any, ids: tuple[int, ...]) -> None:
    """Raises ValueError for ids with padding at an end, which would be read as text."""
    pad = getattr(tokenizer, "pad", None)
    if pad is None or not {*ids} - {pad}:
        return
    for row, place in ((ids, "begin"), (ids[::-1], "end")):
        if n := next(at for at, each in enumerate(row) if each != pad):
            raise ValueError(
                f"the ids {place} with padding, {n} × {tokenizer.label(pad)}, which would be read "
                "as text; leave it out"
            )


def frame(model: OwnModel, text: str) -> tuple[Tokens, int]:
    """The text as the model reads it, with its special tokens, and how many tokens were dropped:
    [CLS] text [SEP] for an encoder, [BOS] text for a decoder, text [EOS] for the source of an
    encoder-decoder. A model that puts nothing around a text reads its end mark where there is
    none. A chat is read in the model's template (models/tokens/chat_template.py)."""
    if model.chat is not None and (framed := model.chat.tokens(text, model.card.n_positions)):
        return framed
    limit, typed_masks = model.card.n_positions, model.card.kind == "encoder"
    tokens, dropped = model.tokenizer.tokens(text, limit, *model.ends, typed_masks=typed_masks)
    if not tokens.ids:
        if model.tokenizer.eos is None:
            raise ValueError(
                f"{model.card.name} reads nothing where there is no text; write a word"
            )
        return model.tokenizer.tokens(
            text,
            model.card.n_positions,
            (model.tokenizer.bpe.id_to_token(model.tokenizer.eos) or EOS,),
            (),
        )
    return tokens, dropped


def read_whole(model: OwnModel, text: str) -> Tokens:
    """The tokens of a text as the model reads it, with a warning where it is longer than that."""
    tokens, dropped = frame(model, clean(text))
    tell_cut(model.name, model.card.n_positions, tokens.ids, dropped)
    return tokens


def frame_target(model: OwnModel, text: str) -> tuple[Tokens, int]:
    """A target as the decoder reads it, [BOS] text, and how many tokens were dropped."""
    return model.tokenizer.tokens(text, model.card.n_positions, (BOS,), ())


def copier_of(model: OwnModel, text: str, source: Tokens) -> Copier | None:
    """The words that a translator copies from a source, None for none."""
    words = unknown_words(text, source, known_words(model.card.name))
    return copying.copier(model.tokenizer, words)


@torch.inference_mode()
def writing_under(
    model: OwnModel, text: str, tokens: Tokens, edits: tuple[Edit, ...]
) -> tuple[Tokens, dict[str, tuple[Edit, ...]]]:
    """A text as it is read under edits, and by "encoder" and "decoder" the edits of that stream
    while a text is written. Raises ValueError for an edit that the model cannot follow."""
    check(edits, model.card, model.network.config, tuple(model.attentions), False)
    streams = ["encoder", "decoder"] if model.card.kind == "encoder-decoder" else ["decoder"]
    lengths: dict[str, int | None] = {each: None for each in streams} | {
        streams[0]: len(tokens.ids)
    }
    edits = of_text(edits, lengths, {streams[0]: (tokens, clean(text))})
    expect_tokens(edits, lengths | {"decoder": None})
    patches = _patches(model, edits)
    return shuffle_tokens(tokens, edits), {of: (*edits, *each) for of, each in patches.items()}


def memory_of(model: OwnModel, tokens: Tokens, edits: tuple[Edit, ...] = ()) -> Tensor:
    """The encoder's output for a source under edits, (1, key, d_model)."""
    assert isinstance(model.network, EncoderDecoder), f"{model.card.name} has no encoder beside it"
    return model.network.encode(torch.tensor([tokens.ids]), edits=edits)
