"""The loss of the tied readout, made in pieces: cross-entropy over the vocabulary and its gradient
in one pass over the scores.

A step's scores are its largest tensor (a row for every token to be said, a column for every word of
the vocabulary). Here they are made some rows at a time, small enough for the processor's caches,
and only their gradient is kept, in the precision of the step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from models.transformer import Transformer

ROWS = 128


def cross_entropy(model: Transformer, x: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Mean cross-entropy in nats of saying `wanted` (row) from last vectors x (row, d_model), for a
    model with a tied readout.

    The same as F.cross_entropy(model.logits(x), wanted, label_smoothing=smoothing). Within autocast
    the products are made in its type.
    """
    return _CrossEntropy.apply(
        model.before_readout(x),
        model.embedding.token.weight,
        model.readout_bias,
        targets,
        smoothing,
    )


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        x: Tensor,
        matrix: Tensor,
        bias: Tensor,
        targets: Tensor,
        smoothing: float,
    ) -> Tensor:
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        with torch.autocast("cpu", enabled=False):
            n, n_vocab = len(x), len(matrix)
            x, matrix = x.to(dtype), matrix.to(dtype)
            gradient = torch.empty(n, n_vocab, dtype=dtype)  # of the loss, by score
            total = torch.zeros(())
            for at in range(0, n, ROWS):
                logits = (x[at : at + ROWS] @ matrix.T).float() + bias
                target_ids = targets[at : at + ROWS, None]
                top = logits.amax(1, keepdim=True)
                target_logits = logits.gather(1, target_ids)
                mean = logits.mean(1, keepdim=True) if smoothing else target_logits
                probabilities = logits.sub_(top).exp_()
                partition = probabilities.sum(1, keepdim=True)
                total += (
                    partition.log() + top - (1 - smoothing) * target_logits - smoothing * mean
                ).sum()
                probabilities.div_(partition * n)
                if smoothing:
                    probabilities.sub_(smoothing / n_vocab / n)
                probabilities.scatter_add_(
                    1, target_ids, torch.full_like(target_logits, -(1 - smoothing) / n)
                )
                gradient[at : at + ROWS] = probabilities
            ctx.save_for_backward(x, matrix, gradient)
        return total / n

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, matrix, slope = ctx.saved_tensors
        by_x = (slope @ matrix).float() * upstream
        by_matrix = (slope.T @ x).float() * upstream
        return by_x, by_matrix, slope.sum(0, dtype=torch.float32) * upstream, None, None
