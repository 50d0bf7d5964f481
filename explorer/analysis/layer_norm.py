"""LayerNorm in numbers: what stands before and after it, its steps at one token, and BatchNorm
beside it.

Every number is computed in float64 from a Recording's sites; gains and biases are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from explorer.analysis.csv import Columns
from explorer.analysis.residual import Column, Grid, Measure, at, degrees, norms_of
from models.recording import Stream

STAGES = ("sum", "− μ", "÷ σ", "× gain", "+ bias")
STAGES_OF_RMS = ("sum", "÷ rms", "× gain", "+ bias")
NORMS = (
    Measure("Sigma before", "the spread σ of the components before the norm", "", 3, spread=True),
    Measure("Mean before", "the mean μ of the components before the norm", "", 3, None, None, True),
    Measure("Sigma after", "the spread of the components after the norm, gain and bias", "", 3),
    Measure(
        "Mean after",
        "the mean of the components after the norm, gain and bias",
        "",
        3,
        None,
        None,
        True,
    ),
)


def norm_grid(stream: Stream, measure: str, norm: str = "norm") -> Grid:
    """A measure of NORMS for every token and norm; `norm`: what these are called. Raises
    StopIteration for a measure that does not exist."""
    of = next(each for each in NORMS if each.name == measure)
    what, _, when = measure.partition(" ")
    found = norms_of(stream)
    sites = [each.before if when == "before" else each.after for each in found]
    reduce = np.std if what == "Sigma" else np.mean
    values = [reduce(at(stream, site), axis=-1) for site in sites]
    columns = tuple(Column(each.group, each.label, f"{norm}, {each.name}") for each in found)
    return Grid(
        of, columns, np.stack(values, axis=1) if values else np.empty((len(stream.tokens), 0))
    )


Norms = Mapping[str, tuple[np.ndarray, np.ndarray, float, bool]]


def normalised(x: np.ndarray, eps: float, centred: bool = True) -> np.ndarray:
    """(x - mean) / sqrt(variance + eps) over the last axis: LayerNorm without gain and bias; where
    not `centred` x / sqrt(mean square + eps), RMSNorm."""
    x = x.astype(np.float64)
    x = x - x.mean(-1, keepdims=True) if centred else x
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def norm_error(stream: Stream, norms: Norms) -> float:
    """The largest |LayerNorm(what stood before) - what was recorded after it| over all tokens and
    LayerNorms. norms: gain, bias (d_model), eps and whether the mean is subtracted, by site."""
    worst = 0.0
    for each in norms_of(stream):
        gain, bias, eps, centred = norms[each.site]
        worst = max(
            worst,
            float(
                np.abs(
                    normalised(at(stream, each.before), eps, centred) * gain
                    + bias
                    - at(stream, each.after)
                ).max()
            ),
        )
    return worst


def stages(stream: Stream, norms: Norms, site: str, token: int) -> Columns:
    """One norm at one token, step by step, as named columns: the mean, sigma and length after each
    of STAGES, of an RMSNorm after each of STAGES_OF_RMS, the last left out where it has no bias.
    "sum": what it takes."""
    each = next(one for one in norms_of(stream) if one.site == site)
    gain, bias, eps, centred = norms[site]
    x = at(stream, each.before)[token]
    normed = normalised(x, eps, centred)
    steps = [
        x,
        *([x - x.mean()] if centred else []),
        normed,
        normed * gain,
        *([normed * gain + bias] if centred or bias.any() else []),
    ]
    return {
        "step": (STAGES if centred else STAGES_OF_RMS)[: len(steps)],
        "mean μ": [round(float(step.mean()), 9) + 0.0 for step in steps],
        "spread σ": [float(step.std()) for step in steps],
        "length": [float(np.linalg.norm(step)) for step in steps],
        "turned from the sum °": [float(degrees(x, step)) for step in steps],
    }


@dataclass(frozen=True, eq=False)
class Change:
    """What one token's change does to every token, |y' - y| (token), where y is normalised over
    features (layer) or over tokens (batch)."""

    token: int
    times: float
    layer: np.ndarray
    batch: np.ndarray


def change(
    stream: Stream, site: str, token: int, times: float, eps: float, centred: bool = True
) -> Change:
    """The recorded vectors before the LayerNorm `site`, `token`'s multiplied by `times`, normalised
    both ways, without gain and bias.

    Over features: each token by its own mean and variance (LayerNorm; where not `centred` by its
    mean square, RMSNorm). Over tokens: each feature by
    its mean and variance over the tokens of this text (BatchNorm as in training, the text being the
    batch).
    """
    x = at(stream, next(each.before for each in norms_of(stream) if each.site == site))
    changed = x.copy()
    changed[token] *= times
    moved = [
        np.linalg.norm(how(changed) - how(x), axis=-1)
        for how in (lambda v: normalised(v, eps, centred), lambda v: normalised(v.T, eps).T)
    ]
    return Change(token, times, *moved)


def worst_other(values: np.ndarray, token: int) -> tuple[int, float] | None:
    """(token, value) of the largest value at another token than `token`; None where there is no
    other."""
    if len(values) < 2:
        return None
    others = values.copy()
    others[token] = -np.inf
    return int(others.argmax()), float(others.max())
