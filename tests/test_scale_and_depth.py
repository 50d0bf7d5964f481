"""Why the scale and why residual connections: the laws behind the pictures."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import read_once
from tolerances import STORED, SUMMED

from explorer.analysis import measure, soft_lookup
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
from models.runtime import registry

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


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_a_models_own_scale_is_that_of_its_scores_and_weights(model: str) -> None:
    attention = read_once(model).record(TEXT).attention[0]
    found, d = soft_lookup.model_variance(attention), attention.q.shape[-1]
    allowed = attention.allowed[0]
    rows = allowed.sum(axis=1) > 1
    q, k = attention.q.astype(float), np.asarray(attention.k).astype(float)
    products = (q @ k.swapaxes(2, 3))[:, :, rows]
    variance = np.median(products[..., allowed[rows]].var(axis=-1))
    assert found.widths == (d,) and found.variance[0] == pytest.approx(variance)
    assert found.divided[0] == pytest.approx(variance / d)
    assert found.scaled[0] == pytest.approx(
        attention.pattern[:, :, rows].max(-1).mean(), abs=STORED
    )
    e = np.where(allowed[rows], np.exp(products - products.max(-1, keepdims=True)), 0)
    largest = (e / e.sum(-1, keepdims=True)).max(-1)
    assert found.raw[0] == pytest.approx(largest.mean(), abs=STORED) and found.raw > found.scaled
    table = soft_lookup.variance_table(soft_lookup.random_variance(measure.gaussian), found)
    assert table["Var(q·k) with the scale"][-1] == pytest.approx(table["Var(q·k)"][-1] / d)


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
