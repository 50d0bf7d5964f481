"""Hooks on a Hugging Face model: one attention function of our own, and hooks that write to the
tape of their pass.

transformers lets a model compute its attention by a function from outside (`AttentionInterface`).
Ours computes the same as a model's own eager code, passes q, k, v, scores and pattern to a tape,
and applies edits. Other places have hooks that are registered once, when the model is loaded.

Neither stores anything on a module. Both read the running pass from a context variable: each thread
sees its own, and None where no pass is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
import torch
from torch import Tensor, nn

from models.contract.edits import Edit, edited, place_of
from models.network.edit_ops import cut_edges, score_divisor, without_hidden_words
from models.network.layers import repeat_key_heads

# The name under which transformers knows our attention function.
ATTENTION_NAME = "headlight"


@dataclass(frozen=True)
class HookPoint:
    """A tensor that passes somewhere in a model: what `module` reads ("in") or gives ("out") the
    `call`-th time it is called in a pass."""

    module: nn.Module
    side: str
    call: int = 0

    @property
    def key(self) -> tuple[int, str, int]:
        """The key under which a pass stores the tensor."""
        return id(self.module), self.side, self.call


@dataclass
class Heads:
    """Tensors of an attention's calls, copied layer by layer into arrays (layer, head, ...), and
    under "allowed" the mask (query, key), by layer where layers differ."""

    n_layer: int
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def keep(self, layer: int, allowed: np.ndarray, scale: float, **tensors: Tensor) -> None:
        """One layer's tensors, (1, head, ...) each, keys and values that heads share once if all
        layers share them alike, and what it multiplies q . k by."""
        mask = self.arrays.setdefault("allowed", allowed)
        if mask.ndim == 2 and not np.array_equal(mask, allowed):
            mask = self.arrays["allowed"] = np.stack([mask] * self.n_layer)
        if mask.ndim == 3:
            mask[layer:] = allowed
        self.arrays.setdefault("scale", np.zeros(self.n_layer))[layer] = scale
        for name, tensor in tensors.items():
            if name not in self.arrays:
                made = np.zeros if name == "sink" else np.empty  # some layers may have none
                self.arrays[name] = made((self.n_layer, *tensor.shape[1:]), dtype=np.float32)
            elif (n_stored := self.arrays[name].shape[1]) != tensor.shape[1]:
                n_head = tensors["q"].shape[1]
                self.arrays[name] = np.repeat(self.arrays[name], n_head // n_stored, axis=1)
                tensor = repeat_key_heads(tensor, n_head)
            torch.from_numpy(self.arrays[name][layer]).copy_(tensor[0])


@dataclass
class ForwardPass:
    """One recorded forward pass.

    attentions: the attention that a module computes, by the module's id, with the number of its
    layers. edits: those of the attentions. changes: by the key of a place what becomes of the
    tensor there, where `keeps`. heads and places fill up where `keeps`; calls counts the
    calls of each module. graph: of a pass whose gradients are wanted, the tensors of the heads, by
    the attention, the layer and "pattern" or "z". `on_attention` is called with every
    AttentionCall. `paths`: those that are cut, see `path_edits`. `answer`, (1, row, d_model),
    replaces the stack's last state, so that the model's own readout reads it."""

    attentions: dict[int, str] = field(default_factory=dict)
    n_layer: dict[str, int] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    changes: dict[tuple[int, str, int], Change] = field(default_factory=dict)
    keeps: bool = True
    graph: dict[tuple[str, int, str], Tensor] | None = None
    answer: Tensor | None = None
    heads: dict[str, Heads] = field(default_factory=dict)
    places: dict[tuple[int, str, int], Tensor] = field(default_factory=dict)
    calls: Counter = field(default_factory=Counter)
    on_attention: Callable[[AttentionCall], None] | None = None
    paths: Paths | None = None

    def again(self) -> ForwardPass:
        """The same pass, of which nothing has been heard."""
        return replace(self, heads={}, places={}, calls=Counter())

    def next_layer(self, attention: str) -> int:
        """The index of the layer computed next. Attentions of one name are computed in order, once
        a layer, and again from the first where text is generated."""
        self.calls[attention] += 1
        return (self.calls[attention] - 1) % self.n_layer[attention]


class Paths(Protocol):
    """Paths between heads in one pass: `before` is called with an attention and what it is about to
    read, `projected` gives the queries, keys and values that it computes with, and `outputs` takes
    what its heads give, (1, head, query, d_head), by the layer."""

    outputs: dict[int, Tensor]

    def before(
        self, module: nn.Module, args: tuple, kwargs: Mapping[str, Any], current: ForwardPass
    ) -> None:
        """An attention is about to read."""

    def projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values in the place of those that an attention has projected."""


# What becomes of a tensor at a place, given the places that came by before it.
Change = Callable[[Tensor, dict[tuple[int, str, int], Tensor]], Tensor]


@dataclass(frozen=True)
class AttentionCall:
    """One call of the attention function, as the survey sees it: the module, how many queries and
    keys, what its scores were made with. bound: what they stay below, 0 for no bound."""

    module: nn.Module
    n_query: int
    n_key: int
    scale: float
    biased: bool
    bound: float


_PASS: ContextVar[ForwardPass | None] = ContextVar("pass", default=None)


@contextmanager
def active_pass(forward_pass: ForwardPass) -> Iterator[ForwardPass]:
    """Inside, the model's attention and hooks belong to this pass, in this thread alone."""
    token = _PASS.set(forward_pass)
    try:
        yield forward_pass
    finally:
        _PASS.reset(token)


def register() -> None:
    """Makes our attention function known to transformers, with the masks that eager attention
    gets."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(ATTENTION_NAME, attend)
    AttentionMaskInterface.register(ATTENTION_NAME, eager_mask)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    s_aux: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """softmax(q k^T * scaling + bias + mask) v as transformers' eager functions compute it, and the
    pattern.

    query (1, head, query, d_head); key and value (1, group, key, d_head), one group for n_head /
    n_group heads each; the mask adds 0 or about
    -3e38, or a bias by distance. Returns z (1, query, head, d_head) and the pattern (1, head,
    query, key). s_aux (head): the scores of learned sinks, which take a part of each row and give
    no value. Of `others`, `position_bias` is added to the scores and `softcap` bounds them; the
    rest (dropout's and what only fused kernels read) change nothing here; whether that is so for a
    model is tried when it is loaded.
    """
    current = _PASS.get()
    if current is not None and current.paths is not None:
        query, key, value = current.paths.projected(query, key, value)
    shared_kv = {"k": key, "v": value}
    key, value = repeat_key_heads(key, query.shape[1]), repeat_key_heads(value, query.shape[1])
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    if (
        scaling == 1.0
        and isinstance(before := getattr(module, "scaling", None), float)
        and before != 1.0
    ):
        query, scaling = query / before, before  # OPT scales its queries before it hands them over
    name = current.attentions.get(id(module)) if current is not None else None
    layer = 0
    edits: tuple[Edit, ...] = ()
    if current is not None and name is not None:
        layer, edits = current.next_layer(name), current.edits
    scale_divisor = score_divisor(edits, layer, 1 / scaling)
    scores = torch.matmul(query, key.transpose(2, 3)) / scale_divisor
    scores, permitted, biased = _biased_scores(scores, attention_mask, **others)
    permitted = without_hidden_words(permitted, scores.shape, edits, name or "")
    at = partial(place_of, name or "", layer)
    uncut = cut_edges(permitted, scores, edits, at("mask"))
    masked = scores if uncut is None else scores.masked_fill(~uncut, float("-inf"))
    pattern, sink = _with_sink(masked, s_aux)
    allowed_keys = None if uncut is None else uncut.expand(pattern.shape)
    pattern = edited(pattern, edits, at("pattern"), allowed=allowed_keys)
    if sink and edits:  # an even row leaves nothing
        sink = {"sink": (1 - pattern.sum(dim=-1)).clamp(min=0)}
    z = edited(torch.matmul(pattern, value), edits, at("z"))
    if current is not None and current.paths is not None:
        current.paths.outputs[layer] = z
    if current is not None and current.on_attention is not None:
        sizes = query.shape[2], key.shape[2]
        current.on_attention(
            AttentionCall(module, *sizes, float(scaling), biased, float(others.get("softcap") or 0))
        )
    if current is not None and name is not None and current.keeps:
        all_allowed = torch.ones(scores.shape[-2:], dtype=torch.bool)
        allowed = (all_allowed if permitted is None else permitted[0].any(dim=0)).numpy()
        heads = current.heads.setdefault(name, Heads(current.n_layer[name]))
        tensors = {"q": query, **shared_kv, "scores": scores, "pattern": pattern}
        heads.keep(layer, allowed, 1 / scale_divisor, **tensors, **sink)
        if current.graph is not None:
            current.graph |= {(name, layer, "pattern"): pattern, (name, layer, "z"): z}
    return z.transpose(1, 2).contiguous(), pattern


def _with_sink(masked: Tensor, sink: Tensor | None) -> tuple[Tensor, dict[str, Tensor]]:
    """The softmax of scores (1, head, query, key), and under "sink" what the learned sinks of the
    heads take of each row, (1, head, query); nothing where there are none."""
    if sink is None:
        return masked.softmax(dim=-1), {}
    column = sink.reshape(1, -1, 1, 1).expand(*masked.shape[:-1], 1).to(masked.dtype)
    shares = torch.cat([masked, column], dim=-1).softmax(dim=-1)
    return shares[..., :-1], {"sink": shares[..., -1]}


def _biased_scores(
    scores: Tensor,
    mask: Tensor | None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    **others: object,
) -> tuple[Tensor, Tensor | None, bool]:
    """Scores with a family's bias, the mask, and whether anything was added."""
    if position_bias is not None:
        scores = scores + position_bias
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    permitted, bias = _split_mask(mask)
    if bias is not None:
        scores = scores + bias
    if permitted is not None:  # some families mask keys alone, (1, 1, 1, key)
        permitted = permitted.expand(*permitted.shape[:2], *scores.shape[2:])
    return scores, permitted, any(each is not None for each in (position_bias, bias))


def put_hooks(
    modules: Iterable[nn.Module], attentions: Iterable[nn.Module], lm_head_input: nn.Module | None
) -> None:
    """Hooks on modules whose places a pass keeps, on attentions, and on the module whose output the
    readout reads. They stay, are put there once, and are silent outside a pass."""
    for module in {id(module): module for module in modules}.values():
        if module in _hooked:
            continue
        _hooked.add(module)
        module.register_forward_pre_hook(_record_input, with_kwargs=True)
        module.register_forward_hook(_record_output)
    for module in attentions:
        if module not in _attentions:
            _attentions.add(module)
            module.register_forward_pre_hook(_before_attention, with_kwargs=True)
    if lm_head_input is not None and lm_head_input not in _replaced:
        _replaced.add(lm_head_input)
        lm_head_input.register_forward_hook(replace_output)


_hooked: WeakSet[nn.Module] = WeakSet()  # modules whose places a pass keeps
_attentions: WeakSet[nn.Module] = WeakSet()
_replaced: WeakSet[nn.Module] = WeakSet()  # modules whose output the readout reads


def first_tensor(values: object) -> Tensor | None:
    """The first tensor in what a module reads or gives, be it a tensor, a tuple or one of
    transformers' outputs: the vectors, in all of them."""
    if isinstance(values, Tensor):
        return values
    if isinstance(values, dict):
        values = tuple(values.values())
    return (
        next((value for value in values if isinstance(value, Tensor)), None)
        if isinstance(values, (tuple, list))
        else None
    )


def _record_input(module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
    current = _PASS.get()
    if (
        current is None
        or not current.keeps
        or (tensor := first_tensor((*args, *kwargs.values()))) is None
    ):
        return None
    key = id(module), "in", current.calls[id(module)]
    current.places[key] = tensor
    if key not in current.changes:
        return None
    current.places[key] = changed = current.changes[key](tensor, current.places)
    put = {name: changed if each is tensor else each for name, each in kwargs.items()}
    return tuple(changed if each is tensor else each for each in args), put


def _before_attention(module: nn.Module, args: tuple, kwargs: dict) -> None:
    current = _PASS.get()
    if current is not None and current.paths is not None:
        current.paths.before(module, args, kwargs, current)


def _record_output(module: nn.Module, args: tuple, output: Any) -> object:
    current = _PASS.get()
    if current is None or not current.keeps:
        return None
    key = id(module), "out", current.calls[id(module)]
    current.calls[id(module)] += 1
    if (tensor := first_tensor(output)) is None:
        return None
    current.places[key] = tensor
    if key not in current.changes:
        return None
    current.places[key] = changed = current.changes[key](tensor, current.places)
    if isinstance(output, Tensor):
        return changed
    if isinstance(output, dict):
        for name in [name for name, each in output.items() if each is tensor]:
            output[name] = changed
        return output
    return type(output)(changed if each is tensor else each for each in output)


def replace_output(module: nn.Module, args: tuple, output: Any) -> object:
    """A hook on the module that the readout reads: the pass's `answer` in the place of its output,
    where there is one."""
    current = _PASS.get()
    if current is None or current.answer is None:
        return None
    if isinstance(output, tuple):
        return (current.answer, *output[1:])
    output["last_hidden_state"] = current.answer
    return output


def _split_mask(mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """An additive mask as what it permits, bool, and the bias it adds there, None where it adds
    none."""
    if mask is None:
        return None, None
    if mask.dtype == torch.bool:
        return mask, None
    permitted = mask > torch.finfo(mask.dtype).min / 2
    bias = mask.masked_fill(~permitted, 0.0)
    return permitted, bias if bias.any() else None
