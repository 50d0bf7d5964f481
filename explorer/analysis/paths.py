"""One stream of two runs beside each other: how long the vectors are, and how far apart they
lie."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from explorer.analysis.csv import Columns
from models.recording import Stream


def states(stream: Stream) -> dict[str, str]:
    """The stream's states by names that it keeps under every edit: "embed", "input" (what enters
    layer 0), "0.attn", ..., "final".

    The state after a sub-layer is what its LayerNorm made of the sum, or the sum itself where none
    follows.
    """
    made: dict[str, str] = {}
    for site in stream.sites:
        place, _, what = site.rpartition(".")
        if what in ("wrote", "read"):
            continue
        if site[0].isdigit():
            made[place if what in ("sum", "normed") else site] = site
        elif site == "final.normed":
            made["final"] = site
        else:
            made.setdefault("embed", site)
            made["input"] = site
    return made


@dataclass(frozen=True, eq=False)
class Paths:
    """A stream's states in both runs, at the places that both have.

    places (s) names; lengths before and after (s, token); distance (s, token), |after - before|;
    cosine (s, token) between the two, NaN where one has no length.
    """

    places: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray
    distance: np.ndarray
    cosine: np.ndarray

    @property
    def relative(self) -> np.ndarray:
        """The distance as a share of the length before, (s, token); NaN where that was 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.before > 0, self.distance / self.before, np.nan)


def paths(before: Stream, after: Stream) -> Paths:
    """The two paths of every token, place by place."""
    one, other = states(before), states(after)
    places = tuple(name for name in one if name in other)
    x, y = (
        np.stack([stream.at(sites[name]).astype(np.float64) for name in places])
        for stream, sites in ((before, one), (after, other))
    )
    lengths = np.linalg.norm(x, axis=-1), np.linalg.norm(y, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.where(
            lengths[0] * lengths[1] > 0,
            np.clip((x * y).sum(-1) / (lengths[0] * lengths[1]), -1, 1),
            np.nan,
        )
    return Paths(places, *lengths, np.linalg.norm(y - x, axis=-1), cosine)


def spread_out(of: Paths) -> bool:
    """True where the two paths lie so far apart that a logarithmic scale suits their distance."""
    return bool(np.nanmax(of.relative, initial=0.0) > 10)


def growth(stream: Stream) -> float:
    """The tokens' mean length at the last state over that at the first; infinite where the first
    has none."""
    sites = list(states(stream).values())
    first, last = (
        float(np.linalg.norm(stream.at(site).astype(np.float64), axis=-1).mean())
        for site in (sites[0], sites[-1])
    )
    return last / first if first > 0 else inf


def path_columns(of: Paths, token: int) -> Columns:
    """Both paths of one token as named columns, with the mean over all tokens beside them."""
    return {
        "state": of.places,
        "length before": of.before[:, token],
        "length after": of.after[:, token],
        "distance": of.distance[:, token],
        "distance / length before": of.relative[:, token],
        "cosine": of.cosine[:, token],
        "mean length before": of.before.mean(axis=1),
        "mean length after": of.after.mean(axis=1),
        "mean distance / length before": of.relative.mean(axis=1),
    }
