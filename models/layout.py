"""How weights lie in memory while a model is read: the numbers stay what they are, and a pass is
faster."""

from __future__ import annotations

from torch import nn

from models.attention import MultiHeadAttention, by_inputs
from models.products import is_large
from models.since import GatedFeedForward
from models.transformer import FeedForward


def lay_out(model: nn.Module) -> None:
    """Lay out what reads the stream: q, k and v beside each other, and the units of the
    feed-forward networks; and what large ones of these write it with."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.fuse()
        elif isinstance(module, (FeedForward, GatedFeedForward)):
            writing = (module.w_2,) if is_large(module.w_2.weight) else ()
            for matrix in (*module.reading(), *writing):
                matrix.weight.data = by_inputs(matrix.weight)
