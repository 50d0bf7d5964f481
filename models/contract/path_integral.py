"""Integrated gradients (Sundararajan et al. 2017): the integral of a score's slopes along the way
from nothing, or from a baseline, to a text, over the parts into which the way is cut.

The slopes of a part must sum to the change of the score over it, which is known, and two rules must
find the same shares. So the parts in which one of these fails by most are cut in two, again and
again: where the score bends the parts are short. It bends at each hidden unit that begins to fire,
so that rules of many places in a part, such as Gauss-Legendre, gain nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from models.contract.argument_validation import expect_ids, ids_of
from models.contract.recording import Recording
from models.contract.results import MASK_SPELLINGS

STEPS = 600  # parts of the way, at most
FIRST = 8  # parts before any is cut
MISSED = 0.01  # of the change of the score that the shares may miss
LEAST_MISSED = 0.001  # of the largest share, where the score hardly changes
CANCELLED = 10  # times as much all parts together may fail by: errors that cancel are some too

# Scores at places from 0 to 1, (place), and their slopes along the way by token, (place, token).
Slopes = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
Part = tuple[float, float, float, np.ndarray]


def baseline_ids(
    model: Any, recording: Recording, stream: str, baseline: Any
) -> tuple[int, ...] | None:
    """The token ids from which the way to a stream begins: an id, or "[PAD]" or "[MASK]", in the
    place of every token that is text, or those of another text; None for embeddings of 0.

    Raises ValueError for a token that the model does not have, and for a text of another number of
    tokens; TypeError for what is no text."""
    if baseline is None:
        return None
    of, tokenizer = recording.stream(stream), model.tokenizer
    if baseline == "[PAD]" or isinstance(baseline, str) and baseline in MASK_SPELLINGS:
        name, baseline = baseline, tokenizer.pad if baseline == "[PAD]" else tokenizer.mask
        if baseline is None:
            raise ValueError(f"{model.card.name} has no {name}; give the id of a token")
    if isinstance(baseline, Integral):
        ids = tuple(int(baseline) if not own else int(id) for id, own in zip(of.ids, of.special))
    elif not isinstance(baseline, str):
        ids = ids_of(baseline)
    elif stream == recording.streams[0].name:
        ids = tuple(map(int, model.record(baseline).streams[0].ids))
    else:
        read = model.record(recording.text_or_ids, target=baseline)
        ids = tuple(map(int, read.stream(stream).ids))
    expect_ids(model.card, ids)
    if len(ids) != len(of.ids):
        raise ValueError(
            f"a baseline has as many tokens as the text, {len(of.ids)}, not {len(ids)}"
        )
    return ids


def one_by_one(slope: Callable[[float], tuple[float, np.ndarray]]) -> Slopes:
    """Slopes of what is asked for one place at a time."""

    def slopes(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores, rows = zip(*map(slope, places.tolist()))
        return np.array(scores), np.stack(rows)

    return slopes


def shares_of(slopes: Slopes, steps: int = STEPS) -> tuple[np.ndarray, float]:
    """The integral of the slopes, (token), and the change of the score, which they sum to but for
    `allowed`, in as few parts as that takes, at most `steps`. Raises ValueError
    for less than one."""
    if steps < 1:
        raise ValueError("gradients are summed in 1 step or more")
    read: dict[float, tuple[float, np.ndarray]] = {}

    def parts_of(spans: list[tuple[float, float]]) -> list[Part]:
        """Each by what it fails, where it lies, and its shares by Simpson's rule."""
        wanted = {place for start, end in spans for place in (start, (start + end) / 2, end)}
        if new := sorted(wanted - read.keys()):
            scores, of_places = slopes(np.array(new))
            of_places = np.where(np.isfinite(of_places), of_places, 0.0).astype(np.float64)
            read.update(zip(new, zip(scores.astype(float).tolist(), of_places)))
        return [_part(*span, read) for span in spans]

    ends = np.linspace(0.0, 1.0, min(steps, FIRST) + 1).tolist()
    parts = parts_of(list(zip(ends, ends[1:])))
    whole = read[1.0][0] - read[0.0][0]
    while True:
        shares = sum((each[3] for each in parts), np.zeros_like(read[0.0][1]))
        most, failed = allowed(shares, whole), sum(each[0] for each in parts)
        is_done = abs(float(shares.sum()) - whole) <= most and failed <= CANCELLED * most
        if is_done or len(parts) >= steps:
            return shares, whole
        parts.sort(key=lambda each: -each[0])
        # Several at a time: places are read together.
        bad = sum(each[0] > most / len(parts) for each in parts)
        n = max(1, min(bad, (len(parts) + 1) // 2, steps - len(parts)))
        halves = [
            half
            for _, start, end, _ in parts[:n]
            for half in ((start, (start + end) / 2), ((start + end) / 2, end))
        ]
        parts = [*parts[n:], *parts_of(halves)]


def _part(start: float, end: float, read: Mapping[float, tuple[float, np.ndarray]]) -> Part:
    places = start, (start + end) / 2, end
    (before, first), (_, middle), (after, last) = (read[each] for each in places)
    shares = (first + 4 * middle + last) * (end - start) / 6
    straight = (first + last) * (end - start) / 2
    missed = abs(float(shares.sum()) - (after - before))
    return max(missed, float(np.abs(shares - straight).max())), start, end, shares


def allowed(shares: np.ndarray, whole: float) -> float:
    """By how much the sum of shares (token) may miss the change of the score, `whole`."""
    return max(MISSED * abs(whole), LEAST_MISSED * float(np.abs(shares).max(initial=0.0)))
