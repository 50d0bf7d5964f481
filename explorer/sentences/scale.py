"""Why scores are divided by the root of d_k, in words."""

from __future__ import annotations

from explorer.analysis.numbers import power
from explorer.analysis.scale import Scale

LAW = (
    "**Why divide by √dₖ?** q·k is a sum of dₖ products. Of independent components with mean "
    "0 and variance 1 its variance is dₖ, so its size grows as √dₖ. "
    "A softmax of larger scores puts more of its weight on one key, and then hardly changes "
    "when scores do: learning slows. Divided by √dₖ the variance is 1 at every width."
)


def said(random: Scale, own: Scale | None, d_head: int) -> str:
    """What both pictures say at this model's own width, or the nearest one drawn."""
    at = min(range(len(random.widths)), key=lambda each: abs(random.widths[each] - d_head))
    width = random.widths[at]
    told = (
        f"**At width {width}**, of random vectors: Var(q·k) = "
        f"{power(float(random.variance[at]))}, with the scale "
        f"{power(float(random.variance[at] / width))}. "
        f"Of {random.keys:.0f} keys the largest takes {random.raw[at]:.2f} of the weight "
        f"without the scale, {random.scaled[at]:.2f} with it; an even row gives "
        f"{1 / random.keys:.2f}."
    )
    if own is None:
        return told
    end = len(own.widths) - 1
    return (
        f"{told} **This model’s** queries and keys, each component brought to a mean square "
        "of 1, are not independent: "
        f"over its heads’ {own.widths[end]} components side by side Var(q·k) = "
        f"{power(float(own.variance[end]))}, "
        f"{power(float(own.variance[end] / own.widths[end]))} times the width."
    )
