"""What gradients through layers and through tokens say, in words: results in, Markdown out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.analysis.formatting import percent, plural, power

MUCH = 10.0  # times; less than that is said to be little
CHANCE = 1 / 16  # of saying one of 16 symbols right


def times(value: float) -> str:
    """A factor as a person reads it; a dash where there is none."""
    return f"× {power(value)}" if np.isfinite(value) and value > 0 else "–"


def kept(norm: np.ndarray) -> float:
    """What is left of a gradient at the input, of that at the last state; norm (site). NaN where
    the last is 0."""
    return float(norm[0] / norm[-1]) if norm[-1] > 0 else float("nan")


def table(ways: Sequence[str], norm: np.ndarray) -> str:
    """The gradient at both ends, way by way, as a Markdown table; norm (way, site)."""
    rows = "\n".join(
        f"| {way} | {power(row[0])} | {power(row[-1])} | {times(kept(row))} |"
        for way, row in zip(ways, norm)
    )
    return f"| | at the input | at the last state | input / last |\n|---|--:|--:|--:|\n{rows}"


def verdict(way: str, left: float) -> str:
    """What became of one gradient, in words."""
    if not left > 0:
        return f"**{way}**: nothing of it is left"
    if left < 1 / MUCH:
        return f"**{way}**: it shrinks to {power(left)} of itself"
    if left > MUCH:
        return f"**{way}**: it grows {power(left)} times"
    return f"**{way}**: it keeps its size within a factor of {MUCH:.0f} ({times(left)})"


def highway(ways: Sequence[str], norm: np.ndarray, layers: int) -> str:
    """What the table of a trained model says, way by way, and how far that is the lesson; norm
    (way, site)."""
    found = {way: kept(row) for way, row in zip(ways, norm)}
    said = "On its way back, " + "; ".join(verdict(way, left) for way, left in found.items()) + "."
    off = [left for way, left in found.items() if way.startswith("residual off")]
    if off and all(1 / MUCH <= left <= MUCH for left in off):
        said += (
            f" So in {plural(layers, 'layer')} little is lost without residuals. A deep stack, "
            "below, shows what they are for."
        )
    elif off:
        said += " How much is lost in a deep stack, with random weights, stands below."
    return said


WHY = (
    "**Why a highway.** Without residuals the way back is a product of the layers’ "
    "Jacobians, ∂f₁ · ∂f₂ · …, and a long product shrinks or grows. With x + f(x) each factor is "
    "I + ∂f, and I carries the gradient whatever ∂f does: it keeps it from vanishing, not from "
    "growing."
)
# By what a norm divides a vector.
DIVIDES = {"LayerNorm": "its spread σ", "RMSNorm": "the root of its mean square"}


def why(norm: str) -> str:
    """What residuals are for, and what a norm of this name, "" for none, does to a gradient."""
    if not norm:
        return WHY
    by = DIVIDES.get(norm, "its size")
    return (
        f"{WHY} {norm[0].upper()}{norm[1:]} divides a vector by {by}, and so the gradient too: "
        "where that is small, without residuals, it hides a part of the shrinking."
    )


def deep(ways: Sequence[str], norm: np.ndarray) -> str:
    """What a deep stack shows; norm (way, layers + 1)."""
    return (
        "From the last layer to the input, "
        + "; ".join(verdict(way, kept(row)) for way, row in zip(ways, norm))
        + "."
    )


def stack(width: int, layers: int, tokens: int, gain: float, draws: int) -> str:
    """How the deep stack is made."""
    return (
        f"{layers} layers as in the paper (LayerNorm after each sum, no mask), {width} "
        f"numbers wide, {4} heads, on the first {plural(tokens, 'token')} of this text: "
        f"its embeddings, projected at random onto {width} numbers. Matrices Xavier-uniform "
        f"times {gain:g}, biases 0, nothing trained. "
        "The output is a sum of the last vectors’ products with random vectors. Projection and "
        f"output are drawn {draws} times, and every number is the median. The same "
        "weights in all four. At Xavier’s own size the gradient "
        "fades with LayerNorm after each sum too, and explodes without LayerNorm: such "
        "stacks are trained with a warm-up, or with LayerNorm in front."
    )


def decay(
    networks: Sequence[str],
    parameters: Sequence[int],
    before: np.ndarray,
    now: np.ndarray,
    right: np.ndarray,
    loss: np.ndarray,
    lag: int,
) -> str:
    """Three networks that learn to say the token `lag` back, as a Markdown table: the gradient
    there and what they make of it.

    before, now (network, distance): the gradient's length; right, loss (network).
    """
    rows = "\n".join(
        f"| {name} | {size:,} | {power(float(a[lag]))} | **{power(float(b[lag]))}** | "
        f"**{percent(float(share))}** | {bad:.2f} |"
        for name, size, a, b, share, bad in zip(networks, parameters, before, now, right, loss)
    )
    return (
        f"| | parameters | gradient {lag} back, before | gradient {lag} back, now | said "
        "right | loss in nats |\n"
        f"|---|--:|--:|--:|--:|--:|\n{rows}"
    )


def lesson(networks: Sequence[str], now: np.ndarray, right: np.ndarray, lag: int) -> str:
    """What the table says: who has learned the task, and how much gradient reaches the token it
    needs."""
    learned = [at for at, share in enumerate(right) if share > 0.9]
    lost = [at for at, share in enumerate(right) if share < 3 * CHANCE]
    if not learned:
        return (
            f"None has learned to say the token {lag} back yet; the best says "
            f"{percent(float(right.max()))} right."
        )
    said = " and ".join(networks[at] for at in learned)
    more = f"**{said}** {'have' if len(learned) > 1 else 'has'} learned it"
    if lost:
        best, worst = max(learned, key=lambda at: right[at]), min(lost, key=lambda at: now[at][lag])
        more += (
            f"; **{' and '.join(networks[at] for at in lost)}** "
            f"{'are' if len(lost) > 1 else 'is'} near chance"
        )
        if now[worst][lag] > 0 and now[best][lag] > now[worst][lag]:
            more += (
                f". {lag} tokens back the gradient of the {networks[best]} is "
                f"{power(float(now[best][lag] / now[worst][lag]))} times that of the "
                f"{networks[worst]}"
            )
    return more + "."
