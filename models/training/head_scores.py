"""Scores of a model's heads on held-out text, for model cards and training logs."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch

from models.contract import token_relations
from models.network.own_model import OwnModel, from_network, record
from models.network.transformer import Transformer
from models.tokens.tokenizer import Tokenizer


class BestHead(NamedTuple):
    """The highest of all heads' scores and whose it is; as text "0.812 L1H3"."""

    score: float
    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.score:.3f} L{self.layer}H{self.head}"


def best_head(scores: Any) -> BestHead:
    """The best of scores (layer, head), an array or a tensor; NaN for a head without one."""
    layer, head = divmod(int(np.nanargmax(scores)), scores.shape[1])
    return BestHead(float(scores[layer, head]), layer, head)


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


def previous_far_out(model: OwnModel, texts: list[str]) -> float:
    """The best previous-token head's weight on the token before, at positions 400 to 510 of a long
    text."""
    pattern = record(model, " ".join(texts)).attention[0].pattern
    at = np.arange(400, 511)
    return float(pattern[:, :, at, at - 1].mean(axis=-1).max())


def best_heads(network: Transformer, tokenizer: Tokenizer, texts: list[str]) -> dict[str, str]:
    """Each relation's highest score over all heads, and that head, as "0.812 L1H3"."""
    with torch.inference_mode(False):
        # A loaded model lays the matrices out anew, and an optimizer would go on in the old order.
        model = from_network(deepcopy(network), tokenizer, "in training", fingerprint="")
    return {name: str(best_head(scores)) for name, scores in mean_scores(model, texts).items()}
