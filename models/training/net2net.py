"""A larger model that begins as a smaller one: the wider stream holds the narrow one, heads and
units come beside those there are, layers on top of them, and new words begin as the mean of the
pieces that spelled them.

What the smaller model computes is nearly kept (Chen et al., 2016, Net2Net): the sinusoids of a
wider stream turn by other frequencies, so that a pair of dimensions goes to the pair that turns
most nearly as it did, and LayerNorm's share of the new dimensions is small. Training mends the
rest. Heads and layers keep their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from pathlib import Path

import torch
from torch import Tensor, nn

from models import own_model
from models.attention import MultiHeadAttention
from models.config import Config
from models.own_model import OwnModel
from models.tokenizer import Tokenizer
from models.training import translation
from models.training.training_config import with_dropout
from models.transformer import AddAndNorm, EncoderDecoder, FeedForward, Layer, Transformer

FRESH = 0.2  # new parts begin at this share of what a fresh model draws


class Grown(translation.Translation):
    """The recipe of the translator's first steps: translator-small, grown, goes on. Long pairs from
    the start: its heads are there."""

    steps, rate, warm_up = 4_000, 8e-4, 200
    shown: tuple[int, ...] = ()
    first_epoch = len(translation.CURRICULUM) - 1

    def model(self) -> EncoderDecoder:
        model = EncoderDecoder(self.config)
        self.begin(model)
        with_dropout(model, self.dropout)
        return model

    def begin(self, model: EncoderDecoder) -> None:
        grow(own_model.load("translator-small"), model, self.tokenizer())

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        return super().batches(tokenizer, epoch + self.first_epoch)


class TranslatorContinuation(Grown):
    """The recipe of its later steps: from the shipped translator on. What is shipped then is the
    mean of both weights (Izmailov et al., 2018): better than either."""

    steps, rate = 4_000, 7e-4
    shown: tuple[int, ...] = (0,)
    first_epoch = Grown.first_epoch + 3  # other draws than those that it has met

    def tokenizer(self) -> Tokenizer:
        return own_model.load("translator").tokenizer

    def begin(self, model: EncoderDecoder) -> None:
        model.load_state_dict(own_model.load("translator").model.state_dict())


def mean_weights(state: dict[str, Tensor], base_file: Path) -> dict[str, Tensor]:
    """The mean of a run's weights and those that it began with, which lie in the file `begun`."""
    base_state = torch.load(base_file, weights_only=True)
    return {name: (tensor + base_state[name]) / 2 for name, tensor in state.items()}


@torch.no_grad()
def grow(base: OwnModel, model: Transformer, tokenizer: Tokenizer) -> None:
    """Let a fresh model that is wider or deeper begin as `begun`. Raises ValueError where heads are
    of another width, or the models not both of the paper's kind (post-LN, sinusoids)."""
    small, large = base.model.config, model.config
    if small.d_head != large.d_head or {small.norm, large.norm} != {"post"}:
        raise ValueError("only a post-LN model with heads of the same width can be grown")
    dims = dimension_map(small, large)
    _grow_words(base, model, tokenizer, dims)
    for name in ("layers", "encoder", "decoder"):
        if hasattr(model, name):
            stack = list(getattr(model, name))
            _grow_stack(list(getattr(base.model, name)), stack, dims)
    for part in layer_norm(stack[-1].feed_forward_out).parameters():
        part.mul_(sqrt(large.d_model / small.d_model))  # it meets words that are smaller


def dimension_map(small: Config, large: Config) -> Tensor:
    """Where in the wider stream each dimension of the narrow one goes, (small d_model): a pair of
    sine and cosine to the pair of the nearest frequency."""
    pairs = torch.arange(small.d_model // 2)
    nearest = (pairs.double() * large.d_model / small.d_model).round().long()
    return torch.stack((2 * nearest, 2 * nearest + 1), dim=1).flatten()


def longest_pieces(word: str, vocabulary: dict[str, int]) -> list[int]:
    """A word as the longest pieces of another vocabulary, from left to right. All single bytes are
    in it."""
    ids = []
    while word:
        size = next(n for n in range(len(word), 0, -1) if word[:n] in vocabulary)
        ids.append(vocabulary[word[:size]])
        word = word[size:]
    return ids


def _grow_words(base: OwnModel, model: Transformer, tokenizer: Tokenizer, dims: Tensor) -> None:
    """Embeddings and the readout's bias: those of the same words, or the mean of a word's pieces.
    What the stream begins with keeps its size."""
    base_vocabulary = base.tokenizer.bpe.get_vocab()
    old, new = base.model.embedding, model.embedding
    bias, old_bias = model.readout_bias, base.model.readout_bias
    assert bias is not None and old_bias is not None  # both have a readout: they write
    new.token.weight *= FRESH
    for word, token in tokenizer.bpe.get_vocab().items():
        piece_ids = (
            [base_vocabulary[word]]
            if word in base_vocabulary
            else longest_pieces(word, base_vocabulary)
        )
        new.token.weight[token, dims] = old.token.weight[piece_ids].mean(0) * old.scale / new.scale
        bias[token] = old_bias[piece_ids].mean()


def layer_norm(out: AddAndNorm) -> nn.LayerNorm:
    """The LayerNorm of a sub-layer; `grow` has looked that there is one."""
    assert isinstance(out.norm, nn.LayerNorm)
    return out.norm


def _grow_stack(small: list[Layer], large: list[Layer], dims: Tensor) -> None:
    for old, new in zip(small, large):
        _grow_layer(old, new, dims)
    for new in large[len(small) :]:
        _make_identity(new)
    if len(large) > len(small):
        _swap_norms(large[len(small) - 1], large[-1])


def _grow_layer(old: Layer, new: Layer, dims: Tensor) -> None:
    for name in ("attention", "cross"):
        if hasattr(old, name):
            _grow_attention(getattr(old, name), getattr(new, name), dims)
    for name in ("attention_out", "cross_out", "feed_forward_out"):
        if hasattr(old, name):
            narrow, wide = (layer_norm(getattr(each, name)) for each in (old, new))
            _grow_norm(narrow, wide, dims)
    _grow_linear(old.feed_forward.w_1, new.feed_forward.w_1, columns=dims)
    _grow_linear(old.feed_forward.w_2, new.feed_forward.w_2, rows=dims)


def _grow_attention(old: MultiHeadAttention, new: MultiHeadAttention, dims: Tensor) -> None:
    for name in ("w_q", "w_k", "w_v"):
        _grow_linear(getattr(old, name), getattr(new, name), columns=dims)
    _grow_linear(old.w_o, new.w_o, rows=dims)


def _grow_linear(
    old: nn.Linear, new: nn.Linear, rows: Tensor | None = None, columns: Tensor | None = None
) -> None:
    """The old matrix in its place, beside it a fresh one where the stream is read, and nothing
    where it is written to: new heads and units say nothing yet."""
    if rows is None:
        rows = torch.arange(old.out_features)
        new.weight[rows] *= FRESH
    else:
        new.weight.zero_()
        columns = torch.arange(old.in_features)
    new.weight[rows[:, None], columns] = old.weight
    new.bias[rows] = old.bias


def _grow_norm(old: nn.LayerNorm, new: nn.LayerNorm, dims: Tensor) -> None:
    """Of the new dimensions little passes; the old ones are divided by less than they were."""
    new.weight.fill_(FRESH)
    new.weight[dims] = old.weight * sqrt(len(old.weight) / len(new.weight))
    new.bias[dims] = old.bias


def _make_identity(layer: Layer) -> None:
    """A new layer writes nothing at first."""
    for module in layer.modules():
        if isinstance(module, MultiHeadAttention):
            module.w_o.weight.zero_()
        elif isinstance(module, FeedForward):
            module.w_2.weight.zero_()


def _swap_norms(before: Layer, top: Layer) -> None:
    """What ended the stack ends it still: LayerNorm of a vector that is normal already changes
    nothing."""
    old, new = (layer_norm(each.feed_forward_out) for each in (before, top))
    new.load_state_dict(old.state_dict())
    old.reset_parameters()
