"""A head's two circuits read in words, from its weights alone: which word looks for which (QK), and
what a word that is looked at makes the head write (OV)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from models.attention import MultiHeadAttention
from models.cancellation import checkpoint
from models.own_model import OwnModel
from models.results import Circuits

WORDS = 8  # each way
ROWS, KEYS = 8, 4096  # words at once before the vocabulary, and keys of it at once


@torch.inference_mode()
def circuits(
    handle: OwnModel,
    attention: str,
    layer: int,
    head: int,
    ids: tuple[int, ...],
    values: np.ndarray | None = None,
) -> Circuits:
    """What a head's matrices make of words `ids`, bare: W_E W_QK W_E^T and W_E W_OV W_U (Elhage et
    al. 2021, "A Mathematical Framework for Transformer Circuits"), W_E as the stream begins with a
    word, W_U the readout's matrix, q . k times the head's scale; no bias, norm, position or earlier
    layer. The norm that q and k of some models pass (Qwen3's) is left out with the others: it
    depends on the word, so no matrix holds it. With `values` (word, d_head), the head's own v of
    some tokens, what it writes of them instead of W_E W_V.

    In slices over the vocabulary. Raises ValueError for what is not there.
    """
    of = _attention(handle, attention, layer, head)
    if not ids or not all(0 <= each < handle.card.n_vocab for each in ids):
        raise ValueError(f"the vocabulary has ids 0 to {handle.card.n_vocab - 1}")
    words = _words(handle, torch.tensor(ids))
    w_q, w_k, w_v = (_slice_of(each, of, head) for each in (of.w_q, of.w_k, of.w_v))
    v = words @ w_v if values is None else torch.tensor(np.asarray(values, dtype=np.float32))
    w_o = of.w_o.weight.T[head * of.d_head : (head + 1) * of.d_head]
    q = words @ w_q / of.scale
    best, best_ids = _keys(handle, q, w_k)
    up, by, down, by_less, own, rank = _raised(handle, v @ w_o, torch.tensor(ids))
    return Circuits(
        np.array(ids),
        up,
        by,
        down,
        by_less,
        own,
        rank,
        best_ids.numpy(),
        best.numpy(),
        (q @ (words @ w_k).T).numpy(),
    )


def _attention(handle: OwnModel, attention: str, layer: int, head: int) -> MultiHeadAttention:
    layers = handle.attentions.get(attention, [])
    if not 0 <= layer < len(layers) or not 0 <= head < handle.card.n_head:
        raise ValueError(f"{handle.card.name} has no head {layer}.{head} of {attention!r}")
    return layers[layer]


def _words(handle: OwnModel, ids: Tensor) -> Tensor:
    """Words as the stream begins with them, (word, d_model)."""
    embedding = handle.model.embedding
    return embedding.words(embedding.token.weight[ids])


def _slice_of(linear: torch.nn.Linear, of: MultiHeadAttention, head: int) -> Tensor:
    """A head's part of W_Q, W_K or W_V, (d_model, d_head); heads may share keys and values."""
    n = linear.out_features // of.d_head
    own = head * n // of.n_head
    return linear.weight[own * of.d_head : (own + 1) * of.d_head].T


def _raised(handle: OwnModel, writes: Tensor, ids: Tensor) -> tuple[np.ndarray, ...]:
    """Of what is written (word, d_model) the words it raises most and by how much, and lowers most,
    and for each word itself its own change and how many it raises more."""
    matrix, found = handle.model.readout_matrix, []
    for some, mine in zip(writes.split(ROWS), ids.split(ROWS)):
        checkpoint()
        logits = some @ matrix.T  # (word, id)
        most = min(WORDS, logits.shape[-1])
        up, down = logits.topk(most), logits.topk(most, largest=False)
        own = logits.gather(1, mine[:, None])
        rank = (logits > own).sum(-1)
        found.append((up.indices, up.values, down.indices, down.values, own[:, 0], rank))
    return tuple(torch.cat(each).numpy() for each in zip(*found))


def _keys(handle: OwnModel, q: Tensor, w_k: Tensor) -> tuple[Tensor, Tensor]:
    """The vocabulary's words with the largest q . k for each query (word, d_head): scores and ids,
    (word, rank)."""
    n = handle.card.n_vocab
    best, best_ids = q.new_zeros(len(q), 0), torch.zeros(len(q), 0, dtype=torch.long)
    for some in torch.arange(n).split(KEYS):
        checkpoint()
        scores = q @ (_words(handle, some) @ w_k).T  # (word, some)
        every = torch.cat((best, scores), 1)
        every_id = torch.cat((best_ids, some.expand(len(q), -1)), 1)
        best, at = every.topk(min(WORDS, every.shape[1]))
        best_ids = every_id.gather(1, at)
    return best, best_ids
