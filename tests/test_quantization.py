"""Earlier weights are kept with fewer bits, and nobody sees it."""

from __future__ import annotations

import pytest
import torch

from models.network import own_model, quantization
from models.training import export

TEXT = "The animal didn't cross the street because it was too tired. My neighbour keeps parrots."


@pytest.mark.parametrize("bits", quantization.BITS)
def test_what_is_kept_comes_back_within_half_a_step(bits: tuple[int, int]) -> None:
    torch.manual_seed(0)
    state = {
        "a.feed_forward.w_1.weight": torch.randn(7, 64),
        "a.attention.w_q.weight": torch.randn(5, 96),
        "odd": torch.randn(3, 33),
        "a.bias": torch.randn(9),
        "nothing": torch.zeros(2, 64),
    }
    kept = quantization.quantize(state, bits)
    back = quantization.dequantize(kept)
    assert back.keys() == state.keys()
    assert kept["a.feed_forward.w_1.weight"].dtype == torch.int8
    names = ("a.attention.w_q.weight", "a.feed_forward.w_1.weight")
    for name, most in zip(names, (2 ** (each - 1) - 1 for each in bits)):
        runs = state[name].unflatten(1, (-1, quantization.RUN))
        # Half a step, and as much again for the rounding of the scale itself to fp16 (11 bits) at
        # the largest number.
        step = runs.abs().amax(-1, keepdim=True) / most
        error = (back[name].unflatten(1, (-1, quantization.RUN)) - runs).abs()
        assert (error <= step * (0.5 + most / 2048)).all()
    assert torch.equal(back["nothing"], state["nothing"])
    for name in ("odd", "a.bias"):
        assert torch.equal(back[name], state[name].half())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "translator"])
def test_patterns_of_coarse_weights_stay_within_a_hundredth(name: str) -> None:
    """Of the last weights, whose scores are the sharpest: what holds for them holds for earlier
    ones. On a text that is none of those by which they were made as coarse as they are."""
    model = own_model.load(name)
    network = own_model.KINDS[model.card.kind](model.network.config).eval()
    state = {key: tensor.clone() for key, tensor in model.network.state_dict().items()}
    kept = export.quantized(state, network, model.tokenizer)
    size = sum(tensor.nbytes for tensor in kept.values())
    assert size < 0.85 * sum(tensor.nbytes // 2 for tensor in state.values())
    network.load_state_dict(quantization.dequantize(kept))
    other = own_model.from_network(network, model.tokenizer, "coarse", fingerprint="")
    fine = own_model.record(model, TEXT)
    coarse = own_model.record(other, TEXT, target=export.decoder_ids(fine))
    assert export.max_difference(fine, coarse) <= 0.01


def test_weights_are_as_coarse_as_they_may_be_and_no_coarser() -> None:
    torch.manual_seed(0)
    state = {"a.weight": torch.randn(4, 64)}
    sizes = []
    for allowed in (1.0, 1e-2, 3e-3, 0.0):
        kept = quantization.coarsest(
            state, lambda back: (back["a.weight"] - state["a.weight"]).abs().max() <= allowed
        )
        back = quantization.dequantize(kept)["a.weight"].float()
        if allowed:
            assert (back - state["a.weight"]).abs().max() <= allowed
        sizes.append(sum(tensor.nbytes for tensor in kept.values()))
    assert sizes == sorted(set(sizes)), "each is larger than the one that may be further off"
    assert sizes[-1] == state["a.weight"].nbytes // 2, "fp16 where nothing coarser will do"
