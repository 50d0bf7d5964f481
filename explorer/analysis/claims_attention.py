"""Claims about attention: the softmax, the scale, the mask, the heads, and what passes from one token to another.

Each function measures one claim, as `explorer/analysis/evidence.py` says; `claims.py` holds the statements.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from explorer.analysis.evidence import (
    Evidence,
    Measured,
    Untestable,
    another,
    at_least,
    beginning,
    by_layer,
    choosing,
    factor,
    few,
    masked,
    number,
    opened,
    own,
    softmax,
    state_before,
    text_places,
    writer,
)
from explorer.analysis.residual import heads_error
from models.recording import Attention, Recording

PAIRS = 6000  # of random vectors
TEMPERATURES = (1.0, 0.5, 0.1, 0.01)
ROUNDING = 1e-5  # a row's sum off 1 by no more than this is 1, in 32-bit numbers
LOST = 2.0**-24  # a weight below this adds less to a sum than a 32-bit number can show
MOST_TIMES = 1000.0  # beyond this a ratio says no more than "many times"


# ---- softmax --------------------------------------------------------------------------------------------------------


def rows_sum(e: Evidence) -> Measured:
    """The largest |sum over keys - 1| of any row."""
    off = {
        each.name: float(np.abs(each.pattern.sum(axis=-1, dtype=np.float64) - 1).max())
        for each in e.recording.attention
    }
    n = sum(int(np.prod(each.pattern.shape[:3])) for each in e.recording.attention)
    return Measured(
        max(off.values()),
        f"All {n:,} rows of weights were added up; the one furthest from 1 is off by {number(max(off.values()))}.",
        tuple((name, number(value)) for name, value in off.items()),
    )


def summed_axis(e: Evidence) -> Measured:
    """By how much the sums over queries are away from 1, in the mean; 0 where the sums over keys are not 1 either."""
    off, rows = [], 0.0
    for each in own(e.recording):
        at_least(e.recording.stream(each.query), 2)
        off.append(np.abs(each.pattern.sum(axis=-2, dtype=np.float64) - 1).mean())
        rows = max(rows, float(np.abs(each.pattern.sum(axis=-1, dtype=np.float64) - 1).max()))
    if rows > ROUNDING:
        return Measured(
            0.0,
            f"Summed over the tokens looked at, the sums are not 1 either: off by up to {number(rows)}.",
        )
    value = float(np.mean(off))
    return Measured(
        value,
        f"Summed over the tokens looked at, every sum is 1 (off by {number(rows)}). Summed over the tokens that look, the sums are off by {number(value)} in the mean: a token may be looked at a lot, or by nobody.",
    )


def convex(e: Evidence) -> Measured:
    """How far any output leaves the range of the values it is made of, any weight lies below 0, or any row's sum lies off 1."""
    out, least, total = 0.0, np.inf, 0.0
    for each in opened(e.recording):
        last = each.allowed.sum(axis=1) - 1  # what is allowed is always a beginning of the keys
        for weights, v in zip(each.pattern.astype(np.float64), each.v.astype(np.float64)):
            z = weights @ v
            low, high = (how.accumulate(v, axis=1)[:, last] for how in (np.minimum, np.maximum))
            out = max(out, float(np.maximum(low - z, z - high).max()))
            least = min(least, float(weights.min()))
            total = max(total, float(np.abs(weights.sum(axis=-1) - 1).max()))
    value = max(0.0, out, -least, total)
    return Measured(
        value,
        "Every output z lies between the smallest and the largest of the values it may use, dimension by dimension."
        if value < 1e-4
        else "Some output lies outside what its values span, or some weight is below 0.",
        (
            ("furthest outside the values", number(max(out, 0.0))),
            ("smallest weight", number(least)),
            ("sums off 1", number(total)),
        ),
    )


def soft_to_hard(e: Evidence) -> Measured:
    """How far z is from the value of the best key at a temperature of 0.01, of how far it is as the model runs."""
    far, peak = {t: [] for t in TEMPERATURES}, []
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
        f"As the model runs, the best key gets {np.mean(peak):.0%} of the weight in the mean. Dividing the scores by a smaller and smaller temperature, the output comes to the best key’s value alone.",
        tuple(
            (f"distance to the hard lookup at temperature {t:g}", number(means[t]))
            for t in TEMPERATURES
        ),
    )


# ---- the scale ------------------------------------------------------------------------------------------------------


def random_products(e: Evidence) -> Measured:
    """By how much Var(q . k) of random vectors is off d, relatively, at the worst of some widths."""
    d = e.recording.model.d_head
    widths = sorted({4, 16, d, 4 * d})
    variance = {}
    for width in widths:
        q, k = e.draw(2 * PAIRS, width).reshape(2, PAIRS, width)
        variance[width] = float((q * k).sum(axis=-1).var())
    value = max(abs(variance[width] / width - 1) for width in widths)
    return Measured(
        value,
        f"{PAIRS:,} pairs of random vectors of this model’s width, {d} numbers a head, and as many of other widths; its text and weights play no part. At {d}, Var(q·k) is {number(variance[d])}; after dividing by √{d} it is {number(variance[d] / d)}.",
        tuple(
            (
                f"Var(q·k) at width {width}, and after the scale",
                f"{number(variance[width])} → {number(variance[width] / width)}",
            )
            for width in widths
        ),
    )


def own_products(e: Evidence) -> Measured:
    """By what factor the variance of the model's own q . k is off d_k sigma_q^2 sigma_k^2, the median of its heads."""
    ratios, spread = [], []
    for each in opened(e.recording):
        if each.scores.shape[2] * each.scores.shape[3] < 4:
            raise Untestable("This needs at least two tokens, so that there are pairs to compare.")
        d = each.q.shape[-1]
        q, k = (
            (v.astype(np.float64) ** 2).mean(axis=(2, 3)) for v in (each.q, each.k)
        )  # (layer, head)
        # Of the products themselves: a model may divide them by something else than √d, or by nothing, and add to them.
        variance = np.stack(
            [
                (a.astype(np.float64) @ b.astype(np.float64).swapaxes(-1, -2)).var(axis=(1, 2))
                for a, b in zip(each.q, each.k)
            ]
        )
        ratios.append(variance / (d * q * k))
        spread.append(each.scores.std(axis=(2, 3), dtype=np.float64).mean(axis=1))
    ratio = float(np.median(np.concatenate([each.ravel() for each in ratios])))
    more = "more" if ratio > 1 else "less"
    return Measured(
        factor(ratio),
        f"In the median head Var(q·k) is {number(ratio)} times dₖ σ²(q) σ²(k): learned queries and keys are not independent draws, so their products vary {more} than chance would have them.",
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
        f"q·k was worked out again from the recorded vectors. Divided by √{d_k} {said}; divided by √{d} it would be off by up to {number(wrong)}.",
        (
            (f"off, dividing by √{d_k} (one head’s width)", number(right)),
            (f"off, dividing by √{d} (the whole width)", number(wrong)),
            ("largest score", number(top)),
        ),
    )


def saturation(e: Evidence) -> Measured:
    """How many times larger the softmax's derivative is with the scale than without, in the mean."""
    with_, without = [], []
    for each in opened(e.recording):
        rows = choosing(each)
        for q, k in zip(each.q[:, :, rows], each.k):
            raw = q @ k.swapaxes(-1, -2)
            for kept, by in ((with_, np.sqrt(q.shape[-1])), (without, 1.0)):
                kept.append(1 - (softmax(raw / by, each.allowed[rows]) ** 2).sum(axis=-1).mean())
    a, b = float(np.mean(with_)), float(np.mean(without))
    return Measured(
        a / b if b else np.inf,
        f"Σ a(1 − a) over a row says how much its weights can still move. It is {number(a)} with the scale and {number(b)} with raw q·k, where a few keys take almost everything.",
        (("with the scale", number(a)), ("without", number(b))),
    )


# ---- the mask -------------------------------------------------------------------------------------------------------


def later_weight(e: Evidence) -> Measured:
    """The largest weight on a later token under a causal mask."""
    attention, stream = masked(e.recording)
    at_least(stream, 2)
    n = len(stream.tokens)
    later = np.triu(np.ones((n, n), dtype=bool), 1)
    value = float(np.abs(attention.pattern[..., later]).max())
    return Measured(
        value,
        f"All {int(later.sum()) * attention.pattern.shape[0] * attention.pattern.shape[1]:,} weights above the diagonal were looked at; the largest is {number(value)}. e to the −∞ is 0, not merely small.",
    )


def future_change(e: Evidence) -> Measured:
    """The largest change of any earlier token's vector, at any place, when the last token is another one."""
    _, stream = masked(e.recording)
    at_least(stream, 2)
    last = len(stream.tokens) - 1
    if len(e.recording.streams) > 1:
        other = _other_id(e.recording, int(stream.ids[last]))
        changed = e.again("", "", (*map(int, stream.ids[1:last]), other)).stream("decoder")
    else:
        changed = e.again(
            _patched(another(stream, last), beginning(stream), last), "", None
        ).stream("decoder")
    moved = np.abs(stream.resid - changed.resid).max(axis=(0, 2))
    if not moved[last] > 0:
        raise Untestable("The last token could not be exchanged for another one.")
    return Measured(
        float(moved[:last].max()),
        f"The last token, “{stream.tokens[last]}”, was exchanged. Its own vectors changed by up to {number(float(moved[last]))}, those of the {last} tokens before it by {number(float(moved[:last].max()))}.",
    )


def _patched(text: str, site: str, token: int) -> str:
    return f"PatchSite:{text.replace(' ', '%20')}:{site.replace('+', '%2B')}:{token}:"


def _other_id(recording: Recording, id: int) -> int:
    ids = recording.streams[0].ids[text_places(recording.streams[0])]
    others = ids[ids != id]
    if not len(others):
        raise Untestable("There is no other token to exchange it for.")
    return int(others[0])


def both_sides(e: Evidence) -> Measured:
    """The share of an encoder's weight that rests on later tokens."""
    for each in e.recording.attention:
        if each.query == each.key == "encoder":
            at_least(e.recording.stream("encoder"), 2)
            n = len(each.allowed)
            later = np.triu(np.ones((n, n), dtype=np.float32), 1)
            value = float((each.pattern * later).sum() / each.pattern[..., 0].size)
            return Measured(
                value,
                f"{value:.0%} of all weight rests on tokens that come later in the text, which no mask hides from an encoder.",
            )
    raise Untestable("This model has no encoder.")


# ---- heads ----------------------------------------------------------------------------------------------------------


def concatenated(e: Evidence) -> Measured:
    """The largest |sum over heads of z W_O + b - what attention wrote|, of the largest number written."""
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
        f"Each head’s output was sent through its own slice of W_O and the results were added, for every token and layer. Beside what the model wrote in one piece, the largest difference is {number(error)}, where numbers reach {number(size)}.",
    )


def reshaped(e: Evidence) -> Measured:
    """The largest difference of the model's heads' products, added up, to the product of the vectors before they were cut, of the largest."""
    error, size = 0.0, 0.0
    paired = [each for each in opened(e.recording) if min(each.allowed.shape) > 1]
    if not paired:
        raise Untestable("This needs at least two tokens, so that there are pairs to compare.")
    for each in paired:
        for scores, q, k in zip(
            each.scores.astype(np.float64), each.q.astype(np.float64), each.k.astype(np.float64)
        ):
            whole_q, whole_k = (v.transpose(1, 0, 2).reshape(v.shape[1], -1) for v in (q, k))
            product = whole_q @ whole_k.T
            error = max(
                error,
                float(np.abs(_bare(scores, q @ k.swapaxes(-1, -2)).sum(axis=0) - product).max()),
            )
            size = max(size, float(np.abs(product).max()))
    h, d = e.recording.model.n_head, e.recording.model.d_head
    return Measured(
        error / size if size else float("nan"),
        f"The vectors of {h * d} numbers were put together again from their {h} pieces of {d}. What the model’s {h} heads made of the pieces, their scores with the scale and whatever was added by distance taken back, adds up to the one long q·k, off by at most {number(error)} where it reaches {number(size)}.",
    )


def _bare(scores: np.ndarray, products: np.ndarray) -> np.ndarray:
    """A layer's scores (head, query, key) as bare products: whatever the model divided by, and what each head adds for a distance between
    tokens, are taken back, both fitted to the heads' own products. What these two cannot explain stays."""
    _, n, m = scores.shape
    diagonal = (np.arange(m) - np.arange(n)[:, None] + n - 1).ravel()
    counts = np.bincount(diagonal)

    def by_distance(x: np.ndarray) -> np.ndarray:
        return np.stack(
            [(np.bincount(diagonal, each.ravel()) / counts)[diagonal].reshape(n, m) for each in x]
        )

    rest, wanted = scores - by_distance(scores), products - by_distance(products)
    scale = (rest * wanted).sum() / max((rest**2).sum(), 1e-300)
    return scale * rest + by_distance(products)


def heads_apart(e: Evidence) -> Measured:
    """How much of their weight two heads of a layer place differently, in the mean of all pairs."""
    if e.recording.model.n_head < 2:
        raise Untestable("This model has one head a layer, so there are none to compare.")
    rows, kept = [], []
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
        f"Two heads of one layer place {value:.0%} of their weight on different tokens, in the mean of all pairs (0: the same pattern; 1: nothing in common).",
        tuple(rows),
    )


def reach(e: Evidence) -> Measured:
    """How many times as far the furthest-looking head looks as the nearest-looking."""
    best: tuple[float, float, str, str] | None = None
    for each in own(e.recording):
        at_least(e.recording.stream(each.query), 5)
        places = np.arange(len(each.allowed))
        distance = np.abs(places[:, None] - places)
        mean = (each.pattern * distance).sum(axis=(2, 3), dtype=np.float64) / len(places)
        if mean.size < 2:
            raise Untestable("This model has one head, so there are none to compare.")
        near, far = (np.unravel_index(how(mean), mean.shape) for how in (np.argmin, np.argmax))
        found = (
            float(mean[far]),
            float(mean[near]),
            f"layer {far[0]}, head {far[1]}",
            f"layer {near[0]}, head {near[1]}",
        )
        best = (
            found
            if best is None or found[0] / max(found[1], 1e-9) > best[0] / max(best[1], 1e-9)
            else best
        )
    far, near, far_name, near_name = best
    many = far > MOST_TIMES * near
    return Measured(
        MOST_TIMES if many else far / near,
        f"The head that stays nearest ({near_name}) looks {number(near)} tokens away in the mean, the one that reaches furthest ({far_name}) {number(far)}.",
        ((far_name, f"{number(far)} tokens"), (near_name, f"{number(near)} tokens")),
        f"over {number(MOST_TIMES)}×" if many else "",
    )


def on_itself(e: Evidence) -> Measured:
    """The share of rows, over all heads, whose largest weight is on the token itself."""
    shares, rows = [], []
    for each in own(e.recording):
        places = choosing(each)
        of_layers = (each.pattern[:, :, places].argmax(axis=-1) == places).mean(axis=(1, 2))
        rows += by_layer(f"{each.name}, ", of_layers)
        shares.append(float(of_layers.mean()))
    value = float(np.mean(shares))
    return Measured(
        value,
        f"In {value:.0%} of all rows the largest weight is on the token itself. Learned heads look where it helps: often at the token before, at a separator, or at the same word elsewhere.",
        tuple(rows),
    )


def asymmetry(e: Evidence) -> Measured:
    """How far the scores of the median head are from symmetric: |S - S^T| of |S|."""
    found, naive = [], 0.0
    opened(e.recording)
    for each in own(e.recording):
        at_least(e.recording.stream(each.query), 2)
        for scores in each.scores.astype(np.float64):
            found += list(
                np.linalg.norm(scores - scores.swapaxes(-1, -2), axis=(-2, -1))
                / np.maximum(np.linalg.norm(scores, axis=(-2, -1)), 1e-30)
            )
        plain = _naive(e, each)
        naive = max(naive, float(np.abs(plain - plain.T).max() / np.abs(plain).max()))
    value = float(np.median(found))
    return Measured(
        value,
        f"With x·x as the score, “a to b” equals “b to a” (off by {number(naive)} on this sentence’s own vectors). With queries and keys apart, |S − Sᵀ| is {value:.0%} of |S| in the median head.",
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
        at_least(e.recording.stream(each.query), 2)
        product = _naive(e, each)
        places = np.arange(len(product))
        shares.append(float((product.argmax(axis=1) == places).mean()))
        peaks.append(float(softmax(product, np.ones_like(product, dtype=bool)).diagonal().mean()))
        rows = choosing(each)
        learned.append(float((each.pattern[:, :, rows].argmax(axis=-1) == rows).mean()))
    value = float(np.mean(shares))
    return Measured(
        value,
        f"With x·x as the score, {value:.0%} of the tokens prefer themselves, at a mean weight of {np.mean(peaks):.2f}: what a token is decides where it looks. With learned queries and keys it is {np.mean(learned):.0%} of the rows.",
    )


# ---- what passes ----------------------------------------------------------------------------------------------------


def messages(e: Evidence) -> Measured:
    """The share of tokens that hear of a change of one token in layer 0's attention just where an edge of the graph is. Edges whose weight is
    lost in rounding say nothing and do not count. Raises Untestable where most are."""
    attention = own(e.recording)[0]
    stream = e.recording.stream(attention.query)
    at_least(stream, 2)
    state_before(stream, 0, "attn")
    place = int(text_places(stream)[len(text_places(stream)) // 2])
    changed = e.again(_patched(another(stream, place), beginning(stream), place), "", None)
    moved = (
        np.abs(stream.at("0.attn.wrote") - changed.stream(stream.name).at("0.attn.wrote")).max(
            axis=1
        )
        > 0
    )
    edges = attention.allowed[:, place]
    weight = np.max(
        [own(each)[0].pattern[0, :, :, place].max(axis=0) for each in (e.recording, changed)],
        axis=0,
    )
    silent = edges & ~moved & (weight < LOST)
    if 2 * silent.sum() > edges.sum():
        raise Untestable(
            f"Layer 0’s attention is so sharp here that at {int(silent.sum())} of the {int(edges.sum())} tokens which may look at “{stream.tokens[place]}” its weight is lost in rounding (at most {number(float(weight[silent].max()))}): an edge is a permission and no promise."
        )
    value = float((moved == edges)[~silent].mean())
    lost = (
        f" At {int(silent.sum())} the weight is so small that 32-bit numbers carry nothing, which neither speaks for nor against an edge."
        if silent.any()
        else ""
    )
    return Measured(
        value,
        f"“{stream.tokens[place]}” (token {place}) was exchanged before layer 0. What attention writes then changed at {int(moved.sum())} of {len(moved)} tokens; {int(edges.sum())} have an edge to it.{lost}",
        (
            ("tokens with an edge to it", str(int(edges.sum()))),
            ("of these, changed", str(int((moved & edges).sum()))),
            ("changed without an edge", str(int((moved & ~edges).sum()))),
        ),
    )


def alone(e: Evidence) -> Measured:
    """The largest change of what the FFN writes at any other token, when one token's vector before it is another."""
    stream = e.recording.streams[0]
    at_least(stream, 2)
    site = state_before(stream, 0, "ffn")
    place = int(text_places(stream)[len(text_places(stream)) // 2])
    changed = e.again(_patched(another(stream, place), site, place), "", None).stream(stream.name)
    moved = np.abs(stream.at("0.ffn.wrote") - changed.at("0.ffn.wrote")).max(axis=1)
    if not moved[place] > 0:
        raise Untestable("The vector of this token could not be exchanged for another one.")
    others = float(np.delete(moved, place).max())
    return Measured(
        others,
        f"The vector of “{stream.tokens[place]}” (token {place}) was exchanged just before the FFN of layer 0. What the FFN writes changed there by {number(float(moved[place]))} and at the other {len(moved) - 1} tokens by {number(others)}.",
    )


def cross_keys(e: Evidence) -> Measured:
    """The largest change of any cross-attention key or value when the decoder reads something else."""
    cross = next((each for each in e.recording.attention if each.query != each.key), None)
    if cross is None:
        raise Untestable("This model has one stream, so it has no cross-attention.")
    opened(e.recording)
    source, target = e.recording.stream(cross.key), e.recording.stream(cross.query)
    ids = tuple(int(id) for id in few(source.ids[text_places(source)], 8)[::-1])
    ids = ids if ids != tuple(map(int, target.ids[1:])) else ids * 2
    other = next(each for each in e.again("", "", ids).attention if each.name == cross.name)
    moved = max(float(np.abs(a - b).max()) for a, b in ((cross.k, other.k), (cross.v, other.v)))
    n = min(cross.q.shape[2], other.q.shape[2])
    asked = float(np.abs(cross.q[:, :, :n] - other.q[:, :, :n]).max())
    return Measured(
        moved,
        f"The decoder was given another text to go on from. The {len(source.tokens)} keys and values changed by {number(moved)}; the queries, which come from the decoder, by {number(asked)}.",
        (
            ("keys and values", number(moved)),
            ("queries", number(asked)),
            ("queries × keys", f"{len(target.tokens)} × {len(source.tokens)}"),
        ),
    )


def offset(e: Evidence) -> Measured:
    """How much likelier (nats) a decoder's row holds the token after the one it reads than that one itself, in the mean."""
    _, stream = masked(e.recording)
    at_least(stream, 2)
    ids = stream.ids
    places = few(np.flatnonzero(ids[:-1] != ids[1:]), 32)
    if not len(places):
        raise Untestable("Each token is followed by an equal one, so the two cannot be told apart.")
    gained = []
    for place in places:
        scores = e.logits(stream.name, int(place)).astype(np.float64)
        gained.append(scores[ids[place + 1]] - scores[ids[place]])
    value = float(np.mean(gained))
    return Measured(
        value,
        f"Row by row, the score of the token that comes next was compared with that of the token just read: it is {'higher' if value > 0 else 'lower'} by {number(abs(value))} nats in the mean, and higher in {np.mean(np.array(gained) > 0):.0%} of the {len(places)} rows. The text begins with {stream.tokens[0]}, so that the first word has a row too.",
    )


def steps_agree(e: Evidence) -> Measured:
    """The largest difference of any score between one pass over the text and one pass a token, of the largest score."""
    _, stream = masked(e.recording)
    n = min(len(stream.tokens), 32)
    apart = np.stack(e.stepwise(n))
    together = np.stack([e.logits(writer(e.recording).name, place) for place in range(n)])
    error, size = float(np.abs(apart - together).max()), float(np.abs(together).max())
    return Measured(
        error / size,
        f"The first {n} tokens read at once, and one after another with stored keys and values: the {together.size:,} scores differ by at most {number(error)}, where they reach {number(size)}.",
    )
