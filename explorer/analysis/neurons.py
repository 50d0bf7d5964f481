"""The neurons of an FFN in a logit, ready to be shown: which FFN to open, what its neurons come to
together, when one fires, tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis.csv import Cells, Columns
from models.prediction import Attribution, Part
from models.prediction import Neurons as Neurons  # for the floors above

MOST_BARS = 12
FIRES = 0.5  # of a neuron's largest activation: from there on a token counts as one it fires at


def ffns(attribution: Attribution) -> dict[int, Part]:
    """The FFNs that have a part in a logit, by layer."""
    return {part.layer: part for part in attribution.parts if part.kind == "ffn"}


def strongest_ffn(attribution: Attribution) -> int:
    """The layer of the FFN whose part is the largest, up or down."""
    found = ffns(attribution)
    return max(found, key=lambda layer: abs(found[layer].value))


@dataclass(frozen=True)
class Together:
    """What the neurons of an FFN come to: how many push the word up and down and by how much, and
    how few of them do half of all that pushing, up and down together."""

    n: int
    n_up: int
    up: float
    n_down: int
    down: float
    half: int


def together(of: Neurons) -> Together:
    """The sums over all neurons."""
    up, down = of.adds[of.adds > 0], of.adds[of.adds < 0]
    share = np.cumsum(np.sort(np.abs(of.adds))[::-1])
    half = int(np.searchsorted(share, share[-1] / 2)) + 1 if share[-1] else 0
    return Together(len(of.adds), len(up), float(up.sum()), len(down), float(down.sum()), half)


def rank_of(of: Neurons, neuron: int | None) -> int:
    """The place of a neuron among the strongest, 0 for one that is not among those shown."""
    shown = of.strongest[:MOST_BARS].tolist()
    return shown.index(neuron) if neuron in shown else 0


def others(of: Neurons) -> tuple[int, float]:
    """How many neurons are not shown, and what they add together."""
    left = np.delete(of.adds, of.strongest[:MOST_BARS])
    return len(left), float(left.sum())


def fires(of: Neurons, rank: int) -> np.ndarray:
    """At which tokens one of the strongest neurons fires, (token) bool: where its activation is at
    least FIRES of its largest, by size."""
    size = np.abs(of.fires[rank])
    return (size >= FIRES * size.max()) & (size > 0)


def table(of: Neurons) -> Columns:
    """Every neuron as named columns, those that add or take most first."""
    order = np.argsort(-np.abs(of.adds), kind="stable")
    return {
        "neuron": order,
        "activation": of.activation[order],
        "length of what it writes": of.length[order],
        "adds to the logit": of.adds[order],
    }


def file(of: Neurons) -> Columns:
    """The same with the bias, their sum and the FFN's part in the last rows."""
    ends: dict[str, Cells] = {
        "neuron": ["bias", "sum", "the FFN’s part"],
        "adds to the logit": [of.bias, float(of.adds.sum()) + of.bias, of.part],
    }
    return {
        name: [*np.asarray(values).tolist(), *ends.get(name, (None,) * 3)]
        for name, values in table(of).items()
    }
