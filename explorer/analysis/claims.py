"""Measures of the claims: one function for each claim's id in `explorer/text/claims.toml`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from explorer.analysis import head_naming, positions, residual, soft_lookup
from explorer.analysis.consistency import heads_error
from explorer.analysis.evidence import (
    N_TRIALS,
    ClaimContext,
    Measurement,
    Untestable,
    attention_with_qkv,
    by_layer,
    causal_attention,
    embedding_factor,
    factor,
    filler_text,
    input_site,
    number,
    output_stream,
    patch_edit,
    require_count,
    require_tokens,
    rows_with_choice,
    sample_tokens,
    self_attention,
    softmax,
    state_before,
    subsample,
    text_places,
    text_rows,
)
from explorer.analysis.formatting import fixed, percent, plural
from explorer.analysis.residual import degrees, normalised
from explorer.analysis.terminology import norm_name, with_article
from models.recording import Attention, Recording, Stream

# Claims about the residual stream: what is added, its norms, the sphere and its rotations.

SMALL_GAIN = 1e-2
NORM_EFFECTS = {
    "LayerNorm": "LayerNorm makes the variance 1",
    "RMSNorm": "RMSNorm makes the mean square 1",
}


def addition_error(e: ClaimContext) -> Measurement:
    """The largest |before + wrote - after|, of the largest component."""
    for stream in e.recording.streams:
        layers_of(stream)
    checks = [residual.residual_error(stream) for stream in e.recording.streams]
    worst, size = max(error for error, _, _ in checks), max(largest for _, _, largest in checks)
    return Measurement(
        worst / size,
        f"{sum(n for _, n, _ in checks):,} additions of this recording were done again: the "
        f"largest error is {number(worst)}, where components reach {number(size)}.",
    )


def little_work(e: ClaimContext) -> Measurement:
    """The mean angle between the vector before a sub-layer and after it, in degrees."""
    angles, rows = [], []
    for stream in e.recording.streams:
        text = text_places(stream)
        for sublayer in layers_of(stream):
            angle = float(
                np.nanmean(
                    residual.degrees(
                        residual.site_vectors(stream, sublayer.before)[text],
                        residual.site_vectors(stream, sublayer.after)[text],
                    )
                )
            )
            angles.append(angle)
            rows.append((_sublayer_name(e, stream, sublayer.name), f"{fixed(angle, 1)}°"))
    value = float(np.mean(angles))
    return Measurement(
        value,
        f"A sub-layer rotates a word’s vector by {fixed(value, 1)}° on average, from "
        f"{fixed(min(angles), 1)}° to {fixed(max(angles), 1)}°. A random rotation in so many "
        "dimensions would be about 90°. cos 60° = 0.5, so at 60° the component along the old "
        "direction is half the norm.",
        tuple(rows),
    )


def layers_of(stream: Stream) -> tuple[residual.SubLayer, ...]:
    """The sub-layers of a stream. Raises Untestable where the model does not show what they
    write."""
    sublayers = tuple(each for each in residual.sublayers(stream) if each.layer >= 0)
    if not sublayers:
        raise Untestable("This model does not give the outputs of its sub-layers.")
    return sublayers


def _sublayer_name(e: ClaimContext, stream: Stream, name: str) -> str:
    return name if len(e.recording.streams) == 1 else f"{stream.name}, {name}"


# ---- norms ----


def _norms(
    e: ClaimContext,
) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, float, bool]]]:
    """Every norm of a sub-layer: what it is given and what it gives (token, d_model), and its gain,
    bias, eps and whether it subtracts the mean."""
    has_norm = False
    for stream in e.recording.streams:
        norms = e.norms(stream.name)
        for sublayer in layers_of(stream):
            if sublayer.site not in norms:
                continue
            if f"{sublayer.site}.read" in stream.sites:
                pair = sublayer.before, f"{sublayer.site}.read"
            elif sublayer.after != sublayer.total:
                pair = sublayer.total, sublayer.after
            else:
                continue
            has_norm = True
            norm_input, norm_output = (residual.site_vectors(stream, site) for site in pair)
            yield norm_input, norm_output, norms[sublayer.site]
    if not has_norm:
        raise Untestable("This model has no norm that it shows both sides of.")


def mean_and_spread(e: ClaimContext) -> Measurement:
    """The largest of: |mean|, |variance - 1| before gain and bias, and what then differs from what
    the model has after its LayerNorm."""
    mean, variance, error, n = 0.0, 0.0, 0.0, 0
    for norm_input, norm_output, (gain, bias, eps, centred) in _norms(e):
        if not centred:
            raise Untestable("It is RMSNorm here, which subtracts no mean, and no LayerNorm.")
        normed = normalised(norm_input, eps)
        mean, variance = (
            max(mean, float(np.abs(normed.mean(-1)).max())),
            max(variance, float(np.abs(normed.var(-1) - 1).max())),
        )
        error = max(error, float(np.abs(normed * gain + bias - norm_output).max()))
        n += len(norm_input)
    return Measurement(
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


def unit_length(e: ClaimContext) -> Measurement:
    """By what factor the length of a state after a norm is away from 1, either way, in the mean."""
    norms = list(_norms(e))
    lengths = np.concatenate([np.linalg.norm(norm_output, axis=-1) for _, norm_output, _ in norms])
    name = norm_name(parameters[3] for _, _, parameters in norms)
    d = e.recording.model.d_model
    with np.errstate(divide="ignore"):
        value = float(np.maximum(lengths, 1 / lengths).mean())
    return Measurement(
        value,
        f"The {len(lengths):,} vectors after {with_article(name)} are "
        f"{number(float(lengths.mean()))} long "
        f"on average, from {number(float(lengths.min()))} to {number(float(lengths.max()))}. "
        f"{NORM_EFFECTS.get(name, 'It sets the size')}, so the length is √d = √{d} = "
        f"{fixed(np.sqrt(d), 1)} before gain and bias.",
    )


def on_a_sphere(e: ClaimContext) -> Measurement:
    """The largest | |u| / sqrt(d) - 1 |, u the state with gain and bias taken back."""
    worst, longest, shortest, all_centred = 0.0, 0.0, np.inf, True
    for norm_input, norm_output, (gain, bias, eps, centred) in _norms(e):
        all_centred = all_centred and centred
        strong = np.abs(gain) > SMALL_GAIN  # a gain near 0 cannot be taken back
        u = np.where(
            strong,
            (norm_output - bias) / np.where(strong, gain, 1),
            normalised(norm_input, eps, centred),
        )
        length = np.linalg.norm(u, axis=-1)
        longest, shortest = max(longest, float(length.max())), min(shortest, float(length.min()))
        worst = max(worst, float(np.abs(length / np.sqrt(u.shape[-1]) - 1).max()))
    d = e.recording.model.d_model
    return Measurement(
        worst,
        f"With gain and bias taken back, every vector is between {fixed(shortest, 3)} and "
        f"{fixed(longest, 3)} long; √{d} is {fixed(np.sqrt(d), 3)}. "
        + (
            "All of them also have mean 0, so they lie on that sphere cut by a plane."
            if all_centred
            else "RMSNorm subtracts no mean, so they may lie anywhere on that sphere."
        ),
        (
            ("radius √d", fixed(np.sqrt(d), 3)),
            ("shortest", fixed(shortest, 3)),
            ("longest", fixed(longest, 3)),
        ),
    )


def only_turns(e: ClaimContext) -> Measurement:
    """The mean | |after| / |before| - 1 | over the sub-layers: by how much they stretch or
    shrink."""
    stretch, rows = [], []
    for stream in e.recording.streams:
        text = text_places(stream)
        for sublayer in layers_of(stream):
            before, after = (
                residual.site_vectors(stream, site)[text]
                for site in (sublayer.before, sublayer.after)
            )
            ratio = np.linalg.norm(after, axis=-1) / np.linalg.norm(before, axis=-1)
            stretch.append(float(np.abs(ratio - 1).mean()))
            rows.append(
                (
                    _sublayer_name(e, stream, sublayer.name),
                    f"rotated {fixed(np.nanmean(residual.degrees(before, after)), 1)}°, "
                    f"length × {fixed(ratio.mean(), 2)}",
                )
            )
    value = float(np.mean(stretch))
    return Measurement(
        value,
        "A rotation preserves norms. Each sub-layer rotates the vector and changes its norm "
        f"by {percent(value)} on average."
        + (
            " Before gain and bias, and from the first norm on, all lengths are √d, and the "
            "reading as rotations is exact."
            if sublayer.after.endswith(".normed")
            else ""
        ),
        tuple(rows),
    )


def vocabulary_sphere(e: ClaimContext) -> Measurement:
    """The spread of the lengths of all embeddings, of their mean, beside that of random vectors as
    wide, 1 / sqrt(2 d)."""
    words = e.embeddings()
    parts = np.array_split(words, max(len(words) // 1000, 1))  # all in 64 bits are 100 MB
    lengths = np.concatenate([np.linalg.norm(part.astype(np.float64), axis=-1) for part in parts])
    chance = 1 / np.sqrt(2 * words.shape[1])
    spread = float(lengths.std() / lengths.mean())
    return Measurement(
        spread / chance,
        f"The {len(lengths):,} rows, as the stream begins with them, are "
        f"{number(float(lengths.min()))} to {number(float(lengths.max()))} long, "
        f"{number(float(lengths.mean()))} on average: a spread of {spread:.1%}. Random vectors "
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


def identity_plus(e: ClaimContext) -> Measurement:
    """The largest entry of |J(x + f) - J(f) - I| of one sub-layer, at several tokens."""
    stream = output_stream(e.recording)
    sublayer = layers_of(stream)[-1]
    if f"{sublayer.site}.read" in stream.sites:
        raise Untestable(
            "In this model the sub-layer reads the vector through a norm, and its Jacobian "
            "is not measured here."
        )
    jacobians = {
        token: e.jacobian(stream.name, token, sublayer.site)
        for token in sample_tokens(text_places(stream))
    }
    if not all(jacobian.adds for jacobian in jacobians.values()):
        raise Untestable(
            "This model was trained without residual connections, so f is added to nothing."
        )
    of_f, weakest = (
        [float(getattr(jacobian, field)[-1]) for jacobian in jacobians.values()]
        for field in ("wrote", "total")
    )
    largest = max(float(jacobian.wrote[0]) for jacobian in jacobians.values())
    n = len(next(iter(jacobians.values())).total)
    return Measurement(
        max(float(jacobian.error) for jacobian in jacobians.values()),
        f"Both Jacobians at {len(jacobians)} tokens in {sublayer.name}, {n} × {n} numbers "
        "each, were "
        f"worked out apart. That of f alone stretches by at most {number(largest)} and loses some "
        f"directions (down to {number(min(of_f))}); with x added, the weakest keeps at least "
        f"{number(min(weakest))}.",
        tuple(
            (
                f"{stream.tokens[token]} (token {token}): off by; smallest stretch of f; of x + f",
                f"{number(float(jacobian.error))}; {number(float(jacobian.wrote[-1]))}; "
                f"{number(float(jacobian.total[-1]))}",
            )
            for token, jacobian in jacobians.items()
        ),
    )


def _depth_gradient(e: ClaimContext, switch: str) -> Measurement:
    """By what factor the gradient at a deep stack's input is away from that at its end, of the ways
    with a switch the one nearer to 1 where it is off and further from 1 where it is on."""
    stream = e.recording.streams[0]
    require_tokens(stream)
    stack = e.depth(stream.name)
    remaining = {
        variant: float(norm[0] / norm[-1])
        for variant, norm in zip(stack.ways, stack.norm)
        if variant.startswith(switch)
    }
    factors = {variant: factor(each) if each > 0 else np.inf for variant, each in remaining.items()}
    pick = max if switch == "residual on" else min
    summary = "; ".join(f"{variant}: {number(each)} times" for variant, each in remaining.items())
    return Measurement(
        pick(factors.values()),
        f"{stack.layers} layers of {stack.width} numbers, weights at random, this text’s first "
        f"{stack.tokens} embeddings. The gradient at the input, of that at the last state: "
        f"{summary}.",
        tuple(
            (
                f"{variant}, layer {layer}",
                number(float(stack.norm[stack.ways.index(variant), layer])),
            )
            for variant in remaining
            for layer in (0, stack.layers // 4, stack.layers // 2, stack.layers)
        ),
    )


def gradient_with(e: ClaimContext) -> Measurement:
    """The same with residual connections: the worse of with LayerNorm and without."""
    return _depth_gradient(e, "residual on")


def gradient_without(e: ClaimContext) -> Measurement:
    """The same without residual connections: the milder of with LayerNorm and without."""
    return _depth_gradient(e, "residual off")


def far_words(e: ClaimContext) -> Measurement:
    """Ratio of the gradient norm at the nearest token to that at the farthest one, in the model
    itself, by a log-linear fit over the distance; the fits from the predictions at several tokens
    are averaged."""
    stream = output_stream(e.recording)
    text = text_places(stream)
    require_count(len(text), "tokens of text, so that near and far differ", NEAR_AND_FAR)
    steps, reach, rows = [], 0, []
    for token in map(int, text[-N_TRIALS:]):
        norms = e.highway(stream.name, token).norm[0, 0]  # the model as it is
        visible = text[(text != token) & (norms[text] > 0)]  # a mask hides the later ones
        means = _by_distance(np.abs(visible - token), norms[visible])
        step = residual.step_factor(means)
        if step is not None:
            steps.append(step)
            reach = max(reach, len(means) - 1)
            rows.append(
                (f"from {stream.tokens[token]} (token {token}): a token", f"× {fixed(step, 3)}")
            )
    require_count(len(steps), "answers that reach tokens at three distances")
    step = float(np.exp(np.mean(np.log(steps))))
    total = float(step ** (1 - reach))
    comparison = (
        f"{number(total)} times weaker" if total >= 1 else f"{number(1 / total)} times stronger"
    )
    return Measurement(
        total,
        "Through the layers, not along the text: the gradient from the answers at the last "
        f"{len(steps)} tokens changes by × {fixed(step, 3)} a token, which makes it "
        f"{comparison} at {reach} tokens than at 1.",
        tuple(rows),
    )


def _by_distance(distance: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean of the values at each distance, (distance), 0 where there is none."""
    sums, counts = np.zeros(distance.max(initial=0) + 1), np.zeros(distance.max(initial=0) + 1)
    np.add.at(sums, distance, values)
    np.add.at(counts, distance, 1)
    return np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)


def recurrent_fades(e: ClaimContext) -> Measurement:
    """By what factor the gradient of an untrained tanh RNN of gain 1 on this text's embeddings
    changes with each token back."""
    stream = e.recording.streams[0]
    require_tokens(stream)
    x = residual.site_vectors(stream, stream.sites[0])
    lengths = {gain: recurrent_gradient(e.draw, x, gain) for gain in GAINS}
    steps = {gain: _mean_step(values) for gain, values in lengths.items()}
    main_gain, other_gain = GAINS
    back = len(x) - 1
    return Measurement(
        steps[main_gain],
        f"{NETWORKS} recurrent networks of width {WIDTH}, their weights at random with a gain of "
        f"{main_gain:g}, read this text’s embeddings. From the last state back over {back} "
        f"tokens the gradient comes to {number(lengths[main_gain][-1])} of itself in the median, "
        f"× {fixed(steps[main_gain], 2)} a token. The gain decides: at {other_gain:g}, with "
        f"the same tanh, it is × {fixed(steps[other_gain], 2)} a token.",
        tuple(
            (
                f"{at} back; at a gain of {other_gain:g}",
                f"{number(lengths[main_gain][at])}; {number(lengths[other_gain][at])}",
            )
            for at in sorted({1, 2, 5, 10, 20, back})
            if at <= back
        ),
    )


def recurrent_gradient(
    draw: Callable[[int, int], np.ndarray], x: np.ndarray, gain: float = 1.0
) -> np.ndarray:
    """The length of a gradient at the last state of untrained tanh networks and at each one before
    it, of that at the last, that one first: the median of NETWORKS; x (token, d_model)."""
    x = x / np.maximum(x.std(axis=1, keepdims=True), 1e-12)
    w = gain * draw(NETWORKS * WIDTH, WIDTH).reshape(NETWORKS, WIDTH, WIDTH) / np.sqrt(WIDTH)
    onto = draw(NETWORKS * WIDTH, x.shape[1]).reshape(NETWORKS, WIDTH, -1) / np.sqrt(x.shape[1])
    return np.median(backpropagate(w, x @ onto.swapaxes(1, 2)), axis=0)


def backpropagate(w: np.ndarray, inward: np.ndarray) -> np.ndarray:
    """The length of a gradient of length 1 at the last state of each tanh network, and at each one
    before it, that one first, (network, token); w (network, width, width), inward (network, token,
    width)."""
    h, states = np.zeros(w.shape[:2]), []
    for inputs in inward.swapaxes(0, 1):
        h = np.tanh((w @ h[..., None])[..., 0] + inputs)
        states.append(h)
    gradient = np.ones_like(h) / np.sqrt(w.shape[-1])
    lengths = [np.ones(len(w))]
    for h in states[:0:-1]:
        gradient = (((1 - h**2) * gradient)[:, None] @ w)[:, 0]
        lengths.append(np.linalg.norm(gradient, axis=-1))
    return np.stack(lengths, axis=1)


def _mean_step(lengths: np.ndarray) -> float:
    """The mean factor a step, up to where the numbers underflow."""
    last_nonzero = [at for at, value in enumerate(lengths) if value > 1e-280][-1]
    return float(lengths[last_nonzero] ** (1 / last_nonzero)) if last_nonzero else 0.0


# Claims about heads: how they are cut, how they differ, how far they look, and what they score.

MAX_RATIO = 1000.0  # beyond this a ratio says no more than "many times"


def concatenated(e: ClaimContext) -> Measurement:
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
    return Measurement(
        error / size,
        "Each head’s z was multiplied by its slice of W_O, and the results were summed, for every "
        "token and layer. The largest difference from the model’s attention output is "
        f"{number(error)}, where numbers reach {number(size)}.",
    )


def reshaped(e: ClaimContext) -> Measurement:
    """The largest difference of the model's heads' products, added up, to the product of the
    vectors before they were cut, of the largest."""
    error, size = 0.0, 0.0
    for attention in attention_with_qkv(e.recording):
        for scores, *layer in zip(
            attention.scores, attention.q, attention.k
        ):  # all at once are very large
            q, k = (one.astype(np.float64) for one in layer)
            whole_q, whole_k = (v.transpose(1, 0, 2).reshape(v.shape[1], -1) for v in (q, k))
            product = whole_q @ whole_k.T
            error = max(error, float(np.abs(_summed_products(scores, q, k) - product).max()))
            size = max(size, float(np.abs(product).max()))
    h, d = e.recording.model.n_head, e.recording.model.d_head
    return Measurement(
        error / size if size else float("nan"),
        f"The vectors of {h * d} numbers were put together again from their {h} pieces of {d}. "
        f"What the model’s {h} heads made of the pieces, their scores with the scale and whatever "
        "was added by distance taken back, adds up to the one long q·k, off by at most "
        f"{number(error)} where it reaches {number(size)}.",
    )


def _summed_products(scores: np.ndarray, q: np.ndarray, k: np.ndarray) -> np.ndarray:
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
    for head_scores, head_q, head_k in zip(scores, q, k):
        head, products = head_scores.astype(np.float64), head_q @ head_k.T
        distance, rest = by_distance(products), head - by_distance(head)
        both += float((rest * (products - distance)).sum())
        square += float((rest**2).sum())
        rests += rest
        distances += distance
    return both / max(square, 1e-300) * rests + distances


def heads_apart(e: ClaimContext) -> Measurement:
    """Mean total variation distance between the rows of two heads of a layer, over all pairs."""
    if e.recording.model.n_head < 2:
        raise Untestable("This model has one head a layer, so there are none to compare.")
    rows: list[tuple[str, str]] = []
    differences: list[float] = []
    for attention in e.recording.attention:
        layer_means = []
        for pattern in attention.pattern[:, :, rows_with_choice(attention)]:
            layer_means.append(
                float(
                    np.mean(
                        [np.abs(a - b).sum(axis=-1).mean() / 2 for a, b in combinations(pattern, 2)]
                    )
                )
            )
        rows += by_layer(f"{attention.name}, ", layer_means)
        differences += layer_means
    value = float(np.mean(differences))
    return Measurement(
        value,
        f"Two heads of one layer place {percent(value)} of their weight on different tokens, in "
        "the mean of all pairs (0: the same pattern; 1: nothing in common).",
        tuple(rows),
    )


def reach(e: ClaimContext) -> Measurement:
    """Ratio of the largest mean attention distance of a head to the smallest, attention sinks and
    special tokens left out."""
    reaches: list[tuple[float, float, str]] = []
    for attention in self_attention(e.recording):
        head_reach, share = head_naming.reach(e.recording, attention)
        require_count(
            int(head_naming.reach_cells(e.recording, attention)[0].sum()),
            "rows with words to choose from",
        )
        reaches += [
            (float(head_reach[at]), float(share[at]), f"layer {at[0]}, head {at[1]}")
            for at in np.ndindex(head_reach.shape)
            if np.isfinite(head_reach[at])
        ]
    if len(reaches) < 2:
        raise Untestable(
            "Fewer than two heads give enough weight to words: the others rest on special tokens, "
            "the first token or a sink."
        )
    near, far = min(reaches), max(reaches)
    exceeds = far[0] > MAX_RATIO * near[0]
    n = sum(
        attention.pattern.shape[0] * attention.pattern.shape[1]
        for attention in self_attention(e.recording)
    )
    return Measurement(
        MAX_RATIO if exceeds else far[0] / near[0],
        "Special tokens, the first token and each head’s own sinks are left out. "
        f"{len(reaches)} of {n} heads have enough weight on other tokens. The smallest mean "
        f"distance is {number(near[0])} tokens ({near[2]}), the largest {number(far[0])} "
        f"({far[2]}).",
        tuple(
            (f"{name}, on {percent(share)} of its weight", f"{number(distance)} tokens")
            for distance, share, name in (far, near)
        ),
        f"over {number(MAX_RATIO)}×" if exceeds else "",
    )


def self_attention_share(e: ClaimContext) -> Measurement:
    """The share of rows, over all heads, whose largest weight is on the token itself."""
    shares: list[float] = []
    rows: list[tuple[str, str]] = []
    for attention in self_attention(e.recording):
        places = rows_with_choice(attention)
        layer_shares = (attention.pattern[:, :, places].argmax(axis=-1) == places).mean(axis=(1, 2))
        rows += by_layer(f"{attention.name}, ", layer_shares)
        shares.append(float(layer_shares.mean()))
    value = float(np.mean(shares))
    return Measurement(
        value,
        f"In {percent(value)} of all rows the largest weight is on the token itself. Learned heads "
        "often attend to the previous token, a separator, or another occurrence of the word.",
        tuple(rows),
    )


def asymmetry(e: ClaimContext) -> Measurement:
    """Asymmetry of the attention scores in the median head, as `soft_lookup.asymmetry` defines
    it."""
    asymmetries, naive = [], 0.0
    attention_with_qkv(e.recording)
    for attention in self_attention(e.recording):
        require_tokens(e.recording.stream(attention.query))
        asymmetries += [
            soft_lookup.asymmetry(s.astype(np.float64)) for layer in attention.scores for s in layer
        ]
        naive = max(naive, soft_lookup.asymmetry(_naive_scores(e, attention)))
    value = float(np.median(asymmetries))
    return Measurement(
        value,
        f"With x·x as the score, “a to b” equals “b to a”: asymmetry {number(naive)} on this "
        f"sentence’s own vectors. With queries and keys apart it is {number(value)} in the median "
        "head; 0 is symmetric, about 0.7 unrelated, 1 opposite.",
        (
            ("naive x·x", number(naive)),
            ("least of all heads", number(min(asymmetries))),
            ("median head", number(value)),
            ("most of all heads", number(max(asymmetries))),
        ),
    )


def _naive_scores(e: ClaimContext, attention: Attention) -> np.ndarray:
    stream = e.recording.stream(attention.query)
    x = stream.at(state_before(stream, 0, "attn")).astype(np.float64)
    return x @ x.T


def naive_self_share(e: ClaimContext) -> Measurement:
    """The share of tokens that x . x makes most like themselves."""
    shares, peaks, learned = [], [], []
    for attention in self_attention(e.recording):
        require_tokens(e.recording.stream(attention.query))
        product = _naive_scores(e, attention)
        places = np.arange(len(product))
        shares.append(float((product.argmax(axis=1) == places).mean()))
        peaks.append(float(softmax(product, np.ones_like(product, dtype=bool)).diagonal().mean()))
        rows = rows_with_choice(attention)
        learned.append(float((attention.pattern[:, :, rows].argmax(axis=-1) == rows).mean()))
    value = float(np.mean(shares))
    return Measurement(
        value,
        f"With x·x as the score, {percent(value)} of the tokens prefer themselves, at a mean "
        f"weight of {fixed(float(np.mean(peaks)), 2)}: attention depends on similarity alone. "
        f"With learned queries and keys it is {percent(float(np.mean(learned)))} of the rows.",
    )


# Claims about what passes from one token to another: the mask, messages, the feed-forward
# network, cross-attention, reading step by step.

SMALLEST_WEIGHT = 2.0**-24  # a weight below this adds less to a sum than a 32-bit number can show


# ---- the mask ----


def later_weight(e: ClaimContext) -> Measurement:
    """The largest weight on a later token under a causal mask."""
    attention, stream = causal_attention(e.recording)
    require_tokens(stream)
    n = len(stream.tokens)
    later = np.triu(np.ones((n, n), dtype=bool), 1)
    value = float(np.abs(attention.pattern[..., later]).max())
    return Measurement(
        value,
        f"All {int(later.sum()) * attention.pattern.shape[0] * attention.pattern.shape[1]:,} "
        f"weights above the diagonal were checked. The largest is {number(value)}. exp(−∞) "
        "is exactly 0.",
    )


def future_change(e: ClaimContext) -> Measurement:
    """The largest change of any earlier token's vector, at any place, when a later token is another
    one."""
    _, stream = causal_attention(e.recording)
    places = sample_tokens(np.arange(1, len(stream.tokens)))
    two_streams = len(e.recording.streams) > 1
    own_changes, earlier_changes, rows = [], [], []
    for place in places:
        changed = (
            _with_other_word(e, stream, place)
            if two_streams
            else _with_other_vector(e, stream, place)
        )
        moved = np.abs(stream.resid - changed.resid).max(axis=(0, 2))
        del changed  # each holds a whole pass: one at a time
        if moved[place] > 0:
            own_changes.append(float(moved[place]))
            earlier_changes.append(float(moved[:place].max()))
            rows.append((f"{stream.tokens[place]} (token {place})", number(earlier_changes[-1])))
    if not own_changes:
        raise Untestable("No token could be replaced.")
    return Measurement(
        max(earlier_changes),
        f"{len(own_changes)} tokens were replaced, one at a time. Their own vectors "
        f"changed by up to {number(max(own_changes))}, those of the tokens before them by "
        f"{number(max(earlier_changes))}.",
        tuple(rows),
    )


def _with_other_vector(e: ClaimContext, stream: Stream, place: int) -> Stream:
    edit = patch_edit(filler_text(stream, place), input_site(stream), place)
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


def both_sides(e: ClaimContext) -> Measurement:
    """The share of an encoder's tokens before an exchanged one whose last vectors change: the
    mask's law the other way round."""
    attention = next(
        (candidate for candidate in e.recording.attention if candidate.query == "encoder"), None
    )
    if attention is None or attention.key != "encoder":
        raise Untestable("This model has no encoder.")
    stream = e.recording.stream("encoder")
    n_changed, n_earlier, rows = 0, 0, []
    for place in sample_tokens(np.arange(1, len(stream.tokens))):
        moved = np.abs(stream.resid[-1] - _with_other_vector(e, stream, place).resid[-1]).max(
            axis=1
        )
        if moved[place] > 0:
            n_changed, n_earlier = n_changed + int((moved[:place] > 0).sum()), n_earlier + place
            rows.append(
                (
                    f"{stream.tokens[place]} (token {place}): earlier tokens that change",
                    f"{int((moved[:place] > 0).sum())} of {place}",
                )
            )
    if not n_earlier:
        raise Untestable("No token could be replaced.")
    later = np.triu(np.ones(attention.allowed.shape, dtype=np.float32), 1)
    share = float((attention.pattern * later).sum() / attention.pattern[..., 0].size)
    return Measurement(
        n_changed / n_earlier,
        f"{len(rows)} tokens were replaced, one at a time: {n_changed} of the {n_earlier} "
        "vectors "
        f"before them change. On this text {percent(share)} of all weight rests on later tokens.",
        tuple(rows),
    )


# ---- what passes ----


def messages(e: ClaimContext) -> Measurement:
    """The share of tokens that hear of a change of one token in layer 0's attention just where an
    edge of the graph is, over several tokens exchanged. Edges whose weight is lost in rounding say
    nothing and do not count. Raises Untestable where most are."""
    attention = self_attention(e.recording)[0]
    stream = e.recording.stream(attention.query)
    state_before(stream, 0, "attn")
    n_agreeing, n_counted, n_lost, n_edges, faintest, rows = 0, 0, 0, 0, 0.0, []
    for place in sample_tokens(text_places(stream)):
        edit = patch_edit(filler_text(stream, place), input_site(stream), place)
        changed = e.again(edit, "", None)
        there = changed.stream(stream.name).at("0.attn.wrote")
        moved = np.abs(stream.at("0.attn.wrote") - there).max(axis=1) > 0
        edges = attention.allowed[:, place]
        weight = np.max(
            [
                self_attention(each)[0].pattern[0, :, :, place].max(axis=0)
                for each in (e.recording, changed)
            ],
            axis=0,
        )
        del changed, there  # each holds a whole pass: one at a time
        silent = edges & ~moved & (weight < SMALLEST_WEIGHT)
        faintest = max(faintest, float(weight[silent].max(initial=0)))
        n_lost, n_edges = n_lost + int(silent.sum()), n_edges + int(edges.sum())
        n_agreeing += int((moved == edges)[~silent].sum())
        n_counted += int((~silent).sum())
        rows.append(
            (
                f"{stream.tokens[place]} (token {place}): edges; of these changed; changed without",
                f"{int(edges.sum())}; {int((moved & edges).sum())}; {int((moved & ~edges).sum())}",
            )
        )
    if 2 * n_lost > n_edges:
        raise Untestable(
            f"Layer 0’s attention is so sharp here that at {n_lost} of {n_edges} edges its "
            f"weight is below rounding (at most {number(faintest)}), so the test cannot decide."
        )
    note = (
        f" At {n_lost} edges the weight is below 32-bit rounding, so they are left out."
        if n_lost
        else ""
    )
    return Measurement(
        n_agreeing / n_counted,
        f"{len(rows)} tokens were replaced before layer 0, one at a time. In {n_agreeing} of "
        f"{n_counted} cases the attention output at a token changed exactly if it has an edge to "
        f"the replaced one.{note}",
        tuple(rows),
    )


def ffn_isolation(e: ClaimContext) -> Measurement:
    """The largest change of what the FFN writes at any other token, when one token's vector before
    it is another; several are tried."""
    stream = e.recording.streams[0]
    site = state_before(stream, 0, "ffn")
    own_changes, other_changes, rows = [], [], []
    for place in sample_tokens(text_places(stream)):
        changed = e.again(patch_edit(filler_text(stream, place), site, place), "", None)
        moved = np.abs(stream.at("0.ffn.wrote") - changed.stream(stream.name).at("0.ffn.wrote"))
        del changed  # each holds a whole pass: one at a time
        moved = moved.max(axis=1)
        if moved[place] > 0:
            own_changes.append(float(moved[place]))
            other_changes.append(float(np.delete(moved, place).max()))
            rows.append((f"{stream.tokens[place]} (token {place})", number(other_changes[-1])))
    if not own_changes:
        raise Untestable("No token’s vector could be replaced.")
    return Measurement(
        max(other_changes),
        f"The vectors of {len(own_changes)} tokens were replaced just before the FFN of layer 0, "
        f"one at a time. The FFN output changed there by up to {number(max(own_changes))} "
        f"and at the other {len(stream.tokens) - 1} tokens by {number(max(other_changes))}.",
        tuple(rows),
    )


def cross_keys(e: ClaimContext) -> Measurement:
    """The largest change of any cross-attention key or value when the decoder reads something else:
    several other texts, one after another."""
    cross = next((each for each in e.recording.attention if each.query != each.key), None)
    if cross is None:
        raise Untestable("This model has one stream, so it has no cross-attention.")
    attention_with_qkv(e.recording)
    key_changes, query_changes, rows = [], [], []
    for ids in _other_targets(e.recording.stream(cross.key), e.recording.stream(cross.query)):
        other = next(each for each in e.again("", "", ids).attention if each.name == cross.name)
        pairs = (cross.k, other.k), (cross.v, other.v)
        key_changes.append(max(float(np.abs(a - b).max()) for a, b in pairs))
        n = min(cross.q.shape[2], other.q.shape[2])
        query_changes.append(float(np.abs(cross.q[:, :, :n] - other.q[:, :, :n]).max()))
        del other, pairs  # each holds a whole pass: one at a time
        rows.append(
            (
                f"another text of {plural(len(ids), 'token')}: keys and values; queries",
                f"{number(key_changes[-1])}; {number(query_changes[-1])}",
            )
        )
    n_source = cross.k.shape[2]
    return Measurement(
        max(key_changes),
        f"The decoder read {len(rows)} other texts, one at a time. The {n_source} keys and values "
        f"changed by at most {number(max(key_changes))}. The queries, which come from the decoder, "
        f"changed by up to {number(max(query_changes))}.",
        (*rows, ("queries × keys", f"{cross.q.shape[2]} × {n_source}")),
    )


def _other_targets(source: Stream, target: Stream) -> list[tuple[int, ...]]:
    """N_TRIALS texts for a decoder to read, made of a source's tokens, none of them what it reads
    now."""
    ids = tuple(int(id) for id in subsample(source.ids[text_places(source)], 8))
    texts = dict.fromkeys((ids[::-1], ids, ids[1:], ids[::2], ids[:1], ids * 2))
    others = [each for each in texts if each != tuple(map(int, target.ids[1:]))]
    require_count(len(others), "other texts to try", N_TRIALS)
    return others[:N_TRIALS]


def offset(e: ClaimContext) -> Measurement:
    """Logit of the next token minus that of the token just read, in nats, mean of a decoder's
    rows."""
    _, stream = causal_attention(e.recording)
    ids = stream.ids
    places = subsample(np.flatnonzero(ids[:-1] != ids[1:]), 32)
    require_count(len(places), "rows whose next token is another than the one they read")
    gains = []
    for place in places:
        scores = e.logits(stream.name, int(place)).astype(np.float64)
        gains.append(scores[ids[place + 1]] - scores[ids[place]])
    value = float(np.mean(gains))
    higher = int((np.array(gains) > 0).sum())
    return Measurement(
        value,
        "Row by row, the score of the token that comes next was compared with that of the token "
        f"just read: it is {'higher' if value > 0 else 'lower'} by {number(abs(value))} nats in "
        f"the mean, and higher in {higher} of the {len(places)} rows. The text begins with "
        f"{stream.tokens[0]}, so that the first word has a row too.",
    )


def steps_agree(e: ClaimContext) -> Measurement:
    """The largest difference of any score between one pass over the text and one pass a token, of
    the largest score."""
    _, stream = causal_attention(e.recording)
    require_tokens(stream)
    n = min(len(stream.tokens), 32)
    stepwise_scores = np.stack(e.stepwise(n))
    parallel_scores = np.stack(
        [e.logits(output_stream(e.recording).name, place) for place in range(n)]
    )
    error, size = (
        float(np.abs(stepwise_scores - parallel_scores).max()),
        float(np.abs(parallel_scores).max()),
    )
    return Measurement(
        error / size,
        f"The first {n} tokens were read at once, and one at a time with a KV cache: "
        f"the {parallel_scores.size:,} scores differ by at most {number(error)}, where they reach "
        f"{number(size)}.",
    )


# Claims about word order: the sinusoids and their laws, what is added to a sentence, and who
# knows in which order the words came.

MOST_SHUFFLES = 16  # drawn, to find N_TRIALS that move a token


def _encoding(e: ClaimContext) -> tuple[np.ndarray, Stream]:
    """Positional encoding that the model adds, (position, d_model), and the stream it is added to:
    the longest one. Raises Untestable where none is added and where d_model is odd."""
    stream = max(e.recording.streams, key=lambda each: len(each.tokens))
    if "pos.wrote" not in stream.sites:
        raise Untestable("Nothing is added to this model’s embeddings for the positions.")
    encoding = stream.at("pos.wrote").astype(np.float64)
    if encoding.shape[1] % 2:
        raise Untestable(f"Sines and cosines come in pairs, and d_model is {encoding.shape[1]}.")
    return encoding, stream


def _table_name(stream: Stream) -> str:
    error = positions.formula_error(stream)
    return (
        "the paper’s sinusoids"
        if error <= positions.FORMULA_TOLERANCE
        else "a table other than the paper’s formula"
    )


def by_distance(e: ClaimContext) -> Measurement:
    """The largest difference of two products at the same distance, of the largest product."""
    encoding, stream = _encoding(e)
    require_tokens(stream)
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
    return Measurement(
        value,
        f"All {n * (n + 1) // 2:,} products of this text’s {n} positions; the model adds "
        f"{_table_name(stream)}. Products at one distance differ by at most {number(spread)}.",
        rows,
    )


def both_ways(e: ClaimContext) -> Measurement:
    """The largest |p_i . p_(i+k) - p_i . p_(i-k)|, of the largest product."""
    encoding, stream = _encoding(e)
    require_tokens(stream)
    gram = encoding @ encoding.T
    n = len(gram)
    worst = max(
        abs(float(gram[i, i + k] - gram[i, i - k]))
        for i in range(1, n - 1)
        for k in range(1, min(i, n - 1 - i) + 1)
    )
    return Measurement(
        worst / float(np.abs(gram).max()),
        "From each position as far to the right as to the left: the two products differ by at "
        f"most {number(worst)}. "
        + (
            "So the product gives the distance but not the direction; W_Q and W_K must learn "
            "the direction."
            if worst < 1e-4 * np.abs(gram).max()
            else "So this table distinguishes left from right."
        ),
    )


def low_is_fast(e: ClaimContext) -> Measurement:
    """The share of neighbouring pairs of dimensions of which the lower one turns faster."""
    encoding, stream = _encoding(e)
    require_tokens(stream)
    pairs = encoding.reshape(len(encoding), -1, 2)
    if pairs.shape[1] < 2:
        raise Untestable("There is one pair of dimensions only.")
    angles = degrees(pairs[:-1], pairs[1:]).mean(axis=0)
    if not np.isfinite(angles).all():
        raise Untestable(
            "Some pairs of this table’s dimensions are 0 at a position, and have no angle there."
        )
    value = float((np.diff(angles) < 0).mean())
    sampled = [0, len(angles) // 4, len(angles) // 2, len(angles) - 1]
    return Measurement(
        value,
        f"From one position to the next, dimensions 0 and 1 rotate by {number(float(angles[0]))}°, "
        f"the last two by {number(float(angles[-1]))}°.",
        tuple(
            (f"dimensions {2 * i} and {2 * i + 1}: degrees a position", number(float(angles[i])))
            for i in sampled
        ),
    )


def even_is_sine(e: ClaimContext) -> Measurement:
    """The largest difference of the model's encoding to the formula with the sine in the even
    dimensions."""
    encoding, _ = _encoding(e)
    n, d = encoding.shape
    table = positions.table(n, d)
    swapped = table.reshape(n, -1, 2)[..., ::-1].reshape(n, d)
    error, swapped_error = (
        float(np.abs(encoding - table).max()),
        float(np.abs(encoding - swapped).max()),
    )
    explanation = (
        "Position 0 is (0, 1, 0, 1, …): sines of 0 in the even places."
        if error <= positions.FORMULA_TOLERANCE
        else f"What this model adds is not the formula’s table: it is off by up to {number(error)}."
    )
    return Measurement(
        error,
        f"{explanation} With sine and cosine the other way round the table would be off by "
        f"{number(swapped_error)}.",
        (
            ("sine in even dimensions: off by", number(error)),
            ("cosine in even dimensions: off by", number(swapped_error)),
        ),
    )


def shift_turns(e: ClaimContext) -> Measurement:
    """The largest difference of an encoding turned by one position and the next position's
    encoding."""
    encoding, stream = _encoding(e)
    require_tokens(stream)
    n = len(encoding)
    errors = {
        shift: float(
            np.abs(
                positions.rotate_positions(encoding, shift)[: n - shift] - encoding[shift:]
            ).max()
        )
        for shift in sorted({1, min(5, n - 1), n - 1})
    }
    worst = max(errors.values())
    explanation = (
        "One matrix of rotations for each shift, the same at every position, takes each of the "
        f"{n} encodings to the one further on"
        if worst < 1e-3
        else (
            f"The formula’s rotations do not take these {n} encodings to the ones further on; the "
            f"model adds {_table_name(stream)}"
        )
    )
    return Measurement(
        worst,
        f"{explanation}: off by at most {number(worst)}.",
        tuple((f"shift by {shift}: off by", number(error)) for shift, error in errors.items()),
    )


def start(e: ClaimContext) -> Measurement:
    """The largest difference of the first state and sqrt(d) times the word's embedding plus the
    position's; or of that factor, if larger."""
    _encoding(e)
    scale = embedding_factor(e)
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
    scale_error = abs(scale / np.sqrt(d) - 1)
    return Measurement(
        max(error / size, scale_error),
        "The readout uses the same E, which shows by what it is multiplied on its way in: "
        f"{scale:.4g}; √{d} is {np.sqrt(d):.4g}. That times each token’s row of E, plus its "
        f"position’s encoding, is what enters layer 0: off by at most {number(error)}, where "
        f"numbers reach {number(size)}.",
        (
            ("factor before E", f"{scale:.4g}"),
            (f"√{d}", f"{np.sqrt(d):.4g}"),
            ("off, in the first state", number(error)),
        ),
    )


def balance(e: ClaimContext) -> Measurement:
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
    return Measurement(
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
class _ShuffleEffect:
    """Effect of token shuffles on the last vectors of a stream, one entry for each shuffle. gaps:
    the mean distance of the tokens that moved from the same tokens in order, as a share of their
    norm; tokens: the number of tokens that moved."""

    gaps: tuple[float, ...]
    tokens: tuple[int, ...]

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (f"shuffle {at}: {n} tokens elsewhere, vectors apart by", number(gap))
            for at, (gap, n) in enumerate(zip(self.gaps, self.tokens), 1)
        )


def _shuffle_effect(e: ClaimContext, stream: str, base: str = "") -> _ShuffleEffect:
    """Effect of several token shuffles, every pass under the edits `base`. Raises Untestable where
    there is no other order, TooShort where fewer shuffles than N_TRIALS move a token."""
    first = e.recording.streams[0]
    if len(set(map(int, first.ids[~first.special]))) < 2:
        raise Untestable("All tokens of this text are the same, so there is no other order.")
    baseline = _last_state(
        e.again(base, "", None).stream(stream) if base else e.recording.stream(stream)
    )
    length = np.linalg.norm(baseline.resid[-1].astype(np.float64), axis=1)
    effects: dict[tuple[int, ...], tuple[float, int]] = {}
    for seed in range(1, MOST_SHUFFLES + 1):
        edits = ",".join(filter(None, (base, f"ShuffleTokens:{seed}")))
        shuffled = _last_state(e.again(edits, "", None).stream(stream))
        pairs = positions.match_tokens(baseline, shuffled, same_text=True)
        moved = pairs.here != pairs.there
        if moved.any():
            distances = np.linalg.norm(
                baseline.resid[-1][pairs.here].astype(np.float64) - shuffled.resid[-1][pairs.there],
                axis=1,
            )
            gap = float(distances[moved].mean() / length[pairs.here].mean())
            effects[tuple(map(int, pairs.there))] = gap, int(moved.sum())
        if len(effects) == N_TRIALS:
            break
    require_count(len(effects), "shuffles that move tokens", N_TRIALS)
    gaps, tokens = zip(*effects.values())
    return _ShuffleEffect(gaps, tokens)


def _last_state(stream: Stream) -> Stream:
    """A stream with its last vectors alone: they do not keep the pass they came from in memory."""
    return replace(stream, sites=stream.sites[-1:], resid=stream.resid[-1:].copy())


def without_positions(e: ClaimContext) -> Measurement:
    """Largest effect of several token shuffles on the last vectors, without positions and mask. It
    is the distance between a token's vectors in both orders, as a share of their norm."""
    stream = e.recording.streams[0].name
    effect = _shuffle_effect(e, stream, "WithoutPositions" + ",WithoutMask" * (stream == "decoder"))
    unmasked = ", and without the mask," if stream == "decoder" else ""
    return Measurement(
        max(effect.gaps),
        f"The text’s tokens were read in {len(effect.gaps)} other orders without "
        f"positions{unmasked} and {min(effect.tokens)} to {max(effect.tokens)} of them had another "
        f"position. Each kept its vector, with differences of at most {number(max(effect.gaps))} "
        "of the norm.",
        effect.rows,
    )


def _has_no_positions(e: ClaimContext) -> bool:
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


def with_positions(e: ClaimContext) -> Measurement:
    """Smallest effect of several token shuffles on the last vectors, the model as it is: the
    distance between a token's vectors in both orders, as a share of their norm."""
    if _has_no_positions(e):
        raise Untestable("This model has no positions.")
    effect = _shuffle_effect(e, e.recording.streams[0].name)
    return Measurement(
        min(effect.gaps),
        f"{len(effect.gaps)} shuffles with positions: the last vectors of the tokens that moved "
        f"differ by at least {percent(min(effect.gaps))} of their norm, and at most "
        f"{percent(max(effect.gaps))}.",
        effect.rows,
    )


def mask_tells(e: ClaimContext) -> Measurement:
    """Smallest effect of several token shuffles on a decoder's last vectors, without positions but
    with its mask, as a share of their norm."""
    if len(e.recording.streams) > 1:
        raise Untestable(
            "A translator’s target is written word by word, so its order is not shuffled here."
        )
    effect = _shuffle_effect(e, causal_attention(e.recording)[1].name, "WithoutPositions")
    return Measurement(
        min(effect.gaps),
        f"{len(effect.gaps)} shuffles without positions, but under the causal mask: the last "
        f"vectors of the moved tokens differ by {percent(min(effect.gaps))} of their length at "
        "least. Which tokens one may see already depends on the order; only attention without a "
        "mask is blind to it.",
        effect.rows,
    )


def no_blow_up(e: ClaimContext) -> Measurement:
    """Ratio of the length of the last vectors without LayerNorm or RMSNorm to that with it."""
    stream = e.recording.streams[0]
    if not any(site.endswith((".normed", ".read")) for site in stream.sites):
        raise Untestable("This model has no norm.")
    without_norms = e.again("WithoutNorm", "", None).stream(stream.name)
    length_with, length_without = (
        _length(each, each.sites[-1]) for each in (stream, without_norms)
    )
    rows = by_layer(
        "without norms, after ",
        [
            _length(without_norms, total)
            for _, wrote, total in without_norms.writes()
            if wrote.endswith("ffn.wrote")
        ],
    )
    comparison = "None was trained without it here to compare with."
    if norm_free := e.bare():
        norm_free_stream = norm_free.stream(stream.name)
        start, end = (
            _length(norm_free_stream, norm_free_stream.sites[0]),
            _length(norm_free_stream, norm_free_stream.sites[-1]),
        )
        comparison = (
            f"{norm_free.model.name}, which learned without norms, keeps them at "
            f"{number(end)}, {number(end / start)} times the length they begin with: training "
            "finds weights to suit."
        )
        rows = (*rows, (f"{norm_free.model.name}, the last vectors", number(end)))
    return Measurement(
        length_without / length_with,
        "The norms were removed from a model that was trained with them. The mean norm of the last "
        f"vectors is {number(length_with)}. With the same weights and without norms it is "
        f"{number(length_without)}. {comparison}",
        rows,
    )


def _length(stream: Stream, site: str) -> float:
    return float(np.linalg.norm(stream.at(site).astype(np.float64), axis=1).mean())


# Claims about the softmax and the scale.

TEMPERATURES = (1.0, 0.5, 0.1, 0.01)
ROUNDING = 1e-5  # a row's sum off 1 by no more than this is 1, in 32-bit numbers
# MOST = 1000.0  # beyond this a ratio says no more than "many times"


# ---- softmax ----


def rows_sum(e: ClaimContext) -> Measurement:
    """The largest |sum over keys - 1| of any row."""
    errors = {
        each.name: float(np.abs(each.pattern.sum(axis=-1, dtype=np.float64) - 1).max())
        for each in e.recording.attention
    }
    n = sum(int(np.prod(each.pattern.shape[:3])) for each in e.recording.attention)
    return Measurement(
        max(errors.values()),
        f"All {n:,} rows of weights were added up; the one furthest from 1 is off by "
        f"{number(max(errors.values()))}.",
        tuple((name, number(value)) for name, value in errors.items()),
    )


def summed_axis(e: ClaimContext) -> Measurement:
    """By how much the sums over queries are away from 1, in the mean; 0 where the sums over keys
    are not 1 either."""
    deviations, row_error = [], 0.0
    for attention in self_attention(e.recording):
        require_tokens(e.recording.stream(attention.query))
        deviations.append(np.abs(attention.pattern.sum(axis=-2, dtype=np.float64) - 1).mean())
        row_error = max(
            row_error, float(np.abs(attention.pattern.sum(axis=-1, dtype=np.float64) - 1).max())
        )
    if row_error > ROUNDING:
        return Measurement(
            0.0,
            f"The sums over keys are not 1 either, but differ by up to {number(row_error)}.",
        )
    value = float(np.mean(deviations))
    return Measurement(
        value,
        f"Every sum over keys is 1 (within {number(row_error)}). The sums over queries differ from "
        f"1 by {number(value)} on average, because a token can receive much or no attention.",
    )


def convex(e: ClaimContext) -> Measurement:
    """Largest violation of convexity: an output outside the range of the values that it is made of,
    a weight below 0, or a row sum off 1."""
    overshoot, smallest, sum_error = 0.0, np.inf, 0.0
    for attention in attention_with_qkv(e.recording):
        last = (
            attention.allowed.sum(axis=1) - 1
        )  # what is allowed is always a beginning of the keys
        for layer in zip(attention.pattern, attention.v):
            weights, v = (one.astype(np.float64) for one in layer)
            z = weights @ v
            low, high = (ufunc.accumulate(v, axis=1)[:, last] for ufunc in (np.minimum, np.maximum))
            overshoot = max(overshoot, float(np.maximum(low - z, z - high).max()))
            smallest = min(smallest, float(weights.min()))
            sum_error = max(sum_error, float(np.abs(weights.sum(axis=-1) - 1).max()))
    value = max(0.0, overshoot, -smallest, sum_error)
    return Measurement(
        value,
        "Every output z lies between the smallest and the largest of the values it may use, "
        "dimension by dimension."
        if value < 1e-4
        else "Some output lies outside what its values span, or some weight is below 0.",
        (
            ("largest distance outside the values’ range", number(max(overshoot, 0.0))),
            ("smallest weight", number(smallest)),
            ("largest difference of a row sum from 1", number(sum_error)),
        ),
    )


def soft_to_hard(e: ClaimContext) -> Measurement:
    """Distance of z from the value of the best key at a temperature of 0.01, as a share of that at
    temperature 1, as the model runs."""
    distances: dict[float, list[float]] = {t: [] for t in TEMPERATURES}
    peak = []
    for attention in attention_with_qkv(e.recording):
        rows = rows_with_choice(attention)
        allowed = attention.allowed[rows]
        for scores, v in zip(attention.scores[:, :, rows], attention.v.astype(np.float64)):
            best = np.where(allowed, scores, -np.inf).argmax(axis=-1)
            hard = np.take_along_axis(v, best[..., None], axis=1)
            size = np.linalg.norm(v, axis=-1).mean()
            for t in TEMPERATURES:
                weights = softmax(scores / t, allowed)
                distances[t].append((np.linalg.norm(weights @ v - hard, axis=-1) / size).mean())
                if t == 1:
                    peak.append(weights.max(axis=-1).mean())
    means = {t: float(np.mean(values)) for t, values in distances.items()}
    value = means[TEMPERATURES[-1]] / means[1.0] if means[1.0] > 0 else float("nan")
    return Measurement(
        value,
        f"At T = 1, the best key gets {percent(np.mean(peak))} of the weight on average. "
        "Dividing the scores by a smaller and smaller temperature, the output comes to the best "
        "key’s value alone.",
        tuple(
            (f"distance to the hard lookup at temperature {t:g}", number(means[t]))
            for t in TEMPERATURES
        ),
    )


# ---- the scale ----


def random_products(e: ClaimContext) -> Measurement:
    """By how much Var(q . k) of random vectors is off d, relatively, at the worst of many
    widths."""
    statistics = soft_lookup.random_variance(e.draw)
    widest = statistics.widths[-1]
    return Measurement(
        float(np.abs(statistics.variance / np.array(statistics.widths) - 1).max()),
        f"{soft_lookup.PAIRS:,} pairs of random vectors at each of {len(statistics.widths)} "
        f"widths, without text and weights. At width {widest} Var(q·k) is "
        f"{number(float(statistics.variance[-1]))}, and the largest of {soft_lookup.KEYS} weights "
        f"{fixed(statistics.raw[-1], 2)} on average. After division by √{widest} they are "
        f"{number(float(statistics.variance[-1] / widest))} and {fixed(statistics.scaled[-1], 2)}.",
        tuple(
            (
                f"Var(q·k) at width {width}, and after the scale",
                f"{number(float(variance))} → {number(float(variance / width))}",
            )
            for width, variance in zip(statistics.widths, statistics.variance)
        ),
    )


def own_products(e: ClaimContext) -> Measurement:
    """By what factor the variance of the model's own q . k is off d_k sigma_q^2 sigma_k^2, the
    median of its heads."""
    ratios, spread = [], []
    for each in attention_with_qkv(e.recording):
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
    return Measurement(
        factor(ratio),
        f"In the median head Var(q·k) is {number(ratio)} times dₖ σ²(q) σ²(k): its products vary "
        f"{more} than those of independent draws, which would give 1.",
        tuple(
            row
            for each, values in zip(e.recording.attention, spread)
            for row in by_layer(f"spread of the model’s scores, {each.name} ", values)
        ),
    )


def head_width(e: ClaimContext) -> Measurement:
    """The largest |score - q . k / sqrt(d_head)|, of the largest score."""
    error, full_width_error, largest = 0.0, 0.0, 0.0
    for attention in attention_with_qkv(e.recording):
        for scores, q, k in zip(attention.scores, attention.q, attention.k):
            products = q @ k.swapaxes(-1, -2)
            error = max(error, float(np.abs(scores - products / np.sqrt(q.shape[-1])).max()))
            full_width_error = max(
                full_width_error,
                float(np.abs(scores - products / np.sqrt(e.recording.model.d_model)).max()),
            )
            largest = max(largest, float(np.abs(scores).max()))
    d, d_k = e.recording.model.d_model, e.recording.model.d_head
    comparison = (
        "it gives the model’s scores"
        if error <= 1e-4 * largest
        else f"it is off the model’s scores by up to {number(error)}"
    )
    return Measurement(
        error / largest if largest else float("nan"),
        f"q·k was worked out again from the recorded vectors. Divided by √{d_k} {comparison}; "
        f"divided by √{d} it would be off by up to {number(full_width_error)}.",
        (
            (f"off, dividing by √{d_k} (one head’s width)", number(error)),
            (f"off, dividing by √{d} (the whole width)", number(full_width_error)),
            ("largest score", number(largest)),
        ),
    )


def saturation(e: ClaimContext) -> Measurement:
    """Ratio of the mean softmax derivative with the scale 1/√d_head to that without it."""
    with_scale: list[float] = []
    without_scale: list[float] = []
    for attention in attention_with_qkv(e.recording):
        rows = rows_with_choice(attention)
        for q, k in zip(attention.q[:, :, rows], attention.k):
            raw = q @ k.swapaxes(-1, -2)
            for values, divisor in ((with_scale, np.sqrt(q.shape[-1])), (without_scale, 1.0)):
                values.append(
                    1 - (softmax(raw / divisor, attention.allowed[rows]) ** 2).sum(axis=-1).mean()
                )
    a, b = float(np.mean(with_scale)), float(np.mean(without_scale))
    return Measurement(
        a / b if b else np.inf,
        f"Σ a(1 − a) over a row measures the softmax gradient. It is {number(a)} with "
        f"the scale and {number(b)} with raw q·k.",
        (("with the scale", number(a)), ("without", number(b))),
    )


# Claims about words: where the last vector lies among the vocabulary's, what the layers before it
# say, and what context changes.

FEWEST_WORDS = 500  # of a vocabulary, of which a hundredth is then more than a few
MOST_TOKENS, MOST_WORDS, TOP = 8, 6, 5
CONTINUATION = "‧"  # what a token's label begins with where it goes on inside a word


def _output_places(e: ClaimContext) -> tuple[Stream, np.ndarray]:
    stream = output_stream(e.recording)
    return stream, subsample(text_rows(stream), MOST_TOKENS)


def near_words(e: ClaimContext) -> Measurement:
    """The share of the vocabulary that is further (by angle) from the last vector than its five
    likeliest words, in the mean."""
    stream, places = _output_places(e)
    words = _unit(e.embeddings())
    shares, cosines = [], []
    for place in places:
        likely = np.argsort(-e.logits(stream.name, int(place)), kind="stable")[:TOP]
        cosine = words @ _unit(stream.resid[-1, place])
        shares += [float((cosine < cosine[id]).mean()) for id in likely]
        cosines += [float(cosine[likely[0]])]
    value = float(np.mean(shares))
    return Measurement(
        value,
        f"At {len(places)} tokens, the five most probable words are more similar to the last "
        f"vector than {percent(value)} of the {len(words):,} words. The mean cosine of the most "
        f"probable word is {fixed(float(np.mean(cosines)), 2)}.",
        (
            ("cosine to the most probable word, mean", fixed(float(np.mean(cosines)), 2)),
            ("largest", fixed(max(cosines), 2)),
        ),
    )


def distance_tells(e: ClaimContext) -> Measurement:
    """The rank correlation over the vocabulary of a word's nearness to the last vector and its
    probability, in the mean."""
    stream, places = _output_places(e)
    words = e.embeddings() / embedding_factor(e)  # as the readout has them
    squares = (words**2).sum(axis=1)
    distance_correlations, product_correlations = [], []
    for place in places:
        scores, h = e.logits(stream.name, int(place)), stream.resid[-1, place]
        product = words @ h
        distance_correlations.append(_rank_correlation(2 * product - squares, scores))
        product_correlations.append(_rank_correlation(product, scores))
    value = float(np.mean(distance_correlations))
    return Measurement(
        value,
        "Sorted by distance to the last vector, the rows of the readout are in the order of "
        f"their words’ probability with a rank correlation of {fixed(value, 2)} (1: the same "
        "order). "
        "The readout takes the product h·e and adds a bias, and a product is not a distance "
        "where words are of unlike lengths: sorted by h·e alone it is "
        f"{fixed(float(np.mean(product_correlations)), 2)}.",
        (
            ("by distance |h − e|", fixed(value, 2)),
            ("by product h·e", fixed(float(np.mean(product_correlations)), 2)),
        ),
    )


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-30)


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (np.argsort(np.argsort(v, kind="stable"), kind="stable") for v in (a, b))
    return float(np.corrcoef(a, b)[0, 1])


def block_ranks(e: ClaimContext) -> Measurement:
    """The worst block's median rank of the model's final answer when read off its output, as a
    share of the vocabulary."""
    stream = output_stream(e.recording)
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
    return Measurement(
        value,
        f"The readout, applied to the output of block {first}, gives the final prediction a median "
        f"rank of {np.median(ranks[first]) + 1:.0f} of {n_vocab:,} (baseline: {n_vocab // 2:,}). "
        f"It has rank 1 at {percent(shares[first])} of the tokens."
        + (
            " No word is masked here, so the prediction is mostly the word itself."
            if stream.name == "encoder"
            else ""
        ),
        tuple(
            (
                f"block {layer}: final prediction first; median rank; KL to the end",
                f"{percent(shares[layer])}; {np.median(rank) + 1:.0f}; "
                f"{number(float(lens.kl[blocks[layer], text].mean()))} nats",
            )
            for layer, rank in ranks.items()
        ),
    )


def context_moves(e: ClaimContext) -> Measurement:
    """The mean cosine between a word's last vector in this text and when it stands alone."""
    stream = output_stream(e.recording) if len(e.recording.streams) == 1 else e.recording.streams[0]
    text = text_places(stream)
    if stream.name == "decoder":
        text = text[
            1:
        ]  # the first word of a decoder stands alone here too: it sees nothing before it
    continues = [token.startswith(CONTINUATION) for token in (*stream.tokens[1:], "")]
    words = [
        place
        for place in text
        if len(stream.tokens[place]) > 2 and stream.tokens[place].isalpha() and not continues[place]
    ]
    rows, cosines = [], []
    for place in subsample(np.array(words, dtype=int), MOST_WORDS):
        alone_stream = e.again("", stream.tokens[place], ()).stream(stream.name)
        matches = np.flatnonzero(alone_stream.ids == stream.ids[place])
        if len(matches):
            cosines.append(
                float(
                    residual.cosine(
                        residual.site_vectors(stream, stream.sites[-1])[place],
                        residual.site_vectors(alone_stream, alone_stream.sites[-1])[matches[0]],
                    )
                )
            )
            rows.append((f"{stream.tokens[place]} (token {place})", fixed(cosines[-1], 2)))
    require_count(len(cosines), "words of one token, of letters, with words around them")
    value = float(np.mean(cosines))
    return Measurement(
        value,
        f"Each of {len(cosines)} words was also read alone. It begins with the same embedding, "
        f"and ends at a cosine of {fixed(value, 2)} to what it is in this sentence.",
        tuple(rows),
    )


MEASURES: dict[str, Callable[[ClaimContext], Measurement]] = {
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
    "naive-itself": naive_self_share,
    "asymmetric": asymmetry,
    "messages": messages,
    "alone": ffn_isolation,
    "adds": addition_error,
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
    "readable-blocks": block_ranks,
    "recurrence-fades": recurrent_fades,
    "far-words-count": far_words,
    "order-blind": without_positions,
    "blind-decoder": mask_tells,
    "even-is-sine": even_is_sine,
    "rows-sum": rows_sum,
    "looks-at-itself": self_attention_share,
    "context-moves": context_moves,
    "steps-agree": steps_agree,
    "reshape": reshaped,
    "head-scale": head_width,
    "scale-keeps-soft": saturation,
    "zero-and-one": mean_and_spread,
    "both-sides": both_sides,
    "cross-from-encoder": cross_keys,
}
