"""What each head does on this very text: a name where the numbers carry one, the evidence for it, and figures to sort by.

A head's score for a relation (`models/relations.py`) is the mean attention its queries give to the keys in that relation. A uniform row
gives `chance`. The `lift` (score - chance) / (1 - chance) is 0 at chance and 1 when all attention goes there. A head is named after the
relation of highest lift if that lift is at least `NAMED` and enough single queries, more than half, reach it too ("special", which
takes in "first" and part of "separator", only where no other fits); otherwise it is "broad" if its rows are nearly
uniform, and else it has no clear pattern.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models import relations
from models.recording import Attention, Recording

NAMED = 0.4
BROAD = 0.85
FEWEST_TOKENS = 5
# Queries that must show a relation before it may name a head: places are had by any text, repeated words are rare.
FEWEST_QUERIES = {"same word": 2, "induction": 2}
FEWEST_QUERIES_ELSE = 4

NO_PATTERN, TOO_SHORT = "no clear pattern", "text too short"
# In the order offered to a reader; the notes say what each means.
MEANING = {
    "previous": "Each token looks at the one before it.",
    "next": "Each token looks at the one after it.",
    "self": "Each token looks at itself.",
    "first": "Attention rests on the first token, often called a sink.",
    "separator": "Attention goes to punctuation and special tokens.",
    "special": "Attention rests on the special tokens at both ends.",
    "same word": "A repeated word looks at its other occurrences.",
    "induction": "A repeated word looks at what followed it last time.",
    "broad": "Attention is spread almost evenly.",
    NO_PATTERN: "None of these habits stands out on this text.",
    TOO_SHORT: f"Fewer than {FEWEST_TOKENS} tokens show no habit.",
}


@dataclass(frozen=True)
class Evidence:
    """One cell that speaks for a name: query and key position and the weight between them."""

    query: int
    key: int
    weight: float


@dataclass(frozen=True)
class Relation:
    """How much one head follows one relation: mean attention, what a uniform row gives, how many queries could show it, and how many
    do (their own lift reaches `NAMED`)."""

    name: str
    score: float
    chance: float
    n_queries: int
    n_shown: int

    @property
    def lift(self) -> float:
        return (self.score - self.chance) / (1 - self.chance) if self.chance < 1 else 0.0


@dataclass(frozen=True)
class Head:
    """One head on one text. `score` and `chance` belong to `name`; NaN where it has none.

    entropy: mean row entropy as a share of a uniform row's (0 to 1). distance: mean |query - key| weighted by attention, in tokens.
    sink: mean attention to the first token. All NaN-free except on a text of a single token.
    """

    layer: int
    head: int
    name: str
    score: float
    chance: float
    n_queries: int
    n_shown: int
    entropy: float
    distance: float
    sink: float
    relations: tuple[Relation, ...]
    evidence: tuple[Evidence, ...]


def describe(recording: Recording, attention: Attention) -> tuple[Head, ...]:
    """Every head of an attention, named and measured, layer by layer."""
    masks = masks_of(recording, attention)
    found = _relations(attention, masks)
    entropy = relations.entropy(attention.pattern, attention.allowed)
    distance, sink = _distance(attention.pattern), attention.pattern[..., 0].mean(axis=-1)
    layers, heads = attention.pattern.shape[:2]
    described = []
    for layer, head in np.ndindex(layers, heads):
        name, score, chance, n_queries, n_shown = _name(found[layer][head], float(entropy[layer, head]), attention.pattern.shape)
        described.append(
            Head(
                layer, head, name, score, chance, n_queries, n_shown,
                float(entropy[layer, head]), float(distance[layer, head]), float(sink[layer, head]),
                found[layer][head], _evidence(attention.pattern[layer, head], masks.get(name)),
            )  # fmt: skip
        )
    return tuple(described)


def _relations(attention: Attention, masks: dict[str, np.ndarray]) -> list[list[tuple[Relation, ...]]]:
    """Every relation that this text can show, for each [layer][head]."""
    layers, heads = attention.pattern.shape[:2]
    found: list[list[list[Relation]]] = [[[] for _ in range(heads)] for _ in range(layers)]
    for name, mask in masks.items():
        held = mask & attention.allowed
        rows = held.any(axis=1)
        if not rows.any():
            continue
        chance = held[rows].sum(axis=1) / attention.allowed[rows].sum(axis=1)
        mass = relations.mass(attention.pattern, held)
        shown = (mass - chance >= NAMED * (1 - chance)) & (chance < 1)
        for layer, head in np.ndindex(layers, heads):
            found[layer][head].append(
                Relation(name, float(mass[layer, head].mean()), float(chance.mean()), int(rows.sum()), int(shown[layer, head].sum()))
            )
    return [[tuple(each) for each in layer] for layer in found]


def clarity(head: Head) -> float:
    """How far a head's named pattern stands above chance; under 0 for a head named after none."""
    named = [relation.lift for relation in head.relations if relation.name == head.name]
    return named[0] if named else head.entropy - 2


def masks_of(recording: Recording, attention: Attention) -> dict[str, np.ndarray]:
    """The relations that make sense for this attention, each (query, key) bool: none of order between two different streams."""
    if attention.query != attention.key:
        return {}
    stream = recording.stream(attention.query)
    return relations.of(stream.tokens, stream.special)


def _name(found: tuple[Relation, ...], entropy: float, shape: tuple[int, ...]) -> tuple[str, float, float, int, int]:
    """(name, score, chance, queries that could show it, queries that do): the rule of the module's docstring."""
    if max(shape[2:]) < FEWEST_TOKENS:
        return TOO_SHORT, float("nan"), float("nan"), 0, 0
    fit = [
        one for one in found
        if one.lift >= NAMED and one.n_shown >= FEWEST_QUERIES.get(one.name, FEWEST_QUERIES_ELSE) and 2 * one.n_shown > one.n_queries
    ]  # fmt: skip
    if fit:
        best = max(fit, key=lambda relation: (relation.name != "special", relation.lift))
        return best.name, best.score, best.chance, best.n_queries, best.n_shown
    if entropy >= BROAD:
        return "broad", entropy, 1.0, shape[2], shape[2]
    return NO_PATTERN, float("nan"), float("nan"), 0, 0


def _evidence(pattern: np.ndarray, mask: np.ndarray | None, most: int = 3) -> tuple[Evidence, ...]:
    """The strongest cells (query, key) of the relation, one for each query at most, strongest first."""
    if mask is None:
        return ()
    held = np.where(mask, pattern, -1.0)
    keys = held.argmax(axis=1)
    weights = held[np.arange(len(keys)), keys]
    return tuple(
        Evidence(int(query), int(keys[query]), float(weights[query]))
        for query in np.argsort(-weights, kind="stable")[:most]
        if weights[query] >= 0
    )


def _distance(pattern: np.ndarray) -> np.ndarray:
    """Mean over queries of sum_key pattern x |query - key|, (layer, head), in tokens."""
    queries, keys = pattern.shape[2:]
    apart = np.abs(np.arange(queries)[:, None] - np.arange(keys)[None, :])
    return np.einsum("lhqk,qk->lhq", pattern, apart.astype(pattern.dtype)).mean(axis=-1)
