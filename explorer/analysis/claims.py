"""Which function measures which claim, by the claim's id in `explorer/text/claims.toml`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from explorer.analysis import head_naming, positions, residual, soft_lookup
from explorer.analysis.consistency import heads_error
from explorer.analysis.evidence import (
    TRIED,
    ClaimContext,
    Measured,
    Untestable,
    another,
    at_least,
    beginning,
    by_layer,
    choosing,
    embedding_factor,
    enough,
    factor,
    few,
    masked,
    number,
    opened,
    own,
    patched,
    softmax,
    state_before,
    text_places,
    text_rows,
    tried,
    writer,
)
from explorer.analysis.formatting import fixed, percent, plural
from explorer.analysis.residual import degrees, normalised
from explorer.analysis.terminology import norm, with_article
from models.recording import Attention, Recording, Stream

# Claims about the residual stream: what is added, its norms, the sphere and its rotations.

SMALL_GAIN = 1e-2
SETS = {
    "LayerNorm": "LayerNorm makes the variance 1",
    "RMSNorm": "RMSNorm makes the mean square 1",
}


def adds(e: ClaimContext) -> Measured:
    """The largest |before + wrote - after|, of the largest component."""
    for stream in e.recording.streams:
        layers_of(stream)
    found = [residual.conservation(stream) for stream in e.recording.streams]
    worst, size = max(error for error, _, _ in found), max(largest for _, _, largest in found)
    return Measured(
        worst / size,
        f"{sum(n for _, n, _ in found):,} additions of this recording were done again: the "
        f"largest error is {number(worst)}, where components reach {number(size)}.",
    )


def little_work(e: ClaimContext) -> Measured:
    """The mean angle between the vector before a sub-layer and after it, in degrees."""
    angles, rows = [], []
    for stream in e.recording.streams:
        text = text_places(stream)
        for each in layers_of(stream):
            turned = float(
                np.nanmean(
                    residual.degrees(
                        residual.at(stream, each.before)[text],
                        residual.at(stream, each.after)[text],
                    )
                )
            )
            angles.append(turned)
            rows.append((_named(e, stream, each.name), f"{fixed(turned, 1)}°"))
    value = float(np.mean(angles))
    return Measured(
        value,
        f"A sub-layer turns a word’s vector by {fixed(value, 1)}° in the mean, from "
        f"{fixed(min(angles), 1)}° to {fixed(max(angles), 1)}°. Turned at random, a vector of so "
        "many dimensions would stand at about 90° to the one before; cos 60° = 0.5, so at 60° "
        "its component along the old direction is half its length.",
        tuple(rows),
    )


def layers_of(stream: Stream) -> tuple[residual.SubLayer, ...]:
    """The sub-layers of a stream. Raises Untestable where the model does not show what they
    write."""
    found = tuple(each for each in residual.sublayers(stream) if each.layer >= 0)
    if not found:
        raise Untestable("This model does not show what its sub-layers write.")
    return found


def _named(e: ClaimContext, stream: Stream, name: str) -> str:
    return name if len(e.recording.streams) == 1 else f"{stream.name}, {name}"


# ---- norms ----


def _norms(
    e: ClaimContext,
) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, float, bool]]]:
    """Every norm of a sub-layer: what it is given and what it gives (token, d_model), and its gain,
    bias, eps and whether it subtracts the mean."""
    found = False
    for stream in e.recording.streams:
        norms = e.norms(stream.name)
        for each in layers_of(stream):
            if each.site not in norms:
                continue
            if f"{each.site}.read" in stream.sites:
                pair = each.before, f"{each.site}.read"
            elif each.after != each.total:
                pair = each.total, each.after
            else:
                continue
            found = True
            given, gives = (residual.at(stream, site) for site in pair)
            yield given, gives, norms[each.site]
    if not found:
        raise Untestable("This model has no norm that it shows both sides of.")


def mean_and_spread(e: ClaimContext) -> Measured:
    """The largest of: |mean|, |variance - 1| before gain and bias, and what then differs from what
    the model has after its LayerNorm."""
    mean, variance, error, n = 0.0, 0.0, 0.0, 0
    for given, gives, (gain, bias, eps, centred) in _norms(e):
        if not centred:
            raise Untestable("It is RMSNorm here, which subtracts no mean, and no LayerNorm.")
        normed = normalised(given, eps)
        mean, variance = (
            max(mean, float(np.abs(normed.mean(-1)).max())),
            max(variance, float(np.abs(normed.var(-1) - 1).max())),
        )
        error = max(error, float(np.abs(normed * gain + bias - gives).max()))
        n += len(given)
    return Measured(
        max(mean, variance, error),
        f"{n:,} vectors were normalised again, each by its own mean and variance, and agree with "
        f"the model’s to {number(error)}. Before gain and bias their means are 0 to "
        f"{number(mean)}, their variances 1 to {number(variance)}.",
        (
            ("mean, off 0 by", number(mean)),
            ("variance, off 1 by", number(variance)),
            ("after gain and bias, off the model’s by", number(error)),
        ),
    )


def unit_length(e: ClaimContext) -> Measured:
    """By what factor the length of a state after a norm is away from 1, either way, in the mean."""
    own = list(_norms(e))
    lengths = np.concatenate([np.linalg.norm(gives, axis=-1) for _, gives, _ in own])
    name = norm(how[3] for _, _, how in own)
    d = e.recording.model.d_model
    with np.errstate(divide="ignore"):
        value = float(np.maximum(lengths, 1 / lengths).mean())
    return Measured(
        value,
        f"The {len(lengths):,} vectors after {with_article(name)} are "
        f"{number(float(lengths.mean()))} long "
        f"in the mean, from {number(float(lengths.min()))} to {number(float(lengths.max()))}. "
        f"{SETS.get(name, 'It sets the size')}, so the length is √d = √{d} = "
        f"{fixed(np.sqrt(d), 1)} before gain and bias.",
    )


def on_a_sphere(e: ClaimContext) -> Measured:
    """The largest | |u| / sqrt(d) - 1 |, u the state with gain and bias taken back."""
    worst, longest, shortest, flat = 0.0, 0.0, np.inf, True
    for given, gives, (gain, bias, eps, centred) in _norms(e):
        flat = flat and centred
        strong = np.abs(gain) > SMALL_GAIN  # a gain near 0 cannot be taken back
        u = np.where(
            strong, (gives - bias) / np.where(strong, gain, 1), normalised(given, eps, centred)
        )
        length = np.linalg.norm(u, axis=-1)
        longest, shortest = max(longest, float(length.max())), min(shortest, float(length.min()))
        worst = max(worst, float(np.abs(length / np.sqrt(u.shape[-1]) - 1).max()))
    d = e.recording.model.d_model
    return Measured(
        worst,
        f"With gain and bias taken back, every vector is between {fixed(shortest, 3)} and "
        f"{fixed(longest, 3)} long; √{d} is {fixed(np.sqrt(d), 3)}. "
        + (
            "All of them also have mean 0, so they lie on that sphere cut by a plane."
            if flat
            else "RMSNorm subtracts no mean, so they may lie anywhere on that sphere."
        ),
        (
            ("radius √d", fixed(np.sqrt(d), 3)),
            ("shortest", fixed(shortest, 3)),
            ("longest", fixed(longest, 3)),
        ),
    )


def only_turns(e: ClaimContext) -> Measured:
    """The mean | |after| / |before| - 1 | over the sub-layers: by how much they stretch or
    shrink."""
    off, rows = [], []
    for stream in e.recording.streams:
        text = text_places(stream)
        for each in layers_of(stream):
            before, after = (residual.at(stream, site)[text] for site in (each.before, each.after))
            ratio = np.linalg.norm(after, axis=-1) / np.linalg.norm(before, axis=-1)
            off.append(float(np.abs(ratio - 1).mean()))
            rows.append(
                (
                    _named(e, stream, each.name),
                    f"turned {fixed(np.nanmean(residual.degrees(before, after)), 1)}°, "
                    f"length × {fixed(ratio.mean(), 2)}",
                )
            )
    value = float(np.mean(off))
    return Measured(
        value,
        "A rotation keeps lengths. Each sub-layer does turn the vector, and changes its length "
        f"by {percent(value)} in the mean."
        + (
            " Before gain and bias, and from the first norm on, all lengths are √d, and the "
            "reading as rotations is exact."
            if each.after.endswith(".normed")
            else ""
        ),
        tuple(rows),
    )


def vocabulary_sphere(e: ClaimContext) -> Measured:
    """The spread of the lengths of all embeddings, of their mean, beside that of random vectors as
    wide, 1 / sqrt(2 d)."""
    words = e.embeddings()
    parts = np.array_split(words, max(len(words) // 1000, 1))  # all in 64 bits are 100 MB
    lengths = np.concatenate([np.linalg.norm(part.astype(np.float64), axis=-1) for part in parts])
    chance = 1 / np.sqrt(2 * words.shape[1])
    spread = float(lengths.std() / lengths.mean())
    return Measured(
        spread / chance,
        f"The {len(lengths):,} rows, as the stream begins with them, are "
        f"{number(float(lengths.min()))} to {number(float(lengths.max()))} long, "
        f"{number(float(lengths.mean()))} in the mean: a spread of {spread:.1%}. Random vectors "
        f"of {words.shape[1]} numbers have one of {chance:.1%}, near a sphere by their width "
        "alone. Nothing in training holds words to one length.",
        (
            ("spread of the lengths", f"{spread:.1%}"),
            ("of random vectors", f"{chance:.1%}"),
            ("shortest", number(float(lengths.min()))),
            ("mean", number(float(lengths.mean()))),
            ("longest", number(float(lengths.max()))),
        ),
    )


# Claims about gradients, along layers and along tokens.

WIDTH = 64  # of the recurrent network
NETWORKS = 20  # whose weights are drawn; a number is their median
# The size of its weights: the first decides, the second shows how much hangs on it.
GAINS = (1.0, 2.0)
NEAR_AND_FAR = 8  # tokens that a text must have before near and far differ


def identity_plus(e: ClaimContext) -> Measured:
    """The largest entry of |J(x + f) - J(f) - I| of one sub-layer, at several tokens."""
    stream = writer(e.recording)
    each = layers_of(stream)[-1]
    if f"{each.site}.read" in stream.sites:
        raise Untestable(
            "In this model the sub-layer reads the vector through a norm, and its Jacobian "
            "is not measured here."
        )
    found = {
        token: e.jacobian(stream.name, token, each.site) for token in tried(text_places(stream))
    }
    if not all(one.adds for one in found.values()):
        raise Untestable(
            "This model was trained without residual connections, so f is added to nothing."
        )
    of_f, weakest = (
        [float(getattr(one, what)[-1]) for one in found.values()] for what in ("wrote", "total")
    )
    largest = max(float(one.wrote[0]) for one in found.values())
    n = len(next(iter(found.values())).total)
    return Measured(
        max(float(one.error) for one in found.values()),
        f"Both Jacobians at {len(found)} tokens in {each.name}, {n} × {n} numbers each, were "
        f"worked out apart. That of f alone stretches by at most {number(largest)} and loses some "
        f"directions (down to {number(min(of_f))}); with x added, the weakest keeps at least "
        f"{number(min(weakest))}.",
        tuple(
            (
                f"{stream.tokens[token]} (token {token}): off by; smallest stretch of f; of x + f",
                f"{number(float(one.error))}; {number(float(one.wrote[-1]))}; "
                f"{number(float(one.total[-1]))}",
            )
            for token, one in found.items()
        ),
    )


def _deep(e: ClaimContext, switch: str) -> Measured:
    """By what factor the gradient at a deep stack's input is away from that at its end, of the ways
    with a switch the one nearer to 1 where it is off and further from 1 where it is on."""
    stream = e.recording.streams[0]
    at_least(stream)
    found = e.depth(stream.name)
    kept = {
        way: float(norm[0] / norm[-1])
        for way, norm in zip(found.ways, found.norm)
        if way.startswith(switch)
    }
    away = {way: factor(each) if each > 0 else np.inf for way, each in kept.items()}
    pick = max if switch == "residual on" else min
    told = "; ".join(f"{way}: {number(each)} times" for way, each in kept.items())
    return Measured(
        pick(away.values()),
        f"{found.layers} layers of {found.width} numbers, weights at random, this text’s first "
        f"{found.tokens} embeddings. The gradient at the input, of that at the last state: {told}.",
        tuple(
            (f"{way}, layer {layer}", number(float(found.norm[found.ways.index(way), layer])))
            for way in kept
            for layer in (0, found.layers // 4, found.layers // 2, found.layers)
        ),
    )


def gradient_with(e: ClaimContext) -> Measured:
    """The same with residual connections: the worse of with LayerNorm and without."""
    return _deep(e, "residual on")


def gradient_without(e: ClaimContext) -> Measured:
    """The same without residual connections: the milder of with LayerNorm and without."""
    return _deep(e, "residual off")


def far_words(e: ClaimContext) -> Measured:
    """How many times weaker the gradient to the farthest token is than to the nearest one, in the
    model itself, along a line through the logarithms, from the answers at several tokens."""
    stream = writer(e.recording)
    text = text_places(stream)
    enough(len(text), "tokens of text, so that near and far differ", NEAR_AND_FAR)
    steps, reach, rows = [], 0, []
    for token in map(int, text[-TRIED:]):
        norms = e.highway(stream.name, token).norm[0, 0]  # the model as it is
        heard = text[(text != token) & (norms[text] > 0)]  # a mask hides the later ones
        means = _by_distance(np.abs(heard - token), norms[heard])
        step = residual.per_step(means)
        if step is not None:
            steps.append(step)
            reach = max(reach, len(means) - 1)
            rows.append(
                (f"from {stream.tokens[token]} (token {token}): a token", f"× {fixed(step, 3)}")
            )
    enough(len(steps), "answers that reach tokens at three distances")
    step = float(np.exp(np.mean(np.log(steps))))
    total = float(step ** (1 - reach))
    said = f"{number(total)} times weaker" if total >= 1 else f"{number(1 / total)} times stronger"
    return Measured(
        total,
        "Through the layers, not along the text: the gradient from the answers at the last "
        f"{len(steps)} tokens changes by × {fixed(step, 3)} a token, which makes it {said} at "
        f"{reach} tokens than at 1.",
        tuple(rows),
    )


def _by_distance(distance: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean of the values at each distance, (distance), 0 where there is none."""
    sums, counts = np.zeros(distance.max(initial=0) + 1), np.zeros(distance.max(initial=0) + 1)
    np.add.at(sums, distance, values)
    np.add.at(counts, distance, 1)
    return np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)


def recurrent_fades(e: ClaimContext) -> Measured:
    """By what factor the gradient of an untrained tanh RNN of gain 1 on this text's embeddings
    changes with each token back."""
    stream = e.recording.streams[0]
    at_least(stream)
    x = residual.at(stream, stream.sites[0])
    lengths = {gain: recurrent(e.draw, x, gain) for gain in GAINS}
    steps = {gain: _a_step(found) for gain, found in lengths.items()}
    own, other = GAINS
    back = len(x) - 1
    return Measured(
        steps[own],
        f"{NETWORKS} recurrent networks of width {WIDTH}, their weights at random with a gain of "
        f"{own:g}, read this text’s embeddings. From the last state back over {back} tokens the "
        f"gradient comes to {number(lengths[own][-1])} of itself in the median, "
        f"× {fixed(steps[own], 2)} a token. The gain decides: at {other:g}, with the same tanh, "
        f"it is × {fixed(steps[other], 2)} a token.",
        tuple(
            (
                f"{at} back; at a gain of {other:g}",
                f"{number(lengths[own][at])}; {number(lengths[other][at])}",
            )
            for at in sorted({1, 2, 5, 10, 20, back})
            if at <= back
        ),
    )


def recurrent(
    draw: Callable[[int, int], np.ndarray], x: np.ndarray, gain: float = 1.0
) -> np.ndarray:
    """The length of a gradient at the last state of untrained tanh networks and at each one before
    it, of that at the last, that one first: the median of NETWORKS; x (token, d_model)."""
    x = x / np.maximum(x.std(axis=1, keepdims=True), 1e-12)
    w = gain * draw(NETWORKS * WIDTH, WIDTH).reshape(NETWORKS, WIDTH, WIDTH) / np.sqrt(WIDTH)
    onto = draw(NETWORKS * WIDTH, x.shape[1]).reshape(NETWORKS, WIDTH, -1) / np.sqrt(x.shape[1])
    return np.median(back_through(w, x @ onto.swapaxes(1, 2)), axis=0)


def back_through(w: np.ndarray, inward: np.ndarray) -> np.ndarray:
    """The length of a gradient of length 1 at the last state of each tanh network, and at each one
    before it, that one first, (network, token); w (network, width, width), inward (network, token,
    width)."""
    h, states = np.zeros(w.shape[:2]), []
    for each in inward.swapaxes(0, 1):
        h = np.tanh((w @ h[..., None])[..., 0] + each)
        states.append(h)
    gradient = np.ones_like(h) / np.sqrt(w.shape[-1])
    found = [np.ones(len(w))]
    for h in states[:0:-1]:
        gradient = (((1 - h**2) * gradient)[:, None] @ w)[:, 0]
        found.append(np.linalg.norm(gradient, axis=-1))
    return np.stack(found, axis=1)


def _a_step(lengths: np.ndarray) -> float:
    """The mean factor a step, up to where the numbers underflow."""
    alive = [at for at, value in enumerate(lengths) if value > 1e-280][-1]
    return float(lengths[alive] ** (1 / alive)) if alive else 0.0


# Claims about heads: how they are cut, how they differ, how far they look, and what they score.

MOST_TIMES = 1000.0  # beyond this a ratio says no more than "many times"


def concatenated(e: ClaimContext) -> Measured:
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


def reshaped(e: ClaimContext) -> Measured:
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


def heads_apart(e: ClaimContext) -> Measured:
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


def reach(e: ClaimContext) -> Measured:
    """How many times as far the furthest-looking head looks as the nearest-looking, resting places
    left out."""
    found: list[tuple[float, float, str]] = []
    for each in own(e.recording):
        reached, share = head_naming.reach(e.recording, each)
        enough(
            int(head_naming.telling(e.recording, each)[0].sum()), "rows with words to choose from"
        )
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


def on_itself(e: ClaimContext) -> Measured:
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


def asymmetry(e: ClaimContext) -> Measured:
    """How far the scores of the median head are from symmetric, as `soft_lookup.asymmetry`
    defines it."""
    found, naive = [], 0.0
    opened(e.recording)
    for each in own(e.recording):
        at_least(e.recording.stream(each.query))
        found += [
            soft_lookup.asymmetry(s.astype(np.float64)) for layer in each.scores for s in layer
        ]
        naive = max(naive, soft_lookup.asymmetry(_naive(e, each)))
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


def _naive(e: ClaimContext, attention: Attention) -> np.ndarray:
    stream = e.recording.stream(attention.query)
    x = stream.at(state_before(stream, 0, "attn")).astype(np.float64)
    return x @ x.T


def naive_on_itself(e: ClaimContext) -> Measured:
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


# Claims about what passes from one token to another: the mask, messages, the feed-forward
# network, cross-attention, reading step by step.

LOST = 2.0**-24  # a weight below this adds less to a sum than a 32-bit number can show


# ---- the mask ----


def later_weight(e: ClaimContext) -> Measured:
    """The largest weight on a later token under a causal mask."""
    attention, stream = masked(e.recording)
    at_least(stream)
    n = len(stream.tokens)
    later = np.triu(np.ones((n, n), dtype=bool), 1)
    value = float(np.abs(attention.pattern[..., later]).max())
    return Measured(
        value,
        f"All {int(later.sum()) * attention.pattern.shape[0] * attention.pattern.shape[1]:,} "
        f"weights above the diagonal were looked at; the largest is {number(value)}. e to the −∞ "
        "is 0, not merely small.",
    )


def future_change(e: ClaimContext) -> Measured:
    """The largest change of any earlier token's vector, at any place, when a later token is another
    one."""
    _, stream = masked(e.recording)
    places = tried(np.arange(1, len(stream.tokens)))
    two = len(e.recording.streams) > 1
    here, before, rows = [], [], []
    for place in places:
        changed = (
            _with_other_word(e, stream, place) if two else _with_other_vector(e, stream, place)
        )
        moved = np.abs(stream.resid - changed.resid).max(axis=(0, 2))
        del changed  # each holds a whole pass: one at a time
        if moved[place] > 0:
            here.append(float(moved[place]))
            before.append(float(moved[:place].max()))
            rows.append((f"{stream.tokens[place]} (token {place})", number(before[-1])))
    if not here:
        raise Untestable("No token could be exchanged for another one.")
    return Measured(
        max(before),
        f"{len(here)} tokens were exchanged, one after another. Their own vectors changed by up "
        f"to {number(max(here))}, those of the tokens before them by {number(max(before))}.",
        tuple(rows),
    )


def _with_other_vector(e: ClaimContext, stream: Stream, place: int) -> Stream:
    edit = patched(another(stream, place), beginning(stream), place)
    return e.again(edit, "", None).stream(stream.name)


def _with_other_word(e: ClaimContext, stream: Stream, place: int) -> Stream:
    ids = list(map(int, stream.ids[1:]))
    ids[place - 1] = _other_id(e.recording, int(stream.ids[place]))
    return e.again("", "", tuple(ids)).stream(stream.name)


def _other_id(recording: Recording, id: int) -> int:
    ids = recording.streams[0].ids[text_places(recording.streams[0])]
    others = ids[ids != id]
    if not len(others):
        raise Untestable("There is no other token to exchange it for.")
    return int(others[0])


def both_sides(e: ClaimContext) -> Measured:
    """The share of an encoder's tokens before an exchanged one whose last vectors change: the
    mask's law the other way round."""
    attention = next((each for each in e.recording.attention if each.query == "encoder"), None)
    if attention is None or attention.key != "encoder":
        raise Untestable("This model has no encoder.")
    stream = e.recording.stream("encoder")
    heard, could, rows = 0, 0, []
    for place in tried(np.arange(1, len(stream.tokens))):
        moved = np.abs(stream.resid[-1] - _with_other_vector(e, stream, place).resid[-1]).max(
            axis=1
        )
        if moved[place] > 0:
            heard, could = heard + int((moved[:place] > 0).sum()), could + place
            rows.append(
                (
                    f"{stream.tokens[place]} (token {place}): earlier tokens that change",
                    f"{int((moved[:place] > 0).sum())} of {place}",
                )
            )
    if not could:
        raise Untestable("No token could be exchanged for another one.")
    later = np.triu(np.ones(attention.allowed.shape, dtype=np.float32), 1)
    share = float((attention.pattern * later).sum() / attention.pattern[..., 0].size)
    return Measured(
        heard / could,
        f"{len(rows)} tokens were exchanged, one after another: {heard} of the {could} vectors "
        f"before them change. On this text {percent(share)} of all weight rests on later tokens.",
        tuple(rows),
    )


# ---- what passes ----


def messages(e: ClaimContext) -> Measured:
    """The share of tokens that hear of a change of one token in layer 0's attention just where an
    edge of the graph is, over several tokens exchanged. Edges whose weight is lost in rounding say
    nothing and do not count. Raises Untestable where most are."""
    attention = own(e.recording)[0]
    stream = e.recording.stream(attention.query)
    state_before(stream, 0, "attn")
    right, counted, lost, edges_in_all, faintest, rows = 0, 0, 0, 0, 0.0, []
    for place in tried(text_places(stream)):
        edit = patched(another(stream, place), beginning(stream), place)
        changed = e.again(edit, "", None)
        there = changed.stream(stream.name).at("0.attn.wrote")
        moved = np.abs(stream.at("0.attn.wrote") - there).max(axis=1) > 0
        edges = attention.allowed[:, place]
        weight = np.max(
            [own(each)[0].pattern[0, :, :, place].max(axis=0) for each in (e.recording, changed)],
            axis=0,
        )
        del changed, there  # each holds a whole pass: one at a time
        silent = edges & ~moved & (weight < LOST)
        faintest = max(faintest, float(weight[silent].max(initial=0)))
        lost, edges_in_all = lost + int(silent.sum()), edges_in_all + int(edges.sum())
        right += int((moved == edges)[~silent].sum())
        counted += int((~silent).sum())
        rows.append(
            (
                f"{stream.tokens[place]} (token {place}): edges; of these changed; changed without",
                f"{int(edges.sum())}; {int((moved & edges).sum())}; {int((moved & ~edges).sum())}",
            )
        )
    if 2 * lost > edges_in_all:
        raise Untestable(
            f"Layer 0’s attention is so sharp here that at {lost} of {edges_in_all} edges its "
            f"weight is lost in rounding (at most {number(faintest)}): an edge is a permission "
            "and no promise."
        )
    quiet = (
        f" At {lost} the weight is so small that 32-bit numbers carry nothing, which neither "
        "speaks for nor against an edge."
        if lost
        else ""
    )
    return Measured(
        right / counted,
        f"{len(rows)} tokens were exchanged before layer 0, one after another. In {right} of "
        f"{counted} cases what attention writes at a token changed just where it has an edge to "
        f"the exchanged one.{quiet}",
        tuple(rows),
    )


def alone(e: ClaimContext) -> Measured:
    """The largest change of what the FFN writes at any other token, when one token's vector before
    it is another; several are tried."""
    stream = e.recording.streams[0]
    site = state_before(stream, 0, "ffn")
    here, others, rows = [], [], []
    for place in tried(text_places(stream)):
        changed = e.again(patched(another(stream, place), site, place), "", None)
        moved = np.abs(stream.at("0.ffn.wrote") - changed.stream(stream.name).at("0.ffn.wrote"))
        del changed  # each holds a whole pass: one at a time
        moved = moved.max(axis=1)
        if moved[place] > 0:
            here.append(float(moved[place]))
            others.append(float(np.delete(moved, place).max()))
            rows.append((f"{stream.tokens[place]} (token {place})", number(others[-1])))
    if not here:
        raise Untestable("No token’s vector could be exchanged for another one.")
    return Measured(
        max(others),
        f"The vectors of {len(here)} tokens were exchanged just before the FFN of layer 0, one "
        f"after another. What the FFN writes changed there by up to {number(max(here))} and at "
        f"the other {len(stream.tokens) - 1} tokens by {number(max(others))}.",
        tuple(rows),
    )


def cross_keys(e: ClaimContext) -> Measured:
    """The largest change of any cross-attention key or value when the decoder reads something else:
    several other texts, one after another."""
    cross = next((each for each in e.recording.attention if each.query != each.key), None)
    if cross is None:
        raise Untestable("This model has one stream, so it has no cross-attention.")
    opened(e.recording)
    moved, asked, rows = [], [], []
    for ids in _other_targets(e.recording.stream(cross.key), e.recording.stream(cross.query)):
        other = next(each for each in e.again("", "", ids).attention if each.name == cross.name)
        both = (cross.k, other.k), (cross.v, other.v)
        moved.append(max(float(np.abs(a - b).max()) for a, b in both))
        n = min(cross.q.shape[2], other.q.shape[2])
        asked.append(float(np.abs(cross.q[:, :, :n] - other.q[:, :, :n]).max()))
        del other, both  # each holds a whole pass: one at a time
        rows.append(
            (
                f"another text of {plural(len(ids), 'token')}: keys and values; queries",
                f"{number(moved[-1])}; {number(asked[-1])}",
            )
        )
    n_source = cross.k.shape[2]
    return Measured(
        max(moved),
        f"The decoder was given {len(rows)} other texts to go on from, one after another. The "
        f"{n_source} keys and values changed by {number(max(moved))} at most; the queries, which "
        f"come from the decoder, by up to {number(max(asked))}.",
        (*rows, ("queries × keys", f"{cross.q.shape[2]} × {n_source}")),
    )


def _other_targets(source: Stream, target: Stream) -> list[tuple[int, ...]]:
    """TRIED texts for a decoder to read, made of a source's tokens, none of them what it reads
    now."""
    ids = tuple(int(id) for id in few(source.ids[text_places(source)], 8))
    made = dict.fromkeys((ids[::-1], ids, ids[1:], ids[::2], ids[:1], ids * 2))
    others = [each for each in made if each != tuple(map(int, target.ids[1:]))]
    enough(len(others), "other texts to try", TRIED)
    return others[:TRIED]


def offset(e: ClaimContext) -> Measured:
    """How much likelier (nats) a decoder's row holds the token after the one it reads than that one
    itself, in the mean."""
    _, stream = masked(e.recording)
    ids = stream.ids
    places = few(np.flatnonzero(ids[:-1] != ids[1:]), 32)
    enough(len(places), "rows whose next token is another than the one they read")
    gained = []
    for place in places:
        scores = e.logits(stream.name, int(place)).astype(np.float64)
        gained.append(scores[ids[place + 1]] - scores[ids[place]])
    value = float(np.mean(gained))
    higher = int((np.array(gained) > 0).sum())
    return Measured(
        value,
        "Row by row, the score of the token that comes next was compared with that of the token "
        f"just read: it is {'higher' if value > 0 else 'lower'} by {number(abs(value))} nats in "
        f"the mean, and higher in {higher} of the {len(places)} rows. The text begins with "
        f"{stream.tokens[0]}, so that the first word has a row too.",
    )


def steps_agree(e: ClaimContext) -> Measured:
    """The largest difference of any score between one pass over the text and one pass a token, of
    the largest score."""
    _, stream = masked(e.recording)
    at_least(stream)
    n = min(len(stream.tokens), 32)
    apart = np.stack(e.stepwise(n))
    together = np.stack([e.logits(writer(e.recording).name, place) for place in range(n)])
    error, size = float(np.abs(apart - together).max()), float(np.abs(together).max())
    return Measured(
        error / size,
        f"The first {n} tokens read at once, and one after another with stored keys and values: "
        f"the {together.size:,} scores differ by at most {number(error)}, where they reach "
        f"{number(size)}.",
    )


# Claims about word order: the sinusoids and their laws, what is added to a sentence, and who
# knows in which order the words came.

MOST_SHUFFLES = 16  # drawn, to find TRIED that move a token


def _encoding(e: ClaimContext) -> tuple[np.ndarray, Stream]:
    """What the model adds for the positions, (position, d_model), and the stream it is added to:
    the longest one."""
    stream = max(e.recording.streams, key=lambda each: len(each.tokens))
    if "pos.wrote" not in stream.sites:
        raise Untestable("Nothing is added to this model’s embeddings for the positions.")
    encoding = stream.at("pos.wrote").astype(np.float64)
    if encoding.shape[1] % 2:
        raise Untestable(f"Sines and cosines come in pairs, and d_model is {encoding.shape[1]}.")
    return encoding, stream


def _whose(stream: Stream) -> str:
    off = positions.off_formula(stream)
    return (
        "the paper’s sinusoids"
        if off <= positions.SAME
        else "a table other than the paper’s formula"
    )


def by_distance(e: ClaimContext) -> Measured:
    """The largest difference of two products at the same distance, of the largest product."""
    encoding, stream = _encoding(e)
    at_least(stream)
    gram = encoding @ encoding.T
    n = len(gram)
    spread = max(float(np.ptp(np.diagonal(gram, distance))) for distance in range(n))
    value = spread / float(np.abs(gram).max())
    rows = tuple(
        (
            f"distance {distance}: smallest and largest p·p",
            f"{number(float(np.diagonal(gram, distance).min()))} … "
            f"{number(float(np.diagonal(gram, distance).max()))}",
        )
        for distance in range(min(n, 6))
    )
    return Measured(
        value,
        f"All {n * (n + 1) // 2:,} products of this text’s {n} positions; the model adds "
        f"{_whose(stream)}. Products at one distance differ by at most {number(spread)}.",
        rows,
    )


def both_ways(e: ClaimContext) -> Measured:
    """The largest |p_i . p_(i+k) - p_i . p_(i-k)|, of the largest product."""
    encoding, stream = _encoding(e)
    at_least(stream)
    gram = encoding @ encoding.T
    n = len(gram)
    worst = max(
        abs(float(gram[i, i + k] - gram[i, i - k]))
        for i in range(1, n - 1)
        for k in range(1, min(i, n - 1 - i) + 1)
    )
    return Measured(
        worst / float(np.abs(gram).max()),
        "From each position as far to the right as to the left: the two products differ by at "
        f"most {number(worst)}. "
        + (
            "So the bare product says how far, and not on which side; W_Q and W_K have to find "
            "that out."
            if worst < 1e-4 * np.abs(gram).max()
            else "So this table tells left from right."
        ),
    )


def low_is_fast(e: ClaimContext) -> Measured:
    """The share of neighbouring pairs of dimensions of which the lower one turns faster."""
    encoding, stream = _encoding(e)
    at_least(stream)
    pairs = encoding.reshape(len(encoding), -1, 2)
    if pairs.shape[1] < 2:
        raise Untestable("There is one pair of dimensions only.")
    turned = degrees(pairs[:-1], pairs[1:]).mean(axis=0)
    if not np.isfinite(turned).all():
        raise Untestable(
            "Some pairs of this table’s dimensions are 0 at a position, and have no angle there."
        )
    value = float((np.diff(turned) < 0).mean())
    at = [0, len(turned) // 4, len(turned) // 2, len(turned) - 1]
    return Measured(
        value,
        f"From one position to the next, dimensions 0 and 1 turn by {number(float(turned[0]))}°, "
        f"the last two by {number(float(turned[-1]))}°.",
        tuple(
            (f"dimensions {2 * i} and {2 * i + 1}: degrees a position", number(float(turned[i])))
            for i in at
        ),
    )


def even_is_sine(e: ClaimContext) -> Measured:
    """The largest difference of the model's encoding to the formula with the sine in the even
    dimensions."""
    encoding, _ = _encoding(e)
    n, d = encoding.shape
    table = positions.table(n, d)
    swapped = table.reshape(n, -1, 2)[..., ::-1].reshape(n, d)
    right, wrong = float(np.abs(encoding - table).max()), float(np.abs(encoding - swapped).max())
    said = (
        "Position 0 is (0, 1, 0, 1, …): sines of 0 in the even places."
        if right <= positions.SAME
        else f"What this model adds is not the formula’s table: it is off by up to {number(right)}."
    )
    return Measured(
        right,
        f"{said} With sine and cosine the other way round the table would be off by "
        f"{number(wrong)}.",
        (
            ("sine in even dimensions: off by", number(right)),
            ("cosine in even dimensions: off by", number(wrong)),
        ),
    )


def shift_turns(e: ClaimContext) -> Measured:
    """The largest difference of an encoding turned by one position and the next position's
    encoding."""
    encoding, stream = _encoding(e)
    at_least(stream)
    n = len(encoding)
    errors = {
        shift: float(
            np.abs(positions.shifted(encoding, shift)[: n - shift] - encoding[shift:]).max()
        )
        for shift in sorted({1, min(5, n - 1), n - 1})
    }
    worst = max(errors.values())
    said = (
        "One matrix of rotations for each shift, the same at every position, takes each of the "
        f"{n} encodings to the one further on"
        if worst < 1e-3
        else (
            f"The formula’s rotations do not take these {n} encodings to the ones further on; the "
            f"model adds {_whose(stream)}"
        )
    )
    return Measured(
        worst,
        f"{said}: off by at most {number(worst)}.",
        tuple((f"shift by {shift}: off by", number(error)) for shift, error in errors.items()),
    )


def start(e: ClaimContext) -> Measured:
    """The largest difference of the first state and sqrt(d) times the word's embedding plus the
    position's; or of that factor, if larger."""
    _encoding(e)
    times = embedding_factor(e)
    words, error, size = e.embeddings(), 0.0, 0.0
    for stream in e.recording.streams:
        if "embed+pos" in stream.sites:
            first = stream.at("embed+pos").astype(np.float64)
            error = max(
                error,
                float(
                    np.abs(
                        words[stream.ids].astype(np.float64) + stream.at("pos.wrote") - first
                    ).max()
                ),
            )
            size = max(size, float(np.abs(first).max()))
    d = e.recording.model.d_model
    off = abs(times / np.sqrt(d) - 1)
    return Measured(
        max(error / size, off),
        "The readout uses the same E, which shows by what it is multiplied on its way in: "
        f"{times:.4g}; √{d} is {np.sqrt(d):.4g}. That times each token’s row of E, plus its "
        f"position’s encoding, is what enters layer 0: off by at most {number(error)}, where "
        f"numbers reach {number(size)}.",
        (
            ("factor before E", f"{times:.4g}"),
            (f"√{d}", f"{np.sqrt(d):.4g}"),
            ("off, in the first state", number(error)),
        ),
    )


def balance(e: ClaimContext) -> Measured:
    """By what factor a component of sqrt(d) e is larger than one of p, or smaller, root mean square
    over the text."""
    encoding, stream = _encoding(e)
    if abs(embedding_factor(e) / np.sqrt(e.recording.model.d_model) - 1) > 0.01:
        raise Untestable("This model does not multiply its embeddings by √d.")
    text = text_places(stream)
    word, place = (
        float(np.sqrt((v[text] ** 2).mean()))
        for v in (stream.at("embed").astype(np.float64), encoding)
    )
    d = e.recording.model.d_model
    bare = word / np.sqrt(d)
    return Measured(
        factor(word / place),
        f"A component of √d·e is {number(word)} in size, one of the encoding {number(place)}. "
        f"Without the √{d} a word’s would be {number(bare)}, {number(place / bare)} times smaller "
        "than the position’s.",
        (
            ("√d · e, root mean square", number(word)),
            ("p", number(place)),
            ("e without √d", number(bare)),
        ),
    )


# ---- another order ----


@dataclass(frozen=True)
class _Moved:
    """What shuffles did to a stream: of each, how far the last vectors of the tokens that stand
    elsewhere are from those of the same tokens in order, as a share of their length, and how many
    such tokens there are."""

    gaps: tuple[float, ...]
    tokens: tuple[int, ...]

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (f"shuffle {at}: {n} tokens elsewhere, vectors apart by", number(gap))
            for at, (gap, n) in enumerate(zip(self.gaps, self.tokens), 1)
        )


def _shuffled(e: ClaimContext, stream: str, base: str = "") -> _Moved:
    """What several shuffles do where every pass runs under the edits `base`. Raises Untestable
    where there is no other order, TooShort where fewer shuffles than TRIED move a token."""
    first = e.recording.streams[0]
    if len(set(map(int, first.ids[~first.special]))) < 2:
        raise Untestable("All tokens of this text are the same, so there is no other order.")
    plain = _end(e.again(base, "", None).stream(stream) if base else e.recording.stream(stream))
    length = np.linalg.norm(plain.resid[-1].astype(np.float64), axis=1)
    found: dict[tuple[int, ...], tuple[float, int]] = {}
    for seed in range(1, MOST_SHUFFLES + 1):
        edits = ",".join(filter(None, (base, f"ShuffleTokens:{seed}")))
        shuffled = _end(e.again(edits, "", None).stream(stream))
        pairs = positions.matched(plain, shuffled, same_text=True)
        moved = pairs.here != pairs.there
        if moved.any():
            apart = np.linalg.norm(
                plain.resid[-1][pairs.here].astype(np.float64) - shuffled.resid[-1][pairs.there],
                axis=1,
            )
            gap = float(apart[moved].mean() / length[pairs.here].mean())
            found[tuple(map(int, pairs.there))] = gap, int(moved.sum())
        if len(found) == TRIED:
            break
    enough(len(found), "shuffles that move tokens", TRIED)
    gaps, tokens = zip(*found.values())
    return _Moved(gaps, tokens)


def _end(stream: Stream) -> Stream:
    """A stream with its last vectors alone: they do not keep the pass they came from in memory."""
    return replace(stream, sites=stream.sites[-1:], resid=stream.resid[-1:].copy())


def without_positions(e: ClaimContext) -> Measured:
    """How far a token's last vector moves when the tokens are shuffled, without positions and
    without a mask: the most of several shuffles."""
    stream = e.recording.streams[0].name
    found = _shuffled(e, stream, "WithoutPositions" + ",WithoutMask" * (stream == "decoder"))
    unmasked = ", and without the mask," if stream == "decoder" else ""
    return Measured(
        max(found.gaps),
        f"The text’s tokens were read in {len(found.gaps)} other orders without "
        f"positions{unmasked} and {min(found.tokens)} to {max(found.tokens)} of them stood "
        f"elsewhere. Each took its vector along: they differ by at most {number(max(found.gaps))} "
        "of their length. So the set of vectors stays, and their order is the tokens’.",
        found.rows,
    )


def _knows_none(e: ClaimContext) -> bool:
    """True where taking the positions away changes nothing. A model that adds none may know them
    elsewhere, as in its attention, and refuse this."""
    if any("pos.wrote" in stream.sites for stream in e.recording.streams):
        return False
    try:
        without = e.again("WithoutPositions", "", None)
    except Untestable:
        return False
    return all(
        np.array_equal(here.resid, there.resid)
        for here, there in zip(e.recording.streams, without.streams)
    )


def with_positions(e: ClaimContext) -> Measured:
    """How far a token's last vector moves when the tokens are shuffled, the model as it is: the
    least of several shuffles."""
    if _knows_none(e):
        raise Untestable("This model has no positions.")
    found = _shuffled(e, e.recording.streams[0].name)
    return Measured(
        min(found.gaps),
        f"{len(found.gaps)} shuffles with positions: the last vectors of the tokens that stand "
        f"elsewhere differ by {percent(min(found.gaps))} of their length at least, by "
        f"{percent(max(found.gaps))} at most.",
        found.rows,
    )


def mask_tells(e: ClaimContext) -> Measured:
    """How far a decoder's last vectors move when the tokens are shuffled, without positions but
    with its mask: the least of several shuffles."""
    if len(e.recording.streams) > 1:
        raise Untestable(
            "A translator’s target is written word by word, so its order is not shuffled here."
        )
    found = _shuffled(e, masked(e.recording)[1].name, "WithoutPositions")
    return Measured(
        min(found.gaps),
        f"{len(found.gaps)} shuffles without positions, but under the causal mask: the last "
        f"vectors of the moved tokens differ by {percent(min(found.gaps))} of their length at "
        "least. Which tokens one may see already depends on the order; only attention without a "
        "mask is blind to it.",
        found.rows,
    )


def no_blow_up(e: ClaimContext) -> Measured:
    """How many times as long the last vectors are without norms as with them."""
    stream = e.recording.streams[0]
    if not any(site.endswith((".normed", ".read")) for site in stream.sites):
        raise Untestable("This model has no norm.")
    bare = e.again("WithoutNorm", "", None).stream(stream.name)
    here, there = (_length(each, each.sites[-1]) for each in (stream, bare))
    rows = by_layer(
        "without norms, after ",
        [_length(bare, total) for _, wrote, total in bare.writes() if wrote.endswith("ffn.wrote")],
    )
    said = "None was trained without it here to compare with."
    if trained := e.bare():
        other = trained.stream(stream.name)
        start, end = _length(other, other.sites[0]), _length(other, other.sites[-1])
        said = (
            f"{trained.model.name}, which learned without norms, keeps them at "
            f"{number(end)}, {number(end / start)} times the length they begin with: training "
            "finds weights to suit."
        )
        rows = (*rows, (f"{trained.model.name}, the last vectors", number(end)))
    return Measured(
        there / here,
        "The norms are taken from a model that was trained with them: its weights were learned to "
        f"be held by them. The mean length of the last vectors is {number(here)}; with every "
        f"norm left out, and all weights the same, it is {number(there)}. {said}",
        rows,
    )


def _length(stream: Stream, site: str) -> float:
    return float(np.linalg.norm(stream.at(site).astype(np.float64), axis=1).mean())


# Claims about the softmax and the scale.

TEMPERATURES = (1.0, 0.5, 0.1, 0.01)
ROUNDING = 1e-5  # a row's sum off 1 by no more than this is 1, in 32-bit numbers
# MOST = 1000.0  # beyond this a ratio says no more than "many times"


# ---- softmax ----


def rows_sum(e: ClaimContext) -> Measured:
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


def summed_axis(e: ClaimContext) -> Measured:
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


def convex(e: ClaimContext) -> Measured:
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


def soft_to_hard(e: ClaimContext) -> Measured:
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


def random_products(e: ClaimContext) -> Measured:
    """By how much Var(q . k) of random vectors is off d, relatively, at the worst of many
    widths."""
    found = soft_lookup.at_random(e.draw)
    widest = found.widths[-1]
    return Measured(
        float(np.abs(found.variance / np.array(found.widths) - 1).max()),
        f"{soft_lookup.PAIRS:,} pairs of random vectors at each of {len(found.widths)} widths; "
        f"text and "
        f"weights play no part. At width {widest} Var(q·k) is "
        f"{number(float(found.variance[-1]))}, and the largest of {soft_lookup.KEYS} weights "
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


def own_products(e: ClaimContext) -> Measured:
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


def head_width(e: ClaimContext) -> Measured:
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


def saturation(e: ClaimContext) -> Measured:
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


# Claims about words: where the last vector lies among the vocabulary's, what the layers before it
# say, and what context changes.

FEWEST_WORDS = 500  # of a vocabulary, of which a hundredth is then more than a few
MOST_TOKENS, MOST_WORDS, TOP = 8, 6, 5
GOES_ON = "‧"  # what a token's label begins with where it goes on inside a word


def _last(e: ClaimContext) -> tuple[Stream, np.ndarray]:
    stream = writer(e.recording)
    return stream, few(text_rows(stream), MOST_TOKENS)


def near_words(e: ClaimContext) -> Measured:
    """The share of the vocabulary that is further (by angle) from the last vector than its five
    likeliest words, in the mean."""
    stream, places = _last(e)
    words = _unit(e.embeddings())
    shares, cosines = [], []
    for place in places:
        likely = np.argsort(-e.logits(stream.name, int(place)), kind="stable")[:TOP]
        cosine = words @ _unit(stream.resid[-1, place])
        shares += [float((cosine < cosine[id]).mean()) for id in likely]
        cosines += [float(cosine[likely[0]])]
    value = float(np.mean(shares))
    return Measured(
        value,
        f"At {len(places)} tokens: the five words the model holds likeliest lie nearer to its "
        f"last vector than {percent(value)} of the {len(words):,} words. Near is not on top of "
        f"it: the likeliest one is at a cosine of {fixed(float(np.mean(cosines)), 2)} in the mean.",
        (
            ("cosine to the likeliest word, mean", fixed(float(np.mean(cosines)), 2)),
            ("largest", fixed(max(cosines), 2)),
        ),
    )


def distance_tells(e: ClaimContext) -> Measured:
    """The rank correlation over the vocabulary of a word's nearness to the last vector and its
    probability, in the mean."""
    stream, places = _last(e)
    words = e.embeddings() / embedding_factor(e)  # as the readout has them
    squares = (words**2).sum(axis=1)
    found, straight = [], []
    for place in places:
        scores, h = e.logits(stream.name, int(place)), stream.resid[-1, place]
        product = words @ h
        found.append(_rank_correlation(2 * product - squares, scores))
        straight.append(_rank_correlation(product, scores))
    value = float(np.mean(found))
    return Measured(
        value,
        "Sorted by distance to the last vector, the rows of the readout are in the order of "
        f"their words’ probability with a rank correlation of {fixed(value, 2)} (1: the same "
        "order). "
        "The readout takes the product h·e and adds a bias, and a product is not a distance "
        "where words are of unlike lengths: sorted by h·e alone it is "
        f"{fixed(float(np.mean(straight)), 2)}.",
        (
            ("by distance |h − e|", fixed(value, 2)),
            ("by product h·e", fixed(float(np.mean(straight)), 2)),
        ),
    )


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-30)


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (np.argsort(np.argsort(v, kind="stable"), kind="stable") for v in (a, b))
    return float(np.corrcoef(a, b)[0, 1])


def readable(e: ClaimContext) -> Measured:
    """The worst block's median rank of the model's final answer when read off its output, as a
    share of the vocabulary."""
    stream = writer(e.recording)
    lens, text = e.lens(stream.name), text_rows(stream)
    n_vocab = e.recording.model.n_vocab
    if n_vocab < FEWEST_WORDS:
        raise Untestable(
            f"A rank among this model’s {n_vocab} words is too coarse: this needs at least "
            f"{FEWEST_WORDS}."
        )
    blocks = {
        site.partition(".")[0]: at
        for at, site in enumerate(lens.sites)
        if site.partition(".")[0].isdecimal()
    }  # the last site of each
    if not blocks:
        raise Untestable("This model does not show what comes out of its blocks.")
    ranks = {layer: lens.rank[at, text] for layer, at in blocks.items()}
    value = max(float(np.median(rank)) for rank in ranks.values()) / n_vocab
    shares = {layer: float((rank == 0).mean()) for layer, rank in ranks.items()}
    first = next(iter(ranks))
    return Measured(
        value,
        f"Read through the same readout, the output of block {first} puts the model’s final "
        f"answer at rank {np.median(ranks[first]) + 1:.0f} of {n_vocab:,} in the median (by "
        f"chance: {n_vocab // 2:,}) and first at {percent(shares[first])} of the tokens."
        + (
            " Nothing is masked here, so the answer is mostly the word that stands there."
            if stream.name == "encoder"
            else ""
        ),
        tuple(
            (
                f"block {layer}: final answer first; median rank; KL to the end",
                f"{percent(shares[layer])}; {np.median(rank) + 1:.0f}; "
                f"{number(float(lens.kl[blocks[layer], text].mean()))} nats",
            )
            for layer, rank in ranks.items()
        ),
    )


def context_moves(e: ClaimContext) -> Measured:
    """The mean cosine between a word's last vector in this text and when it stands alone."""
    stream = writer(e.recording) if len(e.recording.streams) == 1 else e.recording.streams[0]
    text = text_places(stream)
    if stream.name == "decoder":
        text = text[
            1:
        ]  # the first word of a decoder stands alone here too: it sees nothing before it
    goes_on = [token.startswith(GOES_ON) for token in (*stream.tokens[1:], "")]
    words = [
        place
        for place in text
        if len(stream.tokens[place]) > 2 and stream.tokens[place].isalpha() and not goes_on[place]
    ]
    rows, cosines = [], []
    for place in few(np.array(words, dtype=int), MOST_WORDS):
        apart = e.again("", stream.tokens[place], ()).stream(stream.name)
        same = np.flatnonzero(apart.ids == stream.ids[place])
        if len(same):
            cosines.append(
                float(
                    residual.cosine(
                        residual.at(stream, stream.sites[-1])[place],
                        residual.at(apart, apart.sites[-1])[same[0]],
                    )
                )
            )
            rows.append((f"{stream.tokens[place]} (token {place})", fixed(cosines[-1], 2)))
    enough(len(cosines), "words of one token, of letters, with words around them")
    value = float(np.mean(cosines))
    return Measured(
        value,
        f"Each of {len(cosines)} words was also read alone. It begins with the same embedding, "
        f"and ends at a cosine of {fixed(value, 2)} to what it is in this sentence.",
        tuple(rows),
    )


MEASURES: dict[str, Callable[[ClaimContext], Measured]] = {
    "convex": convex,
    "variance-grows": random_products,
    "variance-here": own_products,
    "mask-is-zero": later_weight,
    "future-blind": future_change,
    "start": start,
    "balance": balance,
    "product-is-distance": by_distance,
    "left-is-right": both_ways,
    "low-is-fast": low_is_fast,
    "shift-is-rotation": shift_turns,
    "heads-differ": heads_apart,
    "near-and-far": reach,
    "identity-plus": identity_plus,
    "gradient-with": gradient_with,
    "gradient-without": gradient_without,
    "norm-tames": no_blow_up,
    "summed-axis": summed_axis,
    "naive-itself": naive_on_itself,
    "asymmetric": asymmetry,
    "messages": messages,
    "alone": alone,
    "adds": adds,
    "order-matters": with_positions,
    "offset-by-one": offset,
    "soft-lookup": soft_to_hard,
    "concatenate": concatenated,
    "unit-length": unit_length,
    "sphere": on_a_sphere,
    "only-rotations": only_turns,
    "little-work": little_work,
    "vocabulary-sphere": vocabulary_sphere,
    "near-its-words": near_words,
    "distance-tells": distance_tells,
    "readable-blocks": readable,
    "recurrence-fades": recurrent_fades,
    "far-words-count": far_words,
    "order-blind": without_positions,
    "blind-decoder": mask_tells,
    "even-is-sine": even_is_sine,
    "rows-sum": rows_sum,
    "looks-at-itself": on_itself,
    "context-moves": context_moves,
    "steps-agree": steps_agree,
    "reshape": reshaped,
    "head-scale": head_width,
    "scale-keeps-soft": saturation,
    "zero-and-one": mean_and_spread,
    "both-sides": both_sides,
    "cross-from-encoder": cross_keys,
}
