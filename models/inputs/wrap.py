"""A model of one's own, in memory, as a loaded model."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor, nn

from models.contract.model import Model
from models.model_names import MINE_PREFIX
from models.network import own_model, torch_layers
from models.network.devices import running_on
from models.runtime import host, registry
from models.tokens import encoding
from models.tokens.tokenizer import Tokenizer
from models.tokens.vocabulary import Vocabulary


def wrap(
    model: nn.Module,
    tokenizer: Any = None,
    *,
    name: str = "",
    embedding: nn.Embedding | Tensor | None = None,
    positions: nn.Embedding | Tensor | None = None,
    readout: nn.Linear | None = None,
    causal: bool = False,
) -> Model:
    """A model in memory as a loaded model, with everything that it shows of itself.

    It runs on the device on which its weights lie; recordings and readouts are numpy's arrays.

    A transformers model runs in its own code; nothing is copied but weights of 16 bits, which are
    read in 32, with a warning, and it is set to an attention that
    computes the same as its eager one. Each pass is without dropout, as in `eval()`; a model in
    training is in training again after it. It reads as many tokens as it has positions, where
    memory holds them. tokenizer: its own, a `tokenizers.Tokenizer`, the words of the ids from 0 on,
    or None, where tokens are called by their ids.

    An `nn.TransformerEncoder`, an `nn.TransformerEncoderLayer` or an `nn.MultiheadAttention` runs
    in Headlight's classes, on a copy of its weights in 32 bits, on at most 1,024 tokens where it
    has no table of positions. embedding (id, d_model): without
    one the vectors of a text are put in by an edit, `SetSite(vectors, "embed")`. positions
    (position, d_model): added to it. readout: from d_model to the vocabulary. causal: no token sees
    a later one.

    name: what it is called, "mine:NAME-DIGEST", where the digest is that of its weights, settings
    and words: wrap it again after they have changed. Raises TypeError for another model, and
    ValueError, one sentence that says why, for one that cannot be shown.
    """
    model = unwrapped(model)
    called = f"{MINE_PREFIX}{name or type(model).__name__}"
    if isinstance(
        model, (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
    ):
        words = _own_tokenizer(tokenizer, embedding, readout)
        converted = torch_layers.converted(model, len(words), embedding, positions, readout, causal)
        converted = converted.to(next(model.parameters()).device)
        parts = [each for each in (embedding, positions, readout) if each is not None]
        kind = f"{type(converted).__name__} {converted.config!r} {converted.last_norm!r}"
        fingerprint = digest(model, *parts, kind, _words_of(tokenizer))
        text_ends: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        treatment = "of torch’s layers, computed in fp32"
        wrapped: Model = own_model.from_network(
            converted, words, f"{called}-{fingerprint[:6]}", fingerprint, treatment, ends=text_ends
        )
    elif hasattr(model, "config") and hasattr(model, "get_input_embeddings"):
        from models.pretrained import hf_model

        if any(each is not None for each in (embedding, positions, readout)) or causal:
            raise ValueError("a transformers model has its own embedding, positions and readout")
        config: Any = model.config
        settings = config.to_json_string(use_diff=False)
        fingerprint = digest(model, type(model).__name__, settings, _words_of(tokenizer))
        called = f"{called}-{fingerprint[:6]}"
        with running_on(next(model.parameters()).device):
            wrapped = hf_model.wrapped(model, tokenizer, called, fingerprint)
    else:
        raise TypeError(
            "wrap takes a transformers model, an nn.TransformerEncoder, its layer or an "
            f"nn.MultiheadAttention; {type(model).__name__} is none of them{_instead_of(model)}"
        )
    registry.hold(wrapped)
    host.current.adopt(wrapped)
    return wrapped


def unwrapped(model: Any) -> Any:
    """The module within what torch.compile or a parallel run has put around it, which computes the
    same; another as it is. Raises ValueError for weights without numbers and quantised ones."""
    shells = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    while (inner := getattr(model, "_orig_mod", None)) is not None or isinstance(model, shells):
        model = model.module if inner is None else inner
    try:
        for each in model.parameters() if isinstance(model, nn.Module) else ():
            each.detach().flatten()[:1].cpu()
    except NotImplementedError as error:
        raise ValueError(
            "its weights are on the device meta, which holds no numbers; load it with "
            "from_pretrained(name) and without device_map"
        ) from error
    if getattr(model, "is_quantized", False):
        raise ValueError(
            "its weights are quantised, which Headlight does not compute with; load it without "
            "quantization_config"
        )
    return model


def _instead_of(model: Any) -> str:
    """The advice what to give in the place of what is no model, as the end of a sentence."""
    if isinstance(model, str):
        return f"; headlight.load('hub:{model}') loads a model by its name or folder"
    if isinstance(inner := getattr(model, "model", None), nn.Module) and hasattr(inner, "config"):
        return "; give the model in it, its model and its tokenizer"
    if isinstance(model, type):
        return "; give a model and no class"
    return ""


def digest(*parts: nn.Module | Tensor | str) -> str:
    """A digest of weights, by names and numbers, and of texts."""
    digest = blake2b(digest_size=6)
    for part in parts:
        if isinstance(part, str):
            digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
            continue
        tensors = part.state_dict() if isinstance(part, nn.Module) else {"": part}
        for name, tensor in tensors.items():
            if isinstance(tensor, Tensor):
                digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
                digest.update(
                    tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data
                )
    return digest.hexdigest()


def _words_of(tokenizer: Any) -> str:
    """All that tells a tokenizer from another: its words, or its rules and special tokens."""
    rules = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(rules, "to_str"):
        special = getattr(tokenizer, "special_tokens_map", "")
        return f"{rules.to_str()} {special} {getattr(tokenizer, 'chat_template', '')}"
    if hasattr(tokenizer, "get_vocab"):
        return f"{type(tokenizer).__name__} {sorted(tokenizer.get_vocab().items())}"
    is_list = isinstance(tokenizer, Sequence) and not isinstance(tokenizer, str)
    return repr([str(each) for each in tokenizer]) if is_list else type(tokenizer).__name__


def _own_tokenizer(
    source: Any, embedding: nn.Embedding | Tensor | None, readout: nn.Linear | None
) -> Any:
    """A tokenizer for a model in our classes: words, or the rules of a tokenizer. Raises TypeError
    for anything else, and ValueError where nothing says how many tokens there are."""
    if isinstance(source, Sequence) and not isinstance(source, str):
        return Vocabulary([str(each) for each in source])
    if source is None:
        rows = embedding.weight if isinstance(embedding, nn.Embedding) else embedding
        rows = readout.weight if rows is None and readout is not None else rows
        if rows is None:
            raise ValueError("give the words of the vocabulary, or an embedding")
        return Vocabulary(len(rows))
    from tokenizers import Tokenizer as Rules

    rules = getattr(source, "backend_tokenizer", source)
    if not isinstance(rules, Rules):
        raise TypeError(f"a tokenizer or a sequence of words, and not a {type(source).__name__}")
    return Tokenizer(encoding.from_text(rules.to_str()))
