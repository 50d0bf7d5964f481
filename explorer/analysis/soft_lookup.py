"""Attention as a lookup that is soft, as messages on a graph, and as one of three ways to score a
pair.

Axis legend as in `models/contract/recording.py`. Everything is computed in float64 from a
Recording; W_O, cut by head (layer, head, d_head, d_model), and its bias (layer, d_model) are passed
in where a number needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from explorer.figures.csv import Columns, long_form
from explorer.wording.templates import sentences
from models.contract.recording import Attention, Recording
from models.contract.results import Circuits as Circuits

COLUMNS = sentences("soft_lookup", "columns")

# A head's circuits ready to be shown: which words are asked for, how far the head copies, and a
# table.

MOST_WORDS = 64  # different words of a text that are read at once


def text_words(
    recording: Recording, attention: Attention, extra_ids: Sequence[int]
) -> tuple[int, ...]:
    """The different words of the text that is looked at, as it has them, at most MOST_WORDS, and
    `extra_ids` these ids."""
    ids = [int(each) for each in recording.stream(attention.key).ids]
    return tuple(dict.fromkeys([*extra_ids, *list(dict.fromkeys(ids))[:MOST_WORDS]]))


@dataclass(frozen=True)
class CopyCounts:
    """Counts of copying over n words: words that are among those they raise most, and words that
    raise their own logit at all."""

    n: int
    among_first: int
    raised: int


def copy_counts(circuits: Circuits) -> CopyCounts:
    """The extent to which the head copies, by its weights alone."""
    among_first = int((circuits.own_rank < circuits.up_ids.shape[1]).sum())
    return CopyCounts(len(circuits.ids), among_first, int((circuits.own > 0).sum()))


def nearest_words(circuits: Circuits, word: int, most: int) -> np.ndarray:
    """The words of the text that a word, as a query, scores highest: their places in `ids`."""
    return np.argsort(-circuits.among[word], kind="stable")[:most]


def circuit_table(
    circuits: Circuits, labels: Callable[[np.ndarray], list[str]]
) -> dict[str, Sequence]:
    """A row for each word: the keys it scores highest, the logits that the head raises and lowers,
    and its own. labels: of ids."""

    def listed(ids: np.ndarray) -> list[str]:
        return [" · ".join(labels(row)) for row in ids]

    best = circuits.ids[[int(row.argmax()) for row in circuits.among]]
    return {
        "word": labels(circuits.ids),
        COLUMNS("highest_of_these"): labels(best),
        COLUMNS("highest_of_all"): listed(circuits.key_ids),
        "attended to, raises": listed(circuits.up_ids),
        "attended to, lowers": listed(circuits.down_ids),
        "itself, logit": circuits.own.tolist(),
        "itself, rank": (circuits.own_rank + 1).tolist(),
    }


# A soft result this near to the hard one, by relative distance, is called a lookup.
LOOKUP_TOLERANCE = 0.1
MAX_EDGES = 1500  # that are drawn


# ---- soft and hard ----


def tempered_softmax(
    scores: np.ndarray,
    allowed: np.ndarray,
    temperature: float = 1.0,
    sink: np.ndarray | None = None,
) -> np.ndarray:
    """softmax(scores / temperature) over the allowed keys, (..., key). At 0 all weight on the
    largest score (equal ones share it), at infinity the even row. scores (..., key) before the
    mask, allowed of a shape that fits; sink (...): the score of a learned sink, which takes its
    part of a row."""
    masked = np.where(allowed, scores.astype(np.float64), -np.inf)
    if sink is not None and np.isfinite(sink).any():
        beside = np.concatenate([masked, sink[..., None]], axis=-1)
        return tempered_softmax(beside, np.isfinite(beside), temperature)[..., :-1]
    shifted = masked - masked.max(axis=-1, keepdims=True)
    if temperature == 0:
        exponentials = (shifted == 0).astype(np.float64)
    elif np.isinf(temperature):
        exponentials = np.isfinite(masked).astype(np.float64)
    else:
        with np.errstate(over="ignore"):
            exponentials = np.exp(shifted / temperature)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Lookup:
    """One query of one head: the key that a hard lookup returns, z_soft = sum of weight x value and
    z_hard = that key's value, (d_head), and how far apart they are: relative, their distance /
    |z_hard|; NaN where that has no length."""

    key: int
    z_soft: np.ndarray
    z_hard: np.ndarray
    relative: float


def lookup(
    attention: Attention,
    layer: int,
    head: int,
    query: int,
    temperature: float = 1.0,
    allowed: np.ndarray | None = None,
) -> Lookup:
    """The soft lookup at a temperature beside the hard one. allowed (key): the mask's, unless
    given."""
    scores = attention.scores[layer, head, query]
    values = attention.v[layer, head].astype(np.float64)
    allowed = attention.allowed[layer, query] if allowed is None else allowed
    key = int(np.where(allowed, scores, -np.inf).argmax())
    sink = attention.sink_scores[layer, head, query]
    soft, hard = tempered_softmax(scores, allowed, temperature, sink) @ values, values[key]
    return Lookup(key, soft, hard, float(_relative_distance(soft, hard)))


def _relative_distance(soft: np.ndarray, hard: np.ndarray) -> np.ndarray:
    """Distance / |hard| along the last axis."""
    length = np.linalg.norm(hard, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(length > 0, np.linalg.norm(soft - hard, axis=-1) / length, np.nan)


def relative_distances(attention: Attention) -> np.ndarray:
    """The relative distance of soft and hard at every (layer, head, query). NaN where only one key
    is allowed, which leaves no choice."""
    distances = np.full(attention.pattern.shape[:3], np.nan)
    for layer, allowed in zip(range(len(distances)), attention.allowed):
        choosing = allowed.sum(axis=1) > 1
        values = attention.v[layer].astype(np.float64)
        # (head, query)
        keys = np.where(allowed, attention.scores[layer], -np.inf).argmax(axis=-1)
        hard = np.take_along_axis(values, keys[..., None], axis=1)
        distances[layer] = np.where(
            choosing,
            _relative_distance(attention.pattern[layer].astype(np.float64) @ values, hard),
            np.nan,
        )
    return distances


def medians(distances: np.ndarray) -> np.ndarray:
    """The median over the queries of `relative_distances`, (layer, head); NaN where there is
    none."""
    if np.isnan(distances).all():
        return np.full(distances.shape[:2], np.nan)
    return np.nanmedian(distances, axis=-1)


def lookup_counts(distances: np.ndarray) -> tuple[int, int, float]:
    """The number of lookups, of those within LOOKUP_TOLERANCE of the hard one, and the median
    relative distance (NaN for none)."""
    known = distances[np.isfinite(distances)]
    return (
        known.size,
        int((known <= LOOKUP_TOLERANCE).sum()),
        float(np.median(known)) if known.size else float("nan"),
    )


def extreme_heads(
    distances: np.ndarray,
) -> tuple[tuple[int, int, float], tuple[int, int, float]] | None:
    """(layer, head, median) of the head nearest to a hard lookup and of the one farthest from it;
    None where nothing can be said."""
    head_medians = medians(distances)
    if np.isnan(head_medians).all():
        return None

    def head(at: int) -> tuple[int, int, float]:
        layer, number = divmod(at, head_medians.shape[1])
        return layer, number, float(head_medians[layer, number])

    return head(int(np.nanargmin(head_medians))), head(int(np.nanargmax(head_medians)))


def most_divided_row(
    attention: Attention,
    rows: Sequence[str],
    keys: Sequence[str],
    special: Sequence[bool],
    layer: int | None = None,
    head: int | None = None,
    query: int | None = None,
    out: Collection[tuple[int, int]] = (),
) -> tuple[int, int, int]:
    """(layer, head, query) of the lookup that the key of second weight draws farthest from the hard
    one; what is given is kept.

    The draw is w2 |v2 - v1| / (|v1| + |v2|), w2 the second largest weight of a row, v1 and v2 the
    values of the two: 0 where one key takes all or where both hand over the same, at most 1/2. Of
    an attention that has no values it is w2. rows (query) and keys (key) are labels, special (key):
    a row is taken first where it and the two keys are words, and not at all where it has no choice,
    unless there is no other. out: heads (layer, head) that are passed over where none is given,
    unless all are.
    """
    layers, heads, queries, count = attention.pattern.shape
    if count < 2:
        return layer or 0, head or 0, query or 0
    at_layers, at_heads, at_rows = (
        range(size) if each is None else [each]
        for size, each in ((layers, layer), (heads, head), (queries, query))
    )
    if all((at_layer, at_head) in out for at_layer in at_layers for at_head in at_heads):
        out = ()
    word_keys = _is_word(keys, special)
    word_rows = _is_word(rows, special if tuple(rows) == tuple(keys) else [False] * queries)[
        at_rows
    ]
    best, best_place = -np.inf, (at_layers[0], at_heads[0], at_rows[0])
    for at_layer in at_layers:
        allowed = attention.allowed[at_layer][at_rows]
        choosing = allowed.sum(axis=1) > 1
        for at_head in at_heads:
            if head is None and (at_layer, at_head) in out:
                continue
            weights = np.where(allowed, attention.pattern[at_layer, at_head][at_rows], -1.0)
            top_two = np.argpartition(-weights, 1, axis=1)[:, :2]
            draw = np.maximum(np.take_along_axis(weights, top_two, axis=1).min(axis=1), 0).astype(
                np.float64
            )
            if attention.opens:
                a, b = attention.v[at_layer, at_head].astype(np.float64)[top_two.T]
                draw *= np.linalg.norm(a - b, axis=-1) / np.maximum(
                    np.linalg.norm(a, axis=-1) + np.linalg.norm(b, axis=-1), 1e-300
                )
            draw += choosing.astype(float) + (choosing & word_rows & word_keys[top_two].all(axis=1))
            at = int(draw.argmax())
            if draw[at] > best:
                best, best_place = draw[at], (at_layer, at_head, at_rows[at])
    return best_place


def _is_word(labels: Sequence[str], special: Sequence[bool]) -> np.ndarray:
    """Mask of the tokens that are of the text and have a letter or a digit."""
    return np.array(
        [not out and any(map(str.isalnum, label)) for label, out in zip(labels, special)]
    )


# ---- messages ----


def messages(attention: Attention, layer: int, head: int, query: int) -> np.ndarray:
    """The contribution of each key to a token: weight x value, (key, d_head). Their sum is the
    head's z."""
    return attention.pattern[layer, head, query].astype(np.float64)[:, None] * attention.v[
        layer, head
    ].astype(np.float64)


def message_table(
    attention: Attention,
    layer: int,
    head: int,
    query: int,
    labels: Sequence[str],
    allowed: np.ndarray | None = None,
) -> Columns:
    """The messages to a token as named columns, largest weight first; the share of z is (message .
    z) / |z|^2, and shares sum to 1. allowed (key): the mask's, unless given."""
    parts = messages(attention, layer, head, query)
    z = parts.sum(axis=0)
    weight = attention.pattern[layer, head, query].astype(np.float64)
    order = np.argsort(-weight, kind="stable")
    order = order[(attention.allowed[layer, query] if allowed is None else allowed)[order]]
    square = float((z**2).sum()) or 1.0
    return {
        "from": [f"{key} {labels[key]}" for key in order],
        "weight": weight[order],
        "|value|": np.linalg.norm(attention.v[layer, head].astype(np.float64), axis=-1)[order],
        "|message|": np.linalg.norm(parts, axis=-1)[order],
        "share of z": ((parts @ z) / square)[order],
    }


def message_sum_error(
    attention: Attention, layer: int, head: int, query: int
) -> tuple[float, float]:
    """|z|, and the largest |sum of messages - weights . V| of any component: the two ways to
    compute z."""
    parts = messages(attention, layer, head, query)
    z = attention.pattern[layer, head, query].astype(np.float64) @ attention.v[layer, head].astype(
        np.float64
    )
    return float(np.linalg.norm(z)), float(np.abs(parts.sum(axis=0) - z).max())


def output_error(
    recording: Recording,
    attention: Attention,
    w_o: np.ndarray,
    b_o: np.ndarray,
    layer: int,
    query: int,
) -> float | None:
    """The largest |sum over heads of (sum of messages) W_O + b_O - what attention wrote| at a
    token; None where the model does not offer the site."""
    stream = recording.stream(attention.query)
    site = f"{layer}.{'attn' if attention.query == attention.key else 'cross'}.wrote"
    if site not in stream.sites:
        return None
    z = np.stack(
        [
            messages(attention, layer, head, query).sum(axis=0)
            for head in range(attention.pattern.shape[1])
        ]
    )
    expected = np.einsum("hd,hdm->m", z, w_o[layer].astype(np.float64)) + b_o[layer]
    return float(np.abs(expected - stream.at(site)[query]).max())


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a graph, strongest first: queries, keys, weights, each (edge), MAX_EDGES at
    most. allowed: how many there could be. weight_out (key): the sum of all weights that a key is
    given, drawn or not."""

    queries: np.ndarray
    keys: np.ndarray
    weights: np.ndarray
    allowed: int
    weight_out: np.ndarray


def edges(weights: np.ndarray, allowed: np.ndarray, times: float) -> Edges:
    """Edges (key to query) of weight at least `times` the even share of their row, 1 / the number
    of its allowed keys. weights (query, key)."""
    passing = allowed & (weights >= times / allowed.sum(axis=1, keepdims=True))
    queries, keys = np.nonzero(passing)
    order = np.argsort(-weights[queries, keys], kind="stable")
    drawn = order[:MAX_EDGES]
    return Edges(
        queries[drawn],
        keys[drawn],
        weights[queries[drawn], keys[drawn]].astype(np.float64),
        int(allowed.sum()),
        weights.sum(axis=0, dtype=np.float64),
    )


def nodes(
    weights: np.ndarray,
    allowed: np.ndarray,
    times: float,
    queries: Sequence[str],
    keys: Sequence[str],
) -> Columns:
    """Every token of the graph as named columns: how many edges come in and go out by the rule of
    `edges`, and the sums of all weights in and out.

    Where queries and keys are two texts, their columns stand one below the other, "target" and
    "source".
    """
    passing = allowed & (weights >= times / allowed.sum(axis=1, keepdims=True))
    incoming, outgoing = passing.sum(axis=1), passing.sum(axis=0)
    weight_in, weight_out = (
        weights.sum(axis=1, dtype=np.float64),
        weights.sum(axis=0, dtype=np.float64),
    )
    if tuple(queries) == tuple(keys):
        return {
            "token": [f"{at} {label}" for at, label in enumerate(keys)],
            "edges in": incoming,
            "weight in": weight_in,
            "edges out": outgoing,
            "weight out": weight_out,
        }
    none_in, none_out = [0] * len(keys), [0] * len(queries)
    return {
        "side": ["target"] * len(queries) + ["source"] * len(keys),
        "token": [f"{at} {label}" for side in (queries, keys) for at, label in enumerate(side)],
        "edges in": [*map(int, incoming), *none_in],
        "weight in": [*map(float, weight_in), *map(float, none_in)],
        "edges out": [*none_out, *map(int, outgoing)],
        "weight out": [*map(float, none_out), *map(float, weight_out)],
    }


def most_attended_key(weights: np.ndarray) -> tuple[int, float, float]:
    """The key with the largest sum of weights, that sum, and the mean over the keys."""
    weight_sums = weights.sum(axis=0, dtype=np.float64)
    return int(weight_sums.argmax()), float(weight_sums.max()), float(weight_sums.mean())


def largest(values: np.ndarray) -> float:
    """The largest number without its sign; 1 where there is none."""
    return float(np.nanmax(np.abs(values), initial=0.0)) or 1.0


def mean_of_heads(attention: Attention, layer: int) -> np.ndarray:
    """The mean weights (query, key) of a layer's heads."""
    return attention.pattern[layer].mean(axis=0, dtype=np.float64)


# ---- files ----


def row_table(
    attention: Attention,
    layer: int,
    head: int,
    query: int,
    temperature: float,
    labels: Sequence[str],
    allowed: np.ndarray | None = None,
) -> Columns:
    """One row as named columns: score, weight, weight at the temperature, and the hard lookup's,
    for every key that the mask does not hide. allowed (key): the mask's, unless given."""
    scores = attention.scores[layer, head, query]
    allowed = attention.allowed[layer, query] if allowed is None else allowed
    sink = attention.sink_scores[layer, head, query]
    return {
        "key": [f"{at} {labels[at]}" for at in np.flatnonzero(allowed).tolist()],
        "score": scores.astype(np.float64)[allowed],
        "weight": attention.pattern[layer, head, query].astype(np.float64)[allowed],
        f"weight at T = {temperature:g}": tempered_softmax(scores, allowed, temperature, sink)[
            allowed
        ],
        "hard": tempered_softmax(scores, allowed, 0, sink)[allowed],
    }


def heads_table(distances: np.ndarray) -> Columns:
    """`relative_distances` as named columns: a row for each layer, head and query."""
    layers, heads, queries = map(range, distances.shape)
    return long_form({"layer": layers, "head": heads, "query": queries}, distances, "distance")


# Three ways to score the pairs of one text: naive, symmetric, and the head's own.


@dataclass(frozen=True, eq=False)
class ScoringVariant:
    """One way to score pairs: scores (query, key), without a mask; weights, softmax over the
    allowed keys; and what is measured of them.

    asymmetry: |S - S'| / (2 |S|) in the Frobenius norm: 0 for a symmetric S, 1 for one of opposite
    signs across the diagonal; about 0.7 where the two have nothing to do with each other. own,
    rows: in how many rows, of those with a choice, the largest score is the token's own.
    """

    name: str
    scores: np.ndarray
    weights: np.ndarray
    asymmetry: float
    own: int
    rows: int


def attention_input(recording: Recording, attention: Attention, layer: int) -> np.ndarray | None:
    """The vectors that an attention of a layer makes its queries of, (token, d_model), where it
    is within one text its keys and values too; None where the model does not offer them."""
    stream = recording.stream(attention.query)
    site = f"{layer}.attn" if attention.query == attention.key else f"{layer}.cross"
    if f"{site}.read" in stream.sites:
        return stream.at(f"{site}.read")
    before = [state for state, wrote, _ in stream.writes() if wrote == f"{site}.wrote"]
    return stream.at(before[0]) if before else None


def scoring_variants(
    x: np.ndarray,
    attention: Attention,
    layer: int,
    head: int,
    allowed: np.ndarray | None = None,
) -> tuple[ScoringVariant, ...]:
    """Three ways to score the pairs of one text: x . x of the vectors that enter the layer, x
    (token, d_model); Ux . Ux with the head's own W_Q (and its bias) for U, so that Ux = q; and the
    head's own scores, as recorded. The first two are divided by the root of their vectors'
    width. allowed (query, key): the mask's, unless given.

    Raises ValueError for an attention between two streams.
    """
    if attention.query != attention.key:
        raise ValueError(
            f"{attention.name} goes from one stream to another: rows and columns are not the "
            "same tokens"
        )
    x, q = x.astype(np.float64), attention.q[layer, head].astype(np.float64)
    variants = (
        ("x · x", x @ x.T / np.sqrt(x.shape[-1])),
        ("Ux · Ux", q @ q.T / np.sqrt(q.shape[-1])),
        ("q · k", attention.scores[layer, head].astype(np.float64)),
    )
    allowed = attention.allowed[layer] if allowed is None else allowed
    return tuple(_scoring_variant(name, scores, allowed) for name, scores in variants)


def _scoring_variant(name: str, scores: np.ndarray, allowed: np.ndarray) -> ScoringVariant:
    choosing = allowed.sum(axis=1) > 1
    largest = np.where(allowed, scores, -np.inf).argmax(axis=1)
    own_key = (largest == np.arange(len(scores)))[choosing]
    weights = tempered_softmax(scores, allowed)
    return ScoringVariant(
        name, scores, weights, asymmetry(scores), int(own_key.sum()), len(own_key)
    )


def asymmetry(scores: np.ndarray) -> float:
    """|S - S'| / (2 |S|) in the Frobenius norm, 0 to 1; 0 for a matrix of zeros."""
    size = np.linalg.norm(scores)
    return float(np.linalg.norm(scores - scores.T) / (2 * size)) if size > 0 else 0.0


def most_asymmetric_pair(
    variant: ScoringVariant, special: Sequence[bool]
) -> tuple[int, int] | None:
    """The pair (query, key) whose two scores differ most, the higher one first, among tokens of the
    text where there are two; None for fewer than two tokens."""
    gap = variant.scores - variant.scores.T
    is_text = ~np.asarray(special, bool)
    if is_text.sum() > 1:
        gap = np.where(is_text[:, None] & is_text[None, :], gap, 0)
    if len(gap) < 2 or not gap.max() > 0:
        return None
    query, key = np.unravel_index(gap.argmax(), gap.shape)
    return int(query), int(key)


def scoring_table(
    variants: Sequence[ScoringVariant], labels: Sequence[str], quantity: str
) -> Columns:
    """Scores or weights ("Scores", "Weights") of all constructions as named columns: construction,
    query, key and the value."""
    is_score = quantity == "Scores"
    values = np.stack([variant.scores if is_score else variant.weights for variant in variants])
    tokens = [f"{at} {label}" for at, label in enumerate(labels)]
    names = [variant.name for variant in variants]
    axes = {"construction": names, "query": tokens, "key": tokens}
    return long_form(axes, values, "score" if is_score else "weight")


# Why scores are divided by the root of d_k: the variance of q . k, and what the softmax makes of
# it, width by width.

WIDTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
PAIRS = 6000  # of random vectors, at each width
KEYS = 12  # that a random query chooses among


@dataclass(frozen=True, eq=False)
class ScoreVariance:
    """By width: widths (w), variance (w) of q . k, and `divided` (w) of q . k with the scale; the
    mean of the largest weight of a row with the scale and without, scaled and raw (w); keys: how
    many keys a row chooses among, in the mean."""

    widths: tuple[int, ...]
    variance: np.ndarray
    divided: np.ndarray
    scaled: np.ndarray
    raw: np.ndarray
    keys: float


@lru_cache(maxsize=8)  # no text plays a part
def random_variance(draw: Callable[[int, int], np.ndarray]) -> ScoreVariance:
    """Of independent numbers with mean 0 and variance 1; draw(rows, columns). Rows of KEYS keys for
    the softmax."""
    results = []
    for width in WIDTHS:
        q, k = draw(2 * PAIRS, width).reshape(2, PAIRS, width)
        rows = PAIRS // KEYS
        scores = np.einsum("rw,rkw->rk", q[:rows], k[: rows * KEYS].reshape(rows, KEYS, width))
        allowed = np.ones_like(scores, dtype=bool)
        results.append(((q * k).sum(axis=-1).var(), *_largest(scores, allowed, width)))
    variance, scaled, raw = np.array(results).T
    return ScoreVariance(WIDTHS, variance, variance / np.array(WIDTHS), scaled, raw, float(KEYS))


def model_variance(attention: Attention) -> ScoreVariance:
    """Of a model's own queries and keys, at the width of its heads and with its own scale: the
    median variance of its heads, over the pairs that are allowed in rows with a choice, and the
    mean largest weight of these rows. Without the scale a row keeps what the model adds to
    q . k."""
    choosing = np.all([mask.sum(axis=1) > 1 for _, mask in attention.masks], axis=0)
    choosing = choosing if choosing.any() else ~choosing
    masks, results = attention.allowed[:, choosing], []
    for layer, scale in enumerate(attention.scale.astype(np.float64)):
        allowed = masks[layer]
        q, k = (each[layer].astype(np.float64) for each in (attention.q, attention.k))
        products = (q @ k.swapaxes(-1, -2))[:, choosing]  # (head, query, key)
        variance = products[:, allowed].var(axis=-1)
        unscaled = attention.scores[layer][:, choosing] + (1 - scale) * products
        scaled, raw = attention.pattern[layer][:, choosing], tempered_softmax(unscaled, allowed)
        largest = (each.max(axis=-1).mean(axis=-1, dtype=np.float64) for each in (scaled, raw))
        results.append((variance, variance * scale**2, *largest))
    of_heads = np.array(results).swapaxes(0, 1)  # (quantity, layer, head)
    variances, weights = np.median(of_heads[:2], axis=(1, 2)), of_heads[2:].mean(axis=(1, 2))
    variance, divided, scaled, raw = (each[None] for each in (*variances, *weights))
    width, keys = attention.q.shape[-1], float(masks.sum(axis=2).mean())
    return ScoreVariance((width,), variance, divided, scaled, raw, keys)


def _largest(scores: np.ndarray, allowed: np.ndarray, width: int) -> tuple[float, float]:
    """The mean of the largest weight of a row, with the scores divided by the root of the width and
    as they are."""
    scaled, raw = (
        float(tempered_softmax(scores / divisor, allowed).max(axis=-1).mean())
        for divisor in (np.sqrt(width), 1.0)
    )
    return scaled, raw


def width_lines(
    random: ScoreVariance, model: ScoreVariance, without: str, scaled: str
) -> list[tuple[str, tuple[int, ...], np.ndarray]]:
    """Two fields of the variances, one without the scale and one with it, as named lines over the
    width."""
    return [
        (f"{source}, {name}", series.widths, getattr(series, each))
        for source, series in (("random", random), ("this model", model))
        for name, each in (("no scale", without), ("with the scale", scaled))
    ]


def variance_table(random: ScoreVariance, model: ScoreVariance) -> dict[str, list]:
    """Both as named columns, a row a width."""
    rows = [
        (
            source,
            width,
            series.variance[at],
            series.divided[at],
            series.scaled[at],
            series.raw[at],
        )
        for source, series in (("random", random), ("this model", model))
        for at, width in enumerate(series.widths)
    ]
    names = (
        "vectors",
        "width",
        "Var(q·k)",
        "Var(q·k) with the scale",
        "largest weight with the scale",
        "largest weight without",
    )
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}
