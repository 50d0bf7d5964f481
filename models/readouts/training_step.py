"""One step of gradient descent on a text, on a copy of a model: what the loss was and became, and
how far the weights moved."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from models.contract.recording import Recording
from models.contract.results import TrainingStep
from models.network.own_model import OwnModel
from models.readouts.gradients import expect_loss, last_vectors
from models.readouts.logit_lens import AT_ONCE

Targets = Sequence[tuple[int, int]]


def training_step(
    model: OwnModel,
    recording: Recording,
    targets: Targets,
    rate: float,
    other: Recording,
    other_targets: Targets,
) -> TrainingStep:
    """One step W - rate dL/dW of every weight of a copy, L the mean of -ln p(target) on a
    recording; before and after it -ln p of the targets there and on another recording.

    Raises ValueError for no target and one that is not there, for a model without a readout, and
    for a run into which something of another was put.
    """
    expect_loss(model, recording, targets)
    expect_loss(model, other, other_targets)
    copy = replace(model, network=deepcopy(model.network).requires_grad_())
    moved, most, squares = 0, (0.0, 0.0, 0.0), 0.0
    with torch.enable_grad():
        before, scores = _losses(copy, recording, targets, backwards=True)
    with torch.inference_mode():
        other_before, _ = _losses(copy, other, other_targets)
        for weight in copy.network.parameters():
            if weight.grad is None:  # of a part that this text does not use
                continue
            old = weight.clone()
            weight.add_(weight.grad, alpha=-rate)
            change = (weight - old).double()
            moved += int(change.count_nonzero())
            at = int(change.abs().argmax())
            if float(change.flatten()[at].abs()) > abs(most[2] - most[0]):
                before_at, slope, now = (
                    float(each.flatten()[at]) for each in (old, weight.grad, weight)
                )
                most = before_at, slope, now
            weight.grad = None
            squares += float(change.square().sum())
        after, scores_after = _losses(copy, recording, targets)
        other_after, _ = _losses(copy, other, other_targets)
    return TrainingStep(
        losses=torch.stack((before, after)).numpy(),
        others=torch.stack((other_before, other_after)).numpy(),
        scores=torch.stack((scores, scores_after)).numpy(),
        moved=moved,
        weights=model.card.n_parameters,
        length=squares**0.5,
        weight=most,
        rate=rate,
    )


def _losses(
    model: OwnModel, recording: Recording, targets: Targets, backwards: bool = False
) -> tuple[Tensor, Tensor]:
    """-ln p of each target (target), and the scores at the last of them (id); backwards: the
    gradient of the mean is added to every weight. Few targets at a time, since scores are as many
    as words."""
    places, ids = (torch.tensor(each) for each in zip(*targets))
    last = last_vectors(model, recording)[0, places]
    rows = last.detach().requires_grad_(backwards)
    losses, scores = [], Tensor()
    for some, right in zip(rows.split(AT_ONCE), ids.split(AT_ONCE)):
        given = model.network.logits(some)
        losses.append(F.cross_entropy(given, right, reduction="none"))
        scores = given[-1].detach().clone()
        if backwards:
            (losses[-1].sum() / len(ids)).backward()
    if backwards:
        last.backward(rows.grad)
    return torch.cat(losses).detach(), scores
