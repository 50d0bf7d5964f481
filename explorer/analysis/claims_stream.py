"""Claims about the residual stream: what is added, LayerNorm, the sphere and its rotations, and gradients along layers and tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from explorer.analysis import residual
from explorer.analysis.evidence import TRIED, Evidence, Measured, Untestable, number
from explorer.analysis.grounds import (
    at_least,
    enough,
    factor,
    text_places,
    tried,
    writer,
)
from models.recording import Stream

WIDTH = 64  # of the recurrent network
GAINS = (
    1.0,
    2.0,
)  # the size of its weights: the first decides, the second shows how much hangs on it
NEAR_AND_FAR = 8  # tokens that a text must have before near and far differ
SMALL_GAIN = 1e-2


def adds(e: Evidence) -> Measured:
    """The largest |before + wrote - after|, of the largest component."""
    for stream in e.recording.streams:
        _layers(stream)
    found = [residual.conservation(stream) for stream in e.recording.streams]
    worst, size = max(error for error, _, _ in found), max(largest for _, _, largest in found)
    return Measured(
        worst / size,
        f"{sum(n for _, n, _ in found):,} additions of this recording were done again: the largest error is {number(worst)}, where components reach {number(size)}.",
    )


def little_work(e: Evidence) -> Measured:
    """The mean angle between the vector before a sub-layer and after it, in degrees."""
    angles, rows = [], []
    for stream in e.recording.streams:
        text = text_places(stream)
        for each in _layers(stream):
            turned = float(
                np.nanmean(
                    residual.degrees(
                        residual.at(stream, each.before)[text],
                        residual.at(stream, each.after)[text],
                    )
                )
            )
            angles.append(turned)
            rows.append((_named(e, stream, each.name), f"{turned:.1f}°"))
    value = float(np.mean(angles))
    return Measured(
        value,
        f"A sub-layer turns a word’s vector by {value:.1f}° in the mean, from {min(angles):.1f}° to {max(angles):.1f}°. Turned at random, a vector of so many dimensions would stand at about 90° to the one before; cos 60° = 0.5, so at 60° its component along the old direction is half its length.",
        tuple(rows),
    )


def _layers(stream: Stream) -> tuple[residual.SubLayer, ...]:
    found = tuple(each for each in residual.sublayers(stream) if each.layer >= 0)
    if not found:
        raise Untestable("This model does not show what its sub-layers write.")
    return found


def _named(e: Evidence, stream: Stream, name: str) -> str:
    return name if len(e.recording.streams) == 1 else f"{stream.name}, {name}"


# ---- LayerNorm ------------------------------------------------------------------------------------------------------


def _norms(
    e: Evidence,
) -> Iterator[tuple[Stream, str, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, float]]]:
    """Every LayerNorm of a sub-layer: its stream, its name, what it is given and what it gives (token, d_model), and its gain, bias and eps."""
    found = False
    for stream in e.recording.streams:
        norms = e.norms(stream.name)
        for each in _layers(stream):
            if each.site not in norms:
                continue
            if f"{each.site}.read" in stream.sites:
                pair = each.before, f"{each.site}.read"
            elif each.after != each.total:
                pair = each.total, each.after
            else:
                continue
            found = True
            yield (
                stream,
                _named(e, stream, each.name),
                *(residual.at(stream, site) for site in pair),
                norms[each.site],
            )
    if not found:
        raise Untestable("This model has no LayerNorm that it shows both sides of.")


def mean_and_spread(e: Evidence) -> Measured:
    """The largest of: |mean|, |variance - 1| before gain and bias, and what then differs from what the model has after its LayerNorm."""
    mean, variance, error, n = 0.0, 0.0, 0.0, 0
    for _, _, given, gives, (gain, bias, eps) in _norms(e):
        normed = residual.normalised(given, eps)
        mean, variance = (
            max(mean, float(np.abs(normed.mean(-1)).max())),
            max(variance, float(np.abs(normed.var(-1) - 1).max())),
        )
        error = max(error, float(np.abs(normed * gain + bias - gives).max()))
        n += len(given)
    return Measured(
        max(mean, variance, error),
        f"{n:,} vectors were normalised again, each by its own mean and variance, and agree with the model’s to {number(error)}. Before gain and bias their means are 0 to {number(mean)}, their variances 1 to {number(variance)}.",
        (
            ("mean, off 0 by", number(mean)),
            ("variance, off 1 by", number(variance)),
            ("after gain and bias, off the model’s by", number(error)),
        ),
    )


def unit_length(e: Evidence) -> Measured:
    """By what factor the length of a state after a LayerNorm is away from 1, either way, in the mean."""
    lengths = np.concatenate([np.linalg.norm(gives, axis=-1) for _, _, _, gives, _ in _norms(e)])
    d = e.recording.model.d_model
    with np.errstate(divide="ignore"):
        value = float(np.maximum(lengths, 1 / lengths).mean())
    return Measured(
        value,
        f"The {len(lengths):,} vectors after a LayerNorm are {number(float(lengths.mean()))} long in the mean, from {number(float(lengths.min()))} to {number(float(lengths.max()))}. LayerNorm makes the variance 1, so the length is √d = √{d} = {np.sqrt(d):.1f} before gain and bias.",
    )


def on_a_sphere(e: Evidence) -> Measured:
    """The largest | |u| / sqrt(d) - 1 |, u the state with gain and bias taken back."""
    worst, longest, shortest = 0.0, 0.0, np.inf
    for _, _, given, gives, (gain, bias, eps) in _norms(e):
        strong = np.abs(gain) > SMALL_GAIN  # a gain near 0 cannot be taken back
        u = np.where(
            strong, (gives - bias) / np.where(strong, gain, 1), residual.normalised(given, eps)
        )
        length = np.linalg.norm(u, axis=-1)
        longest, shortest = max(longest, float(length.max())), min(shortest, float(length.min()))
        worst = max(worst, float(np.abs(length / np.sqrt(u.shape[-1]) - 1).max()))
    d = e.recording.model.d_model
    return Measured(
        worst,
        f"With gain and bias taken back, every vector is between {shortest:.3f} and {longest:.3f} long; √{d} is {np.sqrt(d):.3f}. All of them also have mean 0, so they lie on that sphere cut by a plane.",
        (
            ("radius √d", f"{np.sqrt(d):.3f}"),
            ("shortest", f"{shortest:.3f}"),
            ("longest", f"{longest:.3f}"),
        ),
    )


def only_turns(e: Evidence) -> Measured:
    """The mean | |after| / |before| - 1 | over the sub-layers: by how much they stretch or shrink."""
    off, rows = [], []
    for stream in e.recording.streams:
        text = text_places(stream)
        for each in _layers(stream):
            before, after = (residual.at(stream, site)[text] for site in (each.before, each.after))
            ratio = np.linalg.norm(after, axis=-1) / np.linalg.norm(before, axis=-1)
            off.append(float(np.abs(ratio - 1).mean()))
            rows.append(
                (
                    _named(e, stream, each.name),
                    f"turned {np.nanmean(residual.degrees(before, after)):.1f}°, length × {ratio.mean():.2f}",
                )
            )
    value = float(np.mean(off))
    return Measured(
        value,
        f"A rotation keeps lengths. Each sub-layer does turn the vector, and changes its length by {value:.0%} in the mean."
        + (
            " Before gain and bias, and from the first LayerNorm on, all lengths are √d, and the reading as rotations is exact."
            if each.after.endswith(".normed")
            else ""
        ),
        tuple(rows),
    )


def vocabulary_sphere(e: Evidence) -> Measured:
    """The spread of the lengths of all embeddings, of their mean, beside that of random vectors as wide, 1 / sqrt(2 d)."""
    words = e.embeddings().astype(np.float64)
    lengths, chance = np.linalg.norm(words, axis=-1), 1 / np.sqrt(2 * words.shape[1])
    spread = float(lengths.std() / lengths.mean())
    return Measured(
        spread / chance,
        f"The {len(lengths):,} rows, as the stream begins with them, are {number(float(lengths.min()))} to {number(float(lengths.max()))} long, {number(float(lengths.mean()))} in the mean: a spread of {spread:.1%}. Random vectors of {words.shape[1]} numbers have one of {chance:.1%}, near a sphere by their width alone. Nothing in training holds words to one length.",
        (
            ("spread of the lengths", f"{spread:.1%}"),
            ("of random vectors", f"{chance:.1%}"),
            ("shortest", number(float(lengths.min()))),
            ("mean", number(float(lengths.mean()))),
            ("longest", number(float(lengths.max()))),
        ),
    )


# ---- gradients ------------------------------------------------------------------------------------------------------


def identity_plus(e: Evidence) -> Measured:
    """The largest entry of |J(x + f) - J(f) - I| of one sub-layer, at several tokens."""
    stream = writer(e.recording)
    each = _layers(stream)[-1]
    if f"{each.site}.read" in stream.sites:
        raise Untestable(
            "In this model the sub-layer reads the vector through a LayerNorm, and its Jacobian is not measured here."
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
        f"Both Jacobians at {len(found)} tokens in {each.name}, {n} × {n} numbers each, were worked out apart. That of f alone stretches by at most {number(largest)} and loses some directions (down to {number(min(of_f))}); with x added, the weakest keeps at least {number(min(weakest))}.",
        tuple(
            (
                f"{stream.tokens[token]} (token {token}): off by; smallest stretch of f; of x + f",
                f"{number(float(one.error))}; {number(float(one.wrote[-1]))}; {number(float(one.total[-1]))}",
            )
            for token, one in found.items()
        ),
    )


def _deep(e: Evidence, switch: str) -> Measured:
    """By what factor the gradient at a deep stack's input is away from that at its end, of the ways with a switch the one nearer to 1 where it
    is off and further from 1 where it is on."""
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
        f"{found.layers} layers of {found.width} numbers, weights at random, this text’s first {found.tokens} embeddings. The gradient at the input, of that at the last state: {told}.",
        tuple(
            (f"{way}, layer {layer}", number(float(found.norm[found.ways.index(way), layer])))
            for way in kept
            for layer in (0, found.layers // 4, found.layers // 2, found.layers)
        ),
    )


def gradient_with(e: Evidence) -> Measured:
    """The same with residual connections: the worse of with LayerNorm and without."""
    return _deep(e, "residual on")


def gradient_without(e: Evidence) -> Measured:
    """The same without residual connections: the milder of with LayerNorm and without."""
    return _deep(e, "residual off")


def far_words(e: Evidence) -> Measured:
    """How many times weaker the gradient to the farthest token is than to the nearest one, in the model itself, along a line through the
    logarithms, from the answers at several tokens."""
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
            rows.append((f"from {stream.tokens[token]} (token {token}): a token", f"× {step:.3f}"))
    enough(len(steps), "answers that reach tokens at three distances")
    step = float(np.exp(np.mean(np.log(steps))))
    total = float(step ** (1 - reach))
    said = f"{number(total)} times weaker" if total >= 1 else f"{number(1 / total)} times stronger"
    return Measured(
        total,
        f"Through the layers, not along the text: the gradient from the answers at the last {len(steps)} tokens changes by × {step:.3f} a token, which makes it {said} at {reach} tokens than at 1.",
        tuple(rows),
    )


def _by_distance(distance: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean of the values at each distance, (distance), 0 where there is none."""
    sums, counts = np.zeros(distance.max(initial=0) + 1), np.zeros(distance.max(initial=0) + 1)
    np.add.at(sums, distance, values)
    np.add.at(counts, distance, 1)
    return np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)


def recurrent_fades(e: Evidence) -> Measured:
    """By what factor the gradient of an untrained tanh RNN of gain 1 on this text's embeddings changes with each token back."""
    stream = e.recording.streams[0]
    at_least(stream)
    x = residual.at(stream, stream.sites[0])
    x = x / np.maximum(x.std(axis=1, keepdims=True), 1e-12)
    w = e.draw(WIDTH, WIDTH) / np.sqrt(WIDTH)
    inward = x @ (e.draw(WIDTH, x.shape[1]) / np.sqrt(x.shape[1])).T
    lengths = {gain: _back(gain * w, inward) for gain in GAINS}
    steps = {gain: _a_step(found) for gain, found in lengths.items()}
    own, other = GAINS
    back = len(inward) - 1
    return Measured(
        steps[own],
        f"A recurrent network of width {WIDTH}, its weights at random with a gain of {own:g}, read this text’s embeddings. From the last state back over {back} tokens the gradient comes to {number(lengths[own][-1])} of itself, × {steps[own]:.2f} a token. The gain decides: at {other:g}, with the same tanh, it is × {steps[other]:.2f} a token.",
        tuple(
            (
                f"{at} back; at a gain of {other:g}",
                f"{number(lengths[own][at])}; {number(lengths[other][at])}",
            )
            for at in sorted({1, 2, 5, 10, 20, back})
            if at <= back
        ),
    )


def _back(w: np.ndarray, inward: np.ndarray) -> list[float]:
    """The length of a gradient at the last state of a tanh network, and at each one before it, that one first; inward (token, width)."""
    h, states = np.zeros(len(w)), []
    for each in inward:
        h = np.tanh(w @ h + each)
        states.append(h)
    gradient = np.ones(len(w)) / np.sqrt(len(w))
    found = [1.0]
    for h in states[:0:-1]:
        gradient = w.T @ ((1 - h**2) * gradient)
        found.append(float(np.linalg.norm(gradient)))
    return found


def _a_step(lengths: list[float]) -> float:
    """The mean factor a step, up to where the numbers underflow."""
    alive = [at for at, value in enumerate(lengths) if value > 1e-280][-1]
    return lengths[alive] ** (1 / alive) if alive else 0.0
