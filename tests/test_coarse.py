"""Earlier weights are kept with fewer bits, and nobody sees it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models import coarse, own

TEXT = "The animal didn't cross the street because it was too tired. My neighbour keeps parrots."


def test_what_is_kept_comes_back_within_half_a_step() -> None:
    torch.manual_seed(0)
    state = {
        "a.feed_forward.w_1.weight": torch.randn(7, 64),
        "a.attention.w_q.weight": torch.randn(5, 96),
        "odd": torch.randn(3, 33),
        "a.bias": torch.randn(9),
        "nothing": torch.zeros(2, 64),
    }
    kept = coarse.coarsened(state)
    back = coarse.restored(kept)
    assert back.keys() == state.keys()
    assert kept["a.feed_forward.w_1.weight"].dtype == torch.int8
    for name, most in (("a.feed_forward.w_1.weight", 127), ("a.attention.w_q.weight", 2047)):
        runs = state[name].unflatten(1, (-1, coarse.RUN))
        # Half a step, and as much again for the rounding of the scale itself to fp16 (11 bits) at
        # the largest number.
        step = runs.abs().amax(-1, keepdim=True) / most
        error = (back[name].unflatten(1, (-1, coarse.RUN)) - runs).abs()
        assert (error <= step * (0.5 + most / 2048)).all()
    assert torch.equal(back["nothing"], state["nothing"])
    for name in ("odd", "a.bias"):
        assert torch.equal(back[name], state[name].half())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "decoder", "translator"])
def test_patterns_of_coarse_weights_stay_within_a_hundredth(name: str) -> None:
    """Of the last weights, whose scores are the sharpest: what holds for them holds for earlier
    ones."""
    handle = own.load(name)
    model = own.KINDS[handle.card.kind](handle.model.config)
    model.load_state_dict(coarse.restored(coarse.coarsened(handle.model.state_dict())))
    other = own.handle_of(model.eval(), handle.tokenizer, "coarse", fingerprint="")
    fine = own.record(handle, TEXT)
    rough = own.record(other, TEXT, target=fine.target or None)
    for one, two in zip(fine.attention, rough.attention):
        assert np.abs(one.pattern - two.pattern).max() <= 0.01
