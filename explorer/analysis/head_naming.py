"""Names of heads by their pattern on a text, the evidence for them, and figures to sort by.

A head's score for a relation (`models/contract/token_relations.py`) is the mean attention its
queries give to the keys in that relation. A uniform row gives `chance`. The `lift` (score - chance)
/ (1 - chance) is 0 at chance and 1 when all attention goes to these keys. A head is named after the
relation of highest lift under three conditions. The lift is at least `MIN_LIFT`. More than half of
the queries that could show it reach it too, among them `FEWEST_ROWS` different tokens. Heads whose
every row attends to one random key would show it in as many rows in fewer than one case in fifty
(`MAX_P_VALUE`). In layer 0 no head is named "induction": a key there holds its own token alone, so
that nothing tells a head which token stood before it (Elhage et al., 2021).

All sinks are one relation: attention to the first token and the special ones, whichever of them.
The number of rows is no evidence against chance there, since a head that rests on a key does so in
all of them; the evidence is that the heads that rest on one key agree on such a one far beyond
chance (`resting_heads`). Where they do, a head that gives these tokens `SINK_RATIO` times the
weight of a uniform row is a sink if nothing else fits: after the other names, and below a lift of
`MIN_LIFT` after "diffuse", a head whose rows are nearly uniform. Else a head has no clear pattern.

A text has few pronouns, too few to tell a habit from luck. "Pronoun to noun" therefore stands
under another third condition: the head was found to attend from pronouns to their nouns in a list
of test sentences (`coreference`). Score, chance and the rows that show it are this text's.

Only allowed cells count, and a row with one allowed key is no evidence: in a decoder the first
token must attend to itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from explorer.analysis import coreference, words
from explorer.analysis.poisson_binomial import batched_tail_probabilities
from explorer.analysis.terminology import sees_all
from explorer.wording.templates import named, sentences
from models.contract import token_relations
from models.contract.recording import Attention, Recording

# The cells of an attention that speak for what its heads are called, and what its sinks take.

FIRST = "the first token"  # what a share of the sink is called where that token is no special one
MOST = 3  # cells of a head


class EvidenceCell(NamedTuple):
    """One cell that speaks for a name: query and key position and the weight between them."""

    query: int
    key: int
    weight: float


def sink_shares(
    recording: Recording, attention: Attention, mask: np.ndarray
) -> list[tuple[tuple[str, float], ...]]:
    """Mean weight of each head on each sink token, layer by layer: ("[CLS]", 0.3). The mean is over
    the rows of that relation, whose `mask` is (query, key)."""
    stream, n_rows = recording.stream(attention.key), mask.any(axis=1).sum()
    places: dict[str, list[int]] = {}
    for key in np.flatnonzero(mask.any(axis=0)).tolist():
        places.setdefault(stream.tokens[key] if stream.special[key] else FIRST, []).append(key)
    shares_by_label = []
    for label, keys in places.items():
        only = np.zeros_like(mask)
        only[:, keys] = mask[:, keys]
        share = token_relations.mass(attention.pattern, only).sum(axis=-1) / n_rows
        shares_by_label.append([(label, each) for each in share.ravel().tolist()])
    return list(zip(*shares_by_label))


def evidence_cells(
    pattern: np.ndarray, masks: np.ndarray, best: Sequence[int]
) -> list[tuple[EvidenceCell, ...]]:
    """For each head, layer by layer, the strongest cells (query, key) of the relation it is named
    after, the `best` of masks (relation, query, key), -1 for none: one for each query at most,
    strongest first."""
    heads, named = pattern.reshape(-1, *pattern.shape[2:]), np.array(best)
    evidence: list[tuple[EvidenceCell, ...]] = [()] * len(heads)
    at_once = pattern.size <= token_relations.CHUNK_SIZE
    for selected in [named >= 0] if at_once else [named == one for one in set(best) - {-1}]:
        head_indices = np.flatnonzero(selected)
        if at_once:
            masked_weights = np.where(masks[named[head_indices]], heads[head_indices], -1.0)
            keys = None
        else:
            keys, valid = _masked_keys(masks[named[head_indices[0]]])
            masked_weights = heads[head_indices[:, None, None], np.arange(len(keys))[:, None], keys]
            masked_weights = np.where(valid, masked_weights, -1.0)
        columns, weights = masked_weights.argmax(axis=-1), masked_weights.max(axis=-1)
        rows = np.argsort(-weights, axis=-1, kind="stable")[:, :MOST]
        row_index = np.arange(len(head_indices))[:, None]
        columns, weights = columns[row_index, rows], weights[row_index, rows]
        cells = (rows, columns if keys is None else keys[rows, columns], weights)
        for at, one in zip(head_indices.tolist(), zip(*(each.tolist() for each in cells))):
            evidence[at] = tuple(EvidenceCell(*cell) for cell in zip(*one) if cell[2] >= 0)
    return evidence


def _masked_keys(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row's masked keys in order, (query, most of a row), and which entries are one."""
    valid = np.arange(mask.sum(axis=1).max()) < mask.sum(axis=1)[:, None]
    keys = np.zeros(valid.shape, int)
    keys[valid] = np.nonzero(mask)[1]
    return keys, valid


# Where a head rests when it looks at nothing in particular, and how far it looks when that is
# left out.

# So much of a head's attention on average, and so many times what an even row gives.
SINK_SHARE, SINK_LIFT = 0.2, 3
# A head rests on the key of highest lift, where that lift is so much; to tell, a row needs as many
# keys and a key as many rows.
RESTING_LIFT, FEWEST = 0.3, 4
# Heads that rest on the first and special tokens agree on them where luck would have it so in fewer
# cases than this.
SINK_MAX_P_VALUE = 0.003
# Share of an attention's heads from which a sink is the crowd's.
CROWD = 0.25
# A head that gives the other tokens less than this in all has no distance to speak of.
MIN_REACH_SHARE = 0.05


def sinks(pattern: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Mask of the keys that are sinks, (..., key) bool: their mean weight over the rows is at least
    SINK and SINK_LIFT times that of a uniform row.

    pattern (..., query, key) of one head or of many; allowed (query, key). Rows with one allowed
    key do not count."""
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


def resting_keys(recording: Recording, attention: Attention) -> np.ndarray:
    """Mask of the keys that a head rests on, (layer, head, key) bool: special tokens, the text's
    first token, on which models without special ones rest, and the head's own sinks."""
    resting = np.array(recording.stream(attention.key).special, dtype=bool)
    resting[:1] = True
    return head_sinks(attention) | resting


def head_sinks(attention: Attention) -> np.ndarray:
    """Mask of the keys that are sinks of a head, (layer, head, key) bool."""
    result = np.zeros(attention.received.shape, bool)
    for layers, allowed in attention.masks:
        result[layers] = _sinks(attention.received[layers], allowed)
    return result


def shared_sinks(recording: Recording, attention: Attention) -> np.ndarray:
    """The keys on which the heads rest together, (key) bool: special tokens, and those that are a
    sink of at least a quarter of the heads."""
    special = np.array(recording.stream(attention.key).special, dtype=bool)
    return special | (head_sinks(attention).mean(axis=(0, 1)) >= CROWD)


def reach_cells(recording: Recording, attention: Attention) -> tuple[np.ndarray, np.ndarray]:
    """The cells from which a head's reach can be read, as rows (query) bool and keys (layer, head,
    key) bool: rows of text that have at least two keys of text to choose from in every layer, and
    keys that are not `resting_keys`."""
    keys = ~resting_keys(recording, attention)
    text = ~np.array(recording.stream(attention.key).special, dtype=bool)
    text[:1] = False
    rows = np.all([(mask & text).sum(axis=1) > 1 for _, mask in attention.masks], axis=0)
    return rows & ~np.array(recording.stream(attention.query).special, dtype=bool), keys


def reach(recording: Recording, attention: Attention) -> tuple[np.ndarray, np.ndarray]:
    """Mean attention distance |query - key| of each head in tokens, outside of sinks, and the share
    of its attention that this is measured on, each (layer, head).

    Both over the `reach_cells`, weighted by attention. NaN where the share is under FAINT, where
    there is no such row, and between two texts, which have no distance."""
    rows, keys = reach_cells(recording, attention)
    none = np.full(attention.pattern.shape[:2], np.nan)
    if attention.query != attention.key or not rows.any():
        return none, none.copy()
    places, pattern = np.arange(len(rows)), attention.pattern
    distance = (np.abs(places[:, None] - places) * rows[:, None]).astype(pattern.dtype)
    received = attention.received
    for layers, allowed in attention.masks:
        if (others := (allowed.sum(axis=1) > 1) & ~rows).any():
            received = received.copy() if received is attention.received else received
            received[layers] -= pattern[layers][:, :, others].sum(axis=2)
    weight = (received * keys).sum(-1)
    weighted_distance = (np.einsum("lhqk,qk->lhk", pattern, distance) * keys).sum(-1)
    share = weight / rows.sum()
    measurable = share >= MIN_REACH_SHARE
    return np.where(measurable, weighted_distance / np.where(measurable, weight, 1), np.nan), share


@dataclass(frozen=True)
class RestingHeads:
    """Heads of an attention that rest on one key, and for how many that key is the first token or a
    special one.

    chance: the share of these among the different tokens of the text, which is how often a head
    that rests on any key would do so on one of them."""

    n_heads: int
    n_on_sinks: int
    chance: float

    @property
    def p_value(self) -> float:
        """The probability that at least as many heads rest on them by luck."""
        return float(
            batched_tail_probabilities([np.full(self.n_heads, self.chance)])[0, self.n_on_sinks]
        )


def resting_heads(recording: Recording, attention: Attention) -> RestingHeads:
    """Heads that rest on one key, and whether that is the first or a special token.

    A head's lift on a key is the mean over rows of (weight - even) / (1 - even), where a uniform
    row gives `even`; the row of the key itself, and in one text a key with fewer rows than FEWEST,
    are left out, so are rows with fewer keys. The layers have one mask."""
    stream, allowed = recording.stream(attention.key), attention.allowed[0]
    even = 1 / np.maximum(allowed.sum(axis=1, keepdims=True), 1)
    counts = allowed & (allowed.sum(axis=1) >= FEWEST)[:, None]
    if attention.query == attention.key:
        counts = counts & ~np.eye(len(allowed), dtype=bool)
    countable = counts.sum(axis=0) >= FEWEST
    if not countable.any():
        return RestingHeads(0, 0, 1.0)
    row_weight = (counts.any(axis=1) / np.maximum(1 - even[:, 0], 1e-9)).astype(
        attention.pattern.dtype
    )
    received = row_weight @ attention.pattern
    if attention.query == attention.key:
        received -= row_weight * np.diagonal(attention.pattern, axis1=2, axis2=3)
    n_rows = np.maximum(counts.sum(axis=0), 1)
    lift = received / n_rows - (counts * row_weight[:, None] * even).sum(axis=0) / n_rows
    lift[..., ~countable] = -1
    is_sink = np.array(stream.special, dtype=bool)
    is_sink[:1] = True
    is_resting = lift.max(axis=-1) >= RESTING_LIFT
    token_types = [token.casefold() for token in stream.tokens]
    all_types = {token_types[key] for key in np.flatnonzero(countable)}
    sink_types = {token_types[key] for key in np.flatnonzero(countable & is_sink)}
    return RestingHeads(
        int(is_resting.sum()),
        int((is_resting & is_sink[lift.argmax(axis=-1)]).sum()),
        len(sink_types) / len(all_types),
    )


MIN_LIFT = 0.43
BROAD_ENTROPY = 0.85
SINK_RATIO = 1.5
FEWEST_TOKENS = 5
# So many different tokens must show a relation before it may name a head: on one word said over and
# over all rows are one.
FEWEST_ROWS = 4
MAX_P_VALUE = 0.02
NEAR = token_relations.DIAGONAL_TOLERANCE

SINK, NO_PATTERN, TOO_SHORT = "sink", "no clear pattern", "text too short"
PRONOUN = "pronoun to noun"
UNNAMED = (NO_PATTERN, TOO_SHORT)  # of a head without a name
# The relations that can name a head by a text alone, within one text and between two.
INDUCTION = "induction"
NAMING = ("previous", "next", "self", "same word", INDUCTION, SINK)
NAMING_ACROSS = ("diagonal", "anti-diagonal", SINK)


def _meanings(table: str) -> dict[str, str]:
    """Sentences on what names mean, in the order offered to a reader."""
    words = sentences("head_naming", table)
    return {name: words(name, fewest=FEWEST_TOKENS) for name in named("head_naming", table)}


MEANING = _meanings("meaning")
MEANING_CAUSAL = _meanings("meaning_causal")  # what differs where no token sees the later ones
MEANING_ACROSS = _meanings("meaning_across")
# Why a relation does not name a head.
FIRST_LAYER, WEAK, FEW_ROWS, FEW_TOKENS, LUCK, UNTESTED = (
    "coincidence in layer 0",
    "too weak",
    "in too few rows",
    "by too few different tokens",
    "not significant",
    "not confirmed by test sentences",
)
# In the order in which they are said.
REJECTIONS = ("", FIRST_LAYER, WEAK, FEW_ROWS, FEW_TOKENS, LUCK, UNTESTED)


def meanings(recording: Recording, attention: Attention) -> dict[str, str]:
    """The meaning of each name for a head of this attention, in the order offered to a reader."""
    special = np.array(recording.stream(attention.key).special, dtype=bool)
    across = attention.query != attention.key
    place = (
        ("special_token" if special.sum() == 1 else "special_tokens")
        if special[:1].any()
        else ("first_and_special" if special.any() else "first_token")
    )
    sink = {SINK: sentences("head_naming", "sink_across" if across else "sink")(place)}
    if across:
        return MEANING_ACROSS | sink
    is_free = all(sees_all(mask) for _, mask in attention.masks)
    texts = MEANING | ({} if is_free else MEANING_CAUSAL) | sink
    if not coreference.measured_heads(recording, attention):
        del texts[PRONOUN]
    return texts


class Relation(NamedTuple):
    """Score of one head for one relation: mean attention, the `chance` of a uniform row, the number
    of queries that could show it, and of those that do (their own lift reaches `MIN_LIFT`; for a
    sink, their attention `SINK_RATIO` times a uniform row's).

    p_value: the probability of as many matches by chance. against: why it cannot name the head, ""
    where it can."""

    name: str
    score: float
    chance: float
    n_queries: int
    n_matches: int
    p_value: float
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
    ("[CLS]", 0.3). NaN where no row tells. tested: of a head that finds a pronoun's noun in test
    sentences what was measured there, whatever its name on this text.
    """

    layer: int
    head: int
    name: str
    score: float
    chance: float
    n_queries: int
    n_matches: int
    entropy: float
    distance: float
    sink: float
    shares: tuple[tuple[str, float], ...]
    relations: tuple[Relation, ...]
    evidence: tuple[EvidenceCell, ...]
    tested: coreference.CoreferenceHead | None = None


def lift(score: float, chance: float) -> float:
    """The score above chance: 0 at chance, 1 where all attention goes to the relation's keys."""
    return (score - chance) / (1 - chance) if chance < 1 else 0.0


def describe(
    recording: Recording, attention: Attention, with_pronouns: bool = False
) -> tuple[Head, ...]:
    """Every head of an attention, named and measured, layer by layer. with_pronouns: what goes from
    pronouns to nouns is scored also where no head finds nouns in test sentences."""
    layers = np.arange(len(attention.pattern))
    heads = [
        head
        for at, _ in attention.masks
        for head in _describe_layers(
            recording, attention, attention.of_layers(at), layers[at], with_pronouns
        )
    ]
    return tuple(sorted(heads, key=lambda head: head[:2]))


def _describe_layers(
    recording: Recording,
    whole: Attention,
    attention: Attention,
    layers: np.ndarray,
    with_pronouns: bool,
) -> tuple[Head, ...]:
    """The heads of `layers` of an attention, which have one mask; `attention` is of these alone."""
    relation_masks = _relation_masks(recording, attention, with_pronouns=with_pronouns)
    n_head = attention.pattern.shape[1]
    places = [(int(layer), head) for layer in layers for head in range(n_head)]
    tested = coreference.measured_heads(recording, whole)
    is_tested = np.array([place in tested for place in places])
    n_first = n_head if 0 in layers else 0
    scores = _relation_scores(recording, attention, relation_masks, n_first, is_tested)
    relations = scores.relations()
    entropy = token_relations.entropy(attention.pattern, attention.allowed[0]).ravel().tolist()
    distance = reach(recording, attention)[0].ravel().tolist()
    if min(attention.pattern.shape[2:]) < FEWEST_TOKENS:
        best, names = [-1] * len(relations), [TOO_SHORT] * len(relations)
    else:
        best = scores.best(np.array(entropy))
        names = [_name(relation_masks.names, *each) for each in zip(best, entropy)]
    shares: list[tuple[tuple[str, float], ...]] = [()] * len(relations)
    sink_scores = [float("nan")] * len(relations)
    if SINK in relation_masks.names:
        at = relation_masks.names.index(SINK)
        shares = sink_shares(recording, attention, relation_masks.masks[at])
        sink_scores = scores.score[at].tolist()
    evidence = evidence_cells(attention.pattern, relation_masks.masks, best)
    n_queries = attention.pattern.shape[2]
    return tuple(
        Head(
            places[at][0],
            places[at][1],
            name,
            *_name_scores(
                name, relations[at][best[at]] if best[at] >= 0 else None, entropy[at], n_queries
            ),
            entropy[at],
            distance[at],
            sink_scores[at],
            shares[at],
            relations[at],
            evidence[at],
            tested.get(places[at]),
        )
        for at, name in enumerate(names)
    )


def _name_scores(
    name: str, best: Relation | None, entropy: float, n_queries: int
) -> tuple[float, float, int, int]:
    """(score, chance, queries that could show it, queries that do) of a head's name."""
    if best is not None:
        return best.score, best.chance, best.n_queries, best.n_matches
    if name == "diffuse":
        return entropy, 1.0, n_queries, n_queries
    return float("nan"), float("nan"), 0, 0


# Cells (query, key) of a pattern, bool: for every text, or made of one.
Cells = np.ndarray | Callable[[Recording, Attention], np.ndarray]


@dataclass(frozen=True, eq=False)
class _RelationMasks:
    """The relations that an attention can show on a text and that can name a head, each with some
    cell: masks (relation, query, key) bool, even (relation, query): what an even row gives them, 0
    in a row that cannot show one."""

    names: list[str]
    masks: np.ndarray
    even: np.ndarray


def pattern_scores(
    recording: Recording,
    attention: Attention,
    own: Mapping[str, Cells],
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The patterns that a text can show: name, score (layer, head), and chance of the same shape;
    NaN in layers whose mask leaves no choice. own: those of a caller, in the place of ours: cells
    (query, key), or what makes them. Raises ValueError for cells of another shape."""
    shape = attention.pattern.shape[:2]
    made = {}
    for name, cells in own.items():
        given = cells(recording, attention) if callable(cells) else cells
        made[name] = np.asarray(given, bool)
        if made[name].shape != attention.pattern.shape[2:]:
            raise ValueError(
                f"the cells of {name!r} are (query, key), {attention.pattern.shape[2:]} of this "
                f"text, and not {made[name].shape}"
            )
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for at, _ in attention.masks:
        part = attention.of_layers(at)
        masks = _relation_masks(recording, part, with_pronouns=True, own=made)
        for name, mask, even in zip(masks.names, masks.masks, masks.even):
            score, chance = found.setdefault(name, (np.full(shape, np.nan), np.full(shape, np.nan)))
            score[at] = token_relations.mass(part.pattern, mask).mean(-1)
            chance[at] = even[even > 0].mean()
    for name, (score, chance) in found.items():
        yield name, score, chance


def _relation_masks(
    recording: Recording,
    attention: Attention,
    layer: int = 0,
    with_pronouns: bool = False,
    own: Mapping[str, np.ndarray] | None = None,
) -> _RelationMasks:
    """Within one text the relations of order and of words, between two those of relative place; in
    their place a caller's `own`, where there are any. Cells that are allowed in the layer alone,
    and none of a row whose allowed cells all stand in the relation."""
    keys = recording.stream(attention.key)
    if own:
        masks_by_name, names = dict(own), tuple(own)
    elif attention.query == attention.key:
        masks_by_name = token_relations.positional_relations(
            keys.special
        ) | token_relations.repetition_relations(keys.tokens, keys.special)
        masks_by_name[PRONOUN] = _pronoun_mask(recording, attention, with_pronouns)
        names = (*NAMING, PRONOUN)
    else:
        masks_by_name = token_relations.cross_relations(
            attention.pattern.shape[2], keys.tokens, keys.special
        )
        names = NAMING_ACROSS
    masks = np.stack([masks_by_name[name] for name in names])
    masks &= attention.allowed[layer]
    counts, n_allowed = masks.sum(axis=2), attention.allowed[layer].sum(axis=1)
    no_choice = counts == n_allowed
    if no_choice.any():
        masks &= ~no_choice[..., None]
        counts[no_choice] = 0
    present = np.flatnonzero(counts.any(axis=1))
    if len(present) < len(names):
        masks, counts = masks[present], counts[present]
    return _RelationMasks([names[at] for at in present], masks, counts / n_allowed)


def _pronoun_mask(recording: Recording, attention: Attention, always: bool) -> np.ndarray:
    """Mask of the cells from a pronoun of the text that a noun stands before to a likely noun,
    (query, key) bool: all tokens of either word. None of an attention in which no head finds nouns
    in test sentences, but where `always`."""
    stream = recording.stream(attention.key)
    if not always and not coreference.measured_heads(recording, attention):
        return np.zeros(attention.pattern.shape[2:], bool)
    is_source = stream is recording.streams[0]
    grouped = words.words(stream, recording.text if is_source else recording.target)
    nouns = coreference.candidates(grouped.labels, grouped.labels)
    nouns &= np.tril(nouns, -1).any(axis=1, keepdims=True)
    return nouns[grouped.of][:, grouped.of]


def explains(recording: Recording, attention: Attention, head: Head, query: int, key: int) -> bool:
    """True where a head's name says why a token attends to another: where the two stand in the
    relation of that name."""
    if head.name in UNNAMED:
        return False
    relation_masks = _relation_masks(recording, attention, head.layer)
    if head.name not in relation_masks.names:
        return False
    return bool(relation_masks.masks[relation_masks.names.index(head.name), query, key])


@dataclass(frozen=True, eq=False)
class _RelationScores:
    """Scores of the heads for the relations `names`, (relation, head): as in `Relation`, with
    `against` an index into REJECTIONS. chance and n_queries (relation). n_first: how many of the
    heads are the model's first layer's. tested (head): those that find a pronoun's noun in test
    sentences."""

    names: list[str]
    n_first: int
    chance: np.ndarray
    n_queries: np.ndarray
    score: np.ndarray
    n_matches: np.ndarray
    p_value: np.ndarray
    n_token_types: np.ndarray
    tested: np.ndarray

    @cached_property
    def lift(self) -> np.ndarray:
        """As `lift` has it."""
        beyond = 1 - self.chance[:, None]
        return (self.score - self.chance[:, None]) / np.where(beyond > 0, beyond, np.inf)

    @cached_property
    def against(self) -> np.ndarray:
        """The reason against each name, as the index of the first that applies in REJECTIONS."""
        sink = np.array([name == SINK for name in self.names], dtype=bool)[:, None]
        weak = np.where(sink, self.score < SINK_RATIO * self.chance[:, None], self.lift < MIN_LIFT)
        few_rows = ~sink & (2 * self.n_matches <= self.n_queries[:, None])
        luck = self.p_value > np.where(sink, SINK_MAX_P_VALUE, MAX_P_VALUE)
        reasons = luck * REJECTIONS.index(LUCK)
        few_tokens = self.n_token_types < FEWEST_ROWS
        first = np.zeros_like(weak)
        first[[name == INDUCTION for name in self.names], : self.n_first] = True
        pronoun = np.array([name == PRONOUN for name in self.names], dtype=bool)
        reasons[pronoun], few_tokens[pronoun] = 0, False
        for mask, reason in (
            (pronoun[:, None] & ~self.tested, UNTESTED),
            (few_tokens, FEW_TOKENS),
            (few_rows, FEW_ROWS),
            (weak, WEAK),
            (first, FIRST_LAYER),
        ):
            reasons[mask] = REJECTIONS.index(reason)
        return reasons

    def relations(self) -> list[tuple[Relation, ...]]:
        """The same, for each head all relations."""
        columns = zip(
            self.names,
            *(each.tolist() for each in (self.chance, self.n_queries, self.score, self.n_matches)),
            *(each.tolist() for each in (self.p_value, self.against)),
        )
        by_relation = [
            [
                Relation(name, score, chance, n_queries, n_matches, p_value, REJECTIONS[reason])
                for score, n_matches, p_value, reason in zip(*head_values)
            ]
            for name, chance, n_queries, *head_values in columns
        ]
        return list(zip(*by_relation)) if by_relation else [()] * self.score.shape[1]

    def best(self, entropy: np.ndarray) -> list[int]:
        """The relation that each head is named after, -1 where it is none: the rule of the module's
        docstring. entropy (head)."""
        if not self.names:
            return [-1] * len(entropy)
        candidates = self.against == 0
        clear_lift = np.where(candidates & (self.lift >= MIN_LIFT), self.lift, -1)
        unnamed = ~candidates.any(axis=0) | (entropy >= BROAD_ENTROPY)
        fallback = np.where(unnamed, -1, candidates.argmax(axis=0))
        return np.where(clear_lift.max(axis=0) >= 0, clear_lift.argmax(axis=0), fallback).tolist()


def _relation_scores(
    recording: Recording,
    attention: Attention,
    relation_masks: _RelationMasks,
    n_first: int,
    tested: np.ndarray,
) -> _RelationScores:
    """The scores of every head for the relations of `relation_masks`. n_first, tested: as of
    `_RelationScores`."""
    tokens = recording.stream(attention.query).tokens
    across = attention.query != attention.key
    token_types = _codes(range(len(tokens)) if across else [token.casefold() for token in tokens])
    rows_in_relation = relation_masks.even > 0
    chances = [even[rows] for even, rows in zip(relation_masks.even, rows_in_relation)]
    sink = np.array([name == SINK for name in relation_masks.names], dtype=bool)[:, None]
    least = np.where(
        sink,
        SINK_RATIO * relation_masks.even,
        relation_masks.even + MIN_LIFT * (1 - relation_masks.even),
    )
    n_heads = attention.pattern.shape[0] * attention.pattern.shape[1]
    reached = np.zeros((len(relation_masks.names), n_heads, len(tokens)), np.float32)
    score = np.empty(reached.shape[:2])
    for at, (mask, rows) in enumerate(zip(relation_masks.masks, rows_in_relation)):
        mass = token_relations.mass(attention.pattern, mask)
        score[at] = mass.mean(-1).ravel()
        reached[at][:, rows] = (mass >= least[at, rows]).reshape(n_heads, -1)
    # in fp32, as which alone a product of matrices is fast
    one_hot = np.eye(token_types.max() + 1, dtype=np.float32)[token_types]
    n_matches = reached.sum(axis=-1).astype(int)
    p_values = batched_tail_probabilities(chances)[np.arange(len(sink))[:, None], n_matches]
    return _RelationScores(
        relation_masks.names,
        n_first,
        np.array([each.mean() for each in chances]),
        np.array([len(each) for each in chances], dtype=int),
        score,
        n_matches,
        np.where(sink, resting_heads(recording, attention).p_value, p_values),
        (reached @ one_hot > 0).sum(axis=-1),
        tested,
    )


def _codes(names: Iterable[Hashable]) -> np.ndarray:
    """A number for each name, the same for equal ones, from 0."""
    codes: dict[Hashable, int] = {}
    return np.array([codes.setdefault(name, len(codes)) for name in names], dtype=int)


def clarity(head: Head) -> float:
    """The lift of a head's named pattern above chance; under 0 for a head without a name."""
    lifts = [relation.lift for relation in head.relations if relation.name == head.name]
    return lifts[0] if lifts else head.entropy - 2


def _name(names: Sequence[str], best: int, entropy: float) -> str:
    """The name of a head after the relation `best` of `names`, or without one."""
    if best >= 0:
        return names[best]
    return "diffuse" if entropy >= BROAD_ENTROPY else NO_PATTERN
