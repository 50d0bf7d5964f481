"""Panels on attention as a lookup: its temperature, its messages, its scores, its scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from explorer.analysis import soft_lookup, weight_texts
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.measure import gaussian
from explorer.analysis.word_classes import is_word
from explorer.figures.csv import Columns
from explorer.figures.formatting import (
    Written,
    enough_digits,
    fixed,
    hundredths,
    percent,
    plural,
    power,
    signed,
)
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Chart,
    Edge,
    Figure,
    Frame,
    Graph,
    Matrix,
    Series,
    Steps,
    Strip,
    Strips,
)
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import (
    FirstAttention,
    LookupHead,
    LookupLayer,
    LookupQuery,
    LookupQueryOrEvery,
    Selection,
    expect_vectors,
    select,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.recording import Recording
from models.runtime.caching import kept, loaded
from models.runtime.run import Run

REFUSALS = sentences("soft_lookup", "refusals")

CONCEPT = "soft_lookup"
N_ROWS = 12  # keys that are listed one by one
LOOK = "look_temperature"  # in an address
COLDEST, HOTTEST = 0.01, 100.0  # of the slider, between exactly 0 and exactly infinity
TENTHS = tuple(round(0.1 * n, 1) for n in range(1, 20))
TEMPERATURES = (
    0.0,
    0.01,
    0.02,
    0.05,
    *TENTHS,
    2.0,
    3.0,
    5.0,
    10.0,
    20.0,
    50.0,
    100.0,
    float("inf"),
)


# ---- soft and hard -------------------------------------------------------------------------------


TIMES = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0)  # times the uniform weight from which an edge is drawn
QUANTITIES = {"Weights": "After the softmax", "Scores": "Before it"}


def is_temperature(t: float) -> bool:
    """True for a temperature that can be shown: 0, infinity, and those of the slider's range."""
    return t in (0, float("inf")) or COLDEST <= t <= HOTTEST


@spec.panel
def temperature(
    run: Run,
    layer: LookupLayer = OPENS,
    head: LookupHead = OPENS,
    token: LookupQuery = OPENS,
    t: Annotated[float, Choice(name=LOOK, accepts=is_temperature, help="the temperature")] = 1.0,
    attention: FirstAttention = OPENS,
) -> Panel:
    """One query's row as a soft lookup at every temperature from 0 to infinity, beside the hard
    lookup; `t`: the temperature on show.

    Raises ValueError for a head, token or temperature that is not there, and for a model without
    scores and values.
    """
    selection = select(run, layer, head, token, attention)
    layer, head, token = selection.at
    expect_vectors(selection)
    if not is_temperature(t):
        raise ValueError(REFUSALS("range", low=COLDEST, high=HOTTEST))
    words = sentences(CONCEPT, "temperature")
    order = _strongest_keys(selection)
    steps = sorted({*TEMPERATURES, t})
    allowed = selection.allowed[token]
    lookups = [
        soft_lookup.lookup(selection.attention, *selection.at, each, allowed) for each in steps
    ]
    frames = tuple(
        _temperature_frame(selection, each, result, order) for each, result in zip(steps, lookups)
    )
    current = steps.index(t)
    on = min(max(current, 1), len(steps) - 2)  # 0 and ∞ stand at the ends of the axis
    distances = np.array([each.relative for each in lookups[1:-1]])
    curve = Chart(
        title=words("curve"),
        series=(
            Series("", np.array(steps[1:-1]), distances, main=True),
            Series("", np.array([steps[on]]), distances[on - 1 : on], main=True, shape="points"),
        ),
        x_title="temperature T",
        y_title="|soft − hard| / |hard|",
        log_x=True,
        guides=((steps[on], frames[current].label),),
        follows=LOOK,
    )
    return Panel(
        title=words("title"),
        finding=frames[current].sentence,
        figures=(Steps(frames=frames, current=current, choice=LOOK), curve),
        table=soft_lookup.row_table(
            selection.attention, *selection.at, t, selection.axes.keys, allowed
        ),
        details=words.lines("details"),
        caption=(words("caption", **selection.slots),),
        file=f"L{layer}H{head}-soft-lookup",
        numbers={"weight": selection.weight(selection.strongest)},
        formulas=tuple(each.formulas[0] for each in frames if each.formulas),
    )


def _strongest_keys(selection: Selection) -> list[int]:
    """The keys that are listed, by weight, in the order of the text."""
    allowed = np.flatnonzero(selection.allowed[selection.query])
    weights = selection.attention.pattern[selection.at][allowed]
    return sorted(allowed[np.argsort(-weights, kind="stable")[:N_ROWS]].tolist())


def _temperature_frame(
    selection: Selection, t: float, result: soft_lookup.Lookup, order: Sequence[int]
) -> Frame:
    words = sentences(CONCEPT, "temperature")
    scores = selection.attention.scores[selection.at]
    allowed = selection.allowed[selection.query]
    sink = selection.attention.sink_scores[(*selection.at,)]
    weights = soft_lookup.tempered_softmax(scores, allowed, t, sink)
    rows = [
        BarRow(
            selection.axes.keys[key],
            (float(weights[key]),),
            (hundredths(float(weights[key])),),
            selected=key == result.key,
            key=str(key),
            outline=1.0 if key == result.key else None,
        )
        for key in order
    ]
    n_others = int(allowed.sum()) - len(order)
    if n_others:
        others = float(weights.sum() - weights[list(order)].sum())
        rows.append(
            BarRow(plural(n_others, "other token"), (others,), (hundredths(others),), key="")
        )
    vectors = {
        "soft": result.z_soft,
        "hard": result.z_hard,
        "soft − hard": result.z_soft - result.z_hard,
    }
    high = max(float(np.abs(each).max()) for each in vectors.values()) or 1.0
    strips = tuple(
        Strip(name, vector, f"|·| {fixed(float(np.linalg.norm(vector)))}")
        for name, vector in vectors.items()
    )
    query = selection.word
    label = f"{t:g}" if np.isfinite(t) else "∞"
    return Frame(
        f"T = {label}",
        (
            Bars(title=words("weights", query=query), columns=("",), rows=tuple(rows), high=1.0),
            Strips(title=words("vectors"), strips=strips, high=high),
        ),
        words(
            "finding",
            temperature=label,
            query=query,
            key=selection.axes.keys[result.key],
            weight=hundredths(float(weights[result.key])),
            distance=percent(result.relative),
        ),
        key=f"{t:g}",
        x=min(max(t, COLDEST), HOTTEST),
        formulas=(f"tempered@{t:g}",),
    )


@kept
def _distances_of_all(recording: Recording, attention: str) -> np.ndarray:
    return soft_lookup.relative_distances(RecordingFacts(recording).attention(attention))


@spec.panel
def heads(
    run: Run,
    layer: LookupLayer = OPENS,
    head: LookupHead = OPENS,
    attention: FirstAttention = OPENS,
) -> Panel:
    """Distance of every head's soft lookups from hard ones, with all lookups as a histogram.

    Raises ValueError for a model without scores and values, and for a text without a choice.
    """
    selection = select(run, layer, head, 0, attention)
    layer, head, _ = selection.at
    expect_vectors(selection)
    words = sentences(CONCEPT, "heads")
    distances = _distances_of_all(selection.recording, selection.attention.name)
    ends = soft_lookup.extreme_heads(distances)
    if ends is None:
        raise ValueError(words("none"))
    medians = soft_lookup.medians(distances)
    count, near, median = soft_lookup.lookup_counts(distances)
    (near_layer, near_head, near_median), (far_layer, far_head, far_median) = ends
    layers, n_heads = medians.shape
    matrix = Matrix(
        title=words("matrix"),
        select=("layer", "head"),
        rows=tuple(f"layer {each}" for each in range(layers)),
        columns=tuple(f"head {each}" for each in range(n_heads)),
        values=medians,
        high=soft_lookup.largest(medians),
        marks=((layer, head, ""),),
        sides=("layer", "head"),
    )
    counts, edges = np.histogram(distances[np.isfinite(distances)], bins=40)
    histogram = Chart(
        title=words("histogram"),
        series=(Series("", edges[:-1], counts.astype(float), main=True, shape="steps"),),
        x_title="|soft − hard| / |hard|",
        y_title="lookups",
        guides=((soft_lookup.LOOKUP_TOLERANCE, words("guide")),),
    )
    slots = {
        "near_layer": near_layer,
        "near_head": near_head,
        "near_median": fixed(near_median),
        "far_layer": far_layer,
        "far_head": far_head,
        "far_median": fixed(far_median),
    }
    return Panel(
        title=words("title"),
        finding=words(
            "finding",
            count=f"{count:,}",
            near=f"{near:,}",
            tolerance=soft_lookup.LOOKUP_TOLERANCE,
            median=fixed(median),
        ),
        figures=(matrix, histogram),
        table=soft_lookup.heads_table(distances),
        details=words.lines("details", **slots),
        caption=(words("caption"),),
        file="soft-lookup-heads",
    )


# ---- messages ------------------------------------------------------------------------------------


@spec.panel
def messages(
    run: Run,
    layer: LookupLayer = OPENS,
    head: LookupHead = OPENS,
    token: LookupQuery = OPENS,
    times: Annotated[
        float, Choice(TIMES, "Edges from … × the uniform weight", name="look_rule", menu=True)
    ] = 2.0,
    layout: Annotated[
        str, Choice({"arcs": "Arcs", "circle": "Circle"}, "Layout", name="look_layout", menu=True)
    ] = "arcs",
    mean: Annotated[
        bool, Choice(label="Mean of the layer’s heads", name="look_heads", menu=True)
    ] = False,
    attention: FirstAttention = OPENS,
) -> Panel:
    """A head as a graph whose edges carry messages, and what one token receives.

    times: edges have at least so many times the uniform weight of their row. layout: "arcs" or
    "circle". mean: the mean of the layer's heads, which has weights and no messages. Raises
    ValueError for a head or token that is not there.
    """
    selection = select(run, layer, head, token, attention)
    layer, head, token = selection.at
    words = sentences(CONCEPT, "messages")
    of, axes = selection.attention, selection.axes
    weights = of.pattern[layer, head].astype(np.float64)
    if mean:
        weights = soft_lookup.mean_of_heads(of, layer)
    allowed = of.allowed[layer] if mean else selection.allowed
    edges = soft_lookup.edges(weights, allowed, times)
    loud, loud_sum, mean_sum = soft_lookup.most_attended_key(weights)
    sizes = np.where(allowed[token], weights[token], -1.0)
    if of.opens and not mean:
        sizes = np.linalg.norm(soft_lookup.messages(of, layer, head, token), axis=-1)
    key = int(sizes.argmax())
    slots = {
        "query": selection.word,
        "key": axes.keys[key],
        "weight": hundredths(float(weights[token, key])),
    }
    figures: tuple[Figure, ...]
    if of.opens and not mean:
        received = soft_lookup.message_table(of, layer, head, token, axes.keys, allowed[token])
        largest = int(np.argmax(received["|message|"]))
        finding = words("finding", **slots, share=percent(float(received["share of z"][largest])))
        details = (
            *words.lines("details", **_graph_slots(edges, axes.keys[loud], loud_sum, mean_sum)),
            *_message_checks(selection),
        )
        row = _received(selection, received, largest)
    else:
        finding = words("weights_only", **slots)
        details = words.lines("details", **_graph_slots(edges, axes.keys[loud], loud_sum, mean_sum))
        row = _received_weights(selection, weights[token])
    figures = (_graph(selection, edges, times, layout), row)
    return Panel(
        title=words("title"),
        finding=finding,
        figures=figures,
        table=soft_lookup.nodes(weights, allowed, times, axes.rows, axes.keys),
        details=details,
        caption=(words("caption", layer=layer, head="mean" if mean else head, times=f"{times:g}"),),
        file=f"L{layer}{'' if mean else f'H{head}'}-messages",
        formulas=("messages",),
    )


def _graph_slots(edges: soft_lookup.Edges, loud: str, loud_sum: float, mean: float) -> dict:
    return {
        "edges": f"{len(edges.weights):,}",
        "allowed": f"{edges.allowed:,}",
        "loud": loud,
        "loud_sum": fixed(loud_sum),
        "mean": fixed(mean),
    }


def _graph(selection: Selection, edges: soft_lookup.Edges, times: float, layout: str) -> Graph:
    rows, keys = selection.axes.rows, selection.axes.keys
    split = len(keys) if selection.is_across else 0
    top = float(edges.weight_out.max()) or 1.0
    strengths = [float(each) / top for each in edges.weight_out]
    return Graph(
        title=sentences(CONCEPT, "messages")("graph", times=f"{times:g}"),
        select=("token",) if not split else (),
        nodes=(*keys, *rows) if split else keys,
        strengths=tuple(strengths + [0.0] * len(rows) if split else strengths),
        edges=tuple(
            Edge(int(key), int(query) + split, float(weight))
            for query, key, weight in zip(edges.queries, edges.keys, edges.weights)
        ),
        layout=layout,
        split=split,
        selected=selection.query + split,
    )


def _received(selection: Selection, received: Columns, largest: int) -> Bars:
    """The vectors that the keys send, and their sum z: weight, length, share, and one component."""
    words = sentences(CONCEPT, "messages")
    of, (layer, head, token) = selection.attention, selection.at
    sent = soft_lookup.messages(of, layer, head, token)
    z = sent.sum(axis=0)
    dimension = weight_texts.largest(z)
    names = ("from", "weight", "|message|", "share of z")
    listed = list(zip(*(received[name] for name in names)))[:N_ROWS]
    keys = [str(label).partition(" ") for label, *_ in listed]
    rows = [
        _sent(word, (weight, length, share, sent[int(key), dimension]), key, at == largest)
        for at, ((key, _, word), (_, weight, length, share)) in enumerate(zip(keys, listed))
    ]
    whole = float(of.pattern[layer, head, token].sum()), float(np.linalg.norm(z))
    rows.append(_sent(words("sum"), (*whole, 1.0, float(z[dimension])), None))
    note = (
        plural(len(received["from"]) - N_ROWS, "other token")
        if len(received["from"]) > N_ROWS
        else ""
    )
    return Bars(
        title=words("row", query=selection.word),
        note=note,
        columns=("weight", "length", "share of z", words("component", m=dimension)),
        rows=tuple(rows),
        select=("source",) if selection.is_across else ("token",),
    )


def _sent(word: str, numbers: Sequence[float], key: str | None, selected: bool = False) -> BarRow:
    """A row of what a key sends, or of all of it."""
    weight, length, share, component = map(float, numbers)
    texts = hundredths(weight), fixed(length), f"{signed(100 * share, 1)}%", power(component, 3)
    return BarRow(word, (weight, length, share, component), texts, selected, key)


def _received_weights(selection: Selection, weights: np.ndarray) -> Bars:
    words = sentences(CONCEPT, "messages")
    rows = tuple(
        BarRow(
            selection.axes.keys[key],
            (float(weights[key]),),
            (hundredths(float(weights[key])),),
            key=str(key),
        )
        for key in _strongest_keys(selection)
    )
    return Bars(title=words("row", query=selection.word), columns=("weight",), rows=rows, high=1.0)


def _message_checks(selection: Selection) -> tuple[str, ...]:
    """That the messages add up, to the head's output and to what attention wrote."""
    words = sentences(CONCEPT, "messages")
    length, error = soft_lookup.message_sum_error(selection.attention, *selection.at)
    lines = [words("check", error=power(error, 2), length=fixed(length))]
    if loaded(selection.recording).shows_writes(selection.recording):
        outputs = loaded(selection.recording).outputs()[selection.attention.name]
        wrote = soft_lookup.output_error(
            selection.recording, selection.attention, *outputs, selection.layer, selection.query
        )
        if wrote is not None:
            lines.append(words("check_output", error=power(wrote, 2)))
    return tuple(lines)


# ---- three ways to score, and the scale ----------------------------------------------------------


@spec.panel
def scoring(
    run: Run,
    layer: LookupLayer = OPENS,
    head: LookupHead = OPENS,
    token: LookupQueryOrEvery = OPENS,
    quantity: Annotated[str, Choice(QUANTITIES, "Show", name="look_before", menu=True)] = "Scores",
    attention: FirstAttention = OPENS,
) -> Panel:
    """x · x, q · q and the head's own q · k over all pairs of tokens, and of one pair the scores in
    both directions: that of a token and the word that it attends to most.

    token: where None, the pair is that whose two scores differ most. quantity: "Weights" after the
    softmax or "Scores" before it. Raises ValueError for an attention between two texts and for a
    model that does not give its vectors.
    """
    selection = select(run, layer, head, token or 0, attention)
    layer, head, _ = selection.at
    words = sentences(CONCEPT, "scoring")
    if selection.is_across:
        raise ValueError(words("across"))
    expect_vectors(selection)
    x = soft_lookup.attention_input(selection.recording, selection.attention, layer)
    if x is None:
        raise ValueError(words("no_vectors", model=selection.model))
    variants = soft_lookup.scoring_variants(x, selection.attention, layer, head, selection.allowed)
    pair = None if token is None else _own_pair(selection)
    pair = pair or soft_lookup.most_asymmetric_pair(variants[2], selection.axes.special)
    keys = selection.axes.keys
    finding = words("symmetric")
    if pair:
        scores = variants[2].scores
        finding = words(
            "finding",
            head=head,
            query=keys[pair[0]],
            key=keys[pair[1]],
            forward=fixed(float(scores[pair])),
            backward=fixed(float(scores[pair[::-1]])),
        )
    marks = ((pair[0], pair[1], ""), (pair[1], pair[0], "")) if pair else ()
    high = max(soft_lookup.largest(each.scores) for each in variants)  # one scale side by side
    figures = tuple(
        _scores(
            selection,
            words(name, asymmetry=fixed(variant.asymmetry)),
            variant,
            high if quantity == "Scores" else None,
            marks,
        )
        for name, variant in zip(("naive", "query_only", "head_own"), variants)
    )
    return Panel(
        title=words("title"),
        finding=finding,
        figures=figures,
        table=soft_lookup.scoring_table(variants, keys, quantity),
        details=words.lines(
            "details",
            naive_own=variants[0].own,
            rows=plural(variants[0].rows, "row"),
            head_own_rows=variants[2].own,
        ),
        caption=(words("caption", layer=layer, head=head),),
        file=f"L{layer}H{head}-scoring",
        formulas=("scorings",),
        numbers={"asymmetry": Written.by(fixed, variants[2].asymmetry)},
        at=dict(zip(("token", "source"), pair)) if pair else {},
    )


def _own_pair(selection: Selection) -> tuple[int, int] | None:
    """The query and the other word of the text that it attends to most; None for a special one, and
    where there is no other."""
    is_text = np.array([is_word(each) for each in selection.axes.keys])
    is_text &= ~np.asarray(selection.axes.special, bool)
    is_other = is_text & selection.allowed[selection.query]
    is_other[selection.query] = False
    if not is_text[selection.query] or not is_other.any():
        return None
    return selection.query, int(np.where(is_other, selection.weights, -1).argmax())


def _scores(
    selection: Selection,
    title: str,
    variant: soft_lookup.ScoringVariant,
    high: float | None,
    marks: tuple[tuple[int, int, str], ...],
) -> Matrix:
    """The scores of one way, up to `high`; where that is None the weights."""
    is_scores = high is not None
    allowed = selection.allowed
    values = variant.scores if is_scores else np.where(allowed, variant.weights, np.nan)
    return Matrix(
        title=title,
        rows=selection.axes.rows,
        columns=selection.axes.keys,
        values=values,
        high=1.0 if high is None else high,
        signed=is_scores,
        marks=marks,
        sides=("query", "key"),
        missing="" if is_scores or allowed.all() else "not allowed",
    )


@kept
def _own_variance(recording: Recording, attention: str) -> soft_lookup.ScoreVariance:
    return soft_lookup.model_variance(RecordingFacts(recording).attention(attention))


@spec.panel
def scale(run: Run, attention: FirstAttention = OPENS) -> Panel:
    """The variance of q · k by width, and what the softmax makes of it, with and without √d.

    Raises ValueError for a model without queries and keys.
    """
    selection = select(run, attention=attention)
    expect_vectors(selection)
    words = sentences(CONCEPT, "scale")
    random = soft_lookup.random_variance(gaussian)
    own = _own_variance(selection.recording, selection.attention.name)
    width_lines = soft_lookup.width_lines
    at = min(range(len(random.widths)), key=lambda at: abs(random.widths[at] - own.widths[0]))
    width = random.widths[at]
    divided = power(float(random.divided[at]))
    (variance,) = enough_digits(
        divided,
        lambda variance: variance / width,
        float(random.variance[at]),
        least=3,
        write=power,
    )
    return Panel(
        title=words("title"),
        finding=words(
            "finding",
            width=width,
            variance=variance,
            scaled=divided,
        ),
        figures=(
            _by_width(
                words("variance"), width_lines(random, own, "variance", "divided"), log_y=True
            ),
            _by_width(words("largest"), width_lines(random, own, "raw", "scaled")),
        ),
        table=soft_lookup.variance_table(random, own),
        details=words.lines(
            "details",
            keys=f"{random.keys:.0f}",
            raw=fixed(float(random.raw[at])),
            divided=fixed(float(random.scaled[at])),
            own_variance=power(float(own.variance[0])),
            own_divided=power(float(own.divided[0])),
            own_width=own.widths[0],
            own_largest=fixed(float(own.scaled[0])),
            own_raw=fixed(float(own.raw[0])),
        ),
        caption=(words("caption"),),
        file="scale",
        formulas=("score", "variance"),
    )


def _by_width(
    title: str, lines: Sequence[tuple[str, Sequence[int], np.ndarray]], log_y: bool = False
) -> Chart:
    ticks = sorted({int(width) for _, widths, _ in lines for width in widths})
    return Chart(
        title=title,
        series=tuple(
            Series(
                name,
                np.array(widths, float),
                np.asarray(values, float),
                main=at == 0,
                shape="line" if len(widths) > 1 else "points",
            )
            for at, (name, widths, values) in enumerate(lines)
        ),
        x_title="width d",
        log_x=True,
        log_y=log_y,
        ticks=tuple((float(each), str(each)) for each in ticks),
    )
