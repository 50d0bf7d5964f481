"""Writing a text a token at a time by a model's own code, with its own stored keys and values, and
the search for the likeliest text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from models.generation import longest_answer, search
from models.prediction import Beam, Drawn
from models.pretrained.handle import Handle
from models.pretrained.hooks import Pass
from models.pretrained.reading import Reading, keeps, layers_of

if TYPE_CHECKING:
    from torch import FloatTensor, LongTensor
    from transformers import LogitsProcessorList

# Where the newest token looks, by an attention's place in a layer; closed: its name in an output.
LOOKS = {"self": "attn", "decoder self": "attn", "cross": "cross"}
CLOSED = {"self": "attentions", "decoder self": "decoder_attentions", "cross": "cross_attentions"}


@dataclass(frozen=True)
class Kept:
    """What a model's own cache holds: its bytes in all, and of each layer how many heads' keys and
    how wide. Heads that share their keys count once. All 0 where nothing is kept."""

    nbytes: int = 0
    n_head: int = 0
    d_head: int = 0


class Writing:
    """One text in the making, as `models.generation.Writing`, by a model in its own code.

    `ids` (token); `logits` (id) of the next token, float32; `rows`: under "attn" what the newest
    token looks at, (layer, head, key), and under "cross" what it looks at in `source`, the tokens
    that an encoder reads, once. Where the model's code keeps no keys and values that give the same
    logits, every step reads the whole text.
    """

    def __init__(self, handle: Handle, ids: list[int], source: list[int] | None = None) -> None:
        self.handle, self.n_positions = handle, handle.card.n_positions
        self.keeps = keeps(handle)
        self.source = source
        self.ids: list[int] = []
        self.logits = np.zeros(0, dtype=np.float32)
        self.rows: dict[str, np.ndarray] = {}
        self._reading = Reading(handle, source, self.keeps)
        self._read(ids)

    @property
    def is_full(self) -> bool:
        """True where the model takes no further token."""
        return len(self.ids) >= self.n_positions

    @property
    def stored(self) -> Kept:
        """What is kept of the text so far, and of the source."""
        layers = [(layer.keys, layer.values) for layer in layers_of(self._reading.cache)]
        if not layers:
            return Kept()
        nbytes = sum(each.numel() * each.element_size() for pair in layers for each in pair)
        return Kept(nbytes, layers[0][0].shape[1], layers[0][0].shape[-1])

    def add(self, token: int) -> None:
        """Take a token as the next one. Raises ValueError where the model is full."""
        if self.is_full:
            raise ValueError(f"the model reads {self.n_positions} tokens and no more")
        self._read([token])

    def back(self) -> None:
        """Take the newest token back. The first stays."""
        if len(self.ids) < 2:
            return
        *left, last = self.ids[:-1]
        if left and self._reading.is_croppable:
            self._reading.crop(2)
            self.ids = left
            self._read([last])
        else:
            self._reading, self.ids = Reading(self.handle, self.source, self.keeps), []
            self._read([*left, last])

    @torch.inference_mode()
    def _read(self, ids: list[int]) -> None:
        plan = self.handle.plan
        heard = Pass(plan.attentions, plan.n_layer)
        output = self._reading.read(torch.tensor([ids]), heard=heard)
        self.logits = output.logits[0, -1].float().numpy()
        self.rows = {
            place: heard.heads[name].arrays["pattern"][:, :, -1].copy()
            if plan.opens
            else torch.stack([each[0, :, -1] for each in output[CLOSED[name]]]).numpy()
            for name, place in LOOKS.items()
            if name in plan.n_layer
        }
        self.ids += ids


def beams(handle: Handle, source: list[int], how: int | Drawn) -> Iterator[tuple[Beam, ...]]:
    """Beam search for what a model of two streams says of a source, as `models.generation.beams`.

    Probabilities are the model's own. A token that its own settings rule out (such as padding) is
    never taken.
    """
    assert handle.start is not None  # it has two streams
    reading, rules = Reading(handle, source, keeps(handle)), _rules(handle)

    def likely(new: Tensor, rows: Tensor | None) -> Tensor:
        logprobs = reading.read(new, rows).logits[:, -1].double().log_softmax(dim=-1)
        ids, scores = cast("LongTensor", reading.ids), cast("FloatTensor", logprobs.clone())
        ruled_out = rules(ids, scores).isneginf()
        return logprobs.masked_fill(ruled_out, float("-inf"))

    longest = longest_answer(len(source), handle.card.n_positions)
    return search(likely, torch.tensor([[handle.start]]), ends(handle), how, longest)


def ends(handle: Handle) -> int:
    """The token that ends a text, -1 where the model has none."""
    found = handle.tokenizer.eos
    if found is None:
        found = _setting(handle, "eos_token_id")
    return -1 if not isinstance(found, int) else found


def _setting(handle: Handle, name: str) -> Any:
    return getattr(getattr(handle.model, "generation_config", None), name, None)


def _rules(handle: Handle) -> LogitsProcessorList:
    """What a model's own settings say of the tokens that it may not take, and when."""
    import transformers as of

    end = ends(handle)
    made: dict[str, Callable[[Any], Any]] = {
        "bad_words_ids": lambda ids: of.NoBadWordsLogitsProcessor(ids, end),
        "suppress_tokens": of.SuppressTokensLogitsProcessor,
        "forced_bos_token_id": of.ForcedBOSTokenLogitsProcessor,
        "no_repeat_ngram_size": of.NoRepeatNGramLogitsProcessor,
        "min_length": lambda n: of.MinLengthLogitsProcessor(n, end),
    }
    given = {name: _setting(handle, name) for name in made}
    return of.LogitsProcessorList(
        make(given[name])
        for name, make in made.items()
        if given[name] or (name == "forced_bos_token_id" and given[name] == 0)
    )
