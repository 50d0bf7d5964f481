"""Measures of the claims: each is the function of its claim's id in `explorer/text/claims.toml`,
with `_` for `-`. The sentences there name the slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from explorer.analysis import head_naming, positions, residual
from explorer.analysis.consistency import heads_error
from explorer.analysis.formatting import fixed, number, percent, plural
from explorer.analysis.gradients import N_NETWORKS, NETWORK_WIDTH, recurrent_gradient
from explorer.analysis.measure import (
    N_TRIALS,
    Measure,
    MeasureContext,
    Untestable,
    attention_with_qkv,
    by_layer,
    causal_attention,
    embedding_factor,
    factor,
    input_site,
    layers_of,
    output_stream,
    require_count,
    require_shuffle,
    require_tokens,
    rows_with_choice,
    sample_tokens,
    self_attention,
    state_before,
    subsample,
    text_places,
    text_rows,
    with_other_vector,
)
from explorer.analysis.residual import degrees, normalised
from explorer.analysis.soft_lookup import KEYS, PAIRS, asymmetry, random_variance, tempered_softmax
from explorer.analysis.terminology import norm_name, with_article
from explorer.text.templates import sentences
from models.recording import CONTINUES, Attention, Recording, Stream

REASONS = sentences("claims", "untestable")

# Claims about the residual stream: what is added, its norms, the sphere and its rotations.

SMALL_GAIN = 1e-2


def adds(context: MeasureContext) -> Measure:
    """The largest |before + wrote - after|, of the largest component."""
    for stream in context.recording.streams:
        layers_of(stream)
    checks = [residual.residual_error(stream) for stream in context.recording.streams]
    worst, size = max(error for error, _, _ in checks), max(largest for _, _, largest in checks)
    slots = {"n": sum(n for _, n, _ in checks), "error": worst, "size": size}
    return Measure(worst / size, slots=slots)


def _sublayers(context: MeasureContext) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Of each sub-layer its name, and the text's vectors before and after it, (token, d_model)."""
    for stream in context.recording.streams:
        text = text_places(stream)
        side = "" if len(context.recording.streams) == 1 else f"{stream.name}, "
        for sublayer in layers_of(stream):
            before, after = (
                residual.site_vectors(stream, site)[text]
                for site in (sublayer.before, sublayer.after)
            )
            yield f"{side}{sublayer.name}", before, after


def little_work(context: MeasureContext) -> Measure:
    """The mean angle between the vector before a sub-layer and after it, in degrees."""
    angles = {
        name: float(np.nanmean(degrees(before, after)))
        for name, before, after in _sublayers(context)
    }
    return Measure(
        float(np.mean(list(angles.values()))),
        slots={"least": min(angles.values()), "most": max(angles.values())},
        rows=tuple((name, f"{fixed(angle, 1)}°") for name, angle in angles.items()),
    )


def only_rotations(context: MeasureContext) -> Measure:
    """The mean | |after| / |before| - 1 | over the sub-layers: by how much they stretch or
    shrink."""
    stretch, rows = [], []
    for name, before, after in _sublayers(context):
        ratio = np.linalg.norm(after, axis=-1) / np.linalg.norm(before, axis=-1)
        stretch.append(float(np.abs(ratio - 1).mean()))
        angle = fixed(np.nanmean(degrees(before, after)), 1)
        rows.append((name, f"rotated {angle}°, length × {fixed(ratio.mean(), 2)}"))
    last = layers_of(context.recording.streams[-1])[-1]
    variant = "post-LN" if last.after.endswith(".normed") else ""
    return Measure(float(np.mean(stretch)), variant=variant, rows=tuple(rows))


def _norms(
    context: MeasureContext,
) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, float, bool]]]:
    """Every norm of a sub-layer: what it is given and what it gives (token, d_model), and its gain,
    bias, eps and whether it subtracts the mean."""
    has_norm = False
    for stream in context.recording.streams:
        norms = context.norms(stream.name)
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
        raise Untestable(REASONS("no_norm_shown"))


def zero_and_one(context: MeasureContext) -> Measure:
    """The largest of: |mean|, |variance - 1| before gain and bias, and what then differs from what
    the model has after its LayerNorm."""
    mean, variance, error, n = 0.0, 0.0, 0.0, 0
    for norm_input, norm_output, (gain, bias, eps, centred) in _norms(context):
        if not centred:
            raise Untestable(REASONS("rms_norm"))
        normed = normalised(norm_input, eps)
        mean = max(mean, float(np.abs(normed.mean(-1)).max()))
        variance = max(variance, float(np.abs(normed.var(-1) - 1).max()))
        error = max(error, float(np.abs(normed * gain + bias - norm_output).max()))
        n += len(norm_input)
    slots = {"n": n, "mean": mean, "variance": variance, "error": error}
    return Measure(max(mean, variance, error), slots=slots)


def unit_length(context: MeasureContext) -> Measure:
    """By what factor the length of a state after a norm is away from 1, either way, in the mean."""
    norms = list(_norms(context))
    lengths = np.concatenate([np.linalg.norm(norm_output, axis=-1) for _, norm_output, _ in norms])
    name = norm_name(parameters[3] for _, _, parameters in norms)
    d = context.recording.model.d_model
    with np.errstate(divide="ignore"):
        value = float(np.maximum(lengths, 1 / lengths).mean())
    slots = {"norm": with_article(name), "d": d, "root": float(np.sqrt(d))} | _range(lengths)
    return Measure(value, slots=slots, variant=name)


def _range(values: np.ndarray) -> dict[str, object]:
    """Number of values, their mean, the least and the most."""
    return {
        "n": len(values),
        "mean": float(values.mean()),
        "least": float(values.min()),
        "most": float(values.max()),
    }


def sphere(context: MeasureContext) -> Measure:
    """The largest | |u| / sqrt(d) - 1 |, u the state with gain and bias taken back."""
    worst, longest, shortest, all_centred = 0.0, 0.0, np.inf, True
    for norm_input, norm_output, (gain, bias, eps, centred) in _norms(context):
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
    d = context.recording.model.d_model
    slots = {"shortest": shortest, "longest": longest, "d": d, "root": float(np.sqrt(d))}
    return Measure(worst, slots=slots, variant="centred" if all_centred else "RMSNorm")


def vocabulary_sphere(context: MeasureContext) -> Measure:
    """The spread of the lengths of all embeddings, of their mean, beside that of random vectors as
    wide, 1 / sqrt(2 d)."""
    words = context.embeddings()
    parts = np.array_split(words, max(len(words) // 1000, 1))  # all in 64 bits are 100 MB
    lengths = np.concatenate([np.linalg.norm(part.astype(np.float64), axis=-1) for part in parts])
    chance = float(1 / np.sqrt(2 * words.shape[1]))
    spread = float(lengths.std() / lengths.mean())
    slots = {"spread": spread, "chance": chance, "d": words.shape[1]} | _range(lengths)
    return Measure(spread / chance, slots=slots)


# Claims about gradients, along layers and along tokens.

NEAR_AND_FAR = 8  # tokens that a text must have before near and far differ


def identity_plus(context: MeasureContext) -> Measure:
    """The largest entry of |J(x + f) - J(f) - I| of one sub-layer, at several tokens."""
    stream = output_stream(context.recording)
    sublayer = layers_of(stream)[-1]
    if f"{sublayer.site}.read" in stream.sites:
        raise Untestable(REASONS("jacobian_through_norm"))
    jacobians = {
        token: context.jacobian(stream.name, token, sublayer.site)
        for token in sample_tokens(text_places(stream))
    }
    if not all(jacobian.adds for jacobian in jacobians.values()):
        raise Untestable(REASONS("no_residual"))
    singular = {
        token: tuple(map(float, (jacobian.error, jacobian.wrote[-1], jacobian.total[-1])))
        for token, jacobian in jacobians.items()
    }
    errors, weakest_of_f, weakest = zip(*singular.values())
    slots = {
        "n": len(jacobians),
        "where": sublayer.name,
        "d": len(next(iter(jacobians.values())).total),
        "largest": max(float(jacobian.wrote[0]) for jacobian in jacobians.values()),
        "weakest_of_f": min(weakest_of_f),
        "weakest": min(weakest),
    }
    rows = tuple(
        (
            f"{_token(stream, token)}: off by; smallest stretch of f; of x + f",
            "; ".join(map(number, numbers)),
        )
        for token, numbers in singular.items()
    )
    return Measure(max(errors), slots=slots, rows=rows)


def _token(stream: Stream, token: int) -> str:
    """A token as the name of a row."""
    return f"{stream.tokens[token]} (token {token})"


def gradient_with(context: MeasureContext) -> Measure:
    """By what factor the gradient at a deep stack's input is away from that at its end, with
    residual connections: the worse of with LayerNorm and without."""
    return _depth_gradient(context, "residual on", max)


def gradient_without(context: MeasureContext) -> Measure:
    """The same without residual connections: the milder of with LayerNorm and without."""
    return _depth_gradient(context, "residual off", min)


def _depth_gradient(
    context: MeasureContext, switch: str, pick: Callable[[list[float]], float]
) -> Measure:
    stream = context.recording.streams[0]
    require_tokens(stream)
    stack = context.depth(stream.name)
    norms = {way: norm for way, norm in zip(stack.ways, stack.norm) if way.startswith(switch)}
    remaining = {way: float(norm[0] / norm[-1]) for way, norm in norms.items()}
    slots = {
        "layers": stack.layers,
        "width": stack.width,
        "tokens": stack.tokens,
        "each": "; ".join(f"{way}: {number(left)} times" for way, left in remaining.items()),
    }
    rows = tuple(
        (f"{way}, layer {layer}", float(norm[layer]))
        for way, norm in norms.items()
        for layer in (0, stack.layers // 4, stack.layers // 2, stack.layers)
    )
    value = pick([factor(left) if left > 0 else np.inf for left in remaining.values()])
    return Measure(value, slots=slots, rows=rows)


def far_words_count(context: MeasureContext) -> Measure:
    """Ratio of the gradient norm at the nearest token to that at the farthest one, in the model
    itself, by a log-linear fit over the distance; the fits from the predictions at several tokens
    are averaged."""
    stream = output_stream(context.recording)
    text = text_places(stream)
    require_count(len(text), "tokens of text, so that near and far differ", NEAR_AND_FAR)
    steps, reach, rows = [], 0, []
    for token in map(int, text[-N_TRIALS:]):
        norms = context.gradients(stream.name, token).norm[0]
        visible = text[(text != token) & (norms[text] > 0)]  # a mask hides the later ones
        means = _by_distance(np.abs(visible - token), norms[visible])
        step = residual.step_factor(means)
        if step is not None:
            steps.append(step)
            reach = max(reach, len(means) - 1)
            rows.append((f"from {_token(stream, token)}: a token", f"× {fixed(step, 3)}"))
    require_count(len(steps), "answers that reach tokens at three distances")
    step = float(np.exp(np.mean(np.log(steps))))
    total = float(step ** (1 - reach))
    slots = {"n": len(steps), "step": step, "reach": reach, "times": max(total, 1 / total)}
    return Measure(
        total, slots=slots, variant="weaker" if total >= 1 else "stronger", rows=tuple(rows)
    )


def _by_distance(distance: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean of the values at each distance, (distance), 0 where there is none."""
    sums, counts = np.zeros(distance.max(initial=0) + 1), np.zeros(distance.max(initial=0) + 1)
    np.add.at(sums, distance, values)
    np.add.at(counts, distance, 1)
    return np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)


def recurrence_fades(context: MeasureContext) -> Measure:
    """By what factor the gradient of an untrained tanh RNN of gain 1 on this text's embeddings
    changes with each token back."""
    stream = context.recording.streams[0]
    require_tokens(stream)
    x = residual.site_vectors(stream, stream.sites[0])
    lengths, doubled = (recurrent_gradient(context.draw, x, gain) for gain in (1.0, 2.0))
    back = len(x) - 1
    slots = {
        "networks": N_NETWORKS,
        "width": NETWORK_WIDTH,
        "back": back,
        "left": float(lengths[-1]),
        "doubled": _mean_step(doubled),
    }
    rows = tuple(
        (f"{at} back; at a gain of 2", f"{number(lengths[at])}; {number(doubled[at])}")
        for at in sorted({1, 2, 5, 10, 20, back})
        if at <= back
    )
    return Measure(_mean_step(lengths), slots=slots, rows=rows)


def _mean_step(lengths: np.ndarray) -> float:
    """The mean factor a step, up to where the numbers underflow."""
    last_nonzero = [at for at, value in enumerate(lengths) if value > 1e-280][-1]
    return float(lengths[last_nonzero] ** (1 / last_nonzero)) if last_nonzero else 0.0


# Claims about heads: how they are cut, how they differ, how far they look, and what they score.

MAX_RATIO = 1000.0  # beyond this a ratio says no more than "many times"


def concatenate(context: MeasureContext) -> Measure:
    """The largest |sum over heads of z W_O + b - what attention wrote|, of the largest number
    written."""
    outputs = context.outputs()
    error, size = 0.0, 0.0
    for stream in context.recording.streams:
        error = max(error, heads_error(context.recording, stream, outputs))
        for _, wrote, _ in stream.writes():
            if wrote.endswith(("attn.wrote", "cross.wrote")):
                size = max(size, float(np.abs(stream.at(wrote)).max()))
    return Measure(error / size, slots={"error": error, "size": size})


def reshape(context: MeasureContext) -> Measure:
    """The largest difference of the model's heads' products, added up, to the product of the
    vectors before they were cut, of the largest."""
    error, size = 0.0, 0.0
    for attention in attention_with_qkv(context.recording):
        # All layers at once are very large.
        for scores, *layer in zip(attention.scores, attention.q, attention.k):
            q, k = (each.astype(np.float64) for each in layer)
            whole_q, whole_k = (v.transpose(1, 0, 2).reshape(v.shape[1], -1) for v in (q, k))
            product = whole_q @ whole_k.T
            error = max(error, float(np.abs(_summed_products(scores, q, k) - product).max()))
            size = max(size, float(np.abs(product).max()))
    heads, d = context.recording.model.n_head, context.recording.model.d_head
    slots = {"heads": heads, "d": d, "width": heads * d, "error": error, "size": size}
    return Measure(error / size if size else float("nan"), slots=slots)


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


def heads_differ(context: MeasureContext) -> Measure:
    """Mean total variation distance between the rows of two heads of a layer, over all pairs."""
    if context.recording.model.n_head < 2:
        raise Untestable(REASONS("one_head"))
    rows: list[tuple[str, object]] = []
    differences: list[float] = []
    for attention in context.recording.attention:
        places = rows_with_choice(attention)
        layer_means = [
            float(
                np.mean(
                    [np.abs(a - b).sum(axis=-1).mean() / 2 for a, b in combinations(pattern, 2)]
                )
            )
            for pattern in attention.pattern[:, :, places]
        ]
        rows += by_layer(f"{attention.name}, ", layer_means)
        differences += layer_means
    return Measure(float(np.mean(differences)), rows=tuple(rows))


def near_and_far(context: MeasureContext) -> Measure:
    """Ratio of the largest mean attention distance of a head to the smallest, attention sinks and
    special tokens left out."""
    reaches: list[tuple[float, float, str]] = []
    n = 0
    for attention in self_attention(context.recording):
        head_reach, share = head_naming.reach(context.recording, attention)
        require_count(
            int(head_naming.reach_cells(context.recording, attention)[0].sum()),
            "rows with words to choose from",
        )
        n += head_reach.size
        reaches += [
            (float(head_reach[at]), float(share[at]), f"layer {at[0]}, head {at[1]}")
            for at in np.ndindex(head_reach.shape)
            if np.isfinite(head_reach[at])
        ]
    if len(reaches) < 2:
        raise Untestable(REASONS("few_heads"))
    near, far = min(reaches), max(reaches)
    exceeds = far[0] > MAX_RATIO * near[0]
    slots = {
        "measured": len(reaches),
        "n": n,
        "near": near[0],
        "near_head": near[2],
        "far": far[0],
        "far_head": far[2],
    }
    rows = tuple(
        (f"{name}, on {percent(share)} of its weight", f"{number(distance)} tokens")
        for distance, share, name in (far, near)
    )
    return Measure(
        MAX_RATIO if exceeds else far[0] / near[0],
        f"over {number(MAX_RATIO)}×" if exceeds else "",
        slots=slots,
        rows=rows,
    )


def looks_at_itself(context: MeasureContext) -> Measure:
    """The share of rows, over all heads, whose largest weight is on the token itself."""
    shares: list[float] = []
    rows: list[tuple[str, object]] = []
    for attention in self_attention(context.recording):
        layer_shares = _on_itself(attention).mean(axis=(1, 2))
        rows += by_layer(f"{attention.name}, ", layer_shares)
        shares.append(float(layer_shares.mean()))
    return Measure(float(np.mean(shares)), rows=tuple(rows))


def _on_itself(attention: Attention) -> np.ndarray:
    """Mask of the rows whose largest weight is on their own token, (layer, head, row)."""
    places = rows_with_choice(attention)
    return attention.pattern[:, :, places].argmax(axis=-1) == places


def asymmetric(context: MeasureContext) -> Measure:
    """Asymmetry of the attention scores in the median head, as `soft_lookup.asymmetry` defines
    it."""
    asymmetries, naive = [], 0.0
    attention_with_qkv(context.recording)
    for attention in self_attention(context.recording):
        require_tokens(context.recording.stream(attention.query))
        asymmetries += [
            asymmetry(s.astype(np.float64)) for layer in attention.scores for s in layer
        ]
        naive = max(naive, asymmetry(_naive_scores(context, attention)))
    slots = {"naive": naive, "least": min(asymmetries), "most": max(asymmetries)}
    return Measure(float(np.median(asymmetries)), slots=slots)


def _naive_scores(context: MeasureContext, attention: Attention) -> np.ndarray:
    stream = context.recording.stream(attention.query)
    x = stream.at(state_before(stream, 0, "attn")).astype(np.float64)
    return x @ x.T


def naive_itself(context: MeasureContext) -> Measure:
    """The share of tokens that x . x makes most like themselves."""
    shares, peaks, learned = [], [], []
    for attention in self_attention(context.recording):
        require_tokens(context.recording.stream(attention.query))
        product = _naive_scores(context, attention)
        shares.append(float((product.argmax(axis=1) == np.arange(len(product))).mean()))
        weights = tempered_softmax(product, np.ones_like(product, dtype=bool))
        peaks.append(float(weights.diagonal().mean()))
        learned.append(float(_on_itself(attention).mean()))
    slots = {"weight": float(np.mean(peaks)), "learned": float(np.mean(learned))}
    return Measure(float(np.mean(shares)), slots=slots)


# Claims about what passes from one token to another: the mask, messages, the feed-forward
# network, cross-attention, reading step by step.

SMALLEST_WEIGHT = 2.0**-24  # a weight below this adds less to a sum than a 32-bit number can show


def mask_is_zero(context: MeasureContext) -> Measure:
    """The largest weight on a later token under a causal mask."""
    attention, stream = causal_attention(context.recording)
    require_tokens(stream)
    n = len(stream.tokens)
    later = np.triu(np.ones((n, n), dtype=bool), 1)
    layers, heads = attention.pattern.shape[:2]
    return Measure(
        float(np.abs(attention.pattern[..., later]).max()),
        slots={"n": int(later.sum()) * layers * heads},
    )


def _changes(
    stream: Stream, sites: Sequence[str], changed_streams: Iterator[tuple[int, Stream]]
) -> list[tuple[int, np.ndarray]]:
    """Of each exchanged token its place, and how far every token's vectors move at some sites,
    (token); those that do not move themselves are left out. Raises Untestable where none is
    left."""
    result = []
    for place, changed in changed_streams:  # each holds a whole pass: one at a time
        moved = np.max(
            [np.abs(stream.at(site) - changed.at(site)).max(axis=1) for site in sites], axis=0
        )
        del changed
        if moved[place] > 0:
            result.append((place, moved))
    if not result:
        raise Untestable(REASONS("no_other_token"))
    return result


def _others(
    stream: Stream, changes: list[tuple[int, np.ndarray]], others: list[np.ndarray]
) -> Measure:
    """The largest movement of tokens that should stay where they are, with those that move."""
    largest = [float(each.max()) for each in others]
    rows = tuple((_token(stream, place), other) for (place, _), other in zip(changes, largest))
    slots = {"n": len(changes), "own": max(float(moved[place]) for place, moved in changes)}
    return Measure(max(largest), slots=slots, rows=rows)


def future_blind(context: MeasureContext) -> Measure:
    """The largest change of any earlier token's vector, at any place, when a later token is another
    one."""
    _, stream = causal_attention(context.recording)
    exchange = _with_other_word if len(context.recording.streams) > 1 else _with_other_vector
    places = sample_tokens(np.arange(1, len(stream.tokens)))
    changes = _changes(
        stream, stream.sites, ((place, exchange(context, stream, place)) for place in places)
    )
    return _others(stream, changes, [moved[:place] for place, moved in changes])


def _with_other_vector(context: MeasureContext, stream: Stream, place: int) -> Stream:
    return with_other_vector(context, stream, place, input_site(stream)).stream(stream.name)


def _with_other_word(context: MeasureContext, stream: Stream, place: int) -> Stream:
    ids = list(map(int, stream.ids[1:]))
    ids[place - 1] = _other_id(context.recording, int(stream.ids[place]))
    return context.rerun("", "", tuple(ids)).stream(stream.name)


def _other_id(recording: Recording, id: int) -> int:
    ids = recording.streams[0].ids[text_places(recording.streams[0])]
    others = ids[ids != id]
    if not len(others):
        raise Untestable(REASONS("no_exchange"))
    return int(others[0])


def both_sides(context: MeasureContext) -> Measure:
    """The share of an encoder's tokens before an exchanged one whose last vectors change: the
    mask's law the other way round."""
    attention = next(
        (each for each in context.recording.attention if each.query == "encoder"), None
    )
    if attention is None or attention.key != "encoder":
        raise Untestable(REASONS("no_encoder"))
    stream = context.recording.stream("encoder")
    places = sample_tokens(np.arange(1, len(stream.tokens)))
    changed_streams = ((place, _with_other_vector(context, stream, place)) for place in places)
    earlier = [
        (place, int((moved[:place] > 0).sum()))
        for place, moved in _changes(stream, stream.sites[-1:], changed_streams)
    ]
    n_earlier, n_changed = (sum(each) for each in zip(*earlier))
    later = np.triu(np.ones(attention.pattern.shape[2:], dtype=np.float32), 1)
    share = float((attention.pattern * later).sum() / attention.pattern[..., 0].size)
    rows = tuple(
        (f"{_token(stream, place)}: earlier tokens that change", f"{n} of {place}")
        for place, n in earlier
    )
    slots = {"n": len(rows), "changed": n_changed, "earlier": n_earlier, "later": share}
    return Measure(n_changed / n_earlier, slots=slots, rows=rows)


def messages(context: MeasureContext) -> Measure:
    """The share of tokens that hear of a change of one token in layer 0's attention just where an
    edge of the graph is, over several tokens exchanged. Edges whose weight is lost in rounding say
    nothing and do not count. Raises Untestable where most are."""
    attention = self_attention(context.recording)[0]
    stream = context.recording.stream(attention.query)
    state_before(stream, 0, "attn")
    n_agreeing, n_counted, n_lost, n_edges, faintest, rows = 0, 0, 0, 0, 0.0, []
    for place in sample_tokens(text_places(stream)):
        changed = with_other_vector(context, stream, place, input_site(stream))
        there = changed.stream(stream.name).at("0.attn.wrote")
        moved = np.abs(stream.at("0.attn.wrote") - there).max(axis=1) > 0
        edges = attention.allowed[0, :, place]
        weight = np.max(
            [
                self_attention(each)[0].pattern[0, :, :, place].max(axis=0)
                for each in (context.recording, changed)
            ],
            axis=0,
        )
        del changed, there  # each holds a whole pass: one at a time
        silent = edges & ~moved & (weight < SMALLEST_WEIGHT)
        faintest = max(faintest, float(weight[silent].max(initial=0)))
        n_lost, n_edges = n_lost + int(silent.sum()), n_edges + int(edges.sum())
        n_agreeing += int((moved == edges)[~silent].sum())
        n_counted += int((~silent).sum())
        counts = (edges, moved & edges, moved & ~edges)
        rows.append(
            (
                f"{_token(stream, place)}: edges; of these changed; changed without",
                "; ".join(str(int(each.sum())) for each in counts),
            )
        )
    if 2 * n_lost > n_edges:
        raise Untestable(REASONS("sharp", lost=n_lost, edges=n_edges, faintest=number(faintest)))
    slots = {"n": len(rows), "agreeing": n_agreeing, "counted": n_counted, "lost": n_lost}
    return Measure(
        n_agreeing / n_counted, slots=slots, variant="lost" if n_lost else "", rows=tuple(rows)
    )


def alone(context: MeasureContext) -> Measure:
    """The largest change of what the FFN writes at any other token, when one token's vector before
    it is another; several are tried."""
    stream = context.recording.streams[0]
    site = state_before(stream, 0, "ffn")
    changed_streams = (
        (place, with_other_vector(context, stream, place, site).stream(stream.name))
        for place in sample_tokens(text_places(stream))
    )
    changes = _changes(stream, ("0.ffn.wrote",), changed_streams)
    measure = _others(stream, changes, [np.delete(moved, place) for place, moved in changes])
    return replace(measure, slots={**measure.slots, "others": len(stream.tokens) - 1})


def cross_from_encoder(context: MeasureContext) -> Measure:
    """The largest change of any cross-attention key or value when the decoder reads something else:
    several other texts, one after another."""
    cross = next((each for each in context.recording.attention if each.query != each.key), None)
    if cross is None:
        raise Untestable(REASONS("one_stream"))
    attention_with_qkv(context.recording)
    source, target = (context.recording.stream(name) for name in (cross.key, cross.query))
    key_changes, query_changes, rows = [], [], []
    for ids in _other_targets(source, target):
        other = next(
            each for each in context.rerun("", "", ids).attention if each.name == cross.name
        )
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
    rows.append(("queries × keys", f"{cross.q.shape[2]} × {n_source}"))
    slots = {"n": len(key_changes), "source": n_source, "queries": max(query_changes)}
    return Measure(max(key_changes), slots=slots, rows=tuple(rows))


def _other_targets(source: Stream, target: Stream) -> list[tuple[int, ...]]:
    """N_TRIALS texts for a decoder to read, made of a source's tokens, none of them what it reads
    now."""
    ids = tuple(int(id) for id in subsample(source.ids[text_places(source)], 8))
    texts = dict.fromkeys((ids[::-1], ids, ids[1:], ids[::2], ids[:1], ids * 2))
    others = [each for each in texts if each != tuple(map(int, target.ids[1:]))]
    require_count(len(others), "other texts to try", N_TRIALS)
    return others[:N_TRIALS]


def offset_by_one(context: MeasureContext) -> Measure:
    """Logit of the next token minus that of the token just read, in nats, mean of a decoder's
    rows."""
    _, stream = causal_attention(context.recording)
    ids = stream.ids
    places = subsample(np.flatnonzero(ids[:-1] != ids[1:]), 32)
    require_count(len(places), "rows whose next token is another than the one they read")
    gains = []
    for place in places:
        scores = context.logits(stream.name, int(place)).astype(np.float64)
        gains.append(scores[ids[place + 1]] - scores[ids[place]])
    value = float(np.mean(gains))
    slots = {
        "lead": abs(value),
        "higher": int((np.array(gains) > 0).sum()),
        "n": len(places),
        "first": stream.tokens[0],
    }
    return Measure(value, slots=slots, variant="higher" if value > 0 else "lower")


def steps_agree(context: MeasureContext) -> Measure:
    """The largest difference of any score between one pass over the text and one pass a token, of
    the largest score."""
    _, stream = causal_attention(context.recording)
    require_tokens(stream)
    n = min(len(stream.tokens), 32)
    stepwise = np.stack(context.stepwise(n))
    parallel = np.stack(
        [context.logits(output_stream(context.recording).name, place) for place in range(n)]
    )
    error, size = float(np.abs(stepwise - parallel).max()), float(np.abs(parallel).max())
    slots = {"n": n, "scores": parallel.size, "error": error, "size": size}
    return Measure(error / size, slots=slots)


# Claims about word order: the sinusoids and their laws, what is added to a sentence, and who
# knows in which order the words came.

MOST_SHUFFLES = 16  # drawn, to find N_TRIALS that move a token


def _encoding(context: MeasureContext) -> tuple[np.ndarray, Stream]:
    """Positional encoding that the model adds, (position, d_model), and the stream it is added to:
    the longest one. Raises Untestable where none is added and where d_model is odd."""
    stream = max(context.recording.streams, key=lambda each: len(each.tokens))
    if "pos.wrote" not in stream.sites:
        raise Untestable(REASONS("no_positions_added"))
    encoding = stream.at("pos.wrote").astype(np.float64)
    if encoding.shape[1] % 2:
        raise Untestable(REASONS("odd_width", d_model=encoding.shape[1]))
    return encoding, stream


def _table_name(stream: Stream) -> str:
    error = positions.formula_error(stream)
    return (
        "the paper’s sinusoids"
        if error <= positions.FORMULA_TOLERANCE
        else "a table other than the paper’s formula"
    )


def product_is_distance(context: MeasureContext) -> Measure:
    """The largest difference of two products at the same distance, of the largest product."""
    encoding, stream = _encoding(context)
    require_tokens(stream)
    gram = encoding @ encoding.T
    n = len(gram)
    diagonals = [np.diagonal(gram, distance) for distance in range(n)]
    spread = max(float(np.ptp(products)) for products in diagonals)
    rows = tuple(
        (
            f"distance {distance}: smallest and largest p·p",
            f"{number(products.min())} … {number(products.max())}",
        )
        for distance, products in enumerate(diagonals[:6])
    )
    slots = {
        "products": n * (n + 1) // 2,
        "n": n,
        "table": _table_name(stream),
        "spread": spread,
    }
    return Measure(spread / float(np.abs(gram).max()), slots=slots, rows=rows)


def left_is_right(context: MeasureContext) -> Measure:
    """The largest |p_i . p_(i+k) - p_i . p_(i-k)|, of the largest product."""
    encoding, stream = _encoding(context)
    require_tokens(stream)
    gram = encoding @ encoding.T
    n, size = len(gram), float(np.abs(gram).max())
    worst = max(
        abs(float(gram[i, i + k] - gram[i, i - k]))
        for i in range(1, n - 1)
        for k in range(1, min(i, n - 1 - i) + 1)
    )
    variant = "alike" if worst < 1e-4 * size else "apart"
    return Measure(worst / size, slots={"error": worst}, variant=variant)


def low_is_fast(context: MeasureContext) -> Measure:
    """The share of neighbouring pairs of dimensions of which the lower one turns faster."""
    encoding, stream = _encoding(context)
    require_tokens(stream)
    pairs = encoding.reshape(len(encoding), -1, 2)
    if pairs.shape[1] < 2:
        raise Untestable(REASONS("one_pair"))
    angles = degrees(pairs[:-1], pairs[1:]).mean(axis=0)
    if not np.isfinite(angles).all():
        raise Untestable(REASONS("zero_pairs"))
    n = len(angles)
    rows = tuple(
        (f"dimensions {2 * at} and {2 * at + 1}: degrees a position", float(angles[at]))
        for at in (0, n // 4, n // 2, n - 1)
    )
    slots = {"first": float(angles[0]), "last": float(angles[-1])}
    return Measure(float((np.diff(angles) < 0).mean()), slots=slots, rows=rows)


def even_is_sine(context: MeasureContext) -> Measure:
    """The largest difference of the model's encoding to the formula with the sine in the even
    dimensions."""
    encoding, _ = _encoding(context)
    n, d = encoding.shape
    table = positions.table(n, d)
    swapped = table.reshape(n, -1, 2)[..., ::-1].reshape(n, d)
    error, swapped_error = (float(np.abs(encoding - each).max()) for each in (table, swapped))
    variant = "sinusoids" if error <= positions.FORMULA_TOLERANCE else "other"
    return Measure(error, slots={"swapped": swapped_error}, variant=variant)


def shift_is_rotation(context: MeasureContext) -> Measure:
    """The largest difference of an encoding turned by one position and the next position's
    encoding."""
    encoding, stream = _encoding(context)
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
    rows = tuple((f"shift by {shift}: off by", error) for shift, error in errors.items())
    variant = "rotations" if worst < 1e-3 else "other"
    slots = {"n": n, "table": _table_name(stream)}
    return Measure(worst, slots=slots, variant=variant, rows=rows)


def start(context: MeasureContext) -> Measure:
    """The largest difference of the first state and sqrt(d) times the word's embedding plus the
    position's; or of that factor, if larger."""
    _encoding(context)
    scale = embedding_factor(context)
    words, error, size = context.embeddings(), 0.0, 0.0
    for stream in context.recording.streams:
        if "embed+pos" in stream.sites:
            first = stream.at("embed+pos").astype(np.float64)
            made = words[stream.ids].astype(np.float64) + stream.at("pos.wrote")
            error = max(error, float(np.abs(made - first).max()))
            size = max(size, float(np.abs(first).max()))
    d = context.recording.model.d_model
    root = float(np.sqrt(d))
    slots = {"scale": scale, "d": d, "root": root, "error": error, "size": size}
    return Measure(max(error / size, abs(scale / root - 1)), slots=slots)


def balance(context: MeasureContext) -> Measure:
    """By what factor a component of sqrt(d) e is larger than one of p, or smaller, root mean square
    over the text."""
    encoding, stream = _encoding(context)
    d = context.recording.model.d_model
    if abs(embedding_factor(context) / np.sqrt(d) - 1) > 0.01:
        raise Untestable(REASONS("no_factor"))
    text = text_places(stream)
    word, place = (
        float(np.sqrt((v[text] ** 2).mean()))
        for v in (stream.at("embed").astype(np.float64), encoding)
    )
    bare = float(word / np.sqrt(d))
    slots = {"word": word, "position": place, "d": d, "bare": bare, "times": place / bare}
    return Measure(factor(word / place), slots=slots)


# ---- another order ----


def _shuffled(
    context: MeasureContext, stream: str, base: str, pick: Callable[[Sequence[float]], float]
) -> Measure:
    """Effect of several token shuffles on the last vectors of a stream, every pass under the edits
    `base`: the mean distance of the tokens that moved from the same tokens in order, as a share of
    their norm. The number is what is picked of the shuffles. Raises Untestable where there is no
    other order, TooShort where fewer shuffles than N_TRIALS move a token."""
    require_shuffle(context.recording.streams[0])
    baseline = _last_state(
        context.rerun(base, "", None).stream(stream) if base else context.recording.stream(stream)
    )
    length = np.linalg.norm(baseline.resid[-1].astype(np.float64), axis=1)
    effects: dict[tuple[int, ...], tuple[float, int]] = {}
    for seed in range(1, MOST_SHUFFLES + 1):
        edits = ",".join(filter(None, (base, f"ShuffleTokens:{seed}")))
        shuffled = _last_state(context.rerun(edits, "", None).stream(stream))
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
    slots = {
        "n": len(gaps),
        "least": min(gaps),
        "most": max(gaps),
        "fewest": min(tokens),
        "moved": max(tokens),
    }
    rows = tuple(
        (f"shuffle {at}: {n} tokens elsewhere, vectors apart by", gap)
        for at, (gap, n) in enumerate(effects.values(), 1)
    )
    return Measure(pick(gaps), slots=slots, rows=rows)


def _last_state(stream: Stream) -> Stream:
    """A stream with its last vectors alone: they do not keep the pass they came from in memory."""
    return replace(stream, sites=stream.sites[-1:], resid=stream.resid[-1:].copy())


def order_blind(context: MeasureContext) -> Measure:
    """Largest effect of several token shuffles on the last vectors, without positions and mask."""
    stream = context.recording.streams[0].name
    masked = stream == "decoder"
    edits = "WithoutPositions" + ",WithoutMask" * masked
    return replace(_shuffled(context, stream, edits, max), variant="decoder" if masked else "")


def order_matters(context: MeasureContext) -> Measure:
    """Smallest effect of several token shuffles on the last vectors, the model as it is."""
    if _has_no_positions(context):
        raise Untestable(REASONS("no_positions"))
    return _shuffled(context, context.recording.streams[0].name, "", min)


def _has_no_positions(context: MeasureContext) -> bool:
    """True where taking the positions away changes nothing. A model that adds none may know them
    elsewhere, as in its attention, and refuse this."""
    if any("pos.wrote" in stream.sites for stream in context.recording.streams):
        return False
    try:
        without = context.rerun("WithoutPositions", "", None)
    except Untestable:
        return False
    return all(
        np.array_equal(here.resid, there.resid)
        for here, there in zip(context.recording.streams, without.streams)
    )


def blind_decoder(context: MeasureContext) -> Measure:
    """Smallest effect of several token shuffles on a decoder's last vectors, without positions but
    with its mask."""
    if len(context.recording.streams) > 1:
        raise Untestable(REASONS("target_order"))
    stream = causal_attention(context.recording)[1]
    return _shuffled(context, stream.name, "WithoutPositions", min)


def norm_tames(context: MeasureContext) -> Measure:
    """Ratio of the length of the last vectors without LayerNorm or RMSNorm to that with it."""
    stream = context.recording.streams[0]
    if not any(site.endswith((".normed", ".read")) for site in stream.sites):
        raise Untestable(REASONS("no_norm"))
    without_norms = context.rerun("WithoutNorm", "", None).stream(stream.name)
    length, length_without = (_length(each, each.sites[-1]) for each in (stream, without_norms))
    rows = by_layer(
        "without norms, after ",
        [
            _length(without_norms, total)
            for _, wrote, total in without_norms.writes()
            if wrote.endswith("ffn.wrote")
        ],
    )
    slots: dict[str, object] = {"length": length, "without": length_without}
    variant = "none"
    if norm_free := context.without_norm():
        variant, bare = "trained", norm_free.stream(stream.name)
        first, last = (_length(bare, site) for site in (bare.sites[0], bare.sites[-1]))
        slots |= {"other": norm_free.model.name, "last": last, "times": last / first}
        rows = (*rows, (f"{norm_free.model.name}, the last vectors", last))
    return Measure(length_without / length, slots=slots, variant=variant, rows=rows)


def _length(stream: Stream, site: str) -> float:
    return float(np.linalg.norm(stream.at(site).astype(np.float64), axis=1).mean())


# Claims about the softmax and the scale.

TEMPERATURES = (1.0, 0.5, 0.1, 0.01)
ROUNDING = 1e-5  # a row's sum off 1 by no more than this is 1, in 32-bit numbers


def rows_sum(context: MeasureContext) -> Measure:
    """The largest |sum over keys - 1| of any row."""
    errors = {each.name: _row_error(each) for each in context.recording.attention}
    n = sum(int(np.prod(each.pattern.shape[:3])) for each in context.recording.attention)
    return Measure(max(errors.values()), slots={"n": n}, rows=tuple(errors.items()))


def _row_error(attention: Attention) -> float:
    return float(np.abs(attention.pattern.sum(axis=-1, dtype=np.float64) - 1).max())


def summed_axis(context: MeasureContext) -> Measure:
    """By how much the sums over queries are away from 1, in the mean; 0 where the sums over keys
    are not 1 either."""
    deviations, row_error = [], 0.0
    for attention in self_attention(context.recording):
        require_tokens(context.recording.stream(attention.query))
        deviations.append(np.abs(attention.pattern.sum(axis=-2, dtype=np.float64) - 1).mean())
        row_error = max(row_error, _row_error(attention))
    if row_error > ROUNDING:
        return Measure(0.0, slots={"error": row_error}, variant="neither")
    return Measure(float(np.mean(deviations)), slots={"error": row_error}, variant="rows")


def convex(context: MeasureContext) -> Measure:
    """Largest violation of convexity: an output outside the range of the values that it is made of,
    a weight below 0, or a row sum off 1."""
    overshoot, smallest, sum_error = 0.0, np.inf, 0.0
    for attention in attention_with_qkv(context.recording):
        sinks = attention.sink if attention.sink.size else np.zeros(attention.pattern.shape[:3])
        for mask, sink, *layer in zip(attention.allowed, sinks, attention.pattern, attention.v):
            weights, v = (each.astype(np.float64) for each in layer)
            if sink.any():  # as of a key whose value is 0
                v = np.concatenate([np.zeros_like(v[:, :1]), v], axis=1)
                weights = np.concatenate([sink[..., None], weights], axis=-1)
                mask = np.concatenate([np.ones_like(mask[:, :1]), mask], axis=1)
            z = weights @ v
            # Of the values of all keys up to the last that is allowed.
            last = mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
            low, high = (ufunc.accumulate(v, axis=1)[:, last] for ufunc in (np.minimum, np.maximum))
            overshoot = max(overshoot, float(np.maximum(low - z, z - high).max()))
            smallest = min(smallest, float(weights.min()))
            sum_error = max(sum_error, float(np.abs(weights.sum(axis=-1) - 1).max()))
    value = max(0.0, overshoot, -smallest, sum_error)
    slots = {"overshoot": max(overshoot, 0.0), "smallest": smallest, "sum": sum_error}
    return Measure(value, slots=slots, variant="inside" if value < 1e-4 else "outside")


def soft_lookup(context: MeasureContext) -> Measure:
    """Distance of z from the value of the best key at a temperature of 0.01, as a share of that at
    temperature 1, as the model runs."""
    distances: dict[float, list[float]] = {t: [] for t in TEMPERATURES}
    peak = []
    for attention in attention_with_qkv(context.recording):
        rows = rows_with_choice(attention)
        layers = zip(attention.allowed[:, rows], attention.scores[:, :, rows], attention.v)
        for allowed, scores, values in layers:
            v = values.astype(np.float64)
            best = np.where(allowed, scores, -np.inf).argmax(axis=-1)
            hard = np.take_along_axis(v, best[..., None], axis=1)
            size = np.linalg.norm(v, axis=-1).mean()
            for t in TEMPERATURES:
                weights = tempered_softmax(scores / t, allowed)
                distances[t].append((np.linalg.norm(weights @ v - hard, axis=-1) / size).mean())
                if t == 1:
                    peak.append(weights.max(axis=-1).mean())
    means = {t: float(np.mean(values)) for t, values in distances.items()}
    value = means[TEMPERATURES[-1]] / means[1.0] if means[1.0] > 0 else float("nan")
    parts = tuple(
        (f"distance to the hard lookup at temperature {t:g}", means[t]) for t in TEMPERATURES
    )
    return Measure(value, slots={"peak": float(np.mean(peak))}, rows=parts)


def variance_grows(context: MeasureContext) -> Measure:
    """By how much Var(q . k) of random vectors is off d, relatively, at the worst of many
    widths."""
    statistics = random_variance(context.draw)
    widths, variance = np.array(statistics.widths), statistics.variance
    slots = {
        "pairs": PAIRS,
        "widths": len(widths),
        "d": int(widths[-1]),
        "keys": KEYS,
        "variance": float(variance[-1]),
        "raw": float(statistics.raw[-1]),
        "after": float(variance[-1] / widths[-1]),
        "scaled": float(statistics.scaled[-1]),
    }
    rows = tuple(
        (
            f"Var(q·k) at width {width}, and after the scale",
            f"{number(each)} → {number(each / width)}",
        )
        for width, each in zip(widths, variance)
    )
    return Measure(float(np.abs(variance / widths - 1).max()), slots=slots, rows=rows)


def variance_here(context: MeasureContext) -> Measure:
    """By what factor the variance of the model's own q . k is off d_k sigma_q^2 sigma_k^2, the
    median of its heads."""
    ratios: list[np.ndarray] = []
    rows: list[tuple[str, object]] = []
    for attention in attention_with_qkv(context.recording):
        # (layer, head)
        q, k = ((v.astype(np.float64) ** 2).mean(axis=(2, 3)) for v in (attention.q, attention.k))
        # Of the products themselves: a model may divide them by something else than √d, or by
        # nothing, and add to them.
        variance = np.stack(
            [
                [(a.astype(np.float64) @ b.astype(np.float64).T).var() for a, b in zip(*layer)]
                for layer in zip(attention.q, attention.k)
            ]
        )
        ratios.append(variance / (attention.q.shape[-1] * q * k))
        spread = [layer.std(axis=(1, 2), dtype=np.float64).mean() for layer in attention.scores]
        rows += by_layer(f"spread of the model’s scores, {attention.name} ", spread)
    ratio = float(np.median(np.concatenate([each.ravel() for each in ratios])))
    slots = {"ratio": ratio, "more": "more" if ratio > 1 else "less"}
    return Measure(factor(ratio), slots=slots, rows=tuple(rows))


def head_scale(context: MeasureContext) -> Measure:
    """The largest |score - q . k / sqrt(d_head)|, of the largest score."""
    error, full_width_error, largest = 0.0, 0.0, 0.0
    model = context.recording.model
    for attention in attention_with_qkv(context.recording):
        for scores, q, k in zip(attention.scores, attention.q, attention.k):
            products = q @ k.swapaxes(-1, -2)
            off, full_width_off = (
                float(np.abs(scores - products / np.sqrt(width)).max())
                for width in (q.shape[-1], model.d_model)
            )
            error, full_width_error = max(error, off), max(full_width_error, full_width_off)
            largest = max(largest, float(np.abs(scores).max()))
    slots = {
        "d_head": model.d_head,
        "d": model.d_model,
        "error": error,
        "other": full_width_error,
        "largest": largest,
    }
    return Measure(
        error / largest if largest else float("nan"),
        slots=slots,
        variant="same" if error <= 1e-4 * largest else "off",
    )


def scale_keeps_soft(context: MeasureContext) -> Measure:
    """Ratio of the mean softmax derivative with the scale 1/√d_head to that without it."""
    slopes: dict[str, list[float]] = {"scaled": [], "raw": []}
    for attention in attention_with_qkv(context.recording):
        rows = rows_with_choice(attention)
        for allowed, q, k in zip(attention.allowed[:, rows], attention.q[:, :, rows], attention.k):
            products = q @ k.swapaxes(-1, -2)
            for name, divisor in (("scaled", np.sqrt(q.shape[-1])), ("raw", 1.0)):
                weights = tempered_softmax(products / divisor, allowed)
                slopes[name].append(1 - (weights**2).sum(axis=-1).mean())
    slots = {name: float(np.mean(values)) for name, values in slopes.items()}
    value = slots["scaled"] / slots["raw"] if slots["raw"] else np.inf
    return Measure(value, slots=slots)


# Claims about words: where the last vector lies among the vocabulary's, what the layers before it
# say, and what context changes.

FEWEST_WORDS = 500  # of a vocabulary, of which a hundredth is then more than a few
MOST_TOKENS, MOST_WORDS, TOP = 8, 6, 5


def _output_places(context: MeasureContext) -> tuple[Stream, np.ndarray]:
    stream = output_stream(context.recording)
    return stream, subsample(text_rows(stream), MOST_TOKENS)


def near_its_words(context: MeasureContext) -> Measure:
    """The share of the vocabulary that is further (by angle) from the last vector than its five
    likeliest words, in the mean."""
    stream, places = _output_places(context)
    words = _unit(context.embeddings())
    shares, cosines = [], []
    for place in places:
        likely = np.argsort(-context.logits(stream.name, int(place)), kind="stable")[:TOP]
        cosine = words @ _unit(stream.resid[-1, place])
        shares += [float((cosine < cosine[id]).mean()) for id in likely]
        cosines += [float(cosine[likely[0]])]
    slots = {
        "n": len(places),
        "words": len(words),
        "cosine": float(np.mean(cosines)),
        "most": max(cosines),
    }
    return Measure(float(np.mean(shares)), slots=slots)


def distance_tells(context: MeasureContext) -> Measure:
    """The rank correlation over the vocabulary of a word's nearness to the last vector and its
    probability, in the mean."""
    stream, places = _output_places(context)
    words = context.embeddings() / embedding_factor(context)  # as the readout has them
    squares = (words**2).sum(axis=1)
    by_distance, by_product = [], []
    for place in places:
        scores, product = context.logits(stream.name, int(place)), words @ stream.resid[-1, place]
        by_distance.append(_rank_correlation(2 * product - squares, scores))
        by_product.append(_rank_correlation(product, scores))
    return Measure(float(np.mean(by_distance)), slots={"product": float(np.mean(by_product))})


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-30)


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (np.argsort(np.argsort(v, kind="stable"), kind="stable") for v in (a, b))
    return float(np.corrcoef(a, b)[0, 1])


def readable_blocks(context: MeasureContext) -> Measure:
    """The worst block's median rank of the model's final answer when read off its output, as a
    share of the vocabulary."""
    stream = output_stream(context.recording)
    lens, text = context.lens(context.recording, stream.name), text_rows(stream)
    n_vocab = context.recording.model.n_vocab
    if n_vocab < FEWEST_WORDS:
        raise Untestable(REASONS("few_words", n=n_vocab, fewest=FEWEST_WORDS))
    blocks = {
        site.partition(".")[0]: at
        for at, site in enumerate(lens.sites)
        if site.partition(".")[0].isdecimal()
    }  # the last site of each
    if not blocks:
        raise Untestable(REASONS("no_blocks"))
    medians = {layer: float(np.median(lens.rank[at, text])) for layer, at in blocks.items()}
    shares = {layer: float((lens.rank[at, text] == 0).mean()) for layer, at in blocks.items()}
    first = next(iter(blocks))
    rows = tuple(
        (
            f"block {layer}: final prediction first; median rank; KL to the end",
            f"{percent(shares[layer])}; {medians[layer] + 1:.0f}; "
            f"{number(float(lens.kl[at, text].mean()))} nats",
        )
        for layer, at in blocks.items()
    )
    slots = {
        "first": first,
        "rank": medians[first] + 1,
        "words": n_vocab,
        "baseline": n_vocab // 2,
        "share": shares[first],
    }
    variant = "masked" if stream.name == "encoder" else ""
    return Measure(max(medians.values()) / n_vocab, slots=slots, variant=variant, rows=rows)


def context_moves(context: MeasureContext) -> Measure:
    """The mean cosine between a word's last vector in this text and when it stands alone."""
    streams = context.recording.streams
    stream = streams[-1] if len(streams) == 1 else streams[0]
    text = text_places(stream)
    if stream.name == "decoder":
        text = text[1:]  # its first word sees nothing before it here either
    continues = [token.startswith(CONTINUES) for token in (*stream.tokens[1:], "")]
    words = [
        place
        for place in text
        if len(stream.tokens[place]) > 2 and stream.tokens[place].isalpha() and not continues[place]
    ]
    cosines = {}
    for place in map(int, subsample(np.array(words, dtype=int), MOST_WORDS)):
        alone_stream = context.rerun("", stream.tokens[place], ()).stream(stream.name)
        matches = np.flatnonzero(alone_stream.ids == stream.ids[place])
        if len(matches):
            here, there = (
                residual.site_vectors(each, each.sites[-1])[at]
                for each, at in ((stream, place), (alone_stream, matches[0]))
            )
            cosines[place] = float(residual.cosine(here, there))
    require_count(len(cosines), "words of one token, of letters, with words around them")
    rows = tuple((_token(stream, place), fixed(cosine, 2)) for place, cosine in cosines.items())
    return Measure(float(np.mean(list(cosines.values()))), slots={"n": len(cosines)}, rows=rows)
