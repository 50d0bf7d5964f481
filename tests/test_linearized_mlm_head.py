"""BERT's logits taken apart through its transform: the parts make the logit, and how far the slope
tells what happens is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from conftest import SMALL, sharpened
from tolerances import DOUBLE_LONG, PASSED, SUMMED

from models.network import own_model
from models.network.own_model import OwnModel, from_network
from models.network.transformer import Encoder
from models.readouts.logit_lens import trace_parts, transform_at

TEXT, TOKEN = "the cat sat on the mat", 2


@pytest.fixture(scope="module")
def berty(small_model: OwnModel) -> OwnModel:
    """A random encoder as BERT is built, with a transform before its words."""
    torch.manual_seed(5)
    config = replace(
        SMALL, activation="gelu", positions="learned", embedding_norm=True, readout="transform"
    )
    return from_network(
        sharpened(Encoder(config)), small_model.tokenizer, "berty", "random", "fp32"
    )


def test_a_part_is_the_gradient_with_sigma_held_and_the_share_is_measured_by_taking_parts_away(
    berty: OwnModel,
) -> None:
    recording, model, word = own_model.record(berty, TEXT), berty.network, 9
    traced = trace_parts(berty, recording, "encoder", TOKEN)
    vectors = torch.stack(list(traced.values()))
    last = vectors.sum(0)
    e = model.readout_matrix.detach().double()[word]
    weight, bias = model.transform.weight.double(), model.transform.bias.double()
    norm = model.transform_norm
    x = last.clone().requires_grad_()
    after = torch.nn.functional.gelu(weight @ x + bias)
    sigma = (after.var(unbiased=False) + norm.eps).sqrt().detach()
    logit = ((after - after.mean()) / sigma * norm.weight.double() + norm.bias.double()) @ e
    (gradient,) = torch.autograd.grad(logit, x)
    taken = berty.attribute(recording, "encoder", TOKEN, word)
    expected = float(berty.logits(recording, "encoder", TOKEN)[word])
    assert taken.logit == pytest.approx(expected, abs=PASSED) and not berty.capabilities.no_parts
    assert sum(part.value for part in taken.parts) == pytest.approx(expected, abs=PASSED)
    assert [part.kind for part in taken.parts].count("transform") == 1
    neurons = berty.neurons(recording, "encoder", 1, TOKEN, word)
    values = {(part.kind, part.layer, part.head): part.value for part in taken.parts}
    (ffn,) = (part.value for part in taken.parts if (part.kind, part.layer) == ("ffn", 1))
    assert neurons.part == pytest.approx(ffn, abs=DOUBLE_LONG)
    assert neurons.adds.sum() + neurons.bias == pytest.approx(neurons.part, abs=PASSED)
    told = []
    for (kind, layer, head, _), vector in traced.items():
        told.append(float((vector @ gradient).detach()))
        if kind != "bias":
            assert values[kind, layer, head] == pytest.approx(told[-1], abs=SUMMED)

    @torch.no_grad()
    def said(vector: torch.Tensor) -> float:
        return float(model.before_readout(vector.float()).double() @ e)

    change = [said(last) - said(last - vector) for vector in vectors]
    left = sum((one - other) ** 2 for one, other in zip(change, told))
    expected = 1 - left / sum(one**2 for one in change)
    assert taken.explained == pytest.approx(expected, abs=PASSED)
    assert 0 < taken.explained < 1 and transform_at(berty, last) is not None


def test_a_model_without_a_transform_has_no_bend(small_model: OwnModel) -> None:
    recording = own_model.record(small_model, TEXT)
    taken = small_model.attribute(recording, "encoder", TOKEN, 9)
    assert taken.explained == 1.0 and transform_at(small_model, torch.zeros(SMALL.d_model)) is None
