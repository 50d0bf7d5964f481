"""Claims about heads: how they are cut, how they differ, how far they look, and what they score."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from explorer.analysis import constructions, sinks
from explorer.analysis.evidence import Evidence, Measured, Untestable, number
from explorer.analysis.grounds import (
    at_least,
    by_layer,
    choosing,
    enough,
    opened,
    own,
    softmax,
    state_before,
)
from explorer.analysis.head_writes import heads_error
from explorer.analysis.numbers import fixed, percent
from models.recording import Attention

MOST_TIMES = 1000.0  # beyond this a ratio says no more than "many times"


def concatenated(e: Evidence) -> Measured:
    """The largest |sum over heads of z W_O + b - what attention wrote|, of the largest number
    written."""
    outputs = e.outputs()
    error, size = 0.0, 0.0
    for stream in e.recording.streams:
        error = max(error, heads_error(e.recording, stream, outputs))
        size = max(
            size,
            *(
                float(np.abs(stream.at(wrote)).max())
                for _, wrote, _ in stream.writes()
                if wrote.endswith(("attn.wrote", "cross.wrote"))
            ),
        )
    return Measured(
        error / size,
        "Each head’s output was sent through its own slice of W_O and the results were added, "
        "for every token and layer. Beside what the model wrote in one piece, the largest "
        f"difference is {number(error)}, where numbers reach {number(size)}.",
    )


def reshaped(e: Evidence) -> Measured:
    """The largest difference of the model's heads' products, added up, to the product of the
    vectors before they were cut, of the largest."""
    error, size = 0.0, 0.0
    for each in opened(e.recording):
        for scores, *layer in zip(each.scores, each.q, each.k):  # all at once are very large
            q, k = (one.astype(np.float64) for one in layer)
            whole_q, whole_k = (v.transpose(1, 0, 2).reshape(v.shape[1], -1) for v in (q, k))
            product = whole_q @ whole_k.T
            error = max(error, float(np.abs(_added_up(scores, q, k) - product).max()))
            size = max(size, float(np.abs(product).max()))
    h, d = e.recording.model.n_head, e.recording.model.d_head
    return Measured(
        error / size if size else float("nan"),
        f"The vectors of {h * d} numbers were put together again from their {h} pieces of {d}. "
        f"What the model’s {h} heads made of the pieces, their scores with the scale and whatever "
        "was added by distance taken back, adds up to the one long q·k, off by at most "
        f"{number(error)} where it reaches {number(size)}.",
    )


def _added_up(scores: np.ndarray, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """A layer's scores (head, query, key) as bare products, added up over the heads: whatever the
    model divided by, and what each head adds for a distance between tokens, are taken back, both
    fitted to the heads' own products. What these two cannot explain stays."""
    _, n, m = scores.shape
    diagonal = (np.arange(m) - np.arange(n)[:, None] + n - 1).ravel()
    counts = np.bincount(diagonal)

    def by_distance(x: np.ndarray) -> np.ndarray:
        return (np.bincount(diagonal, x.ravel()) / counts)[diagonal].reshape(n, m)

    rests, distances = np.zeros((n, m)), np.zeros((n, m))
    both = square = 0.0
    for of_head, one, other in zip(scores, q, k):
        head, products = of_head.astype(np.float64), one @ other.T
        distance, rest = by_distance(products), head - by_distance(head)
        both += float((rest * (products - distance)).sum())
        square += float((rest**2).sum())
        rests += rest
        distances += distance
    return both / max(square, 1e-300) * rests + distances


def heads_apart(e: Evidence) -> Measured:
    """How much of their weight two heads of a layer place differently, in the mean of all pairs."""
    if e.recording.model.n_head < 2:
        raise Untestable("This model has one head a layer, so there are none to compare.")
    rows: list[tuple[str, str]] = []
    kept: list[float] = []
    for each in e.recording.attention:
        of_layers = []
        for pattern in each.pattern[:, :, choosing(each)]:
            of_layers.append(
                float(
                    np.mean(
                        [np.abs(a - b).sum(axis=-1).mean() / 2 for a, b in combinations(pattern, 2)]
                    )
                )
            )
        rows += by_layer(f"{each.name}, ", of_layers)
        kept += of_layers
    value = float(np.mean(kept))
    return Measured(
        value,
        f"Two heads of one layer place {percent(value)} of their weight on different tokens, in "
        "the mean of all pairs (0: the same pattern; 1: nothing in common).",
        tuple(rows),
    )


def reach(e: Evidence) -> Measured:
    """How many times as far the furthest-looking head looks as the nearest-looking, resting places
    left out."""
    found: list[tuple[float, float, str]] = []
    for each in own(e.recording):
        reached, share = sinks.reach(e.recording, each)
        enough(int(sinks.telling(e.recording, each)[0].sum()), "rows with words to choose from")
        found += [
            (float(reached[at]), float(share[at]), f"layer {at[0]}, head {at[1]}")
            for at in np.ndindex(reached.shape)
            if np.isfinite(reached[at])
        ]
    if len(found) < 2:
        raise Untestable(
            "Fewer than two heads give enough weight to words: the others rest on special tokens, "
            "the first token or a sink."
        )
    near, far = min(found), max(found)
    many = far[0] > MOST_TIMES * near[0]
    n = sum(each.pattern.shape[0] * each.pattern.shape[1] for each in own(e.recording))
    return Measured(
        MOST_TIMES if many else far[0] / near[0],
        "Special tokens, the first token and each head’s own sinks are left out, on which a head "
        f"rests rather than looks; {len(found)} of {n} heads still have weight enough to measure. "
        f"The one that stays nearest ({near[2]}) looks {number(near[0])} tokens away in the mean, "
        f"the one that reaches furthest ({far[2]}) {number(far[0])}.",
        tuple(
            (f"{name}, on {percent(share)} of its weight", f"{number(distance)} tokens")
            for distance, share, name in (far, near)
        ),
        f"over {number(MOST_TIMES)}×" if many else "",
    )


def on_itself(e: Evidence) -> Measured:
    """The share of rows, over all heads, whose largest weight is on the token itself."""
    shares: list[float] = []
    rows: list[tuple[str, str]] = []
    for each in own(e.recording):
        places = choosing(each)
        of_layers = (each.pattern[:, :, places].argmax(axis=-1) == places).mean(axis=(1, 2))
        rows += by_layer(f"{each.name}, ", of_layers)
        shares.append(float(of_layers.mean()))
    value = float(np.mean(shares))
    return Measured(
        value,
        f"In {percent(value)} of all rows the largest weight is on the token itself. Learned heads "
        "look where it helps: often at the token before, at a separator, or at the same word "
        "elsewhere.",
        tuple(rows),
    )


def asymmetry(e: Evidence) -> Measured:
    """How far the scores of the median head are from symmetric, as `constructions.asymmetry`
    defines it."""
    found, naive = [], 0.0
    opened(e.recording)
    for each in own(e.recording):
        at_least(e.recording.stream(each.query))
        found += [
            constructions.asymmetry(s.astype(np.float64)) for layer in each.scores for s in layer
        ]
        naive = max(naive, constructions.asymmetry(_naive(e, each)))
    value = float(np.median(found))
    return Measured(
        value,
        f"With x·x as the score, “a to b” equals “b to a”: asymmetry {number(naive)} on this "
        f"sentence’s own vectors. With queries and keys apart it is {number(value)} in the median "
        "head; 0 is symmetric, about 0.7 unrelated, 1 opposite.",
        (
            ("naive x·x", number(naive)),
            ("least of all heads", number(min(found))),
            ("median head", number(value)),
            ("most of all heads", number(max(found))),
        ),
    )


def _naive(e: Evidence, attention: Attention) -> np.ndarray:
    stream = e.recording.stream(attention.query)
    x = stream.at(state_before(stream, 0, "attn")).astype(np.float64)
    return x @ x.T


def naive_on_itself(e: Evidence) -> Measured:
    """The share of tokens that x . x makes most like themselves."""
    shares, peaks, learned = [], [], []
    for each in own(e.recording):
        at_least(e.recording.stream(each.query))
        product = _naive(e, each)
        places = np.arange(len(product))
        shares.append(float((product.argmax(axis=1) == places).mean()))
        peaks.append(float(softmax(product, np.ones_like(product, dtype=bool)).diagonal().mean()))
        rows = choosing(each)
        learned.append(float((each.pattern[:, :, rows].argmax(axis=-1) == rows).mean()))
    value = float(np.mean(shares))
    return Measured(
        value,
        f"With x·x as the score, {percent(value)} of the tokens prefer themselves, at a mean "
        f"weight of {fixed(float(np.mean(peaks)), 2)}: what a token is decides where it looks. "
        f"With learned queries and keys it is {percent(float(np.mean(learned)))} of the rows.",
    )
