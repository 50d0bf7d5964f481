"""Steps of the tour about attention: how a weight is made, and who looks at whom."""

from __future__ import annotations

import numpy as np

from explorer.analysis.evidence import CLOSED, Untestable
from explorer.analysis.numbers import fixed, plural
from explorer.analysis.plates import Bars, Lines, Row, Shown, left_out, matrix, window
from explorer.analysis.tour_seen import Held, Seen, held

MOST_KEYS = 9  # of a softmax that is written out


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
    divided = "scaled" if one.attention.opens else ""
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
