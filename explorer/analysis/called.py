"""What the parts of a model are called where it departs from the paper: its norms, and the formula
of its feed-forward network. The one place that says so; sentences and pages ask here."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from explorer.analysis.switched import kind_of_norm
from models.edits import NORMS
from models.recording import Recording

EITHER = "norm"  # where both kinds are there, or none is known


def norm(centred: Iterable[bool]) -> str:
    """What norms are called, of which each subtracts the mean or does not: LayerNorm or RMSNorm."""
    kinds = {NORMS["layer" if each else "rms"] for each in centred}
    return kinds.pop() if len(kinds) == 1 else EITHER


def norm_of(recording: Recording, rms: bool) -> str:
    """The same for the layers of a recording, by what its model has (`rms`: RMSNorm) and by the
    edits in force."""
    kind = kind_of_norm("rms" if rms else "layer")
    return norm(each == "layer" for each in kind.values(recording.edits, recording.model.n_layer))


def other_norm(name: str) -> str:
    """The one of the two that it is not."""
    return next(each for each in NORMS.values() if each != name)


def a(name: str) -> str:
    """A norm with its article: "a LayerNorm", "an RMSNorm"."""
    return f"{'an' if name.startswith('R') else 'a'} {name}"


def windowed(allowed: np.ndarray) -> bool:
    """True where a mask (query, key) also hides tokens that stand before the query: a window."""
    square = len(allowed) == allowed.shape[1]
    return square and bool((np.tril(np.ones_like(allowed)) & ~allowed).any())


def sees_ahead(allowed: np.ndarray) -> bool:
    """True where a mask (query, key) of one text lets some token look at a later one."""
    return bool(np.triu(allowed, 1).any())


def reach(allowed: np.ndarray) -> int:
    """How many places away, at most, a mask (query, key) lets a token look."""
    rows, keys = np.nonzero(allowed)
    return int(abs(rows - keys).max(initial=0))


def hidden(allowed: np.ndarray) -> str:
    """Why a cell of a mask (query, key) is not allowed, "" where all are."""
    if allowed.all():
        return ""
    if sees_ahead(allowed):
        return f"not allowed: more than {reach(allowed)} places away"
    return "not allowed: a later token" + (", or before the window" if windowed(allowed) else "")


def units(gate: str, biases: bool) -> str:
    """How the activation of unit i of an FFN is made of x; gate: what a gated one is called, or
    ""."""
    plain = "x W₁ + b₁" if biases else "x W₁"
    if not gate:
        return f"act({plain})ᵢ"
    return f"act(x W_gate{' + b' if biases else ''})ᵢ · ({plain})ᵢ"


def ffn(gate: str, biases: bool) -> str:
    """The formula of an FFN; gate: what a gated one is called, or ""."""
    first = "W₁ h + b₁" if biases else "W₁ h"
    last = " + b₂" if biases else ""
    if not gate:
        return f"FFN(h) = W₂ σ({first}){last}"
    gated = "W_gate h + b" if biases else "W_gate h"
    return f"FFN(h) = W₂ (σ({gated}) ⊙ ({first})){last}"
