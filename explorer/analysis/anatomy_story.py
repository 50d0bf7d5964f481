"""The story of a weight for the browser: plain values and vectors under the names that its pictures
know them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from explorer.analysis.anatomy import Cell, Written, rows_of_sum


def facts(
    opened: Cell, done: Written | None, queries: Sequence[str], keys: Sequence[str]
) -> dict[str, object]:
    """Plain values, infinities and NaN as None. queries, keys: what the tokens are called."""
    at, head = opened.key, opened.head
    rows = rows_of_sum(opened)
    edited = None if done is None else done.set_by[head]
    return {
        "query": {"at": opened.query, "label": queries[opened.query]},
        "key": {"at": at, "label": keys[at]},
        "labels": list(keys),
        "layer": opened.layer,
        "head": head,
        "d_v": len(opened.z),
        "divisor": opened.divisor,
        "adds": bool(opened.added.any()),
        "score": float(opened.scores[at]),
        "allowed": bool(opened.allowed[at]),
        "nAllowed": int(opened.allowed.sum()),
        "largest": opened.largest,
        "largestAt": int(np.where(opened.allowed, opened.scores, -np.inf).argmax()),
        "weight": float(opened.weights[at]),
        "rows": list(rows),
        "rowWeights": [float(opened.weights[row]) for row in rows],
        "rest": len(keys) - len(rows),
        "set": None if edited is None else str(edited),
        "own": {
            "score": [opened.own_score.value, opened.own_score.apart],
            "weight": [opened.own_weight.value, opened.own_weight.apart],
            "wrote": None if done is None or done.own is None else done.own.apart,
        },
        "wrote": None if done is None else _told(done, head),
    }


def _told(done: Written, head: int) -> dict[str, object]:
    names = [*(f"head {each}" for each in range(len(done.by_head))), "bias of W_O"]
    shares = [None if np.isnan(share) else float(share) for share in done.shares]
    parts = [
        {"name": name, "share": share, "length": float(length), "chosen": at == head}
        for at, (name, share, length) in enumerate(zip(names, shares, done.lengths))
    ]
    return {"share": shares[head], "parts": parts}


def vectors(opened: Cell, done: Written | None) -> Mapping[str, np.ndarray]:
    """The vectors of its pictures: q, k, products (d_head); dots, scores, exponentials, weights,
    allowed (key); v, z, rest (d_v), shares (row, d_v); where something was written set (d_v), wrote
    and total (d_model)."""
    rows = rows_of_sum(opened)
    shares = opened.weights[list(rows), None] * opened.v[list(rows)]
    made = {
        "q": opened.q,
        "k": opened.k,
        "products": opened.products,
        "dots": opened.dots,
        "scores": opened.scores,
        "allowed": opened.allowed,
        "exponentials": opened.exponentials,
        "weights": opened.weights,
        "v": opened.v[opened.key],
        "shares": shares,
        "rest": opened.z - shares.sum(axis=0),
        "z": opened.z,
    }
    if done is not None:
        made |= {
            "set": done.z[opened.head],
            "wrote": done.by_head[opened.head],
            "total": done.total,
        }
    return made
