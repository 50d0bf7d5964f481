"""The named places of a forward pass: what listens there, and what an edit puts there.

Every forward pass takes a `tape`, called as `tape(name, tensor)` at each named place; the default
does nothing, and nothing is ever stored on a module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.edits import Edit

Tape = Callable[[str, Tensor], None]


def no_tape(name: str, tensor: Tensor) -> None:
    """The tape that records nothing."""


def room(tape: Tape, name: str, shape: tuple[int, ...]) -> Tensor | None:
    """Memory that a tape wants a tensor computed into, where it has a method `room`: what is large
    is then written once and not copied."""
    wanted = getattr(tape, "room", None)
    return None if wanted is None else wanted(name, shape)


def written(linear: nn.Linear, x: Tensor, out: Tensor | None) -> Tensor:
    """x (..., in) through a linear layer, (..., out), computed where it is to lie."""
    if out is None:
        return linear(x)
    rows, flat = x.flatten(0, -2), out.view(-1, out.shape[-1])
    if linear.bias is None:
        torch.mm(rows, linear.weight.T, out=flat)
    else:
        torch.addmm(linear.bias, rows, linear.weight.T, out=flat)
    return out


@dataclass(frozen=True, eq=False)
class Put(Edit):
    """Vectors of another run, put in at a named place: what a PatchHead or PatchSite becomes when a
    pass begins.

    values (token, width) replace as many tokens as there are; `head`: of that head alone; `token`:
    at that place alone.
    """

    name: str
    values: Tensor
    head: int | None = None
    token: int | None = None

    def into(self, x: Tensor) -> Tensor:
        """x (batch, token, width) or (batch, head, token, width), changed."""
        x = x.clone()
        here = x if self.head is None else x[:, self.head]
        n = min(here.shape[-2], len(self.values))
        if self.token is None:
            here[..., :n, :] = self.values[:n]
        elif self.token < n:
            here[..., self.token, :] = self.values[self.token]
        return x


def passed(name: str, x: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
    """What goes on from a named place: x, or what an edit puts there; the tape hears of it."""
    for edit in edits:
        if isinstance(edit, Put) and edit.name == name:
            x = edit.into(x if x.dim() > 2 else x[None])
    tape(name, x)
    return x
