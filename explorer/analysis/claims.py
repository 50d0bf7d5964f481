"""Measures of the claims: each is the function of its claim's id in `explorer/text/claims.toml`,
with `_` for `-`. The sentences there name the slots."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from explorer.analysis import head_naming, residual
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
    layers_of,
    output_stream,
    require_count,
    require_tokens,
    rows_with_choice,
    self_attention,
    state_before,
    subsample,
    text_places,
    text_rows,
)
from explorer.analysis.residual import degrees
from explorer.analysis.soft_lookup import tempered_softmax
from explorer.analysis.terminology import norm_name, with_article
from explorer.figures.formatting import fixed, number, percent
from explorer.wording.templates import sentences
from models.contract.recording import CONTINUES, Attention, Stream

REASONS = sentences("claims", "untestable")

# Claims about the residual stream: what is added, its norms, the sphere and its rotations.


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


def _token(stream: Stream, token: int) -> str:
    """A token as the name of a row."""
    return f"{stream.tokens[token]} (token {token})"


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


# Claims about word order: the sinusoids and their laws, what is added to a sentence, and who
# knows in which order the words came.


def _encoding(context: MeasureContext) -> tuple[np.ndarray, Stream]:
    """Positional encoding that the model adds, (position, d_model), and the stream it is added to:
    the longest one. Raises Untestable where none is added and where d_model is odd."""
    stream = max(context.recording.streams, key=lambda each: len(each.tokens))
    if "pos.wrote" not in stream.sites:
        merged = "embed+pos" in stream.sites
        raise Untestable(REASONS("merged_positions" if merged else "no_positions_added"))
    encoding = stream.at("pos.wrote").astype(np.float64)
    if encoding.shape[1] % 2:
        raise Untestable(REASONS("odd_width", d_model=encoding.shape[1]))
    return encoding, stream


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
