"""What each head does on this very text: a name where the numbers carry one, the evidence for it,
and figures to sort by.

A head's score for a relation (`models/relations.py`) is the mean attention its queries give to the
keys in that relation. A uniform row gives `chance`. The `lift` (score - chance) / (1 - chance) is 0
at chance and 1 when all attention goes there. A head is named after the relation of highest lift if
that lift is at least `NAMED`, more than half of the queries that could show it reach it too, among
them
`FEWEST_ROWS` different tokens, and heads whose every row looks at one key drawn at random would
show it in as many rows in fewer than one case in fifty (`FLUKE`).

A sink is one thing: attention to the first token and the special ones, whichever of them. Rows say
nothing of luck there, since a head that rests on a key does so in all of them; what speaks is that
the heads that rest on one key agree on such a one far beyond chance (`sinks.resting`). Where they
do, a head that gives these tokens `RESTED` times what an even row gives is a sink if nothing else
fits: after the other names, and below a lift of `NAMED` after "broad", a head whose rows are nearly
uniform. What is left has no clear pattern.

Only what is allowed counts, and a row that leaves no choice speaks for nothing: in a decoder the
first token must look at itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from explorer.analysis import sinks
from explorer.analysis.luck import at_least
from models import relations
from models.recording import Attention, Recording

NAMED = 0.43
BROAD = 0.85
RESTED = 1.5
FEWEST_TOKENS = 5
# So many different tokens must show a relation before it may name a head: on one word said over and
# over all rows are one.
FEWEST_ROWS = 4
FLUKE = 0.02
NEAR = relations.NEAR

SINK, NO_PATTERN, TOO_SHORT = "sink", "no clear pattern", "text too short"
FIRST = "the first token"  # what a share of the sink is called where that token is no special one
# The relations that can name a head, within one text and between two.
NAMING = ("previous", "next", "self", "same word", "induction", SINK)
NAMING_ACROSS = ("diagonal", "anti-diagonal", SINK)
EVEN = "in an even row"
# In the order offered to a reader; the notes say what each means.
MEANING = {
    "previous": "Each token looks at the one before it.",
    "next": "Each token looks at the one after it.",
    "self": "Each token looks at itself.",
    SINK: f"Attention rests on the first and the special tokens more than {EVEN}: a sink.",
    "same word": "A repeated word looks at its other occurrences.",
    "induction": "A repeated word looks at what followed it last time.",
    "broad": "Attention is spread almost evenly.",
    NO_PATTERN: "None of these habits stands out on this text.",
    TOO_SHORT: f"Fewer than {FEWEST_TOKENS} tokens show no habit.",
}
# What differs where a token sees none of the later ones.
MEANING_CAUSAL = {
    "same word": "A repeated word looks at its earlier occurrences.",
    "broad": "Attention is spread almost evenly over the tokens so far.",
}
MEANING_ACROSS = {
    "diagonal": (
        "While the target is written, attention walks along the source: each token looks near its "
        "own relative place."
    ),
    "anti-diagonal": (
        "While the target is written, attention walks back from the source’s end: each token "
        "looks near its mirrored place."
    ),
    SINK: f"Attention rests on the source’s first and special tokens more than {EVEN}: a sink.",
    "broad": "Attention is spread almost evenly over the source.",
    NO_PATTERN: MEANING[NO_PATTERN],
    TOO_SHORT: f"A side of fewer than {FEWEST_TOKENS} tokens shows no habit.",
}
# Why a relation does not name a head.
WEAK, FEW_ROWS, FEW_TOKENS, LUCK = (
    "too weak",
    "in too few rows",
    "by too few different tokens",
    "may be luck",
)


def meanings(recording: Recording, attention: Attention) -> dict[str, str]:
    """What each name says of a head of this attention, in the order offered to a reader."""
    special = np.array(recording.stream(attention.key).special, dtype=bool)
    across = attention.query != attention.key
    place = (
        "the special tokens"
        if special[:1].any()
        else "the first token and the special ones"
        if special.any()
        else "the first token"
    )
    if special[:1].any() and special.sum() == 1:
        place = "the special token"
    sink = {
        SINK: f"Attention rests on {place}{' of the source' * across} more than {EVEN}: a sink."
    }
    if across:
        return MEANING_ACROSS | sink
    return MEANING | ({} if attention.allowed.all() else MEANING_CAUSAL) | sink


class Evidence(NamedTuple):
    """One cell that speaks for a name: query and key position and the weight between them."""

    query: int
    key: int
    weight: float


class Relation(NamedTuple):
    """How much one head follows one relation: mean attention, what a uniform row gives, how many
    queries could show it, and how many do (their own lift reaches `NAMED`; for a sink, their
    attention `RESTED` times an even row's).

    fluke: the probability that as many do by luck. against: why it cannot name the head, "" where
    it can.
    """

    name: str
    score: float
    chance: float
    n_queries: int
    n_shown: int
    fluke: float
    against: str = ""

    @property
    def lift(self) -> float:
        return lift(self.score, self.chance)


class Head(NamedTuple):
    """One head on one text. `score` and `chance` belong to `name`; NaN where it has none.

    entropy: mean row entropy as a share of a uniform row's (0 to 1), over the rows that have a
    choice. distance: mean |query - key| in tokens, weighted by attention, without what rests on
    special tokens and sinks (`sinks.reach`). sink: mean attention to the first and the special
    tokens, as the relation of that name has it; shares: the same of each of them, ("[CLS]", 0.3).
    NaN where no row tells.
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
    shares: tuple[tuple[str, float], ...]
    relations: tuple[Relation, ...]
    evidence: tuple[Evidence, ...]


def lift(score: float, chance: float) -> float:
    """How far a score stands above chance: 0 at chance, 1 where all attention goes there."""
    return (score - chance) / (1 - chance) if chance < 1 else 0.0


def describe(recording: Recording, attention: Attention) -> tuple[Head, ...]:
    """Every head of an attention, named and measured, layer by layer."""
    masks = masks_of(recording, attention)
    found = _relations(recording, attention, masks)
    entropy = relations.entropy(attention.pattern, attention.allowed).ravel().tolist()
    distance = sinks.reach(recording, attention)[0].ravel().tolist()
    shares = [
        [(label, share) for share in each.ravel().tolist()]
        for label, each in _shares(recording, attention, masks.get(SINK))
    ]
    short = min(attention.pattern.shape[2:]) < FEWEST_TOKENS
    none = (TOO_SHORT, None)
    names = [none if short else _name(*each) for each in zip(found, entropy)]
    evidence = _evidence_of(attention.pattern, masks, [name for name, _ in names])
    n_queries = attention.pattern.shape[2]
    return tuple(
        Head(
            layer,
            head,
            name,
            *_figures(name, best, entropy[at], n_queries),
            entropy[at],
            distance[at],
            next((one.score for one in found[at] if one.name == SINK), float("nan")),
            tuple(each[at] for each in shares),
            found[at],
            evidence[at],
        )
        for at, ((layer, head), (name, best)) in enumerate(
            zip(np.ndindex(attention.pattern.shape[:2]), names)
        )
    )


def _figures(
    name: str, best: Relation | None, entropy: float, n_queries: int
) -> tuple[float, float, int, int]:
    """(score, chance, queries that could show it, queries that do) of a head's name."""
    if best is not None:
        return best.score, best.chance, best.n_queries, best.n_shown
    if name == "broad":
        return entropy, 1.0, n_queries, n_queries
    return float("nan"), float("nan"), 0, 0


def _relations(
    recording: Recording, attention: Attention, masks: dict[str, np.ndarray]
) -> list[tuple[Relation, ...]]:
    """Every relation that this text can show and that can name a head, for each head, layer by
    layer."""
    across = attention.query != attention.key
    tokens = recording.stream(attention.query).tokens
    kinds = _codes(range(len(tokens)) if across else [token.casefold() for token in tokens])
    agreed = sinks.resting(recording, attention).fluke
    naming = [name for name in (NAMING_ACROSS if across else NAMING) if name in masks]
    showing = [masks[name].any(axis=1) for name in naming]
    chances = [
        masks[name][rows].sum(axis=1) / attention.allowed[rows].sum(axis=1)
        for name, rows in zip(naming, showing)
    ]
    found = []
    for name, rows, chance, lucky in zip(naming, showing, chances, _at_least(chances)):
        mask = masks[name]
        mass = relations.mass(attention.pattern, mask)
        least = RESTED * chance if name == SINK else chance + NAMED * (1 - chance)
        shown = mass >= least
        # in fp32, as which alone a product of matrices is fast
        of_kind = np.eye(kinds.max() + 1, dtype=np.float32)[kinds[rows]]
        different = (shown.astype(np.float32) @ of_kind > 0).sum(-1)
        n_shown = shown.sum(axis=-1)
        fluke = np.full(n_shown.shape, agreed) if name == SINK else lucky[n_shown]
        of_heads = (each.ravel().tolist() for each in (mass.mean(-1), n_shown, fluke, different))
        even = float(chance.mean())
        found.append([_relation(name, even, len(chance), *one) for one in zip(*of_heads)])
    return list(zip(*found)) if found else [()] * int(np.prod(attention.pattern.shape[:2]))


def _at_least(chances: Sequence[np.ndarray]) -> np.ndarray:
    """What `luck.at_least` says of each, (lot, number of events): all at once."""
    filled = np.zeros((len(chances), max(map(len, chances), default=0)))
    for row, chance in zip(filled, chances):
        row[: len(chance)] = chance
    return at_least(filled)


def _relation(
    name: str,
    chance: float,
    n_queries: int,
    score: float,
    n_shown: int,
    fluke: float,
    different: int,
) -> Relation:
    """How much a head follows a relation, and what speaks against naming it so. different: how many
    different tokens show it."""
    if name == SINK:
        weak, rare = score < RESTED * chance, fluke > sinks.FLUKE
    else:
        weak, rare = lift(score, chance) < NAMED, fluke > FLUKE
    against = ""
    if weak:
        against = WEAK
    elif name != SINK and 2 * n_shown <= n_queries:
        against = FEW_ROWS
    elif different < FEWEST_ROWS:
        against = FEW_TOKENS
    elif rare:
        against = LUCK
    return Relation(name, score, chance, n_queries, n_shown, fluke, against)


def _codes(names: Iterable[Hashable]) -> np.ndarray:
    """A number for each name, the same for equal ones, from 0."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=int)


def clarity(head: Head) -> float:
    """How far a head's named pattern stands above chance; under 0 for a head named after none."""
    named = [relation.lift for relation in head.relations if relation.name == head.name]
    return named[0] if named else head.entropy - 2


def masks_of(recording: Recording, attention: Attention) -> dict[str, np.ndarray]:
    """The relations that this attention can show on this text, each (query, key) bool with some
    cell: within one text those of order and of words, between two those of relative place. Allowed
    cells alone, and none of a row whose allowed cells all stand in the relation."""
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
    return {name: mask for name, mask in held.items() if mask.any()}


def _name(found: tuple[Relation, ...], entropy: float) -> tuple[str, Relation | None]:
    """The name, and the relation it is of: the rule of the module's docstring."""
    fit = [one for one in found if not one.against]
    clear = [one for one in fit if one.lift >= NAMED]
    if clear:
        best = max(clear, key=lambda relation: relation.lift)
        return best.name, best
    if entropy >= BROAD:
        return "broad", None
    return (fit[0].name, fit[0]) if fit else (NO_PATTERN, None)


def _shares(
    recording: Recording, attention: Attention, mask: np.ndarray | None
) -> list[tuple[str, np.ndarray]]:
    """What a head gives to each token that is a sink, on average over the rows of that relation:
    label and (layer, head)."""
    if mask is None:
        return []
    stream, rows = recording.stream(attention.key), mask.any(axis=1)
    labels = [label if special else FIRST for label, special in zip(stream.tokens, stream.special)]
    sinking = np.flatnonzero(mask.any(axis=0))
    return [
        (
            label,
            relations.mass(
                attention.pattern, mask & np.array([each == label for each in labels])
            ).sum(axis=-1)
            / rows.sum(),
        )
        for label in dict.fromkeys(labels[key] for key in sinking)
    ]


def _evidence_of(
    pattern: np.ndarray, masks: dict[str, np.ndarray], names: list[str], most: int = 3
) -> list[tuple[Evidence, ...]]:
    """For each head, layer by layer, the strongest cells (query, key) of the relation it is named
    after, as `masks_of` has it: one for each query at most, strongest first."""
    heads = pattern.reshape(-1, *pattern.shape[2:])
    found: list[tuple[Evidence, ...]] = [()] * len(heads)
    for name in set(names) & set(masks):
        which = np.array([at for at, each in enumerate(names) if each == name])
        keys, real = _keys_of(masks[name])
        held = heads[which[:, None, None], np.arange(len(keys))[:, None], keys]
        held = np.where(real, held, -1.0)
        best, weights = held.argmax(axis=-1), held.max(axis=-1)
        first = np.argsort(-weights, axis=-1, kind="stable")[:, :most]
        keys = keys[first, np.take_along_axis(best, first, -1)]
        cells = (first, keys, np.take_along_axis(weights, first, -1))
        for at, one in zip(which, zip(*(each.tolist() for each in cells))):
            found[at] = tuple(Evidence(*cell) for cell in zip(*one) if cell[2] >= 0)
    return found


def _keys_of(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row's masked keys in order, (query, most of a row), and which entries are one."""
    real = np.arange(mask.sum(axis=1).max()) < mask.sum(axis=1)[:, None]
    keys = np.zeros(real.shape, int)
    keys[real] = np.nonzero(mask)[1]
    return keys, real
