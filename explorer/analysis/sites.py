"""The states of a stream: which of its sites they are, what they are called on an axis, and their
vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.analysis import lens
from models.recording import Stream


def states(stream: Stream, sums: bool = True) -> tuple[str, ...]:
    """The sites where a stream has a state: not those that say what was added, or what a sub-layer
    read of the state. Without `sums` also not the sums that a LayerNorm follows."""
    found = [site for site in stream.sites if not site.endswith((".wrote", ".read"))]
    return tuple(site for site in found if sums or not _is_sum(site, found))


def title(site: str, names: Sequence[str]) -> str:
    """A site as an axis names it, "L2 attention", or "L2 attention, sum" where `names` also has the
    state after its LayerNorm."""
    return lens.site_name(site) + (", sum" if _is_sum(site, names) else "")


def vectors(stream: Stream, names: Sequence[str], at: np.ndarray) -> np.ndarray:
    """The vectors (site, token, d_model) of some tokens at some sites, float64."""
    return stream.resid[[stream.sites.index(name) for name in names]][:, at].astype(np.float64)


def _is_sum(site: str, names: Sequence[str]) -> bool:
    return site.endswith(".sum") and site[:-3] + "normed" in names
