"""Linear layers by oneDNN: the numbers of torch's own, and only where they may stand for them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tolerances import PASSED, SUMMED

from models.network import linear, own_model
from models.network.config import Config
from models.network.linear import Linear, input_major
from models.network.own_model import optimise_layout
from models.network.transformer import Encoder

SMALL = Config(50, 24, 2, 4, 40, 300, activation="gelu")

needs_onednn = pytest.mark.skipif(linear._onednn_linear is None, reason="a torch without oneDNN")


@pytest.fixture(autouse=True)
def paying(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for large matrices on a processor that has AVX-512."""
    monkeypatch.setattr(linear, "_uses_onednn", True)
    monkeypatch.setattr(linear, "LARGE", 1)
    monkeypatch.setattr(own_model, "HAS_AVX512", True)  # lays out what both write with, too


def test_a_linear_layer() -> None:
    """Where texts have any length, and NaN stays NaN: nothing hides an overflow."""
    torch.manual_seed(0)
    layer = Linear(24, 40)
    layer.lay_out()
    for n in (1, 2, 3, 5, 17, 64, 100, 256):
        x = torch.randn(n, 24)
        expected = x.double() @ layer.weight.double().T + layer.bias.double()
        with torch.inference_mode():
            assert (layer(x) - expected).abs().max() < PASSED
            assert layer(x * float("nan")).isnan().all()


@needs_onednn
@pytest.mark.parametrize("shape", ({}, {"n_key_head": 2}, {"bias_qkv": False, "bias_ffn": False}))
def test_a_pass_is_the_same_with_and_without(shape, monkeypatch):
    torch.manual_seed(0)
    model = Encoder(replace(SMALL, **shape)).eval()
    optimise_layout(model)
    ids = torch.randint(50, (2, 19))
    products, onednn_product = [], linear.onednn_product

    def counted(*arguments: object) -> torch.Tensor:
        products.append(arguments)
        return onednn_product(*arguments)

    monkeypatch.setattr(linear, "onednn_product", counted)
    with torch.inference_mode():
        output = model(ids)
        assert len(products) == 6 * SMALL.n_layer  # q, k and v; W_O; the units; what they write
        monkeypatch.setattr(linear, "LARGE", 10**9)
        assert (output - model(ids)).abs().max() < SUMMED
        assert len(products) == 6 * SMALL.n_layer


@needs_onednn
def test_the_readout_has_the_numbers_of_a_plain_product():
    torch.manual_seed(0)
    model = Encoder(SMALL).eval()
    matrix, bias = model.readout()
    torch.nn.init.normal_(bias)
    for n in (1, 2, 3, 19):
        x = torch.randn(n, 24)
        with torch.inference_mode():
            expected = x.double() @ matrix.double().T + bias.double()
            assert (model.logits(x) - expected).abs().max() < PASSED


@needs_onednn
def test_a_gradient_goes_through_torchs_own_layers():
    model = Encoder(SMALL)
    optimise_layout(model)
    weight = model.layers[0].feed_forward.w_1.weight
    with torch.inference_mode():
        assert linear.use_onednn(torch.zeros(1, 5, 24), weight)
    assert not linear.use_onednn(torch.zeros(1, 5, 24), weight)
    model(torch.tensor([[1, 2, 3]])).sum().backward()
    assert weight.grad is not None


@needs_onednn
def test_one_row_longer_texts_and_other_numbers_are_left_to_torch():
    weight = input_major(torch.zeros(40, 24))
    with torch.inference_mode():
        assert linear.use_onednn(torch.zeros(256, 24), weight)
        assert not linear.use_onednn(torch.zeros(257, 24), weight)
        assert not linear.use_onednn(torch.zeros(1, 24), weight)  # the next token of a text
        assert not linear.use_onednn(torch.zeros(5, 24, dtype=torch.float64), weight)
        assert linear.use_onednn(torch.zeros(2, 24), torch.zeros(40, 24))
