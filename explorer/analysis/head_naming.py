"""What each head does on this very text: a name where the numbers carry one, the evidence for it,
and figures to sort by.

A head's score for a relation (`models/token_relations.py`) is the mean attention its queries give
to the keys in that relation. A uniform row gives `chance`. The `lift` (score - chance) / (1 -
chance) is 0 at chance and 1 when all attention goes there. A head is named after the relation of
highest lift if that lift is at least `NAMED`, more than half of the queries that could show it
reach it too, among them
`FEWEST_ROWS` different tokens, and heads whose every row looks at one key drawn at random would
show it in as many rows in fewer than one case in fifty (`FLUKE`).

A sink is one thing: attention to the first token and the special ones, whichever of them. Rows say
nothing of luck there, since a head that rests on a key does so in all of them; what speaks is that
the heads that rest on one key agree on such a one far beyond chance (`sinks.resting`). Where they
do, a head that gives these tokens `RESTED` times what an even row gives is a sink if nothing else
fits: after the other names, and below a lift of `NAMED` after "broad", a head whose rows are nearly
uniform. What is left is named after what it does over a list of sentences, where that was measured:
a head that attends from a pronoun to its noun (`coreference`). Else it has no clear pattern.

Only what is allowed counts, and a row that leaves no choice speaks for nothing: in a decoder the
first token must look at itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from explorer.analysis import coreference
from explorer.analysis.poisson_binomial import of_lots
from models import token_relations
from models.recording import Attention, Recording

# The cells of an attention that speak for what its heads are called, and what its sinks take.

FIRST = "the first token"  # what a share of the sink is called where that token is no special one
MOST = 3  # cells of a head


class EvidenceCell(NamedTuple):
    """One cell that speaks for a name: query and key position and the weight between them."""

    query: int
    key: int
    weight: float


def shares_of(
    recording: Recording, attention: Attention, mask: np.ndarray
) -> list[tuple[tuple[str, float], ...]]:
    """What each head, layer by layer, gives to each token that is a sink, on average over the rows
    of that relation, whose `mask` (query, key) it is: ("[CLS]", 0.3)."""
    stream, n_rows = recording.stream(attention.key), mask.any(axis=1).sum()
    places: dict[str, list[int]] = {}
    for key in np.flatnonzero(mask.any(axis=0)).tolist():
        places.setdefault(stream.tokens[key] if stream.special[key] else FIRST, []).append(key)
    found = []
    for label, keys in places.items():
        only = np.zeros_like(mask)
        only[:, keys] = mask[:, keys]
        share = token_relations.mass(attention.pattern, only).sum(axis=-1) / n_rows
        found.append([(label, each) for each in share.ravel().tolist()])
    return list(zip(*found))


def evidence_of(
    pattern: np.ndarray, masks: np.ndarray, best: Sequence[int]
) -> list[tuple[EvidenceCell, ...]]:
    """For each head, layer by layer, the strongest cells (query, key) of the relation it is named
    after, the `best` of masks (relation, query, key), -1 for none: one for each query at most,
    strongest first."""
    heads, named = pattern.reshape(-1, *pattern.shape[2:]), np.array(best)
    found: list[tuple[EvidenceCell, ...]] = [()] * len(heads)
    at_once = pattern.size <= token_relations.AT_ONCE
    for some in [named >= 0] if at_once else [named == one for one in set(best) - {-1}]:
        which = np.flatnonzero(some)
        if at_once:
            held = np.where(masks[named[which]], heads[which], -1.0)
            keys = None
        else:
            keys, real = _keys_of(masks[named[which[0]]])
            held = heads[which[:, None, None], np.arange(len(keys))[:, None], keys]
            held = np.where(real, held, -1.0)
        columns, weights = held.argmax(axis=-1), held.max(axis=-1)
        rows = np.argsort(-weights, axis=-1, kind="stable")[:, :MOST]
        beside = np.arange(len(which))[:, None]
        columns, weights = columns[beside, rows], weights[beside, rows]
        cells = (rows, columns if keys is None else keys[rows, columns], weights)
        for at, one in zip(which.tolist(), zip(*(each.tolist() for each in cells))):
            found[at] = tuple(EvidenceCell(*cell) for cell in zip(*one) if cell[2] >= 0)
    return found


def _keys_of(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row's masked keys in order, (query, most of a row), and which entries are one."""
    real = np.arange(mask.sum(axis=1).max()) < mask.sum(axis=1)[:, None]
    keys = np.zeros(real.shape, int)
    keys[real] = np.nonzero(mask)[1]
    return keys, real


# Where a head rests when it looks at nothing in particular, and how far it looks when that is
# left out.

# So much of a head's attention on average, and so many times what an even row gives.
SINK_SHARE, SINK_LIFT = 0.2, 3
# A head rests on the key of highest lift, where that lift is so much; to tell, a row needs as many
# keys and a key as many rows.
RESTS, FEWEST = 0.3, 4
# Heads that rest on the first and special tokens agree on them where luck would have it so in fewer
# cases than this.
SINK_FLUKE = 0.003
# Share of an attention's heads from which a sink is the crowd's.
CROWD = 0.25
# A head that gives the other tokens less than this in all has no distance to speak of.
FAINT = 0.05


def sinks(pattern: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Which keys are sinks, (..., key) bool: their mean weight over the rows is at least SINK and
    SINK_LIFT times an even row's.

    pattern (..., query, key) of one head or of many; allowed (query, key). Rows that leave no
    choice count for nothing."""
    choice = (allowed.sum(axis=1) > 1).astype(pattern.dtype)
    return _sinks(choice @ pattern, allowed)


def _sinks(received: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The same by what the keys are given, (..., key), by the rows that have a choice."""
    choice = allowed.sum(axis=1) > 1
    if not choice.any():
        return np.zeros(received.shape, bool)
    even = allowed[choice] / allowed[choice].sum(axis=1, keepdims=True)
    mean = received / choice.sum()
    return (mean >= SINK_SHARE) & (mean >= SINK_LIFT * even.mean(axis=0))


def quiet(recording: Recording, attention: Attention) -> np.ndarray:
    """The keys that a head rests on rather than looks at, (layer, head, key) bool: special tokens,
    the text's first token, on which models without special ones rest, and the head's own sinks."""
    resting = np.array(recording.stream(attention.key).special, dtype=bool)
    resting[:1] = True
    return _sinks(attention.received, attention.allowed) | resting


def crowded(recording: Recording, attention: Attention) -> np.ndarray:
    """The keys on which the heads rest together, (key) bool: special tokens, and those that are a
    sink of at least a quarter of the heads."""
    special = np.array(recording.stream(attention.key).special, dtype=bool)
    of_head = _sinks(attention.received, attention.allowed)
    return special | (of_head.mean(axis=(0, 1)) >= CROWD)


def telling(recording: Recording, attention: Attention) -> tuple[np.ndarray, np.ndarray]:
    """The cells from which a head's reach can be read, as rows (query) bool and keys (layer, head,
    key) bool: rows of text that have at least two keys of text to choose from, and keys that are
    not `quiet`."""
    keys = ~quiet(recording, attention)
    text = ~np.array(recording.stream(attention.key).special, dtype=bool)
    text[:1] = False
    rows = (attention.allowed & text).sum(axis=1) > 1
    return rows & ~np.array(recording.stream(attention.query).special, dtype=bool), keys


def reach(recording: Recording, attention: Attention) -> tuple[np.ndarray, np.ndarray]:
    """How far each head looks where it does not rest on a sink: the mean |query - key| in tokens,
    and the share of its attention that this is measured on, each (layer, head).

    Both over the cells that are `telling`, weighted by attention. NaN where the share is under
    FAINT, where there is no such row, and between two texts, which have no distance."""
    rows, keys = telling(recording, attention)
    none = np.full(attention.pattern.shape[:2], np.nan)
    if attention.query != attention.key or not rows.any():
        return none, none.copy()
    places, pattern = np.arange(len(rows)), attention.pattern
    apart = (np.abs(places[:, None] - places) * rows[:, None]).astype(pattern.dtype)
    others = (attention.allowed.sum(axis=1) > 1) & ~rows
    given = attention.received
    if others.any():
        given = given - pattern[:, :, others].sum(axis=2)
    weight = (given * keys).sum(-1)
    far = (np.einsum("lhqk,qk->lhk", pattern, apart) * keys).sum(-1)
    share = weight / rows.sum()
    told = share >= FAINT
    return np.where(told, far / np.where(told, weight, 1), np.nan), share


@dataclass(frozen=True)
class Resting:
    """Heads of an attention that rest on one key, and for how many that key is the first token or a
    special one.

    chance: the share of these among the different tokens of the text, which is how often a head
    that rests on any key would do so on one of them."""

    n_heads: int
    n_on_sinks: int
    chance: float

    @property
    def fluke(self) -> float:
        """The probability that at least as many heads rest on them by luck."""
        return float(of_lots([np.full(self.n_heads, self.chance)])[0, self.n_on_sinks])


def resting(recording: Recording, attention: Attention) -> Resting:
    """Which heads rest on one key, and whether on the first or a special token.

    A head's lift on a key is the mean over rows of (weight - even) / (1 - even), where an even row
    gives `even`; the row of the key itself, and in one text a key with fewer rows than FEWEST, are
    left out, so are rows with fewer keys."""
    stream, allowed = recording.stream(attention.key), attention.allowed
    even = 1 / np.maximum(allowed.sum(axis=1, keepdims=True), 1)
    counts = allowed & (allowed.sum(axis=1) >= FEWEST)[:, None]
    if attention.query == attention.key:
        counts = counts & ~np.eye(len(allowed), dtype=bool)
    told = counts.sum(axis=0) >= FEWEST
    if not told.any():
        return Resting(0, 0, 1.0)
    of_row = (counts.any(axis=1) / np.maximum(1 - even[:, 0], 1e-9)).astype(attention.pattern.dtype)
    given = of_row @ attention.pattern
    if attention.query == attention.key:
        given -= of_row * np.diagonal(attention.pattern, axis1=2, axis2=3)
    n_rows = np.maximum(counts.sum(axis=0), 1)
    lift = given / n_rows - (counts * of_row[:, None] * even).sum(axis=0) / n_rows
    lift[..., ~told] = -1
    sinking = np.array(stream.special, dtype=bool)
    sinking[:1] = True
    rests = lift.max(axis=-1) >= RESTS
    kinds = [token.casefold() for token in stream.tokens]
    different = {kinds[key] for key in np.flatnonzero(told)}
    of_them = {kinds[key] for key in np.flatnonzero(told & sinking)}
    return Resting(
        int(rests.sum()),
        int((rests & sinking[lift.argmax(axis=-1)]).sum()),
        len(of_them) / len(different),
    )


NAMED = 0.43
BROAD = 0.85
RESTED = 1.5
FEWEST_TOKENS = 5
# So many different tokens must show a relation before it may name a head: on one word said over and
# over all rows are one.
FEWEST_ROWS = 4
FLUKE = 0.02
NEAR = token_relations.NEAR

SINK, NO_PATTERN, TOO_SHORT = "sink", "no clear pattern", "text too short"
PRONOUN = "pronoun to noun"
FINDS_NOUN = "A pronoun attends to the noun it stands for."
# The relations that can name a head, within one text and between two.
NAMING = ("previous", "next", "self", "same word", "induction", SINK)
NAMING_ACROSS = ("diagonal", "anti-diagonal", SINK)
EVEN = "in an even row"
# In the order offered to a reader; the notes say what each means.
MEANING = {
    "previous": "Each token attends to the one before it.",
    "next": "Each token attends to the one after it.",
    "self": "Each token attends to itself.",
    SINK: f"Attention rests on the first and the special tokens more than {EVEN}: a sink.",
    "same word": "A repeated word attends to its other occurrences.",
    "induction": "A repeated word attends to what followed it last time.",
    PRONOUN: f"{FINDS_NOUN} Measured over test sentences and not on this text.",
    "broad": "Attention is spread almost evenly.",
    NO_PATTERN: "None of these habits stands out on this text.",
    TOO_SHORT: f"Fewer than {FEWEST_TOKENS} tokens show no habit.",
}
# What differs where a token sees none of the later ones.
MEANING_CAUSAL = {
    "same word": "A repeated word attends to its earlier occurrences.",
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
AGAINST = ("", WEAK, FEW_ROWS, FEW_TOKENS, LUCK)  # in the order in which they are said


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
    made = MEANING | ({} if attention.allowed.all() else MEANING_CAUSAL) | sink
    if not coreference.of(recording, attention):
        del made[PRONOUN]
    return made


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
    special tokens and sinks (`head_naming.reach`). sink: mean attention to the first and the
    special tokens, as the relation of that name has it; shares: the same of each of them,
    ("[CLS]", 0.3). NaN where no row tells.
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
    evidence: tuple[EvidenceCell, ...]


def lift(score: float, chance: float) -> float:
    """How far a score stands above chance: 0 at chance, 1 where all attention goes there."""
    return (score - chance) / (1 - chance) if chance < 1 else 0.0


def describe(recording: Recording, attention: Attention) -> tuple[Head, ...]:
    """Every head of an attention, named and measured, layer by layer."""
    shown = _shown(recording, attention)
    follows = _follows(recording, attention, shown)
    found, n_head = follows.relations(), attention.pattern.shape[1]
    entropy = token_relations.entropy(attention.pattern, attention.allowed).ravel().tolist()
    distance = reach(recording, attention)[0].ravel().tolist()
    if min(attention.pattern.shape[2:]) < FEWEST_TOKENS:
        best, names = [-1] * len(found), [TOO_SHORT] * len(found)
    else:
        best = follows.best(np.array(entropy))
        names = [_name(shown.names, *each) for each in zip(best, entropy)]
    shares: list[tuple[tuple[str, float], ...]] = [()] * len(found)
    resting = [float("nan")] * len(found)
    if SINK in shown.names:
        at = shown.names.index(SINK)
        shares = shares_of(recording, attention, shown.masks[at])
        resting = follows.score[at].tolist()
    evidence = evidence_of(attention.pattern, shown.masks, best)
    measured = coreference.of(recording, attention)
    for at, name in enumerate(names):
        if name == NO_PATTERN and (one := measured.get(divmod(at, n_head))):
            names[at], best[at] = PRONOUN, len(found[at])
            found[at] += (Relation(PRONOUN, one.score, one.chance, one.n, one.n_shown, one.fluke),)
    n_queries = attention.pattern.shape[2]
    return tuple(
        Head(
            at // n_head,
            at % n_head,
            name,
            *_figures(name, found[at][best[at]] if best[at] >= 0 else None, entropy[at], n_queries),
            entropy[at],
            distance[at],
            resting[at],
            shares[at],
            found[at],
            evidence[at],
        )
        for at, name in enumerate(names)
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


@dataclass(frozen=True, eq=False)
class _Shown:
    """The relations that an attention can show on a text and that can name a head, each with some
    cell: masks (relation, query, key) bool, even (relation, query): what an even row gives them, 0
    in a row that cannot show one."""

    names: list[str]
    masks: np.ndarray
    even: np.ndarray


def _shown(recording: Recording, attention: Attention) -> _Shown:
    """Within one text the relations of order and of words, between two those of relative place.
    Allowed cells alone, and none of a row whose allowed cells all stand in the relation."""
    keys = recording.stream(attention.key)
    if attention.query == attention.key:
        made = token_relations.by_place(keys.special) | token_relations.repeats(
            keys.tokens, keys.special
        )
        naming: tuple[str, ...] = NAMING
    else:
        made = token_relations.across(attention.pattern.shape[2], keys.tokens, keys.special)
        naming = NAMING_ACROSS
    masks = np.stack([made[name] for name in naming])
    masks &= attention.allowed
    counts, n_allowed = masks.sum(axis=2), attention.allowed.sum(axis=1)
    none = counts == n_allowed
    if none.any():
        masks &= ~none[..., None]
        counts[none] = 0
    there = np.flatnonzero(counts.any(axis=1))
    if len(there) < len(naming):
        masks, counts = masks[there], counts[there]
    return _Shown([naming[at] for at in there], masks, counts / n_allowed)


@dataclass(frozen=True, eq=False)
class _Follows:
    """How much the heads follow the relations `names`, (relation, head): as `Relation` has it, with
    `against` a number of AGAINST. chance and n_queries (relation)."""

    names: list[str]
    chance: np.ndarray
    n_queries: np.ndarray
    score: np.ndarray
    n_shown: np.ndarray
    fluke: np.ndarray
    different: np.ndarray

    @cached_property
    def lift(self) -> np.ndarray:
        """As `lift` has it."""
        beyond = 1 - self.chance[:, None]
        return (self.score - self.chance[:, None]) / np.where(beyond > 0, beyond, np.inf)

    @cached_property
    def against(self) -> np.ndarray:
        """What speaks against each name, the first of AGAINST that does."""
        sink = np.array([name == SINK for name in self.names], dtype=bool)[:, None]
        weak = np.where(sink, self.score < RESTED * self.chance[:, None], self.lift < NAMED)
        few_rows = ~sink & (2 * self.n_shown <= self.n_queries[:, None])
        luck = self.fluke > np.where(sink, SINK_FLUKE, FLUKE)
        made = luck * AGAINST.index(LUCK)
        few_tokens = self.different < FEWEST_ROWS
        for speaks, why in ((few_tokens, FEW_TOKENS), (few_rows, FEW_ROWS), (weak, WEAK)):
            made[speaks] = AGAINST.index(why)
        return made

    def relations(self) -> list[tuple[Relation, ...]]:
        """The same, for each head all relations."""
        of_relations = zip(
            self.names,
            *(each.tolist() for each in (self.chance, self.n_queries, self.score, self.n_shown)),
            *(each.tolist() for each in (self.fluke, self.against)),
        )
        found = [
            [
                Relation(name, score, chance, n_queries, n_shown, fluke, AGAINST[against])
                for score, n_shown, fluke, against in zip(*of_heads)
            ]
            for name, chance, n_queries, *of_heads in of_relations
        ]
        return list(zip(*found)) if found else [()] * self.score.shape[1]

    def best(self, entropy: np.ndarray) -> list[int]:
        """The relation that each head is named after, -1 where it is none: the rule of the module's
        docstring. entropy (head)."""
        if not self.names:
            return [-1] * len(entropy)
        fit = self.against == 0
        clear = np.where(fit & (self.lift >= NAMED), self.lift, -1)
        none = ~fit.any(axis=0) | (entropy >= BROAD)
        first = np.where(none, -1, fit.argmax(axis=0))
        return np.where(clear.max(axis=0) >= 0, clear.argmax(axis=0), first).tolist()


def _follows(recording: Recording, attention: Attention, shown: _Shown) -> _Follows:
    """How much every head follows the relations that are `shown`."""
    tokens = recording.stream(attention.query).tokens
    across = attention.query != attention.key
    kinds = _codes(range(len(tokens)) if across else [token.casefold() for token in tokens])
    showing = shown.even > 0
    chances = [even[rows] for even, rows in zip(shown.even, showing)]
    sink = np.array([name == SINK for name in shown.names], dtype=bool)[:, None]
    least = np.where(sink, RESTED * shown.even, shown.even + NAMED * (1 - shown.even))
    n_heads = attention.pattern.shape[0] * attention.pattern.shape[1]
    reached = np.zeros((len(shown.names), n_heads, len(tokens)), np.float32)
    score = np.empty(reached.shape[:2])
    for at, (mask, rows) in enumerate(zip(shown.masks, showing)):
        mass = token_relations.mass(attention.pattern, mask)
        score[at] = mass.mean(-1).ravel()
        reached[at][:, rows] = (mass >= least[at, rows]).reshape(n_heads, -1)
    # in fp32, as which alone a product of matrices is fast
    of_kind = np.eye(kinds.max() + 1, dtype=np.float32)[kinds]
    n_shown = reached.sum(axis=-1).astype(int)
    lucky = of_lots(chances)[np.arange(len(sink))[:, None], n_shown]
    return _Follows(
        shown.names,
        np.array([each.mean() for each in chances]),
        np.array([len(each) for each in chances], dtype=int),
        score,
        n_shown,
        np.where(sink, resting(recording, attention).fluke, lucky),
        (reached @ of_kind > 0).sum(axis=-1),
    )


def _codes(names: Iterable[Hashable]) -> np.ndarray:
    """A number for each name, the same for equal ones, from 0."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=int)


def clarity(head: Head) -> float:
    """How far a head's named pattern stands above chance; under 0 for a head named after none."""
    named = [relation.lift for relation in head.relations if relation.name == head.name]
    return named[0] if named else head.entropy - 2


def _name(names: Sequence[str], best: int, entropy: float) -> str:
    """What a head is called that is named after the relation `best` of `names`, or after none."""
    if best >= 0:
        return names[best]
    return "broad" if entropy >= BROAD else NO_PATTERN
