"""Comparison of two runs of one text, one of them edited: every difference measured, and the
largest of them said in a sentence.

`before` is the run as the model is and `after` the run under edits; both read the same tokens. A
row counts where it has a choice of keys in either run. Entropies and divergences are in nats, the
Jensen-Shannon distance in base 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log, log10

import numpy as np

from explorer.analysis.residual import HeatmapColumn, StreamQuantity, cosine
from explorer.figures.csv import Columns, long_form
from explorer.figures.formatting import hundredths, tenths
from explorer.wording.templates import sentences
from models.contract.cancellation import expect_wanted
from models.contract.recording import Attention, Recording, Stream
from models.contract.results import softmax

CHANGES = sentences("interventions", "changes")

# The fair comparison: models that were trained without a part, beside the one that has it.


@dataclass(frozen=True, eq=False)
class AblationModel:
    """A model that was trained without a part: its name, what it lacks, the model that has it, and
    both learning curves, (look, 2) of step and loss."""

    name: str
    without: str
    full: str
    curve: np.ndarray
    full_curve: np.ndarray
    scores: Mapping[str, object]
    full_scores: Mapping[str, object]


def ablation_models(cards: Mapping[str, Mapping]) -> tuple[AblationModel, ...]:
    """The models whose card says what they were trained without, each beside the full one. cards:
    by name.

    The full model is the one the card names under `of`, or else the one whose name begins this
    one's; a model without such a one is left out.
    """
    models = []
    for name, card in cards.items():
        without, full_name = card.get("without"), _full_model(name, cards)
        if without and full_name is not None and full_name in cards:
            missing = without if isinstance(without, str) else ", ".join(map(str, without))
            ablated_card, full_card = card, cards[full_name]
            scores = ablated_card.get("scores", {}), full_card.get("scores", {})
            models.append(
                AblationModel(
                    name, missing, full_name, _curve(ablated_card), _curve(full_card), *scores
                )
            )
    return tuple(models)


def _full_model(name: str, cards: Mapping[str, Mapping]) -> str | None:
    """The model that has every part, beside the one of this name."""
    begins = (
        other
        for other in sorted(cards, key=len, reverse=True)
        if name.startswith(f"{other}-no-") and not cards[other].get("without")
    )
    return cards[name].get("of") or next(begins, None)


def _curve(card: Mapping) -> np.ndarray:
    pairs = [pair for pair in card.get("curve", ()) if len(pair) == 2]
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def result_columns(models: Sequence[AblationModel]) -> Columns:
    """Results of the models of one family, the full one first: the last loss of each, and those of
    their scores that are numbers."""
    rows = [
        ("nothing", models[0].full_curve, models[0].full_scores),
        *((model.without, model.curve, model.scores) for model in models),
    ]
    names = [name for name, value in rows[0][2].items() if isinstance(value, (int, float))]
    return {
        "trained without": [without for without, _, _ in rows],
        "last loss": [float(curve[-1, 1]) if len(curve) else None for _, curve, _ in rows],
        **{name: [scores.get(name) for _, _, scores in rows] for name in names},
    }


# Activation patching in numbers: which two words tell two runs apart, and what each part of the
# other run, put into this one, does to the difference of their logits.

MIN_LOGIT_GAP = 0.01  # of two logit differences: closer ones are no ground to measure an effect by
EFFECT_NOTE = CHANGES("patched_share")
RAW_NOTE = CHANGES("patched_difference")


@dataclass(frozen=True, eq=False)
class EffectMap:
    """Effects by place: values (row, column), NaN where none was measured; `rows` names the rows.
    normalised: as `effect`, else differences of logits."""

    measure: StreamQuantity
    rows: tuple[str, ...]
    columns: tuple[HeatmapColumn, ...]
    values: np.ndarray
    normalised: bool


def contrast(clean: np.ndarray, donor: np.ndarray) -> tuple[int, int]:
    """The two words (ids) whose logit difference tells two runs apart: the one's likeliest word and
    the donor's.

    Where both say the same, the second is the word that the donor's run raises most in probability.
    clean, donor (id): scores.
    """
    p, q = softmax(clean), softmax(donor)
    clean_word, donor_word = int(p.argmax()), int(q.argmax())
    if clean_word == donor_word:
        rise = q - p
        rise[clean_word] = -inf
        donor_word = int(rise.argmax())
    return clean_word, donor_word


def effect(value: float, clean: float, donor: float) -> float:
    """(patched - clean) / (donor - clean): 0 where a patch does nothing, 1 where it brings all of
    the donor's answer. NaN where the two runs lie too close for that."""
    return (
        (value - clean) / (donor - clean) if abs(donor - clean) >= MIN_LOGIT_GAP else float("nan")
    )


def effects_by_head(
    effects: Sequence[tuple[tuple[int, int], float]],
    shape: tuple[int, int],
    clean: float,
    donor: float,
) -> EffectMap:
    """A sweep's effects as a map of layers down and heads across. effects: ((layer, head), logit
    difference), any number of them."""
    rows = tuple(f"layer {layer}" for layer in range(shape[0]))
    columns = tuple(HeatmapColumn("heads", f"{head}", f"head {head}") for head in range(shape[1]))
    return _effect_map(dict(effects), rows, columns, clean, donor)


def effects_by_site(
    effects: Sequence[tuple[tuple[str, int], float]],
    tokens: Sequence[str],
    sites: Sequence[str],
    clean: float,
    donor: float,
) -> EffectMap:
    """A sweep's effects as a map of tokens down and sites across. effects: ((site, token), logit
    difference), any number of them."""
    at = {site: column for column, site in enumerate(sites)}
    placed = {(token, at[site]): value for (site, token), value in effects if site in at}
    return _effect_map(placed, tuple(tokens), tuple(map(_column, sites)), clean, donor)


def _column(site: str) -> HeatmapColumn:
    layer, dot, place = site.partition(".")
    if dot and layer.isdigit():
        return HeatmapColumn(f"layer {layer}", place.partition(".")[0], site)
    return HeatmapColumn("end" if site == "final.normed" else "input", layer, site)


def _effect_map(
    effects: Mapping[tuple[int, int], float],
    rows: tuple[str, ...],
    columns: tuple[HeatmapColumn, ...],
    clean: float,
    donor: float,
) -> EffectMap:
    """Logit differences by (row, column) as a map; what lies outside it is left out."""
    normalised = abs(donor - clean) >= MIN_LOGIT_GAP
    values = np.full((len(rows), len(columns)), np.nan)
    for (row, column), value in effects.items():
        if row < len(rows) and column < len(columns):
            values[row, column] = effect(value, clean, donor) if normalised else value - clean
    most = float(np.nanmax(np.abs(values), initial=0.0)) if not np.isnan(values).all() else 0.0
    high = max(1.0, most) if normalised else most or 1.0
    name, meaning = ("Effect", EFFECT_NOTE) if normalised else ("Added", RAW_NOTE)
    measure = StreamQuantity(name, meaning, "", low=-high, high=high, diverging=True)
    return EffectMap(measure, rows, columns, values, normalised)


def strongest_cell(
    effects: EffectMap, read_row: int | None = None, row: int | None = None
) -> tuple[int, int] | None:
    """The cell (row, column) of the largest effect in size, None before any is measured.

    `read_row`: a row that does not count, that of the token read off, whose last state holds the
    whole answer; `row`: the one row that counts.
    """
    sizes = np.abs(effects.values)
    if row is not None and row < len(sizes) and not np.isnan(sizes[row]).all():
        return row, int(np.nanargmax(sizes[row]))
    if read_row is not None and read_row < len(sizes) and len(sizes) > 1:
        sizes[read_row] = np.nan
    if np.isnan(sizes).all():
        return None
    strongest_row, column = divmod(int(np.nanargmax(sizes)), sizes.shape[1])
    return strongest_row, column


def map_columns(effects: EffectMap) -> Columns:
    """A map as named columns, a row for each of its effects."""
    axes = {
        "place": [f"{at} {name}" for at, name in enumerate(effects.rows)],
        "column": [column.name for column in effects.columns],
    }
    return long_form(axes, effects.values, "effect")


# One stream of two runs beside each other: how long the vectors are, and how far apart they lie.


def named_states(stream: Stream) -> dict[str, str]:
    """The stream's states by names that it keeps under every edit: "embed", "input" (what enters
    layer 0), "0.attn", ..., "final".

    The state after a sub-layer is what its LayerNorm made of the sum, or the sum itself where none
    follows.
    """
    sites: dict[str, str] = {}
    for site in stream.sites:
        place, _, what = site.rpartition(".")
        if what in ("wrote", "read"):
            continue
        if site[0].isdigit():
            sites[place if what in ("sum", "normed") else site] = site
        elif site == "final.normed":
            sites["final"] = site
        else:
            sites.setdefault("embed", site)
            sites["input"] = site
    return sites


@dataclass(frozen=True, eq=False)
class StreamPaths:
    """A stream's states in both runs, at the places that both have.

    places (s) names; lengths before and after (s, token); distance (s, token), |after - before|;
    cosine (s, token) between the two, NaN where one has no length.
    """

    places: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray
    distance: np.ndarray
    cosine: np.ndarray

    @property
    def relative(self) -> np.ndarray:
        """The distance as a share of the length before, (s, token); NaN where that was 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.before > 0, self.distance / self.before, np.nan)


def stream_paths(before: Stream, after: Stream) -> StreamPaths:
    """The two paths of every token, place by place."""
    sites_before, sites_after = named_states(before), named_states(after)
    places = tuple(name for name in sites_before if name in sites_after)
    x, y = (
        np.stack([stream.at(sites[name]).astype(np.float64) for name in places])
        for stream, sites in ((before, sites_before), (after, sites_after))
    )
    length, other_length, distance = (np.linalg.norm(each, axis=-1) for each in (x, y, y - x))
    return StreamPaths(places, length, other_length, distance, cosine(x, y))


def growth(stream: Stream) -> float:
    """The tokens' mean length at the last state over that at the first; infinite where the first
    has none."""
    sites = list(named_states(stream).values())
    first, last = (
        float(np.linalg.norm(stream.at(site).astype(np.float64), axis=-1).mean())
        for site in (sites[0], sites[-1])
    )
    return last / first if first > 0 else inf


def lengths_by_layer(stream: Stream) -> np.ndarray:
    """The tokens' mean length before the first layer and after each, (layers + 1)."""
    sites = named_states(stream)
    ends = {name.partition(".")[0]: site for name, site in sites.items() if name[0].isdigit()}
    before = [site for name, site in sites.items() if name in ("embed", "input")][-1:]
    return np.array(
        [
            np.linalg.norm(stream.at(site).astype(np.float64), axis=-1).mean()
            for site in (*before, *ends.values())
        ]
    )


def path_columns(paths: StreamPaths, token: int) -> Columns:
    """Both paths of one token as named columns, with the mean over all tokens beside them."""
    return {
        "state": paths.places,
        "length before": paths.before[:, token],
        "length after": paths.after[:, token],
        "distance": paths.distance[:, token],
        "distance / length before": paths.relative[:, token],
        "cosine": paths.cosine[:, token],
        "mean length before": paths.before.mean(axis=1),
        "mean length after": paths.after.mean(axis=1),
        "mean distance / length before": paths.relative.mean(axis=1),
    }


# What moved no further than this, on its scale from 0 to 1, is taken for rounding.
MIN_CHANGE = 1e-6
MIN_REPORTED = 0.01  # on the same scale: less is not worth a sentence beside another
CHUNK_SIZE = 2**19  # numbers of which several copies are made one part after the other
MIN_PROBABILITY = 1e-4  # words less likely than this in both runs are not listed


# ---- one attention, twice ------------------------------------------------------------------------


def rows_with_choice(before: Attention, after: Attention) -> np.ndarray:
    """True for each row (query) that may look at more than one key in one of the runs, in every
    layer."""
    return np.all((before.allowed | after.allowed).sum(axis=2) > 1, axis=0)


def entropies(pattern: np.ndarray) -> np.ndarray:
    """Entropy of rows in nats: pattern (..., key) of weights that sum to 1 -> (...)."""
    return -(pattern * np.log(np.where(pattern > 0, pattern, 1))).sum(axis=-1, dtype=np.float64)


def distances(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Jensen-Shannon distance of rows: p and q (..., key) -> (...), 0 for equal rows and 1 for rows
    that share no key.

    The square root of H(m) - (H(p) + H(q)) / 2 in bits, where m is the mean of the two rows.
    """
    expect_wanted()
    if p.ndim > 2 and p.size > CHUNK_SIZE:
        return np.stack([distances(one, other) for one, other in zip(p, q)])
    p, q = p.astype(np.float64), q.astype(np.float64)
    p, q = p / p.sum(axis=-1, keepdims=True), q / q.sum(axis=-1, keepdims=True)
    divergence = (_kl_to_mean(p, q) + _kl_to_mean(q, p)) / (2 * log(2))
    return np.sqrt(np.clip(divergence, 0, 1))


def _kl_to_mean(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """KL(p || m) in nats, m the mean of p and q: rows that are equal give 0 exactly."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(p > 0, p * np.log(2 * p / (p + q)), 0).sum(axis=-1)


def head_distances(before: Attention, after: Attention) -> np.ndarray:
    """Change of each head (layer, head): its rows' mean Jensen-Shannon distance. NaN where no row
    has a choice."""
    rows = rows_with_choice(before, after)
    if not rows.any():
        return np.full(before.pattern.shape[:2], np.nan)
    return np.stack(
        [
            distances(one[:, rows], other[:, rows]).mean(axis=-1)
            for one, other in zip(before.pattern, after.pattern)
        ]
    )


def most_changed(distance: np.ndarray, most: int = 8) -> tuple[tuple[int, int], ...]:
    """The heads (layer, head) that moved furthest, furthest first; those that did not move are not
    among them. distance (layer, head)."""
    flat = np.nan_to_num(distance).ravel()
    order = np.argsort(-flat, kind="stable")[:most]
    return tuple(
        (int(at) // distance.shape[1], int(at) % distance.shape[1])
        for at in order
        if flat[at] > MIN_CHANGE
    )


# ---- what is said, twice -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PredictionChange:
    """Predictions of both runs at one place: probabilities (id) before and after, the likeliest
    word of each, and KL(before || after) in nats."""

    before: np.ndarray
    after: np.ndarray
    top_before: int
    top_after: int
    kl: float

    def top(self, most: int = 8) -> tuple[int, ...]:
        """The words that are likeliest in one of the two runs, likeliest before first, at most
        `most`; each run's likeliest is always among them."""
        half = most // 2
        order_before, order_after = (
            np.argsort(-p, kind="stable")[:most].tolist() for p in (self.before, self.after)
        )
        candidates = list(
            dict.fromkeys([*order_before[:half], *order_after[:half], *order_before])
        )[:most]
        likely = [
            word
            for word in candidates
            if word in (self.top_before, self.top_after)
            or max(self.before[word], self.after[word]) >= MIN_PROBABILITY
        ]
        return tuple(sorted(likely, key=lambda word: (-self.before[word], -self.after[word])))


def prediction_change(before: np.ndarray, after: np.ndarray) -> PredictionChange:
    """Both runs' scores over the vocabulary (id) as probabilities."""
    p, q = softmax(before), softmax(after)
    kl = float((p * (_log_softmax(before) - _log_softmax(after))).sum())
    return PredictionChange(p, q, int(p.argmax()), int(q.argmax()), max(kl, 0.0))


def _log_softmax(scores: np.ndarray) -> np.ndarray:
    """Logarithms of the softmax of scores (id), which exist where a probability is too small to be
    written."""
    shifted = scores.astype(np.float64) - scores.max()
    return shifted - np.log(np.exp(shifted).sum())


# ---- one sentence --------------------------------------------------------------------------------


@dataclass(frozen=True)
class QuantityChange:
    """One quantity in both runs. `magnitude` says how far, on a scale from 0 to 1; `family` is
    attention, vectors or prediction; `says` it in words."""

    name: str
    family: str
    before: float
    after: float
    magnitude: float
    says: str


def quantity_changes(
    before: Recording,
    after: Recording,
    prediction: PredictionChange | None = None,
    labels: tuple[str, str] = ("", ""),
) -> tuple[QuantityChange, ...]:
    """Every quantity that is measured, those that moved furthest first.

    prediction: the two answers at the place looked at, `labels` the likeliest word before and
    after. How far a quantity moved: of mean row entropy, the change as a share of an even row's;
    of the mean largest weight and of a word's probability, the change itself; of rows, the square
    of their mean Jensen-Shannon distance; of growth, the change in powers of ten, at most 1; of
    KL, 1 - e^-KL.
    """
    changes = [
        change
        for part_before, part_after in zip(before.attention, after.attention)
        for change in _attention_changes(part_before, part_after, len(before.attention) > 1)
    ]
    changes += [
        _growth_change(part_before, part_after, len(before.streams) > 1)
        for part_before, part_after in zip(before.streams, after.streams)
    ]
    if prediction is not None:
        changes += _prediction_changes(prediction, *labels)
    return tuple(sorted(changes, key=lambda change: -change.magnitude))


def change_sentences(changes: Sequence[QuantityChange]) -> tuple[str, ...]:
    """The sentences that say what happened: of each family the quantity that moved furthest,
    furthest first; () where nothing moved.

    A second sentence is for what moved by at least MIN_REPORTED.
    """
    by_family: dict[str, QuantityChange] = {}
    for change in changes:
        if change.magnitude > (MIN_REPORTED if by_family else MIN_CHANGE):
            by_family.setdefault(change.family, change)
    sentences = [change.says for change in by_family.values()]
    if by_family and next(iter(by_family.values())).magnitude < MIN_REPORTED:
        sentences[0] = CHANGES("small", sentence=sentences[0])
    return tuple(sentences)


def _attention_changes(
    before: Attention, after: Attention, name_attention: bool
) -> Iterator[QuantityChange]:
    rows = rows_with_choice(before, after)
    if not rows.any():
        return
    uniform_entropy = np.log((before.allowed | after.allowed).sum(axis=2)[:, rows]).mean(axis=1)
    layer_distances = head_distances(before, after).mean(axis=1)
    for layer, patterns in enumerate(zip(before.pattern, after.pattern)):  # all at once are large
        pattern_before, pattern_after = (pattern[:, rows] for pattern in patterns)
        place = f"layer {layer}" + (f" ({before.name}-attention)" if name_attention else "")
        entropy_before, entropy_after = (
            float(entropies(pattern_before).mean()),
            float(entropies(pattern_after).mean()),
        )
        largest_before, largest_after = (
            float(pattern_before.max(axis=-1).mean(dtype=np.float64)),
            float(pattern_after.max(axis=-1).mean(dtype=np.float64)),
        )
        yield QuantityChange(
            f"row entropy, {place}, nats",
            "attention",
            entropy_before,
            entropy_after,
            min(1.0, abs(entropy_after - entropy_before) / float(uniform_entropy[layer])),
            CHANGES(
                "entropy",
                place=place,
                moved=movement_text(entropy_before, entropy_after),
                weight=hundredths(largest_after),
            ),
        )
        yield QuantityChange(
            f"largest weight, {place}",
            "attention",
            largest_before,
            largest_after,
            abs(largest_after - largest_before),
            CHANGES("largest", place=place, moved=movement_text(largest_before, largest_after)),
        )
        yield QuantityChange(
            f"change of rows, {place}, Jensen–Shannon distance",
            "attention",
            0.0,
            float(layer_distances[layer]),
            float(layer_distances[layer]) ** 2,
            CHANGES("rows", place=place, distance=layer_distances[layer]),
        )


def _growth_change(before: Stream, after: Stream, name_stream: bool) -> QuantityChange:
    growth_before, growth_after = growth(before), growth(after)
    magnitude = (
        min(1.0, abs(log10(growth_after / growth_before)))
        if 0 < growth_before < inf and 0 < growth_after < inf
        else float(growth_before != growth_after)
    )
    stream_note = CHANGES("of_stream", stream=before.name) if name_stream else ""
    return QuantityChange(
        f"length at the last state{stream_note} / at the first",
        "vectors",
        growth_before,
        growth_after,
        magnitude,
        CHANGES(
            "growth",
            stream=stream_note,
            before=factor_text(growth_before),
            after=factor_text(growth_after),
        ),
    )


def _prediction_changes(
    change: PredictionChange, word_before: str, word_after: str
) -> list[QuantityChange]:
    p_before, p_after = (
        float(change.before[change.top_before]),
        float(change.after[change.top_before]),
    )
    sentence = CHANGES(
        "same_word" if change.top_before == change.top_after else "other_word",
        word=word_before,
        moved=movement_text(p_before, p_after, tenths),
        other=word_after,
        p=tenths(float(change.after[change.top_after])),
    )
    return [
        QuantityChange(
            f"probability of “{word_before}”",
            "prediction",
            p_before,
            p_after,
            abs(p_after - p_before),
            sentence,
        ),
        QuantityChange(
            "KL(before ‖ after), nats",
            "prediction",
            0.0,
            change.kl,
            1 - exp(-change.kl),
            CHANGES("divergence", sentence=sentence, kl=change.kl),
        ),
    ]


def movement_text(was: float, now: float, format_value=lambda value: f"{value:.2f}") -> str:
    """ "fell from 1.93 to 0.21": two numbers as a movement. Numbers that would be written alike get
    more figures."""
    if was == now:
        return CHANGES("stays", now=format_value(now))
    if format_value(was) == format_value(now):
        format_value = "{:.5g}".format
    name = "rose" if now > was else "fell"
    return CHANGES(name, was=format_value(was), now=format_value(now))


def factor_text(value: float) -> str:
    """A factor in three figures, without a power of ten."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# ---- files ---------------------------------------------------------------------------------------


def matrix_columns(
    before: np.ndarray, after: np.ndarray, rows: Sequence[str], keys: Sequence[str]
) -> Columns:
    """Two matrices (query, key) as named columns, one line for each pair of tokens; tokens have
    their places in front."""
    queries, columns = np.indices(before.shape).reshape(2, -1)
    return {
        "query": [f"{at} {rows[at]}" for at in queries],
        "key": [f"{at} {keys[at]}" for at in columns],
        "before": before.ravel(),
        "after": after.ravel(),
        "difference": after.ravel().astype(np.float64) - before.ravel(),
    }
