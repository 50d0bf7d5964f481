"""Models of our own: weights from disk, a forward pass on a text, and the Recording of it.

A model's folder under `models/weights` holds `model.safetensors` (fp16), `tokenizer.json` and `card.json`, whose `kind` and `config` give
the architecture and whose other entries (data, recipe, scores, limits) are for people. `checkpoints.safetensors`, where there is one,
holds earlier weights of the same model as `STEP/name`; such a one is called `model@STEP`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load as load_safetensors
from torch import Tensor

from models import generation, shipped
from models.edits import Edit, HideToken, ShuffleTokens
from models.recording import Attention, Card, Recording, Stream
from models.tokenizer import BOS, CLS, EOS, MASK, SEP, Tokenizer, Tokens
from models.transformer import Config, Decoder, Encoder, EncoderDecoder, Model

KINDS: dict[str, type[Model]] = {"encoder": Encoder, "decoder": Decoder, "encoder-decoder": EncoderDecoder}
TENSORS_OF_A_HEAD = ("scores", "pattern", "q", "k", "v")


@dataclass(frozen=True)
class Handle:
    """A loaded model, ready to record. It is shared by everyone and never changes."""

    card: Card
    tokenizer: Tokenizer
    model: Model


def load(name: str) -> Handle:
    """The shipped model of that name, in fp32 on the CPU. Raises ValueError for a name that is not shipped."""
    base, _, step = name.partition("@")
    folder, card = shipped.folder(base), shipped.card(base)
    if step:
        if name not in shipped.checkpoints(base):
            raise ValueError(f"{base} has no checkpoint {step}; there are {', '.join(shipped.checkpoints(base)) or 'none'}")
        with safe_open(folder / "checkpoints.safetensors", framework="pt") as file:
            tensors = {key.partition("/")[2]: file.get_tensor(key) for key in file.keys() if key.startswith(f"{step}/")}
        stored = b"".join(tensors[key].numpy().tobytes() for key in sorted(tensors))
    else:
        stored = (folder / "model.safetensors").read_bytes()
        tensors = load_safetensors(stored)
    model = KINDS[card["kind"]](Config(**card["config"]))
    model.load_state_dict({key: tensor.float() for key, tensor in tensors.items()})
    return handle_of(model.eval(), Tokenizer.load(folder / "tokenizer.json"), name, hashlib.sha256(stored).hexdigest()[:12])


def handle_of(model: Model, tokenizer: Tokenizer, name: str, fingerprint: str, weights: str = "fp16, computed in fp32") -> Handle:
    """A handle around a model in memory, as training and tests have it."""
    config = model.config
    card = Card(
        name=name,
        kind=next(kind for kind, cls in KINDS.items() if type(model) is cls),
        n_layer=config.n_layer,
        n_head=config.n_head,
        d_model=config.d_model,
        d_head=config.d_head,
        n_vocab=config.n_vocab,
        n_positions=config.n_positions,
        n_parameters=sum(parameter.numel() for parameter in model.parameters()),
        fingerprint=fingerprint,
        weights=weights,
    )
    return Handle(card, tokenizer, model)


@torch.inference_mode()
def record(handle: Handle, text: str, edits: tuple[Edit, ...] = (), target: str | tuple[int, ...] | None = None) -> Recording:
    """One forward pass over the text, recorded. A text over the model's length is cut at its end; `dropped` says by how much.

    For a model that reads one text and writes another, `target` is what its decoder reads (teacher forcing), as a text or as bare token ids;
    None stands for what the model itself says, the likeliest token each time. Raises ValueError for an edit that names a layer, head or token the model or text
    does not have, and for a target where the model has no second text.
    """
    _check(edits, handle)
    text = clean(text)
    if isinstance(handle.model, EncoderDecoder):
        return _record_two(handle, text, edits, target)
    if target is not None:
        raise ValueError(f"{handle.card.name} reads one text alone, so there is no target to give it")
    causal = isinstance(handle.model, Decoder)
    tokens, dropped = frame(handle, text)
    tokens = _hide(_shuffle(tokens, edits), edits, handle)
    tape = Seen(handle.card.n_layer)
    handle.model(torch.tensor([tokens.ids]), tape=tape, edits=edits)
    n = len(tokens.ids)
    name = "decoder" if causal else "encoder"
    allowed = np.tril(np.ones((n, n), dtype=bool)) if causal else np.ones((n, n), dtype=bool)
    attention = Attention(name="self", query=name, key=name, allowed=allowed, **tape.heads["attn"])
    return Recording(handle.card, text, tuple(edits), (tape.stream(name, tokens),), (attention,), dropped)


def _record_two(handle: Handle, text: str, edits: tuple[Edit, ...], target: str | tuple[int, ...] | None) -> Recording:
    source, dropped = frame(handle, text)
    source = _shuffle(source, edits)
    memory_tape, tape = Seen(handle.card.n_layer), Seen(handle.card.n_layer)
    memory = handle.model.encode(torch.tensor([source.ids]), tape=memory_tape, edits=edits)
    if not isinstance(target, str):
        said = list(target) if target is not None else generation.greedy(handle.model, handle.tokenizer, memory, edits)
        target = handle.tokenizer.text(said)
        tokens, target_dropped = frame_target(handle, target)
        if tokens.ids[1:] != tuple(said):  # another spelling of the same text; what was said counts
            tokens, target_dropped = spelled(handle.tokenizer, said), 0
    else:
        target = clean(target)
        tokens, target_dropped = frame_target(handle, target)
    handle.model.decode(torch.tensor([tokens.ids]), memory, tape=tape, edits=edits)
    n, m = len(source.ids), len(tokens.ids)
    attention = (
        Attention(name="encoder self", query="encoder", key="encoder", allowed=np.ones((n, n), dtype=bool), **memory_tape.heads["attn"]),
        Attention(name="decoder self", query="decoder", key="decoder", allowed=np.tril(np.ones((m, m), dtype=bool)), **tape.heads["attn"]),
        Attention(name="cross", query="decoder", key="encoder", allowed=np.ones((m, n), dtype=bool), **tape.heads["cross"]),
    )
    streams = (memory_tape.stream("encoder", source), tape.stream("decoder", tokens))
    return Recording(handle.card, text, tuple(edits), streams, attention, dropped, target, target_dropped)


def clean(text: str) -> str:
    """The text without half surrogate pairs, which are no text: each becomes "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def frame(handle: Handle, text: str) -> tuple[Tokens, int]:
    """The text as the model reads it, with its special tokens, and how many tokens were dropped: [CLS] text [SEP] for an encoder, [BOS] text
    for a decoder, text [EOS] for the source of an encoder-decoder."""
    before, after = {"encoder": ((CLS,), (SEP,)), "decoder": ((BOS,), ()), "encoder-decoder": ((), (EOS,))}[handle.card.kind]
    return handle.tokenizer.tokens(text, handle.card.n_positions, before, after)


def frame_target(handle: Handle, text: str) -> tuple[Tokens, int]:
    """A target as the decoder reads it, [BOS] text, and how many tokens were dropped."""
    return handle.tokenizer.tokens(text, handle.card.n_positions, (BOS,), ())


@torch.inference_mode()
def embeddings(handle: Handle) -> np.ndarray:
    """Every word's embedding as the stream begins with it, times sqrt(d_model): (id, d_model)."""
    embedding = handle.model.embedding
    return (embedding.token.weight * embedding.scale).numpy()


@torch.inference_mode()
def memory_of(handle: Handle, tokens: Tokens) -> Tensor:
    """What the encoder makes of a source: (1, key, d_model)."""
    return handle.model.encode(torch.tensor([tokens.ids]))


def spelled(tokenizer: Tokenizer, said: list[int]) -> Tokens:
    """[BOS] and tokens that a model said, each labelled by itself: bytes may have come together that no text would be split into."""
    n = len(said)
    return Tokens((tokenizer.bos, *said), (BOS, *map(tokenizer.label, said)), ((-1, -1),) * (n + 1), (True, *(token in tokenizer.special for token in said)))


class Seen:
    """The tape that keeps what passes by: the stream's sites in order, and the tensors of the heads.

    A tensor of the heads is copied at once into the one array of all layers, so that the pass itself can use its memory again; a list
    to be stacked afterwards made a recording of 512 tokens cost 1.75 times the bare pass.
    """

    def __init__(self, n_layer: int) -> None:
        self.n_layer = n_layer
        self.sites: dict[str, Tensor] = {}
        self.heads: dict[str, dict[str, np.ndarray]] = {}

    def __call__(self, name: str, tensor: Tensor) -> None:
        sublayer, _, what = name.rpartition(".")
        if what not in TENSORS_OF_A_HEAD:
            self.sites[name] = tensor if tensor.dim() == 2 else tensor[0]
            return
        layer, _, attention = sublayer.partition(".")
        kept = self.heads.setdefault(attention, {})
        if what not in kept:
            kept[what] = np.empty((self.n_layer, *tensor.shape[1:]), dtype=np.float32)
        torch.from_numpy(kept[what][int(layer)]).copy_(tensor[0])

    def stream(self, name: str, tokens: Tokens) -> Stream:
        """What passed by as a Stream; resid (site, token, d_model)."""
        return Stream(
            name=name,
            tokens=tokens.labels,
            ids=np.array(tokens.ids),
            special=np.array(tokens.special),
            spans=np.array(tokens.spans).reshape(-1, 2),
            sites=tuple(self.sites),
            resid=torch.stack(list(self.sites.values())).numpy(),
        )


def _shuffle(tokens: Tokens, edits: tuple[Edit, ...]) -> Tokens:
    """The tokens in the order that the edits ask for; everything that belongs to a token goes with it, its place in the text too."""
    for edit in edits:
        if isinstance(edit, ShuffleTokens):
            order = edit.order(tokens.special)
            tokens = Tokens(*(tuple(each[at] for at in order) for each in (tokens.ids, tokens.labels, tokens.spans, tokens.special)))
    return tokens


def _hide(tokens: Tokens, edits: tuple[Edit, ...], handle: Handle) -> Tokens:
    """The tokens, those that an edit hides replaced by [MASK]. Raises ValueError for a token that is not there or is none of the text's."""
    ids, labels = list(tokens.ids), list(tokens.labels)
    for edit in edits:
        if isinstance(edit, HideToken):
            if not 0 <= edit.token < len(ids) or tokens.special[edit.token]:
                raise ValueError(f"{edit} names no token of the text; they are 1 to {len(ids) - 2}")
            ids[edit.token], labels[edit.token] = handle.tokenizer.mask, MASK
    return Tokens(tuple(ids), tuple(labels), tokens.spans, tokens.special)


def _check(edits: tuple[Edit, ...], handle: Handle) -> None:
    card = handle.card
    for edit in edits:
        for field, size in (("layer", card.n_layer), ("head", card.n_head)):
            value = getattr(edit, field, None)
            if value is not None and not 0 <= value < size:
                raise ValueError(f"{edit} names {field} {value}; {card.name} has {field}s 0 to {size - 1}")
        attention = getattr(edit, "attention", None)
        if attention is not None and attention not in (labels := handle.model.attentions()):
            raise ValueError(f"{edit} names attention {attention!r}; {card.name} has {', '.join(labels)}")
        if isinstance(edit, ShuffleTokens) and edit.seed < 0:
            raise ValueError(f"{edit} has a negative seed; seeds count from 0")
        if isinstance(edit, HideToken) and handle.tokenizer.mask is None:
            raise ValueError(f"{card.name} fills no masked words, so no token can be hidden from it")
