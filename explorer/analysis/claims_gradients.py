"""Claims about gradients, along layers and along tokens."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from explorer.analysis import residual
from explorer.analysis.claims_stream import layers_of
from explorer.analysis.evidence import TRIED, Evidence, Measured, Untestable, number
from explorer.analysis.grounds import at_least, enough, factor, text_places, tried, writer
from explorer.analysis.numbers import fixed

WIDTH = 64  # of the recurrent network
NETWORKS = 20  # whose weights are drawn; a number is their median
# The size of its weights: the first decides, the second shows how much hangs on it.
GAINS = (1.0, 2.0)
NEAR_AND_FAR = 8  # tokens that a text must have before near and far differ


def identity_plus(e: Evidence) -> Measured:
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


def _deep(e: Evidence, switch: str) -> Measured:
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


def gradient_with(e: Evidence) -> Measured:
    """The same with residual connections: the worse of with LayerNorm and without."""
    return _deep(e, "residual on")


def gradient_without(e: Evidence) -> Measured:
    """The same without residual connections: the milder of with LayerNorm and without."""
    return _deep(e, "residual off")


def far_words(e: Evidence) -> Measured:
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


def recurrent_fades(e: Evidence) -> Measured:
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
