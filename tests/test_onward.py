"""Going on from weights that are there: what is put in another order computes the same."""

from __future__ import annotations

import pytest
import torch
from bounds import SUMMED

from models.config import Config
from models.training import onward
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


@torch.inference_mode()
def test_heads_in_another_order_say_the_same(model: Encoder) -> None:
    before, heads = model.logits(model(IDS)), patterns(model)
    order = [2, 0, 3, 1]
    onward.reorder(model.layers[0].attention, order)
    torch.testing.assert_close(model.logits(model(IDS)), before, atol=SUMMED, rtol=0)
    torch.testing.assert_close(patterns(model), heads[order], atol=SUMMED, rtol=0)


@torch.inference_mode()
def test_heads_that_begin_anew_leave_the_others_alone(model: Encoder) -> None:
    fresh, heads = Encoder(CONFIG).eval(), patterns(model)
    onward.renew(model.layers[0].attention, fresh.layers[0].attention, (1, 3))
    now = patterns(model)
    torch.testing.assert_close(now[[0, 2]], heads[[0, 2]], atol=SUMMED, rtol=0)
    rows = slice(CONFIG.d_head, 2 * CONFIG.d_head)
    attention, other = model.layers[0].attention, fresh.layers[0].attention
    assert torch.equal(attention.w_q.weight[rows], other.w_q.weight[rows])
    assert torch.equal(attention.w_o.weight[:, rows], other.w_o.weight[:, rows])
    assert not torch.equal(attention.w_q.weight[: CONFIG.d_head], other.w_q.weight[: CONFIG.d_head])
