"""A head's circuits in words."""

from __future__ import annotations

from explorer.analysis.circuits import Copies
from explorer.sentences.own_code import WHICH_TENSORS

TWO = (
    "A head’s weights do two things. **QK** (W_Q and W_K) scores which word looks for which. "
    "**OV** (W_V and W_O) makes of a word that is looked at what the head writes, and the readout "
    "makes words of that."
)
LEFT_OUT = (
    "The scores are W_E W_QK W_Eᵀ times the head’s scale, the logits W_E W_OV W_U at a weight of "
    "1, of bare embeddings. That leaves out biases, norms (those of q and k too, where a model has "
    "them), positions, and what earlier layers made of a word: nearest to what the head does in "
    "layer 0 (Elhage et al. 2021)."
)
HERE = (
    "The logits are those of the head’s own value v of this token, so norm, bias, position "
    "and earlier layers are in it. The way from the head to the readout, later layers and "
    "norms, is still left out. The scores are of bare embeddings."
)
OTHER_READOUT = (
    " No words are read off this stream by one matrix: the embedding stands in for the readout."
)
NOT_SHOWN = (
    "{} does not show the head’s W_Q, W_K, W_V and W_O: "
    f"{WHICH_TENSORS.format('these are')}. So its words cannot be read."
)


def copied(found: Copies, across: bool) -> str:
    """How far the head copies the words that it looks at."""
    of = f"the {found.n} different words of the {'source' if across else 'text'}"
    return (
        f"Of {of}, {found.among_first} are among the words that they make the head raise most, and "
        f"{found.raised} raise themselves at all. A head that copies has many."
    )
