"""Scores of a model's heads on held-out text, for model cards and training logs."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import torch

from models import token_relations
from models.own_model import OwnModel, from_network, record
from models.tokenizer import Tokenizer
from models.transformer import Transformer


def mean_scores(model: OwnModel, texts: list[str]) -> dict[str, np.ndarray]:
    """Each relation's score (layer, head), averaged over the texts that have it; under "broad", the
    entropy share."""
    by_relation: dict[str, list[np.ndarray]] = {
        name: [] for name in (*token_relations.RELATIONS, "broad")
    }
    for text in texts:
        recording = record(model, text)
        attention = recording.attention[0]
        stream = recording.stream(attention.query)
        for name, mask in token_relations.text_relations(stream.tokens, stream.special).items():
            by_relation[name].append(token_relations.score(attention.pattern, mask))
        by_relation["broad"].append(
            token_relations.entropy(attention.pattern, attention.allowed[0])
        )
    return {name: np.nanmean(scores, axis=0) for name, scores in by_relation.items()}


def previous_far_out(
    model: OwnModel, texts: list[str], positions: range = range(400, 511)
) -> float:
    """The best previous-token head's weight on the token before, at late positions of a long
    text."""
    pattern = record(model, " ".join(texts)).attention[0].pattern
    at = np.array(positions)
    return float(pattern[:, :, at, at - 1].mean(axis=-1).max())


def best_heads(network: Transformer, tokenizer: Tokenizer, texts: list[str]) -> dict[str, str]:
    """Each relation's highest score over all heads, and that head, as "0.812 L1H3"."""
    with torch.inference_mode(False):
        # A loaded model lays the matrices out anew, and an optimizer would go on in the old order.
        model = from_network(deepcopy(network), tokenizer, "in training", fingerprint="")
    best = {}
    for name, scores in mean_scores(model, texts).items():
        layer, head = np.unravel_index(np.nanargmax(scores), scores.shape)
        best[name] = f"{scores[layer, head]:.3f} L{layer}H{head}"
    return best
