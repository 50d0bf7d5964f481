"""Why the scale and why residual connections: the laws behind the pictures."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import read_once
from tolerances import SUMMED

from explorer.analysis import measure, soft_lookup
from models import registry
from models.readouts.gradients import (
    DEPTH_SEED,
    DEPTH_WIDTH,
    DRAWS,
    GAIN,
    _normal,
    _stack,
    depth,
    stack_gradients,
)

TEXT = "The animal didn't cross the street because it was too tired."


# ---- the scale ---------------------------------------------------------------


def test_the_variance_of_products_is_the_width_and_one_with_the_scale() -> None:
    found = soft_lookup.random_variance(measure.gaussian)
    # 6,000 products: their variance has a standard error of about sqrt(2 / 6,000), 1.8 %, more
    # where few terms make the tails heavy.
    assert found.variance / np.array(found.widths) == pytest.approx(1, abs=0.12)
    assert (np.diff(found.raw) > 0).all(), "the wider, the more one key takes without the scale"
    assert np.ptp(found.scaled) < 0.08 and found.raw[-1] > 0.9
    assert found.raw[0] > found.scaled[0] > 1 / found.keys


def test_a_models_own_widths_are_its_heads_side_by_side() -> None:
    attention = read_once("encoder").record(TEXT).attention[0]
    found = soft_lookup.model_variance(attention)
    q, k = (
        (each / np.sqrt((each.astype(float) ** 2).mean(axis=(2, 3), keepdims=True)))
        for each in (attention.q, attention.k)
    )
    whole = np.einsum("lhqd,lhkd->lqk", q, k)
    assert found.widths[-1] == q.shape[1] * q.shape[3]
    assert found.variance[-1] == pytest.approx(whole.var(axis=(1, 2)).mean())
    first = np.einsum("lqd,lkd->lqk", q[:, 0, :, :2], k[:, 0, :, :2])
    assert found.widths[0] == 2
    assert found.variance[0] == pytest.approx(first.var(axis=(1, 2)).mean())
    table = soft_lookup.variance_table(soft_lookup.random_variance(measure.gaussian), found)
    variance, width = (np.array(table[name]) for name in ("Var(q·k)", "width"))
    assert len(width) == 17 and {"random", "this model"} == set(table["vectors"])
    assert table["Var(q·k / √width)"] == pytest.approx(variance / width)


# ---- a deep stack ------------------------------------------------------------


@pytest.mark.slow
def test_a_gradient_of_the_stack_agrees_with_small_steps() -> None:
    """Three layers with residuals, by differences: the same stack, the same output."""
    vectors = np.random.default_rng(0).standard_normal((5, 48))
    found = stack_gradients(vectors, layers=3)
    generator = torch.Generator().manual_seed(DEPTH_SEED)
    stack = _stack(3, GAIN, generator)
    onto = _normal(generator, DRAWS, 48, DEPTH_WIDTH)[0]
    x = torch.nn.functional.layer_norm(torch.tensor(vectors) @ onto / 48**0.5, (DEPTH_WIDTH,))
    ends = _normal(generator, DRAWS, 5, DEPTH_WIDTH)[0]

    @torch.no_grad()
    def output(start: torch.Tensor) -> float:
        state = start[None]
        for layer in stack:
            state = layer(state, torch.ones(5, 5, dtype=torch.bool))
        return float((state[0] * ends).sum())

    step, slopes = 1e-6, []
    for at in range(5):
        for dimension in range(DEPTH_WIDTH):
            nudge = torch.zeros_like(x)
            nudge[at, dimension] = step
            slopes.append((output(x + nudge) - output(x - nudge)) / (2 * step))
    # Central differences of a smooth function in float64: an error of the order of the step
    # squared, and rounding over the step.
    assert found[0, 0, 0] == pytest.approx(np.linalg.norm(slopes), rel=SUMMED)
    shares = found[:, 0, 0] / found[:, 0, -1]
    assert depth(vectors, layers=3).norm[0, 0] == pytest.approx(np.median(shares))


@pytest.mark.slow
def test_without_residuals_the_gradient_vanishes_and_with_them_it_does_not() -> None:
    found = registry.depth(read_once("encoder").record(TEXT).streams[0].resid[0])
    left = {way: norm[0] / norm[-1] for way, norm in zip(found.ways, found.norm)}
    assert 24 <= found.layers <= 64
    assert 0.1 < left["residual on"] < 10 and 0.1 < left["residual on, no LayerNorm"] < 10
    assert left["residual off"] < 0.1 and left["residual off, no LayerNorm"] < 1e-30


# ---- beside an RNN -----------------------------------------------------------


@pytest.mark.slow
def test_the_gradient_at_the_lag_tells_the_lesson_and_not_its_reverse() -> None:
    """Trained to the end on 15 tokens: who has learned to look 8 back has most gradient there."""
    *_, last = registry.decay(range(15), 8)
    names = ("RNN", "LSTM", "Transformer")
    right = dict(zip(names, last.accuracy))
    at_lag = dict(zip(names, last.gradient[:, 8]))
    assert right["Transformer"] > 0.9 and right["RNN"] < 0.5
    assert at_lag["Transformer"] > 2 * at_lag["RNN"]
