"""Gradients on their way back as tables: through the layers, through a deep stack, through one
sub-layer, and over distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from explorer.analysis.csv import Columns
from explorer.analysis.residual import SHORT, over_tokens

NETWORKS = ("RNN", "LSTM", "Transformer")


def places(found: Any) -> list[str]:
    """The states of a `Model.gradients` in short: what enters layer 0, then each sub-layer."""
    parts = (site.partition(".") for site in found.sites[1:])
    return ["input", *(f"{SHORT[place]} {layer}" for layer, _, place in parts)]


def highway_columns(found: Any, token: int) -> Columns:
    """The length of the gradient of a `Model.gradients` at every state, over all tokens and at
    one, each way."""
    total = zip(found.ways, over_tokens(found.norm))
    return (
        {"state after": places(found)}
        | {f"{way}, all tokens": row for way, row in total}
        | {f"{way}, token {token}": row[:, token] for way, row in zip(found.ways, found.norm)}
    )


def stack_columns(found: Any) -> Columns:
    """The gradient of a `registry.depth` at every layer, of that at the last one, each way."""
    return {"layer": list(range(found.layers + 1))} | dict(zip(found.ways, found.norm))


def stretches(found: Any, norm: str = "") -> list[tuple[str, np.ndarray]]:
    """The singular values of a `Model.jacobian` by what they are of. norm: what the norm is
    called that follows the sum, "" where none does."""
    series = [("∂f, what is written", found.wrote)]
    if found.adds:
        series.append(("I + ∂f, the sum", found.total))
    return [*series, (f"after {norm}", found.after)] if norm else series


def stretch_columns(found: Any, norm: str = "") -> Columns:
    """The same as named columns."""
    return {"rank": range(1, len(found.wrote) + 1)} | dict(stretches(found, norm))


def distance_columns(found: Any, names: Sequence[str] = NETWORKS) -> Columns:
    """The length of the gradient of a `registry.decay` by distance, before training and now."""
    columns: dict[str, Any] = {"distance": range(found.length)}
    columns |= {f"{name} before": row for name, row in zip(names, found.first)}
    return columns | {f"{name} now": row for name, row in zip(names, found.gradient)}
