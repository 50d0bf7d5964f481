"""The capabilities of a loaded model, and the interface of a source of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from models.contract.edits import Edit

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Capabilities:
    """Properties of a loaded model. The defaults are those of a model in our own classes.

    kind: "encoder", "decoder" or "encoder-decoder". attention: the names of its attentions. opens:
    True where q, k, v and scores are there. scale: the factor of q . k, None where layers differ or
    it is not known. biased: something is added to the scores before the mask, so that q . k * scale
    alone is not the score. bound: c where the score is c tanh(q . k * scale / c), as in Gemma 2, 0
    for no bound. law: every sub-layer's output is recorded. norm: "post", "pre", None,
    "branch" for one of each sub-layer's output before it is added, or "both" for that and "pre".
    positions: "learned", "sinusoids", "rotary", "distance", "buckets", "relative", "unknown" or
    None. logits: the stream with a readout, "" for none. edits: the kinds that `record` honours.
    weights: W_O, LayerNorms and embeddings can be had. sites: by stream, where a survey found them.

    scaled_embedding: times sqrt(d_model). embedding_width: of words, where it is not the stream's,
    None where it is; widened_normed: a norm of them stands before the matrix that widens them.
    linear_readout: one matrix, nothing before it. rms:
    RMSNorm in LayerNorm's place. parallel: attention and FFN side by side. gate: the name of a
    gated FFN, "" for one without. ffn_biases: the FFN's matrices have some. key_heads: the number
    of heads with keys and values of their own, None where each has. window: the number of tokens
    that a token attends to, None for all; all in the layers `full_layers`. untied: the readout has
    a matrix of its own. readout_bias: a bias is added to the logits. Those from gate on are known
    of models in our own classes alone.

    no_parts: why no logit can be decomposed into a sum, as the end of a sentence, "" where it can.
    classes: the names of the classes between which a classifier of texts decides, () for any other
    model; multi_label: a text may be of several of them; pooler: the name of the activation between
    the last vector and their scores, "" for none.
    no_readout: why the model predicts no words, as the predicate of a sentence, "" where it does.
    mask: the name of the token that a typed "[MASK]" stands for, "" where that is plain text.
    writes: `Model.generate` writes a text with it, a token at a time. languages: the codes of the
    languages that a multilingual translator knows; source and target: those that it translates
    from and into, "" where it has none or chooses itself."""

    kind: str
    attention: tuple[str, ...]
    scale: float | None
    norm: str | None
    positions: str | None
    logits: str
    edits: tuple[type[Edit], ...]
    opens: bool = True
    biased: bool = False
    bound: float = 0.0
    law: bool = True
    weights: bool = True
    scaled_embedding: bool = False
    linear_readout: bool = False
    rms: bool = False
    parallel: bool = False
    gate: str = ""
    ffn_biases: bool = True
    embedding_width: int | None = None
    widened_normed: bool = False
    key_heads: int | None = None
    window: int | None = None
    full_layers: tuple[int, ...] = ()
    untied: bool = False
    readout_bias: bool = True
    classes: tuple[str, ...] = ()
    multi_label: bool = False
    pooler: str = ""
    no_parts: str = ""
    no_readout: str = ""
    mask: str = ""
    writes: bool = True
    languages: tuple[str, ...] = ()
    source: str = ""
    target: str = ""
    sites: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


# What each module of `models/readouts` reads off the weights of Headlight's own classes.
READ_OFF = {
    "weights": "its matrices, norms and embeddings",
    "gradients": "gradients within a layer",
    "logit_lens": "what a head brings from each token",
    "score_parts": "what its scores are sums of",
    "ffn": "the hidden units of its FFN",
    "circuits": "the circuits of its heads",
    "patching": "sweeps of patches",
    "training_step": "a step of training",
}


def without_readout(head: str) -> str:
    """The predicate that says why a model predicts no words. head: what it was trained with in the
    place of a readout, "" for nothing."""
    return f"has {head and f'a {head} and '}no readout over the vocabulary"


class TextGenerator(Protocol):
    """A text that is being generated, a token at a time.

    ids (token); logits (id) of the next token; rows: by an attention's place the newest token's
    weights, (layer, head, key); n_positions: the number of positions; stored: the stored keys and
    values."""

    ids: list[int]
    logits: np.ndarray
    rows: dict[str, np.ndarray]

    @property
    def n_positions(self) -> int:
        """The number of positions."""

    @property
    def stored(self) -> Any:
        """The stored keys and values, with `nbytes`, `n_head` and `d_head`."""

    @property
    def is_full(self) -> bool:
        """True where the model takes no further token."""

    def add(self, token: int) -> None:
        """Take a token as the next one."""

    def back(self) -> None:
        """Take the newest token back."""

    def logits_after(self, continuations: Sequence[Sequence[int]]) -> np.ndarray:
        """Scores (row, id) of the token after each of several continuations of one length, of which
        none is taken."""
