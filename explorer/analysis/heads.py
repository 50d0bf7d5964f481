"""What each head does on this very text: a name where the numbers carry one, the evidence for it, and figures to sort by.

A head's score for a relation (`models/relations.py`) is the mean attention its queries give to the keys in that relation. A uniform row
gives `chance`. The `lift` (score - chance) / (1 - chance) is 0 at chance and 1 when all attention goes there. A head is named after the
relation of highest lift if that lift is at least `NAMED` and enough single queries, more than half, reach it too ("special", which
takes in "first" and part of "separator", only where no other fits); otherwise it is "broad" if its rows are nearly
uniform, and else it has no clear pattern.

Between two texts a relation may take in many of few keys, so there a name also needs that heads whose every row looks at one key drawn at
random would show it in as many rows in fewer than one case in a hundred (`FLUKE`); and the lift of "separator", which takes in "end",
counts `EDGE` less.

Only what is allowed counts, and a row that leaves no choice speaks for nothing: in a decoder the first token must look at itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis import sinks
from models import relations
from models.recording import Attention, Recording

NAMED = 0.4
BROAD = 0.85
FEWEST_TOKENS = 5
# Queries that must show a relation before it may name a head: places are had by any text, repeated words are rare.
FEWEST_QUERIES = {"same word": 2, "induction": 2}
FEWEST_QUERIES_ELSE = 4
FLUKE = 0.01
EDGE = 0.05
NEAR = relations.NEAR

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
# What differs where a token sees none of the later ones.
MEANING_CAUSAL = {
    "separator": "Attention goes to the punctuation so far.",
    "special": "Attention rests on the special tokens so far.",
    "same word": "A repeated word looks at its earlier occurrences.",
    "broad": "Attention is spread almost evenly over the tokens so far.",
}
MEANING_ACROSS = {
    "diagonal": "While the target is written, attention walks along the source: each token looks near its own relative place.",
    "anti-diagonal": "While the target is written, attention walks back from the source’s end: each token looks near its mirrored place.",
    "first": "Attention rests on the source’s first token.",
    "end": "Attention rests on the special token at the source’s end.",
    "separator": "Attention goes to the source’s punctuation and special tokens.",
    "broad": "Attention is spread almost evenly over the source.",
    NO_PATTERN: MEANING[NO_PATTERN],
    TOO_SHORT: f"A side of fewer than {FEWEST_TOKENS} tokens shows no habit.",
}
# A relation that on some text is the very same cells as one of these says nothing of its own there.
SAID_BY = {"special": ("first",), "separator": ("special", "end")}


def meanings(recording: Recording, attention: Attention) -> dict[str, str]:
    """What each name says of a head of this attention, in the order offered to a reader."""
    if attention.query != attention.key:
        return MEANING_ACROSS
    if not attention.allowed.all():
        return MEANING | MEANING_CAUSAL
    special = recording.stream(attention.key).special
    return (
        MEANING
        if special[0]
        else MEANING | {"special": "Attention rests on the special token at the end."}
    )


@dataclass(frozen=True)
class Evidence:
    """One cell that speaks for a name: query and key position and the weight between them."""

    query: int
    key: int
    weight: float


@dataclass(frozen=True)
class Relation:
    """How much one head follows one relation: mean attention, what a uniform row gives, how many queries could show it, and how many
    do (their own lift reaches `NAMED`). fluke: the probability that as many do where each looks at one allowed key drawn at random."""

    name: str
    score: float
    chance: float
    n_queries: int
    n_shown: int
    fluke: float

    @property
    def lift(self) -> float:
        return (self.score - self.chance) / (1 - self.chance) if self.chance < 1 else 0.0


@dataclass(frozen=True)
class Head:
    """One head on one text. `score` and `chance` belong to `name`; NaN where it has none.

    entropy: mean row entropy as a share of a uniform row's (0 to 1), over the rows that have a choice. distance: mean |query - key| in
    tokens, weighted by attention, without what rests on special tokens and sinks (`sinks.reach`). sink: mean attention to the first token
    (`sinks.on_first`). NaN where no row tells.
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
    (distance, _), sink = sinks.reach(recording, attention), sinks.on_first(attention)
    layers, heads = attention.pattern.shape[:2]
    described = []
    for layer, head in np.ndindex(layers, heads):
        name, score, chance, n_queries, n_shown = _name(
            found[layer][head], float(entropy[layer, head]), attention
        )
        described.append(
            Head(
                layer,
                head,
                name,
                score,
                chance,
                n_queries,
                n_shown,
                float(entropy[layer, head]),
                float(distance[layer, head]),
                float(sink[layer, head]),
                found[layer][head],
                _evidence(attention.pattern[layer, head], masks.get(name)),
            )
        )
    return tuple(described)


def _relations(
    attention: Attention, masks: dict[str, np.ndarray]
) -> list[list[tuple[Relation, ...]]]:
    """Every relation that this text can show, for each [layer][head]."""
    layers, heads = attention.pattern.shape[:2]
    found: list[list[list[Relation]]] = [[[] for _ in range(heads)] for _ in range(layers)]
    for name, mask in masks.items():
        rows = mask.any(axis=1)
        chance = mask[rows].sum(axis=1) / attention.allowed[rows].sum(axis=1)
        mass = relations.mass(attention.pattern, mask)
        shown = (mass - chance >= NAMED * (1 - chance)).sum(axis=-1)
        fluke = _at_least(chance)
        for layer, head in np.ndindex(layers, heads):
            n_shown = int(shown[layer, head])
            found[layer][head].append(
                Relation(
                    name,
                    float(mass[layer, head].mean()),
                    float(chance.mean()),
                    int(rows.sum()),
                    n_shown,
                    float(fluke[n_shown]),
                )
            )
    return [[tuple(each) for each in layer] for layer in found]


def _at_least(chance: np.ndarray) -> np.ndarray:
    """The probability that at least k of n independent events happen, for k from 0 to n. chance (n) of each."""
    exactly = np.ones(1)
    for one in chance:
        exactly = np.append(exactly * (1 - one), 0) + np.append(0, exactly * one)
    return np.minimum(exactly[::-1].cumsum()[::-1], 1)


def clarity(head: Head) -> float:
    """How far a head's named pattern stands above chance; under 0 for a head named after none."""
    named = [relation.lift for relation in head.relations if relation.name == head.name]
    return named[0] if named else head.entropy - 2


def masks_of(recording: Recording, attention: Attention) -> dict[str, np.ndarray]:
    """The relations that this attention can show on this text, each (query, key) bool with some cell: within one text those of order and of
    words, between two those of relative place. Allowed cells alone, and none of a row whose allowed cells all stand in the relation."""
    keys = recording.stream(attention.key)
    if attention.query == attention.key:
        masks = relations.of(keys.tokens, keys.special)
    else:
        masks = relations.across(attention.pattern.shape[2], keys.tokens, keys.special)
    held = {name: mask & attention.allowed for name, mask in masks.items()}
    held = {
        name: mask & (mask.sum(axis=1) < attention.allowed.sum(axis=1))[:, None]
        for name, mask in held.items()
    }
    return {
        name: mask
        for name, mask in held.items()
        if mask.any()
        and not any(
            other in held and np.array_equal(mask, held[other]) for other in SAID_BY.get(name, ())
        )
    }


def _name(
    found: tuple[Relation, ...], entropy: float, attention: Attention
) -> tuple[str, float, float, int, int]:
    """(name, score, chance, queries that could show it, queries that do): the rule of the module's docstring."""
    shape, across = attention.pattern.shape, attention.query != attention.key
    luckiest, edge = (FLUKE, EDGE) if across else (1.0, 0.0)
    if min(shape[2:]) < FEWEST_TOKENS:
        return TOO_SHORT, float("nan"), float("nan"), 0, 0
    fit = [
        one
        for one in found
        if one.lift >= NAMED
        and one.n_shown >= FEWEST_QUERIES.get(one.name, FEWEST_QUERIES_ELSE)
        and 2 * one.n_shown > one.n_queries
        and one.fluke <= luckiest
    ]
    if fit:
        best = max(
            fit,
            key=lambda relation: (
                relation.name != "special",
                relation.lift - edge * (relation.name == "separator"),
            ),
        )
        return best.name, best.score, best.chance, best.n_queries, best.n_shown
    if entropy >= BROAD:
        return "broad", entropy, 1.0, shape[2], shape[2]
    return NO_PATTERN, float("nan"), float("nan"), 0, 0


def _evidence(pattern: np.ndarray, mask: np.ndarray | None, most: int = 3) -> tuple[Evidence, ...]:
    """The strongest cells (query, key) of a relation as `masks_of` has it, one for each query at most, strongest first."""
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
