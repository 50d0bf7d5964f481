"""The loss of a text and one step of training: against torch's own cross-entropy, autograd and
optimiser."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from explorer.analysis.measure import MeasureContext
from explorer.figures.formatting import fixed
from explorer.panels import loss
from models.contract.edits import HideToken
from models.example_texts import EXAMPLES
from models.readouts.gradients import last_vectors
from models.runtime.run import Run
from models.shipped_models import names
from tests.tolerances import PASSED, STORED, SUMMED, TOTAL, TWO_DECIMALS

NEPAL, SOUP = EXAMPLES["Shyam from Nepal"], EXAMPLES["Cold soup"]
RUNS = {
    "decoder": Run("decoder", NEPAL),
    "encoder": Run("encoder", SOUP, (HideToken(7),)),
    "translator": Run("translator-small", EXAMPLES["Red car"]),
}


@pytest.fixture(params=RUNS)
def run(request) -> Run:
    return RUNS[request.param]


def scores(network, context: MeasureContext) -> torch.Tensor:
    """The network's scores at each target, with their gradient."""
    model = replace(context.model.uncached, network=network)
    places = [at for at, _ in context.targets]
    return network.logits(last_vectors(model, context.recording)[0, places])


def right(context: MeasureContext) -> torch.Tensor:
    return torch.tensor([id for _, id in context.targets])


def test_the_loss_is_torchs_cross_entropy_and_the_mean_of_what_stands_under_the_words(run):
    context = MeasureContext.of(run)
    panel = loss.loss(run)
    with torch.no_grad():
        each = F.cross_entropy(
            scores(context.model.uncached.network, context), right(context), reduction="none"
        )
    assert panel.table["−ln p"] == pytest.approx(each.numpy(), rel=PASSED, abs=PASSED)
    assert f"{each.mean():.2f}" in panel.finding
    row = panel.figures[0]
    under = [text for text in row.texts if text]
    order = np.argsort(each.numpy())
    shown = row.weights[[at for at, text in enumerate(row.texts) if text]]
    assert (np.diff(shown[order]) >= 0).all(), "the darker, the larger the loss"
    assert [float(text) for text in under] == pytest.approx(each.numpy(), abs=TWO_DECIMALS)


def test_the_gradient_at_the_readout_is_that_of_autograd(run):
    context, panel = MeasureContext.of(run), loss.loss(run)
    given = scores(context.model.uncached.network, context).detach().requires_grad_()
    F.cross_entropy(given, right(context), reduction="sum").backward()
    facts, bars = panel.figures[1].figures
    each = panel.table["−ln p"]
    at = int(np.argmax(each)) if len(each) > 1 else 0
    assert [fact[0] for fact in facts.facts] == [fixed(each[at]), fixed(each.mean())]
    of = given.grad[at].numpy()
    assert bars.rows[0].values[1] == pytest.approx(of[context.targets[at][1]], abs=SUMMED)
    listed = sum(row.values[1] for row in bars.rows[:-1])
    assert sum(row.values[1] for row in bars.rows) == pytest.approx(0, abs=STORED)
    assert bars.rows[-1].values[1] == pytest.approx(-listed, abs=STORED)


@pytest.mark.parametrize("rate", (0.001, 0.1))
def test_one_step_is_one_step_of_torchs_optimiser(run, rate):
    context = MeasureContext.of(run)
    model = context.model.uncached
    kept = {name: each.clone() for name, each in model.network.state_dict().items()}
    done = context.model.training_step(
        context.recording, context.targets, rate, context.recording, context.targets
    )
    network = deepcopy(model.network).requires_grad_()
    optimiser = torch.optim.SGD(network.parameters(), lr=rate)
    F.cross_entropy(scores(network, context), right(context)).backward()
    old = [each.detach().clone() for each in network.parameters()]
    optimiser.step()
    with torch.no_grad():
        after = scores(network, context).numpy()
    changes = [each.detach() - before for each, before in zip(network.parameters(), old)]
    assert done.scores[1] == pytest.approx(after[-1], rel=TOTAL, abs=TOTAL)
    nats = F.cross_entropy(torch.tensor(after), right(context), reduction="none").numpy()
    assert done.losses[1] == pytest.approx(nats, rel=TOTAL, abs=TOTAL)
    # A weight whose move is as small as its last digit may stay in one of the two.
    assert done.moved == pytest.approx(sum(int(each.count_nonzero()) for each in changes), rel=0.01)
    assert done.largest == pytest.approx(
        max(float(each.abs().max()) for each in changes), rel=TOTAL
    )
    moved = max(changes, key=lambda each: float(each.abs().max()))
    before, gradient, now = done.weight
    assert now - before == pytest.approx(-rate * gradient, rel=TOTAL)
    assert abs(now - before) == pytest.approx(float(moved.abs().max()), rel=TOTAL)
    assert done.weights == sum(each.numel() for each in network.parameters())
    assert np.array_equal(done.losses, done.others)
    now = model.network.state_dict()
    assert all(torch.equal(each, now[name]) for name, each in kept.items())


@pytest.mark.parametrize("name", names())
def test_a_small_step_lowers_the_loss_by_the_rate_times_the_squared_gradient(name):
    context = MeasureContext.of(loss.losses(Run(name, "the dog saw the dog")).context.run)
    rate = 1e-4
    done = context.model.training_step(
        context.recording, context.targets, rate, context.recording, context.targets
    )
    before, after = map(float, done.losses.mean(axis=1))
    length = done.length / rate
    # To first order: the curvature of the loss is left out.
    assert before - after == pytest.approx(rate * length**2, rel=0.35, abs=STORED)


def test_the_bars_say_what_the_step_did():
    panel = loss.step(RUNS["decoder"], rate=0.001)
    bars = panel.figures[1].figures[0]
    came = bars.rows[0]
    at = int(np.argmax(panel.table["−ln p before"]))
    assert came.selected and came.label == panel.table["word that came"][at] == "therefore"
    assert came.values[0] > came.outline
    assert len({*came.texts[0].split(" → ")}) == 2, "the gain is seen"
    assert panel.table["−ln p after"][at] == pytest.approx(-np.log(came.values[0]))
    assert np.mean(panel.table["−ln p after"]) < np.mean(panel.table["−ln p before"])


def test_a_step_that_is_too_long_is_said_to_be():
    assert "too long" in loss.step(RUNS["decoder"], rate=0.1).finding
    assert "too long" not in loss.step(RUNS["decoder"], rate=0.001).finding


def test_a_press_hides_another_word_of_a_model_that_fills_in_words():
    run = Run("encoder", SOUP)
    row = loss.loss(run, 5).figures[0]
    assert row.tokens[5] == "soup" and row.selected == 5 and row.keys[7] == "7"
    assert [at for at, text in enumerate(row.texts) if text] == [5]


def test_a_text_without_a_target_and_a_rate_that_is_none_are_refused():
    with pytest.raises(ValueError, match="two tokens"):
        loss.loss(Run("decoder", ""))
    context = MeasureContext.of(RUNS["decoder"])
    for rate in (0.0, -1.0, float("inf")):
        with pytest.raises(ValueError, match="learning rate"):
            context.model.training_step(
                context.recording, context.targets, rate, context.recording, context.targets
            )
