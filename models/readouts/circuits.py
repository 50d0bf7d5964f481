"""A head's QK and OV circuits in words, from its weights alone."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from models.contract.cancellation import checkpoint
from models.contract.results import Circuits
from models.network.attention import MultiHeadAttention
from models.network.own_model import OwnModel
from models.readouts.logit_lens import expect_same_width

TOP_WORDS = 8  # each way
ROWS, KEYS = 8, 4096  # words at once before the vocabulary, and keys of it at once


@torch.inference_mode()
def circuits(
    model: OwnModel,
    attention: str,
    layer: int,
    head: int,
    ids: tuple[int, ...],
    values: np.ndarray | None = None,
) -> Circuits:
    """The QK and OV circuits of a head for words `ids`: W_E W_QK W_E^T and W_E W_OV W_U (Elhage et
    al. 2021, "A Mathematical Framework for Transformer Circuits").

    W_E is the stream's first vector of a word, W_U the readout's matrix, q . k times the head's
    scale; no bias, norm, position or earlier layer. The norm of q and k in some models (Qwen3's) is
    left out too: it depends on the word, so no matrix can express it. With `values` (word, d_head),
    the head's own v of some tokens, its output for them instead of W_E W_V.

    Where words are narrower than the stream, W_E goes through the matrix that widens them and W_U
    through the dense layer before it. In slices over the vocabulary. Raises ValueError for a head
    or word that does not exist, and where the readout is narrow without such a layer."""
    module = _attention(model, attention, layer, head)
    matrix = _readout(model)
    if not ids or not all(0 <= each < model.card.n_vocab for each in ids):
        raise ValueError(f"the vocabulary has ids 0 to {model.card.n_vocab - 1}")
    words = _word_vectors(model, torch.tensor(ids))
    w_q, w_k, w_v = (
        _head_slice(each, module, head) for each in (module.w_q, module.w_k, module.w_v)
    )
    v = words @ w_v if values is None else torch.tensor(np.asarray(values, dtype=np.float32))
    w_o = module.w_o.weight.T[head * module.d_head : (head + 1) * module.d_head]
    q = words @ w_q / module.scale
    key_scores, key_ids = _keys(model, q, w_k)
    raised_ids, raised, lowered_ids, lowered, own_change, own_rank = _top_changes(
        matrix, v @ w_o, torch.tensor(ids)
    )
    return Circuits(
        np.array(ids),
        raised_ids,
        raised,
        lowered_ids,
        lowered,
        own_change,
        own_rank,
        key_ids.numpy(),
        key_scores.numpy(),
        (q @ (words @ w_k).T).numpy(),
    )


def _attention(model: OwnModel, attention: str, layer: int, head: int) -> MultiHeadAttention:
    layers = model.attentions.get(attention, [])
    if not 0 <= layer < len(layers) or not 0 <= head < model.card.n_head:
        raise ValueError(f"{model.card.name} has no head {layer}.{head} of {attention!r}")
    return layers[layer]


def _word_vectors(model: OwnModel, ids: Tensor) -> Tensor:
    """Words as the stream begins with them, (word, d_model)."""
    embedding = model.network.embedding
    return embedding.words(embedding.token.weight[ids])


def _head_slice(linear: torch.nn.Linear, module: MultiHeadAttention, head: int) -> Tensor:
    """A head's part of W_Q, W_K or W_V, (d_model, d_head); heads may share keys and values."""
    n = linear.out_features // module.d_head
    key_head = head * n // module.n_head
    return linear.weight[key_head * module.d_head : (key_head + 1) * module.d_head].T


def _readout(model: OwnModel) -> Tensor:
    """The direction of each word's logit in the stream, (id, d_model)."""
    matrix, dense = model.network.readout_matrix, model.network.transform
    if matrix.shape[1] != model.card.d_model and dense is not None:
        return matrix @ dense.weight
    if matrix.shape[1] != model.card.d_model and model.network.embedding.widen is not None:
        return model.network.embedding.words(matrix)  # no readout: embeddings stand in for it
    expect_same_width(matrix.shape[1], model.card.d_model)
    return matrix


def _top_changes(matrix: Tensor, writes: Tensor, ids: Tensor) -> tuple[np.ndarray, ...]:
    """Of what is written (word, d_model) the words it raises most and by how much, and lowers most,
    and for each word itself its own change and how many it raises more."""
    blocks = []
    for block, block_ids in zip(writes.split(ROWS), ids.split(ROWS)):
        checkpoint()
        logits = block @ matrix.T  # (word, id)
        n_top = min(TOP_WORDS, logits.shape[-1])
        up, down = logits.topk(n_top), logits.topk(n_top, largest=False)
        own_logits = logits.gather(1, block_ids[:, None])
        rank = (logits > own_logits).sum(-1)
        blocks.append((up.indices, up.values, down.indices, down.values, own_logits[:, 0], rank))
    return tuple(torch.cat(each).numpy() for each in zip(*blocks))


def _keys(model: OwnModel, q: Tensor, w_k: Tensor) -> tuple[Tensor, Tensor]:
    """The vocabulary's words with the largest q . k for each query (word, d_head): scores and ids,
    (word, rank)."""
    n = model.card.n_vocab
    best, best_ids = q.new_zeros(len(q), 0), torch.zeros(len(q), 0, dtype=torch.long)
    for block in torch.arange(n).split(KEYS):
        checkpoint()
        scores = q @ (_word_vectors(model, block) @ w_k).T  # (word, some)
        candidates = torch.cat((best, scores), 1)
        candidate_ids = torch.cat((best_ids, block.expand(len(q), -1)), 1)
        best, ranks = candidates.topk(min(TOP_WORDS, candidates.shape[1]))
        best_ids = candidate_ids.gather(1, ranks)
    return best, best_ids
