"""Products by oneDNN: the numbers of torch's own layers, and only where they may stand for them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tolerances import PASSED, SUMMED

from models import attention, layers, own_model, transformer
from models.attention import input_major
from models.config import ACTIVATIONS, Config
from models.own_model import optimise_layout
from models.transformer import Encoder

SMALL = Config(50, 24, 2, 4, 40, 300, activation="gelu")

pytestmark = pytest.mark.skipif(layers._onednn_linear is None, reason="a torch without oneDNN")


@pytest.fixture(autouse=True)
def paying(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for large matrices on a processor that has AVX-512."""
    monkeypatch.setattr(layers, "_uses_onednn", True)
    monkeypatch.setattr(layers, "LARGE", 1)
    monkeypatch.setattr(own_model, "HAS_AVX512", True)  # lays out what both write with, too


@pytest.mark.parametrize("activation", ["", *ACTIVATIONS])
@pytest.mark.parametrize("n", [1, 17, 64, 100, 256])
def test_a_product_is_the_layer_and_its_activation(n, activation):
    torch.manual_seed(n)
    x, weight, bias = torch.randn(n, 24), input_major(torch.randn(40, 24)), torch.randn(40)
    wanted = x.double() @ weight.double().T + bias.double()
    if activation:
        wanted = ACTIVATIONS[activation](wanted)
    with torch.inference_mode():
        made = layers.product(layers.pad_rows(x), weight, bias, activation)[:n]
    assert (made - wanted).abs().max() < PASSED


def test_few_numbers_of_rows_are_met():
    """A text of any length, up to the longest, is one of 20 sizes."""
    lengths = {len(layers.pad_rows(torch.zeros(n, 2))) for n in range(1, 257)}
    assert len(lengths) == 20 and max(lengths) == 256


@pytest.mark.parametrize("shape", ({}, {"n_key_head": 2}, {"bias_qkv": False, "bias_ffn": False}))
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_pass_is_the_same_with_and_without(activation, shape, monkeypatch):
    torch.manual_seed(0)
    model = Encoder(replace(SMALL, activation=activation, **shape)).eval()
    optimise_layout(model)
    ids = torch.randint(50, (2, 19))
    asked = []

    def product(*given):
        asked.append(given)
        return layers.product(*given)

    for module in (attention, transformer):
        monkeypatch.setattr(module, "product", product)
    with torch.inference_mode():
        made = model(ids)
        assert len(asked) == 3 * SMALL.n_layer  # q, k and v; the units; what they write
        monkeypatch.setattr(layers, "LARGE", 10**9)
        assert (made - model(ids)).abs().max() < SUMMED
        assert len(asked) == 3 * SMALL.n_layer


@pytest.mark.parametrize("activation", ["", *ACTIVATIONS])
def test_what_is_no_number_stays_none(activation):
    """An overflow is told where it began."""
    x, weight = torch.full((8, 24), float("nan")), input_major(torch.ones(40, 24))
    with torch.inference_mode():
        assert layers.product(x, weight, None, activation).isnan().all()


def test_a_gradient_goes_through_torchs_own_layers():
    model = Encoder(SMALL)
    optimise_layout(model)
    weight = model.layers[0].feed_forward.w_1.weight
    with torch.inference_mode():
        assert layers.use_onednn(torch.zeros(1, 5, 24), weight)
    assert not layers.use_onednn(torch.zeros(1, 5, 24), weight)
    model(torch.tensor([[1, 2, 3]])).sum().backward()
    assert weight.grad is not None


def test_other_numbers_longer_texts_and_other_layouts_are_left_to_torch():
    weight = input_major(torch.zeros(40, 24))
    with torch.inference_mode():
        assert layers.use_onednn(torch.zeros(256, 24), weight)
        assert not layers.use_onednn(torch.zeros(257, 24), weight)
        assert not layers.use_onednn(torch.zeros(1, 24), weight)  # the next token of a text
        assert not layers.use_onednn(torch.zeros(5, 24, dtype=torch.float64), weight)
        assert not layers.use_onednn(torch.zeros(5, 24), torch.zeros(40, 24))
