"""Claims about the softmax and the scale.

Each function measures one claim, as `explorer/analysis/evidence.py` says; the sentences are in
`explorer/sentences/claims.toml`."""

from __future__ import annotations

import numpy as np

from explorer.analysis import scale
from explorer.analysis.evidence import Evidence, Measured, number
from explorer.analysis.grounds import at_least, by_layer, choosing, factor, opened, own, softmax
from explorer.analysis.numbers import fixed, percent

TEMPERATURES = (1.0, 0.5, 0.1, 0.01)
ROUNDING = 1e-5  # a row's sum off 1 by no more than this is 1, in 32-bit numbers
# MOST = 1000.0  # beyond this a ratio says no more than "many times"


# ---- softmax ----


def rows_sum(e: Evidence) -> Measured:
    """The largest |sum over keys - 1| of any row."""
    off = {
        each.name: float(np.abs(each.pattern.sum(axis=-1, dtype=np.float64) - 1).max())
        for each in e.recording.attention
    }
    n = sum(int(np.prod(each.pattern.shape[:3])) for each in e.recording.attention)
    return Measured(
        max(off.values()),
        f"All {n:,} rows of weights were added up; the one furthest from 1 is off by "
        f"{number(max(off.values()))}.",
        tuple((name, number(value)) for name, value in off.items()),
    )


def summed_axis(e: Evidence) -> Measured:
    """By how much the sums over queries are away from 1, in the mean; 0 where the sums over keys
    are not 1 either."""
    off, rows = [], 0.0
    for each in own(e.recording):
        at_least(e.recording.stream(each.query))
        off.append(np.abs(each.pattern.sum(axis=-2, dtype=np.float64) - 1).mean())
        rows = max(rows, float(np.abs(each.pattern.sum(axis=-1, dtype=np.float64) - 1).max()))
    if rows > ROUNDING:
        return Measured(
            0.0,
            "Summed over the tokens looked at, the sums are not 1 either: off by up to "
            f"{number(rows)}.",
        )
    value = float(np.mean(off))
    return Measured(
        value,
        f"Summed over the tokens looked at, every sum is 1 (off by {number(rows)}). Summed over "
        f"the tokens that look, the sums are off by {number(value)} in the mean: a token may be "
        "looked at a lot, or by nobody.",
    )


def convex(e: Evidence) -> Measured:
    """How far any output leaves the range of the values it is made of, any weight lies below 0, or
    any row's sum lies off 1."""
    out, least, total = 0.0, np.inf, 0.0
    for each in opened(e.recording):
        last = each.allowed.sum(axis=1) - 1  # what is allowed is always a beginning of the keys
        for layer in zip(each.pattern, each.v):
            weights, v = (one.astype(np.float64) for one in layer)
            z = weights @ v
            low, high = (how.accumulate(v, axis=1)[:, last] for how in (np.minimum, np.maximum))
            out = max(out, float(np.maximum(low - z, z - high).max()))
            least = min(least, float(weights.min()))
            total = max(total, float(np.abs(weights.sum(axis=-1) - 1).max()))
    value = max(0.0, out, -least, total)
    return Measured(
        value,
        "Every output z lies between the smallest and the largest of the values it may use, "
        "dimension by dimension."
        if value < 1e-4
        else "Some output lies outside what its values span, or some weight is below 0.",
        (
            ("furthest outside the values", number(max(out, 0.0))),
            ("smallest weight", number(least)),
            ("sums off 1", number(total)),
        ),
    )


def soft_to_hard(e: Evidence) -> Measured:
    """How far z is from the value of the best key at a temperature of 0.01, of how far it is as the
    model runs."""
    far: dict[float, list[float]] = {t: [] for t in TEMPERATURES}
    peak = []
    for each in opened(e.recording):
        rows = choosing(each)
        allowed = each.allowed[rows]
        for scores, v in zip(each.scores[:, :, rows], each.v.astype(np.float64)):
            best = np.where(allowed, scores, -np.inf).argmax(axis=-1)
            hard = np.take_along_axis(v, best[..., None], axis=1)
            size = np.linalg.norm(v, axis=-1).mean()
            for t in TEMPERATURES:
                weights = softmax(scores / t, allowed)
                far[t].append((np.linalg.norm(weights @ v - hard, axis=-1) / size).mean())
                if t == 1:
                    peak.append(weights.max(axis=-1).mean())
    means = {t: float(np.mean(values)) for t, values in far.items()}
    value = means[TEMPERATURES[-1]] / means[1.0] if means[1.0] > 0 else float("nan")
    return Measured(
        value,
        f"As the model runs, the best key gets {percent(np.mean(peak))} of the weight in the mean. "
        "Dividing the scores by a smaller and smaller temperature, the output comes to the best "
        "key’s value alone.",
        tuple(
            (f"distance to the hard lookup at temperature {t:g}", number(means[t]))
            for t in TEMPERATURES
        ),
    )


# ---- the scale ----


def random_products(e: Evidence) -> Measured:
    """By how much Var(q . k) of random vectors is off d, relatively, at the worst of many
    widths."""
    found = scale.at_random(e.draw)
    widest = found.widths[-1]
    return Measured(
        float(np.abs(found.variance / np.array(found.widths) - 1).max()),
        f"{scale.PAIRS:,} pairs of random vectors at each of {len(found.widths)} widths; text and "
        f"weights play no part. At width {widest} Var(q·k) is "
        f"{number(float(found.variance[-1]))}, and the largest of {scale.KEYS} weights "
        f"{fixed(found.raw[-1], 2)} in the mean; after dividing by √{widest} they are "
        f"{number(float(found.variance[-1] / widest))} and {fixed(found.scaled[-1], 2)}.",
        tuple(
            (
                f"Var(q·k) at width {width}, and after the scale",
                f"{number(float(variance))} → {number(float(variance / width))}",
            )
            for width, variance in zip(found.widths, found.variance)
        ),
    )


def own_products(e: Evidence) -> Measured:
    """By what factor the variance of the model's own q . k is off d_k sigma_q^2 sigma_k^2, the
    median of its heads."""
    ratios, spread = [], []
    for each in opened(e.recording):
        d = each.q.shape[-1]
        q, k = (
            (v.astype(np.float64) ** 2).mean(axis=(2, 3)) for v in (each.q, each.k)
        )  # (layer, head)
        # Of the products themselves: a model may divide them by something else than √d, or by
        # nothing, and add to them.
        variance = np.stack(
            [
                [(a.astype(np.float64) @ b.astype(np.float64).T).var() for a, b in zip(*layer)]
                for layer in zip(each.q, each.k)
            ]
        )
        ratios.append(variance / (d * q * k))
        spread.append([layer.std(axis=(1, 2), dtype=np.float64).mean() for layer in each.scores])
    ratio = float(np.median(np.concatenate([each.ravel() for each in ratios])))
    more = "more" if ratio > 1 else "less"
    return Measured(
        factor(ratio),
        f"In the median head Var(q·k) is {number(ratio)} times dₖ σ²(q) σ²(k): its products vary "
        f"{more} than those of independent draws, which would give 1.",
        tuple(
            row
            for each, values in zip(e.recording.attention, spread)
            for row in by_layer(f"spread of the model’s scores, {each.name} ", values)
        ),
    )


def head_width(e: Evidence) -> Measured:
    """The largest |score - q . k / sqrt(d_head)|, of the largest score."""
    right, wrong, top = 0.0, 0.0, 0.0
    for each in opened(e.recording):
        for scores, q, k in zip(each.scores, each.q, each.k):
            products = q @ k.swapaxes(-1, -2)
            right = max(right, float(np.abs(scores - products / np.sqrt(q.shape[-1])).max()))
            wrong = max(
                wrong, float(np.abs(scores - products / np.sqrt(e.recording.model.d_model)).max())
            )
            top = max(top, float(np.abs(scores).max()))
    d, d_k = e.recording.model.d_model, e.recording.model.d_head
    said = (
        "it gives the model’s scores"
        if right <= 1e-4 * top
        else f"it is off the model’s scores by up to {number(right)}"
    )
    return Measured(
        right / top if top else float("nan"),
        f"q·k was worked out again from the recorded vectors. Divided by √{d_k} {said}; divided "
        f"by √{d} it would be off by up to {number(wrong)}.",
        (
            (f"off, dividing by √{d_k} (one head’s width)", number(right)),
            (f"off, dividing by √{d} (the whole width)", number(wrong)),
            ("largest score", number(top)),
        ),
    )


def saturation(e: Evidence) -> Measured:
    """How many times larger the softmax's derivative is with the scale than without, in the
    mean."""
    with_: list[float] = []
    without: list[float] = []
    for each in opened(e.recording):
        rows = choosing(each)
        for q, k in zip(each.q[:, :, rows], each.k):
            raw = q @ k.swapaxes(-1, -2)
            for kept, by in ((with_, np.sqrt(q.shape[-1])), (without, 1.0)):
                kept.append(1 - (softmax(raw / by, each.allowed[rows]) ** 2).sum(axis=-1).mean())
    a, b = float(np.mean(with_)), float(np.mean(without))
    return Measured(
        a / b if b else np.inf,
        f"Σ a(1 − a) over a row says how much its weights can still move. It is {number(a)} with "
        f"the scale and {number(b)} with raw q·k.",
        (("with the scale", number(a)), ("without", number(b))),
    )
