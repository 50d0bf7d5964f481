"""A device that is not the processor's memory, where there is no accelerator: its tensors hold
their numbers here, say that they lie on "meta", and refuse what a GPU's refuse: sums with tensors
of the processor, and an array without a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")
aten = torch.ops.aten
COPIES = {aten._to_copy.default, aten.copy_.default, aten._local_scalar_dense.default}
INDEXED = {aten.index.Tensor, aten.index_put_.default}  # by indices that may lie anywhere


class There(torch.Tensor):
    """A tensor on the device; `inner` has its numbers."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> There:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=DEVICE,
            requires_grad=inner.requires_grad,
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return computed(func, args, kwargs or {})


def computed(func: Any, args: tuple, kwargs: dict) -> Any:
    """An operation on tensors of the device, or one that makes them there."""
    given = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, torch.Tensor)]
    there = [each for each in given if isinstance(each, There)]
    assert all(each.device.type == "cpu" or isinstance(each, There) for each in given), func
    here = [each for each in given if not isinstance(each, There) and each.dim() > 0]
    if there and here and func not in COPIES | INDEXED:
        raise RuntimeError(f"{func}: tensors of {DEVICE} and of the processor")
    device = kwargs.get("device")
    to = device if device is not None else (DEVICE if there else torch.device("cpu"))
    if func is aten.copy_.default:
        to = args[0].device
    plain = {**kwargs, "device": torch.device("cpu")} if device is not None else kwargs
    made = func(*_inner(args), **_inner(plain))
    if func.__name__.split(".")[0].endswith("_") and func is not aten._to_copy.default:
        return args[0]
    if torch.device(to).type == "cpu":
        return made
    return tree_map(lambda each: There(each) if isinstance(each, torch.Tensor) else each, made)


def _inner(given: Any) -> Any:
    return tree_map(lambda each: each.inner if isinstance(each, There) else each, given)


def _has_list(index: object) -> bool:
    """True for an index of numbers in a list, which torch makes a tensor of."""
    many = index if isinstance(index, tuple) else (index,)
    return any(isinstance(each, list) for each in many)


def _is_kind(given: object) -> bool:
    return isinstance(given, torch.dtype)


class _Factories(TorchFunctionMode):
    """What makes tensors on the device, asked for by name, and `Tensor.to`."""

    def __torch_function__(
        self, func: Any, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == DEVICE.type:
            with torch.device("cpu"):
                made = func(*args, **{**kwargs, "device": "cpu"})
            return made if isinstance(made, There) else There(made)
        if func is torch.Tensor.to and any(_is_there(each) for each in args[1:]):
            kinds = [getattr(each, "dtype", each) for each in args[1:]]
            made = next((func(args[0], each) for each in kinds if _is_kind(each)), args[0])
            return made if isinstance(made, There) else There(made.detach())
        if isinstance(args[0] if args else None, There):
            if func is torch.Tensor.tolist:  # as a device's
                return args[0].inner.tolist()
            if func is torch.Tensor.new_tensor:
                return There(func(args[0].inner, *args[1:], **kwargs))
            if func is torch.Tensor.__setitem__:  # no number passes by a tensor of its own
                args[0].inner[_inner(args[1])] = _inner(args[2])
                return None
            if func is torch.Tensor.__getitem__ and _has_list(args[1]):
                return There(args[0].inner[_inner(args[1])])
            if func is torch.where and len(args) == 3:
                return There(func(*_inner(args)))
        return func(*args, **kwargs)


def _is_there(given: object) -> bool:
    if isinstance(given, torch.Tensor):
        given = given.device
    return isinstance(given, torch.device) and given.type == DEVICE.type


class _NoGradients(torch.no_grad):
    """In inference mode's place, in which no view of such a tensor can be made."""

    mode: bool

    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled(self.prev and not self.mode)


@contextmanager
def present(patch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """Inside, the device is there."""
    for name in ("__enter__", "__exit__"):
        patch.setattr(torch.inference_mode, name, getattr(_NoGradients, name))
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with _Factories():
            yield DEVICE
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)
