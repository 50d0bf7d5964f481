"""A model's own code reading on from what it has read, with its own stored keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from models.pretrained.handle import Handle
from models.pretrained.hooks import Pass, listening
from models.pretrained.overheard import same

PROBE = 5  # tokens


class Reading:
    """Rows of tokens that a model has read so far, side by side.

    `ids` (row, token). `source`: the ids that the encoder of a model with two streams reads, once
    and for all rows; None for a decoder. Where nothing is kept (`keeps` False) every step reads
    all. It belongs to one reader; the model is shared and unchanged.
    """

    def __init__(self, handle: Handle, source: Sequence[int] | None, keeps: bool) -> None:
        self.handle, self.keeps = handle, keeps
        self._source = None if source is None else torch.tensor([list(source)])
        self.ids = torch.zeros(1, 0, dtype=torch.long)
        self.cache: Any = None
        self._memory: Tensor | None = None

    @property
    def is_croppable(self) -> bool:
        """True where what is stored of the newest tokens can be let go."""
        return bool(getattr(self.cache, "is_croppable", False))

    def crop(self, n: int) -> None:
        """Forget the newest n tokens of every row."""
        self.cache.crop(-n)
        self.ids = self.ids[:, :-n]

    @torch.inference_mode()
    def read(self, new: Tensor, rows: Tensor | None = None, heard: Pass | None = None) -> Any:
        """What the model's code gives for `new` (row, token), read after all before it; `rows`
        (row): which of the rows so far each goes on from. heard: who listens."""
        handle, past = self.handle, self.ids
        if rows is not None:
            past = past[rows]
            if self.cache is not None:
                self.cache.reorder_cache(rows)
        self.ids = torch.cat([past, new], dim=1)
        with handle.lock, listening(heard or Pass(keeps=False)):
            output = handle.model(
                **self._inputs(new if self.keeps else self.ids),
                past_key_values=self.cache,
                use_cache=self.keeps,
                **({} if handle.plan.opens or heard is None else {"output_attentions": True}),
            )
        self.cache = output.get("past_key_values") if self.keeps else None
        return output

    def _inputs(self, new: Tensor) -> dict[str, Any]:
        if self._source is None:
            return {"input_ids": new}
        if not self.keeps:
            return {"input_ids": self._source.expand(len(new), -1), "decoder_input_ids": new}
        from transformers.modeling_outputs import BaseModelOutput

        if self._memory is None:
            self._memory = self.handle.model.get_encoder()(input_ids=self._source)[0]
        if self.cache is None:
            self.cache = fresh()
        memory = BaseModelOutput(last_hidden_state=self._memory.expand(len(new), -1, -1))
        return {"encoder_outputs": memory, "decoder_input_ids": new}


def fresh() -> Any:
    """An empty cache for a decoder that looks at a source. It grows a layer when one is written:
    the one that T5 makes itself has as many layers as its encoder."""
    from transformers import DynamicCache, EncoderDecoderCache

    return EncoderDecoderCache(DynamicCache(), DynamicCache())


def layers_of(cache: object) -> list[Any]:
    """The layers of a cache that hold keys; of a decoder that looks at a source its own first."""
    both = [getattr(cache, f"{which}_attention_cache", None) for which in ("self", "cross")]
    return [
        layer
        for each in (cache, *both)
        for layer in getattr(each, "layers", ())
        if isinstance(getattr(layer, "keys", None), Tensor)
    ]


_kept: WeakKeyDictionary[Handle, bool] = WeakKeyDictionary()


def keeps(handle: Handle) -> bool:
    """True for a model whose code, given the keys and values of a text that it has read, says after
    one more token what it says after reading all. Tried once for a handle."""
    if handle not in _kept:
        try:
            _kept[handle] = _tried(handle)
        except (RuntimeError, ValueError, TypeError, AttributeError, LookupError):
            _kept[handle] = False  # a family's code may keep its past in another way, or not at all
    return _kept[handle]


@torch.inference_mode()
def _tried(handle: Handle) -> bool:
    n = handle.card.n_vocab
    ids, source, rows = torch.arange(n // 3, n // 3 + PROBE)[None] % n, None, None
    if handle.start is not None:  # a search goes on from one row in several
        source, rows = ids[0].tolist(), torch.tensor([0, 0])
        ids = torch.cat([torch.tensor([[handle.start]]), ids[:, 1:]], dim=1)
    whole = Reading(handle, source, keeps=False).read(ids).logits[0, -1]
    kept = Reading(handle, source, keeps=True)
    kept.read(ids[:, :-1])
    if not layers_of(kept.cache):
        return False
    last = ids[:, -1:] if rows is None else ids[:, -1:].expand(len(rows), -1)
    return all(same(each, whole) for each in kept.read(last, rows).logits[:, -1])
