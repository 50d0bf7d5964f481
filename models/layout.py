"""How weights lie in memory while a model is read: the numbers stay what they are, and a pass is
faster."""

from __future__ import annotations

from torch import nn

from models.attention import MultiHeadAttention, by_inputs
from models.products import WIDE
from models.since import GatedFeedForward
from models.transformer import FeedForward


def lay_out(model: nn.Module) -> None:
    """Lay out what reads the stream: q, k and v beside each other, and the units of the
    feed-forward networks; with AVX-512, what both write with too."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.fuse()
            writing = module.w_o
        elif isinstance(module, (FeedForward, GatedFeedForward)):
            for matrix in module.reading():
                matrix.weight.data = by_inputs(matrix.weight)
            writing = module.w_2
        else:
            continue
        if WIDE:
            writing.weight.data = by_inputs(writing.weight)
