"""Going on from weights that are there: what begins anew, and what pays for resting."""

from __future__ import annotations

import pytest
import torch
from tolerances import SUMMED

from models.config import Config
from models.training import continued_training, masked
from models.transformer import Encoder

CONFIG = Config(n_vocab=50, d_model=32, n_layer=2, n_head=4, d_ff=64, n_positions=20)
IDS = torch.tensor([[4, 9, 11, 4, 30, 2, 7]])


@pytest.fixture
def model() -> Encoder:
    torch.manual_seed(0)
    made = Encoder(CONFIG)
    for weight in made.parameters():  # biases too, which begin at zero
        torch.nn.init.normal_(weight, std=0.3)
    return made.eval()


@torch.inference_mode()
def patterns(model: Encoder) -> torch.Tensor:
    """The attention of the first layer, (head, query, key)."""
    seen: list[torch.Tensor] = []

    def tape(name: str, tensor: torch.Tensor) -> None:
        if name.endswith(".pattern"):
            seen.append(tensor[0])

    model(IDS, tape=tape)
    return seen[0]


def test_heads_that_begin_anew_leave_the_others_alone(model: Encoder) -> None:
    fresh, heads = Encoder(CONFIG).eval(), patterns(model)
    attention, other = model.layers[0].attention, fresh.layers[0].attention
    continued_training.reset_heads(attention, other, {3: 1})
    torch.testing.assert_close(patterns(model)[:3], heads[:3], atol=SUMMED, rtol=0)
    ours, theirs = slice(24, 32), slice(8, 16)
    for name in ("w_q", "w_k", "w_v"):
        assert torch.equal(
            getattr(attention, name).weight[ours], getattr(other, name).weight[theirs]
        )
    assert torch.equal(attention.w_o.weight[:, ours], other.w_o.weight[:, theirs])
    assert not torch.allclose(patterns(model)[3], heads[3])


def test_heads_pay_for_a_sink_that_are_to() -> None:
    rests, even = torch.zeros(1, 2, 10, 10), torch.full((1, 2, 10, 10), 0.1)
    rests[..., 4] = 1
    sink = torch.cat([rests[:, :1], even[:, :1]], dim=1)  # head 0 rests on token 4, head 1 nowhere
    for paying, due in ([[0]], 1 - 0.24), ([[1]], 0.0), ([[0, 1]], (1 - 0.24) / 2):
        excess = masked.SinkExcess(paying)
        excess("layers.0.attn.pattern", sink)
        assert excess.mean().item() == pytest.approx(due, abs=SUMMED)
