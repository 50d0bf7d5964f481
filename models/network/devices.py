"""Device of a network: what a pass makes lies with its weights, and what leaves it is numpy's.

Everything that a model does is called inside `running_on`, by `models.contract.model.Model`. There
a tensor that names no device is made on the network's, and an array of a tensor is a copy in the
processor's memory. So no code below it says where anything lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from models.contract.results import Sweep


def device_of(name: Any) -> torch.device:
    """A device by its name, "cpu" or "cuda:1", tried with one number. Raises ValueError, a
    sentence, for one that is not there and one that does not compute in 64 bits."""
    try:
        device = torch.device(name)
        torch.zeros(1, dtype=torch.float64, device=device).sum().item()
    except (RuntimeError, AssertionError, TypeError, ValueError, NotImplementedError) as error:
        raise ValueError(
            f"the device {name} is not there, or does not compute in 64 bits; choose another, "
            "such as cpu"
        ) from error
    return device


class _ArraysComeBack(TorchFunctionMode):
    """A tensor's array, wherever the tensor lies."""

    def __torch_function__(
        self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func is Tensor.numpy:
            args = (args[0].cpu(), *args[1:])
        return func(*args, **(kwargs or {}))


def halved() -> list[str]:
    """The kinds of device on which torch computes in 16 bits here, by a caller's autocast."""
    return [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]


@contextmanager
def running_on(device: torch.device | str) -> Iterator[None]:
    """Inside, in this thread, tensors are made on a device and their arrays come back from it;
    numbers have the bits of the weights, also where a caller's autocast would halve them."""
    with ExitStack() as stack:
        for kind in halved():
            stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.device(device).type != "cpu":
            stack.enter_context(torch.device(device))
            stack.enter_context(_ArraysComeBack())
        yield


class Placed:
    """A module or an object whose functions run on a device, and what they yield and write too."""

    def __init__(self, of: Any, device: str) -> None:
        self._of, self._device = of, device

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._of, name)
        if not callable(member):
            return member

        def call(*args: Any, **named: Any) -> Any:
            with running_on(self._device):
                result = member(*args, **named)
            if isinstance(result, Iterator):
                return self._each(result)
            if isinstance(result, Sweep):
                each = lambda ask: lambda *of: self._each(ask(*of))
                by_slope = each(result.by_slope)
                return replace(result, patched=each(result.patched), by_slope=by_slope)
            return Placed(result, self._device) if hasattr(result, "logits_after") else result

        return call

    def _each(self, results: Iterator[Any]) -> Iterator[Any]:
        while True:
            with running_on(self._device):
                try:
                    value = next(results)
                except StopIteration:
                    return
            yield value
