"""Writing a text a token at a time by a model's own code, with its own stored keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from models.pretrained.handle import Handle
from models.pretrained.hooks import Pass, listening
from models.pretrained.overheard import same
from models.pretrained.survey import patterns_of


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
    token looks at, (layer, head, key). Where the model's code keeps no keys and values that give
    the same logits, every step reads the whole text.
    """

    def __init__(self, handle: Handle, ids: list[int]) -> None:
        self.handle, self.n_positions = handle, handle.card.n_positions
        self.keeps = keeps(handle)
        self.ids: list[int] = []
        self.logits = np.zeros(0, dtype=np.float32)
        self.rows: dict[str, np.ndarray] = {}
        self._cache: object = None
        self._read(ids)

    @property
    def is_full(self) -> bool:
        """True where the model takes no further token."""
        return len(self.ids) >= self.n_positions

    @property
    def stored(self) -> Kept:
        """What is kept of the text so far."""
        layers = [
            (layer.keys, layer.values)
            for layer in getattr(self._cache, "layers", ())
            if isinstance(getattr(layer, "keys", None), Tensor)
        ]
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
        if left and getattr(self._cache, "is_croppable", False):
            self._cache.crop(-2)  # type: ignore[attr-defined]
            self.ids = left
            self._read([last])
        else:
            self._cache, self.ids = None, []
            self._read([*left, last])

    @torch.inference_mode()
    def _read(self, ids: list[int]) -> None:
        handle = self.handle
        new = ids if self.keeps else [*self.ids, *ids]
        heard = Pass(handle.plan.attentions, handle.plan.n_layer)
        with handle.lock, listening(heard):
            output = handle.model(
                input_ids=torch.tensor([new]),
                past_key_values=self._cache,
                use_cache=self.keeps,
                **({} if handle.plan.opens else {"output_attentions": True}),
            )
        self._cache = output.get("past_key_values") if self.keeps else None
        self.logits = output.logits[0, -1].float().numpy()
        if handle.plan.opens:
            pattern = heard.heads["self"].arrays["pattern"][:, :, -1].copy()
        else:
            pattern = torch.stack([each[0, :, -1] for each in patterns_of(output)["self"]]).numpy()
        self.rows = {"attn": pattern}
        self.ids += ids


_kept: WeakKeyDictionary[Handle, bool] = WeakKeyDictionary()
PROBE = 5  # tokens


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
    ids = torch.arange(n // 3, n // 3 + PROBE)[None] % n
    with handle.lock:
        whole = handle.model(input_ids=ids, use_cache=False).logits[0, -1]
        first = handle.model(input_ids=ids[:, :-1], use_cache=True)
        cache = first.get("past_key_values")
        if not getattr(cache, "layers", None):
            return False
        last = handle.model(input_ids=ids[:, -1:], past_key_values=cache, use_cache=True)
    return same(last.logits[0, -1], whole)
