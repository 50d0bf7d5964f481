"""Steps of the tour about attention: how a weight is made, and who looks at whom."""

from __future__ import annotations

import numpy as np

from explorer.analysis.constructions import constructions, entering
from explorer.analysis.evidence import CLOSED, Untestable
from explorer.analysis.grounds import opened, softmax
from explorer.analysis.numbers import fixed, percent, plural
from explorer.analysis.plates import (
    Bars,
    Curves,
    Grid,
    Lines,
    Row,
    Series,
    Shown,
    left_out,
    matrix,
    numbers,
    window,
)
from explorer.analysis.scale import at_random, of_model
from explorer.analysis.sinks import FAINT
from explorer.analysis.tour_seen import Held, Seen, held, text_of, words_of
from models.recording import Recording

MOST_KEYS = 9  # of a softmax that is written out
MOST_HEADS = 12  # of a layer that are written out
APART = 1.5  # times: heads that look as far as this of each other look about equally far


def query_key_value(seen: Seen) -> Shown:
    """One row of a softmax: q . k, scaled, and as weights; the number is the weight of the pair."""
    one = held(seen)
    if not one.attention.opens:
        raise Untestable(CLOSED)
    at = one.layer, one.head, one.query
    allowed = one.attention.allowed[one.query]
    scores = one.attention.scores[at].astype(np.float64)
    products = one.attention.k[at[:2]].astype(np.float64) @ one.attention.q[at]
    weights = one.attention.pattern[at].astype(np.float64)
    best = np.argsort(-np.where(allowed, weights, -1.0), kind="stable")[: allowed.sum()]
    if one.key not in best[:MOST_KEYS]:
        best = np.array([one.key, *best[best != one.key]])
    chosen = np.sort(best[:MOST_KEYS])
    rows = tuple(
        Row(
            one.keys.tokens[key],
            (float(products[key]), float(scores[key]), float(weights[key])),
            (fixed(products[key], 1), fixed(scores[key], 1), fixed(weights[key])),
            on=key == one.key,
        )
        for key in map(int, chosen)
    )
    mark = int(np.flatnonzero(chosen == one.key)[0]), 2
    query, key = one.words
    width = one.attention.q.shape[-1]
    usual = np.isclose(one.attention.scale[one.layer], width**-0.5)
    divided = f"÷ √{width}" if usual else "scaled"
    bars = Bars(
        title=f"The query of “{query}” and each key",
        note=left_out(len(chosen), int(allowed.sum()), "keys, the strongest"),
        columns=("q · k", divided, "softmax"),
        rows=rows,
        mark=mark,
    )
    return Shown(fixed(one.weight), one.weight, (bars,), _named(one), one.address())


def lookup(seen: Seen) -> Shown:
    """Who looks at whom in the held head; the number is how many words lie between the pair."""
    one = held(seen)
    rows = window(len(one.rows.tokens), (one.query, one.key))
    same = one.attention.query == one.attention.key
    keys = rows if same else window(len(one.keys.tokens), (one.key,))
    pattern = one.attention.pattern[one.layer, one.head].astype(np.float64)
    weights = matrix(pattern[np.ix_(rows, keys)], one.attention.allowed[np.ix_(rows, keys)])
    number = fixed(one.weight)
    lines = Lines(
        title=f"Layer {one.layer}, head {one.head}",
        note=left_out(len(rows), len(one.rows.tokens)),
        left=tuple(one.rows.tokens[at] for at in rows),
        right=tuple(one.keys.tokens[at] for at in keys),
        sides=("looks", "is looked at"),
        weights=weights,
        held=int(np.flatnonzero(rows == one.query)[0]),
        mark=(int(np.flatnonzero(keys == one.key)[0]), number),
    )
    apart = plural(abs(one.query - one.key), "token") + " away" if same else "in the other text"
    return Shown(number, one.weight, (lines,), _named(one) | {"apart": apart}, one.address())


def _named(one: Held) -> dict[str, str]:
    query, key = one.words
    return {"query": query, "key": key, "layer": str(one.layer), "head": str(one.head)}


def scale(seen: Seen) -> Shown:
    """Var(q . k) against the width, with the scale and without; the number is this model's own at
    the width of its heads."""
    opened(seen.recording)
    text_of(seen.recording.streams[0])
    random, own = at_random(seen.evidence.draw), of_model(seen.recording.attention[0])
    d_head = seen.recording.model.d_head
    end = max(at for at, width in enumerate(own.widths) if width <= d_head or at == 0)
    wide = numbers(random.widths)
    variance = float(own.variance[end])
    said = (fixed(variance, 1), fixed(variance / own.widths[end], 2))
    widths = numbers(own.widths[: end + 1])
    mine = own.variance[: end + 1]
    series = (
        Series("random", wide, numbers(random.variance), fixed(random.variance[-1], 0)),
        Series(
            "random, ÷ √dₖ",
            wide,
            numbers(random.variance / np.array(wide)),
            fixed(random.variance[-1] / wide[-1], 2),
        ),
        Series("this sentence", widths, numbers(mine), said[0], on=True),
        Series("this sentence, ÷ √dₖ", widths, numbers(mine / np.array(widths)), said[1]),
    )
    curves = Curves(
        title="Variance of q · k, each of mean square 1",
        series=series,
        x_title="width of queries and keys, dₖ",
        y_title="Var(q · k)",
        log_x=True,
        log_y=True,
        ticks=tuple((float(each), str(each)) for each in random.widths[::2]),
    )
    words = {
        "d": str(own.widths[end]),
        "after": said[1],
        "scaled": fixed(own.scaled[end]),
        "raw": fixed(own.raw[end]),
    }
    return Shown(said[0], variance, (curves,), words)


def match(seen: Seen) -> Shown:
    """Three ways to score pairs: the vectors as they are, one matrix for both sides, two matrices;
    the number is the last one's asymmetry."""
    one, x = entered(seen)
    made = constructions(x, one.attention, one.layer, one.head)
    at = window(len(one.rows.tokens), (one.query, one.key), 6)
    labels = tuple(one.rows.tokens[each] for each in at)
    row, column = (int(np.flatnonzero(at == each)[0]) for each in (one.query, one.key))
    number = fixed(made[-1].asymmetry)
    titles = (
        f"naive, x · x: {fixed(0.0, 0)}",
        "symmetric, Ux · Ux: 0",
        f"two matrices, q · k: {number}",
    )
    grids: list[Grid] = []
    for title, each in zip(titles, made):
        scores = each.scores[np.ix_(at, at)]
        framed = ((row, column, ""), (column, row, "")) if row != column else ()
        grids.append(
            Grid(
                title,
                "",
                labels,
                labels,
                matrix(scores),
                float(np.abs(scores).max()) or 1.0,
                True,
                framed,
                bare=bool(grids),
            )
        )
    there, back = made[-1].scores[one.query, one.key], made[-1].scores[one.key, one.query]
    words = _named(one) | {"there": fixed(there, 1), "back": fixed(back, 1)}
    variant = "alike" if words["there"] == words["back"] else ""
    return Shown(number, made[-1].asymmetry, tuple(grids), words, one.address(), variant)


def entered(seen: Seen) -> tuple[Held, np.ndarray]:
    """The pair within one text, and the vectors that its layer reads. Raises Untestable where these
    are not known."""
    one = held(seen, "" if len(seen.recording.streams) == 1 else seen.recording.attention[0].name)
    if not one.attention.opens or one.attention.query != one.attention.key:
        raise Untestable(CLOSED)
    x = entering(seen.recording, one.attention, one.layer)
    if x is None:
        raise Untestable("This model does not show what its heads read.")
    return one, x


def heads(seen: Seen) -> Shown:
    """Every head of the held layer: how far it looks, and how much of what the layer writes at the
    word is its; the number is the farthest. A head that hardly looks at words has no distance."""
    recording = seen.recording
    one = held(seen, "" if len(recording.streams) == 1 else recording.attention[0].name)
    pattern = one.attention.pattern[one.layer].astype(np.float64)
    rows, keys = words_of(one.rows), words_of(one.keys)
    apart = np.abs(np.arange(len(rows))[:, None] - np.arange(len(keys)))
    among = pattern * (rows[:, None] & keys[None, :])
    given = among.sum(axis=(1, 2))
    tells = given >= FAINT * max(rows.sum(), 1)
    if tells.sum() < 2:
        tells[:] = True
    far = (among * apart).sum(axis=(1, 2)) / np.maximum(given, 1e-12)
    wrote = _written(seen, one)
    best = int(np.where(tells, far, -1).argmax())
    near = int(np.where(tells, far, np.inf).argmin())
    made = tuple(
        Row(
            f"head {head}",
            (float(far[head] * tells[head]), *(() if wrote is None else (float(wrote[head]),))),
            (
                f"{far[head]:.1f}" if tells[head] else "–",
                *(() if wrote is None else (percent(wrote[head]),)),
            ),
            on=head == best,
        )
        for head in map(int, window(len(pattern), (best, near), MOST_HEADS))
    )
    query = one.words[0]
    columns = ("tokens away, on average", f"share of what is written at “{query}”")
    bars = Bars(
        title=f"The {len(pattern)} heads of layer {one.layer}",
        note=left_out(len(made), len(pattern), "heads"),
        columns=columns[: len(made[0].values)],
        rows=made,
        mark=([row.on for row in made].index(True), 0),
    )
    words = {
        "best": str(best),
        "near": str(near),
        "shortest": f"{far[near]:.1f}",
        "nearest": "at the token itself" if far[near] < 0.05 else f"{far[near]:.1f} tokens away",
    }
    number = f"{far[best]:.1f}"
    variant = "alike" if far[best] < APART * far[near] else ""
    said = words | _named(one)
    return Shown(number, float(far[best]), (bars,), said, one.address(), variant)


def _written(seen: Seen, one: Held) -> np.ndarray | None:
    """The length of each head's part of what the layer's attention writes at the query, of all
    lengths together; None where W_O is not known."""
    if not one.attention.opens:
        return None
    try:
        w_o = seen.evidence.outputs()[one.attention.name][0][one.layer].astype(np.float64)
    except (ValueError, AttributeError, LookupError):
        return None
    weights = one.attention.pattern[one.layer, :, one.query].astype(np.float64)
    z = np.einsum("hk,hkd->hd", weights, one.attention.v[one.layer].astype(np.float64))
    lengths = np.linalg.norm(np.einsum("hd,hdm->hm", z, w_o), axis=-1)
    return lengths / max(float(lengths.sum()), 1e-12)


def kinds(seen: Seen) -> Shown:
    """Who may look at whom: with and without a causal mask, and between two texts; the number is
    the share of attention to later tokens where nothing is masked."""
    recording = seen.recording
    own = opened(recording)[0]
    one = held(seen, own.name)
    allowed = np.ones_like(own.allowed)
    free = softmax(own.scores, allowed)
    rows = words_of(one.rows)
    later = np.triu(allowed, 1)
    ahead = float((free * later).sum(axis=-1)[..., rows].mean())
    at = window(len(one.rows.tokens), (one.query, one.key), 8)
    labels = tuple(one.rows.tokens[each] for each in at)
    number = percent(ahead)
    causal = np.tril(allowed) if own.allowed.all() else own.allowed
    variant = "" if own.allowed.all() else "decoder"
    masked = softmax(own.scores[one.layer, one.head], causal)
    if len(recording.attention) > 1:
        causal, variant = next(
            (each.allowed, "both") for each in recording.attention if each.key == "decoder"
        )
        panels = _three(recording, number)
    else:
        cut = np.ix_(at, at)
        panels = (
            Grid(
                f"no mask: {number} looks ahead",
                left_out(len(at), len(one.rows.tokens)),
                labels,
                labels,
                matrix(free[one.layer, one.head][cut]),
            ),
            Grid(
                "masked: 0% looks ahead",
                left_out(len(at), len(one.rows.tokens)),
                labels,
                labels,
                matrix(masked[cut], causal[cut].astype(bool)),
                bare=True,
            ),
        )
    words = {"n": str(len(causal)), "cells": str(int((~causal.astype(bool)).sum()))}
    return Shown(number, ahead, panels, words, one.address(), variant)


def _three(recording: Recording, number: str) -> tuple[Grid, ...]:
    """The three attentions of an encoder-decoder, each the mean of its heads."""
    titles = {
        "encoder self": f"encoder: {number} looks ahead",
        "decoder self": "decoder: masked, 0% ahead",
        "cross": "cross: the source",
    }
    made = []
    for each in recording.attention:
        rows, keys = (recording.stream(name).tokens for name in (each.query, each.key))
        i, j = window(len(rows), (0,), 6), window(len(keys), (0,), 6)
        mean = each.pattern.mean(axis=(0, 1), dtype=np.float64)[np.ix_(i, j)]
        made.append(
            Grid(
                titles.get(each.name, each.name),
                left_out(len(i), len(rows)),
                tuple(rows[at] for at in i),
                tuple(keys[at] for at in j),
                matrix(mean, each.allowed[np.ix_(i, j)]),
                float(mean.max()),
            )
        )
    return tuple(made)


PIZZA = "I love to eat pizza."


def pizza(seen: Seen) -> Shown:
    """The note's own sentence in this model, beside what the note says of it; the number is what
    its words give themselves."""
    recording, at = splits_into_words(seen)
    own, stream = recording.attention[0], recording.streams[0]
    mean = own.pattern.mean(axis=(0, 1), dtype=np.float64)
    labels = tuple(stream.tokens[each] for each in at)
    cut = mean[np.ix_(at, at)]
    value = float(np.diagonal(cut).mean())
    number = fixed(value)
    most = int(np.diagonal(cut).argmax())
    here = Grid(
        f"measured: on average {number} on itself",
        f"Mean of {own.pattern.shape[0] * own.pattern.shape[1]} heads; the rest of each row "
        "goes to special tokens and the full stop.",
        labels,
        labels,
        matrix(cut),
        1.0,
        marks=tuple((each, each, fixed(cut[each, each])) for each in range(5)),
    )
    said = np.full((5, 5), np.nan)
    np.fill_diagonal(said, 0.35)
    said[4, 4], said[4, 3] = 0.7, 0.5
    there = Grid(
        "the note: most on itself",
        "Drawn from the note’s words, which give no numbers: “approximation only”. Hatched: "
        "it says nothing.",
        labels,
        labels,
        matrix(said),
        1.0,
        marks=tuple((each, each, "most") for each in range(4)) + ((4, 4, "top"), (4, 3, "strong")),
        bare=True,
    )
    special = float(mean[np.ix_(at, np.flatnonzero(stream.special))].sum(axis=1).mean())
    words = {"most": labels[most], "special": percent(special)}
    return Shown(
        number, value, (here, there), words, (("text", PIZZA), ("token", ""), ("source", ""))
    )


def splits_into_words(seen: Seen) -> tuple[Recording, np.ndarray]:
    """The note's sentence as this model reads it, and the places of its five words. Raises
    Untestable where these are not tokens."""
    recording = seen.evidence.again("", PIZZA, None)
    tokens = recording.streams[0].tokens
    at = np.flatnonzero(words_of(recording.streams[0]))
    if [tokens[each].strip().lower() for each in at] != PIZZA.lower().strip(".").split():
        raise Untestable("This model splits the note’s five words into other tokens.")
    return recording, at
