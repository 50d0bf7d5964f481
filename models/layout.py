"""How weights lie in memory while a model is read: the numbers stay what they are, and a pass is
faster."""

from __future__ import annotations

from torch import nn

from models.attention import MultiHeadAttention, by_inputs
from models.products import suits
from models.since import GatedFeedForward
from models.transformer import FeedForward


def lay_out(model: nn.Module) -> None:
    """Lay out what reads the stream: q, k and v beside each other, and the units of the
    feed-forward networks; and what large ones of these write with, where `models/products.py` is
    asked."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.fuse()
        elif isinstance(module, (FeedForward, GatedFeedForward)):
            for matrix in module.reading():
                matrix.weight.data = by_inputs(matrix.weight)
            if isinstance(module, FeedForward) and suits(module.w_2.weight):
                module.w_2.weight.data = by_inputs(module.w_2.weight)
